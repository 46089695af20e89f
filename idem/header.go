package idem

import (
	"math"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// This file alone translates between rows, which hold everything, and the headers of package protocol, which hold what is
// judged.

// recordStates, recordKinds and messageStates are the names of the protocol's states and kinds, by their number.
var (
	recordStates  = []storage.State{"", storage.StateInProgress, storage.StatePending, storage.StateCompleted, storage.StateFailed, storage.StateFailedRetryable, storage.StateUnknown}
	recordKinds   = []Kind{"", KindAtomic, KindOptimistic, KindDeferred, KindWrapped}
	messageStates = []storage.MessageState{
		"", storage.MessagePending, storage.MessageClaimed, storage.MessageDelivered, storage.MessageDeclined, storage.MessageUnknown, storage.MessageEvidenced, storage.MessageDead, storage.MessageCancelled,
	}
)

func instantOf(t time.Time) protocol.Instant {
	if t.IsZero() {
		return 0
	}
	return protocol.Instant(t.UnixMilli())
}

func timeOf(i protocol.Instant) time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(i)).UTC()
}

func millisOf(d time.Duration) protocol.Millis { return protocol.Millis(d.Milliseconds()) }

func spanOf(m protocol.Millis) time.Duration { return time.Duration(m) * time.Millisecond }

// headerOf is what package protocol judges of a record, or an [*UnreadableError].
func headerOf(r *storage.Record) (protocol.Record, error) {
	op, ok := r.OperationID.Incarnation()
	owner, owned := storage.Bits(r.Owner)
	revision, revised := storage.Bits(r.Revision)
	if !r.Readable() || !ok || !owned || !revised || r.Epoch < 0 || r.Epoch > 1<<32-1 {
		return protocol.Record{}, &UnreadableError{r.SchemaVersion, r.State, r.Kind}
	}
	return protocol.Record{
		State: protocol.State(slices.Index(recordStates, r.State)), Kind: protocol.Kind(slices.Index(recordKinds, r.Kind)),
		Safe: r.SafeToRunAgain, Alone: r.Alone, Tombstone: r.Expiry.Gone, Epoch: uint32(r.Epoch),
		Op: op, Owner: owner, Revision: revision,
		Lease: instantOf(r.LeaseUntil), Expires: instantOf(r.ExpiresAt), Free: instantOf(r.FreeAt),
	}, nil
}

// withHeader is the row as a header has it. What a header does not know stays as it is, the response too.
func withHeader(r storage.Record, h protocol.Record) storage.Record {
	r.State, r.Kind, r.SafeToRunAgain, r.Alone = recordStates[h.State], recordKinds[h.Kind], h.Safe, h.Alone
	if h.State == protocol.InProgress && int64(h.Epoch) > r.Epoch {
		r.Attempts++
	}
	r.Epoch, r.Owner, r.Revision = int64(h.Epoch), storage.NameOf[storage.Owner](h.Owner), storage.NameOf[storage.Revision](h.Revision)
	r.LeaseUntil, r.ExpiresAt, r.FreeAt, r.LookAt = timeOf(h.Lease), timeOf(h.Expires), timeOf(h.Free), time.Time{}
	return r
}

// lifeOf is how long a record answers that ends with this status.
func lifeOf(retention time.Duration, e storage.Expiry, status int) protocol.Life {
	life := protocol.Life{Retention: millisOf(retention), Endless: e.ResourceBacked && status >= 200 && status <= 299}
	if e.Gone {
		life.Held = millisOf(e.KeepFor)
	}
	return life
}

// fenceOf is a fence on the record, of whose incarnation it speaks where it speaks of one.
func fenceOf(r *storage.Record, f protocol.Fence) storage.Fence {
	fence := storage.Fence{
		Revision: storage.NameOf[storage.Revision](f.Seen), Owner: storage.NameOf[storage.Owner](f.Owner),
		Epoch: int64(f.Epoch), AnyEpoch: f.AnyEpoch, FreeAt: timeOf(f.Free), LeaseBefore: timeOf(f.LeaseBelow),
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
	state := slices.Index(messageStates, m.State)
	op, ok := m.OperationID.Incarnation()
	owner, owned := storage.Bits(m.Owner)
	revision, revised := storage.Bits(m.Revision)
	if !m.Readable() || state < 0 || !ok || !owned || !revised {
		return protocol.Message{}
	}
	return protocol.Message{
		State: protocol.MessageState(state), Index: uint8(min(m.Index, math.MaxUint8)), Epoch: uint32(m.Epoch),
		Op: op, Owner: owner, Revision: revision, Lease: instantOf(m.LeaseUntil), OpenSince: instantOf(m.OpenSince),
	}
}
