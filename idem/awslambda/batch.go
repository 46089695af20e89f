package awslambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// SQS gives each message of a batch to handle, one after the other, and reports those that failed or were not reached, so
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
				return nil, fmt.Errorf("%w: record %d is no queue message", ErrEvent, i)
			}
		}
		var failed []string
		for i, message := range messages {
			halted := len(failed) > 0 && strings.HasSuffix(message.EventSourceARN, ".fifo")
			if halted || !b.do(ctx, i, message.MessageId, func(ctx context.Context) error { return handle(ctx, message) }) {
				failed = append(failed, message.MessageId)
			}
		}
		return failed, nil
	})
}

// Stream gives each record of a batch to handle, in order. At the first failure, or where the time is over, it stops and
// reports that record: the stream goes on from it, and the mapping needs ReportBatchItemFailures. A panic fails its
// record, and so does a record whose image can't be decoded.
//
// A failure holds its shard up until it is gone, so an error of handle is for trouble of our own, such as a store that
// can't be asked: one slow provider must never be one.
func Stream(handle func(ctx context.Context, record events.DynamoDBEventRecord) error, cfg Config) Handler {
	return batches(cfg, func(ctx context.Context, b *batch, records []json.RawMessage) ([]string, error) {
		places := make([]string, len(records))
		for i, raw := range records {
			var record struct {
				DynamoDB struct{ SequenceNumber string } `json:"dynamodb"`
			}
			if err := json.Unmarshal(raw, &record); err != nil || record.DynamoDB.SequenceNumber == "" {
				return nil, fmt.Errorf("%w: record %d is no stream record", ErrEvent, i)
			}
			places[i] = record.DynamoDB.SequenceNumber
		}
		for i, raw := range records {
			if !b.do(ctx, i, places[i], func(ctx context.Context) error { return decoded(ctx, raw, handle) }) {
				return places[i : i+1], nil
			}
		}
		return nil, nil
	})
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
	begun int
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
		if time.Until(deadline) < b.cfg.RecordTime+answerTime && b.begun > 0 {
			log.WarnContext(ctx, "record not reached")
			return false
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerTime))
		defer cancel()
	}
	b.begun++
	if err := guarded(ctx, handle); err != nil {
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
