package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Tone is how a mark or a state is coloured; what it says never hangs on that alone.
type tone string

const (
	plain   tone = "plain"
	good    tone = "good"
	waiting tone = "waiting"
	bad     tone = "bad"
	person  tone = "person"
)

// mark is one moment of an operation that is stored.
type mark struct {
	At   time.Time
	Lane int
	// Title says what it was, and Detail what else is known of it.
	Title, Detail string
	Tone          tone
	// Planned says that it is still to come.
	Planned bool
}

// bar is a span of time on a lane; one that is open has not ended.
type bar struct {
	From, To time.Time
	Lane     int
	Title    string
	Tone     tone
	Open     bool
}

// timeline is what is stored of an operation's times. Nothing in it is guessed: what nobody has written is in Missing.
type timeline struct {
	Lanes []string
	Marks []mark
	Bars  []bar
	// Missing says what is not recorded.
	Missing []string
	// Logged says what of that the functions' log has, and Query finds it there.
	Logged []string
	Query  string
	Now    time.Time
}

// The first lanes; the messages' are between them and the last two, which are the provider's and the operators'.
const laneRecord = 0

// timelineOf draws up the timeline of a story. A time that is zero is not there.
func timelineOf(s operator.Story, facts Facts, now time.Time) timeline {
	t := timeline{Lanes: []string{"Record"}, Now: now}
	t.record(s)
	for i, m := range s.Messages {
		t.Lanes = append(t.Lanes, "Message "+numberOf(m))
		t.message(m, i+1)
	}
	if len(facts.Objects) > 0 {
		t.Lanes = append(t.Lanes, "Provider")
		t.provider(facts.Objects, len(t.Lanes)-1)
	}
	if len(s.Audit) > 0 {
		t.Lanes = append(t.Lanes, "Operators")
		t.operators(s.Audit, len(t.Lanes)-1)
	}
	if len(s.Messages) > 0 {
		t.Missing = append(t.Missing,
			"When the stream, the queue or a sweep woke a worker, and what a webhook or a probe said that changed nothing: not recorded.")
	}
	t.logged(s)
	slices.SortStableFunc(t.Marks, func(a, b mark) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Lane, b.Lane)) })
	for i := range t.Marks {
		t.Marks[i].Planned = t.Marks[i].At.After(now)
	}
	return t
}

// logged names the lines of the log that tell what no row does, and what finds them.
func (t *timeline) logged(s operator.Story) {
	t.Logged = append(t.Logged, "each request of the client, with what it was answered: idempotency.reserve.created, .replay, .in_progress")
	if len(s.Messages) > 0 {
		t.Logged = append(t.Logged, "each wake-up by the sweep: outbox.offered", "each call at the provider, with its outcome: outbox.answered",
			"each retry, with the time of the next: outbox.retried", "what ended it, or parked it: outbox.delivered, .declined, .unknown, .dead")
	}
	t.Query = fmt.Sprintf("filter operation_id = %[1]q or message like %[1]q | sort @timestamp", string(s.Operation))
	if s.Record != nil && s.Record.TraceID != "" {
		t.Query = fmt.Sprintf("filter trace_id = %q or operation_id = %[2]q or message like %[2]q | sort @timestamp", s.Record.TraceID, string(s.Operation))
	}
}

func (t *timeline) add(at time.Time, lane int, tone tone, title, detail string) {
	if !at.IsZero() {
		t.Marks = append(t.Marks, mark{At: at, Lane: lane, Title: title, Detail: detail, Tone: tone})
	}
}

