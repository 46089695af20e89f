package payments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/sim"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// bank is the provider simulator of the local stack, without its own faults: what goes wrong on the way to it the story decides.
type bank struct {
	app       *simulated
	simulator *provider.Provider

	mu  sync.Mutex
	ids int
	// objects are all that it made or declined, by downstream key, in their order.
	objects map[string][]provider.Object
}

func newBank(s *simulated) *bank {
	b := &bank{app: s, objects: map[string][]provider.Object{}}
	b.simulator = provider.New(provider.Config{NewID: func(prefix string) string {
		b.ids++
		return fmt.Sprintf("%s%d", prefix, b.ids)
	}})
	rules := `{"rules":[
		{"on":"charge","source":"card_declined","fault":"decline"},{"on":"legacy_charge","source":"legacy_declined","fault":"decline"},
		{"on":"refund","source":"card_stingy","fault":"decline"},{"on":"screening","destination":"iban_bad","fault":"decline"},
		{"on":"payout","destination":"iban_declined","fault":"decline"},{"on":"legacy_payout","destination":"legacy_iban_declined","fault":"decline"}]}`
	if w := b.serve(http.MethodPut, "/control/faults", "", []byte(rules)); w.Code != http.StatusNoContent {
		panic(w.Body.String())
	}
	return b
}

// seed makes the charge of a payment that is there from the beginning.
func (b *bank) seed(name, source string) string {
	w := b.serve(http.MethodPost, "/charges", "seed-"+name, fmt.Appendf(nil, `{"amount":%d,"currency":"EUR","source":%q}`, simulatedFunds, source))
	var made provider.Object
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusCreated {
		panic(w.Body.String())
	}
	return made.ID
}

// serve has the simulator take a request. No two arrive at once.
func (b *bank) serve(method, target, key string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, bytes.NewReader(body))
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	b.simulator.ServeHTTP(w, r)
	return w
}

// arrives is a request to make something. What it makes may be told by a webhook besides.
func (b *bank) arrives(path, key string, body []byte) *httptest.ResponseRecorder {
	w := b.serve(http.MethodPost, path, key, body)
	if w.Code != http.StatusCreated && w.Code != http.StatusPaymentRequired || w.Header().Get("Idempotent-Replayed") != "" {
		return w
	}
	var made provider.Object
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil {
		panic(err)
	}
	b.mu.Lock()
	b.objects[key] = append(b.objects[key], made)
	n := len(b.objects[key])
	b.mu.Unlock()
	b.app.judgeMade(key, made, n)
	b.announces(made)
	return w
}

// announces posts what was made, once, twice, or not; now and then of another amount, which settles nothing.
func (b *bank) announces(made provider.Object) {
	name := fmt.Sprintf("webhook about %s of %s", made.Kind, b.app.nameOf(made.Key))
	times := [...]int{0, 0, 1, 2}[b.app.OneOf(b.app.Numbered(name), 4)]
	if b.app.OneOf(name+" lies", 12) == 0 {
		made.Amount++
	}
	kind := strings.TrimPrefix(string(made.Kind), "legacy_")
	data, err := json.Marshal(made)
	if err != nil {
		panic(err)
	}
	body := fmt.Appendf(nil, `{"id":"evt_%s","type":"%s.%s","created":"2101-02-03T04:05:06.000Z","key":%q,"data":%s}`, made.ID, kind, made.Status, made.Key, data)
	for i := range times {
		b.app.Webhook(fmt.Sprintf("%s, %s, %d", name, made.ID, i), func(ctx context.Context, p sim.Process) error { return b.app.told(ctx, p, body) })
	}
}

// of are the objects of a downstream key.
func (b *bank) of(key string) []provider.Object {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.objects[key]
}

// Made implements sim.App.
func (s *simulated) Made(downstream string) (times int, evidence outbox.Outcome) {
	for _, o := range s.bank.of(downstream) {
		body, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		switch {
		case o.Status == provider.Succeeded:
			times, evidence = times+1, outbox.Delivered{Reference: o.ID, Evidence: body}
		case times == 0:
			evidence = outbox.Declined{Reference: o.ID, Evidence: body}
		}
	}
	return times, evidence
}

// wiredBank is the bank over the network of a process: the transport below the client of the provider.
type wiredBank struct {
	*bank
	p sim.Process
}

var errOnTheWay = errors.New("the story lost it on the way")

// RoundTrip implements http.RoundTripper.
func (b wiredBank) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, target := r.Context(), r.URL.RequestURI()
	var got *httptest.ResponseRecorder
	if r.Method == http.MethodGet {
		if !b.p.Look(ctx, "the books by "+b.app.nameOf(r.URL.Query().Get("key")), func() { got = b.serve(http.MethodGet, target, "", nil) }) {
			return nil, errOnTheWay
		}
		return answerTo(r, got), nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	key, trace := r.Header.Get("Idempotency-Key"), httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.GetConn != nil {
		trace.GetConn(r.URL.Host)
	}
	outcome := b.p.Call(ctx, kindIn(target)+" of "+b.app.nameOf(key), func() { got = b.arrives(target, key, body) })
	if unsent, ok := outcome.(outbox.NotExecuted); ok && unsent.Unsent {
		return nil, errOnTheWay
	}
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	switch outcome.(type) {
	case nil:
		return answerTo(r, got), nil
	case outbox.NotExecuted:
		return refusal(r, http.StatusTooManyRequests), nil
	case outbox.Refused:
		return refusal(r, http.StatusBadRequest), nil
	}
	return nil, errOnTheWay
}

// kindIn is what a path makes, without the ids in it.
func kindIn(path string) string {
	parts := strings.Split(path, "/")
	return parts[len(parts)-1]
}

func answerTo(r *http.Request, w *httptest.ResponseRecorder) *http.Response {
	res := w.Result()
	res.Request = r
	return res
}

func refusal(r *http.Request, status int) *http.Response {
	w := httptest.NewRecorder()
	w.WriteHeader(status)
	return answerTo(r, w)
}

// nameOf names who a downstream key is about.
func (s *simulated) nameOf(key string) string {
	operation, n, err := idem.MessageID(key).Operation()
	if err != nil {
		return "nobody"
	}
	record, err := operation.RecordKey()
	if err != nil {
		return "nobody"
	}
	return fmt.Sprintf("%s, %d", s.names[record], n)
}
