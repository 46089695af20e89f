package payments

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// goldenCharge is the event contract of payments.charges, version 1: other releases and other readers of the table rely
// on it. It is never changed; another form is another version.
const goldenCharge = "../../../events/message-payments-charges-v1.json"

func golden(t *testing.T) (payload []byte, want charge) {
	t.Helper()
	raw, err := os.ReadFile(goldenCharge)
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		t.Fatal(err)
	}
	return compact.Bytes(), charge{
		Version: 1, Payment: "pay_gAAQIDBAUGBwgJCgsMDQ4P", Amount: 1999, Currency: "EUR", Source: "card_ok", Reference: "order-17",
		CreatedAt: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
	}
}

func TestChargeIsEncodedByItsContract(t *testing.T) {
	want, c := golden(t)
	p := Payment{
		Tenant: "tenant-a", ID: c.Payment, Status: StatusPending, Amount: c.Amount, Currency: c.Currency, Source: c.Source,
		Reference: c.Reference, CreatedAt: c.CreatedAt, Message: "op_1.1",
	}
	got, err := chargeOf(p).encode()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("encoded %s, %v\nwant    %s", got, err, want)
	}
}

func TestChargeOfItsContractIsDecoded(t *testing.T) {
	payload, want := golden(t)
	if got, err := decodeCharge(payload); err != nil || got != want {
		t.Errorf("decoded %+v, %v, want %+v", got, err, want)
	}
}

// The sample event of the outbox stream carries the contract's message.
func TestChargeOfTheSampleEvent(t *testing.T) {
	raw, err := os.ReadFile("../../../events/worker-stream-insert.json")
	if err != nil {
		t.Fatal(err)
	}
	var event events.DynamoDBEvent
	if err := json.Unmarshal(raw, &event); err != nil {
		t.Fatal(err)
	}
	image := event.Records[0].Change.NewImage
	payload, want := golden(t)
	if got := image["pl"].Binary(); !bytes.Equal(got, payload) {
		t.Errorf("the sample's payload is %s, want %s", got, payload)
	}
	if id := entityID("pay_", idem.OperationID(image["op"].String())); id != want.Payment || image["tp"].String() != TopicCharges {
		t.Errorf("the sample's operation makes payment %s of topic %s, want %s of %s", id, image["tp"].String(), want.Payment, TopicCharges)
	}
}

// peers.md H17: what this release does not know it does not guess. Nothing is sent, nothing is settled, and the message is
// left to a worker of the release that does.
func TestChargeOfAnotherVersionIsLeftToItsRelease(t *testing.T) {
	v1, _ := golden(t)
	provider, err := NewProvider("http://provider.invalid")
	if err != nil {
		t.Fatal(err)
	}
	for name, payload := range map[string]string{
		"version 2":      strings.Replace(string(v1), `"version":1`, `"version":2`, 1),
		"no version":     strings.Replace(string(v1), `"version":1,`, ``, 1),
		"unknown member": strings.Replace(string(v1), `"version":1`, `"version":1,"tip":5`, 1),
		"no JSON":        "charge",
		"nothing":        "",
	} {
		m := idem.Message{ID: "op_1.1", Tenant: "tenant-a", Payload: []byte(payload)}
		for _, topic := range provider.Topics(10) {
			if o, ok := topic.Call(t.Context(), m).(outbox.NotExecuted); !ok || o.Cause == nil {
				t.Errorf("%s: %s called: %#v, want NotExecuted", name, topic.Name, o)
			}
			if s, err := topic.Settle(m, outbox.Delivered{Reference: "ch_1"}); err == nil {
				t.Errorf("%s: %s settled as %+v, want an error", name, topic.Name, s)
			}
		}
	}
}

func TestChargeSettlesOnlyByWhatEndsIt(t *testing.T) {
	payload, _ := golden(t)
	m := idem.Message{ID: "op_1.1", Tenant: "tenant-a", Payload: payload}
	for _, o := range []outbox.Outcome{outbox.Ambiguous{}, outbox.Refused{}, nil} {
		if s, err := settleCharge(m, o); err == nil {
			t.Errorf("%T settles as %+v", o, s)
		}
	}
}

// docs/design.md "Messages": Settle is pure, so that whoever brings the evidence writes the same.
func TestChargeSettlesTheSameEachTime(t *testing.T) {
	payload, _ := golden(t)
	m := idem.Message{ID: "op_1.1", Tenant: "tenant-a", Payload: payload}
	for _, c := range []struct {
		outcome outbox.Outcome
		write   FinishPayment
		status  int
	}{
		{outbox.Delivered{Reference: "ch_1", Evidence: []byte("a")}, FinishPayment{"tenant-a", "pay_gAAQIDBAUGBwgJCgsMDQ4P", StatusSucceeded, "ch_1"}, 201},
		{outbox.Declined{Reference: "ch_1"}, FinishPayment{"tenant-a", "pay_gAAQIDBAUGBwgJCgsMDQ4P", StatusDeclined, "ch_1"}, 402},
		{outbox.NotExecuted{}, FinishPayment{"tenant-a", "pay_gAAQIDBAUGBwgJCgsMDQ4P", StatusFailed, ""}, 0},
	} {
		first, err := settleCharge(m, c.outcome)
		if err != nil {
			t.Fatal(err)
		}
		m.Epoch, m.Attempts, m.Owner = 7, 3, "another"
		again, err := settleCharge(m, c.outcome)
		if err != nil {
			t.Fatal(err)
		}
		if len(first.Writes) != 1 || first.Writes[0] != c.write || again.Writes[0] != c.write || first.Response.Status != c.status || !bytes.Equal(first.Response.Body, again.Response.Body) {
			t.Errorf("%T: %+v, then %+v; want %+v and status %d", c.outcome, first, again, c.write, c.status)
		}
	}
}
