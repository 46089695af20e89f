package awslambda

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/aws/aws-lambda-go/events"
)

// StreamBatch gives a batch of stream records to handle, all at once: for work that is cheaper together. handle returns an
// error for each record, in their order; a panic fails all of them, and a record that can't be decoded fails without being
// given to it. What is reported is the first record that failed: the stream goes on from it, so records behind it come
// again that succeeded. The mapping needs ReportBatchItemFailures.
//
// A failure keeps no record from being handled, so one that fails until the stream gives it up takes none with it.
// Config.RecordTime and Config.Concurrency mean nothing here.
func StreamBatch(handle func(ctx context.Context, records []events.DynamoDBEventRecord) []error, cfg Config) Handler {
	return batches(cfg, func(ctx context.Context, b *batch, raw []json.RawMessage) ([]string, error) {
		places, err := sequenceNumbers(raw)
		if err != nil {
			return nil, err
		}
		failed := make([]error, len(raw))
		var records []events.DynamoDBEventRecord
		var positions []int // of the records among raw
		for i := range raw {
			failed[i] = guarded(ctx, func(ctx context.Context) error {
				return decoded(ctx, raw[i], func(_ context.Context, record events.DynamoDBEventRecord) error {
					records, positions = append(records, record), append(positions, i)
					return nil
				})
			})
		}
		for n, err := range together(ctx, records, handle) {
			failed[positions[n]] = err
		}
		for i, err := range failed {
			if err != nil {
				b.cfg.Logger.ErrorContext(ctx, "record failed", "record", places[i], "position", i, "error", err)
			}
		}
		if i := slices.IndexFunc(failed, func(err error) bool { return err != nil }); i >= 0 {
			return places[i : i+1], nil
		}
		return nil, nil
	})
}

// together calls handle in time for the report, and returns an error for each record.
func together(ctx context.Context, records []events.DynamoDBEventRecord, handle func(context.Context, []events.DynamoDBEventRecord) []error) []error {
	failed := make([]error, len(records))
	if len(records) == 0 {
		return failed
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerTime))
		defer cancel()
	}
	err := guarded(ctx, func(ctx context.Context) error {
		copy(failed, handle(ctx, records))
		return nil
	})
	if err != nil {
		return slices.Repeat([]error{err}, len(records))
	}
	return failed
}
