package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
)

// What is executed without protection has no lease that could end. A protected execution inside of it has one: who takes it for dead
// frees its key, and what it would send after that is a second payment.
func TestAProtectedExecutionInsideOfAnUnprotectedOneHasItsOwnLease(t *testing.T) {
	for name, c := range map[string]struct {
		policy idem.Policy
		asked  ask
	}{
		"exempt":                {idem.Exempt("a provider's webhook"), ask{}},
		"no key is needed":      {keyless(), ask{}},
		"observed":              {idem.Observe(idem.IETF()), key(ask{})},
		"observed, without key": {idem.Observe(idem.IETF()), ask{}},
		"another method":        {idem.IETF(), ask{method: "PUT"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, ran := newLocalAPI(t, nil), 0
			charges, err := a.engine.Register(idem.Operation{Name: "charges.create", Kind: idem.KindWrapped, Probed: true, Policy: idem.IETF()})
			if err != nil {
				t.Fatal(err)
			}
			charge := func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
				ran++
				before := idem.Leased(ctx)
				a.later(time.Hour) // the process is frozen
				if after := idem.Leased(ctx); before != nil || !errors.Is(after, idem.ErrLeaseOver) {
					t.Errorf("%v, and after its lease %v", before, after)
				}
				return idem.Response{Status: 201}, nil
			}
			a.wrap("/orders", idem.Operation{Policy: c.policy}, func(w http.ResponseWriter, r *http.Request) {
				asked := idem.Request{Tenant: "tenant-a", Key: "charge", Input: canonical.Input{MediaType: "application/json", Body: []byte("{}")}}
				if _, err := charges.Do(r.Context(), asked, charge); err != nil {
					t.Error(err)
				}
				if err := idem.Leased(r.Context()); err != nil {
					t.Errorf("outside of it: %v", err)
				}
				w.WriteHeader(201)
			})
			a.gets(c.asked, 201)
			if ran != 1 {
				t.Errorf("%d runs", ran)
			}
		})
	}
}

// A protected handler may serve a route of its own process that needs no protection. What that one sends is sent for the protected
// one, whose key may be free once its lease is over.
func TestAnUnprotectedExecutionInsideOfAProtectedOneActsUnderItsLease(t *testing.T) {
	for name, c := range map[string]struct {
		policy idem.Policy
		asked  ask
	}{
		"exempt":         {idem.Exempt("an internal route"), ask{}},
		"observed":       {idem.Observe(idem.IETF()), key(ask{})},
		"another method": {idem.IETF(), ask{method: "PUT"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, ran := newLocalAPI(t, nil), 0
			a.wrap("/orders", idem.Operation{Policy: c.policy}, func(w http.ResponseWriter, r *http.Request) {
				ran++
				before := idem.Leased(r.Context())
				a.later(time.Hour)
				if after := idem.Leased(r.Context()); before != nil || !errors.Is(after, idem.ErrLeaseOver) {
					t.Errorf("%v, and after the lease %v", before, after)
				}
				w.WriteHeader(201)
			})
			a.wrap("POST /checkouts", idem.Operation{Name: "checkouts.create"}, func(w http.ResponseWriter, r *http.Request) {
				inner := r.Clone(r.Context())
				inner.URL.Path, inner.Method = "/orders", "POST"
				if c.asked.method != "" {
					inner.Method = c.asked.method
				}
				a.mux.ServeHTTP(w, inner)
			})
			a.gets(key(ask{path: "/checkouts"}), 201)
			if ran != 1 {
				t.Errorf("%d runs", ran)
			}
		})
	}
}
