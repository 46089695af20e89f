package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/call"
	"github.com/idem-go/idem-aws/idem/storage"
)

const topicCharges = "payments.charge"

// payment is what a customer asks for, and what the provider is asked for.
type payment struct {
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Source    string `json:"source"`
	Reference string `json:"reference"`
}

// accept sends the message that has the provider charged. The 202 is what is answered if there is no time to wait for that.
func accept(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
	var p payment
	if err := json.Unmarshal(r.Body, &p); err != nil || p.Amount <= 0 || p.Source == "" {
		return idem.Response{}, &idem.RejectedError{Problem: idem.NewProblem(http.StatusBadRequest, "payment_invalid", "Invalid payment", "A payment has an amount and a source.")}
	}
	p.Reference = string(tx.OperationID())
	payload, err := json.Marshal(p)
	if err != nil {
		return idem.Response{}, err
	}
	tx.Send(topicCharges, payload)
	return idem.JSON(http.StatusAccepted, map[string]string{"state": "pending"})
}

// charges is the effect. The provider honours keys, so a call that may have arrived is made again with the same key.
func charges(provider string) (outbox.Topic, error) {
	if parsed, err := url.Parse(provider); err != nil || parsed.Host == "" {
		return outbox.Topic{}, errors.New("-provider must be an absolute URL")
	}
	client, err := call.New(call.Config{Statuses: map[int]call.Class{
		http.StatusBadRequest: call.Refused, http.StatusNotFound: call.Refused, http.StatusUnprocessableEntity: call.Refused,
		http.StatusUnauthorized: call.Unauthorized, http.StatusForbidden: call.Unauthorized, http.StatusTooManyRequests: call.NotExecuted,
		http.StatusPaymentRequired: call.Declined, http.StatusConflict: call.Unproven,
	}})
	if err != nil {
		return outbox.Topic{}, err
	}
	return outbox.Topic{
		Name: topicCharges,
		Call: func(ctx context.Context, m storage.Message) outbox.Outcome {
			return client.Post(ctx, call.Request{URL: provider + "/charges", Key: m.ID, Body: m.Payload, Reference: reference, Check: agrees})
		},
		Settle: settle,
		Keys:   outbox.Keys{Honoured: true, Retention: 24 * time.Hour},
	}, nil
}

// reference reads the provider's name for the charge.
func reference(body []byte) (string, error) {
	var charge struct{ ID string }
	if err := json.Unmarshal(body, &charge); err != nil {
		return "", err
	}
	if charge.ID == "" {
		return "", errors.New("a charge has an id")
	}
	return charge.ID, nil
}

// agrees holds an answer against the charge in it: a 201 with a charge that is still being processed is no success.
func agrees(declined bool, body []byte) error {
	var charge struct{ Status string }
	if err := json.Unmarshal(body, &charge); err != nil {
		return err
	}
	if want := map[bool]string{false: "succeeded", true: "declined"}[declined]; charge.Status != want {
		return errors.New("the charge has another status than its answer")
	}
	return nil
}

// settle says what the customer gets.
func settle(_ storage.Message, o outbox.Outcome) (s outbox.Settlement, err error) {
	switch o := o.(type) {
	case outbox.Delivered:
		s.Response, err = idem.JSON(http.StatusCreated, map[string]string{"charge": o.Reference})
	case outbox.Declined:
		s.Response = idem.NewProblem(http.StatusPaymentRequired, "payment_declined", "Payment declined", "The provider declined the charge.").Response()
	}
	return s, err
}
