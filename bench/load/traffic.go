package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// traffic is what clients of the payments API send: payments under new keys, replays of them, and reads of their operations.
type traffic struct {
	client client
	// run is part of every key and reference.
	run string

	mu sync.Mutex
	// sent are the keys of all payments, accepted those that were answered 202.
	sent     []string
	accepted []payment
	count    int
}

// payment is one that was accepted.
type payment struct{ key, operation string }

// pay sends a payment under a new key. It is a sender.
func (t *traffic) pay(ctx context.Context, _ int) string {
	t.mu.Lock()
	t.count++
	key := fmt.Sprintf("%s-%d", t.run, t.count)
	t.sent = append(t.sent, key)
	t.mu.Unlock()
	got, code := t.post(ctx, key)
	if code != "" {
		return code
	}
	var accepted struct{ Operation string }
	if got.status != http.StatusAccepted || got.header.Get("Idempotency-Status") != "executed" ||
		json.Unmarshal(got.body, &accepted) != nil || accepted.Operation == "" {
		return got.code()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.accepted = append(t.accepted, payment{key, accepted.Operation})
	return ""
}

// again sends a payment that was accepted once more. It is a sender.
func (t *traffic) again(ctx context.Context, n int) string {
	p, ok := t.known(n)
	if !ok {
		return "nothing to repeat"
	}
	got, code := t.post(ctx, p.key)
	if code != "" {
		return code
	}
	if got.status != http.StatusAccepted && got.status != http.StatusCreated || got.header.Get("Idempotency-Status") != "replayed" {
		return got.code()
	}
	return ""
}

// read reads the status of an operation. It is a sender.
func (t *traffic) read(ctx context.Context, n int) string {
	p, ok := t.known(n)
	if !ok {
		return "nothing to read"
	}
	_, code := t.status(ctx, p)
	return code
}

// known is one of the payments that were accepted, in turn.
func (t *traffic) known(n int) (payment, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.accepted) == 0 {
		return payment{}, false
	}
	return t.accepted[n%len(t.accepted)], true
}

func (t *traffic) post(ctx context.Context, key string) (reply, string) {
	header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {strconv.Quote(key)}}
	got, err := t.client.send(ctx, http.MethodPost, "/v1/payments", paymentBody(key), header)
	if err != nil {
		return got, noAnswer
	}
	return got, ""
}

// paymentBody asks for a payment that the provider makes, under the key as its reference.
func paymentBody(key string) string {
	return fmt.Sprintf(`{"amount":1999,"currency":"EUR","source":"card_ok","reference":%q}`, key)
}

// status says whether the operation has its final answer.
func (t *traffic) status(ctx context.Context, p payment) (final bool, code string) {
	got, err := t.client.send(ctx, http.MethodGet, "/v1/operations/"+p.operation, "", nil)
	if err != nil {
		return false, noAnswer
	}
	var operation struct{ Response *struct{ Status int } }
	if got.status != http.StatusOK || json.Unmarshal(got.body, &operation) != nil {
		return false, got.code()
	}
	return operation.Response != nil, ""
}

// route is a path that traffic takes.
type route struct {
	name string
	send sender
}

func (t *traffic) routes() []route {
	return []route{{"payment", t.pay}, {"replay", t.again}, {"status read", t.read}}
}

// figures drives every path with each number of callers.
func (t *traffic) figures(ctx context.Context, requests int, callers []int) []Figure {
	var all []Figure
	for _, c := range slices.Sorted(slices.Values(callers)) {
		for _, r := range t.routes() {
			all = append(all, drive(ctx, 0, requests, c, r.send).figure(r.name, c))
		}
	}
	return all
}
