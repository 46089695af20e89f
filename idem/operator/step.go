package operator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Step is what a person may do next, or is waiting for.
type Step struct {
	// Subject is the operation, or the message, that it is about.
	Subject string
	// Action is a change at the desk, as its entry in the audit log names it: "resolve", "close". Else it is "wait", "look" or
	// "nothing".
	Action string
	// Why says more of it, in one line. A time in it is in RFC 3339.
	Why string
	// At is that time: from when the action is possible, or until when it is waited for. Zero where there is none.
	At time.Time

	// before and after are what stands around the time in Why.
	before, after string
}

// WhyAt is Why with its time as write has it.
func (s Step) WhyAt(write func(time.Time) string) string {
	if s.At.IsZero() {
		return s.Why
	}
	return s.before + write(s.At) + s.after
}

// step makes a step of its words. A time among them, of which there is one at most, is the step's.
func step(action, format string, args ...any) Step {
	const place = "\x00"
	s := Step{Action: action}
	for i, arg := range args {
		if at, ok := arg.(time.Time); ok && !at.IsZero() {
			s.At, args[i] = at, place
		}
	}
	s.before, s.after, _ = strings.Cut(fmt.Sprintf(format, args...), place)
	if s.Why = s.before; !s.At.IsZero() {
		s.Why += rfc3339(s.At) + s.after
	}
	return s
}

func rfc3339(at time.Time) string { return at.Format(time.RFC3339) }

// next says what a person may do, or is waiting for: of every message that wants something, not of the last one alone. Data
// from before lost may be missing; mayBeLost says that the record may be, so that nobody knows whether the operation has ended.
func (d *Desk) next(id idem.OperationID, r *storage.Record, messages []storage.Message, lost time.Time, mayBeLost bool) []Step {
	if r != nil && ofRecord(*r) != nil {
		next := []Step{anotherReleases(ofRecord(*r))}
		next[0].Subject = string(id)
		return next
	}
	var next []Step
	for _, m := range messages {
		for _, s := range d.nextOfMessage(r, m, lost, mayBeLost) {
			s.Subject = string(m.ID)
			next = append(next, s)
		}
	}
	switch {
	case r != nil && torn(*r, messages):
		next = append(next, step("look", "it waits for a message that is not there, and would wait for ever: a loss of data has torn it. Make it whole again, from what is left of it and from what the application and the provider have of it"))
		next[len(next)-1].Subject = string(id)
		return next
	case len(next) > 0:
		return next
	case r == nil && len(messages) == 0 && !lost.IsZero():
		next = []Step{step("look", "its record and its messages are not there: they have expired, or are from before %s and were lost. What the application has of it says how it stands", lost)}
	case r == nil && len(messages) == 0:
		next = []Step{{Action: "nothing", Why: "nothing of it is here: it has expired, or there was none of this tenant's"}}
	case mayBeLost && slices.ContainsFunc(messages, func(m storage.Message) bool { return !m.Detached }):
		next = []Step{step("look", "its record is not there, and data from before %s may have been lost. Its messages have ended, and nobody knows by them whether it has. What the application has of it says so; what has not ended there is ended by hand", lost)}
	case mayBeLost:
		next = []Step{{Action: "nothing", Why: "it had its answer before its message was sent. Its record is not there: it has expired, or was lost"}}
	case r == nil:
		next = []Step{{Action: "nothing", Why: "it has ended, and its record was removed"}}
	default:
		next = d.nextOfRecord(*r)
	}
	for i := range next {
		next[i].Subject = string(id)
	}
	return next
}

// torn says that the record waits for a message that is not there: none is, or all of them have ended. The write that ends a message ends
// its record too, or inserts the next message, unless a loss of data has taken a part of it.
func torn(r storage.Record, messages []storage.Message) bool {
	return r.State == storage.StatePending && !slices.ContainsFunc(messages, func(m storage.Message) bool { return !m.State.Final() || !m.Readable() })
}

// nextOfDoubted is what becomes of a decline that may be about one attempt of several, because data was lost.
func nextOfDoubted(m storage.Message, probed bool) []Step {
	const why = "it keeps a decline, which may be about one attempt of several, because data may have been lost since"
	if probed {
		return []Step{step("wait", why+". From %s on it becomes unknown, at the latest by the sweep, and the provider is asked", outbox.Due(m))}
	}
	return []Step{step("resolve", why+": nothing settles it by itself. Say what the provider's books have of all attempts")}
}

