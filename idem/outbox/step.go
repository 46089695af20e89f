package outbox

import (
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Rules is what the state machine of a message depends on besides the message: the topic's promises and bounds.
type Rules struct {
	// KeysHonoured, KeyRetention and Margin say until when an open call may be repeated: while OpenSince + KeyRetention
	// − Margin lies ahead, and never where keys are not honoured (peers.md H4).
	KeysHonoured bool
	KeyRetention time.Duration
	// Margin is at least lease + longest request + clock skew.
	Margin time.Duration
	// AbsentAfter is how long after the last lease absence is proof: longest request + listing delay + clock skew
	// (peers.md H5).
	AbsentAfter time.Duration
	AttemptsMax int
	AgeMax      time.Duration
	// AbandonAfter is how long an operation's first message waits for its first claim, at most.
	AbandonAfter time.Duration
	// UnknownMax is how long probes may leave a message undecided, from when its absence could first have been proven.
	UnknownMax time.Duration
	// Probed says that the provider can be asked what became of a call.
	Probed bool
	// SweepGrace is how long the sweep leaves a due message to its wake-up.
	SweepGrace time.Duration
}

// Event is something that happens to a message.
type Event interface{ event() }

// Woken is a wake-up: a stream record, a queue message, or the sweep. Owner and LeaseUntil are of the claim that it may
// lead to.
type Woken struct {
	Owner      idem.Owner
	LeaseUntil time.Time
}

// Answered is a call that ended without evidence: its outcome is [NotExecuted], [Ambiguous] or [Refused].
type Answered struct {
	// Owner and Epoch are those of the claim that made the call.
	Owner idem.Owner
	Epoch int64
	// OpenBefore says that another call was open when the message was claimed.
	OpenBefore bool
	Outcome    Outcome
	// Backoff is the pause before the next attempt.
	Backoff time.Duration
}

// Evidence is a definite answer, [Delivered] or [Declined], from whatever source. It is never refused (peers.md H9).
type Evidence struct{ Outcome Outcome }

// Unsettled is evidence whose settlement failed, or came too late for the record: it is kept on the message.
type Unsettled struct{ Outcome Outcome }

// ProvenAbsent is a probe that found nothing. It is judged by the time at which the probe began.
type ProvenAbsent struct {
	// Epoch was read before the probe began.
	Epoch int64
}

// Undecided is a probe that decided nothing.
type Undecided struct {
	// Epoch was read before the probe began.
	Epoch int64
	// Unasked says that there is nobody to ask: the message waits for a webhook or an operator, however long.
	Unasked bool
	// Backoff is the pause before the next probe. It never ends before absence can be proven.
	Backoff time.Duration
}

// Abandoned gives up an operation whose first message was never claimed.
type Abandoned struct{}

// Closed is an operator's end of a message that is unknown or dead, without evidence of an effect.
type Closed struct{}

// Redriven is an operator's new start of a message that is dead.
type Redriven struct{}

func (Woken) event()        {}
func (Answered) event()     {}
func (Evidence) event()     {}
func (Unsettled) event()    {}
func (ProvenAbsent) event() {}
func (Undecided) event()    {}
func (Abandoned) event()    {}
func (Closed) event()       {}
func (Redriven) event()     {}

// Effect is what has to be done after a step.
type Effect int

// The effects of a step.
const (
	// EffectNone: nothing to do, now or later, that a wake-up could.
	EffectNone Effect = iota + 1
	// EffectWait: not due, or claimed by somebody alive. [Due] says until when.
	EffectWait
	// EffectClaim writes the next message, fenced by the one that was seen, and then calls.
	EffectClaim
	// EffectStore writes the next message, fenced by the one that was seen.
	EffectStore
	// EffectSettle ends the message in one transaction with what Settle makes of the evidence; fenced by nothing but
	// that the message is not final and the record pending.
	EffectSettle
	// EffectKeep writes evidence to the message: fenced where it is final, else by its not being final.
	EffectKeep
	// EffectFail gives the message up in one transaction that fails the record with what Settle makes of [NotExecuted];
	// fenced by the message that was seen.
	EffectFail
)

var effectNames = [...]string{"", "none", "wait", "claim", "store", "settle", "keep", "fail"}

// String names the effect.
func (e Effect) String() string {
	if e < 1 || int(e) >= len(effectNames) {
		return fmt.Sprintf("effect %d", int(e))
	}
	return effectNames[e]
}

// TransitionError is an event that the message's state does not admit: a stale holder, or a bug.
type TransitionError struct {
	State idem.MessageState
	Event Event
}

// Error implements error.
func (e *TransitionError) Error() string {
	return fmt.Sprintf("outbox: a message that is %s does not admit %T", e.State, e.Event)
}

// UnreadableError is a message that this release can't judge: another schema version or state (peers.md H17). Nothing is
// done with it; the release that wrote it can.
type UnreadableError struct {
	SchemaVersion int
	State         idem.MessageState
}

// Error implements error.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("outbox: unreadable message: schema %d, state %q", e.SchemaVersion, e.State)
}

