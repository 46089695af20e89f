package idem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// crashed runs a wrapped operation whose completion never arrives, and returns its record, its lease still alive.
func (w *world) crashed(store *faulty.Store, op *idem.Registered) storage.Record {
	w.Helper()
	store.All(func(ctx context.Context, run func(context.Context) error) error {
		if w.runs > 0 {
			return errors.New("killed") // nothing of it happened, and nobody tries again
		}
		return run(ctx)
	})
	if _, err := op.Do(w.Context(), request("{}"), w.effect(201, "lost")); err == nil {
		w.Fatal("a process that was killed answered")
	}
	store.Clear()
	return w.only()
}

// only is the one record there is.
func (w *world) only() storage.Record {
	w.Helper()
	records := w.mem.Records()
	if len(records) != 1 {
		w.Fatalf("%d records", len(records))
	}
	return records[0]
}

// parked is a crashed wrapped operation whose dead lease was met.
func parked(w *world, store *faulty.Store) (*idem.Registered, storage.Record) {
	w.Helper()
	orders := w.register(idem.Operation{Kind: idem.KindWrapped})
	time.Sleep(time.Until(w.crashed(store, orders).LeaseUntil.Add(skew)))
	if state, err := w.engine.ParkDead(w.Context(), w.only().Key); state != storage.StateUnknown || err != nil {
		w.Fatalf("ParkDead: %q, %v", state, err)
	}
	return orders, w.only()
}

var found = idem.Response{Status: 201, Header: []idem.Field{{Name: "X-Order", Value: "7"}}, Body: []byte("found")}

func wantConflict(t *testing.T, err error, state storage.State) {
	t.Helper()
	var conflict *storage.RecordConflictError
	if !errors.As(err, &conflict) || conflict.Existing == nil || conflict.Existing.State != state {
		t.Errorf("got error %v, want a RecordConflictError with a record that is %s", err, state)
	}
}

func wantRefused(t *testing.T, err error, state storage.State) {
	t.Helper()
	var refused *idem.TransitionError
	if !errors.As(err, &refused) || refused.State != state {
		t.Errorf("got error %v, want a TransitionError from %s", err, state)
	}
}

func TestParkDeadLeavesALiveLeaseAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		r := w.crashed(store, w.register(idem.Operation{Kind: idem.KindWrapped}))
		time.Sleep(time.Until(r.LeaseUntil.Add(skew)) - time.Millisecond)
		writes := store.Count(faulty.Update)
		for _, key := range []storage.RecordKey{r.Key, "absent"} {
			if state, err := w.engine.ParkDead(t.Context(), key); state != "" || err != nil || store.Count(faulty.Update) > writes {
				t.Errorf("%q, %v, want nothing done", state, err)
			}
		}
		if w.only().State != storage.StateInProgress {
			t.Fatal("a live lease was parked")
		}
		time.Sleep(time.Millisecond)
		for _, want := range []storage.State{storage.StateUnknown, ""} { // the second time there is nothing to do
			if state, err := w.engine.ParkDead(t.Context(), r.Key); state != want || err != nil {
				t.Errorf("%q, %v, want %q", state, err, want)
			}
		}
	})
}

func TestParkDeadLeavesAloneWhatTheNextRequestTakesOver(t *testing.T) { // ADR 0009
	for _, op := range []idem.Operation{{Kind: idem.KindAtomic}, {Kind: idem.KindWrapped, SafeToRunAgain: true}} {
		t.Run(string(op.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(op)
				r := w.crashed(store, orders)
				time.Sleep(time.Hour)
				if state, err := w.engine.ParkDead(t.Context(), r.Key); state != "" || err != nil {
					t.Errorf("%q, %v, want nothing to do", state, err)
				}
				w.want(w.do(orders, request("{}"), w.effect(201, "again")), idem.OutcomeExecuted, 201, "again")
			})
		})
	}
}

// A parking whose reply is lost has happened; one that somebody else overtakes is nothing to do.
func TestParkDeadLosesRepliesAndRaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		r := w.crashed(store, orders)
		time.Sleep(time.Hour)
		store.On(faulty.Update, 1, faulty.Before(func() { w.unknown(orders) }))
		if state, err := w.engine.ParkDead(t.Context(), r.Key); state != "" || err != nil {
			t.Errorf("overtaken: %q, %v, want nothing to do", state, err)
		}
	})
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		r := w.crashed(store, w.register(idem.Operation{Kind: idem.KindWrapped}))
		time.Sleep(time.Hour)
		store.On(faulty.Update, 1, faulty.Refuse(storage.ErrContention))
		store.On(faulty.Update, 2, faulty.LoseReply())
		if state, err := w.engine.ParkDead(t.Context(), r.Key); state != storage.StateUnknown || err != nil {
			t.Errorf("reply lost: %q, %v, want unknown", state, err)
		}
		store.All(faulty.Refuse(errDown))
		var unavailable *idem.UnavailableError
		if _, err := w.engine.ParkDead(t.Context(), r.Key); !errors.As(err, &unavailable) {
			t.Errorf("store down: %v, want an UnavailableError", err)
		}
	})
}

