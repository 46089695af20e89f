package translation

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// messageStates are the names of the protocol's states, by their number.
var messageStates = []storage.MessageState{
	"", storage.MessagePending, storage.MessageClaimed, storage.MessageDelivered, storage.MessageDeclined, storage.MessageUnknown,
	storage.MessageEvidenced, storage.MessageDead, storage.MessageCancelled,
}

// StateOf is the name of a message's state.
func StateOf(s protocol.MessageState) storage.MessageState { return messageStates[s] }

// IDOf reads an owner or a revision. What is not a name of 128 bits counts by its hash.
func IDOf[Name ~string](name Name) protocol.ID {
	if id, ok := storage.Bits(name); ok {
		return id
	}
	return hashOf(string(name))
}

func incarnationOf(id storage.OperationID) protocol.ID {
	if incarnation, err := id.Incarnation(); err == nil || id == "" {
		return incarnation
	}
	return hashOf(string(id))
}

func hashOf(name string) protocol.ID {
	sum := sha256.Sum256([]byte(name))
	return protocol.ID{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}
}

// small bounds a count that a header keeps in a byte. What is more is over every bound that can be configured.
func small(n int) uint8 { return uint8(min(max(n, 0), math.MaxUint8)) }

// HeaderOf is what a machine judges of a message; nil is no message.
func HeaderOf(m *storage.Message) protocol.Message {
	if m == nil {
		return protocol.Message{}
	}
	h := protocol.Message{
		State: protocol.MessageState(max(0, slices.Index(messageStates, m.State))), Index: small(m.Index),
		Detached: m.Detached, Undoes: m.Undoes, Sealed: m.Sealed, Refused: m.Refused, Unfailed: m.Unfailed, Ended: !m.RemoveAt.IsZero(),
		Attempts: small(m.Attempts), Died: small(m.Died),
		Epoch: uint32(m.Epoch), Op: incarnationOf(m.OperationID), Owner: IDOf(m.Owner), Revision: IDOf(m.Revision),
		Created: InstantOf(m.CreatedAt), FirstClaimed: InstantOf(m.FirstClaimedAt), NextAttempt: InstantOf(m.NextAttemptAt),
		LookAt: InstantOf(m.SweepAt), Lease: InstantOf(m.LeaseUntil), OpenSince: InstantOf(m.OpenSince),
		Done: InstantOf(m.DoneAt), Cleared: InstantOf(m.ClearedAt), Redriven: InstantOf(m.RedrivenAt),
	}
	if m.KeptDelivered != nil {
		h.Kept |= protocol.KeptDelivered
	}
	if m.KeptDeclined != nil {
		h.Kept |= protocol.KeptDeclined
	}
	if m.EvidenceRefused {
		return withoutEvidence(h)
	}
	return h
}

// withoutEvidence is a message of which nobody knows what the provider did: what it keeps says nothing. One that would be settled by
// that is as a claim whose worker died: since it was created at the latest a call may be open, and none may follow. As nobody can open
// it, it is buried, and a person decides.
func withoutEvidence(h protocol.Message) protocol.Message {
	h.Kept = 0
	if h.State != protocol.Evidenced {
		return h
	}
	h.State, h.Lease = protocol.Claimed, max(h.Lease, h.LookAt)
	if h.OpenSince == 0 {
		h.OpenSince = h.Created
	}
	return h
}

// WithHeader is the row under a header that a machine returned. What identifies a message, its evidence and its ttl are not
// the header's to change.
func WithHeader(m storage.Message, h protocol.Message) storage.Message {
	m.State, m.Undoes, m.Refused, m.Unfailed = StateOf(h.State), h.Undoes, h.Refused, h.Unfailed
	m.Attempts, m.Died, m.Epoch = int(h.Attempts), int(h.Died), int64(h.Epoch)
	m.Owner, m.Revision = nameIn(m.Owner, h.Owner), nameIn(m.Revision, h.Revision)
	m.CreatedAt, m.FirstClaimedAt, m.NextAttemptAt = TimeOf(h.Created), TimeOf(h.FirstClaimed), TimeOf(h.NextAttempt)
	m.SweepAt, m.LeaseUntil, m.OpenSince = TimeOf(h.LookAt), TimeOf(h.Lease), TimeOf(h.OpenSince)
	m.DoneAt, m.ClearedAt, m.RedrivenAt = TimeOf(h.Done), TimeOf(h.Cleared), TimeOf(h.Redriven)
	return m
}

// nameIn is the name of an id: the row's own where the id was read from there, which counts by its hash where it is no name
// of 128 bits.
func nameIn[Name ~string](own Name, id protocol.ID) Name {
	if id == IDOf(own) {
		return own
	}
	return storage.NameOf[Name](id)
}

// FenceOn is a machine's fence on this row.
func FenceOn(m storage.Message, f protocol.Fence) storage.MessageFence {
	fence := storage.MessageFence{Open: f.Open, NotDead: f.NotDead}
	if !f.Seen.None() {
		fence.Revision = nameIn(m.Revision, f.Seen)
	}
	if f.States == 0 {
		return fence
	}
	for state := protocol.Due; state <= protocol.Cancelled; state++ {
		if f.States&(1<<state) != 0 {
			fence.States = append(fence.States, StateOf(state))
		}
	}
	fence.Owner, fence.Epoch = nameIn(m.Owner, f.Owner), int64(f.Epoch)
	return fence
}
