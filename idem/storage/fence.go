package storage

import (
	"slices"
	"time"
)

// Fence is the condition of a write on the stored record. One of its alternatives must hold (Revision, States, FreeAt),
// and LeaseBefore too. A fence without an alternative admits nothing, and stores refuse it.
type Fence struct {
	// OperationID is the incarnation that Revision and States are about, so that a holder of an earlier incarnation
	// cannot change a later one.
	OperationID OperationID
	// Revision, where set, admits exactly the row that was seen.
	Revision Revision
	// States, where not empty, admits the holder's own row: Owner, one of these states, and Epoch unless AnyEpoch is set.
	Owner    Owner
	Epoch    int64
	AnyEpoch bool
	States   []State
	// FreeAt, where set, admits no row at all, and one that this release can judge ([Record.Readable]), that is completed,
	// failed or failed_retryable, and free at this instant.
	FreeAt time.Time
	// LeaseBefore, where set, demands as well that the stored lease ends before it, so that a renewal never shortens a
	// lease.
	LeaseBefore time.Time
}

// FenceOf returns the fence that demands the record exactly as it was seen.
func FenceOf(r Record) Fence { return Fence{OperationID: r.OperationID, Revision: r.Revision} }

// FenceOfHolder returns the fence of the execution that holds the record: in one of these states, or without any in the
// record's own.
func FenceOfHolder(r Record, states ...State) Fence {
	if len(states) == 0 {
		states = []State{r.State}
	}
	return Fence{OperationID: r.OperationID, Owner: r.Owner, Epoch: r.Epoch, States: states}
}

// Admits says whether a stored record satisfies the fence.
func (f Fence) Admits(r Record) bool {
	if !f.LeaseBefore.IsZero() && !r.LeaseUntil.Before(f.LeaseBefore) {
		return false
	}
	if !f.FreeAt.IsZero() && r.KeyFree(f.FreeAt) {
		return true
	}
	if r.OperationID != f.OperationID {
		return false
	}
	return f.Revision != "" && r.Revision == f.Revision ||
		slices.Contains(f.States, r.State) && r.Owner == f.Owner && (f.AnyEpoch || r.Epoch == f.Epoch)
}

// AdmitsAbsence says whether the fence is satisfied where no record is stored.
func (f Fence) AdmitsAbsence() bool { return !f.FreeAt.IsZero() }
