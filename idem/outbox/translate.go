package outbox

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math"
	"time"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A machine judges headers. The driver holds the whole row beside it, and writes the header that a machine returns over
// that row: attributes that the machine does not know stay as they are.

const idBytes = 16

// idOf reads an owner, a revision or an operation id. What is not a name of 128 bits counts by its hash.
func idOf[Name ~string](name Name) protocol.ID {
	if name == "" {
		return protocol.ID{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(string(name))
	if err != nil || len(raw) != idBytes {
		sum := sha256.Sum256([]byte(name))
		raw = sum[:idBytes]
	}
	return protocol.ID{binary.BigEndian.Uint64(raw), binary.BigEndian.Uint64(raw[8:])}
}

// nameOf is the name that idOf reads.
func nameOf[Name ~string](id protocol.ID) Name {
	if id.None() {
		return ""
	}
	raw := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, id[0]), id[1])
	return Name(base64.RawURLEncoding.EncodeToString(raw))
}

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

func millis(d time.Duration) protocol.Millis { return protocol.Millis(d.Milliseconds()) }

// small bounds a count that a header keeps in a byte. What is more is over every bound that can be configured.
func small(n int) uint8 { return uint8(min(max(n, 0), math.MaxUint8)) }

var stateNames = map[protocol.MessageState]storage.MessageState{
	protocol.Due: storage.MessagePending, protocol.Claimed: storage.MessageClaimed, protocol.Delivered: storage.MessageDelivered,
	protocol.Declined: storage.MessageDeclined, protocol.InDoubt: storage.MessageUnknown, protocol.Evidenced: storage.MessageEvidenced,
	protocol.Dead: storage.MessageDead, protocol.Cancelled: storage.MessageCancelled,
}

var statesByName = func() map[storage.MessageState]protocol.MessageState {
	states := map[storage.MessageState]protocol.MessageState{}
	for state, name := range stateNames {
		states[name] = state
	}
	return states
}()

// headerOf is what a machine judges of a message; nil is no message.
func headerOf(m *storage.Message) protocol.Message {
	if m == nil {
		return protocol.Message{}
	}
	h := protocol.Message{
		State: statesByName[m.State], Index: small(m.Index), Detached: m.Detached, Undoes: m.Undoes, Sealed: m.Sealed,
		Refused: m.Refused, Unfailed: m.Unfailed, Ended: !m.RemoveAt.IsZero(), Attempts: small(m.Attempts), Died: small(m.Died),
		Epoch: uint32(m.Epoch), Op: idOf(m.OperationID), Owner: idOf(m.Owner), Revision: idOf(m.Revision),
		Created: instantOf(m.CreatedAt), FirstClaimed: instantOf(m.FirstClaimedAt), NextAttempt: instantOf(m.NextAttemptAt),
		LookAt: instantOf(m.SweepAt), Lease: instantOf(m.LeaseUntil), OpenSince: instantOf(m.OpenSince),
		Done: instantOf(m.DoneAt), Cleared: instantOf(m.ClearedAt), Redriven: instantOf(m.RedrivenAt),
	}
	if m.KeptDelivered != nil {
		h.Kept |= protocol.KeptDelivered
	}
	if m.KeptDeclined != nil {
		h.Kept |= protocol.KeptDeclined
	}
	return h
}

// withHeader is the row under a header that a machine returned. What identifies a message, its evidence and its ttl are not
// the header's to change.
func withHeader(m storage.Message, h protocol.Message) storage.Message {
	m.State, m.Undoes, m.Refused, m.Unfailed = stateNames[h.State], h.Undoes, h.Refused, h.Unfailed
	m.Attempts, m.Died, m.Epoch = int(h.Attempts), int(h.Died), int64(h.Epoch)
	if h.Owner != idOf(m.Owner) {
		m.Owner = nameOf[storage.Owner](h.Owner)
	}
	m.Revision = nameOf[storage.Revision](h.Revision)
	m.CreatedAt, m.FirstClaimedAt, m.NextAttemptAt = timeOf(h.Created), timeOf(h.FirstClaimed), timeOf(h.NextAttempt)
	m.SweepAt, m.LeaseUntil, m.OpenSince = timeOf(h.LookAt), timeOf(h.Lease), timeOf(h.OpenSince)
	m.DoneAt, m.ClearedAt, m.RedrivenAt = timeOf(h.Done), timeOf(h.Cleared), timeOf(h.Redriven)
	return m
}

// fenceOn is a machine's fence on this row.
func fenceOn(m storage.Message, f protocol.Fence) storage.MessageFence {
	fence := storage.MessageFence{Open: f.Open, NotDead: f.NotDead}
	switch {
	case f.Seen.None():
	case f.Seen == idOf(m.Revision):
		fence.Revision = m.Revision
	default:
		fence.Revision = nameOf[storage.Revision](f.Seen)
	}
	if f.States == 0 {
		return fence
	}
	for state := protocol.Due; state <= protocol.Cancelled; state++ {
		if f.States&(1<<state) != 0 {
			fence.States = append(fence.States, stateNames[state])
		}
	}
	if fence.Epoch = int64(f.Epoch); f.Owner == idOf(m.Owner) {
		fence.Owner = m.Owner
	} else {
		fence.Owner = nameOf[storage.Owner](f.Owner)
	}
	return fence
}

// outcomeOf is what an outcome means to a machine.
func outcomeOf(o Outcome) protocol.Outcome {
	switch o := o.(type) {
	case Delivered:
		return protocol.OutDelivered
	case Declined:
		return protocol.OutDeclined
	case NotExecuted:
		if o.Unsent {
			return protocol.OutUncalled
		}
		return protocol.OutNotExecuted
	case Refused:
		if o.Unproven {
			return protocol.OutRefusedOpen
		}
		return protocol.OutRefused
	}
	return protocol.OutAmbiguous
}

// findingOf is what a finding means to a machine.
func findingOf(f Finding) protocol.Outcome {
	switch f := f.(type) {
	case Found:
		return outcomeOf(f.Outcome)
	case Absent:
		return protocol.OutAbsent
	}
	return protocol.OutUnclear
}
