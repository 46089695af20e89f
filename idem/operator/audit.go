package operator

import (
	"context"
	"time"
)

// EntryState says how far a change came.
type EntryState string

// The states of an audit entry. One that stays intended was begun by somebody who died: what it is about tells whether it
// happened.
const (
	EntryIntended EntryState = "intended"
	EntryDone     EntryState = "done"
	// EntryRefused: the fence, or the contract, did not admit it, and nothing changed.
	EntryRefused EntryState = "refused"
	// EntryFailed: an error that may have come after the change.
	EntryFailed EntryState = "failed"
)

// Entry is one change in the audit log.
type Entry struct {
	// ID is random.
	ID string `json:"id"`
	// At is when the change was about to be tried.
	At time.Time `json:"at"`
	// Actor is who did it, as the caller says.
	Actor string `json:"actor"`
	// Action is what was to be done.
	Action string `json:"action"`
	// Subject is the operation or message that was changed, or the queue.
	Subject string `json:"subject"`
	// Tenant is whose operation was changed; empty where the change is not about one tenant.
	Tenant string `json:"tenant,omitempty"`
	// Reason is why, in the actor's words.
	Reason string `json:"reason"`
	// Seen is what the actor saw before.
	Seen string `json:"seen,omitempty"`
	// State says what became of the change; EntryIntended until it has ended.
	State EntryState `json:"state"`
	// Outcome is what came of it, or why nothing did.
	Outcome string `json:"outcome,omitempty"`
	// DoneAt is when the change ended; zero until then.
	DoneAt time.Time `json:"done_at,omitzero"`
}

// AuditLog keeps entries. It is append-only: an entry is begun once and ended once.
type AuditLog interface {
	// Begin writes an entry that is intended. An error means that nothing may be changed.
	Begin(ctx context.Context, e Entry) error
	// End writes State, Outcome and DoneAt of an entry that was begun and not ended.
	End(ctx context.Context, e Entry) error
	// Entries returns those of a span of time, from inclusive and to not, newest first, at most limit of them; only those
	// whose subject begins so: an operation's id begins those of its messages.
	Entries(ctx context.Context, from, to time.Time, subject string, limit int) ([]Entry, error)
}
