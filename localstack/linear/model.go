// Package linear asks whether what clients saw of one key can be explained by one order in which the key was reserved,
// executed and replayed. It records histories of requests that overlap, and has porcupine search for such an order. The
// package belongs to this repository's tools and has no compatibility promise.
package linear

import (
	"fmt"
	"net/http"

	"github.com/anishathalye/porcupine"

	"github.com/idem-go/idem-aws/idem/header"
)

// Request is what a client asks under the key: for the one thing, or for another one.
type Request struct{ Body string }

// Outcome is what a client was told.
type Outcome string

// The outcomes.
const (
	Executed Outcome = "executed" // with the answer
	Replayed Outcome = "replayed" // with the answer
	Mismatch Outcome = "mismatch" // the key was used for something else
	Busy     Outcome = "busy"     // the first request runs
	Lost     Outcome = "lost"     // no answer, or one that says nothing: it may have been executed, or be executed yet
)

// Answer is what came back.
type Answer struct {
	Outcome Outcome
	Body    string
}

// Told is the answer that a client was given. One that the contract does not know is an error.
func Told(status int, h http.Header, body string) (Answer, error) {
	switch said := h.Get(header.NameStatus); {
	case status == http.StatusServiceUnavailable:
		return Answer{Outcome: Lost}, nil
	case status == http.StatusCreated && said == "executed":
		return Answer{Executed, body}, nil
	case status == http.StatusCreated && said == "replayed":
		return Answer{Replayed, body}, nil
	case status == http.StatusUnprocessableEntity && said == "mismatch":
		return Answer{Outcome: Mismatch}, nil
	case status == http.StatusConflict && said == "in_progress":
		return Answer{Outcome: Busy}, nil
	}
	return Answer{}, fmt.Errorf("linear: %d with %s %q is no answer of the contract: %.200s", status, header.NameStatus, h.Get(header.NameStatus), body)
}

// key is the state of a key: free, or held for a request. answer is empty while nobody has seen it.
type key struct {
	held         bool
	body, answer string
}

// Models are two views of the contract. A history must fit both.
//
// An execution takes effect for others at two moments: when it reserves the key, and when it commits. One order has one moment for each
// request. So the first model orders executions by their reserve: a mismatch or a busy answer needs a key that is held. The second orders
// them by their commit: nobody is told busy after that. A replay needs a held key in both.
func Models() map[string]porcupine.Model {
	return map[string]porcupine.Model{
		"reserve": model(func(now key, r Request, o Outcome) bool {
			return now.held && (o == Mismatch) == (now.body != r.Body)
		}),
		"commit": model(func(now key, r Request, o Outcome) bool {
			if !now.held { // somebody has reserved it, and has not committed
				return true
			}
			return o == Mismatch && now.body != r.Body
		}),
	}
}

// model says how a key goes from one state to the next. refused judges answers that change nothing.
func model(refused func(now key, r Request, o Outcome) bool) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{key{}} },
		Step: func(state, input, output any) []any {
			now, r, a := state.(key), input.(Request), output.(Answer)
			taken := key{true, r.Body, a.Body}
			switch a.Outcome {
			case Executed:
				if !now.held {
					return []any{taken}
				}
			case Replayed:
				if now.held && now.body == r.Body && (now.answer == "" || now.answer == a.Body) {
					return []any{taken}
				}
			case Mismatch, Busy:
				if refused(now, r, a.Outcome) {
					return []any{now}
				}
			case Lost:
				if !now.held {
					return []any{now, taken}
				}
				return []any{now}
			}
			return nil
		},
		Equal: func(a, b any) bool { return a == b },
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%s: %s %s", input.(Request).Body, output.(Answer).Outcome, output.(Answer).Body)
		},
	}
	return m.ToModel()
}