var errDown = errors.New("down")

// What the sweep has parked is still settled by its holder's own evidence.
func TestLateEvidenceSettlesWhatTheSweepParked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		store.On(faulty.Update, 1, freeze(time.Minute, func() {
			if state, err := w.engine.ParkDead(t.Context(), w.only().Key); state != storage.StateUnknown || err != nil {
				t.Errorf("ParkDead: %q, %v", state, err)
			}
		}))
		w.want(w.do(orders, request("{}"), w.effect(201, "late")), idem.OutcomeExecuted, 201, "late")
		w.want(w.do(orders, request("{}"), w.effect(201, "")), idem.OutcomeReplayed, 201, "late")
		w.ran(1)
	})
}

func TestResolveCompletesWhatWasUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders, seen := parked(w, store)
		time.Sleep(3 * day)
		store.On(faulty.Update, 1, faulty.LoseReply())
		got, err := w.engine.Resolve(t.Context(), "t", seen.OperationID, seen.Revision, found)
		if err != nil || got.State != storage.StateCompleted || string(got.Response.Body) != "found" {
			t.Fatalf("%+v, %v", got, err)
		}
		result := w.do(orders, request("{}"), w.effect(201, ""))
		w.want(result, idem.OutcomeReplayed, 201, "found")
		if result.Response.Get("X-Order") != "7" || !result.ExpiresAt.Equal(got.DoneAt.Add(day)) || time.Since(got.DoneAt) > time.Minute {
			t.Errorf("%+v: want the header, and a retention that begins when it was resolved", result)
		}
		if w.only().RecordOnly {
			t.Error("nobody knows that the handler wrote nothing else")
		}
		w.ran(1)
		_, err = w.engine.Resolve(t.Context(), "t", seen.OperationID, seen.Revision, found)
		wantConflict(t, err, storage.StateCompleted)
		_, err = w.engine.Free(t.Context(), "t", seen.OperationID, seen.Revision, "")
		wantConflict(t, err, storage.StateCompleted)
	})
}

// A response in chunks is told from another's by its body, which lies beside the record.
func TestResolveStoresALargeResponseOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders, seen := parked(w, store)
		large := idem.Response{Status: 200, Body: []byte(strings.Repeat("x", 100<<10))}
		store.On(faulty.Update, 1, faulty.LoseReply())
		got, err := w.engine.Resolve(t.Context(), "t", seen.OperationID, seen.Revision, large)
		if err != nil || len(got.Response.Body) != len(large.Body) {
			t.Errorf("%d bytes, %v", len(got.Response.Body), err)
		}
		w.want(w.do(orders, request("{}"), w.effect(201, "")), idem.OutcomeReplayed, 200, string(large.Body))
	})
}

func TestResolveRefusesWhatCanNotBeAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		_, seen := parked(w, store)
		for _, status := range []int{0, 199, 600} {
			_, err := w.engine.Resolve(t.Context(), "t", seen.OperationID, seen.Revision, idem.Response{Status: status})
			var refused *idem.ResponseError
			if !errors.As(err, &refused) || refused.Status != status {
				t.Errorf("status %d: %v, want a ResponseError", status, err)
			}
		}
		for _, large := range []idem.Response{
			{Status: 200, Body: make([]byte, 3<<20+1)},
			{Status: 200, Header: []idem.Field{{Name: "Location", Value: strings.Repeat("x", storage.ResponseHeaderBytesMax)}}},
		} {
			if _, err := w.engine.Resolve(t.Context(), "t", seen.OperationID, seen.Revision, large); !errors.Is(err, idem.ErrResponseTooLarge) {
				t.Errorf("too large: %v", err)
			}
		}
		if w.only().State != storage.StateUnknown {
			t.Error("it was decided")
		}
	})
}

