package service

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/call"
	"github.com/idem-go/idem-aws/idem/storage"
)

const topicShipments = "orders.ship"

// shipments has the warehouse ship orders. It remembers a key for a week, so a call is repeated until it is answered.
func shipments(orders orders, warehouse string) (outbox.Topic, error) {
	client, err := call.New(call.Config{Statuses: map[int]call.Class{
		http.StatusBadRequest:          call.Refused,
		http.StatusUnauthorized:        call.Unauthorized,
		http.StatusForbidden:           call.Unauthorized,
		http.StatusNotFound:            call.Ambiguous,
		http.StatusConflict:            call.Unproven,
		http.StatusUnprocessableEntity: call.Refused,
		http.StatusTooManyRequests:     call.NotExecuted,
	}})
	return outbox.Topic{
		Name: topicShipments,
		Keys: outbox.Keys{Honoured: true, Retention: 7 * 24 * time.Hour},
		Call: func(ctx context.Context, m storage.Message) outbox.Outcome {
			return client.Post(ctx, call.Request{URL: warehouse + "/shipments", Key: m.ID, Body: m.Payload, Reference: shipmentIn})
		},
		Settle: func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) { return settle(orders, m, o) },
	}, err
}

// shipmentIn reads the warehouse's name for a shipment from its answer. An answer without one is not evidence.
func shipmentIn(body []byte) (string, error) {
	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &made); err != nil {
		return "", err
	}
	if made.ID == "" {
		return "", errors.New("the answer names no shipment")
	}
	return made.ID, nil
}

// settle says what an answer of the warehouse means to the order. Its client has long been answered.
func settle(orders orders, m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	var placed order
	if err := json.Unmarshal(m.Payload, &placed); err != nil {
		return outbox.Settlement{}, err
	}
	state, shipment := stateRefused, ""
	if done, ok := o.(outbox.Delivered); ok {
		state, shipment = stateShipped, done.Reference
	}
	return outbox.Settlement{Writes: []idem.Write{orders.end(placed.ID, state, shipment)}}, nil
}
