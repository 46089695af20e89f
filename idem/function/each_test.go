package function_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// A batch of typed inputs fails the records that failed, and no others; each of the others ran once.
func TestATypedBatchReportsItsFailures(t *testing.T) {
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindOptimistic, idem.KindWrapped} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t, idem.Config{})
			fn := w.function(idem.Operation{Kind: kind}, function.Config{})
			var got []string
			batch := awslambda.SQS(function.Each(fn, body, func(_ context.Context, _ *idem.Tx, c charge) error {
				w.run()
				got = append(got, c.ID)
				switch c.ID {
				case "trouble":
					return errors.New("trouble")
				case "rejected":
					return &idem.RejectedError{Problem: idem.NewProblem(402, "declined", "Declined", "No.")}
				}
				return nil
			}), awslambda.Config{Concurrency: 1})
			delivery := []string{
				`{"id":"good"}`, `{"id":"trouble"}`, `{"id":"good"}`, `{"id":"good","lines":["other"]}`, `{"id":"rejected"}`, `{}`, `not JSON`,
				`{"id":"odd","lines":"no list"}`,
			}
			want := []string{"m1", "m3", "m4", "m5", "m6", "m7"}
			wantFailed(t, deliver(t, batch, "", delivery...), want...)
			wantFailed(t, deliver(t, batch, "", delivery...), want...)
			if kind == idem.KindWrapped {
				w.ran(3) // what failed is unknown, and never runs again
			} else {
				w.ran(4)
			}
			if len(got) == 0 || got[0] != "good" {
				t.Errorf("handled %v", got)
			}
		})
	}
}

// SQS can deliver a message again after 14 days in its queue and 14 in the dead-letter queue.
func TestQueuePolicyOutlivesBothQueues(t *testing.T) {
	policy, base := function.QueuePolicy(), idem.IETF()
	if policy.Retention <= 2*14*24*time.Hour {
		t.Errorf("a key is remembered for %v", policy.Retention)
	}
	policy.Name, policy.Retention = base.Name, base.Retention
	if !reflect.DeepEqual(policy, base) {
		t.Errorf("%+v differs from %+v in more than that", policy, base)
	}
	newWorld(t, idem.Config{}).function(idem.Operation{Kind: idem.KindAtomic, Policy: function.QueuePolicy()}, function.Config{})
}

// An input that can't be decoded leaves no record: a wrapped function's would be unknown although it never ran.
func TestAnInputThatCanNotBeDecodedLeavesNothing(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindWrapped}, function.Config{})
	each := function.Each(fn, body, func(context.Context, *idem.Tx, charge) error { w.run(); return nil })
	var mistyped *json.UnmarshalTypeError
	err := each(t.Context(), events.SQSMessage{Body: `{"id":"a","lines":1}`})
	if !errors.As(err, &mistyped) {
		t.Errorf("got %v", err)
	}
	if hopeless := new(*function.InputError); !errors.As(err, hopeless) {
		t.Errorf("%v does not say that it never succeeds", err)
	}
	if records := w.mem.Records(); len(records) != 0 {
		t.Errorf("stored %+v", records)
	}
	if err := each(t.Context(), events.SQSMessage{Body: `{"id":"a"}`}); err != nil {
		t.Errorf("the mended record: %v", err)
	}
	w.ran(1)
}

// What can't be decoded is told without a word of what is in it: the error is logged with each delivery.
func TestAnErrorOfAnInputQuotesNothingOfIt(t *testing.T) {
	type payment struct {
		At   time.Time
		Card int
	}
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{})
	each := function.Each(fn, body, func(context.Context, *idem.Tx, payment) error { return nil })
	for _, in := range []string{`{"at":"4111 1111"}`, `{"card":4111.1111}`, `{"card":"4111 1111"}`, `4111 1111`} {
		err := each(t.Context(), events.SQSMessage{Body: in})
		if hopeless := new(*function.InputError); !errors.As(err, hopeless) || strings.Contains(err.Error(), "4111") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// Each run is given its own value, and a direct call of the function replays what a record left.
func TestEachRunDecodesItsOwnInput(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{})
	runs := 0
	each := function.Each(fn, body, func(_ context.Context, tx *idem.Tx, c charge) error {
		if c.Lines[0] != "book" {
			t.Errorf("run %d was given %v", runs, c.Lines)
		}
		c.Lines[0] = "changed"
		first := runs == 0
		runs++
		tx.Write(memstore.Write{
			Key: "business", Condition: func([]byte) bool { return !first }, Apply: func(row []byte) []byte { return append(row, '1') }, Failure: idem.Retry(),
		})
		return nil
	})
	message := events.SQSMessage{Body: `{"id":"a","lines":["book"]}`}
	if err := each(t.Context(), message); err != nil || runs != 2 {
		t.Errorf("%d runs, %v; want a second one after the lost lock", runs, err)
	}
	direct := function.Typed(fn, func(context.Context, *idem.Tx, charge) (receipt, error) { return receipt{Total: 9}, nil })
	if out, err := direct(t.Context(), charge{ID: "a", Lines: []string{"book"}}); err != nil || out != (receipt{}) {
		t.Errorf("a direct call got %+v, %v", out, err)
	}
}
