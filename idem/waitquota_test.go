package idem_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// waitless is a quota that lets nobody wait.
type waitless struct {
	err   error
	asked int
}

func (*waitless) NewKey(context.Context, string) (func(), error) { return func() {}, nil }

func (*waitless) LookUp(context.Context, string) error { return nil }

func (w *waitless) Wait(context.Context, string) error {
	w.asked++
	return w.err
}

var _ idem.Quota = (*waitless)(nil)

var waitRefusals = []error{&idem.QuotaError{Limit: "waits per second", RetryAfter: time.Second}, errors.New("the counters do not answer")}

// Over the quota of waits, or where it can't be read, a request is answered at once, and what has its end asks for no wait.
func TestAwaitAsksTheQuotaOfWaits(t *testing.T) {
	for _, refusal := range append(waitRefusals, nil) {
		bubble(t, func(t *testing.T) {
			w, quota := newWorld(t, nil), &waitless{err: refusal}
			engine, err := idem.New(w.mem, idem.Config{Quota: quota, WaitsMax: 1})
			if err != nil {
				t.Fatal(err)
			}
			w.engine = engine
			orders := w.register(idem.Operation{Kind: idem.KindDeferred})
			id := w.do(orders, of("t"), w.handler(202)).OperationID
			for range 3 { // each has left its place
				began := time.Now()
				r, err := engine.Await(t.Context(), "t", id, 10*time.Second)
				if err != nil || r == nil || r.State.Final() {
					t.Errorf("%+v, %v", r, err)
				}
				if waited := time.Since(began) >= 9*time.Second; waited != (refusal == nil) {
					t.Errorf("%v: waited is %v", refusal, waited)
				}
			}
			if quota.asked != 3 {
				t.Errorf("asked %d times, want 3", quota.asked)
			}
			if r, err := engine.Await(t.Context(), "another", id, time.Second); r != nil || err != nil || quota.asked != 3 {
				t.Errorf("an operation that is not there: %+v, %v, asked %d times", r, err, quota.asked)
			}
		})
	}
}

// A policy that lets duplicates wait answers 409 at once.
func TestADuplicateThatWaitsAsksTheQuotaOfWaits(t *testing.T) {
	for _, refusal := range waitRefusals {
		bubble(t, func(t *testing.T) {
			w, quota := newWorld(t, nil), &waitless{err: refusal}
			engine, err := idem.New(w.mem, idem.Config{Quota: quota})
			if err != nil {
				t.Fatal(err)
			}
			w.engine = engine
			policy := idem.IETF()
			policy.InFlight, policy.WaitMax = idem.InFlightWait, 20*time.Second
			orders := w.register(idem.Operation{Kind: idem.KindAtomic, Policy: policy})
			go func() {
				_, _ = orders.Do(t.Context(), of("t"), func(context.Context, *idem.Tx) (idem.Response, error) {
					time.Sleep(5 * time.Second)
					return idem.JSON(201, 1)
				})
			}()
			time.Sleep(time.Second)
			began := time.Now()
			result, err := orders.Do(t.Context(), of("t"), w.handler(201))
			if err != nil || result.Outcome != idem.OutcomeInProgress || time.Since(began) > time.Second || quota.asked != 1 {
				t.Errorf("%+v, %v after %v, asked %d times", result, err, time.Since(began), quota.asked)
			}
			time.Sleep(10 * time.Second)
		})
	}
}