func (t *timeline) record(s operator.Story) {
	r := s.Record
	if r == nil {
		gone := "was removed when it had expired"
		if s.RecordMayBeLost {
			gone = "has expired, or was lost"
		}
		t.Missing = append(t.Missing, "The record "+gone+": when the request came and when it was answered is not recorded any more.")
		return
	}
	began := "Request executed"
	if r.Kind == idem.KindAtomic || r.Kind == idem.KindWrapped {
		began = "Key reserved"
	}
	t.add(r.CreatedAt, laneRecord, plain, began, fmt.Sprintf("%s, %s", r.Operation, r.Kind))
	t.add(r.DoneAt, laneRecord, toneOfRecord(r.State), "Final answer stored", recordEnd(r))
	t.add(r.ExpiresAt, laneRecord, plain, "Record expires", "until then every retry gets the stored answer")
	switch r.State {
	case storage.StateInProgress:
		t.add(r.LeaseUntil, laneRecord, waiting, "Lease ends", "")
		t.Bars = append(t.Bars, bar{From: r.CreatedAt, To: t.Now, Lane: laneRecord, Title: "not ended yet", Tone: waiting, Open: true})
	case storage.StatePending, storage.StateUnknown:
		t.add(r.LookAt, laneRecord, waiting, "Due for the reconciler", "it asks what became of it, where the operation has a Probe")
		t.Bars = append(t.Bars, bar{From: r.CreatedAt, To: t.Now, Lane: laneRecord, Title: "no final answer yet", Tone: waiting, Open: true})
	case storage.StateCompleted, storage.StateFailed:
		if !r.DoneAt.IsZero() {
			t.Bars = append(t.Bars, bar{From: r.CreatedAt, To: r.DoneAt, Lane: laneRecord, Title: "until the final answer", Tone: plain})
		}
	case storage.StateFailedRetryable: // nothing happened, and nobody holds it
	}
	if r.DoneAt.IsZero() && r.State.Final() {
		t.Missing = append(t.Missing, "When the final answer was stored: not recorded.")
	}
	if r.Executions > 1 {
		t.Missing = append(t.Missing, fmt.Sprintf("The handler has executed %d times; when the earlier ones were is not recorded.", r.Executions))
	}
	t.Missing = append(t.Missing, "Retries of the client that were answered from the record: not recorded.")
}

func recordEnd(r *operator.RecordView) string {
	if r.ResponseStatus == 0 {
		return string(r.State)
	}
	return fmt.Sprintf("%s, status %d", r.State, r.ResponseStatus)
}

func (t *timeline) message(m operator.MessageView, lane int) {
	t.add(m.CreatedAt, lane, plain, "Message committed", m.Topic)
	t.claimed(m, lane)
	if m.State.Final() {
		t.add(m.OpenSince, lane, plain, "Call sent", "the first that was open when the message ended")
	} else {
		t.add(m.OpenSince, lane, bad, "Call sent whose outcome is not known", "the provider may have executed it from here on")
	}
	t.add(m.ClearedAt, lane, plain, "Proven that the provider had nothing", "")
	t.add(m.RedrivenAt, lane, person, "Started again by an operator", "or the one before it, in a chain that was restored")
	t.add(m.DoneAt, lane, toneOfMessage(m.State), "Message "+string(m.State), messageEnd(m))
	switch m.State {
	case storage.MessagePending:
		t.add(m.NextAttemptAt, lane, waiting, "Attempt due", tried(m))
		t.add(m.LookAt, lane, waiting, "Due for the sweep", "it wakes a worker, if nothing else has")
	case storage.MessageClaimed:
		t.add(m.LeaseUntil, lane, waiting, "Claim ends", tried(m))
		t.add(m.LookAt, lane, waiting, "Due for the sweep", "it wakes another worker, if the claim has ended without a result")
	case storage.MessageEvidenced:
		t.add(m.LookAt, lane, waiting, "Due for the sweep", "it settles the answer that is kept: "+strings.Join(m.Kept, ", "))
	case storage.MessageUnknown:
		t.add(m.LookAt, lane, waiting, "Due for the reconciler", "it asks the provider, where the topic has a Probe")
	case storage.MessageDelivered, storage.MessageDeclined, storage.MessageDead, storage.MessageCancelled: // nothing comes by itself
	}
	open := bar{From: m.CreatedAt, To: m.DoneAt, Lane: lane, Title: string(m.State), Tone: toneOfMessage(m.State)}
	if !m.State.Final() {
		open.To, open.Open = t.Now, true
	}
	if !open.To.IsZero() {
		t.Bars = append(t.Bars, open)
	}
	name := t.Lanes[lane]
	switch {
	case m.UnansweredCalls > 1:
		t.Missing = append(t.Missing, fmt.Sprintf("%s: %d calls without a definite answer were counted; their single times are not recorded.", name, m.UnansweredCalls))
	case m.UnansweredCalls == 1 && m.OpenSince.IsZero():
		t.Missing = append(t.Missing, name+": when the call was made that gave no definite answer is not recorded.")
	case m.UnansweredCalls == 0 && m.FirstClaimedAt.IsZero() && !m.State.Final():
		t.Missing = append(t.Missing, name+": no claim and no call is recorded.")
	}
	if len(m.Kept) > 0 {
		t.Missing = append(t.Missing, name+": when the answer came that it keeps ("+strings.Join(m.Kept, ", ")+") is not recorded.")
	}
	if m.DiedClaims > 0 {
		t.Missing = append(t.Missing, fmt.Sprintf("%s: %s expired; when is not recorded.", name, counted(m.DiedClaims, "claim", "claims")))
	}
	if m.State.Final() && m.DoneAt.IsZero() {
		t.Missing = append(t.Missing, name+": when it ended is not recorded.")
	}
	if m.State.Final() && m.SettledBy == "" {
		t.Missing = append(t.Missing, name+": who settled it, a worker, the sweep, the reconciler, a webhook or an operator, is not recorded. The log has it.")
	}
}

