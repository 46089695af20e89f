package console

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/storage"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// story is a chain of two messages: one that ended, and one that is unknown, about which an operator did something.
func story() (operator.Story, Facts) {
	return operator.Story{
			Record: &operator.RecordView{State: storage.StatePending, Kind: idem.KindDeferred, Operation: "payouts.create", CreatedAt: noon},
			Messages: []operator.MessageView{
				{ID: "op_1.1", State: storage.MessageDelivered, Topic: "screenings", Reference: "scr_1", CreatedAt: noon, FirstClaimedAt: noon, OpenSince: noon, DoneAt: noon.Add(time.Second)},
				{ID: "op_1.2", State: storage.MessageUnknown, Topic: "payouts", UnansweredCalls: 3, DiedClaims: 1, CreatedAt: noon.Add(time.Second), FirstClaimedAt: noon.Add(2 * time.Second), OpenSince: noon.Add(2 * time.Second)},
			},
			Audit: []operator.Entry{{At: noon.Add(time.Minute), Actor: "ada", Action: "close", State: operator.EntryRefused, Reason: "ticket 17"}},
		}, Facts{Objects: []Object{
			{Reference: "scr_1", Outcome: "delivered", At: noon.Add(time.Millisecond)}, {Reference: "po_1"},
		}}
}

// Every time that is stored is a mark on its lane, in order; what is not stored has no mark, and is listed.
func TestTimelineHasWhatIsStoredAndNothingElse(t *testing.T) {
	s, facts := story()
	got := timelineOf(s, facts, noon.Add(time.Hour))
	var marks []string
	for _, m := range got.Marks {
		marks = append(marks, got.Lanes[m.Lane]+" "+m.At.Sub(noon).String()+" "+m.Title)
	}
	want := []string{
		"Record 0s Request executed", "Message 1 0s Message committed", "Message 1 0s First claimed", "Message 1 0s Call sent",
		"Provider 1ms Provider made scr_1", "Message 1 1s Message delivered", "Message 2 1s Message committed", "Message 2 2s First claimed",
		"Message 2 2s Call sent whose outcome is not known", "Operators 1m0s close by ada: refused",
	}
	if !slices.Equal(marks, want) {
		t.Errorf("marks\n%s\nwant\n%s", strings.Join(marks, "\n"), strings.Join(want, "\n"))
	}
	missing := strings.Join(got.Missing, "\n")
	for _, text := range []string{
		"Message 2: 3 calls without a definite answer", "Message 2: 1 claim expired", "The provider does not say when it made po_1", "woke a worker", "Message 1: who settled it",
	} {
		if !strings.Contains(missing, text) {
			t.Errorf("no %q in\n%s", text, missing)
		}
	}
	for _, bare := range []operator.Story{
		{Messages: []operator.MessageView{{State: storage.MessageDelivered}}}, {Record: &operator.RecordView{State: storage.StateCompleted}},
	} {
		if got := timelineOf(bare, Facts{}, noon); len(got.Marks) != 0 || !strings.Contains(strings.Join(got.Missing, "\n"), "not recorded") {
			t.Errorf("times out of nothing: %+v", got)
		}
	}
}

// Who settled a message stands where it ended, with what the provider calls its effect; one that has not ended has no settler.
func TestTimelineSaysWhoSettled(t *testing.T) {
	for by, want := range map[storage.Settler]string{
		storage.SettledByWorker: "settled by a worker, ch_1", storage.SettledByInline: "settled within the request, ch_1",
		storage.SettledBySweep: "settled by the sweep, ch_1", storage.SettledByReconciler: "settled by the reconciler, ch_1",
		storage.SettledByWebhook: "settled by a webhook, ch_1", storage.SettledByOperator: "settled by an operator, ch_1",
		"astronomer": "settled by astronomer, ch_1", "": "ch_1",
	} {
		line := timelineOf(operator.Story{Messages: []operator.MessageView{
			{State: storage.MessageDelivered, Reference: "ch_1", SettledBy: by, DoneAt: noon}, {State: storage.MessageUnknown},
		}}, Facts{}, noon)
		if got := line.Marks[0].Detail; got != want {
			t.Errorf("%q: %q, want %q", by, got, want)
		}
		if missing := strings.Contains(strings.Join(line.Missing, "\n"), "who settled it"); missing != (by == "") {
			t.Errorf("%q: missing %q", by, line.Missing)
		}
	}
}

