package drift

import (
	"slices"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// rowAgainstProvider compares what one message asked for with what the provider has under its key.
func (c *classification) rowAgainstProvider(e effect) {
	made := c.made(e)
	for _, o := range made {
		if o.Amount != c.entry.Amount || o.Currency != c.entry.Currency {
			c.drift(AmountDiffers, c.row(), o.side())
		}
	}
	moved := only(made, object.succeeded)
	if len(moved) > 1 {
		c.drift(Duplicate, append([]Side{c.row()}, sides(moved)...)...)
	}
	here, reference := c.end(e)
	switch here {
	case payments.StatusSucceeded:
		c.wantSuccess(e, made, moved, reference)
	case payments.StatusDeclined:
		switch {
		case len(moved) > 0:
			c.drift(StateDiffers, append([]Side{c.here(e, here)}, sides(moved)...)...)
		case reference != "" && len(only(made, object.declined)) == 0:
			c.missingThere(e, here, reference)
		}
	case payments.StatusFailed:
		if len(made) > 0 {
			c.drift(StateDiffers, append([]Side{c.here(e, here)}, sides(made)...)...)
		}
	case payments.StatusPending, payments.StatusUnknown: // whatever is there may be
	}
}

func (c *classification) wantSuccess(e effect, made, moved []object, reference string) {
	named := func(o object) bool { return o.ID == reference }
	switch {
	case len(moved) == 0 && len(made) == 0:
		c.missingThere(e, payments.StatusSucceeded, reference)
	case len(moved) == 0:
		c.drift(StateDiffers, append([]Side{c.here(e, payments.StatusSucceeded)}, sides(made)...)...)
	case reference == "" && e == money(c.entry.Kind): // what was paid can't be refunded
		c.drift(StateDiffers, append([]Side{c.row(), {What: "provider reference", State: absent}}, sides(moved)...)...)
	case reference != "" && !slices.ContainsFunc(moved, named):
		c.drift(StateDiffers, append([]Side{c.here(e, payments.StatusSucceeded), {What: "provider reference", ID: reference, State: absent}}, sides(moved)...)...)
	}
}

// missingThere waits until what was made must be listed.
func (c *classification) missingThere(e effect, here payments.Status, reference string) {
	if at, known := c.endedAt(e); known && c.now.Sub(at) < c.grace {
		c.standing = open
		return
	}
	c.drift(MissingThere, c.here(e, here), Side{What: "provider " + string(e.family), ID: reference, State: absent})
}

// endedAt is when the effect's message ended, where anything tells still.
func (c *classification) endedAt(e effect) (time.Time, bool) {
	if m := c.messages[e.position-1]; m != nil && !m.DoneAt.IsZero() {
		return m.DoneAt, true
	}
	if c.record != nil && !c.record.doneAt.IsZero() {
		return c.record.doneAt, true
	}
	return time.Time{}, false
}

// end is how one effect ended here, and the provider's name for it.
func (c *classification) end(e effect) (payments.Status, string) {
	if e == money(c.entry.Kind) { // the row is about this one
		return c.entry.Status, c.entry.ProviderReference
	}
	m, paid := c.messages[e.position-1], c.entry.Status == payments.StatusSucceeded
	switch {
	case m != nil && c.undoes(e.position) && byHand(m) && !c.holds():
		return payments.StatusUnknown, m.Reference // a person undid it at the provider, and no object need be there
	case m != nil && c.undoes(e.position) && m.State == storage.MessageDelivered:
		return payments.StatusSucceeded, m.Reference
	case m != nil:
		return c.statusBy(m, e.position), m.Reference
	case paid && c.undoes(e.position): // there was nothing to undo
		return payments.StatusFailed, ""
	case paid: // its effects before the money were delivered
		return payments.StatusSucceeded, ""
	}
	return payments.StatusUnknown, ""
}

// byHand says that a person said of the message that it was done.
func byHand(m *storage.Message) bool {
	return m.State == storage.MessageDelivered && m.SettledBy == storage.SettledByOperator
}

// holds says that the provider shows the hold of the screening as standing. Not every provider shows it.
func (c *classification) holds() bool {
	return slices.ContainsFunc(c.objects, func(o object) bool { return o.family() == screenings && o.Hold == holdStanding })
}

// here is our side of an effect: the row's where it moves the money, else its message's.
func (c *classification) here(e effect, status payments.Status) Side {
	if e == money(c.entry.Kind) {
		return c.row()
	}
	side := c.message(e.position)
	if side.State == absent {
		side = c.row()
		side.State = string(status)
	}
	return side
}

// made are the objects under the effect's key.
func (c *classification) made(e effect) []object {
	key := c.operation.Message(e.position)
	return only(c.objects, func(o object) bool { return o.family() == e.family && idem.MessageID(o.Key) == key })
}

// strays are objects that name the operation or the entry and that none of its messages asked for. Where money moved twice
// for one intent they are its duplicates.
func (c *classification) strays() {
	own := money(c.entry.Kind)
	stray := c.objects
	for _, e := range effects(c.entry.Kind) {
		asked := c.made(e)
		stray = only(stray, func(o object) bool { return !slices.Contains(asked, o) })
	}
	moved := only(c.made(own), object.succeeded)
	if n := c.releasedByHand(stray); n >= 0 {
		stray = slices.Delete(stray, n, n+1)
	}
	for _, o := range stray {
		if o.family() == own.family && o.succeeded() && len(moved) > 0 {
			c.drift(Duplicate, append(append([]Side{c.row()}, sides(moved)...), o.side())...)
			continue
		}
		c.drift(MissingHere, c.row(), o.side())
	}
}

// releasedByHand is the stray that ended the hold of a payout that was not made, in place of its own release; -1 where there is none. The
// message of that one may have been removed since.
func (c *classification) releasedByHand(stray []object) int {
	unmade := c.entry.Status == payments.StatusFailed || c.entry.Status == payments.StatusDeclined
	if c.entry.Kind != payments.EntryPayout || !unmade {
		return -1
	}
	own := effects(payments.EntryPayout)[2]
	if m := c.messages[own.position-1]; m != nil && !byHand(m) || len(only(c.made(own), object.succeeded)) > 0 {
		return -1
	}
	return slices.IndexFunc(stray, func(o object) bool {
		return o.family() == releases && o.succeeded() && o.Amount == c.entry.Amount && o.Currency == c.entry.Currency
	})
}

func only(objects []object, keep func(object) bool) []object {
	var kept []object
	for _, o := range objects {
		if keep(o) {
			kept = append(kept, o)
		}
	}
	return kept
}

func sides(objects []object) []Side {
	all := make([]Side, len(objects))
	for i, o := range objects {
		all[i] = o.side()
	}
	return all
}
