package outbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// prepare freezes a write, and returns what sends it.
func (x *delivery) prepare(w protocol.Write) (func(context.Context) error, error) {
	fence := translation.FenceOn(x.row, w.MsgIf)
	switch {
	case w.MsgAs == protocol.Postpone:
		id, at := x.id, translation.TimeOf(w.Msg.LookAt)
		if at.Equal(x.row.SweepAt) { // it stands there already
			return func(context.Context) error { return nil }, nil
		}
		return func(ctx context.Context) error { return x.store.PostponeMessage(ctx, id, at, fence) }, nil
	case w.MsgAs == protocol.Put && w.RecAs == protocol.Leave:
		next := x.written(w)
		return func(ctx context.Context) error { return x.store.UpdateMessage(ctx, next, fence) }, nil
	}
	s, err := x.settlement(w, fence)
	if err != nil {
		return nil, &unpreparedError{err}
	}
	if w.MsgAs == protocol.Patch && s.Record == nil && s.Check == nil && s.Next == nil && len(s.Writes) == 0 {
		end := s.Message
		return func(ctx context.Context) error { return x.store.PatchMessage(ctx, end, fence) }, nil
	}
	return x.transaction(s)
}

// transaction freezes a settlement. One whose response is larger than the store takes is settled with the topic's short one:
// the effect has happened.
func (x *delivery) transaction(s storage.Settlement) (func(context.Context) error, error) {
	send, err := x.store.PrepareSettle(s)
	if errors.Is(err, idem.ErrResponseTooLarge) && s.Record != nil {
		s.Record.Response = x.short(x.meant, s.Record.Response.Status)
		send, err = x.store.PrepareSettle(s)
	}
	switch {
	case errors.Is(err, storage.ErrContention): // something was in the way; nothing is wrong with the settlement
		return nil, err
	case err != nil:
		return nil, &unpreparedError{err}
	}
	if x.end = s.Record; s.Next != nil {
		x.next = *s.Next
	}
	return send, nil
}

// unpreparedError: the transaction can't be built, now or later.
type unpreparedError struct{ cause error }

func (e *unpreparedError) Error() string {
	return fmt.Sprintf("outbox: prepare settlement: %v", e.cause)
}
func (e *unpreparedError) Unwrap() error { return e.cause }

// written is the row as a write makes it.
func (x *delivery) written(w protocol.Write) storage.Message {
	next := translation.WithHeader(x.row, w.Msg)
	switch {
	case x.machine.Errand == protocol.Redrive:
		next.LastOutcome = ""
	case w.Msg.Unfailed:
		next.LastOutcome = outcomeUnfailed
	case x.finding != nil:
		next.LastOutcome = nameOfFinding(x.finding)
	case x.called && x.outcome != nil && w.Msg.State != protocol.Claimed:
		next.LastOutcome = x.outcome.Name()
	}
	if w.Msg.State.Final() {
		next.SettledBy = x.settler()
	}
	return next
}

// settlement is the transaction of a write.
func (x *delivery) settlement(w protocol.Write, fence storage.MessageFence) (storage.Settlement, error) {
	s := storage.Settlement{Message: x.messageEnd(w), Fence: fence, Token: tokenOf(w.Token)}
	if w.MsgAs == protocol.Put {
		next := x.written(w)
		s.Replace = &next
	}
	if w.RecAs == protocol.Check {
		s.Check = &storage.RecordCheck{Key: x.row.RecordKey, OperationID: x.row.OperationID, Ended: w.RecIf.Ended}
	}
	said := Settlement{}
	if w.Said != protocol.NotAsked && !x.row.Sealed {
		said = x.said
	}
	s.Writes = said.Writes
	if w.Next.State != protocol.NoMessage {
		s.Next = x.following(*said.Next, w.Next)
	}
	now := x.now()
	lasting := x.row.Expiry
	if w.RecAs == protocol.Check && w.RecIf.Ended { // a record that ended before its message has failed, unless a loss mixed two instants, and expires
		lasting.ResourceBacked = false
	}
	expires := lasting.At(now, x.row.Retention, http.StatusOK)
	if w.RecAs == protocol.End {
		s.Record = x.recordEnd(w, said, now)
		expires = s.Record.ExpiresAt
	}
	if w.Msg.Ended {
		s.Message.RemoveAt = x.row.RemovedAfter(expires)
		for n := 1; n <= int(w.Earlier) && !s.Message.RemoveAt.IsZero(); n++ {
			s.Earlier = append(s.Earlier, x.row.OperationID.Message(n))
		}
	}
	return s, nil
}

