package idem

import (
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// This file translates between records and the headers of package protocol. Package translation does so for messages.

// recordStates and recordKinds are the names of the protocol's states and kinds, by their number.
var (
	recordStates = []storage.State{"", storage.StateInProgress, storage.StatePending, storage.StateCompleted, storage.StateFailed, storage.StateFailedRetryable, storage.StateUnknown}
	recordKinds  = []Kind{"", KindAtomic, KindOptimistic, KindDeferred, KindWrapped}
)

// operationOf is the operation id of an incarnation of the record's scope; "" where there is none.
func operationOf(key storage.RecordKey, incarnation protocol.ID) OperationID {
	if incarnation.None() {
		return ""
	}
	id, _ := key.Operation(incarnation) // of a key that is none there is no id
	return id
}

// headerOf is what package protocol judges of a record, or an [*UnreadableError].
func headerOf(r *storage.Record) (protocol.Record, error) {
	op, err := r.OperationID.Incarnation()
	owner, owned := storage.Bits(r.Owner)
	revision, revised := storage.Bits(r.Revision)
	if !r.Readable() || err != nil || !owned || !revised || r.Epoch < 0 || r.Epoch > 1<<32-1 {
		return protocol.Record{}, &UnreadableError{r.SchemaVersion, r.State, r.Kind}
	}
	return protocol.Record{
		State: protocol.State(slices.Index(recordStates, r.State)), Kind: protocol.Kind(slices.Index(recordKinds, r.Kind)),
		Safe: r.SafeToRunAgain, Observed: r.Observed, RecordOnly: r.RecordOnly, Tombstone: r.Expiry.Gone, Epoch: uint32(r.Epoch),
		Op: op, Owner: owner, Revision: revision,
		Lease: translation.InstantOf(r.LeaseUntil), Expires: translation.InstantOf(r.ExpiresAt), Free: translation.InstantOf(r.FreeAt),
		Retention: translation.MillisOf(r.Retention),
	}, nil
}

// withHeader is the row as a header has it. What a header does not know stays as it is, the response too.
func withHeader(r storage.Record, h protocol.Record) storage.Record {
	r.State, r.Kind, r.SafeToRunAgain, r.Observed, r.RecordOnly = recordStates[h.State], recordKinds[h.Kind], h.Safe, h.Observed, h.RecordOnly
	if h.State == protocol.InProgress && int64(h.Epoch) > r.Epoch {
		r.Attempts++
	}
	r.Epoch, r.Owner, r.Revision = int64(h.Epoch), storage.NameOf[storage.Owner](h.Owner), storage.NameOf[storage.Revision](h.Revision)
	r.LeaseUntil, r.ExpiresAt, r.FreeAt, r.LookAt = translation.TimeOf(h.Lease), translation.TimeOf(h.Expires), translation.TimeOf(h.Free), time.Time{}
	return r
}

// lifeOf is how long a record answers that ends with this status.
func lifeOf(retention time.Duration, e storage.Expiry, status int) protocol.Life {
	life := protocol.Life{Retention: translation.MillisOf(retention), Endless: e.ResourceBacked && status >= 200 && status <= 299}
	if e.Gone {
		life.Held = translation.MillisOf(e.KeepFor)
	}
	return life
}

// fenceOf is a fence on the record, of whose incarnation it speaks where it speaks of one.
func fenceOf(r *storage.Record, f protocol.Fence) storage.Fence {
	fence := storage.Fence{
		Revision: storage.NameOf[storage.Revision](f.Seen), Owner: storage.NameOf[storage.Owner](f.Owner),
		Epoch: int64(f.Epoch), AnyEpoch: f.AnyEpoch, FreeAt: translation.TimeOf(f.Free), LeaseBefore: translation.TimeOf(f.LeaseBelow),
	}
	if !f.Op.None() {
		fence.OperationID = r.OperationID
	}
	for code, state := range recordStates {
		if f.States&(1<<code) != 0 {
			fence.States = append(fence.States, state)
		}
	}
	return fence
}

// messageHeaderOf is what package protocol judges of a message; what this release can't read is none.
func messageHeaderOf(m *storage.Message) protocol.Message {
	if !m.Readable() {
		return protocol.Message{}
	}
	return translation.HeaderOf(m)
}
