package outbox

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

const (
	levelInfo  = slog.LevelInfo
	levelWarn  = slog.LevelWarn
	levelError = slog.LevelError
)

// take takes what a write has made of the message. stored is the row where a sending found its own write; nil where it is known to have
// happened just now.
func (x *delivery) take(w protocol.Write, stored *storage.Message) {
	switch {
	case stored != nil:
		x.row = *stored
	case w.MsgAs == protocol.Put:
		x.row = x.written(w)
	case w.MsgAs == protocol.Patch:
		x.patched(x.messageEnd(w))
	case w.MsgAs == protocol.Postpone:
		x.row.SweepAt = translation.TimeOf(w.Msg.LookAt)
	}
	if x.end != nil {
		x.ended = x.end
	}
}

// landed is take, and lets logs and queues know.
func (x *delivery) landed(ctx context.Context, w protocol.Write, stored *storage.Message) {
	x.take(w, stored)
	switch m := x.row; {
	case w.MsgAs == protocol.Put && x.machine.Errand == protocol.Redrive:
		x.alarm(ctx, "outbox.redriven", m)
	case w.MsgAs == protocol.Put && m.State == storage.MessageUnknown:
		x.alarm(ctx, "outbox.unknown", m, "last_outcome", m.LastOutcome)
	case w.MsgAs == protocol.Put && x.machine.Errand == protocol.Question && m.State == storage.MessagePending:
		x.log(ctx, levelInfo, "idempotency.reconcile.resolved", m, "outcome", outcomeAbsent)
	case w.MsgAs == protocol.Patch:
		x.finished(ctx, w)
	}
}

// patched is the row after a patch.
func (x *delivery) patched(end storage.MessageEnd) {
	m := &x.row
	m.State, m.Revision, m.DoneAt, m.SweepAt, m.Reference, m.LastOutcome = end.State, end.Revision, end.DoneAt, end.SweepAt, end.Reference, end.LastOutcome
	m.SettledBy = end.SettledBy
	if end.KeptDelivered != nil {
		m.KeptDelivered = end.KeptDelivered
	}
	if end.KeptDeclined != nil {
		m.KeptDeclined = end.KeptDeclined
	}
	m.Unfailed = m.Unfailed || end.Unfailed
}

// finished tells of a message that has its end, or keeps evidence until it can have one.
func (x *delivery) finished(ctx context.Context, w protocol.Write) {
	switch m := x.row; m.State {
	case storage.MessageDelivered, storage.MessageDeclined:
		x.log(ctx, levelInfo, "outbox."+m.LastOutcome, m)
		if w.Next.Undoes && !m.Undoes {
			x.log(ctx, levelWarn, "outbox.compensating", m)
		}
	case storage.MessageEvidenced:
		x.log(ctx, levelWarn, "outbox.evidenced", m, "outcome", m.LastOutcome, "error", x.cause)
	case storage.MessageCancelled:
		switch {
		case w.Msg.Kept != 0: // told as late evidence
		case x.machine.Errand == protocol.Close:
			x.alarm(ctx, "outbox.closed", m)
		case w.Next.Undoes:
			x.log(ctx, levelWarn, "outbox.compensating", m)
		default:
			x.alarm(ctx, "outbox.abandoned", m)
		}
	case storage.MessagePending, storage.MessageClaimed, storage.MessageUnknown, storage.MessageDead: // open, or an alarm told it
	}
}

// alert tells an operator of what only they can end: a message that is dead, or an unknown one whose provider can't be asked.
func (x *delivery) alert(ctx context.Context) {
	m := x.row
	if m.State != storage.MessageDead {
		x.alarm(ctx, "idempotency.reconcile.failed", m, "outcome", string(DecisionUnasked))
		return
	}
	var cause []any
	if x.cause != nil {
		cause = []any{"error", x.cause}
	}
	switch {
	case keepsUnsettled(m):
		x.alarm(ctx, "outbox.settle_failed", m, append(cause, "outcome", m.LastOutcome)...)
	case m.Unfailed:
		x.alarm(ctx, "outbox.settle_failed", m, append(cause, "outcome", outcomeNotExecuted)...)
	}
	reason := x.deathOf(m)
	x.alarm(ctx, "outbox.dead", m, "reason", reason, "open", !m.OpenSince.IsZero())
	x.bury(ctx, m, reason)
}

// keepsUnsettled says that evidence which should have settled the message is kept instead: not evidence that was only kept
// beside what the message is.
func keepsUnsettled(m storage.Message) bool {
	if m.EvidenceRefused { // it says nothing of what the provider did
		return false
	}
	return m.KeptDelivered != nil && m.LastOutcome == outcomeDelivered || m.KeptDeclined != nil && m.LastOutcome == outcomeDeclined
}