// Of retries the rows have counts, the last outcome and the next time: they stand at the moment that they lead to.
func TestTimelineTellsHowOftenItWasTried(t *testing.T) {
	at := noon.Add(time.Hour)
	for want, m := range map[string]operator.MessageView{
		"Attempt due: 2 calls without a definite answer, of at most 10; 1 claim expired; the last outcome: retryable": {
			State: storage.MessagePending, UnansweredCalls: 2, CallsMax: 10, DiedClaims: 1, LastOutcome: "retryable", NextAttemptAt: at,
		},
		"Attempt due: 1 call without a definite answer": {State: storage.MessagePending, UnansweredCalls: 1, NextAttemptAt: at},
		"Attempt due: ":                {State: storage.MessagePending, CallsMax: 10, NextAttemptAt: at},
		"Claim ends: 2 claims expired": {State: storage.MessageClaimed, CallsMax: 10, DiedClaims: 2, LeaseUntil: at},
		"Due for the sweep: it wakes a worker, if nothing else has":                           {State: storage.MessagePending, LookAt: at},
		"Due for the sweep: it wakes another worker, if the claim has ended without a result": {State: storage.MessageClaimed, LookAt: at},
		"Due for the sweep: it settles the answer that is kept: delivered":                    {State: storage.MessageEvidenced, Kept: []string{"delivered"}, LookAt: at},
		"Due for the reconciler: it asks the provider, where the topic has a Probe":           {State: storage.MessageUnknown, UnansweredCalls: 1, LastOutcome: "ambiguous", LookAt: at},
		"Message delivered: settled by a worker, ch_1, after 1 call without a definite answer": {
			State: storage.MessageDelivered, UnansweredCalls: 1, CallsMax: 10, SettledBy: storage.SettledByWorker, Reference: "ch_1", DoneAt: at,
		},
		"First claimed: 1.5 s after the commit": {State: storage.MessageDead, CreatedAt: at.Add(-1500 * time.Millisecond), FirstClaimedAt: at},
		"First claimed: 0 ms after the commit":  {State: storage.MessageDead, CreatedAt: at, FirstClaimedAt: at},
		"First claimed: ":                       {State: storage.MessageDead, CreatedAt: at.Add(time.Second), FirstClaimedAt: at},
	} {
		var marks []string
		for _, mark := range timelineOf(operator.Story{Messages: []operator.MessageView{m}}, Facts{}, noon).Marks {
			marks = append(marks, mark.Title+": "+mark.Detail)
		}
		if !slices.Contains(marks, want) {
			t.Errorf("%q, want %q", marks, want)
		}
	}
	line := timelineOf(operator.Story{Record: &operator.RecordView{State: storage.StateUnknown, LookAt: at}}, Facts{}, noon)
	if len(line.Marks) != 1 || line.Marks[0].Title != "Due for the reconciler" || !line.Marks[0].Planned {
		t.Errorf("an unknown record: %+v", line.Marks)
	}
}

// What no row has is in the log, and a query finds it there: by the operation, and by its trace where it has one.
func TestTimelineSaysWhatTheLogHas(t *testing.T) {
	s, facts := story()
	s.Operation = "op_1"
	line := timelineOf(s, facts, noon)
	if want := `filter operation_id = "op_1" or message like "op_1" | sort @timestamp`; line.Query != want {
		t.Errorf("%s, want %s", line.Query, want)
	}
	for _, event := range []string{"idempotency.reserve.created, .replay", "outbox.offered", "outbox.answered", "outbox.retried", "outbox.delivered"} {
		if !strings.Contains(strings.Join(line.Logged, "\n"), event) {
			t.Errorf("no %s in %q", event, line.Logged)
		}
	}
	s.Record.TraceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	if line = timelineOf(s, facts, noon); !strings.HasPrefix(line.Query, `filter trace_id = "4bf92f3577b34da6a3ce929d0e0e4736" or operation_id = "op_1"`) {
		t.Error(line.Query)
	}
	if alone := timelineOf(operator.Story{Record: s.Record}, Facts{}, noon); len(alone.Logged) != 1 {
		t.Errorf("without a message: %q", alone.Logged)
	}
}

func TestTimelineTellsWhatIsToCome(t *testing.T) {
	s := operator.Story{
		Record:   &operator.RecordView{State: storage.StateInProgress, Kind: idem.KindWrapped, CreatedAt: noon, LeaseUntil: noon.Add(time.Minute)},
		Messages: []operator.MessageView{{State: storage.MessagePending, CreatedAt: noon, NextAttemptAt: noon.Add(time.Hour)}, {State: storage.MessageClaimed, CreatedAt: noon, LeaseUntil: noon.Add(time.Second)}},
	}
	for _, m := range timelineOf(s, Facts{}, noon.Add(2*time.Second)).Marks {
		if want := m.Title == "Lease ends" || m.Title == "Attempt due"; m.Planned != want {
			t.Errorf("%+v", m)
		}
	}
}

