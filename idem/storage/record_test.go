package storage_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

var noon = time.Date(2026, 7, 31, 12, 0, 0, 0, time.UTC)

func recordThatIs(kind storage.Kind, state storage.State) storage.Record {
	r := storage.Record{State: state, Kind: kind, Retention: time.Hour, SchemaVersion: storage.SchemaVersion, LeaseUntil: noon.Add(time.Second)}
	if state.Final() {
		r.LeaseUntil, r.ExpiresAt = time.Time{}, noon.Add(time.Millisecond)
	}
	return r
}

func TestRecordStandsInTheSweepIndexOnlyWhereNobodyElseResolvesIt(t *testing.T) { // ADR 0009
	for _, c := range []struct {
		kind  storage.Kind
		safe  bool
		state storage.State
		queue string
	}{
		{storage.KindAtomic, false, storage.StateInProgress, ""}, {storage.KindWrapped, false, storage.StateInProgress, storage.QueueLease},
		{storage.KindWrapped, true, storage.StateInProgress, ""}, {storage.KindWrapped, false, storage.StateUnknown, storage.QueueUnknown},
		{storage.KindWrapped, false, storage.StateCompleted, ""}, {storage.KindDeferred, false, storage.StatePending, ""},
	} {
		r := recordThatIs(c.kind, c.state)
		r.SafeToRunAgain = c.safe
		queue, _, ok := r.Queue()
		_, goes := r.RemoveAfter()
		if queue != c.queue || ok != (c.queue != "") {
			t.Errorf("%s %s safe %v: queue %q, want %q", c.kind, c.state, c.safe, queue, c.queue)
		}
		if !c.state.Final() && c.state != storage.StatePending && goes == ok {
			t.Errorf("%s %s safe %v: removed by TTL %v and in a queue %v; it must be one of both", c.kind, c.state, c.safe, goes, ok)
		}
	}
}

// docs/design.md "Tables"; peers.md, seen elsewhere: "unfinished keys deleted by the reaper".
func TestRecordRemovedByTTLOnlyWhereNothingCanHaveHappenedUntold(t *testing.T) {
	for _, c := range []struct {
		kind  storage.Kind
		state storage.State
		goes  bool
	}{
		{storage.KindAtomic, storage.StateInProgress, true}, {storage.KindAtomic, storage.StateFailedRetryable, true},
		{storage.KindAtomic, storage.StateCompleted, true}, {storage.KindDeferred, storage.StatePending, false},
		{storage.KindDeferred, storage.StateFailed, true}, {storage.KindWrapped, storage.StateInProgress, false},
		{storage.KindWrapped, storage.StateUnknown, false}, {storage.KindWrapped, storage.StateFailedRetryable, true},
		{storage.KindWrapped, storage.StateCompleted, true},
	} {
		if _, goes := recordThatIs(c.kind, c.state).RemoveAfter(); goes != c.goes {
			t.Errorf("%s %s: removed by TTL = %v, want %v", c.kind, c.state, goes, c.goes)
		}
	}
}
