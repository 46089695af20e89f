package drift

import (
	"slices"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/storage"
)

// rules are what a story is judged by.
type rules struct {
	now time.Time
	// grace is for how long after its end an effect need not be listed.
	grace time.Duration
	// retention is how long a final record stays at least, and outlives how much longer its messages do.
	retention, outlives time.Duration
	workMax             time.Duration
}

// messagesOutlive is how much longer than its record a final message stays (docs/design.md "Tables").
const messagesOutlive = 24 * time.Hour

// standing is where an entry stands.
type standing int

const (
	compared standing = iota
	// open: still being worked on, or ended so lately that the provider need not show it.
	open
	// parked: unknown or dead.
	parked
	unreadable
)

// verdict is what a story comes to.
type verdict struct {
	standing standing
	// removed says that record or messages are gone, and may be.
	removed bool
	drifts  []Drift
}

// judging is one judgement under way.
type judging struct {
	rules
	story
	verdict
}

// judge compares the sides of a story. It is pure.
func (r rules) judge(s story) verdict {
	if !s.readable() {
		return verdict{standing: unreadable}
	}
	j := &judging{rules: r, story: s}
	j.chain()
	j.stand()
	j.recordAgainstMessage()
	j.rowAgainstMessage()
	for _, e := range effects(s.entry.Kind) {
		j.rowAgainstProvider(e)
	}
	j.strays()
	if s.entry.Refunded > s.entry.Amount {
		j.drift(Duplicate, s.row(), Side{What: "refunds of it", State: "reserved", Amount: s.entry.Refunded, Currency: s.entry.Currency})
	}
	return j.verdict
}

func (j *judging) drift(kind Kind, sides ...Side) {
	j.drifts = append(j.drifts, Drift{Kind: kind, Tenant: j.entry.Tenant, Entry: j.entry.ID, Sides: sides})
}

// kept is the retention that counts for the entry: what its messages say, where there are any.
func (j *judging) kept() time.Duration {
	for _, m := range j.messages {
		if m != nil {
			return m.Retention
		}
	}
	return j.retention
}

// final says that the row holds its end.
func (j *judging) final() bool { return j.entry.Status != payments.StatusPending }

// chain demands the messages that must be there. Only final ones may have been removed, and none before its retention and
// a day after the earliest end there can have been, the row's own birth.
func (j *judging) chain() {
	mayBeGone := j.final() && !j.now.Before(j.entry.CreatedAt.Add(j.kept()+j.outlives))
	m, n := j.last()
	missing := slices.Index(j.messages[:max(n, 1)], nil) + 1
	switch {
	case missing > 0:
	case j.continues(m, n):
		missing = n + 1
	default:
		return
	}
	if mayBeGone {
		j.removed = true
		return
	}
	j.drift(RecordMessageDiffers, j.row(), j.message(missing), j.recordSide())
}

// stand says where the entry stands by the furthest of its messages.
func (j *judging) stand() {
	m, n := j.last()
	if m == nil {
		return
	}
	switch m.State {
	case storage.MessageUnknown, storage.MessageDead:
		j.standing = parked
	case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced:
		j.standing = open
		since := m.CreatedAt
		if m.RedrivenAt.After(since) {
			since = m.RedrivenAt
		}
		if j.now.Sub(since) > j.workMax {
			j.drift(StateDiffers, j.row(), j.message(n))
		}
	case storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled:
	}
}

// recordAgainstMessage: a record is final exactly when its chain has ended.
func (j *judging) recordAgainstMessage() {
	m, n := j.last()
	if m == nil || m.Detached || j.continues(m, n) {
		return // a missing message is drift already, or was removed, which its record was long before
	}
	if j.record == nil {
		if j.recordMayBeGone(m) {
			j.removed = true
			return
		}
		j.drift(RecordMessageDiffers, j.recordSide(), j.message(n))
		return
	}
	if !j.agree(j.record.state, m, n) {
		j.drift(RecordMessageDiffers, j.recordSide(), j.message(n))
	}
}

func (j *judging) recordMayBeGone(m *storage.Message) bool {
	switch m.State {
	case storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled:
		return !j.now.Before(m.DoneAt.Add(m.Retention))
	case storage.MessageDead: // given up and answered: its record goes, it stays
		return j.entry.Status == payments.StatusFailed && !j.now.Before(j.entry.CreatedAt.Add(m.Retention))
	case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced, storage.MessageUnknown:
	}
	return false
}

// agree says whether a record may be in a state while the last message of its chain, the n-th, is in another.
func (j *judging) agree(r storage.State, m *storage.Message, n int) bool {
	if j.undoes(n) {
		return j.agreeUndone(r, m, n)
	}
	switch m.State {
	case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced, storage.MessageUnknown:
		return r == storage.StatePending
	case storage.MessageDead:
		return r == storage.StatePending || r == storage.StateFailed
	case storage.MessageDelivered, storage.MessageDeclined:
		return r == storage.StateCompleted
	case storage.MessageCancelled:
		return r == storage.StateFailed
	}
	return false
}

// agreeUndone is agree for a message that undoes: its record ends with it, and by what was not made before it.
func (j *judging) agreeUndone(r storage.State, m *storage.Message, n int) bool {
	before := j.messages[n-2]
	switch {
	case m.State != storage.MessageDelivered:
		return r == storage.StatePending
	case before == nil:
		return r.Final()
	case before.State == storage.MessageDeclined:
		return r == storage.StateCompleted
	}
	return r == storage.StateFailed
}

// rowAgainstMessage: the row ends in the transaction that ends its chain.
func (j *judging) rowAgainstMessage() {
	m, n := j.last()
	if m == nil || j.continues(m, n) {
		return
	}
	if want := j.statusBy(m, n); j.entry.Status != want {
		j.drift(StateDiffers, j.row(), j.message(n))
	}
}

// statusBy is the row's status where the n-th message is the last of its chain.
func (j *judging) statusBy(m *storage.Message, n int) payments.Status {
	if j.undoes(n) {
		return j.statusUndone(m, n)
	}
	switch m.State {
	case storage.MessageDelivered:
		return payments.StatusSucceeded
	case storage.MessageDeclined:
		return payments.StatusDeclined
	case storage.MessageCancelled:
		return payments.StatusFailed
	case storage.MessageDead:
		if j.record == nil || j.record.state.Final() {
			return payments.StatusFailed
		}
	case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced, storage.MessageUnknown:
	}
	return payments.StatusPending
}

// statusUndone is statusBy for a message that undoes. Where the one before it is gone, any status will do that says that
// no money moved.
func (j *judging) statusUndone(m *storage.Message, n int) payments.Status {
	before := j.messages[n-2]
	switch {
	case m.State != storage.MessageDelivered:
		return payments.StatusPending
	case before == nil && j.entry.Status == payments.StatusFailed, before != nil && before.State == storage.MessageCancelled:
		return payments.StatusFailed
	}
	return payments.StatusDeclined
}
