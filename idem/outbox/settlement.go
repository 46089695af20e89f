package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// settlement builds the transaction that ends a message with evidence. An error is the topic's: its Settle failed or
// answered what can't be stored.
func (d *desk) settlement(topic Topic, m, next idem.Message, o Outcome) (idem.Settlement, error) {
	said, err := topic.ask(m, o)
	if err != nil {
		return idem.Settlement{}, err
	}
	s := idem.Settlement{Message: endOf(next), Writes: said.Writes}
	switch {
	case said.Next != nil:
		s.Next, err = d.following(m, *said.Next, next.DoneAt)
		return s, err
	case m.Detached:
		return s, nil
	case said.Response.Status < 200 || said.Response.Status > 599:
		return s, fmt.Errorf("outbox: settle of %s answered with status %d and no next message", topic.Name, said.Response.Status)
	}
	if said.Response.Bytes() > topic.ResponseBytesMax {
		said.Response = topic.short(m, o, said.Response.Status)
	}
	s.Record, err = d.endOfRecord(m, idem.StateCompleted, said.Response, next.DoneAt)
	return s, err
}

// failure builds the transaction that gives a message up when provably nothing happened: no final answer without its
// business writes (peers.md H20).
func (d *desk) failure(topic Topic, seen, next idem.Message, answer idem.Problem) (idem.Settlement, error) {
	said, err := topic.ask(seen, NotExecuted{})
	if err != nil {
		return idem.Settlement{}, err
	}
	if said.Next != nil {
		return idem.Settlement{}, fmt.Errorf("outbox: settle of %s sends a message although nothing was executed", topic.Name)
	}
	fence := idem.FenceOfMessage(seen)
	s := idem.Settlement{Message: endOf(next), Fence: &fence, Writes: said.Writes}
	if seen.Detached {
		return s, nil
	}
	if s.Record, err = d.endOfRecord(seen, idem.StateFailed, answer.Response(), d.now()); err != nil {
		return idem.Settlement{}, err
	}
	s.Record.LastError = answer.Code
	return s, nil
}

// ask calls Settle; a panic is an error like any other.
func (t Topic) ask(m idem.Message, o Outcome) (said Settlement, err error) {
	if m.Sealed {
		return Settlement{}, fmt.Errorf("outbox: settle of %s: the payload can't be opened any more", t.Name)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("outbox: settle of %s panicked with a %T", t.Name, p)
		}
	}()
	return t.Settle(m, o)
}

func (d *desk) endOfRecord(m idem.Message, state idem.State, response idem.Response, now time.Time) (*idem.RecordEnd, error) {
	revision, err := d.mint.Revision()
	if err != nil {
		return nil, err
	}
	expires := m.Expiry.At(now, m.Retention, response.Status)
	return &idem.RecordEnd{
		Key: m.RecordKey, OperationID: m.OperationID, State: state, Revision: revision, Response: response,
		DoneAt: now, ExpiresAt: expires, FreeAt: m.Expiry.FreeAt(expires), Expiry: m.Expiry,
	}, nil
}

// following makes the next message of a chain. Its id is the next phase's downstream key.
func (d *desk) following(m idem.Message, next Next, now time.Time) (*idem.Message, error) {
	if m.Detached {
		return nil, errors.New("outbox: a message whose operation is complete without it has no chain to continue")
	}
	if _, ok := d.topics.byName[next.Topic]; !ok {
		return nil, &TopicError{next.Topic}
	}
	id := m.OperationID.Message(m.Index + 1)
	if _, _, err := id.Operation(); err != nil {
		return nil, fmt.Errorf("outbox: message %d of a chain: %w", m.Index+1, err)
	}
	return &idem.Message{
		ID: id, Index: m.Index + 1, OperationID: m.OperationID, RecordKey: m.RecordKey, Tenant: m.Tenant,
		Topic: next.Topic, Payload: next.Payload, State: idem.MessagePending,
		CreatedAt: now, NextAttemptAt: now, SweepAt: now.Add(d.cfg.SweepGrace),
		Retention: m.Retention, Expiry: m.Expiry, SchemaVersion: idem.SchemaVersion,
	}, nil
}

// short is what is stored where the final response is too large: the topic's fallback, or if that is none or too large
// itself, the status with the operation and the provider's reference (peers.md H10).
func (t Topic) short(m idem.Message, o Outcome, status int) idem.Response {
	if t.Fallback != nil {
		if r, ok := t.ownShort(m, o); ok && r.Status >= 200 && r.Status <= 599 && r.Bytes() <= t.ResponseBytesMax {
			return r
		}
	}
	body := struct {
		Operation idem.OperationID `json:"operation"`
		Reference string           `json:"reference,omitempty"`
		Code      string           `json:"code"`
	}{Operation: m.OperationID, Reference: referenceOf(o), Code: "response_too_large"}
	if len(body.Reference) > referenceBytesMax {
		body.Reference = ""
	}
	raw, err := json.Marshal(body)
	if err != nil { // strings always encode
		panic(err)
	}
	return idem.Response{Status: status, Header: []idem.Field{{Name: "Content-Type", Value: "application/json"}}, Body: raw}
}

// referenceBytesMax keeps the default fallback within fallbackBytes: JSON escapes make at most six bytes of one.
const referenceBytesMax = 512

func (t Topic) ownShort(m idem.Message, o Outcome) (r idem.Response, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return t.Fallback(m, o), true
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

// answerOf is the stored answer of an operation whose message was given up.
func answerOf(m idem.Message) idem.Problem {
	if m.State == idem.MessageCancelled {
		return idem.NewProblem(http.StatusRequestTimeout, "operation_abandoned", "Operation Abandoned",
			"Nobody began to execute the operation in time. Nothing was executed.")
	}
	return idem.NewProblem(http.StatusBadGateway, "provider_unavailable", "Provider Unavailable",
		"The provider could not be reached in time. Nothing was executed.")
}

// operationClosed is the stored answer of an operation that an operator ended.
func operationClosed() idem.Problem {
	return idem.NewProblem(http.StatusBadGateway, "operation_closed", "Operation Closed",
		"The provider's answer could not be had, and the operation was closed. Nothing was executed.")
}
