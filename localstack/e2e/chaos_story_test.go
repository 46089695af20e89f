//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/chaos"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// story is one request of the kill loop, and all that its clients were told.
type story struct {
	loop      *loop
	plan      chaos.Request
	name      string // this run's own, whichever key it has
	operation string
	request   request
	party     string // source or destination, of what is made at the provider

	mu              sync.Mutex
	accepted, final *reply
	ended           time.Time // when the final answer was heard
	refund          *story
}

func (l *loop) story(i int, r chaos.Request) *story {
	s := &story{loop: l, plan: r, name: named(fmt.Sprintf("loop-%d", i))}
	key := fmt.Sprintf("loop-key-%d", r.Key)
	prefix := map[bool]string{false: "ok", true: "legacy"}[r.Keyless]
	s.party = fmt.Sprintf("%s_%s_%d", prefix, run, i)
	switch r.Kind {
	case chaos.Payment:
		s.operation = operationPayments
		s.request = request{method: http.MethodPost, path: payments, key: named(key), body: paymentBody(r.Amount, s.party, s.name)}
	case chaos.Transfer:
		s.operation = operationTransfers
		s.request = move(key, accountName(pocket(r.From)), accountName(pocket(r.To)), r.Amount)
	case chaos.Payout:
		s.operation = operationPayouts
		s.request = send(key, accountName(pocket(r.From)), s.party, r.Amount)
	}
	return s
}

// refunding is the story of giving a payment back.
func (s *story) refunding(payment string) *story {
	r := &story{loop: s.loop, plan: chaos.Request{Tenant: s.plan.Tenant}, operation: operationRefunds, name: s.name + "-refund", party: s.party}
	r.request = request{
		method: http.MethodPost, path: payments + "/" + payment + "/refunds", key: r.name, body: fmt.Sprintf(`{"amount":%d}`, s.plan.Refund),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refund = r
	return r
}

// api is the story's tenant's. Whatever is answered to a POST is told to judge.
func (s *story) api(judge func(got reply, began time.Time)) api {
	a := deployed.tenantA
	if s.plan.Tenant == chaos.TenantB {
		a = deployed.tenantB
	}
	base := a.http
	a.http = &http.Client{Timeout: base.Timeout, Transport: eyewitness{base.Transport, s.loop, judge}}
	return a
}

// key is that of the story's record.
func (s *story) key() storage.RecordKey {
	return idem.Scope{Tenant: s.plan.Tenant, Operation: s.operation, Key: s.request.key}.RecordKey()
}

// providerRules are the faults of the calls that the story leads to.
func (s *story) providerRules() []provider.Rule {
	var rules []provider.Rule
	if s.plan.Refused { // each call of it, and before any other fault: the provider makes nothing
		rules = append(rules, provider.Rule{On: provider.Charge, Fault: provider.Refuse}, provider.Rule{On: provider.LegacyCharge, Fault: provider.Refuse})
	}
	rules = append(rules, s.plan.Provider...)
	for i := range rules {
		if s.plan.Kind == chaos.Payout {
			rules[i].Destination = s.party
		} else {
			rules[i].Source = s.party
		}
	}
	return rules
}

// eyewitness hears every answer that a client gets, those that it sends again after included.
type eyewitness struct {
	base  http.RoundTripper
	loop  *loop
	judge func(got reply, began time.Time)
}

// RoundTrip implements http.RoundTripper.
func (w eyewitness) RoundTrip(req *http.Request) (*http.Response, error) {
	began := time.Now()
	w.loop.figures.add(tableRequests, "requests sent", 1)
	res, err := w.base.RoundTrip(req)
	if err != nil {
		w.loop.figures.add(tableRequests, "no answer, the connection ended", 1)
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, replyBytesMax))
	res.Body.Close()
	if err != nil {
		w.loop.figures.add(tableRequests, "no answer, the connection ended", 1)
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	got := reply{res.StatusCode, res.Header, body}
	w.loop.figures.add(tableRequests, strings.TrimRight(fmt.Sprintf("answer to %-4s %d %s", req.Method, got.status, got.header.Get(header.NameStatus)), " "), 1)
	if req.Method == http.MethodPost {
		w.judge(got, began)
	}
	return res, nil
}

// stored says that the answer is an operation's own, not trouble on the way.
func (r reply) stored() bool {
	kept := r.header.Get(header.NameStatus)
	return kept == "executed" || kept == "replayed"
}

// hear judges what an honest client is told. Nothing that it was told before may be contradicted (I4).
func (s *story) hear(got reply, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.final != nil && began.After(s.ended)
	switch {
	case got.stored() && got.status == http.StatusAccepted:
		if s.accepted == nil {
			s.accepted = &got
		}
		if got.differs(*s.accepted) {
			s.blame("I4: another 202 than before: %v, before %v", got, *s.accepted)
		}
		if late {
			s.blame("I4: a 202 after the final answer: %v", got)
		}
	case got.stored():
		if s.final == nil {
			s.final, s.ended = &got, time.Now()
		}
		if got.differs(*s.final) {
			s.blame("I4: another final answer than before: %v, before %v", got, *s.final)
		}
	case got.status == http.StatusConflict && got.header.Get(header.NameStatus) == "in_progress":
		if late {
			s.blame("I4: in progress after the final answer: %v", got)
		}
		fallthrough
	case got.status == http.StatusServiceUnavailable && got.header.Get("Content-Type") == "application/problem+json":
		if _, err := got.retryAfter(); err != nil {
			s.blame("I4: %v", err)
		}
	case got.status >= http.StatusInternalServerError: // who should have answered is dead
	default:
		s.blame("I4: an honest client was told %v", got)
	}
}

// hearMuddled judges what a client is told that sent something else under its key.
func (s *story) hearMuddled(got reply, _ time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if got.status != http.StatusUnprocessableEntity && got.status < http.StatusInternalServerError {
		s.blame("I4: another payload under the key was told %v, want 422", got)
	}
}

// blame notes what is wrong with what the story's clients were told, or with what became of it.
func (s *story) blame(format string, arguments ...any) {
	s.loop.mu.Lock()
	defer s.loop.mu.Unlock()
	s.loop.wrong = append(s.loop.wrong, fmt.Sprintf("%s of %s, client %s: %s", s.name, s.plan.Tenant, s.plan.Client.Temper, fmt.Sprintf(format, arguments...)))
}
