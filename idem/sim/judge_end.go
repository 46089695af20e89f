package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// judgeEnd judges how the story ended: everybody is gone, and the background had time.
func (w *world) judgeEnd() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look(nil)
	w.incarnations(w.judgeKey)
	w.app.JudgeEnd()
}

// incarnations calls judge with each one that there ever was, as it was seen last.
func (w *world) incarnations(judge func(*key, storage.Record)) {
	for _, id := range slices.Sorted(maps.Keys(w.judge.last)) {
		if k := w.judge.keys[id]; k != nil && !k.contradicted {
			judge(k, w.judge.last[id])
		}
	}
}

// judgeKey holds the end of one incarnation of a key to I1, I2, I3 and I9.
func (w *world) judgeKey(k *key, r storage.Record) {
	messages, final := w.messagesOf(r), k.finals[r.OperationID]
	switch {
	case final != nil && r.State.Final() && final.result.Response.Status != r.Response.Status:
		w.broken("I4: %s was told %s, and %d is stored", k.name, final, r.Response.Status)
	case final != nil && !r.State.Final():
		w.broken("I4: %s was told %s, and its record is %s", k.name, final, r.State)
	case r.State == storage.StatePending && len(messages) == 0:
		w.broken("I1: %s is pending, and has no message", k.name)
	case r.State == storage.StateUnknown && !k.wrapped:
		w.broken("I9: %s, which needs no operator, is unknown", k.name)
	case w.unheard(r):
		w.broken("I9: %s is unknown, and no alarm said so", k.name)
	}
	open := false
	for _, m := range messages {
		w.judgeMessageEnd(k, m)
		open = open || !m.State.Final()
	}
	if r.State == storage.StatePending && !open {
		w.broken("I9: %s is pending, and none of its messages is open", k.name)
	}
}

// judgeMessageEnd holds a message's end to the provider's books.
func (w *world) judgeMessageEnd(k *key, m storage.Message) {
	made, topic := w.has(string(m.ID)), w.topics[m.Topic]
	switch {
	case m.State == storage.MessageDelivered && made == 0:
		w.broken("I3: message %s of %s is delivered, and was never made", short(string(m.ID)), k.name)
	case (m.State == storage.MessageDeclined || m.State == storage.MessageCancelled) && made > 0:
		w.broken("I3: message %s of %s is %s, and was made", short(string(m.ID)), k.name, m.State)
	case !m.State.Final() && m.State != storage.MessageDead && m.State != storage.MessageUnknown:
		w.broken("I9: message %s of %s is still %s", short(string(m.ID)), k.name, m.State)
	case w.untold(m):
		w.broken("I3: message %s of %s is %s, and nobody was told", short(string(m.ID)), k.name, m.State)
	case !m.State.Final() && m.KeptDelivered == nil && slices.ContainsFunc(w.judge.knows[m.ID], func(a *act) bool { return !a.process.dead.Load() && a.deadline.IsZero() }) && !topic.honours && !topic.looksUp:
		w.broken("I3: message %s of %s is %s, and a process that lived on was told that it was made", short(string(m.ID)), k.name, m.State)
	case m.State == storage.MessageUnknown && topic.looksUp:
		w.broken("I9: message %s of %s can be looked up, and is still unknown", short(string(m.ID)), k.name)
	}
}

// untold says whether a message waits for an operator whom nobody has told: a dead one, or one that is unknown and can't be looked up.
// What failed with its operation is told of once: its client knows, and nobody has to do anything.
func (w *world) untold(m storage.Message) bool {
	switch ended := w.judge.last[m.OperationID].State.Final(); m.State {
	case storage.MessageDead:
		return !w.judge.told[m.ID] && !ended
	case storage.MessageUnknown:
		return !w.topics[m.Topic].looksUp && !w.judge.rung[string(m.ID)] && !ended
	case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced, storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled:
	}
	return false
}

// unheard says the same of a record: one that is unknown, and that nobody can look up.
func (w *world) unheard(r storage.Record) bool {
	return r.State == storage.StateUnknown && !w.keyOf(r.Key).probed && !w.judge.rung[string(r.OperationID)]
}

