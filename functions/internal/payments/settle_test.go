package payments

import (
	"reflect"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

func TestNothingSettlesByWhatEndsNothing(t *testing.T) {
	for _, e := range effects() {
		for _, o := range []outbox.Outcome{outbox.Ambiguous{}, outbox.Refused{}, nil} {
			if s, err := e.settle(contractedMessage(t, e.topic), o); err == nil {
				t.Errorf("%T settles %s as %+v", o, e.topic, s)
			}
		}
	}
}

// docs/design.md "One message, step by step": Settle is pure, so that whoever brings the evidence writes the same. Given
// up and provably not executed, an operation ends with its business writes too.
func TestSettlementsAreTheSameEachTime(t *testing.T) {
	delivered, declined, never := outbox.Delivered{Reference: "x_1", Evidence: []byte("a")}, outbox.Declined{Reference: "x_1"}, outbox.NotExecuted{}
	back := Credit{"tenant-a", "acct_1", 500, "EUR"}
	release := ReleaseRefund{"tenant-a", aPayment.ID, 500}
	charged := func(s Status, reference string) idem.Write {
		return FinishPayment{"tenant-a", aPayment.ID, s, reference}
	}
	refunded := func(s Status, reference string) idem.Write { return FinishRefund{"tenant-a", aRefund.ID, s, reference} }
	paidOut := func(s Status, reference string) idem.Write { return FinishPayout{"tenant-a", aPayout.ID, s, reference} }
	for _, c := range []struct {
		topic   string
		outcome outbox.Outcome
		status  int // of the final answer; 0 where the outbox answers, or the chain goes on
		writes  []idem.Write
	}{
		{TopicCharges, delivered, 201, []idem.Write{charged(StatusSucceeded, "x_1")}},
		{TopicCharges, declined, 402, []idem.Write{charged(StatusDeclined, "x_1")}},
		{TopicCharges, never, 0, []idem.Write{charged(StatusFailed, "")}},
		{TopicLegacyCharges, delivered, 201, []idem.Write{charged(StatusSucceeded, "x_1")}},
		{TopicRefunds, delivered, 201, []idem.Write{refunded(StatusSucceeded, "x_1")}},
		{TopicRefunds, declined, 402, []idem.Write{refunded(StatusDeclined, "x_1"), release}},
		{TopicRefunds, never, 0, []idem.Write{refunded(StatusFailed, ""), release}},
		{TopicScreenings, delivered, 0, nil},
		{TopicScreenings, declined, 402, []idem.Write{paidOut(StatusDeclined, ""), back}},
		{TopicScreenings, never, 0, []idem.Write{paidOut(StatusFailed, ""), back}},
		{TopicPayouts, delivered, 201, []idem.Write{paidOut(StatusSucceeded, "x_1")}},
		{TopicPayouts, declined, 0, nil},
		{TopicPayouts, never, 0, nil},
		{TopicLegacyPayouts, delivered, 201, []idem.Write{paidOut(StatusSucceeded, "x_1")}},
		{TopicLegacyPayouts, declined, 0, nil},
		{TopicLegacyPayouts, never, 0, nil},
		{TopicReleases, delivered, 402, []idem.Write{paidOut(StatusDeclined, toRelease.Declined), back}},
	} {
		m := contractedMessage(t, c.topic)
		first, err := settleOf(c.topic)(m, c.outcome)
		if err != nil {
			t.Fatal(err)
		}
		m.Epoch, m.Attempts, m.Owner = 7, 3, "another"
		again, err := settleOf(c.topic)(m, c.outcome)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(first, again) || first.Response.Status != c.status || !reflect.DeepEqual(first.Writes, c.writes) {
			t.Errorf("%s, %T: %+v, then %+v; want %+v and status %d", c.topic, c.outcome, first, again, c.writes, c.status)
		}
		if goesOn := c.status == 0 && c.writes == nil; goesOn != (first.Next != nil) {
			t.Errorf("%s, %T goes on with %+v", c.topic, c.outcome, first.Next)
		}
	}
}

// docs/recovery.md "Write a row by hand": what was cancelled was not made; what can't be read, or ends no row, says nothing.
func TestAMessageThatHasEndedSaysWhatItsRowIs(t *testing.T) {
	for topic, want := range map[string]Status{
		TopicRefunds: StatusFailed, TopicScreenings: StatusFailed, TopicPayouts: StatusPending, TopicReleases: "", TopicCharges: "", "another": "",
	} {
		m := storage.Message{Topic: topic}
		if topic != "another" {
			m = contractedMessage(t, topic)
		}
		m.Topic, m.State = topic, storage.MessageCancelled
		if got := statusAfter(m); got != want {
			t.Errorf("%s cancelled: %q, want %q", topic, got, want)
		}
		m.Payload, m.State = []byte("sealed"), storage.MessageDelivered
		if got := statusAfter(m); got != "" {
			t.Errorf("%s unreadable: %q", topic, got)
		}
	}
}

// A message is followed by one that knows all that its settlement needs: nothing is read to settle it.
func TestAPayoutsChainGoesOnWithAllThatItKnows(t *testing.T) {
	notExecuted := toRelease
	notExecuted.Because, notExecuted.Declined = becauseNotExecuted, ""
	passed, declined := outbox.Delivered{Reference: screened.Screening}, outbox.Declined{Reference: toRelease.Declined}
	for _, c := range []struct {
		topic   string
		outcome outbox.Outcome
		next    string
		payload encoder
	}{
		{TopicScreenings, passed, TopicPayouts, screened},
		{TopicPayouts, declined, TopicReleases, toRelease},
		{TopicPayouts, outbox.NotExecuted{}, TopicReleases, notExecuted},
		{TopicLegacyPayouts, declined, TopicReleases, toRelease},
		{TopicLegacyPayouts, outbox.NotExecuted{}, TopicReleases, notExecuted},
	} {
		s, err := settleOf(c.topic)(contractedMessage(t, c.topic), c.outcome)
		if err != nil {
			t.Fatal(err)
		}
		want, err := c.payload.encode()
		if err != nil || s.Next == nil || s.Next.Topic != c.next || string(s.Next.Payload) != string(want) || s.Writes != nil {
			t.Errorf("%s, %T goes on with %+v, want %s of %s", c.topic, c.outcome, s, want, c.next)
		}
	}
}

// Once its hold is released, a payout ends by why it was not made. Nothing of what was executed is denied.
func TestAReleaseEndsThePayoutByItsReason(t *testing.T) {
	for because, want := range map[reason]struct {
		status int
		detail string
		row    FinishPayout
	}{
		becauseDeclined: {402, "The provider declined the payout. The funds are back on the account.",
			FinishPayout{"tenant-a", aPayout.ID, StatusDeclined, toRelease.Declined}},
		becauseNotExecuted: {502, "The screening was executed and its hold released; the payout was not executed.",
			FinishPayout{"tenant-a", aPayout.ID, StatusFailed, ""}},
	} {
		r := toRelease
		if r.Because = because; because == becauseNotExecuted {
			r.Declined = ""
		}
		s, err := settleRelease(released(t, r), outbox.Delivered{Reference: "rel_1"})
		if err != nil {
			t.Fatal(err)
		}
		writes := []idem.Write{want.row, Credit{"tenant-a", "acct_1", 500, "EUR"}}
		if s.Response.Status != want.status || !strings.Contains(string(s.Response.Body), want.detail) || !reflect.DeepEqual(s.Writes, writes) || s.Next != nil {
			t.Errorf("%s: %+v %s", because, s, s.Response.Body)
		}
	}
}

// While the hold stands the operation does not end: there is no answer that would be true.
func TestAHoldThatStandsEndsNothing(t *testing.T) {
	for _, o := range []outbox.Outcome{outbox.Declined{Reference: "rel_1"}, outbox.NotExecuted{}} {
		if s, err := settleRelease(released(t, toRelease), o); err == nil {
			t.Errorf("%T ends the payout with %+v", o, s)
		}
	}
	unknown := toRelease
	unknown.Because = "bored"
	if s, err := settleRelease(released(t, unknown), outbox.Delivered{Reference: "rel_1"}); err == nil {
		t.Errorf("an unknown reason ends the payout with %+v", s)
	}
}

// A screening that nobody can name could never be released, so it does not go on.
func TestAScreeningWithoutAReferenceDoesNotGoOn(t *testing.T) {
	if s, err := settleScreening(contractedMessage(t, TopicScreenings), outbox.Delivered{}); err == nil {
		t.Errorf("settled as %+v", s)
	}
	nameless := toRelease
	nameless.Screening = ""
	if asked, err := orderRelease(released(t, nameless).Payload); err == nil {
		t.Errorf("asks for %+v", asked)
	}
}

// released is a message that releases a hold.
func released(t *testing.T, r release) storage.Message {
	t.Helper()
	payload, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	return storage.Message{ID: "op_1.3", Tenant: "tenant-a", Topic: TopicReleases, Payload: payload}
}

func settleOf(topic string) func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
	for _, e := range effects() {
		if e.topic == topic {
			return agreed(e.settle)
		}
	}
	return nil
}

// docs/payments-api.md: what is screened goes on at the keyless endpoints where the destination's name says so.
func TestScreeningOfALegacyDestinationGoesOnWithoutKeys(t *testing.T) {
	p := aPayout
	p.Destination = "legacy_iban"
	payload, err := screeningOf(p).encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := settleScreening(storage.Message{Tenant: "tenant-a", Payload: payload}, outbox.Delivered{Reference: "scr_1"})
	if err != nil || s.Next == nil || s.Next.Topic != TopicLegacyPayouts {
		t.Errorf("settled as %+v, %v", s, err)
	}
}
