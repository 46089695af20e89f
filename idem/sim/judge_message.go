package sim

import (
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// judgeMessage judges what an act has made of a message; record is its operation's as it was before. Its rules are those of
// docs/semantics.md ("States of a message", "Chains") and of docs/design.md ("Who may write what", "One message, step by step").
func (w *world) judgeMessage(a *act, before, m storage.Message, record storage.Record) {
	if a == nil {
		return
	}
	defer a.writes(m.Revision)
	id := short(string(m.ID))
	if k := w.keyOf(m.RecordKey); m.Tenant != k.tenant || a.key != nil && a.key.tenant != k.tenant {
		w.broken("I5: message %s to %s of %s is of tenant %s, and %s changes it", id, m.Topic, k.name, m.Tenant, a.name)
	}
	if r := w.judge.records[m.RecordKey]; !m.RemoveAt.IsZero() && !m.Detached && r.OperationID == m.OperationID && r.State == storage.StatePending {
		w.broken("chain: message %s to %s may be removed, and its operation is pending", id, m.Topic)
	}
	if before.ID == "" {
		if m.Index > 1 && record.OperationID == m.OperationID && record.State.Final() {
			w.broken("chain: message %s to %s follows, and its operation is %s", id, m.Topic, record.State)
		}
		return
	}
	if before.Revision == m.Revision {
		return // only when it is removed has changed
	}
	w.judgeMessageFence(a, before, m)
	if !m.RedrivenAt.Equal(before.RedrivenAt) { // what was told before is decided
		delete(w.judge.told, m.ID)
		delete(w.judge.rung, string(m.ID))
	}
	switch {
	case before.State.Final() && before.State != m.State:
		w.broken("I8: message %s to %s, which was %s, became %s", id, m.Topic, before.State, m.State)
	case m.Epoch < before.Epoch:
		w.broken("I8: the epoch of message %s to %s goes back", id, m.Topic)
	case m.State == storage.MessageDeclined && before.KeptDelivered != nil:
		w.broken("evidence: message %s to %s is declined, and it is known to be delivered", id, m.Topic)
	case !m.State.Final() && (before.KeptDelivered != nil && m.KeptDelivered == nil || before.KeptDeclined != nil && m.KeptDeclined == nil):
		w.broken("evidence: what message %s to %s keeps is overwritten", id, m.Topic)
	case before.State == storage.MessageDead && m.State == storage.MessageEvidenced:
		w.broken("evidence: message %s to %s is dead, and is left to the workers", id, m.Topic)
	case before.State == storage.MessageEvidenced && (m.State == storage.MessageClaimed || m.State == storage.MessagePending):
		w.broken("evidence: message %s to %s keeps its answer, and is to be called again", id, m.Topic)
	case before.State == storage.MessageUnknown && m.State == storage.MessageClaimed:
		w.broken("I7: message %s to %s is called from unknown", id, m.Topic)
	case before.State == storage.MessageUnknown && m.State == storage.MessagePending && !m.ClearedAt.After(before.ClearedAt) && a.seen == "":
		w.broken("I7: message %s to %s is to be called again, and its absence was not proven", id, m.Topic)
	case m.Attempts > w.judge.calls[m.ID]:
		w.broken("attempts: message %s to %s counts %d calls, and %d left", id, m.Topic, m.Attempts, w.judge.calls[m.ID])
	case a.process.older:
		w.broken("release: %s changes message %s, whose topic %s its release does not know", a.name, id, m.Topic)
	case w.untimely(a, before, m):
		w.broken("age: message %s to %s is given up before its time", id, m.Topic)
	}
	w.app.Judge(Landed{Message: &m})
}

// judgeMessageFence: who changes a message has seen it as it was. Only the evidence of a delivery settles, or is kept, whatever
// the message has become.
func (w *world) judgeMessageFence(a *act, before, m storage.Message) {
	switch delivered := m.State == storage.MessageDelivered || m.KeptDelivered != nil && m.State != storage.MessageDead; {
	case a.seen != "" && a.subject == string(m.ID) && a.seen != before.Revision && !a.saw[before.Revision]:
		w.broken("fence: %s decides about message %s to %s as it was not seen", a.name, short(string(m.ID)), m.Topic)
	case !delivered && !a.saw[before.Revision]:
		w.broken("fence: %s makes message %s to %s %s, which it has not seen as it was: %s", a.name, short(string(m.ID)), m.Topic, m.State, before.State)
	}
}

// untimely says that a message is given up of which nothing was called, no claim died, and no evidence is kept, although it is not
// too old: its age counts from when it was started anew. Who has just put the next call off until it is too old gives it up at once:
// nobody would call in between. One that nobody has claimed in time is cancelled, or dead where what that means could not be written.
func (w *world) untimely(a *act, before, m storage.Message) bool {
	if before.State != storage.MessagePending || m.State != storage.MessageDead || m.Attempts > 0 || m.Died > 0 || m.Refused || m.KeptDelivered != nil || m.KeptDeclined != nil {
		return false
	}
	began := m.CreatedAt
	if m.RedrivenAt.After(began) {
		began = m.RedrivenAt
	}
	most := w.mood.topic.AgeMax
	if m.Unfailed && m.Index == 1 && before.FirstClaimedAt.IsZero() {
		most = min(most, w.mood.topic.AbandonAfter)
	}
	until := time.Now()
	if a.wrote[before.Revision] {
		until = latest(until, before.NextAttemptAt)
	}
	return until.Before(began.Add(most - 2*skews))
}

// calls judges a call to the provider, by the clock of its caller, before anything can hold it up.
func (w *world) calls(a *act, m storage.Message, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge.calls[m.ID]++
	stored := w.judge.messages[m.ID]
	id := short(string(m.ID))
	switch {
	case stored.Owner != m.Owner || stored.Epoch != m.Epoch || !stored.LeaseUntil.Equal(m.LeaseUntil):
		w.broken("claim: message %s to %s is called under a claim that is not stored", id, m.Topic)
	case !now.Before(m.LeaseUntil):
		w.broken("claim: message %s to %s is called after its own claim", id, m.Topic)
	}
}

// unsent notes that a call never left.
func (w *world) unsent(m storage.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge.calls[m.ID]--
}

// learnt notes that an act was given a definite answer.
func (w *world) learnt(a *act, m storage.Message, made bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.evidence[m.ID] = evidence{made: made, at: time.Now(), claim: m}
	if made {
		w.judge.knows[m.ID] = append(w.judge.knows[m.ID], a)
	}
}

// done judges what a visit or a delivery came to.
func (w *world) done(a *act, err error) {
	if w.over.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a.over = true
	switch person := a.seen != "" && !a.process.hurt.Load(); {
	case person && a.landed && refuses(err):
		w.broken("decision: %s has made a change, and is told that it has not", a.name)
	case person && a.shown && err != nil:
		w.broken("decision: %s has made a change, was shown it, and is told %v", a.name, err)
	}
	w.judgeEvidence(a)
}

// killed judges what a delivery did until it was killed at its deadline: it began to keep, in time, what it could not settle.
func (w *world) killed(a *act) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over.Load() || a.over || a.process.hurt.Load() || a.process.dead.Load() || a.met[keeps] != nil {
		return
	}
	for id, e := range a.evidence {
		m, ok := w.judge.messages[id]
		if ok && m.State == storage.MessageClaimed && m.Owner == e.claim.Owner && a.deadline.Sub(e.at) > 2*time.Second {
			w.broken("evidence: %s is at its deadline, and has not tried to keep what the provider said about %s of %s", a.name, m.Topic, w.subject(m))
		}
	}
}

