package idemtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// entry is a business write of some application.
type entry struct{ amount int }

func (entry) IfConditionFails() idem.Failure { return idem.Failure{} }

func TestRunReturnsWhatWouldBeCommitted(t *testing.T) {
	result := idemtest.Run(t, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Write(entry{1}, entry{2})
		for n := range 11 { // ids don't sort as numbers do
			tx.Send("orders.ship", fmt.Append(nil, n+1))
		}
		return idem.JSON(http.StatusCreated, tx.Tenant())
	}, idemtest.Tenant("tenant-b"))
	if result.Err != nil || result.Response.Status != 201 || string(result.Response.Body) != `"tenant-b"` {
		t.Errorf("%+v", result)
	}
	if !reflect.DeepEqual(result.Writes, []idem.Write{entry{1}, entry{2}}) {
		t.Errorf("writes %v", result.Writes)
	}
	for i, m := range result.Messages {
		if m.Topic != "orders.ship" || string(m.Payload) != fmt.Sprint(i+1) || m.ID != result.OperationID.Message(i+1) {
			t.Errorf("message %d is %+v", i+1, m)
		}
	}
	if len(result.Messages) != 11 {
		t.Errorf("%d messages", len(result.Messages))
	}
}

func TestRunReturnsNoWritesOfWhatIsNotCommitted(t *testing.T) {
	broken := errors.New("broken")
	declined := &idem.RejectedError{Problem: idem.NewProblem(402, "declined", "Declined", "No.")}
	for name, c := range map[string]struct {
		response idem.Response
		err      error
		status   int
	}{
		"an error":                      {idem.Response{}, broken, 0},
		"a rejection":                   {idem.Response{}, declined, 402},
		"an answer that is not stored":  {idem.Response{Status: 503}, nil, 503},
		"a status that does not exist":  {idem.Response{Status: 99}, nil, 0},
		"a rejection with another form": {idem.Response{}, fmt.Errorf("wrapped: %w", declined), 402},
	} {
		t.Run(name, func(t *testing.T) {
			result := idemtest.Run(t, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				tx.Write(entry{1})
				tx.Send("orders.ship", nil)
				return c.response, c.err
			})
			if len(result.Writes)+len(result.Messages) != 0 || result.Response.Status != c.status {
				t.Errorf("%+v", result)
			}
			if c.err != nil && result.Err != c.err || c.status == 0 && result.Err == nil {
				t.Errorf("error %v, want %v as the handler returned it", result.Err, c.err)
			}
		})
	}
}

func TestRunRefusesWhatTheEngineRefuses(t *testing.T) {
	result := idemtest.Run(t, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		for range 81 {
			tx.Write(entry{})
		}
		return idem.Response{Status: 201}, nil
	})
	if result.Err == nil || len(result.Writes) != 0 {
		t.Errorf("81 writes: %+v", result)
	}
	accepted := func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{Status: 202}, nil }
	deferred := idem.Operation{Name: "orders.create", Kind: idem.KindDeferred, Policy: idem.IETF()}
	if result := idemtest.Run(t, accepted, idemtest.Of(deferred)); result.Err == nil {
		t.Errorf("a 202 without a message: %+v", result)
	}
	fails(t, "no transaction", func(r *recorder) {
		idemtest.Run(r, accepted, idemtest.Of(idem.Operation{Name: "orders.create", Kind: idem.KindWrapped, Policy: idem.IETF()}))
	})
	fails(t, "Operation.Name", func(r *recorder) {
		idemtest.Run(r, accepted, idemtest.Of(idem.Operation{Kind: idem.KindAtomic, Policy: idem.IETF()}))
	})
	fails(t, "run_test.go", func(r *recorder) { // the stack
		idemtest.Run(r, func(context.Context, *idem.Tx) (idem.Response, error) { panic("no such account") })
	})
}

func TestRunIsTheSameEachTime(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	handler := func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Send("orders.ship", nil)
		return idem.JSON(http.StatusCreated, tx.Now())
	}
	first := idemtest.Run(t, handler, idemtest.At(at))
	if second := idemtest.Run(t, handler, idemtest.At(at)); !reflect.DeepEqual(first, second) {
		t.Errorf("%+v\n%+v", first, second)
	}
	if want := `"2026-11-22T12:00:00Z"`; string(first.Response.Body) != want {
		t.Errorf("the handler's time is %s, want %s", first.Response.Body, want)
	}
}

func TestClockStandsWhileNothingMovesIt(t *testing.T) {
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	clock := idemtest.NewClock(start)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := clock.Pause(done, time.Hour); !errors.Is(err, context.Canceled) || !clock.Now().Equal(start) {
		t.Errorf("a pause that nobody waits for: %v, now %v", err, clock.Now())
	}
	clock.Advance(time.Second)
	if err := clock.Pause(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if got := clock.Now().Sub(start); got != 61*time.Second {
		t.Errorf("the clock moved by %v", got)
	}
}

// What the package's documentation says of testing/synctest: the defaults of the configuration follow the bubble's time.
func TestTimeInABubbleNeedsNoClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		engine, err := idem.New(store, idem.Config{})
		if err != nil {
			t.Fatal(err)
		}
		op, err := engine.Register(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []idem.Outcome{idem.OutcomeExecuted, idem.OutcomeReplayed, idem.OutcomeExecuted} {
			result, err := op.Do(t.Context(), idem.Request{Tenant: "tenant-a", Key: "order-17"}, createNothing)
			if err != nil || result.Outcome != want {
				t.Fatalf("%+v, %v; want it %s", result, err, want)
			}
			time.Sleep(13 * time.Hour)
		}
	})
}
