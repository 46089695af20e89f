package idem_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// effect is a wrapped handler: its effect is counted as a run, outside any transaction.
func (w *world) effect(status int, body string) idem.Handler {
	return func(context.Context, *idem.Tx) (idem.Response, error) {
		w.runs++
		return idem.Response{Status: status, Body: []byte(body)}, nil
	}
}

func (w *world) unknown(op *idem.Registered) {
	w.Helper()
	for range 2 {
		if result := w.do(op, request("{}"), w.effect(201, "")); result.Outcome != idem.OutcomeUnknown || result.RetryAfter <= 0 {
			w.Errorf("%+v, want unknown with a Retry-After", result)
		}
	}
}

func TestWrappedReplaysWhatItStored(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		store.On(faulty.Update, 1, faulty.LoseReply())
		w.want(w.do(orders, request("{}"), w.effect(201, "")), idem.OutcomeExecuted, 201, "")
		w.want(w.do(orders, request("{}"), w.effect(500, "never")), idem.OutcomeReplayed, 201, "")
		w.ran(1)
	})
}

// What may have happened is never run again, a day later either.
func TestWrappedFailureProvesNothing(t *testing.T) {
	for name, handler := range map[string]idem.Handler{
		"500":   func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{Status: 500}, nil },
		"408":   func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{Status: 408}, nil },
		"error": func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{}, errors.New("lost") },
		"panic": func(context.Context, *idem.Tx) (idem.Response, error) { panic("lost") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, _ := newFaultyWorld(t)
				orders := w.register(idem.Operation{Kind: idem.KindWrapped})
				if result, err := orders.Do(t.Context(), request("{}"), handler); err == nil && result.State != storage.StateUnknown {
					t.Errorf("%+v, want the state unknown", result)
				}
				w.unknown(orders)
				time.Sleep(48 * time.Hour)
				w.mem.Expire(time.Now().Add(late))
				w.unknown(orders)
				w.ran(0)
			})
		})
	}
}

func TestWrappedDeclaredSafeRunsAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, _ := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped, SafeToRunAgain: true})
		w.want(w.do(orders, request("{}"), w.effect(500, "")), idem.OutcomeExecuted, 500, "")
		w.want(w.do(orders, request("{}"), w.effect(201, "ok")), idem.OutcomeExecuted, 201, "ok")
		w.ran(2)
	})
}

// A handler may say in its own request that nothing happened; not with a success, which it then was.
func TestNothingHappenedFreesTheKeyUnlessTheAnswerIsASuccess(t *testing.T) {
	says := func(w *world, status int, err error) idem.Handler {
		return func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
			w.runs++
			idem.NothingHappened(ctx)
			return idem.Response{Status: status, Body: []byte("first")}, err
		}
	}
	for status, err := range map[int]error{500: nil, 404: nil, 0: errors.New("refused")} {
		bubble(t, func(t *testing.T) {
			w, _ := newFaultyWorld(t)
			orders := w.register(idem.Operation{Kind: idem.KindWrapped})
			if _, got := orders.Do(t.Context(), request("{}"), says(w, status, err)); !errors.Is(got, err) {
				t.Errorf("%d: %v, want the handler's own answer", status, got)
			}
			w.want(w.do(orders, request("{}"), w.effect(201, "ok")), idem.OutcomeExecuted, 201, "ok")
			w.ran(2)
		})
	}
	bubble(t, func(t *testing.T) {
		w, _ := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		w.want(w.do(orders, request("{}"), says(w, 201, nil)), idem.OutcomeExecuted, 201, "first")
		w.want(w.do(orders, request("{}"), w.effect(201, "again")), idem.OutcomeReplayed, 201, "first")
		w.ran(1)
	})
}

// What a handler says counts for its own request: not for another's, and not when it has returned.
func TestNothingHappenedCountsInItsOwnRequestOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, _ := newFaultyWorld(t)
		outer := w.register(idem.Operation{Name: "orders.create", Kind: idem.KindWrapped})
		inner := w.register(idem.Operation{Name: "orders.number", Kind: idem.KindWrapped})
		nested := func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
			_, err := inner.Do(ctx, request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
				idem.NothingHappened(ctx)
				return idem.Response{Status: 503}, nil
			})
			return idem.Response{Status: 503}, err
		}
		if result := w.do(outer, request("{}"), nested); result.State != storage.StateUnknown {
			t.Errorf("the outer one is %s, want unknown", result.State)
		}
		w.want(w.do(inner, request("{}"), w.effect(201, "")), idem.OutcomeExecuted, 201, "")
		idem.NothingHappened(t.Context()) // of no request
	})
}

