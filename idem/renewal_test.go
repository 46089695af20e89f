package idem_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// A handler that ends its caller's goroutine, as testing.T.FailNow does, leaves nobody to answer. What it held is settled
// all the same: anything may have happened.
func TestAHandlerThatEndsItsGoroutineLeavesTheOutcomeUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, _ := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = orders.Do(t.Context(), request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
				runtime.Goexit()
				return idem.Response{}, nil
			})
			t.Error("Do returned")
		}()
		<-over
		time.Sleep(time.Second) // less than a lease
		w.unknown(orders)
		w.ran(0)
	})
}

// A renewal may be due, be under way or be repeated at whatever moment the handler ends: what it answered is stored once,
// and the execution goes on from there alone. It is for the race detector.
func TestAHandlerMayEndAtAnyMomentOfARenewal(t *testing.T) {
	var store *faulty.Store
	mem, err := memstore.New(memstore.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	store = faulty.New(mem)
	var fired atomic.Int64
	engine, err := idem.New(store, idem.Config{AfterFunc: func(d time.Duration, f func()) func() bool {
		return time.AfterFunc(d/100_000, func() { // of seconds, tens of microseconds
			fired.Add(1)
			f()
		}).Stop
	}})
	if err != nil {
		t.Fatal(err)
	}
	orders, err := engine.Register(declaration(idem.Operation{Name: "orders.create", Kind: idem.KindWrapped, Policy: idem.IETF()}))
	if err != nil {
		t.Fatal(err)
	}
	for n := 3; n < 2000; n += 7 {
		store.On(faulty.Renew, n, faulty.LoseReply())
	}
	var all sync.WaitGroup
	for caller := range 8 {
		all.Go(func() {
			for n := range 50 {
				ran := 0
				req := request("{}")
				req.Key = fmt.Sprintf("%d-%d", caller, n)
				handler := func(context.Context, *idem.Tx) (idem.Response, error) {
					ran++
					time.Sleep(time.Duration(rand.Int64N(int64(500 * time.Microsecond))))
					return idem.Response{Status: 201, Body: []byte("done")}, nil
				}
				for _, want := range []idem.Outcome{idem.OutcomeExecuted, idem.OutcomeReplayed} {
					result, err := orders.Do(t.Context(), req, handler)
					if err != nil || result.Outcome != want || result.State != storage.StateCompleted || string(result.Response.Body) != "done" {
						t.Errorf("%+v, %v; want %s and the handler's answer", result, err, want)
					}
				}
				if ran != 1 {
					t.Errorf("the handler ran %d times", ran)
				}
			}
		})
	}
	all.Wait()
	if n := store.Count(faulty.Renew); n < 100 || fired.Load() < int64(n) {
		t.Errorf("%d renewals of %d that were due: the test shows nothing", n, fired.Load())
	}
}
