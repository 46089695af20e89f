package idem_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// release is one release's engine, beside others on one store.
func (w *world) release(op idem.Operation) *idem.Registered {
	w.Helper()
	engine, err := idem.New(w.mem, idem.Config{})
	if err != nil {
		w.Fatal(err)
	}
	if op.Policy.Name == "" {
		op.Policy = idem.IETF()
	}
	registered, err := engine.Register(declaration(op))
	if err != nil {
		w.Fatal(err)
	}
	return registered
}

// A rename rolls out with both releases side by side, and no key is lost or executed twice.
func TestRenamedOperationKeepsItsKeysInBothDirections(t *testing.T) {
	for _, kind := range kinds {
		for _, policy := range []idem.Policy{idem.IETF(), idem.Stripe(), idem.Lenient()} {
			t.Run(fmt.Sprintf("%s read first %v, %s", kind.Kind, kind.ReadFirst, policy.Name), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, nil)
					kind.Policy = policy
					before, after := kind, kind
					before.Name = "orders.create"
					after.Name, after.RenamedFrom = "purchases.create", "orders.create"
					releases := map[string]*idem.Registered{"before": w.release(before), "after": w.release(after)}
					for first, second := range map[string]string{"before": "after", "after": "before"} {
						req := request(`{"a":1}`)
						req.Key = first
						executed := w.do(releases[first], req, w.handler(201))
						if executed.Outcome != idem.OutcomeExecuted {
							t.Errorf("%s: %+v", first, executed)
						}
						for _, release := range releases {
							again := w.do(release, req, w.handler(201))
							w.want(again, idem.OutcomeReplayed, 201, string(executed.Response.Body))
						}
						other := req
						other.Input.Body = []byte(`{"a":2}`)
						if result := w.do(releases[second], other, w.handler(201)); (result.Outcome == idem.OutcomeMismatch) != (policy.Mismatch != idem.MismatchReplay) {
							t.Errorf("another payload at %s: %+v", second, result)
						}
						if releases["before"].RecordKey(req) != releases["after"].RecordKey(req) {
							t.Error("the releases log different keys")
						}
					}
					w.written(2)
					for _, r := range w.mem.Records() {
						if r.Operation != "orders.create" {
							t.Errorf("recorded as %s", r.Operation)
						}
					}
				})
			})
		}
	}
}

// While one release executes, the other one waits for it, whichever has which name.
func TestRenamedOperationIsInFlightForBothReleases(t *testing.T) {
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindWrapped} {
		for _, renamed := range []bool{true, false} {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				before := w.release(idem.Operation{Name: "orders.create", Kind: kind})
				after := w.release(idem.Operation{Name: "purchases.create", RenamedFrom: "orders.create", Kind: kind})
				holder, other := before, after
				if renamed {
					holder, other = after, before
				}
				w.do(holder, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
					if result := w.do(other, request("{}"), w.handler(201)); result.Outcome != idem.OutcomeInProgress {
						t.Errorf("%s: %+v", kind, result)
					}
					return idem.Response{Status: 201}, nil
				})
				// A holder that outlives its lease under one name is taken over, or parked, under the other.
				slow := request("{}")
				slow.Key = "slow"
				want := idem.OutcomeExecuted
				if kind == idem.KindWrapped {
					want = idem.OutcomeUnknown
				}
				_, _ = holder.Do(t.Context(), slow, func(context.Context, *idem.Tx) (idem.Response, error) {
					time.Sleep(time.Hour)
					if result := w.do(other, slow, w.handler(201)); result.Outcome != want {
						t.Errorf("%s over a dead lease: %+v, want %s", kind, result, want)
					}
					return idem.Response{}, errors.New("too late")
				})
			})
		}
	}
}

// semantics.md "Policies": under tenant + key another operation is a mismatch, renamed or not.
func TestRenamedOperationIsStillAnotherOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		renamed := w.register(idem.Operation{Name: "purchases.create", RenamedFrom: "orders.create", Kind: idem.KindAtomic, Policy: idem.Stripe()})
		other := w.register(idem.Operation{Name: "refunds.create", Kind: idem.KindAtomic, Policy: idem.Stripe()})
		w.want(w.do(renamed, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
		if result := w.do(other, request("{}"), w.handler(201)); result.Outcome != idem.OutcomeMismatch {
			t.Errorf("%+v, want a mismatch", result)
		}
	})
}

func TestNamesAreClaimedOnce(t *testing.T) {
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		registered, refused idem.Operation
		field               string
	}{
		"a name twice":                 {idem.Operation{Name: "a.b"}, idem.Operation{Name: "a.b"}, "Operation.Name"},
		"a former name twice":          {idem.Operation{Name: "a.b", RenamedFrom: "a.a"}, idem.Operation{Name: "a.c", RenamedFrom: "a.a"}, "Operation.RenamedFrom"},
		"a former name anew":           {idem.Operation{Name: "a.b", RenamedFrom: "a.a"}, idem.Operation{Name: "a.a"}, "Operation.Name"},
		"a name as a former one":       {idem.Operation{Name: "a.a"}, idem.Operation{Name: "a.b", RenamedFrom: "a.a"}, "Operation.RenamedFrom"},
		"renamed from its own name":    {idem.Operation{Name: "a.z"}, idem.Operation{Name: "a.b", RenamedFrom: "a.b"}, "Operation.RenamedFrom"},
		"a former name that is a path": {idem.Operation{Name: "a.z"}, idem.Operation{Name: "a.b", RenamedFrom: "/v1/a"}, "Operation.RenamedFrom"},
	} {
		engine, err := idem.New(mem, idem.Config{})
		if err != nil {
			t.Fatal(err)
		}
		c.registered.Kind, c.registered.Policy = idem.KindAtomic, idem.IETF()
		c.refused.Kind, c.refused.Policy = idem.KindAtomic, idem.IETF()
		if _, err := engine.Register(c.registered); err != nil {
			t.Fatal(err)
		}
		var broken *idem.ConfigError
		if _, err := engine.Register(c.refused); !errors.As(err, &broken) || broken.Field != c.field {
			t.Errorf("%s: %v, want %s rejected", name, err, c.field)
		}
	}
}

// A policy that only observes has no fault of its own, and contradicts an exemption.
func TestObserve(t *testing.T) {
	for _, base := range []idem.Policy{idem.IETF(), idem.Stripe(), idem.Lenient()} {
		p := idem.Observe(base)
		if err := p.Validate(); err != nil || !p.Observe || p.Name != "observe "+base.Name {
			t.Errorf("%+v: %v", p, err)
		}
	}
	var broken *idem.ConfigError
	if err := idem.Observe(idem.Exempt("a search")).Validate(); !errors.As(err, &broken) || broken.Field != "Policy.Observe" {
		t.Errorf("an exempt policy observes: %v", err)
	}
}