// messageEnd is what a patch changes of the row.
func (x *delivery) messageEnd(w protocol.Write) storage.MessageEnd {
	end := storage.MessageEnd{
		ID: x.id, Tenant: x.row.Tenant, Topic: x.row.Topic, Sealed: x.row.Sealed, State: translation.StateOf(w.Msg.State), Revision: storage.NameOf[storage.Revision](w.Msg.Revision),
		DoneAt: translation.TimeOf(w.Msg.Done), SweepAt: translation.TimeOf(w.Msg.LookAt), Reference: x.row.Reference, LastOutcome: x.row.LastOutcome,
		Unfailed: w.Msg.Unfailed,
	}
	var o Outcome
	switch {
	case w.Msg.State == protocol.Delivered || w.Msg.State == protocol.Declined, w.Msg.Kept != 0:
		if o = x.evidence(); w.Msg.State.Final() || w.Msg.State == protocol.Evidenced || x.machine.Alarms&protocol.AlarmUnsettled != 0 {
			end.Reference, end.LastOutcome = referenceOf(o), o.Name()
		}
	}
	if w.Msg.State.Final() {
		end.SettledBy = x.settler()
	}
	switch w.Msg.Kept {
	case protocol.KeptDelivered:
		end.KeptDelivered = keptOf(o)
	case protocol.KeptDeclined:
		end.KeptDeclined = keptOf(o)
	}
	return end
}

// settler is who ends the message, if this delivery does.
func (x *delivery) settler() storage.Settler {
	if x.machine.Onward { // within a request, whatever it found
		return storage.SettledByInline
	}
	return settlers[x.machine.Errand]
}

// settlers are who comes to a message on an errand.
var settlers = map[protocol.MessageErrand]storage.Settler{
	protocol.Wake: storage.SettledByWorker, protocol.Carry: storage.SettledByInline, protocol.Offer: storage.SettledBySweep,
	protocol.Remind: storage.SettledBySweep, protocol.Question: storage.SettledByReconciler, protocol.Tidings: storage.SettledByWebhook,
	protocol.Judgement: storage.SettledByOperator, protocol.Close: storage.SettledByOperator, protocol.Redrive: storage.SettledByOperator,
}

// recordEnd is what the end of a chain makes of its record: the topic's own answer, or the outbox's where nothing happened,
// or where nobody can tell any more what did.
func (x *delivery) recordEnd(w protocol.Write, said Settlement, now time.Time) *storage.RecordEnd {
	m := x.row
	end := &storage.RecordEnd{
		Key: m.RecordKey, OperationID: m.OperationID, State: storage.StateCompleted, Revision: storage.NameOf[storage.Revision](w.Rec.Revision),
		DoneAt: now, Expiry: m.Expiry,
	}
	answer := idem.Problem{}
	switch {
	case w.Msg.State == protocol.Dead || w.Msg.State == protocol.Cancelled: // nothing happened, told by the topic or not
		answer = answerOf(m, w.Msg.State, x.machine.Errand == protocol.Close)
	case m.Sealed:
		answer = erased()
	case x.checkSize(said.Response) != nil:
		end.Response = x.short(w.Said, said.Response.Status)
	default:
		end.Response = said.Response
	}
	if w.Rec.State == protocol.Failed {
		end.State, end.LastError = storage.StateFailed, "undone"
	}
	if answer.Code != "" {
		end.Response, end.LastError = answer.Response(), answer.Code
	}
	lasting := m.Expiry
	if end.State == storage.StateFailed { // only what was done lives as long as its resource, whatever the answer's status
		lasting.ResourceBacked = false
	}
	end.ExpiresAt = lasting.At(now, m.Retention, end.Response.Status)
	if end.FreeAt = m.Expiry.FreeAt(end.ExpiresAt); !end.FreeAt.IsZero() { // and on every clock
		end.FreeAt = end.FreeAt.Add(x.cfg.ClockSkew)
	}
	return end
}

// checkSize says why a final response can't be stored, or does not get to the request's caller: every retry would get no more than the
// request did.
func (x *delivery) checkSize(r idem.Response) error {
	return r.CheckSize(min(x.topic.ResponseBytesMax, x.front.Bytes), x.front.HeaderBytes)
}

// short is the response that is stored where the topic's own is too large.
func (x *delivery) short(asked protocol.Asked, status int) idem.Response {
	return x.topic.short(x.row, x.meaning(asked), status, x.checkSize)
}

// following is the next message of a chain. Its id is the next phase's downstream key.
func (x *delivery) following(next Next, h protocol.Message) *storage.Message {
	m := x.row
	return new(translation.WithHeader(storage.Message{
		ID: m.OperationID.Message(int(h.Index)), Index: int(h.Index), OperationID: m.OperationID, RecordKey: m.RecordKey, Tenant: m.Tenant,
		Topic: next.Topic, Payload: next.Payload, Retention: m.Retention, Expiry: m.Expiry, Trace: x.position(), SchemaVersion: storage.SchemaVersion,
	}, h))
}