func TestWhatWasSeenDecidesNothingElse(t *testing.T) { // I5, I8
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		_, seen := parked(w, store)
		stale := seen
		stale.Revision = "AAAAAAAAAAAAAAAAAAAAAQ"
		_, resolve := w.engine.Resolve(t.Context(), "t", seen.OperationID, stale.Revision, found)
		_, free := w.engine.Free(t.Context(), "t", seen.OperationID, stale.Revision, "")
		wantConflict(t, resolve, storage.StateUnknown)
		wantConflict(t, free, storage.StateUnknown)
		for tenant, id := range map[string]idem.OperationID{"u": seen.OperationID, "t": another(seen.OperationID), "t ": "op_nonsense"} {
			_, resolve := w.engine.Resolve(t.Context(), tenant, id, seen.Revision, found)
			_, free := w.engine.Free(t.Context(), tenant, id, seen.Revision, "")
			if !errors.Is(resolve, idem.ErrNotLive) || !errors.Is(free, idem.ErrNotLive) {
				t.Errorf("tenant %q, id %q: %v, %v, want ErrNotLive", tenant, id, resolve, free)
			}
		}
	})
}

// completed is the record with an answer that somebody else has written.
func completed(r storage.Record, body string) storage.Record {
	now := time.Now().UTC().Truncate(time.Millisecond)
	r.State, r.Response, r.Revision = storage.StateCompleted, idem.Response{Status: 201, Body: []byte(body)}, "AAAAAAAAAAAAAAAAAAAAAQ"
	r.LeaseUntil, r.DoneAt, r.ExpiresAt, r.FreeAt = time.Time{}, now, now.Add(r.Retention), now.Add(r.Retention)
	return r
}

// Between the operator's look and their write the holder comes back: its evidence stands, and the operator is told.
func TestResolveOvertakenByTheHoldersEvidence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		_, seen := parked(w, store)
		late := completed(seen, "its own")
		store.On(faulty.Update, 1, faulty.Before(func() {
			if err := w.mem.Update(t.Context(), late, storage.FenceOf(seen)); err != nil {
				t.Error(err)
			}
		}))
		_, err := w.engine.Resolve(t.Context(), "t", seen.OperationID, seen.Revision, found)
		wantConflict(t, err, storage.StateCompleted)
		if got := string(w.only().Response.Body); got != "its own" {
			t.Errorf("stored is %q", got)
		}
	})
}

// A lost reply proves nothing: of what lies there then, only exactly what was sent is one's own.
func TestResolveTellsItsOwnWriteFromAnothers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		_, seen := parked(w, store)
		other := completed(seen, "another's")
		store.On(faulty.Update, 1, faulty.LoseRequest())
		store.On(faulty.Update, 2, faulty.Before(func() {
			if err := w.mem.Update(t.Context(), other, storage.FenceOf(seen)); err != nil {
				t.Error(err)
			}
		}))
		_, err := w.engine.Resolve(t.Context(), "t", seen.OperationID, seen.Revision, found)
		wantUnsure(t, err)
	})
}

// wantUnsure demands that nothing is said about whether a change was made.
func wantUnsure(t *testing.T, err error) {
	t.Helper()
	var unavailable *idem.UnavailableError
	var unheard *storage.OutcomeUnknownError
	var conflict *storage.RecordConflictError
	if !errors.As(err, &unavailable) || !errors.As(err, &unheard) || errors.As(err, &conflict) {
		t.Errorf("got error %v, want that it may have happened", err)
	}
}

// A release lands without a reply, and the next request takes the key before it is sent again: nobody may tell the operator that nothing
// was changed, because the request executes by their word.
func TestFreeWhoseKeyIsTakenBeforeItsReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders, seen := parked(w, store)
		store.On(faulty.Update, 1, faulty.LoseReply())
		store.On(faulty.Update, 2, faulty.Before(func() {
			w.want(w.do(orders, request("{}"), w.effect(201, "second")), idem.OutcomeExecuted, 201, "second")
		}))
		_, err := w.engine.Free(t.Context(), "t", seen.OperationID, seen.Revision, "the provider has nothing")
		wantUnsure(t, err)
		_, err = w.engine.Free(t.Context(), "t", seen.OperationID, seen.Revision, "the provider has nothing")
		wantConflict(t, err, storage.StateCompleted)
	})
}

