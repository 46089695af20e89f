package idem

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/protocol"
)

// This file alone translates between rows, which hold everything, and the headers of package protocol, which hold what is
// judged.

// recordStates, recordKinds and messageStates are the names of the protocol's states and kinds, by their number.
var (
	recordStates  = []State{"", StateInProgress, StatePending, StateCompleted, StateFailed, StateFailedRetryable, StateUnknown}
	recordKinds   = []Kind{"", KindAtomic, KindOptimistic, KindDeferred, KindWrapped}
	messageStates = []MessageState{
		"", MessagePending, MessageClaimed, MessageDelivered, MessageDeclined, MessageUnknown, MessageEvidenced, MessageDead, MessageCancelled,
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

// textOf is the text of an owner or a revision: "" where there is none.
func textOf(id protocol.ID) string {
	if id.None() {
		return ""
	}
	raw := bytesOf(id)
	var text [(randomBytes*4 + 2) / 3]byte
	base64.RawURLEncoding.Encode(text[:], raw[:])
	return string(text[:])
}

func bytesOf(id protocol.ID) (raw [randomBytes]byte) {
	binary.BigEndian.PutUint64(raw[:8], id[0])
	binary.BigEndian.PutUint64(raw[8:], id[1])
	return raw
}

func idFrom(raw []byte) protocol.ID {
	return protocol.ID{binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:randomBytes])}
}

// idOf reads an owner or a revision; "" is none.
func idOf[T ~string](text T) (protocol.ID, bool) {
	if text == "" {
		return protocol.ID{}, true
	}
	var raw [randomBytes + 2]byte
	if base64.RawURLEncoding.DecodedLen(len(text)) != randomBytes {
		return protocol.ID{}, false
	}
	_, err := base64.RawURLEncoding.Decode(raw[:], []byte(text))
	return idFrom(raw[:]), err == nil
}

// operationIDOf is the operation id of an incarnation of the record's scope.
func operationIDOf(key RecordKey, incarnation protocol.ID) OperationID {
	if incarnation.None() {
		return ""
	}
	var raw [operationIDBytes + 2]byte
	if n, err := base64.RawURLEncoding.Decode(raw[:], []byte(key)); err != nil || n != recordKeyBytes {
		return ""
	}
	random := bytesOf(incarnation)
	copy(raw[recordKeyBytes:], random[:])
	var text [len(operationPrefix) + operationIDBytes*4/3]byte
	copy(text[:], operationPrefix)
	base64.RawURLEncoding.Encode(text[len(operationPrefix):], raw[:operationIDBytes])
	return OperationID(text[:])
}

// incarnationOf is the random part of an operation id.
func incarnationOf(id OperationID) (protocol.ID, bool) {
	const text = len(operationPrefix) + (operationIDBytes*4+2)/3
	if len(id) != text {
		return protocol.ID{}, false
	}
	var raw [operationIDBytes]byte
	if _, err := base64.RawURLEncoding.Decode(raw[:], []byte(id[len(operationPrefix):])); err != nil {
		return protocol.ID{}, false
	}
	return idFrom(raw[recordKeyBytes:]), true
}

// headerOf is what package protocol judges of a record, or an [*UnreadableError].
func headerOf(r *Record) (protocol.Record, error) {
	op, ok := incarnationOf(r.OperationID)
	owner, owned := idOf(r.Owner)
	revision, revised := idOf(r.Revision)
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
func (r Record) withHeader(h protocol.Record) Record {
	r.State, r.Kind, r.SafeToRunAgain, r.Alone = recordStates[h.State], recordKinds[h.Kind], h.Safe, h.Alone
	if h.State == protocol.InProgress && int64(h.Epoch) > r.Epoch {
		r.Attempts++
	}
	r.Epoch, r.Owner, r.Revision = int64(h.Epoch), Owner(textOf(h.Owner)), Revision(textOf(h.Revision))
	r.LeaseUntil, r.ExpiresAt, r.FreeAt, r.LookAt = timeOf(h.Lease), timeOf(h.Expires), timeOf(h.Free), time.Time{}
	return r
}

// lifeOf is how long a record answers that ends with this status.
func lifeOf(retention time.Duration, e Expiry, status int) protocol.Life {
	life := protocol.Life{Retention: millisOf(retention), Endless: e.ResourceBacked && status >= 200 && status <= 299}
	if e.Gone {
		life.Held = millisOf(e.KeepFor)
	}
	return life
}

// fenceOf is a fence on the record, of whose incarnation it speaks where it speaks of one.
func fenceOf(r *Record, f protocol.Fence) Fence {
	fence := Fence{
		Revision: Revision(textOf(f.Seen)), Owner: Owner(textOf(f.Owner)),
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
func messageHeaderOf(m *Message) protocol.Message {
	state := slices.Index(messageStates, m.State)
	op, ok := incarnationOf(m.OperationID)
	owner, owned := idOf(m.Owner)
	revision, revised := idOf(m.Revision)
	if !m.Readable() || state < 0 || !ok || !owned || !revised {
		return protocol.Message{}
	}
	return protocol.Message{
		State: protocol.MessageState(state), Index: uint8(min(m.Index, chainLengthMax)), Epoch: uint32(m.Epoch),
		Op: op, Owner: owner, Revision: revision, Lease: instantOf(m.LeaseUntil), OpenSince: instantOf(m.OpenSince),
	}
}
