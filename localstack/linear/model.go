// Package linear asks whether what clients saw of one key can be explained by one order in which the key was reserved,
// executed and replayed. It records histories of requests that overlap, and has porcupine search for such an order. It knows
// every kind of operation. The package belongs to this repository's tools and has no compatibility promise.
package linear

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
)

// Request is what a client asks under the key: for the one thing, or for another one; or for the status of its operation.
type Request struct {
	Body   string
	Status bool
}

// Outcome is what a client was told.
type Outcome string

// The outcomes.
const (
	Executed Outcome = "executed" // with the final answer
	Replayed Outcome = "replayed" // with the final answer
	Accepted Outcome = "accepted" // with the 202
	Repeated Outcome = "repeated" // with the 202 again
	Mismatch Outcome = "mismatch" // the key was used for something else
	Busy     Outcome = "busy"     // another request runs
	Freed    Outcome = "freed"    // the handler ran, and has done nothing
	Parked   Outcome = "parked"   // the handler ran, and it may have done something
	Unknown  Outcome = "unknown"  // so it was before
	Running  Outcome = "running"  // a status: there is no final answer
	Finished Outcome = "finished" // a status, with the final answer
	Lost     Outcome = "lost"     // no answer, or one that says nothing: it may have been executed, or be executed yet
)

// Answer is what came back.
type Answer struct {
	Outcome Outcome
	Body    string
}

// Told is the answer that a client was given to a POST. One that the contract does not know is an error.
func Told(status int, h http.Header, body string) (Answer, error) {
	switch said := h.Get(header.NameStatus); {
	case status == http.StatusServiceUnavailable && said == "executed":
		return Answer{Outcome: Freed}, nil
	case status == http.StatusServiceUnavailable:
		return Answer{Outcome: Lost}, nil
	case status == http.StatusCreated && said == "executed":
		return Answer{Executed, body}, nil
	case status == http.StatusCreated && said == "replayed":
		return Answer{Replayed, body}, nil
	case status == http.StatusAccepted && said == "executed":
		return Answer{Accepted, body}, nil
	case status == http.StatusAccepted && said == "replayed":
		return Answer{Repeated, body}, nil
	case status == http.StatusUnprocessableEntity && said == "mismatch":
		return Answer{Outcome: Mismatch}, nil
	case status == http.StatusConflict && said == "in_progress":
		return Answer{Outcome: Busy}, nil
	case status == http.StatusConflict && said == "unknown":
		return Answer{Outcome: Unknown}, nil
	case status == http.StatusInternalServerError && said == "unknown":
		return Answer{Outcome: Parked}, nil
	}
	return Answer{}, fmt.Errorf("linear: %d with %s %q is no answer of the contract: %.200s", status, header.NameStatus, h.Get(header.NameStatus), body)
}

// Shown is the answer that a client was given that asked for an operation's status.
func Shown(status int, body string) (Answer, error) {
	if status == http.StatusServiceUnavailable {
		return Answer{Outcome: Lost}, nil
	}
	var shown struct {
		State    string `json:"state"`
		Response *struct {
			Status       int    `json:"status"`
			Body         string `json:"body"`
			BodyEncoding string `json:"body_encoding"`
		} `json:"response"`
	}
	err := json.Unmarshal([]byte(body), &shown)
	switch {
	case err != nil || status != http.StatusOK:
	case shown.State == "pending" || shown.State == "in_progress":
		return Answer{Outcome: Running}, nil
	case shown.State == "completed" && shown.Response != nil && shown.Response.Status == http.StatusCreated:
		final := []byte(shown.Response.Body)
		if shown.Response.BodyEncoding == "base64" {
			if final, err = base64.StdEncoding.DecodeString(shown.Response.Body); err != nil {
				break
			}
		}
		return Answer{Finished, string(final)}, nil
	}
	return Answer{}, fmt.Errorf("linear: %d is no status of the contract: %.300s", status, body)
}

// phase is what became of a key.
type phase string

const (
	free    phase = ""        // nobody has executed; it may be reserved
	pending phase = "pending" // committed, and there is no final answer
	held    phase = "held"    // executed, with a final answer
	parked  phase = "parked"  // it may have been executed
)

// key is the state of a key.
type key struct {
	phase phase
	// body is what the key was used for, "" where it is new. A free key keeps it.
	body string
	// accepted and answer are the 202 and the final answer, "" while nobody has seen them.
	accepted, answer string
	// leased says that a request may have taken a free key over: then another one can be told that it runs.
	leased bool
}

// bound says that a request may use the key.
func (k key) bound(r Request) bool { return k.body == "" || k.body == r.Body }

