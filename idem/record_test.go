package idem_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

func recordThatIs(kind idem.Kind, state idem.State) idem.Record {
	r := idem.Record{State: state, Kind: kind, Retention: time.Hour, SchemaVersion: idem.SchemaVersion, LeaseUntil: noon.Add(time.Second)}
	if state.Final() {
		r.LeaseUntil, r.ExpiresAt = time.Time{}, noon.Add(time.Millisecond)
	}
	return r
}

func TestRecordStandsInTheSweepIndexOnlyWhereNobodyElseResolvesIt(t *testing.T) { // ADR 0009
	for _, c := range []struct {
		kind  idem.Kind
		safe  bool
		state idem.State
		queue string
	}{
		{idem.KindAtomic, false, idem.StateInProgress, ""}, {idem.KindWrapped, false, idem.StateInProgress, idem.QueueLease},
		{idem.KindWrapped, true, idem.StateInProgress, ""}, {idem.KindWrapped, false, idem.StateUnknown, idem.QueueUnknown},
		{idem.KindWrapped, false, idem.StateCompleted, ""}, {idem.KindDeferred, false, idem.StatePending, ""},
	} {
		r := recordThatIs(c.kind, c.state)
		r.SafeToRunAgain = c.safe
		queue, _, ok := r.Queue()
		_, goes := r.RemoveAfter()
		if queue != c.queue || ok != (c.queue != "") {
			t.Errorf("%s %s safe %v: queue %q, want %q", c.kind, c.state, c.safe, queue, c.queue)
		}
		if !c.state.Final() && c.state != idem.StatePending && goes == ok {
			t.Errorf("%s %s safe %v: removed by TTL %v and in a queue %v; it must be one of both", c.kind, c.state, c.safe, goes, ok)
		}
	}
}

// docs/design.md "Tables": a key that is not finished is never removed.
func TestRecordRemovedByTTLOnlyWhereNothingCanHaveHappenedUntold(t *testing.T) {
	for _, c := range []struct {
		kind  idem.Kind
		state idem.State
		goes  bool
	}{
		{idem.KindAtomic, idem.StateInProgress, true}, {idem.KindAtomic, idem.StateFailedRetryable, true},
		{idem.KindAtomic, idem.StateCompleted, true}, {idem.KindDeferred, idem.StatePending, false},
		{idem.KindDeferred, idem.StateFailed, true}, {idem.KindWrapped, idem.StateInProgress, false},
		{idem.KindWrapped, idem.StateUnknown, false}, {idem.KindWrapped, idem.StateFailedRetryable, true},
		{idem.KindWrapped, idem.StateCompleted, true},
	} {
		if _, goes := recordThatIs(c.kind, c.state).RemoveAfter(); goes != c.goes {
			t.Errorf("%s %s: removed by TTL = %v, want %v", c.kind, c.state, goes, c.goes)
		}
	}
}