func TestFreeLetsTheNextRequestExecute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		orders, seen := parked(w, store)
		store.On(faulty.Update, 1, faulty.LoseReply())
		got, err := w.engine.Free(t.Context(), "t", seen.OperationID, seen.Revision, "the provider has nothing")
		if err != nil || got.State != storage.StateFailedRetryable || got.Epoch != seen.Epoch+1 || got.LastError != "the provider has nothing" {
			t.Fatalf("%+v, %v", got, err)
		}
		result := w.do(orders, request("{}"), w.effect(201, "second"))
		w.want(result, idem.OutcomeExecuted, 201, "second")
		if result.OperationID != seen.OperationID {
			t.Error("a freed key begins no new incarnation: what its holder handed down is still its id")
		}
		w.ran(2)
	})
}

// While the lease lives, parked or not, its handler's request may be under way.
func TestFreeRefusesAWrappedLeaseThatLives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, _ := newFaultyWorld(t)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		inside := func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
			seen := w.only()
			_, err := w.engine.Free(ctx, "t", tx.OperationID(), seen.Revision, "impatience")
			wantRefused(t, err, storage.StateInProgress)
			return idem.Response{Status: 500}, nil
		}
		id := w.do(orders, request("{}"), inside).OperationID
		_, err := w.engine.Free(t.Context(), "t", id, w.only().Revision, "impatience")
		wantRefused(t, err, storage.StateUnknown)
		time.Sleep(time.Until(w.only().LeaseUntil.Add(skew)))
		if _, err = w.engine.Free(t.Context(), "t", id, w.only().Revision, "proven"); err != nil {
			t.Error(err)
		}
	})
}

// A lease that is not wrapped is fenced off, alive or dead: its holder can't commit any more, and nothing was written.
func TestFreeFencesOffAHolder(t *testing.T) {
	for _, dead := range []bool{false, true} {
		t.Run(fmt.Sprintf("dead %v", dead), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(idem.Operation{Kind: idem.KindAtomic})
				store.On(faulty.Commit, 1, faulty.Before(func() {
					if dead {
						time.Sleep(time.Hour)
					}
					seen := w.only()
					if _, err := w.engine.Free(t.Context(), "t", seen.OperationID, seen.Revision, "stuck"); err != nil {
						t.Error(err)
					}
				}))
				_, _ = orders.Do(t.Context(), request("{}"), w.handler(201)) // answers as any holder that lost its record
				w.do(orders, request("{}"), w.handler(201))
				w.written(1)
			})
		})
	}
}

// The proof was wrong: its holder comes back after the key was freed, and before anybody has used it. Its evidence settles
// the record, or the next request would do the same once more.
func TestEvidenceAfterFreeSettlesWhatWasFreed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		w.store.On(faulty.Update, 1, freeze(time.Hour, func() {
			key := w.only().Key
			if _, err := w.engine.ParkDead(t.Context(), key); err != nil {
				t.Error(err)
			}
			seen := w.only()
			if _, err := w.engine.Free(t.Context(), "acme", seen.OperationID, seen.Revision, "wrong"); err != nil {
				t.Error(err)
			}
		}))
		if result, err := w.do(orders, secret(), w.effect(201, "late")); err != nil || result.Outcome != idem.OutcomeExecuted {
			t.Errorf("%+v, %v, want the holder's own answer", result, err)
		}
		log := w.log.String()
		for _, line := range []string{"idempotency.swept", "idempotency.reconcile.resolved"} {
			if !strings.Contains(log, `"msg":"`+line+`"`) {
				t.Errorf("no line %s in %s", line, log)
			}
		}
		if strings.Contains(log, secretKey) {
			t.Error("the log has the client's key")
		}
		result, err := w.do(orders, secret(), w.effect(201, "again"))
		if err != nil || result.Outcome != idem.OutcomeReplayed || string(result.Response.Body) != "late" {
			t.Errorf("%+v, %v, want a replay of the late answer", result, err)
		}
		w.ran(1)
	})
}

// What this release can't judge is neither parked nor decided.
func TestRecoveryRefusesRecordsOfAnotherRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		_, seen := parked(w, store)
		newer := seen
		newer.SchemaVersion++
		if err := w.mem.Update(t.Context(), newer, storage.FenceOf(seen)); err != nil {
			t.Fatal(err)
		}
		_, park := w.engine.ParkDead(t.Context(), seen.Key)
		_, resolve := w.engine.Resolve(t.Context(), "t", seen.OperationID, seen.Revision, found)
		_, free := w.engine.Free(t.Context(), "t", seen.OperationID, seen.Revision, "")
		for _, err := range []error{park, resolve, free} {
			var unreadable *idem.UnreadableError
			if !errors.As(err, &unreadable) {
				t.Errorf("%v, want an UnreadableError", err)
			}
		}
	})
}