// Step is the whole state machine of a message: pure, without clock, randomness or I/O. It returns the message after the
// event and what has to be done; the message is unchanged with EffectNone and EffectWait. It returns an
// [*UnreadableError] or a [*TransitionError].
func Step(m idem.Message, event Event, rules Rules, now time.Time) (idem.Message, Effect, error) {
	if !m.Readable() {
		return m, 0, &UnreadableError{m.SchemaVersion, m.State}
	}
	switch event := event.(type) {
	case Woken:
		next, effect := woken(m, event, rules, now)
		return next, effect, nil
	case Answered:
		return answered(m, event, rules, now)
	case Evidence:
		return evidence(m, event, now)
	case Unsettled:
		return unsettled(m, event, now)
	case ProvenAbsent:
		return provenAbsent(m, event, rules, now)
	case Undecided:
		return undecided(m, event, rules, now)
	case Abandoned:
		return abandoned(m, now)
	case Closed:
		return closed(m, rules, now)
	case Redriven:
		return redriven(m, rules, now)
	}
	return m, 0, &TransitionError{m.State, event}
}

// Due is from when a message that is pending or claimed may be claimed.
func Due(m idem.Message) time.Time {
	if m.State == idem.MessageClaimed {
		return m.LeaseUntil
	}
	return m.NextAttemptAt
}

// offerable is the rule for every message with an open call, in whatever state: never a second call unless the provider
// will recognise it as the same.
func offerable(m idem.Message, rules Rules, now time.Time) bool {
	return m.OpenSince.IsZero() || rules.KeysHonoured && now.Before(m.OpenSince.Add(rules.KeyRetention-rules.Margin))
}

// over says that no further attempt is wanted. A claim that died was an attempt too, so that a message that kills its
// workers comes to an end.
func over(m idem.Message, rules Rules, now time.Time) bool {
	born := later(m.CreatedAt, m.RedrivenAt)
	return attempts(m) >= rules.AttemptsMax || !now.Before(born.Add(rules.AgeMax)) || m.LastOutcome == outcomeRefused
}

func attempts(m idem.Message) int {
	if m.State == idem.MessageClaimed {
		return m.Attempts + 1
	}
	return m.Attempts
}

func woken(m idem.Message, e Woken, rules Rules, now time.Time) (idem.Message, Effect) {
	switch {
	case m.State != idem.MessagePending && m.State != idem.MessageClaimed:
		return m, EffectNone
	case now.Before(Due(m)):
		return m, EffectWait
	case m.Sealed:
		next, _ := giveUp(m, rules, now)
		return next, EffectStore // without its payload nobody can say what giving up means to its record
	case abandonable(m) && !now.Before(m.CreatedAt.Add(rules.AbandonAfter)):
		return cancel(m, now), EffectFail
	case !offerable(m, rules, now):
		return park(m, rules, now), EffectStore
	case over(m, rules, now):
		return giveUp(m, rules, now)
	}
	return claim(m, e, now), EffectClaim
}

// claim moves SweepAt only where the lease ends later, so that most messages pay for entering and leaving the sparse
// index and for nothing between.
func claim(m idem.Message, e Woken, now time.Time) idem.Message {
	m.Attempts = attempts(m)
	m.State, m.Owner, m.LeaseUntil = idem.MessageClaimed, e.Owner, e.LeaseUntil
	m.Epoch++
	if m.FirstClaimedAt.IsZero() {
		m.FirstClaimedAt = now
	}
	if m.OpenSince.IsZero() {
		m.OpenSince = now
	}
	m.SweepAt = later(m.SweepAt, m.LeaseUntil)
	return m
}

// park keeps OpenSince, owner and epoch. Nobody needs to look before absence could be proven.
func park(m idem.Message, rules Rules, now time.Time) idem.Message {
	m.Attempts = attempts(m)
	m.State = idem.MessageUnknown
	m.SweepAt = later(now, provable(m, rules))
	return m
}

// giveUp ends the attempts. What is open is left to probes, where there are any: they settle it, or prove that its record
// can fail (ADR 0015). Else the message is dead; its record fails only when no call is open: an effect may have happened,
// and the record stays pending (peers.md H19).
func giveUp(m idem.Message, rules Rules, now time.Time) (idem.Message, Effect) {
	open := !m.OpenSince.IsZero()
	if open && rules.Probed && !m.Sealed {
		return park(m, rules, now), EffectStore
	}
	m.Attempts = attempts(m)
	m.State, m.SweepAt = idem.MessageDead, now
	if open {
		return m, EffectStore
	}
	return m, EffectFail
}

func answered(m idem.Message, e Answered, rules Rules, now time.Time) (idem.Message, Effect, error) {
	if m.State != idem.MessageClaimed || m.Owner != e.Owner || m.Epoch != e.Epoch {
		return m, 0, &TransitionError{m.State, e}
	}
	if e.Outcome == nil {
		return m, 0, &TransitionError{m.State, e}
	}
	next := m
	next.LastOutcome = e.Outcome.Name()
	switch outcome := e.Outcome.(type) {
	case NotExecuted:
		return backOff(next, e, later(now.Add(e.Backoff), now.Add(min(outcome.RetryAfter, retryAfterMax))), rules), EffectStore, nil
	case Ambiguous:
		e.OpenBefore = true // this very call stays open
		if next = backOff(next, e, now.Add(e.Backoff), rules); !offerable(next, rules, now) {
			next = park(next, rules, now)
		}
		return next, EffectStore, nil
	case Refused:
		if outcome.Unproven || e.OpenBefore {
			next, _ = giveUp(next, rules, now)
			return next, EffectStore, nil
		}
		// Nothing is open any more, so the record can fail: what is due now and refused is given up by whoever meets it,
		// beginning with this worker.
		return backOff(next, e, now, rules), EffectStore, nil
	}
	return m, 0, &TransitionError{m.State, e}
}

// retryAfterMax bounds what a provider may wish for.
const retryAfterMax = 24 * time.Hour

func backOff(m idem.Message, e Answered, at time.Time, rules Rules) idem.Message {
	m.Attempts = attempts(m)
	m.State, m.NextAttemptAt = idem.MessagePending, at
	if !e.OpenBefore {
		m.OpenSince = time.Time{}
	}
	if m.SweepAt.Before(at) {
		m.SweepAt = at.Add(rules.SweepGrace)
	}
	return m
}

func evidence(m idem.Message, e Evidence, now time.Time) (idem.Message, Effect, error) {
	if m.State.Final() {
		return m, 0, &TransitionError{m.State, e}
	}
	next := m
	switch outcome := e.Outcome.(type) {
	case Delivered:
		next.State, next.Reference = idem.MessageDelivered, outcome.Reference
	case Declined:
		next.State, next.Reference = idem.MessageDeclined, outcome.Reference
	default:
		return m, 0, &TransitionError{m.State, e}
	}
	next.LastOutcome, next.DoneAt = e.Outcome.Name(), now
	return next, EffectSettle, nil
}

// unsettled keeps the evidence where an operator will see it. A cancelled message stays cancelled: its record has its
// answer, which is immutable.
func unsettled(m idem.Message, e Unsettled, now time.Time) (idem.Message, Effect, error) {
	next := m
	switch outcome := e.Outcome.(type) {
	case Delivered:
		next.Reference, next.Evidence = outcome.Reference, keepable(outcome.Evidence)
	case Declined:
		next.Reference, next.Evidence = outcome.Reference, keepable(outcome.Evidence)
	default:
		return m, 0, &TransitionError{m.State, e}
	}
	next.LastOutcome = e.Outcome.Name()
	switch m.State {
	case idem.MessageDelivered, idem.MessageDeclined:
		return m, 0, &TransitionError{m.State, e}
	case idem.MessageCancelled:
	default:
		next.State, next.SweepAt = idem.MessageDead, now
	}
	return next, EffectKeep, nil
}

// evidenceBytesMax bounds what is kept on a message, which must fit into one item with its payload.
const evidenceBytesMax = 128 << 10

func keepable(evidence []byte) []byte {
	if len(evidence) > evidenceBytesMax {
		return evidence[:evidenceBytesMax]
	}
	return evidence
}

// provable is from when absence is proof: no request can be under way any more, and all that was made is listed.
func provable(m idem.Message, rules Rules) time.Time { return m.LeaseUntil.Add(rules.AbsentAfter) }

func provenAbsent(m idem.Message, e ProvenAbsent, rules Rules, now time.Time) (idem.Message, Effect, error) {
	if m.State != idem.MessageUnknown || m.Epoch != e.Epoch || now.Before(provable(m, rules)) {
		return m, 0, &TransitionError{m.State, e}
	}
	m.State, m.OpenSince, m.LastOutcome = idem.MessagePending, time.Time{}, outcomeAbsent
	m.NextAttemptAt, m.SweepAt = now, now.Add(rules.SweepGrace)
	return m, EffectStore, nil
}

// undecided makes a message dead when its time is over, or when nobody could settle it anyway because its payload can't be
// opened. Its call stays open, so its record stays pending.
func undecided(m idem.Message, e Undecided, rules Rules, now time.Time) (idem.Message, Effect, error) {
	if m.State != idem.MessageUnknown || m.Epoch != e.Epoch {
		return m, 0, &TransitionError{m.State, e}
	}
	from := later(provable(m, rules), m.RedrivenAt)
	if m.Sealed || !e.Unasked && !now.Before(from.Add(rules.UnknownMax)) {
		m.State, m.SweepAt, m.LastOutcome = idem.MessageDead, now, outcomeUnclear
		return m, EffectStore, nil
	}
	m.SweepAt = later(now.Add(e.Backoff), from)
	return m, EffectStore, nil
}

func abandoned(m idem.Message, now time.Time) (idem.Message, Effect, error) {
	if !abandonable(m) {
		return m, 0, &TransitionError{m.State, Abandoned{}}
	}
	return cancel(m, now), EffectFail, nil
}

// abandonable says that nothing of the operation can have happened: nobody has ever had the right to call.
func abandonable(m idem.Message) bool {
	return m.State == idem.MessagePending && m.Index == 1 && !m.Detached && m.FirstClaimedAt.IsZero()
}

// closed waits as long as proof of absence does: a request may still be under way.
func closed(m idem.Message, rules Rules, now time.Time) (idem.Message, Effect, error) {
	parked := m.State == idem.MessageUnknown || m.State == idem.MessageDead
	if !parked || now.Before(provable(m, rules)) {
		return m, 0, &TransitionError{m.State, Closed{}}
	}
	return cancel(m, now), EffectFail, nil
}

func cancel(m idem.Message, now time.Time) idem.Message {
	m.State, m.DoneAt = idem.MessageCancelled, now
	return m
}

// redriven has what is open probed, at once, and what is not delivered, with attempts and age counted anew. The epoch
// grows, so that nothing that was under way when the message died can still match its fence.
func redriven(m idem.Message, rules Rules, now time.Time) (idem.Message, Effect, error) {
	if m.State != idem.MessageDead || evidenced(m) {
		return m, 0, &TransitionError{m.State, Redriven{}}
	}
	m.Epoch++
	m.Attempts, m.LastOutcome, m.RedrivenAt = 0, "", now
	if !m.OpenSince.IsZero() {
		m.State, m.SweepAt = idem.MessageUnknown, now
		return m, EffectStore, nil
	}
	m.State, m.NextAttemptAt, m.SweepAt = idem.MessagePending, now, now.Add(rules.SweepGrace)
	return m, EffectStore, nil
}

// evidenced says that the message keeps evidence that could not be settled.
func evidenced(m idem.Message) bool {
	return m.LastOutcome == outcomeDelivered || m.LastOutcome == outcomeDeclined
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
