package faultproxy

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
)

// reply is an answer, from DynamoDB or in its name.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (a reply) write(w http.ResponseWriter) {
	header := w.Header()
	for name, values := range a.header {
		header[name] = values
	}
	if _, ok := a.header["Content-Type"]; !ok {
		header["Content-Type"] = nil // no guess in the upstream's name
	}
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	// The client may be gone; there is nobody left to tell.
	_, _ = w.Write(a.body)
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

// refusal is how DynamoDB answers a request with an exception.
func refusal(r wirefault.Refusal) reply {
	header, body := r.Reply()
	return reply{status: r.Status, header: header, body: body}
}

func unavailable() reply {
	return refusal(wirefault.Refusal{Status: http.StatusServiceUnavailable, Code: "ServiceUnavailableException"})
}

func conflict(q request, item int) reply {
	if q.transaction() {
		return refusal(wirefault.At(item, q.items, "TransactionConflict"))
	}
	return refusal(wirefault.Refusal{Status: http.StatusBadRequest, Code: "TransactionConflictException"})
}

func throttled(q request, code string, item int) reply {
	if code == TransactionCanceled {
		return refusal(wirefault.At(item, q.items, "ThrottlingError"))
	}
	return refusal(wirefault.Refusal{Status: http.StatusBadRequest, Code: cmp.Or(code, ProvisionedThroughputExceeded)})
}