// The holder overstays its lease, a duplicate parks it as unknown; its late evidence still settles.
func TestWrappedLateEvidenceSettlesWhatWasParked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		store.On(faulty.Update, 1, freeze(time.Minute, func() { w.unknown(orders) }))
		w.want(w.do(orders, request("{}"), w.effect(201, "late")), idem.OutcomeExecuted, 201, "late")
		w.want(w.do(orders, request("{}"), w.effect(201, "")), idem.OutcomeReplayed, 201, "late")
		w.ran(1)
	})
}

// A holder that died, or could not save what it did: that its lease is over is no permission to run again.
func TestWrappedDeadLeaseIsUnknownAndNeverExecuted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		for n := 1; n <= 500; n++ {
			store.On(faulty.Update, n, faulty.LoseRequest()) // the completion never arrives
		}
		w.unavailable(orders, w.effect(201, ""))
		store.Clear()
		time.Sleep(time.Minute)
		w.unknown(orders)
		w.ran(1)
	})
}

func TestWrappedResponseTooLargeIsStoredAsSuch(t *testing.T) { // The work is done and is not done again
	bubble(t, func(t *testing.T) {
		w, _ := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		first := w.do(orders, request("{}"), w.effect(201, string(make([]byte, 4<<20))))
		second := w.do(orders, request("{}"), w.effect(201, ""))
		if first.Response.Status != 500 || second.Outcome != idem.OutcomeReplayed || second.Response.Status != 500 {
			t.Errorf("first %d, second %s %d; want a stored 500", first.Response.Status, second.Outcome, second.Response.Status)
		}
		if !bytes.Contains(second.Response.Body, []byte(header.CodeResponseNotKept)) {
			t.Errorf("stored %s", second.Response.Body)
		}
		w.ran(1)
	})
}

// What a wrapped handler made lives as long as its resource, though its answer was too large to be stored.
func TestAResourceOutlivesAnAnswerThatDoesNotFit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		policy := idem.IETF()
		policy.ResourceBacked = true
		orders := w.register(idem.Operation{Kind: idem.KindWrapped, Policy: policy})
		large := func(context.Context, *idem.Tx) (idem.Response, error) {
			return idem.Response{Status: 201, Body: make([]byte, 4<<20)}, nil
		}
		for range 2 {
			result, err := orders.Do(t.Context(), request("{}"), large)
			if err != nil || result.Response.Status != 500 || !result.ExpiresAt.IsZero() {
				t.Fatalf("%+v, %v; want a 500 that does not expire", result, err)
			}
			time.Sleep(2 * policy.Retention)
		}
	})
}

// A record that was freed ends with its retention, whether TTL removes it or not: then the key is a new one, for whatever
// request.
func TestAFreedWrappedRecordEndsWithItsRetention(t *testing.T) {
	for name, op := range map[string]idem.Operation{
		"released by its status": {Kind: idem.KindWrapped, ReleaseOn: []int{429}},
		"safe to run again":      {Kind: idem.KindWrapped, SafeToRunAgain: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, _ := newFaultyWorld(t)
				orders := w.register(op)
				w.want(w.do(orders, request(`{"n":1}`), w.effect(429, "")), idem.OutcomeExecuted, 429, "")
				if result := w.do(orders, request(`{"n":2}`), w.effect(201, "")); result.Outcome != idem.OutcomeMismatch {
					t.Errorf("before its end: %+v, want a mismatch", result)
				}
				time.Sleep(orders.Operation().Policy.Retention + time.Minute)
				w.want(w.do(orders, request(`{"n":2}`), w.effect(201, "")), idem.OutcomeExecuted, 201, "")
				w.ran(2)
			})
		})
	}
}

// The same of headers: the store's rows are bounded, and that they do not fit is known before anything is sent.
func TestWrappedHeadersTooLargeAreStoredAsSuch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, _ := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		huge := func(context.Context, *idem.Tx) (idem.Response, error) {
			w.runs++
			return idem.Response{Status: 201, Header: []idem.Field{{Name: "Location", Value: strings.Repeat("x", storage.ResponseHeaderBytesMax)}}}, nil
		}
		first, second := w.do(orders, request("{}"), huge), w.do(orders, request("{}"), huge)
		if first.Response.Status != 500 || second.Outcome != idem.OutcomeReplayed || !bytes.Contains(second.Response.Body, []byte(header.CodeResponseNotKept)) {
			t.Errorf("first %d, second %s %s; want a stored 500", first.Response.Status, second.Outcome, second.Response.Body)
		}
		w.ran(1)
	})
}
