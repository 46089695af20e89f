package payments

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// event is the body of a webhook: what became of the effect that was asked for under a downstream key.
type event struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Key  string `json:"key"`
	// Data is the provider's object, as look-ups show it.
	Data jsontext.Value `json:"data"`
}

// eventTextMax bounds an event's id and its type, which logs show, in bytes.
const eventTextMax = 255

var errNoEvent = errors.New("payments: the webhook's body is not an event")

// eventIn reads a webhook. A member that it does not know is the provider's to add.
func eventIn(body []byte) (event, error) {
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		return e, fmt.Errorf("%w: %w", errNoEvent, err)
	}
	if e.ID == "" || max(len(e.ID), len(e.Type)) > eventTextMax {
		return e, fmt.Errorf("%w: it has no id, or one that is too long", errNoEvent)
	}
	return e, nil
}

// announced are the topics whose messages an event's object may have been asked for by; nil for a type that is not known
// here.
func (e event) announced() []string {
	switch kind, status, _ := strings.Cut(e.Type, "."); {
	case status != "succeeded" && status != "declined":
		return nil
	case kind == "charge":
		return []string{TopicCharges, TopicLegacyCharges}
	case kind == "refund":
		return []string{TopicRefunds}
	case kind == "screening":
		return []string{TopicScreenings}
	case kind == "release":
		return []string{TopicReleases}
	case kind == "payout":
		return []string{TopicPayouts, TopicLegacyPayouts}
	}
	return nil
}

// message is the one that the event is about; "" where its key is no message's.
func (e event) message() idem.MessageID {
	id := idem.MessageID(e.Key)
	if _, _, err := id.Operation(); err != nil {
		return ""
	}
	return id
}

// outcome is what the call that made the event's object would have learned, and the money that the object is about. It
// returns an error where the object contradicts the event.
func (e event) outcome() (outbox.Outcome, told, error) {
	made, err := objectIn(e.Data)
	if err != nil {
		return nil, told{}, err
	}
	var about told
	if err := json.Unmarshal(e.Data, &about); err != nil {
		return nil, told{}, err
	}
	_, kind, _ := strings.Cut(e.Type, ".")
	status := Status(kind)
	if made.Status == nil {
		made.Status = &status
	}
	if made.tells(status, idem.MessageID(e.Key)) != nil {
		return nil, told{}, errors.New("payments: the provider's object differs from the event")
	}
	return made.outcome(e.Data), about, nil
}
