package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// settled is how long after its row a charge is made.
const settled = 200 * time.Millisecond

func reference(n int) string { return fmt.Sprintf("ch_%08d", n) }

// ServeHTTP lists the charges of the ledger's rows, newest first, as the provider does (docs/payments-api.md). Of other kinds there is
// none.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	objects := []map[string]any{}
	if r.URL.Path == "/charges" {
		objects = l.charges(r.URL.Query())
	}
	// A client that has gone is told nothing.
	_ = json.NewEncoder(w).Encode(objects)
}

func (l *ledger) charges(query url.Values) []map[string]any {
	objects := []map[string]any{}
	limit, _ := strconv.Atoi(query.Get("limit"))
	from, _ := time.Parse(time.RFC3339Nano, query.Get("created_from"))
	to, _ := time.Parse(time.RFC3339Nano, query.Get("created_to"))
	next := len(l.keys) - 1
	if after := query.Get("starting_after"); after != "" {
		_, _ = fmt.Sscanf(after, "ch_%d", &next)
		next--
	} else if share := float64(to.Sub(hour)) / float64(time.Hour); share < 1 { // not all rows: begin near the end of the span
		next = min(next, int(share*float64(len(l.keys)))+1)
	}
	for ; next >= 0 && len(objects) < limit; next-- {
		at := l.at(next).Add(settled)
		if at.Before(from) {
			break
		}
		if at.Before(to) {
			objects = append(objects, map[string]any{
				"id": reference(next), "object": "charge", "status": "succeeded", "key": l.keys[next], "amount": 1999, "currency": "EUR",
				"created_at": at.Format(time.RFC3339Nano),
			})
		}
	}
	return objects
}