// judgeEvidence: a definite answer that the act was given is settled or kept when it ends. It may be lost where the store took it
// neither in the act's time nor in that for which it is kept; where nobody else could bring it again, and the act has no deadline, it
// is sent for as long as the process lives.
func (w *world) judgeEvidence(a *act) {
	now := time.Now()
	for id, e := range a.evidence {
		m, ok := w.judge.messages[id]
		if !ok || m.State.Final() || m.State == storage.MessageDead || a.process.hurt.Load() || a.process.dead.Load() {
			continue
		}
		if e.made && m.KeptDelivered != nil || !e.made && (m.KeptDeclined != nil || m.KeptDelivered != nil) {
			continue
		}
		if !e.made && (m.Owner != e.claim.Owner || m.Epoch != e.claim.Epoch) && !w.topics[m.Topic].honours {
			continue // another attempt has followed
		}
		inTime := a.deadline.IsZero() || now.Before(a.deadline.Add(-2*skews)) || a.with(keeps).faults() == 0
		alone := !w.topics[m.Topic].honours && !w.topics[m.Topic].looksUp && a.deadline.IsZero()
		if inTime && (alone || now.Before(e.at.Add(w.mood.outbox.KeepMax-100*time.Millisecond))) && a.key == nil {
			w.broken("evidence: %s ends, and has dropped what the provider said about %s of %s", a.name, m.Topic, w.subject(m))
		}
	}
}
