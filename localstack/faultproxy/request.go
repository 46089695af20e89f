package faultproxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// request is one request as it came, and what its body says.
type request struct {
	method    string
	url       *url.URL
	host      string
	header    http.Header
	body      []byte
	operation string   // empty where it isn't DynamoDB's
	tables    []string // sorted, each once
	items     int      // of a transaction
	entries   int      // of a batch
	token     string
}

// transaction tells whether DynamoDB answers the request with cancellation reasons.
func (q request) transaction() bool {
	return q.operation == "TransactWriteItems" || q.operation == "TransactGetItems"
}

// content is the same for requests of the same operation and body, whatever order the members of JSON objects have: the
// SDK writes maps in a random order.
func (q request) content() [sha256.Size]byte {
	body := q.body
	decoder := json.NewDecoder(bytes.NewReader(q.body))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) == nil {
		if sorted, err := json.Marshal(value); err == nil {
			body = sorted
		}
	}
	return sha256.Sum256(slices.Concat([]byte(q.operation), []byte{0}, body))
}

// parse reads what rules and log want to know. A body that is not DynamoDB's JSON just has no tables: it is for
// DynamoDB to refuse it.
func parse(r *http.Request, body []byte) request {
	q := request{method: r.Method, url: r.URL, host: r.Host, header: r.Header, body: body}
	_, q.operation, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if q.operation == "" {
		return q
	}
	var content struct {
		TableName          string
		ClientRequestToken string
		RequestItems       batch
		TransactItems      []map[string]struct{ TableName string }
	}
	if json.Unmarshal(body, &content) != nil {
		return q
	}
	names := map[string]bool{content.TableName: true}
	for name := range content.RequestItems {
		names[name] = true
	}
	for _, item := range content.TransactItems {
		for _, action := range item {
			names[action.TableName] = true
		}
	}
	delete(names, "")
	q.tables = slices.Sorted(maps.Keys(names))
	q.items = len(content.TransactItems)
	q.entries = content.RequestItems.size()
	q.token = content.ClientRequestToken
	return q
}