// settling says whether somebody who lives is still at it with what the provider said about a message: they send it for as long as it takes,
// and what they end with is judged then. A request's answer is sent on when its caller has been answered.
func (w *world) settling(m storage.Message) bool {
	return slices.ContainsFunc(w.judge.knows[m.ID], func(a *act) bool {
		return !a.process.dead.Load() && (!a.over || a.sending > 0 || time.Since(a.heard) < betweenTries)
	})
}

// betweenTries is longer than any pause between two tries of a write.
const betweenTries = time.Minute

// messagesOf are the messages that an operation ever had, as they were seen last.
func (w *world) messagesOf(r storage.Record) (all []storage.Message) {
	for _, m := range w.judge.lastMessages {
		if m.OperationID == r.OperationID {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b storage.Message) int { return a.Index - b.Index })
	return all
}

// ended says whether nothing but a person can change anything any more.
func (w *world) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.judge.messages {
		if w.untold(m) || !m.State.Final() && w.settling(m) {
			return false
		}
		if !m.State.Final() && m.State != storage.MessageDead && (m.State != storage.MessageUnknown || w.topics[m.Topic].looksUp) {
			return false
		}
	}
	for _, r := range w.judge.records {
		if r.Kind == idem.KindWrapped && r.State == storage.StateInProgress || r.State == storage.StateUnknown && w.keyOf(r.Key).probed || w.unheard(r) {
			return false
		}
	}
	return true
}

// unreminded are the dead messages of which nobody was told on the last day, but for what failed with its operation: then nothing is left to
// decide.
func (w *world) unreminded() (all []storage.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.judge.messages {
		if decided := !m.Detached && w.judge.last[m.OperationID].State.Final(); m.State == storage.MessageDead && !w.judge.told[m.ID] && !decided {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b storage.Message) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// judgeReminders judges whether an operator is told every day of what is dead (docs/semantics.md "States of a message").
func (w *world) judgeReminders() {
	all := w.unreminded()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range all {
		w.broken("I3: message %s of %s to %s is dead, and nobody was told again for a day", short(string(m.ID)), w.subject(m), m.Topic)
	}
}

// judgeGone judges what is left when every retention is over: what only a person can end, and what lives as long as its resource. All
// else that has ended is gone by now, a message a day after its record (docs/semantics.md "Chains"), and so is a lease that may be taken
// over (docs/design.md "Tables").
func (w *world) judgeGone() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(w.judge.records)) {
		switch r, k := w.judge.records[id], w.keyOf(id); {
		case r.State == storage.StateInProgress && (!k.wrapped || k.safe) && w.overdue(r.LeaseUntil.Add(r.Retention+recordsStay)):
			w.broken("expiry: the lease of %s was over long ago, and is never removed", k.name)
		case r.State == storage.StateFailedRetryable:
			w.broken("expiry: nothing happened of %s, and its key is held for ever", w.nameOf(id))
		case r.State.Final() && !r.Expiry.ResourceBacked && w.overdue(latest(r.FreeAt, r.ExpiresAt.Add(r.Expiry.KeepFor)).Add(recordsStay)):
			w.broken("expiry: the record of %s, %s, is never removed", w.nameOf(id), r.State)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.judge.messages)) {
		m := w.judge.messages[id]
		last, open := m.DoneAt, m.Expiry.ResourceBacked
		for _, other := range w.messagesOf(storage.Record{OperationID: m.OperationID}) {
			last, open = latest(last, other.DoneAt), open || !other.State.Final()
		}
		if !open && w.overdue(last.Add(m.Retention+m.Expiry.KeepFor+messagesStay)) {
			w.broken("expiry: message %s of %s to %s, %s, is never removed", short(string(id)), w.subject(m), m.Topic, m.State)
		}
	}
}

// overdue says that the native TTL should have removed long ago what may go from then on: also where a process was frozen between when
// it says that something ended and its write.
func (w *world) overdue(until time.Time) bool { return until.Add(time.Hour).Before(w.removals()) }
