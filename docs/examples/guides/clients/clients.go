// Package clients is the program of docs/guides/retrying-clients.md: a client that keeps its key until it has kept the answer.
package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/idem/client"
)

// Answer is what the API decided about an order, and the key by which the order ends.
type Answer struct {
	Status    int
	Body, Key string
}

// decides are the statuses by which this API decides about an order in an answer that is not marked as stored. Any other one that is
// not stored, such as the 401 of a token that is over or the 404 of a gateway, is no order's answer.
var decides = []int{http.StatusCreated, http.StatusPaymentRequired}

// Answers are the shop's own, in its database: a restart finds them there.
type Answers struct {
	Kept func(name string) (answer Answer, found bool, err error)
	Keep func(name string, answer Answer) error
}

// Shop orders at an API that honours keys.
type Shop struct {
	url     string
	answers Answers
	keys    *client.Transport
	http    *http.Client
}

// NewShop keeps the keys of orders that are not done with in the folder, so that a restart finds them.
func NewShop(url, folder string, answers Answers) (*Shop, error) {
	journal, err := client.OpenFileJournal(folder, client.EntriesMaxDefault)
	if err != nil {
		return nil, err
	}
	keys, err := client.New(client.Config{Journal: journal})
	if err != nil {
		return nil, err
	}
	asItIs := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Shop{url, answers, keys, &http.Client{Transport: keys, CheckRedirect: asItIs}}, nil
}

// Order places an order under a name of the shop's own, and returns its answer. A name is used for one order only: called again, it
// returns the answer that is kept.
func (s *Shop) Order(ctx context.Context, name, body string) (Answer, error) {
	answer, found, err := s.answers.Kept(name) // before anything is sent: the key of a kept answer may be forgotten
	if err != nil {
		return Answer{}, err
	}
	if !found {
		if answer, err = s.send(ctx, name, body); err != nil {
			return Answer{}, err
		}
		if err := s.answers.Keep(name, answer); err != nil {
			return Answer{}, err
		}
	}
	return answer, s.keys.Done(ctx, name, answer.Key) // only now may the key be forgotten
}

// send sends the order until the API has decided about it.
func (s *Shop) send(ctx context.Context, name, body string) (Answer, error) {
	ctx = client.WithOperation(ctx, name)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := s.http.Do(r)
	if err == nil {
		response, err = s.keys.Await(ctx, response) // a 202 is not the end
	}
	if mayRepeat(err) {
		return Answer{}, unrepeatable(err) // "look at it, and do not send it again"
	}
	if errors.Is(err, client.ErrUnknown) {
		return Answer{}, unknown(err)
	}
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	key := client.KeyOf(response)
	if !client.Stored(response) && !slices.Contains(decides, response.StatusCode) {
		return Answer{}, &UndecidedError{key, protects(response), errors.New(response.Status + " decides nothing")}
	}
	text, err := io.ReadAll(response.Body)
	if err != nil { // it was too long to be read ahead, and broke off
		return Answer{}, &UndecidedError{key, protects(response), err}
	}
	return Answer{response.StatusCode, string(text), key}, nil
}

// UndecidedError is the error of an order that got an answer which does not say what became of it. It is [client.ErrUnknown].
type UndecidedError struct {
	Key       string // ends the order where it is given up
	Protected bool   // the key protects the order: it may be sent again
	Cause     error
}

// Error implements error.
func (e *UndecidedError) Error() string {
	if !e.Protected {
		return unrepeatable(e.Cause).Error()
	}
	return unknown(e.Cause).Error()
}

// Unwrap returns the cause, and says that the outcome is unknown.
func (e *UndecidedError) Unwrap() []error { return []error{client.ErrUnknown, e.Cause} }

// mayRepeat says that the same order, sent again, may be placed again: the server has forgotten its key, or does not honour it.
func mayRepeat(err error) bool {
	var expired *client.ExpiredError
	var gaveUp *client.GaveUpError
	return errors.As(err, &expired) || errors.As(err, &gaveUp) && gaveUp.Reason == client.ReasonUnprotected
}

// protects says that the key protects what the answer is to.
func protects(response *http.Response) bool {
	status := response.Header.Get("Idempotency-Status")
	return status != "unprotected" && status != "ignored"
}

// unrepeatable is the error of an order that may have been placed, and that would be placed again.
func unrepeatable(err error) error {
	return fmt.Errorf("the order may have been placed; look at it, and do not send it again: %w", err)
}

// unknown is the error of an order that may have been placed, and that may be sent again.
func unknown(err error) error {
	return fmt.Errorf("the order may have been placed; call again with the same name and body: %w", err)
}

// GiveUp ends an order that has no answer, once a person has looked whether it was placed. The key is that of its error. The name is a
// new order afterwards.
func (s *Shop) GiveUp(ctx context.Context, name, key string) error {
	return s.keys.Done(ctx, name, key)
}
