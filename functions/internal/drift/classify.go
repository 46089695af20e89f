package drift

import (
	"slices"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/storage"
)

// rules are what a story is classified by.
type rules struct {
	now time.Time
	// grace is for how long after its end an effect need not be listed.
	grace time.Duration
	// retention is how long a final record stays at least, and outlives how much longer its messages do.
	retention, outlives time.Duration
	workMax             time.Duration
	// lost is up to when data may have been lost; zero where nobody has said that any was.
	lost time.Time
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

// classification is one under way.
type classification struct {
	rules
	story
	verdict
}

// classify compares the sides of a story. It is pure.
func (r rules) classify(s story) verdict {
	if !s.readable() {
		return verdict{standing: unreadable}
	}
	c := &classification{rules: r, story: s}
	c.chain()
	c.stand()
	c.recordAgainstMessage()
	c.rowAgainstMessage()
	for _, e := range effects(s.entry.Kind) {
		c.rowAgainstProvider(e)
	}
	c.strays()
	c.funds()
	if !c.entry.Status.Stored() {
		c.drift(StateDiffers, c.row(), Side{What: "status", State: "none that there is"})
	}
	if s.entry.Refunded > s.entry.Amount {
		c.drift(Duplicate, s.row(), Side{What: "refunds of it", State: "reserved", Amount: s.entry.Refunded, Currency: s.entry.Currency})
	}
	return c.verdict
}

// funds: a payout's debit is given back exactly where the payout was not made. A row that a person ended may say otherwise, and no total of
// its account would differ. A row without the mark of its debit is of a release that kept none.
func (c *classification) funds() {
	if c.entry.Kind != payments.EntryPayout {
		return
	}
	unmade := c.entry.Status == payments.StatusFailed || c.entry.Status == payments.StatusDeclined
	side := Side{What: "funds", State: "kept", Amount: c.entry.Amount, Currency: c.entry.Currency}
	switch {
	case unmade && c.entry.Counted && !c.entry.GivenBack:
	case !unmade && c.entry.GivenBack:
		side.State = "given back"
	default:
		return
	}
	c.drift(StateDiffers, c.row(), side)
}

func (c *classification) drift(kind Kind, sides ...Side) {
	c.drifts = append(c.drifts, Drift{Kind: kind, Tenant: c.entry.Tenant, Entry: c.entry.ID, Sides: sides})
}

// kept is the retention that counts for the entry: what its messages say, where there are any.
func (c *classification) kept() time.Duration {
	for _, m := range c.messages {
		if m != nil {
			return m.Retention
		}
	}
	return c.retention
}

// final says that the row holds its end.
func (c *classification) final() bool { return c.entry.Status != payments.StatusPending }

// chain demands the messages that must be there. Only final ones may have been removed, and none before its retention and
// a day after the earliest end there can have been, the row's own birth.
func (c *classification) chain() {
	mayBeGone := c.final() && !c.now.Before(c.entry.CreatedAt.Add(c.kept()+c.outlives))
	m, n := c.last()
	missing := slices.Index(c.messages[:max(n, 1)], nil) + 1
	switch {
	case missing > 0:
	case c.continues(m, n) && !c.cutShort(m):
		missing = n + 1
	default:
		return
	}
	if mayBeGone {
		c.removed = true
		return
	}
	c.drift(RecordMessageDiffers, c.row(), c.message(missing), c.recordSide())
}

// cutShort says that a person ended the operation with the message because nobody can open it any more (docs/recovery.md "End a row by
// hand"). What would follow it can't be written then. Its record says so, and may have expired since.
func (c *classification) cutShort(m *storage.Message) bool {
	switch {
	case m.State != storage.MessageDelivered && m.State != storage.MessageDeclined:
		return false
	case c.record != nil:
		return c.record.erased
	}
	return c.final() && m.SettledBy == storage.SettledByOperator && !c.now.Before(m.DoneAt.Add(m.Retention))
}

// stand says where the entry stands by the furthest of its messages.
func (c *classification) stand() {
	m, n := c.last()
	if m == nil {
		return
	}
	switch m.State {
	case storage.MessageUnknown, storage.MessageDead:
		c.standing = parked
	case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced:
		c.standing = open
		since := m.CreatedAt
		if m.RedrivenAt.After(since) {
			since = m.RedrivenAt
		}
		if c.now.Sub(since) > c.workMax {
			c.drift(StateDiffers, c.row(), c.message(n))
		}
	case storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled:
	}
}

// recordAgainstMessage: a record is final exactly when its chain has ended.
func (c *classification) recordAgainstMessage() {
	m, n := c.last()
	if m == nil || m.Detached || c.continues(m, n) {
		return // a missing message is drift already, or was removed, which its record was long before
	}
	if c.record == nil {
		if c.recordMayBeGone(m) {
			c.removed = true
			return
		}
		c.drift(RecordMessageDiffers, c.recordSide(), c.message(n))
		return
	}
	if !c.cutShort(m) && !c.agree(c.record.state, m, n) {
		c.drift(RecordMessageDiffers, c.recordSide(), c.message(n))
	}
}

func (c *classification) recordMayBeGone(m *storage.Message) bool {
	gaveUp := c.entry.Status == payments.StatusFailed && !c.now.Before(c.entry.CreatedAt.Add(m.Retention))
	switch m.State {
	case storage.MessageDelivered, storage.MessageDeclined:
		return !c.now.Before(m.DoneAt.Add(m.Retention))
	case storage.MessageCancelled: // a person may have closed one that was given up before
		return !c.now.Before(m.DoneAt.Add(m.Retention)) || gaveUp && m.SettledBy == storage.SettledByOperator
	case storage.MessageDead: // given up and answered: its record goes, it stays
		return gaveUp
	case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced, storage.MessageUnknown:
	}
	return false
}

// agree says whether a record may be in a state while the last message of its chain, the n-th, is in another.
func (c *classification) agree(r storage.State, m *storage.Message, n int) bool {
	if c.undoes(n) {
		return agreeUndone(r, m)
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

// agreeUndone is agree for a message that undoes: its record ends with it, and has failed.
func agreeUndone(r storage.State, m *storage.Message) bool {
	if m.State != storage.MessageDelivered {
		return r == storage.StatePending
	}
	return r == storage.StateFailed
}

// rowAgainstMessage: the row ends in the transaction that ends its chain.
func (c *classification) rowAgainstMessage() {
	m, n := c.last()
	if m != nil && c.continues(m, n) && c.cutShort(m) && !c.final() { // no worker ends it: a person does
		c.drift(StateDiffers, c.row(), c.message(n))
	}
	if m == nil || c.continues(m, n) {
		return
	}
	if want := c.statusBy(m, n); c.entry.Status != want {
		c.drift(StateDiffers, c.row(), c.message(n))
	}
}

// statusBy is the row's status where the n-th message is the last of its chain.
func (c *classification) statusBy(m *storage.Message, n int) payments.Status {
	if c.undoes(n) {
		return c.statusUndone(m, n)
	}
	switch m.State {
	case storage.MessageDelivered:
		return payments.StatusSucceeded
	case storage.MessageDeclined:
		return payments.StatusDeclined
	case storage.MessageCancelled:
		return payments.StatusFailed
	case storage.MessageDead:
		if c.record == nil || c.record.state.Final() {
			return payments.StatusFailed
		}
	case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced, storage.MessageUnknown:
	}
	return payments.StatusPending
}

// statusUndone is statusBy for a message that undoes. Where the one before it is gone, any status will do that says that
// no money moved.
func (c *classification) statusUndone(m *storage.Message, n int) payments.Status {
	before := c.messages[n-2]
	switch {
	case m.State != storage.MessageDelivered:
		return payments.StatusPending
	case before == nil && c.entry.Status == payments.StatusFailed, before != nil && before.State == storage.MessageCancelled:
		return payments.StatusFailed
	}
	return payments.StatusDeclined
}
