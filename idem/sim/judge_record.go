package sim

import (
	"bytes"
	"context"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// judgeRecord judges what an act has made of a record. Its rules are those of docs/semantics.md ("States of a record", "Leases",
// "Expiry") and of docs/design.md ("Who may write what").
func (w *world) judgeRecord(a *act, before, r storage.Record) {
	if a == nil {
		return // the TTL removes rows, and changes none
	}
	k := w.keyOfRecord(r)
	k.changed = time.Now()
	switch {
	case r.Tenant != k.tenant:
		w.broken("I5: the record of %s is of tenant %s", k.name, r.Tenant)
	case a.key != nil && a.key.tenant != k.tenant:
		w.broken("I5: %s, of another tenant, changes the record of %s", a.name, k.name)
	}
	defer a.writes(r.Revision)
	holds := before.Owner != "" && w.judge.owners[before.Owner] == a
	if r.OperationID != before.OperationID {
		w.judgeIncarnation(a, k, before, r)
	} else {
		w.judgeTransition(a, k, before, r)
		if !holds && before.State != storage.StatePending && !a.saw[before.Revision] && !free(before) {
			w.broken("fence: %s changes the record of %s, which it has not seen as it was: %s", a.name, k.name, before.State)
		}
	}
	if a.seen != "" && a.subject == string(before.OperationID) && a.seen != before.Revision {
		w.broken("fence: %s decides about the record of %s as it was not seen", a.name, k.name)
	}
	if r.Owner != before.Owner {
		w.judge.owners[r.Owner] = a
	}
	w.judgeHolder(a, k, before, r)
	if _, known := w.judge.finals[r.OperationID]; r.State.Final() && !known {
		w.judge.finals[r.OperationID], k.ended = r.Response, append(k.ended, r.OperationID)
	}
	w.app.Judge(Landed{Record: &r})
}

// free says that the key of a row may be reserved anew, by some clock.
func free(r storage.Record) bool {
	return !r.FreeAt.IsZero() && !time.Now().Before(r.FreeAt.Add(-skews))
}

// judgeIncarnation judges a new incarnation: the key was absent, or free.
func (w *world) judgeIncarnation(a *act, k *key, before, r storage.Record) {
	now := time.Now()
	w.judge.founders[r.OperationID], w.judge.keys[r.OperationID] = a, k
	switch {
	case before.OperationID == "":
	case before.State.Final() && now.Before(before.ExpiresAt):
		w.broken("expiry: the answer of %s is gone %v before its time", k.name, before.ExpiresAt.Sub(now))
	case !before.State.Final() && before.State != storage.StateFailedRetryable:
		w.broken("I8: another incarnation of %s begins, and the last one is %s", k.name, before.State)
	case !before.FreeAt.IsZero() && !free(before):
		w.broken("I8: another incarnation of %s begins, and its key is not free", k.name)
	}
	if a.gaveBack {
		w.broken("quota: a new key of %s stands, and its right was given back", k.name)
	}
}

// judgeTransition judges what one incarnation becomes.
func (w *world) judgeTransition(a *act, k *key, before, r storage.Record) {
	now := time.Now()
	holder := w.judge.owners[before.Owner]
	switch {
	case r.Epoch < before.Epoch:
		w.broken("I8: the epoch of %s goes back", k.name)
	case before.State.Final() && r.State == storage.StateFailedRetryable && (before.RecordOnly || k.kind == wrappedSafe):
		k.busted, k.answered = now, holder
		delete(k.finals, r.OperationID)
	case !before.State.Final() && r.State == storage.StateCompleted && k.answered == a:
		w.broken("cache: the answer of %s that was taken out of use is stored again", k.name)
	case before.State.Final() && !sameFinal(before, r):
		w.broken("I8: the final record of %s, %s %d, became %s %d", k.name, before.State, before.Response.Status, r.State, r.Response.Status)
	case before.State.Final() && r.ExpiresAt.Before(before.ExpiresAt):
		w.broken("expiry: the promise of %s to answer is shortened", k.name)
	case before.State == storage.StateUnknown && r.State == storage.StateInProgress:
		w.broken("I7: %s executes from unknown", k.name)
	case before.Observed && !before.SafeToRunAgain && before.State != storage.StateFailedRetryable && !r.Observed:
		w.broken("observe: %s takes from %s the mark that it was only observed, and knows of its own execution alone", a.name, k.name)
	case before.Observed && !before.SafeToRunAgain && r.State == storage.StateInProgress && !r.Observed:
		w.broken("observe: %s goes on with %s, which was only observed: another request may have run beside it", a.name, k.name)
	case before.State == storage.StateInProgress && r.State == storage.StateUnknown && holder != a:
		w.judgeParked(a, k, holder, before)
	case before.State == storage.StateInProgress && r.State == storage.StateInProgress && holder != a && now.Before(before.LeaseUntil.Add(-skews)):
		w.broken("lease: %s takes %s over, whose lease lives", a.name, k.name)
	case held(r) && before.State == r.State && before.Owner == r.Owner && r.LeaseUntil.Before(before.LeaseUntil):
		w.broken("lease: %s shortens the lease of %s", a.name, k.name)
	}
}

// held says that the row is a holder's, parked or not.
func held(r storage.Record) bool {
	return r.State == storage.StateInProgress || r.State == storage.StateUnknown
}

// judgeParked: what somebody else parks has a dead lease, and no holder who is alive and could renew it.
func (w *world) judgeParked(a *act, k *key, holder *act, before storage.Record) {
	if time.Now().Before(before.LeaseUntil) {
		w.broken("lease: %s parks %s, whose lease lives", a.name, k.name)
	}
	p := holder.process
	renewed := time.Now().Before(holder.began.Add(w.mood.engine.RunMax)) && !w.mood.kills
	if renewed && holder.running && !p.dead.Load() && !p.hurt.Load() && (holder.met[renews] == nil || holder.met[renews].faults() == 0) {
		w.broken("lease: %s parks %s, whose holder lives", a.name, k.name)
	}
}

// judgeHolder judges what a holder writes, by what it met and what its caller was told.
func (w *world) judgeHolder(a *act, k *key, before, r storage.Record) {
	began := r.State == storage.StateInProgress && r.Owner != before.Owner
	switch {
	case began && a.over && a.timely(a.told):
		w.broken("lease: a lease of %s lands for %s, which is over", k.name, a.name)
	case began && time.Now().Before(k.busted.Add(time.Minute)):
		w.broken("cache: %s is executed while a cache may hold the answer that was taken out of use", k.name)
	case r.State == storage.StateCompleted && r.Response.Status == limitStatus && a.lost && a.key == k:
		w.broken("lock: a rejection of %s is stored that was judged on a lost lock", k.name)
	case (r.State == storage.StateCompleted || r.State == storage.StatePending) && a.nothing && a.key == k:
		w.broken("I1: %s was told that nothing happened, and it is committed", a.name)
	case r.State == storage.StateFailedRetryable && r.FreeAt.IsZero():
		w.broken("expiry: nothing happened of %s, and nothing says when its key is free", k.name)
	case r.State == storage.StateFailedRetryable && before.State != r.State && r.FreeAt.Before(time.Now().Add(r.Retention-storage.WireMax-2*skews)):
		w.broken("expiry: nothing happened of %s, and its key is free %v after that, before its retention is over", k.name, time.Until(r.FreeAt))
	case r.State == storage.StateFailedRetryable && w.judge.effects[string(r.OperationID)] > 0:
		w.broken("I1: the record of %s says that nothing happened, and it had", k.name)
	case r.SafeToRunAgain && !k.safe:
		w.broken("observe: the record of %s says that running again is safe, and nobody has declared that", k.name)
	}
}

func sameFinal(a, b storage.Record) bool {
	return a.State == b.State && a.Response.Status == b.Response.Status && bytes.Equal(a.Response.Body, b.Response.Body)
}

// keyOfRecord returns the story's key of a record, or that of one which no client asked for.
func (w *world) keyOfRecord(r storage.Record) *key {
	for _, k := range w.keys {
		if k.id == r.Key {
			return k
		}
	}
	return w.unasked(r)
}

// keyOf returns the story's key of a record.
func (w *world) keyOf(id storage.RecordKey) *key {
	for _, k := range w.keys {
		if k.id == id {
			return k
		}
	}
	if k, ok := w.others.Load(id); ok {
		return k.(*key)
	}
	panic("sim: no key of a record")
}

// gaveBack notes that the right to a new key was given back: then none may stand that the act has begun, or come later.
func (w *world) gaveBack(a *act) {
	if w.over.Load() || a.key == nil || a.process.dead.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a.gaveBack = true
	if r, ok := w.judge.records[a.key.id]; ok && w.judge.founders[r.OperationID] == a {
		w.broken("quota: %s gives the right to a new key back, and the key stands", a.name)
	}
}

// begun notes that a handler runs, and handled that it has ended.
func (w *world) begun(k *key, a *act, id storage.OperationID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.ran, a.running, k.began[id] = true, true, true
}

func (w *world) handled(ctx context.Context, a *act) {
	w.mu.Lock()
	defer w.mu.Unlock()
	until, bounded := ctx.Deadline()
	a.running, a.late = false, bounded && time.Now().After(until.Add(100*time.Millisecond))
}

// answers notes that a wrapped handler has an answer, which is to be stored.
func (w *world) answers(a *act) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.answers, a.ended = true, time.Now()
}

