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
	"sync"

	"github.com/idem-go/idem-aws/idem/client"
)

// Answer is what the API decided about an order, and the key by which the order ends. Without a status it is a mark: the order may have
// been placed, and is not to be sent again.
type Answer struct {
	Status    int
	Body, Key string
}

// decides are the statuses by which this API decides about an order in an answer that is not marked as stored. Any other one that is
// not stored, such as the 401 of a token that is over or the 404 of a gateway, is no order's answer.
var decides = []int{http.StatusCreated, http.StatusPaymentRequired}

// answerBytesMax is more than any answer about an order has. The client reads shorter ones ahead, and hands a longer one over as it comes.
const answerBytesMax = 16 << 20

// Answers are the shop's own, in its database: a restart finds them there.
type Answers struct {
	Kept func(name string) (answer Answer, found bool, err error)
	Keep func(name string, answer Answer) error // leaves an answer that is kept under the name already; it takes a mark's place
	Drop func(name, key string) error           // removes the mark that has the key, and never an answer
}

// Shop orders at an API that honours keys.
type Shop struct {
	url     string
	answers Answers
	keys    *client.Transport
	http    *http.Client
	unkept  sync.Map // by an order's name, the key of a mark that could not be kept
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
	return &Shop{url: url, answers: answers, keys: keys, http: &http.Client{Transport: keys, CheckRedirect: asItIs}}, nil
}

// Order places an order under a name of the shop's own, and returns its answer. A name is used for one order only: called again, it
// returns the answer that is kept. Beside an error that is not [client.ErrUnknown] there may be the answer.
func (s *Shop) Order(ctx context.Context, name, body string) (Answer, error) {
	answer, found, err := s.answers.Kept(name) // before anything is sent: the key of a kept answer may be forgotten
	key, marked := s.unkept.Load(name)
	switch {
	case marked && !found:
		return Answer{}, s.mark(name, &UndecidedError{key.(string), false, errors.Join(errMarked, err)})
	case err != nil:
		return Answer{}, &UndecidedError{"", true, err} // an earlier call may have placed the order
	case found && answer.Status == 0:
		return Answer{}, &UndecidedError{answer.Key, false, errMarked}
	case !found:
		if answer, err = s.send(ctx, name, body); err != nil {
			return Answer{}, s.mark(name, err)
		}
	}
	if err := s.keys.Done(ctx, name, answer.Key); err != nil { // only now may the key be forgotten
		return answer, fmt.Errorf("the order has its answer; only its key is not forgotten: %w", err)
	}
	return answer, nil
}

var errMarked = errors.New("an earlier call ended so")

// mark keeps under the order's name that it is not to be sent again, where its error says so: whatever calls again, such as a queue that
// delivers the job once more, sends nothing then. The database may be what has failed, so the shop remembers a mark until it is kept.
func (s *Shop) mark(name string, err error) error {
	var undecided *UndecidedError
	if !errors.As(err, &undecided) || undecided.Protected {
		return err
	}
	s.unkept.Store(name, undecided.Key)
	if down := s.answers.Keep(name, Answer{Key: undecided.Key}); down != nil {
		return errors.Join(err, down)
	}
	s.unkept.Delete(name)
	return err
}

// send sends the order until the API has decided about it, and keeps its answer.
func (s *Shop) send(ctx context.Context, name, body string) (Answer, error) {
	ctx = client.WithOperation(ctx, name)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := s.http.Do(r)
	protected := err == nil && protects(response)
	if err == nil {
		response, err = s.keys.Await(ctx, response) // a 202 is not the end
	}
	if key, may := mayRepeat(err); may {
		return Answer{}, &UndecidedError{key, false, err} // "look at it, and do not send it again"
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
		return Answer{}, &UndecidedError{key, protected, errors.New(response.Status + " decides nothing")}
	}
	text, err := io.ReadAll(http.MaxBytesReader(nil, response.Body, answerBytesMax))
	if err != nil { // it is longer than that, or was too long to be read ahead and broke off
		return Answer{}, &UndecidedError{key, protected, err}
	}
	answer := Answer{response.StatusCode, string(text), key}
	if err := s.answers.Keep(name, answer); err != nil { // it may be kept, or not
		return Answer{}, &UndecidedError{key, protected, err}
	}
	return answer, nil
}

// UndecidedError is the error of an order whose answer does not say what became of it, or could not be kept or looked for. It is
// [client.ErrUnknown].
type UndecidedError struct {
	Key       string // ends the order where it is given up; "" where the answer was only looked for
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

// mayRepeat says that the same order, sent again, may be placed again: the server has forgotten its key, or does not honour it. It returns
// the key.
func mayRepeat(err error) (string, bool) {
	var expired *client.ExpiredError
	var gaveUp *client.GaveUpError
	switch {
	case errors.As(err, &expired):
		return expired.Key, true
	case errors.As(err, &gaveUp) && gaveUp.Reason == client.ReasonUnprotected:
		return gaveUp.Key, true
	}
	return "", false
}

// protects says that the key protects what the answer is to.
func protects(response *http.Response) bool {
	said := strings.Join(response.Header.Values("Idempotency-Status"), ",") // of servers behind one another, each
	return !strings.Contains(said, "unprotected") && !strings.Contains(said, "ignored")
}

// unrepeatable is the error of an order that may have been placed, and that would be placed again.
func unrepeatable(err error) error {
	return fmt.Errorf("the order may have been placed; look at it, and do not send it again: %w", err)
}

// unknown is the error of an order that may have been placed, and that may be sent again.
func unknown(err error) error {
	return fmt.Errorf("the order may have been placed; call again with the same name and body: %w", err)
}

// GiveUp ends an order that has no answer, once no attempt at it can run any more and a person has looked whether it was placed. The key
// is that of its error. The name is a new order afterwards.
func (s *Shop) GiveUp(ctx context.Context, name, key string) error {
	if err := s.keys.Done(ctx, name, key); err != nil {
		return err
	}
	if err := s.answers.Drop(name, key); err != nil { // last: under a name with a mark nothing is sent
		return err
	}
	s.unkept.Delete(name)
	return nil
}
