package awslambda

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// Every record is handled, whatever failed in front of it; the stream goes on from the first that failed.
func TestStreamBatchReportsTheFirstFailure(t *testing.T) {
	for name, c := range map[string]struct {
		failing []string
		want    []string
	}{
		"none":      {nil, nil},
		"the first": {[]string{"s0"}, []string{"s0"}},
		"some":      {[]string{"s2", "s3"}, []string{"s2"}},
		"the last":  {[]string{"s4"}, []string{"s4"}},
		"all":       {[]string{"s0", "s1", "s2", "s3", "s4"}, []string{"s0"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			h := StreamBatch(func(_ context.Context, records []events.DynamoDBEventRecord) []error {
				calls++
				failed := make([]error, len(records))
				for i, record := range records {
					if slices.Contains(c.failing, record.Change.SequenceNumber) {
						failed[i] = errStore
					}
				}
				if len(records) != 5 {
					t.Errorf("%d records, want 5", len(records))
				}
				return failed
			}, Config{})
			if got := failures(t, t.Context(), h, streamEvent(t, 5)); !slices.Equal(got, c.want) || calls != 1 {
				t.Errorf("failed %q in %d calls, want %q in one", got, calls, c.want)
			}
		})
	}
}

// A record that can't be decoded fails alone; a panic, or too few answers, are no reason to lose track.
func TestStreamBatchThatGoesWrong(t *testing.T) {
	given := 0
	count := func(_ context.Context, records []events.DynamoDBEventRecord) []error {
		given += len(records)
		return nil
	}
	panics := func(context.Context, []events.DynamoDBEventRecord) []error { panic("a bug") }
	malformed := []byte(strings.Replace(string(streamEvent(t, 3)), `"eventName":"INSERT"`, `"eventName":7`, 1))
	if got := failures(t, t.Context(), StreamBatch(count, Config{}), malformed); !slices.Equal(got, []string{"s0"}) || given != 2 {
		t.Errorf("failed %q, %d given", got, given)
	}
	if got := failures(t, t.Context(), StreamBatch(panics, Config{}), streamEvent(t, 3)); !slices.Equal(got, []string{"s0"}) {
		t.Errorf("panic: failed %q", got)
	}
	alone := []byte(strings.Replace(string(streamEvent(t, 1)), `"eventName":"INSERT"`, `"eventName":7`, 1))
	if got := failures(t, t.Context(), StreamBatch(panics, Config{}), alone); !slices.Equal(got, []string{"s0"}) {
		t.Errorf("nothing to give: failed %q", got)
	}
	for _, event := range []string{`{}`, `{"Records":[{"dynamodb":{}}]}`, `[]`} {
		if _, err := StreamBatch(count, Config{}).Invoke(t.Context(), []byte(event)); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: %v", event, err)
		}
	}
}

func TestStreamBatchThatHangsLeavesTimeForTheReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := StreamBatch(func(ctx context.Context, records []events.DynamoDBEventRecord) []error {
			<-ctx.Done()
			return slices.Repeat([]error{ctx.Err()}, len(records))
		}, Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		payload, err := h.Invoke(ctx, streamEvent(t, 2))
		if err != nil || ctx.Err() != nil || !json.Valid(payload) || !strings.Contains(string(payload), `"s0"`) {
			t.Errorf("%s, %v, %v", payload, err, ctx.Err())
		}
	})
}