// Advice is the steps as text, with times as at writes them. It names the message where there are several.
func (s Story) Advice(at func(time.Time) string) []string {
	var lines []string
	for _, step := range s.Steps {
		line := step.Action + ": " + step.WhyAt(at)
		if len(s.Messages) > 1 && step.Subject != string(s.Operation) {
			line = step.Subject + ": " + line
		}
		lines = append(lines, line)
	}
	return lines
}

func (d *Desk) nextOfMessage(r *storage.Record, m storage.Message, lost time.Time, mayBeLost bool) []Step {
	if err := ofMessage(m); err != nil {
		return []Step{anotherReleases(err)}
	}
	if m.State.Final() {
		if kept := keptBy(m); len(kept) > 0 {
			return []Step{step("look", "it is %s, and the provider said %s: what the client was told stands", m.State, strings.Join(kept, " and "))}
		}
		return nil
	}
	if m.EvidenceRefused { // it says nothing of what the provider did
		m.KeptDelivered, m.KeptDeclined = nil, nil
	}
	rules, known := d.cfg.Topics.Protocol(m.Topic)
	if !known {
		return []Step{step("nothing", "topic %q is not registered in this release", m.Topic)}
	}
	absent, untouched := d.cfg.Topics.Absence(m, lost)
	doubted := m.State == storage.MessageEvidenced && d.cfg.Topics.Doubted(m, lost)
	if (m.State == storage.MessageUnknown || m.State == storage.MessageDead || doubted) && mayBeLost && !m.Detached { // one that is detached needs no record
		return []Step{step("look", "its record is not there, and data from before %s may have been lost: it may have no answer yet. Do not close it. Make its record again, from what the application has of it; then go on", lost)}
	}
	unopened := m.Sealed && d.decrypts // nobody can open it, and nobody will
	if unopened && onlyResolved(r, m) {
		return nextOfUnopened(m, absent)
	}
	switch m.State {
	case storage.MessagePending, storage.MessageClaimed:
		next := []Step{step("wait", "a worker takes it from %s on, at the latest by the sweep a minute later", outbox.Due(m))}
		if untouched && !unopened {
			next = append(next, step("close", "nobody has begun it, so it can be cancelled"))
		}
		return next
	case storage.MessageEvidenced:
		if m.EvidenceRefused {
			return []Step{step("wait", "what it keeps as evidence is not authentic, and settles nothing. It is given up from %s on, at the latest by the sweep; then a person decides", outbox.Due(m))}
		}
		if doubted {
			return nextOfDoubted(m, rules.Probed && !unopened) // its probe is not asked about what nobody can open
		}
		return []Step{step("wait", "its evidence (%s) is settled from %s on, by the sweep at the latest; the log says why it could not be before", strings.Join(keptBy(m), ", "), outbox.Due(m))}
	case storage.MessageUnknown:
		var next []Step
		if rules.Probed {
			next = append(next, step("reconcile", "asks the provider now; if it has nothing at %s or later, nothing happened", absent))
		}
		return append(next, step("resolve", "with evidence from the provider's own books"), step("close", "cancels it, if nothing happened; possible from %s on", absent))
	case storage.MessageDead:
		if (r == nil || r.State == storage.StateFailed) && !m.Detached && !m.Undoes && m.KeptDelivered != nil {
			return nextOfLate(m, r == nil)
		}
		return nextOfDead(m, r == nil || r.State.Final() && !m.Detached, absent)
	case storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled: // nothing is left to do
	}
	return nil
}

// onlyResolved says of a message that nobody can open that it waits for a person's evidence: nothing else ends it without asking its topic.
func onlyResolved(r *storage.Record, m storage.Message) bool {
	waits := m.State == storage.MessageUnknown || m.State == storage.MessageDead
	return waits && (m.Detached || r != nil && !r.State.Final())
}

// nextOfUnopened says what may be done about it.
func nextOfUnopened(m storage.Message, absent time.Time) []Step {
	const rows = ". The application writes nothing: correct its rows by hand"
	switch {
	case m.Undoes:
		return []Step{step("resolve", "delivered, once it was undone by hand at the provider. Nobody can open it any more: its operation fails"+rows)}
	case !m.Detached:
		return []Step{step("resolve", "with evidence from the provider's own books, or declined where they have nothing at %s or later. Nobody can open it any more: whatever the evidence is, its operation fails, and its client is told that the result can't be read any more"+rows, absent)}
	}
	next := []Step{step("resolve", "with evidence from the provider's own books. Nobody can open it any more: its operation keeps its answer"+rows)}
	if len(keptBy(m)) == 0 {
		next = append(next, step("close", "cancels it, if nothing happened; possible from %s on", absent))
	}
	return next
}