// nobodys says that a row has been nobody's for a while: the next request executes, unless the row was only observed.
func nobodys(r storage.Record) bool {
	again := r.State == storage.StateFailedRetryable || r.State == storage.StateInProgress && (r.Kind != idem.KindWrapped || r.SafeToRunAgain)
	return again && !r.Observed && time.Now().After(r.LeaseUntil.Add(5*time.Second))
}

// completeFor is how long the answer of a wrapped handler is sent at least, and its lease if that lasts longer. One that is only
// observed is sent for seconds: its client waits for nothing.
const (
	completeFor = 10 * time.Second
	observedFor = 3500 * time.Millisecond
)

// tries says that the answer of the act's handler is sent at now, with some time to spare: a platform that kills leaves none before the
// deadline, because its caller must be told.
func (a *act) tries(now time.Time) bool {
	if a.process.mood.kills && !now.Before(a.deadline.Add(-time.Second)) {
		return false
	}
	if a.process.observes {
		return now.Before(a.ended.Add(observedFor - time.Second))
	}
	return now.Before(a.ended.Add(completeFor-time.Second)) || now.Before(a.lease.Add(-2*skews))
}

// returned judges what a request came to, at the very instant at which its caller is answered.
func (w *world) returned(a *act, got answer) {
	if w.over.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	k, now := a.key, time.Now()
	w.identify(k, &got)
	r, ok := w.judge.records[k.id]
	a.over, a.told = true, now
	a.nothing = got.err == nil && got.result.State == storage.StateFailedRetryable
	if a.nothing && a.made && !k.safe {
		w.broken("I1: %s is told that nothing happened, and it has had its effect", a.name)
	}
	own := ok && w.judge.owners[r.Owner] == a
	busy := got.err != nil || got.result.Outcome == idem.OutcomeInProgress
	if own && r.State == storage.StateInProgress && busy && !(a.ran && k.wrapped) && a.timely(now) {
		w.broken("lease: %s is told %s, and leaves its own lease standing", a.name, got)
	}
	if got.err == nil && got.result.Outcome == idem.OutcomeInProgress && ok && nobodys(r) && k.changed.Before(a.began) && a.undisturbed() {
		w.broken("progress: %s is told that %s is in progress, and nobody holds it: %s", a.name, k.name, r.State)
	}
	unhurt := !a.process.hurt.Load()
	m := a.with(frees)
	if own && r.State == storage.StateUnknown && a.nothing && unhurt && (m.faults() == 0 || k.wrapped && a.ran && !a.process.observes && now.Sub(m.first) < completeFor-2*skews) {
		w.broken("I1: %s was told that nothing happened, and its record is unknown", a.name)
	}
	if own && a.answers && unhurt && !r.State.Final() && a.tries(now) {
		w.broken("I1: the answer of %s is dropped, and its record is %s", a.name, r.State)
	}
	w.judgeEvidence(a)
}
