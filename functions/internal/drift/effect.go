package drift

import (
	"slices"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// rowAgainstProvider compares what one message asked for with what the provider has under its key.
func (j *judging) rowAgainstProvider(e effect) {
	made := j.made(e)
	for _, o := range made {
		if o.Amount != j.entry.Amount || o.Currency != j.entry.Currency {
			j.drift(AmountDiffers, j.row(), o.side())
		}
	}
	moved := only(made, object.succeeded)
	if len(moved) > 1 {
		j.drift(Duplicate, append([]Side{j.row()}, sides(moved)...)...)
	}
	here, reference := j.end(e)
	switch here {
	case payments.StatusSucceeded:
		j.wantSuccess(e, made, moved, reference)
	case payments.StatusDeclined:
		switch {
		case len(moved) > 0:
			j.drift(StateDiffers, append([]Side{j.here(e, here)}, sides(moved)...)...)
		case reference != "" && len(only(made, object.declined)) == 0:
			j.missingThere(e, here, reference)
		}
	case payments.StatusFailed:
		if len(made) > 0 {
			j.drift(StateDiffers, append([]Side{j.here(e, here)}, sides(made)...)...)
		}
	case payments.StatusPending, payments.StatusUnknown: // whatever is there may be
	}
}

func (j *judging) wantSuccess(e effect, made, moved []object, reference string) {
	named := func(o object) bool { return o.ID == reference }
	switch {
	case len(moved) == 0 && len(made) == 0:
		j.missingThere(e, payments.StatusSucceeded, reference)
	case len(moved) == 0:
		j.drift(StateDiffers, append([]Side{j.here(e, payments.StatusSucceeded)}, sides(made)...)...)
	case reference != "" && !slices.ContainsFunc(moved, named):
		j.drift(StateDiffers, append([]Side{j.here(e, payments.StatusSucceeded), {What: "provider reference", ID: reference, State: absent}}, sides(moved)...)...)
	}
}

// missingThere waits until what was made must be listed.
func (j *judging) missingThere(e effect, here payments.Status, reference string) {
	if at, known := j.endedAt(e); known && j.now.Sub(at) < j.grace {
		j.standing = open
		return
	}
	j.drift(MissingThere, j.here(e, here), Side{What: "provider " + string(e.family), ID: reference, State: absent})
}

// endedAt is when the effect's message ended, where anything tells still.
func (j *judging) endedAt(e effect) (time.Time, bool) {
	if m := j.messages[e.position-1]; m != nil && !m.DoneAt.IsZero() {
		return m.DoneAt, true
	}
	if j.record != nil && !j.record.doneAt.IsZero() {
		return j.record.doneAt, true
	}
	return time.Time{}, false
}

// end is how one effect ended here, and the provider's name for it.
func (j *judging) end(e effect) (payments.Status, string) {
	if e == money(j.entry.Kind) { // the row is about this one
		return j.entry.Status, j.entry.ProviderReference
	}
	m, paid := j.messages[e.position-1], j.entry.Status == payments.StatusSucceeded
	switch {
	case m != nil && j.undoes(e.position) && m.State == storage.MessageDelivered:
		return payments.StatusSucceeded, m.Reference
	case m != nil:
		return j.statusBy(m, e.position), m.Reference
	case paid && j.undoes(e.position): // there was nothing to undo
		return payments.StatusFailed, ""
	case paid: // its effects before the money were delivered
		return payments.StatusSucceeded, ""
	}
	return payments.StatusUnknown, ""
}

// here is our side of an effect: the row's where it moves the money, else its message's.
func (j *judging) here(e effect, status payments.Status) Side {
	if e == money(j.entry.Kind) {
		return j.row()
	}
	side := j.message(e.position)
	if side.State == absent {
		side = j.row()
		side.State = string(status)
	}
	return side
}

// made are the objects under the effect's key.
func (j *judging) made(e effect) []object {
	key := j.operation.Message(e.position)
	return only(j.objects, func(o object) bool { return o.family() == e.family && idem.MessageID(o.Key) == key })
}

// strays are objects that name the operation or the entry and that none of its messages asked for. Where money moved twice
// for one intent they are its duplicates.
func (j *judging) strays() {
	own := money(j.entry.Kind)
	stray := j.objects
	for _, e := range effects(j.entry.Kind) {
		asked := j.made(e)
		stray = only(stray, func(o object) bool { return !slices.Contains(asked, o) })
	}
	moved := only(j.made(own), object.succeeded)
	for _, o := range stray {
		if o.family() == own.family && o.succeeded() && len(moved) > 0 {
			j.drift(Duplicate, append(append([]Side{j.row()}, sides(moved)...), o.side())...)
			continue
		}
		j.drift(MissingHere, j.row(), o.side())
	}
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
