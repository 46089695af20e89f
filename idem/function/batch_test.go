package function_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/storage"
)

func body(m events.SQSMessage) ([]byte, error) { return []byte(m.Body), nil }

func image(r events.DynamoDBEventRecord) ([]byte, error) { return json.Marshal(r) }

// sample reads a recorded event.
func sample(t *testing.T, name string, event any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "events", name+".json"))
	if err == nil {
		err = json.Unmarshal(raw, event)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// deliver makes a batch of the sample's message with the given bodies, and returns the positions that failed.
func deliver(t *testing.T, h awslambda.Handler, queue string, bodies ...string) []string {
	t.Helper()
	var event events.SQSEvent
	sample(t, "worker-queue", &event)
	message := event.Records[0]
	if queue != "" {
		message.EventSourceARN = queue
	}
	event.Records = nil
	for i, body := range bodies {
		message.MessageId, message.Body = fmt.Sprintf("m%d", i), body
		event.Records = append(event.Records, message)
	}
	return report(t, h, event)
}

func report(t *testing.T, h awslambda.Handler, event any) []string {
	t.Helper()
	raw, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = h.Invoke(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	var answer events.SQSEventResponse
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	failed := []string{}
	for _, failure := range answer.BatchItemFailures {
		failed = append(failed, failure.ItemIdentifier)
	}
	return failed
}

func wantFailed(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("failed %v, want %v", got, want)
	}
}

// peers.md H16: the duplicate of what is in progress is not acknowledged. Its holder hangs until its lease is over; the
// next delivery executes, and what the first holder does afterwards changes nothing (P1).
func TestH16InProgressDuplicateFailsItsItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, idem.Config{})
		fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{})
		hung, wake := make(chan struct{}), make(chan struct{})
		first := awslambda.SQS(function.EachRaw(fn, body, func(ctx context.Context, tx *idem.Tx, in []byte) ([]byte, error) {
			close(hung)
			<-wake
			return w.returning(idem.KindAtomic, "zombie")(ctx, tx, in)
		}), awslambda.Config{})
		later := awslambda.SQS(function.EachRaw(fn, body, w.returning(idem.KindAtomic, "done")), awslambda.Config{})

		zombie := make(chan []string)
		go func() { zombie <- deliver(t, first, "", `{"id":"a"}`) }()
		<-hung
		wantFailed(t, deliver(t, later, "", `{"id":"a"}`, `{"id":"b"}`), "m0")
		time.Sleep(time.Minute) // the visibility timeout
		wantFailed(t, deliver(t, later, "", `{"id":"a"}`))
		wantFailed(t, deliver(t, later, "", `{"id":"a"}`))
		close(wake)
		wantFailed(t, <-zombie)
		w.ran(3)
		w.want(fn, `{"id":"a"}`, nil, "done", true)
		if row := string(w.mem.Row("business")); row != "11" {
			t.Errorf("committed %s", row)
		}
	})
}

// peers.md H16, on a FIFO queue: nothing of the batch goes past the duplicate.
func TestH16FIFOStopsAtTheInProgressDuplicate(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{})
	batch := awslambda.SQS(function.EachRaw(fn, body, w.returning(idem.KindAtomic, "done")), awslambda.Config{})
	w.want(fn, `{"id":"b"}`, func(context.Context, *idem.Tx, []byte) ([]byte, error) {
		wantFailed(t, deliver(t, batch, "arn:aws:sqs:us-east-1:1:q.fifo", `{"id":"a"}`, `{"id":"b"}`, `{"id":"c"}`), "m1", "m2")
		return nil, nil
	}, "", false)
	w.ran(1)
	wantFailed(t, deliver(t, batch, "arn:aws:sqs:us-east-1:1:q.fifo", `{"id":"b"}`, `{"id":"c"}`))
	w.ran(2)
}

// The table of the package's documentation, "Queues".
func TestBatch(t *testing.T) {
	rejected := &idem.RejectedError{Problem: idem.NewProblem(402, "declined", "Declined", "No.")}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t, idem.Config{ResponseBytesMax: 1000})
			fn := w.function(idem.Operation{Kind: kind}, function.Config{})
			batch := awslambda.SQS(function.EachRaw(fn, body, func(ctx context.Context, tx *idem.Tx, in []byte) ([]byte, error) {
				var charge struct{ ID string }
				if err := json.Unmarshal(in, &charge); err != nil {
					return nil, err
				}
				switch charge.ID {
				case "trouble":
					return failing(w, os.ErrDeadlineExceeded)(ctx, tx, in)
				case "rejected":
					return failing(w, rejected)(ctx, tx, in)
				case "large":
					return w.returning(kind, fmt.Sprintf("%01001d", 0))(ctx, tx, in)
				}
				return w.returning(kind, "")(ctx, tx, in)
			}), awslambda.Config{})
			deliverAll := func() []string {
				return deliver(t, batch, "", `{"id":"good"}`, `{"id":"trouble"}`, `{"id":"good"}`, `{"id":"good","other":1}`,
					`{"id":"rejected"}`, `{}`, `not JSON`, `{"id":"large"}`)
			}
			// good, its duplicate; trouble again, unless it is unknown; rejected once; large again, unless it has run.
			wanted, runs := []string{"m1", "m3", "m4", "m5", "m6", "m7"}, 1+2+1+2
			if kind == idem.KindWrapped {
				wanted, runs = wanted[:5], 1+1+1+1
			}
			wantFailed(t, deliverAll(), wanted...)
			wantFailed(t, deliverAll(), wanted...)
			w.ran(runs)
		})
	}
}

// An unknown outcome fails its item at each delivery, up to the dead-letter queue, and never runs again.
func TestUnknownReachesTheDeadLetterQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, idem.Config{})
		fn := w.function(idem.Operation{Kind: idem.KindWrapped, UnknownToOperator: true}, function.Config{})
		batch := awslambda.SQS(function.EachRaw(fn, body, failing(w, context.DeadlineExceeded)), awslambda.Config{})
		for range 5 { // maxReceiveCount
			wantFailed(t, deliver(t, batch, "", `{"id":"a"}`), "m0")
			time.Sleep(time.Hour)
		}
		w.ran(1)
		if record := w.mem.Records()[0]; record.State != storage.StateUnknown {
			t.Errorf("the record is %s", record.State)
		}
	})
}

// A stream stops at the record whose twin is in progress, and goes on from it.
func TestStream(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{Key: function.JSONPointer("/eventID")})
	var event events.DynamoDBEvent
	sample(t, "worker-stream-insert", &event)
	record := event.Records[0]
	event.Records = nil
	for i := range 3 {
		record.EventID, record.Change.SequenceNumber = fmt.Sprintf("e%d", i), fmt.Sprintf("s%d", i)
		event.Records = append(event.Records, record)
	}
	batch := awslambda.Stream(function.EachRaw(fn, image, w.returning(idem.KindAtomic, "done")), awslambda.Config{})
	second, err := image(event.Records[1])
	if err != nil {
		t.Fatal(err)
	}
	w.want(fn, string(second), func(context.Context, *idem.Tx, []byte) ([]byte, error) {
		wantFailed(t, report(t, batch, event), "s1")
		return nil, nil
	}, "", false)
	wantFailed(t, report(t, batch, event))
	wantFailed(t, report(t, batch, event))
	w.ran(2)
}

func TestRecordWithoutAnInputFails(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{})
	each := function.EachRaw(fn, func(int) ([]byte, error) { return nil, os.ErrInvalid }, nil)
	if err := each(t.Context(), 1); err != os.ErrInvalid {
		t.Errorf("got %v", err)
	}
}