// Whatever lies on top of each other in time stays apart in the picture, and within it.
func TestPicture(t *testing.T) {
	s, facts := story()
	line := timelineOf(s, facts, noon.Add(time.Hour))
	p := draw(line)
	if len(p.Dots) != len(line.Marks) || len(p.Lanes) != len(line.Lanes) || len(p.Lines) != 3 {
		t.Fatalf("%+v", p)
	}
	places := map[[2]int]bool{}
	for i, d := range p.Dots {
		if d.N != i+1 || places[[2]int{d.X, d.Y}] || d.X < labelWidth || d.X > p.Width || d.Y > p.Height {
			t.Errorf("dot %+v", d)
		}
		places[[2]int{d.X, d.Y}] = true
		if i > 0 && line.Marks[i].At.After(line.Marks[i-1].At) && d.X <= p.Dots[i-1].X && d.Y == p.Dots[i-1].Y {
			t.Errorf("dot %+v is not after %+v", d, p.Dots[i-1])
		}
	}
	for _, l := range p.Lines {
		if l.X < labelWidth || l.Width < 1 || l.X+l.Width > p.Width {
			t.Errorf("line %+v", l)
		}
	}
	if got := p.Gaps[0].Text + " " + p.Gaps[len(p.Gaps)-1].Text; got != "+1 ms +59 min" {
		t.Errorf("gaps %q", got)
	}
	if empty := draw(timeline{Now: noon}); empty.Width <= 0 || len(empty.Dots) != 0 {
		t.Errorf("%+v", empty)
	}
}

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 999 * time.Millisecond: "999 ms", 1500 * time.Millisecond: "1.5 s", 59 * time.Second: "59 s", 90 * time.Second: "1 min 30 s",
		time.Hour: "1 h", 25 * time.Hour: "1 d 1 h", 49*time.Hour + time.Minute: "2 d 1 h", -2 * time.Second: "-2.0 s",
	} {
		if got := span(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

// How it stands is said in a sentence, of what keeps it first.
func TestSummaries(t *testing.T) {
	message := func(state storage.MessageState) operator.Story {
		return operator.Story{Messages: []operator.MessageView{{State: storage.MessageDelivered}, {State: state, Topic: "t", CreatedAt: noon, OpenSince: noon}}}
	}
	record := func(state storage.State) operator.Story {
		return operator.Story{Record: &operator.RecordView{State: state, CreatedAt: noon, ResponseStatus: 201}}
	}
	held := func(state storage.State, until time.Time) operator.Story { // of a key that was freed, and taken again later
		return operator.Story{Record: &operator.RecordView{State: state, CreatedAt: noon.Add(-23 * time.Hour), LeaseUntil: until}}
	}
	for want, s := range map[string]operator.Story{
		"waits for a worker for 1 min (2 calls without a definite answer, of at most 10; the last outcome: retryable).": {Messages: []operator.MessageView{
			{State: storage.MessagePending, CreatedAt: noon, UnansweredCalls: 2, CallsMax: 10, LastOutcome: "retryable"},
		}},
		"could not be settled (10 calls without a definite answer, of at most 10). Nothing moves": {Messages: []operator.MessageView{
			{State: storage.MessageDead, UnansweredCalls: 10, CallsMax: 10},
		}},
		"waits for a worker for 1 min.": message(storage.MessagePending),
		"is dead":                       message(storage.MessageDead), "has been unknown for 1 min: the call may have happened": message(storage.MessageUnknown), "keeps the provider's answer": message(storage.MessageEvidenced),
		"is claimed": message(storage.MessageClaimed), "waits for a worker for 1 min": message(storage.MessagePending), "its record was removed": {},
		"It is unknown, and the lease of its execution ended 48 s ago: the handler may": held(storage.StateUnknown, noon.Add(12*time.Second)),
		"It is unknown: the handler may":                                                held(storage.StateUnknown, noon.Add(time.Hour)),
		"It was begun 23 h 1 min ago, and has not ended: an execution holds its lease, which lasts until 2026-11-21 12:01:10 UTC (in 10 s).": held(storage.StateInProgress, noon.Add(70*time.Second)),
		"It was begun 23 h 1 min ago, and has not ended: the lease of its execution ended 1 min ago.":                                        held(storage.StateInProgress, noon),
		"It has had no final answer for 1 min":                                                record(storage.StatePending),
		"Another release wrote it (unreadable record: schema 2). This console can't judge it": {Record: &operator.RecordView{State: "paused", Unreadable: "unreadable record: schema 2"}},
		"Another release wrote it (message 2: unreadable message: schema 2). This console can't judge it": {
			Record: &operator.RecordView{State: storage.StateCompleted}, Messages: []operator.MessageView{{ID: "op_.1", State: storage.MessageDead}, {ID: "op_.2", State: "paused", Unreadable: "unreadable message: schema 2"}},
		},
		"It has failed. Every retry gets the stored answer, status 201": record(storage.StateFailed), "Nothing happened": record(storage.StateFailedRetryable), "It is completed": record(storage.StateCompleted),
	} {
		if got, tone := summary(s, noon.Add(time.Minute)); !strings.Contains(got, want) || tone == "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
