package awslambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// SQS gives each message of a batch to handle, up to Config.Concurrency at once, and reports those that failed or were not reached, so
// that only they come again: the mapping needs ReportBatchItemFailures. On a FIFO queue everything behind a failure counts
// as not reached, to keep the order. A panic fails its message.
//
// An error of handle is for trouble of our own, such as a store that can't be asked. An effect that has to wait is not
// one: it is written down and asked for again later.
func SQS(handle func(ctx context.Context, message events.SQSMessage) error, cfg Config) Handler {
	return batches(cfg, func(ctx context.Context, b *batch, records []json.RawMessage) ([]string, error) {
		messages := make([]events.SQSMessage, len(records))
		for i, raw := range records {
			if err := json.Unmarshal(raw, &messages[i]); err != nil || messages[i].MessageId == "" {
				return nil, fmt.Errorf("%w: record %d is not a queue message", ErrEvent, i)
			}
		}
		fifo := strings.HasSuffix(messages[0].EventSourceARN, ".fifo")
		if fifo {
			b.cfg.Concurrency = 1
		}
		done := b.run(len(messages), fifo, func(i int) bool {
			return b.do(ctx, i, messages[i].MessageId, func(ctx context.Context) error { return handle(ctx, messages[i]) })
		})
		var failed []string
		for i, message := range messages {
			if !done[i] {
				failed = append(failed, message.MessageId)
			}
		}
		return failed, nil
	})
}

// Stream gives each record of a batch to handle: in order, or up to Config.Concurrency at once. At the first failure, or
// where the time is over, it begins no more and reports the first record that was not handled: the stream goes on from
// it, so records behind it may come again that were, and the mapping needs ReportBatchItemFailures. A panic fails its
// record, and so does a record whose image can't be decoded.
//
// A failure holds its shard up until it is gone, so an error of handle is for trouble of our own, such as a store that
// can't be asked: one slow provider must never be one.
func Stream(handle func(ctx context.Context, record events.DynamoDBEventRecord) error, cfg Config) Handler {
	return batches(cfg, func(ctx context.Context, b *batch, records []json.RawMessage) ([]string, error) {
		places, err := sequenceNumbers(records)
		if err != nil {
			return nil, err
		}
		done := b.run(len(records), true, func(i int) bool {
			return b.do(ctx, i, places[i], func(ctx context.Context) error { return decoded(ctx, records[i], handle) })
		})
		if i := slices.Index(done, false); i >= 0 {
			return places[i : i+1], nil
		}
		return nil, nil
	})
}

// sequenceNumbers are what the report names stream records by.
func sequenceNumbers(records []json.RawMessage) ([]string, error) {
	places := make([]string, len(records))
	for i, raw := range records {
		var record struct {
			DynamoDB struct{ SequenceNumber string } `json:"dynamodb"`
		}
		if err := json.Unmarshal(raw, &record); err != nil || record.DynamoDB.SequenceNumber == "" {
			return nil, fmt.Errorf("%w: record %d is not a stream record", ErrEvent, i)
		}
		places[i] = record.DynamoDB.SequenceNumber
	}
	return places, nil
}

// decoded decodes a record inside the guard of its own handling: the decoder panics on some malformed sets.
func decoded(ctx context.Context, raw json.RawMessage, handle func(context.Context, events.DynamoDBEventRecord) error) error {
	var record events.DynamoDBEventRecord
	if err := json.Unmarshal(raw, &record); err != nil {
		return errors.New("awslambda: malformed stream record")
	}
	return handle(ctx, record)
}

// batch is one invocation with records.
type batch struct {
	cfg   Config
	begun atomic.Int64
}

// run handles n records, as many at once as configured, and says which were. They are begun in order, so that what is in
// front of a failure is handled too; with halt, none is begun after a failure.
func (b *batch) run(n int, halt bool, handle func(i int) bool) []bool {
	done := make([]bool, n)
	var failed atomic.Bool
	var group sync.WaitGroup
	running := make(chan struct{}, b.cfg.Concurrency)
	for i := range n {
		running <- struct{}{}
		if halt && failed.Load() {
			break
		}
		group.Go(func() {
			defer func() { // also where the handler ends its goroutine
				if !done[i] {
					failed.Store(true)
				}
				<-running
			}()
			done[i] = handle(i)
		})
	}
	group.Wait()
	return done
}

// answerTime is kept for returning the report, so that a record that hangs costs itself only.
const answerTime = time.Second

// batches takes the records apart and reports the failed ones.
func batches(cfg Config, each func(context.Context, *batch, []json.RawMessage) (failed []string, err error)) Handler {
	cfg = cfg.withDefaults()
	return func(ctx context.Context, event []byte) ([]byte, error) {
		var in struct{ Records []json.RawMessage }
		if err := json.Unmarshal(event, &in); err != nil || len(in.Records) == 0 {
			return nil, fmt.Errorf("%w: no records", ErrEvent)
		}
		cfg.short(ctx) // what has no time is not begun, and comes again
		if cfg.Batch != nil {
			var end func()
			ctx, end = cfg.Batch(ctx, len(in.Records))
			defer end()
		}
		failed, err := each(ctx, &batch{cfg: cfg}, in.Records)
		if err != nil {
			return nil, err
		}
		report := events.SQSEventResponse{BatchItemFailures: make([]events.SQSBatchItemFailure, len(failed))}
		for i, id := range failed {
			report.BatchItemFailures[i].ItemIdentifier = id
		}
		payload, err := json.Marshal(report)
		if err != nil {
			return nil, fmt.Errorf("awslambda: encode report: %w", err)
		}
		return payload, nil
	}
}

// do handles one record and says whether that succeeded. It is not begun where too little time is left; but the first
// always is, or a batch would never get anywhere.
func (b *batch) do(ctx context.Context, position int, id string, handle func(context.Context) error) bool {
	log := b.cfg.Logger.With("record", id, "position", position)
	if deadline, ok := ctx.Deadline(); ok {
		if time.Until(deadline) < b.cfg.RecordTime+answerTime && b.begun.Load() > 0 {
			log.WarnContext(ctx, "batch.not_reached")
			return false
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerTime))
		defer cancel()
	}
	b.begun.Add(1)
	ctx = trace.Watch(ctx) // the record's span has ended when its error arrives here
	returned := false
	defer func() {
		if !returned {
			log.ErrorContext(ctx, "record failed", "error", "its handler ended its goroutine")
		}
	}()
	err := guarded(ctx, handle)
	returned = true
	if err != nil {
		log.ErrorContext(ctx, "record failed", "error", err)
		return false
	}
	return true
}

func guarded(ctx context.Context, handle func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("awslambda: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return handle(ctx)
}