// Models are the views of the contract of a kind. A history must fit each.
//
// The execution of an atomic or wrapped operation takes effect for others at two moments: when it reserves the key, and when it commits.
// One order has one moment for each request. So one model orders executions by their reserve: a mismatch, a busy answer or an unknown
// outcome needs a key that is held. The other one orders them by their commit: nobody is told busy after that. A replay needs a held key
// in both. An optimistic or deferred operation reserves nothing, so it has one moment: its commit. One that did nothing leaves no trace
// then. Another request is told busy only where a request that was lost may have left a key to be taken over.
func Models(kind idem.Kind) map[string]porcupine.Model {
	if kind == idem.KindOptimistic || kind == idem.KindDeferred {
		return map[string]porcupine.Model{"commit": model(kind, func(now key, r Request, o Outcome) bool {
			if o == Mismatch {
				return !now.bound(r)
			}
			return now.phase == free && now.leased && now.bound(r)
		})}
	}
	return map[string]porcupine.Model{
		"reserve": model(kind, func(now key, r Request, o Outcome) bool {
			if o == Mismatch {
				return !now.bound(r)
			}
			return (now.phase != free || now.leased) && now.bound(r)
		}),
		"commit": model(kind, func(now key, r Request, o Outcome) bool {
			if now.phase == free { // somebody has reserved it, and has not committed
				return true
			}
			return o == Mismatch && !now.bound(r)
		}),
	}
}

// model says how a key goes from one state to the next. refused judges the answers Mismatch and Busy.
func model(kind idem.Kind, refused func(now key, r Request, o Outcome) bool) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{key{}} },
		Step: func(state, input, output any) []any {
			now, r, a := state.(key), input.(Request), output.(Answer)
			switch a.Outcome {
			case Mismatch, Busy:
				if r.Status || !refused(now, r, a.Outcome) {
					return nil
				}
				return []any{now}
			case Lost:
				return now.lost(kind, r)
			case Executed, Replayed, Accepted, Repeated, Freed, Parked, Unknown, Running, Finished: // by step
			}
			next, ok := now.step(r, a)
			if a.Outcome == Freed && (kind == idem.KindOptimistic || kind == idem.KindDeferred) {
				next = now
			}
			if !ok || !told(kind, a.Outcome) {
				return nil
			}
			return []any{next}
		},
		Equal: func(a, b any) bool { return a == b },
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%s: %s %s", input.(Request).Body, output.(Answer).Outcome, output.(Answer).Body)
		},
	}
	return m.ToModel()
}

// told says that operations of the kind have such answers.
func told(kind idem.Kind, o Outcome) bool {
	switch o {
	case Accepted, Repeated, Running, Finished:
		return kind == idem.KindDeferred
	case Executed: // a deferred one is executed by whoever delivers it
		return kind != idem.KindDeferred
	case Parked, Unknown:
		return kind == idem.KindWrapped
	case Replayed, Mismatch, Busy, Freed, Lost: // of every kind
	}
	return true
}

// step is what the key is after an answer; false where it contradicts what the key was.
func (k key) step(r Request, a Answer) (next key, ok bool) {
	next = k
	switch a.Outcome {
	case Executed:
		return key{phase: held, body: r.Body, answer: a.Body}, k.phase == free && k.bound(r)
	case Accepted:
		return key{phase: pending, body: r.Body, accepted: a.Body}, k.phase == free && k.bound(r)
	case Parked:
		return key{phase: parked, body: r.Body}, k.phase == free && k.bound(r)
	case Freed:
		return key{body: r.Body, leased: true}, k.phase == free && k.bound(r)
	case Unknown:
		return k, k.phase == parked && k.bound(r)
	case Repeated:
		next.accepted = a.Body
		return next, k.phase == pending && k.bound(r) && (k.accepted == "" || k.accepted == a.Body)
	case Running:
		return k, k.phase == pending
	case Replayed, Finished: // of what is pending, somebody has settled it by now
		next.phase, next.answer = held, a.Body
		return next, (k.phase == held || k.phase == pending) && (r.Status || k.bound(r)) && (k.answer == "" || k.answer == a.Body)
	case Mismatch, Busy, Lost: // by model
	}
	return k, false
}

// lost are the states that a request without an answer may leave.
func (k key) lost(kind idem.Kind, r Request) []any {
	if r.Status || k.phase != free || !k.bound(r) {
		return []any{k}
	}
	ends := []key{k, {body: r.Body, leased: true}}
	switch kind {
	case idem.KindDeferred:
		ends = append(ends, key{phase: pending, body: r.Body})
	case idem.KindWrapped:
		ends = append(ends, key{phase: held, body: r.Body}, key{phase: parked, body: r.Body})
	default:
		ends = append(ends, key{phase: held, body: r.Body})
	}
	var states []any
	for _, end := range slices.Compact(ends) {
		states = append(states, end)
	}
	return states
}