func (x *delivery) deathOf(m storage.Message) string {
	switch {
	case m.EvidenceRefused:
		return "evidence is not authentic"
	case m.Sealed:
		return "payload can't be opened"
	case m.Unfailed || keepsUnsettled(m):
		return "settlement failed"
	case m.Refused:
		return "refused"
	case m.LastOutcome == outcomeUnclear:
		return "undecided for too long"
	case x.topic.Settle == nil:
		return "topic is not registered"
	case m.Attempts >= x.topic.AttemptsMax:
		return "attempts over"
	case m.Died >= x.topic.AttemptsMax:
		return "its workers died"
	}
	return "age over"
}

// notify lets logs and queues know what a delivery has come to.
func (x *delivery) notify(ctx context.Context, s protocol.Say) {
	m := x.row
	if m.ID = x.id; s.Alarms != 0 {
		x.alarms(ctx, s.Alarms, m)
	}
	if s.Code == protocol.Unchanged && x.differs() {
		x.alarm(ctx, "outbox.evidence_differs", m, "outcome", x.outcome.Name())
	}
	switch {
	case s.Code == protocol.Busy:
		// Where the sweep offers unread, a message that is busy for long gets many wake-ups, and each would live on as another one.
		if x.cfg.WakeUpsMax == 0 {
			_ = x.schedule(ctx, m, Due(m)) // logged; the sweep does the rest
		}
	case s.Code != protocol.Changed:
	case m.State == storage.MessagePending && x.called:
		x.log(ctx, levelInfo, "outbox.retried", m, "last_outcome", m.LastOutcome, "next_attempt_at", m.NextAttemptAt)
		_ = x.schedule(ctx, m, m.NextAttemptAt)
	case m.State == storage.MessagePending || m.State == storage.MessageEvidenced:
		_ = x.schedule(ctx, m, Due(m))
	}
}

func (x *delivery) alarms(ctx context.Context, alarms protocol.Alarm, m storage.Message) {
	for _, a := range []struct {
		alarm protocol.Alarm
		event string
	}{
		{protocol.AlarmGone, "outbox.message_gone"}, {protocol.AlarmLate, "outbox.evidence_late"},
		{protocol.AlarmContradicts, "outbox.evidence_differs"}, {protocol.AlarmWeak, "outbox.evidence_weak"},
	} {
		if alarms&a.alarm != 0 {
			x.alarm(ctx, a.event, m, "outcome", x.evidence().Name())
		}
	}
	if alarms&protocol.AlarmRefused != 0 {
		x.alarm(ctx, "outbox.settle_failed", m, "outcome", x.meaning(x.machine.Asked).Name(), "error", x.cause, "next_attempt_at", m.SweepAt)
	}
}

// differs says whether the evidence names another reference than the final message that it agrees with.
func (x *delivery) differs() bool {
	switch o := x.outcome.(type) {
	case Delivered:
		return x.row.State == storage.MessageDelivered && x.row.Reference != o.Reference
	case Declined:
		return x.row.State == storage.MessageDeclined && x.row.Reference != o.Reference
	}
	return false
}

// answerOf is the stored answer of an operation whose message was given up, or closed. Only of the first message of a chain
// is it known that nothing of the operation was executed.
func answerOf(m storage.Message, state protocol.MessageState, closed bool) idem.Problem {
	what := "Nothing was executed."
	if m.Index > 1 {
		what = "Earlier steps of the operation were executed; this one was not."
	}
	switch {
	case closed:
		return idem.NewProblem(http.StatusBadGateway, "operation_closed", "Operation Closed",
			"The provider's answer could not be had, and the operation was closed. "+what)
	case state == protocol.Cancelled:
		return idem.NewProblem(http.StatusRequestTimeout, "operation_abandoned", "Operation Abandoned",
			"Nobody began to execute the operation in time. "+what)
	}
	return unexecuted(m.Refused, what)
}

// unexecuted says why the provider made nothing: it refused the request, or took none in time.
func unexecuted(refused bool, what string) idem.Problem {
	if refused {
		return idem.NewProblem(http.StatusBadGateway, "provider_refused", "Provider Refused", "The provider refused the request. "+what)
	}
	return idem.NewProblem(http.StatusBadGateway, "provider_unavailable", "Provider Unavailable",
		"The provider could not be reached, or took no request, in time. "+what)
}

// erased is the stored answer of an operation whose effect is known, and whose message nobody can open any more.
func erased() idem.Problem {
	return idem.NewProblem(http.StatusGone, "idempotency_response_erased", "Response Erased",
		"The operation has ended, and its result can't be read any more.")
}