// nextOfLate says what is to be done about what was delivered after its operation had failed, and its client was told so. A record goes long
// before a dead message does: where it has expired only the application knows whether the operation had failed.
func nextOfLate(m storage.Message, expired bool) []Step {
	said, undo := "delivered it", "undo it at the provider first"
	if m.KeptDeclined != nil {
		said, undo = "has said both delivered and declined", "find out which is true, and undo at the provider what was delivered first"
	}
	when, undone := " after the operation had failed, and the client was told that it failed", "once it was undone there"
	if expired {
		when, undone = ", and its record has expired. If the application has it as failed, its client was told that it failed", "once it was undone there, if it had to be"
	}
	return []Step{
		step("look", "the provider %s%s: %s", said, when, undo),
		step("close", "%s; its operation keeps its answer", undone),
	}
}

// nextOfDead says what may be done about a dead message, whose operation may have ended.
func nextOfDead(m storage.Message, ended bool, absent time.Time) []Step {
	kept := keptBy(m)
	switch {
	case len(kept) > 1:
		return []Step{step("resolve", "the provider has said both delivered and declined; find out which is true")}
	case ended && !m.Detached:
		return []Step{step("close", "its operation has its final answer; this only takes it from the queue")}
	case m.Undoes && m.KeptDeclined != nil:
		return []Step{step("resolve", "delivered, once it was undone by hand: nothing else ends an undoing that was declined")}
	case m.KeptDelivered != nil:
		return []Step{step("redrive", "settles the evidence that it keeps; find out first why that failed")}
	case m.KeptDeclined != nil:
		return []Step{
			step("redrive", "settles the decline that it keeps; refused where that may be about one attempt of several"),
			step("resolve", "with evidence from the provider's own books"),
		}
	case m.Undoes:
		return []Step{step("redrive", "the earlier effect still exists: sends the undo again; if a call is open, asks the provider first"), step("resolve", "with evidence that it was undone"), step("close", "the earlier effect stays, and the operation fails; possible from %s on", absent)}
	}
	return []Step{step("redrive", "calls again under the same key; if a call is open, asks the provider first"), step("resolve", "with evidence"), step("close", "cancels it, if nothing happened; possible from %s on", absent)}
}

// releasedTwice says of what was observed that its release is the first of two; "" for any other record.
func releasedTwice(r storage.Record) string {
	if r.Observed && !r.SafeToRunAgain && r.State != storage.StateFailedRetryable {
		return "; it was observed, so that it must be released once more, where no other request was executed beside it either"
	}
	return ""
}

func (d *Desk) nextOfRecord(r storage.Record) []Step {
	switch twice := releasedTwice(r); {
	case d.onlyObserved(r):
		return []Step{
			step("nothing", "it was only observed, and another request may have been executed beside it: its key executes where the policy observes, and is unknown to who enforces it"),
			step("resolve", "with the answer of the request that was executed"),
			step("release", "where nothing was executed, under whatever operation id; look once no instance observes any more, and what the last one began can't arrive any more%s", twice),
		}
	case r.State == storage.StateUnknown:
		return []Step{step("reconcile", "asks its Probe, where it has one"), step("resolve", "with the answer that its handler would have given"), step("release", "where nothing happened, and nothing of it can still arrive; possible from %s on%s", d.runner.Absence(r), twice)}
	case r.LeaseDead(d.now()) && r.Kind == idem.KindWrapped && !r.SafeToRunAgain:
		return []Step{step("sweep", "makes it unknown, as its schedule does every minute")}
	case r.LeaseDead(d.now()):
		return []Step{step("nothing", "the next request with its key takes it over")}
	case r.State == storage.StateInProgress && r.Kind == idem.KindWrapped:
		return []Step{step("wait", "its handler may run until %s", r.LeaseUntil)}
	case r.State == storage.StateInProgress:
		return []Step{step("wait", "its holder may execute until %s", r.LeaseUntil), step("release", "fences its holder off%s", twice)}
	case r.State == storage.StateFailedRetryable && r.LeaseUntil.After(d.now()):
		next := []Step{step("wait", "its key answers 409 until %s; the next request after that executes", r.LeaseUntil)}
		if strings.HasPrefix(r.LastError, storage.CacheBustReason) {
			next = append(next, step("cache-bust", "once more, if its reply was lost: the key is free sooner then"))
		}
		return next
	case r.State == storage.StateFailedRetryable:
		return []Step{step("nothing", "the next request with its key executes")}
	case r.State == storage.StateCompleted && (r.RecordOnly && !r.Observed || r.SafeToRunAgain):
		return []Step{step("nothing", "it has ended"), step("cache-bust", "where its answer is wrong, and nothing else was written")}
	}
	return []Step{step("nothing", "it has ended")}
}
