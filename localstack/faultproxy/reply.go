package faultproxy

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/internal/refusal"
)

// reply is an answer, from DynamoDB or in its name.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (a reply) write(w http.ResponseWriter) {
	a.begin(w)
	// The client may be gone; there is nobody left to tell.
	_, _ = w.Write(a.body)
}

// cut writes the answer up to half of its body, and closes the connection.
func (a reply) cut(w http.ResponseWriter) {
	a.begin(w)
	_, _ = w.Write(a.body[:len(a.body)/2])
	_ = http.NewResponseController(w).Flush() // or nothing of it would leave
	hangUp()
}

// begin writes status and header.
func (a reply) begin(w http.ResponseWriter) {
	header := w.Header()
	for name, values := range a.header {
		header[name] = values
	}
	if _, ok := a.header["Content-Type"]; !ok {
		header["Content-Type"] = nil // no guess in the upstream's name
	}
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
}

// errorType is the exception that an answer carries, without its namespace; empty where it carries none.
func (a reply) errorType() string {
	var content struct {
		Type string `json:"__type"`
	}
	if a.status < 400 || json.Unmarshal(a.body, &content) != nil {
		return ""
	}
	return content.Type[strings.LastIndexByte(content.Type, '#')+1:]
}

// capacity is the sum of the capacity units that an answer says it consumed, 0 where it says nothing.
func (a reply) capacity() float64 {
	type consumed struct{ CapacityUnits float64 }
	var one struct{ ConsumedCapacity consumed }
	if json.Unmarshal(a.body, &one) == nil {
		return one.ConsumedCapacity.CapacityUnits
	}
	var many struct{ ConsumedCapacity []consumed }
	if json.Unmarshal(a.body, &many) != nil {
		return 0
	}
	sum := 0.0
	for _, c := range many.ConsumedCapacity {
		sum += c.CapacityUnits
	}
	return sum
}

// refused is how DynamoDB answers a request with the exception that the step is about.
func refused(q request, s Step) reply {
	r := refusalOf(q, s)
	header, body := r.Reply()
	return reply{status: r.Status, header: header, body: body}
}

func refusalOf(q request, s Step) refusal.Refusal {
	switch s.Fault {
	case Refuse500, Fail500:
		return refusal.Of(refusal.InternalServerError)
	case Conflict:
		if q.transaction() {
			return cancelled(q, s.Item, refusal.ReasonConflict)
		}
		return refusal.Of(cmp.Or(s.Code, refusal.TransactionConflict))
	case Throttle:
		if s.Code == TransactionCanceled {
			return cancelled(q, s.Item, cmp.Or(s.Reason, ReasonThrottling))
		}
		return refusal.Of(cmp.Or(s.Code, ProvisionedThroughputExceeded))
	case InProgress:
		return refusal.Of(refusal.TransactionInProgress)
	case Mismatch:
		return refusal.Of(refusal.ParameterMismatch)
	case Expired:
		return refusal.Of(cmp.Or(s.Code, refusal.ExpiredToken))
	default: // Refuse503, Fail503
		return refusal.Of(refusal.ServiceUnavailable)
	}
}

func cancelled(q request, item int, reason string) refusal.Refusal {
	if item == EveryItem {
		return refusal.CancelledThroughout(q.items, reason)
	}
	return refusal.CancelledAt(item, q.items, reason)
}
