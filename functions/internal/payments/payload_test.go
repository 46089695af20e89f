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
	"github.com/idem-go/idem-aws/idem/storage"
)

// contracts are the payloads' event contracts, by topic: other releases and other readers of the table rely on them. They
// are never changed; another form is another version.
var contracts = map[string]string{
	TopicCharges: "message-payments-charges-v1", TopicLegacyCharges: "message-payments-charges-v1", TopicRefunds: "message-payments-refunds-v1",
	TopicScreenings: "message-payments-screenings-v1", TopicPayouts: "message-payments-payouts-v1", TopicLegacyPayouts: "message-payments-payouts-v1",
	TopicReleases: "message-payments-releases-v1",
}

// What the contracts hold.
var (
	contracted = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	aPayment   = Payment{
		Tenant: "tenant-a", ID: "pay_gAAQIDBAUGBwgJCgsMDQ4P", Status: StatusPending, Amount: 1999, Currency: "EUR", Source: "card_ok",
		Reference: "order-17", CreatedAt: contracted, Message: "op_1.1",
	}
	aRefund = Refund{
		Tenant: "tenant-a", ID: "re_gAAQIDBAUGBwgJCgsMDQ4P", Payment: aPayment.ID, Status: StatusPending, Amount: 500, Currency: "EUR", CreatedAt: contracted,
	}
	aPayout = Payout{
		Tenant: "tenant-a", ID: "po_gAAQIDBAUGBwgJCgsMDQ4P", Status: StatusPending, From: "acct_1", Amount: 500, Currency: "EUR",
		Destination: "iban_ok", CreatedAt: contracted, Message: "op_1.1",
	}
	screened  = payout{screening: screeningOf(aPayout), Screening: "scr_qhhjqyng3o7f6gfkxrga5egx2m"}
	toRelease = release{payout: screened, Because: becauseDeclined, Declined: "po_zcq2v5w7d3kfyt6hxnr4mbeg2a"}
)

func contract(t *testing.T, topic string) []byte {
	t.Helper()
	raw, err := os.ReadFile("../../../events/" + contracts[topic] + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		t.Fatal(err)
	}
	return compact.Bytes()
}

// contractedMessage is a message of the topic with the payload of its contract.
func contractedMessage(t *testing.T, topic string) storage.Message {
	t.Helper()
	return storage.Message{ID: "op_1.1", Tenant: "tenant-a", Topic: topic, Payload: contract(t, topic)}
}

// encoder is a payload that its own release writes.
type encoder interface {
	payload
	encode() ([]byte, error)
}

func TestPayloadsAreTheirContracts(t *testing.T) {
	isContract(t, TopicCharges, chargeOf(aPayment))
	isContract(t, TopicRefunds, refundOf(aRefund, "ch_qhhjqyng3o7f6gfkxrga5egx2m"))
	isContract(t, TopicScreenings, screeningOf(aPayout))
	isContract(t, TopicPayouts, screened)
	isContract(t, TopicReleases, toRelease)
}

func isContract[P interface {
	comparable
	encoder
}](t *testing.T, topic string, p P) {
	t.Helper()
	want := contract(t, topic)
	if got, err := p.encode(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is encoded as %s, %v\nwant %s", topic, got, err, want)
	}
	if got, err := decodePayload[P](want); err != nil || got != p {
		t.Errorf("%s is decoded as %+v, %v, want %+v", topic, got, err, p)
	}
}

// The sample event of the outbox stream carries the contract's message.
func TestPayloadOfTheSampleEvent(t *testing.T) {
	raw, err := os.ReadFile("../../../events/worker-stream-insert.json")
	if err != nil {
		t.Fatal(err)
	}
	var event events.DynamoDBEvent
	if err := json.Unmarshal(raw, &event); err != nil {
		t.Fatal(err)
	}
	image := event.Records[0].Change.NewImage
	if got, want := image["pl"].Binary(), contract(t, TopicCharges); !bytes.Equal(got, want) {
		t.Errorf("the sample's payload is %s, want %s", got, want)
	}
	operation, _, err := idem.MessageID(image["id"].String()).Operation()
	if id := entityID("pay_", operation); err != nil || id != aPayment.ID || image["tp"].String() != TopicCharges {
		t.Errorf("the sample's operation makes payment %s of topic %s, want %s of %s", id, image["tp"].String(), aPayment.ID, TopicCharges)
	}
}

// What this release does not know it does not guess. Nothing is sent, nothing is settled, and the message is
// left to a worker of the release that does (outbox.Topic.Knows).
func TestPayloadOfAnotherVersionIsLeftToItsRelease(t *testing.T) {
	provider, err := NewProvider("http://provider.invalid", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range provider.Topics(Bounds{AttemptsMax: 10}) {
		v1 := string(contract(t, topic.Name))
		if err := topic.Knows([]byte(v1)); err != nil {
			t.Errorf("%s does not know its contract: %v", topic.Name, err)
		}
		for name, payload := range map[string]string{
			"version 2":      strings.Replace(v1, `"version":1`, `"version":2`, 1),
			"no version":     strings.Replace(v1, `"version":1,`, ``, 1),
			"unknown member": strings.Replace(v1, `"version":1`, `"version":1,"tip":5`, 1),
			"no JSON":        "charge",
			"nothing":        "",
		} {
			m := storage.Message{ID: "op_1.1", Tenant: "tenant-a", Payload: []byte(payload)}
			if topic.Knows == nil || topic.Knows(m.Payload) == nil {
				t.Errorf("%s: %s takes it for its own", name, topic.Name)
			}
			if o, ok := topic.Call(t.Context(), m).(outbox.Refused); !ok || o.Cause == nil {
				t.Errorf("%s: %s called: %#v, want Refused", name, topic.Name, o)
			}
			if s, err := topic.Settle(m, outbox.Delivered{Reference: "ch_1"}); err == nil {
				t.Errorf("%s: %s settled as %+v, want an error", name, topic.Name, s)
			}
		}
		if unnamed := strings.Replace(v1, screened.Screening, "", 1); topic.Name == TopicReleases && topic.Knows([]byte(unnamed)) != nil {
			t.Error("a hold without its screening's name is left to another release, and is nobody's")
		}
	}
}