// claimed marks the first claim, and how long after the commit it was: what woke the worker is not recorded.
func (t *timeline) claimed(m operator.MessageView, lane int) {
	detail := ""
	if after := m.FirstClaimedAt.Sub(m.CreatedAt); after >= 0 && !m.CreatedAt.IsZero() { // before: by another clock
		detail = span(after) + " after the commit"
	}
	t.add(m.FirstClaimedAt, lane, plain, "First claimed", detail)
}

// tried says how many calls gave no definite answer, how many may, and what the last one came to: since an operator last started the message
// again.
func tried(m operator.MessageView) string {
	var parts []string
	if m.UnansweredCalls > 0 {
		parts = append(parts, counted(m.UnansweredCalls, "call", "calls")+" without a definite answer")
		if m.CallsMax > 0 {
			parts[0] += fmt.Sprintf(", of at most %d", m.CallsMax)
		}
	}
	if m.DiedClaims > 0 {
		parts = append(parts, counted(m.DiedClaims, "claim", "claims")+" expired")
	}
	if m.LastOutcome != "" {
		parts = append(parts, "the last outcome: "+m.LastOutcome)
	}
	return strings.Join(parts, "; ")
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// settlers are the words for who ended a message.
var settlers = map[storage.Settler]string{
	storage.SettledByWorker: "settled by a worker", storage.SettledByInline: "settled within the request", storage.SettledBySweep: "settled by the sweep",
	storage.SettledByReconciler: "settled by the reconciler", storage.SettledByWebhook: "settled by a webhook", storage.SettledByOperator: "settled by an operator",
}

// messageEnd says who ended a message, and what the provider calls its effect.
func messageEnd(m operator.MessageView) string {
	by, known := settlers[m.SettledBy]
	if !known && m.SettledBy != "" { // a later release's
		by = "settled by " + string(m.SettledBy)
	}
	parts := []string{by, m.Reference}
	if m.UnansweredCalls > 0 {
		parts = append(parts, "after "+counted(m.UnansweredCalls, "call", "calls")+" without a definite answer")
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}

func (t *timeline) provider(objects []Object, lane int) {
	for _, o := range objects {
		if o.At.IsZero() {
			t.Missing = append(t.Missing, "The provider does not say when it made "+o.Reference+".")
		}
		proves := o.Outcome
		if o.Doubt != "" {
			proves = "it settles nothing"
		}
		t.add(o.At, lane, toneOfOutcome(o.Outcome), "Provider made "+o.Reference, proves)
	}
}

func (t *timeline) operators(entries []operator.Entry, lane int) {
	for _, e := range entries {
		tone := person
		if e.State == operator.EntryFailed || e.State == operator.EntryIntended {
			tone = bad
		}
		t.add(e.At, lane, tone, fmt.Sprintf("%s by %s: %s", e.Action, e.Actor, e.State), e.Reason)
	}
}

func toneOfMessage(s storage.MessageState) tone {
	switch s {
	case storage.MessageDelivered:
		return good
	case storage.MessageUnknown, storage.MessageDead:
		return bad
	case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced:
		return waiting
	case storage.MessageDeclined, storage.MessageCancelled:
	}
	return plain
}

func toneOfRecord(s storage.State) tone {
	switch s {
	case storage.StateCompleted:
		return good
	case storage.StateUnknown, storage.StateFailed:
		return bad
	case storage.StateInProgress, storage.StatePending:
		return waiting
	case storage.StateFailedRetryable:
	}
	return plain
}

func toneOfOutcome(outcome string) tone {
	if outcome == string(storage.MessageDelivered) {
		return good
	}
	return plain
}
