package payments

import (
	"reflect"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
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

// docs/design.md "Messages": Settle is pure, so that whoever brings the evidence writes the same. Given up and provably
// not executed, an operation ends with its business writes too (peers.md H20).
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
		{TopicPayouts, declined, 402, []idem.Write{paidOut(StatusDeclined, "x_1"), back}},
		{TopicPayouts, never, 0, []idem.Write{paidOut(StatusFailed, ""), back}},
		{TopicLegacyPayouts, delivered, 201, []idem.Write{paidOut(StatusSucceeded, "x_1")}},
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
		goesOn := c.topic == TopicScreenings && c.status == 0 && c.writes == nil
		if goesOn != (first.Next != nil) || goesOn && (first.Next.Topic != TopicPayouts || string(first.Next.Payload) != string(m.Payload)) {
			t.Errorf("%s, %T goes on with %+v", c.topic, c.outcome, first.Next)
		}
	}
}

func settleOf(topic string) func(idem.Message, outbox.Outcome) (outbox.Settlement, error) {
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
	payload, err := payoutOf(p).encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := settleScreening(idem.Message{Tenant: "tenant-a", Payload: payload}, outbox.Delivered{Reference: "scr_1"})
	if err != nil || s.Next == nil || s.Next.Topic != TopicLegacyPayouts {
		t.Errorf("settled as %+v, %v", s, err)
	}
}
