package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// How long rows are kept at least, as docs/design.md ("Tables") and docs/semantics.md ("Chains") say it. It is not asked of package
// storage: a row that this package lets go too early must be missed here.
const (
	// recordsStay is for how long a record stays after its key is free: a reserve may be on its way for 15 minutes.
	recordsStay = 16 * time.Minute
	// messagesStay is for how long a message stays after its record has expired.
	messagesStay = 24 * time.Hour
)

// judgeVanished judges the rows that were there at the last look and are not any more: nobody but the native TTL removes any, and it removes
// what has ended when its time is over. A record that is removed too early is not in the way of a second execution.
func (w *world) judgeVanished(a *act, records map[storage.RecordKey]storage.Record, messages map[storage.MessageID]storage.Message) {
	for _, id := range slices.Sorted(maps.Keys(records)) {
		if _, stands := w.judge.records[id]; !stands {
			w.judgeVanishedRecord(a, records[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(messages)) {
		if _, stands := w.judge.messages[id]; !stands {
			w.judgeVanishedMessage(a, messages[id])
		}
	}
}

// removals is the time by which the native TTL removes: the story's, less how late it is. Clocks of processes, by which rows are
// stamped, differ from it.
func (w *world) removals() time.Time { return time.Now().Add(skews - w.mood.expires) }

func (w *world) judgeVanishedRecord(a *act, r storage.Record) {
	k, again := w.keyOf(r.Key), r.LeaseUntil.Add(r.Retention)
	free := r.FreeAt
	switch {
	case r.State.Final():
		free = latest(r.FreeAt, r.ExpiresAt.Add(r.Expiry.KeepFor), r.DoneAt.Add(r.Retention))
	case free.IsZero():
		free = again
	}
	switch now := w.removals(); {
	case a != nil:
		w.broken("expiry: %s removes the record of %s, which is %s", a.name, k.name, r.State)
	case r.State == storage.StatePending, r.State == storage.StateUnknown, r.State == storage.StateInProgress && k.wrapped && !k.safe:
		w.broken("expiry: the record of %s is removed, and is %s", k.name, r.State)
	case now.Before(free.Add(recordsStay)):
		w.broken("expiry: the record of %s, %s, is removed %v before its time", k.name, r.State, free.Add(recordsStay).Sub(now))
	}
}

func (w *world) judgeVanishedMessage(a *act, m storage.Message) {
	id, until := short(string(m.ID)), w.chainEnd(m).Add(m.Retention+m.Expiry.KeepFor+messagesStay)
	r := w.judge.records[m.RecordKey]
	own := r.OperationID == m.OperationID
	switch now := w.removals(); {
	case a != nil:
		w.broken("expiry: %s removes message %s to %s, which is %s", a.name, id, m.Topic, m.State)
	case !m.State.Final():
		w.broken("expiry: message %s to %s is removed, and is %s", id, m.Topic, m.State)
	case own && (!r.State.Final() || now.Before(r.ExpiresAt)):
		w.broken("chain: message %s to %s is removed, and its operation is %s", id, m.Topic, r.State)
	case now.Before(until):
		w.broken("expiry: message %s to %s is removed %v before its time", id, m.Topic, until.Sub(now))
	}
}

// chainEnd is when the message's chain ended: messages go a day after their record, which is the end of the last of them. One that is detached
// is alone, because its record had its answer before it was sent.
func (w *world) chainEnd(m storage.Message) time.Time {
	end := m.DoneAt
	if m.Detached {
		return end
	}
	for _, other := range w.messagesOf(storage.Record{OperationID: m.OperationID}) {
		end = latest(end, other.DoneAt)
	}
	return end
}

func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }
