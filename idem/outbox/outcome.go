package outbox

import (
	"fmt"
	"time"
)

// Outcome is what is known after a call, a probe, a webhook or an operator's evidence: [Delivered], [Declined],
// [NotExecuted], [Ambiguous] or [Refused]. Only the first two are evidence: they settle a message, from any state that
// is not final and from any epoch.
type Outcome interface {
	// Name is the outcome as logs and rows show it.
	Name() string
	outcome()
}

// Delivered says that the effect happened.
type Delivered struct {
	// Reference is the provider's name for what it made, at most [ReferenceBytesMax]. With a longer one the answer is no evidence: of a
	// call it is [Ambiguous], of a probe [Unclear].
	Reference string
	// Evidence is what the provider said, byte for byte: what Settle reads, and what is kept on the message should the
	// settlement fail (its first 72 KiB).
	Evidence []byte
}

// Declined says that the provider judged the request and refused it. That is a result like any other.
type Declined struct {
	// Reference is the provider's name for what it declined, if it has one.
	Reference string
	// Evidence is as in [Delivered].
	Evidence []byte
}

// NotExecuted says that this call provably had no effect: it was never sent, or the provider rejected it unread (429).
// The message is called again after a back-off.
type NotExecuted struct {
	// Unsent says that the request never left, such as where the provider can't be reached or there is no credential: it counts as no
	// attempt, and `outbox.unsent` is logged. The message waits until it is too old, whatever its AttemptsMax.
	Unsent bool
	// Unauthorized says that the provider refused the caller, such as one whose credential was revoked, and read nothing else: it
	// counts as no attempt, and `outbox.unauthorized` is logged. The message waits until it is too old, whatever its AttemptsMax.
	Unauthorized bool
	// RetryAfter is the pause that the provider asked for; the back-off is never shorter. More than a day counts as a
	// day. 0 = none.
	RetryAfter time.Duration
	// Cause is for the log; it must not hold payloads or keys.
	Cause error
}

// Ambiguous says that the call may have had its effect: a 5xx, a time-out, a lost connection, a panic.
type Ambiguous struct {
	// Cause is for the log; it must not hold payloads or keys.
	Cause error
}

// Refused says that another call with the same payload cannot succeed. The message is dead at once, unless it is an answer to
// the client. If a call may have had its effect (an earlier one is open, or Unproven is set), a topic's Probe decides, where
// it has one: the message is unknown until then.
type Refused struct {
	// Unproven says that the refusal does not prove that nothing happened, as with a 409 that may be about an earlier
	// call under the same key. A refusal that proves it, such as a 400, lets the operation fail if no other call is open.
	Unproven bool
	// Answer is what the provider said, where it is about data that only the client can change, such as an account that it
	// does not know: nobody else has anything to do. It is then an answer to the client, and the message is settled as
	// [Declined] with this evidence, unless Unproven is set or another call is open: then it is a refusal like any other. Nil
	// where the refusal is about anything else.
	Answer []byte
	// Cause is for the log; it must not hold payloads or keys.
	Cause error
}

// The names of the outcomes.
const (
	outcomeDelivered   = "delivered"
	outcomeDeclined    = "declined"
	outcomeNotExecuted = "not_executed"
	outcomeAmbiguous   = "ambiguous"
	outcomeRefused     = "refused"
	outcomeAbsent      = "absent"
	outcomeUnclear     = "unclear"
	outcomeUnfailed    = "unfailed"
)

// Name implements Outcome.
func (Delivered) Name() string { return outcomeDelivered }

// Name implements Outcome.
func (Declined) Name() string { return outcomeDeclined }

// Name implements Outcome.
func (NotExecuted) Name() string { return outcomeNotExecuted }

// Name implements Outcome.
func (Ambiguous) Name() string { return outcomeAmbiguous }

// Name implements Outcome.
func (Refused) Name() string { return outcomeRefused }

func (Delivered) outcome()   {}
func (Declined) outcome()    {}
func (NotExecuted) outcome() {}
func (Ambiguous) outcome()   {}
func (Refused) outcome()     {}

// answered is the outcome of a call, beside which another one is open or not. A refusal about the client's own data is an answer
// to the client only while none is: it says nothing about what another call did, or may still do.
func answered(o Outcome, open bool) Outcome {
	if r, ok := o.(Refused); ok && r.Answer != nil && !r.Unproven && !open {
		return Declined{Evidence: r.Answer}
	}
	return o
}

func causeOf(o Outcome) error {
	switch o := o.(type) {
	case NotExecuted:
		return o.Cause
	case Ambiguous:
		return o.Cause
	case Refused:
		return o.Cause
	}
	return nil
}

// definite says whether an outcome is evidence.
func definite(o Outcome) bool {
	switch o.(type) {
	case Delivered, Declined:
		return true
	}
	return false
}

// ReferenceBytesMax bounds the provider's name for what it made, or declined: a message has it beside the evidence that it keeps.
const ReferenceBytesMax = 1 << 10

// named returns an error for evidence whose reference is too long for a name.
func named(o Outcome) error {
	if n := len(referenceOf(o)); n > ReferenceBytesMax {
		return fmt.Errorf("outbox: an answer with a reference of %d bytes, at most %d can be a name", n, ReferenceBytesMax)
	}
	return nil
}

func referenceOf(o Outcome) string {
	switch o := o.(type) {
	case Delivered:
		return o.Reference
	case Declined:
		return o.Reference
	}
	return ""
}

func nameOfOutcome(o Outcome) string {
	if o == nil {
		return ""
	}
	return o.Name()
}

func nameOfFinding(f Finding) string {
	switch f := f.(type) {
	case Found:
		return f.Outcome.Name()
	case Absent:
		return outcomeAbsent
	}
	return outcomeUnclear
}
