package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/guard"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// executions are those that a handler was run in.
type executions struct {
	all  []idem.Execution
	fail func(w http.ResponseWriter, r *http.Request)
}

func (e *executions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x, _ := idem.ExecutionFrom(r.Context())
	if e.all = append(e.all, x); e.fail != nil {
		e.fail(w, r)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// gets sends a request, whose answer has the status.
func (a *api) gets(q ask, status int) {
	a.Helper()
	if r := a.do(q); r.StatusCode != status {
		a.Errorf("got %d %s, want %d", r.StatusCode, r.body, status)
	}
}

// keyless is a policy under which a request without a key is executed.
func keyless() idem.Policy {
	policy := idem.IETF()
	policy.Name, policy.MissingKey = "optional", idem.MissingKeyUnprotected
	return policy
}

// absent is what a provider says that has nothing under an operation id.
func absent(context.Context, storage.Record) (idem.Response, bool, error) {
	return idem.Response{}, true, nil
}

// A probe asks about the record's operation id. A handler that did not know it would write under another one, and the probe's
// "absent" would free the key of what was executed.
func TestAnObservedHandlerKnowsTheOperationIDOfItsRecord(t *testing.T) {
	a := newLocalAPI(t, nil)
	ran := &executions{fail: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }}
	a.wrap("POST /orders", idem.Operation{Probed: true, Policy: idem.Observe(idem.IETF())}, ran.ServeHTTP)
	a.gets(key(ask{}), 500)
	r := a.mem.Records()[0]
	want := idem.Execution{OperationID: r.OperationID, Tenant: "tenant-a", Operation: "orders.create", Attempt: 1}
	if len(ran.all) != 1 || ran.all[0] != want || r.State != storage.StateUnknown {
		t.Errorf("ran in %+v, want %+v; the record is %s", ran.all, want, r.State)
	}
}

// An observed handler that declares that nothing happened frees its key for those who observe, as it would have for those who enforce.
func TestAnObservedHandlerMayDeclareThatNothingHappened(t *testing.T) {
	a := newLocalAPI(t, nil)
	ran := &executions{fail: func(w http.ResponseWriter, r *http.Request) {
		idem.NothingHappened(r.Context())
		w.WriteHeader(503)
	}}
	a.wrap("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, ran.ServeHTTP)
	a.gets(key(ask{}), 503)
	a.in(storage.StateFailedRetryable, 1)
	ran.fail = nil
	a.gets(key(ask{}), 201)
	a.in(storage.StateCompleted, 3)
}

// Executions without protection have ids of their own: under one id for all of them each would overwrite what the one before wrote.
func TestEachUnprotectedExecutionHasAnOperationIDOfItsOwn(t *testing.T) {
	for name, policy := range map[string]idem.Policy{"no key is needed": keyless(), "observed": idem.Observe(idem.IETF())} {
		t.Run(name, func(t *testing.T) {
			a := newLocalAPI(t, nil)
			ran, seen := &executions{}, map[idem.OperationID]bool{}
			a.wrap("/orders", idem.Operation{Policy: policy}, ran.ServeHTTP)
			for range 2 {
				a.gets(ask{}, 201)
				a.gets(ask{method: "PUT"}, 201)
			}
			for _, x := range ran.all {
				if _, err := x.OperationID.RecordKey(); err != nil || x.Tenant != "tenant-a" || x.Operation != "orders.create" || x.Attempt != 1 {
					t.Errorf("ran in %+v, %v", x, err)
				}
				seen[x.OperationID] = true
			}
			if len(ran.all) != 4 || len(seen) != 4 {
				t.Errorf("%d runs under %d ids", len(ran.all), len(seen))
			}
		})
	}
}

// Calls of a guarded client leave in each execution that no record could declare dead: such a request is promised to execute.
func TestGuardedCallsOfUnprotectedExecutionsLeave(t *testing.T) {
	for name, c := range map[string]struct {
		policy idem.Policy
		asked  ask
	}{
		"no key is needed":      {keyless(), ask{}},
		"observed":              {idem.Observe(idem.IETF()), key(ask{})},
		"observed, without key": {idem.Observe(idem.IETF()), ask{}},
		"another method":        {idem.IETF(), ask{method: "PUT"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, calls := newLocalAPI(t, nil), 0
			client := &http.Client{Transport: guard.Transport(roundTrip(func(*http.Request) (*http.Response, error) {
				calls++
				return &http.Response{StatusCode: 201, Body: http.NoBody}, nil
			}))}
			a.wrap("/orders", idem.Operation{Policy: c.policy}, func(w http.ResponseWriter, r *http.Request) {
				out, err := http.NewRequestWithContext(r.Context(), "POST", "http://provider.example", nil)
				if err == nil {
					_, err = client.Do(out)
				}
				if err != nil {
					t.Error(err)
				}
				w.WriteHeader(201)
			})
			for range 2 { // an observed duplicate runs beside the record
				a.gets(c.asked, 201)
			}
			if calls != 2 {
				t.Errorf("%d calls left, want 2", calls)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// semantics.md "Policies", observe mode: nothing is stored that an enforcing instance could take for permission. In each of these a
// request ran beside a record that says that nothing happened. An operator who has looked may free the key.
func TestWhatWasObservedPermitsNobodyWhoEnforces(t *testing.T) {
	for name, c := range map[string]struct {
		observe func(t *testing.T, a *api)
		kind    idem.Kind
	}{
		"proven absent": {func(t *testing.T, a *api) {
			ran := &executions{fail: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }}
			a.wrap("POST /orders", idem.Operation{Probed: true, Policy: idem.Observe(idem.IETF())}, ran.ServeHTTP)
			a.gets(key(ask{}), 500)
			ran.fail = nil
			a.gets(key(ask{}), 201)
			r := a.mem.Records()[0]
			a.later(time.Hour)
			state, err := a.engine.Reconcile(t.Context(), r.Tenant, r.OperationID, time.Minute, absent)
			if err != nil || state != storage.StateFailedRetryable {
				t.Fatalf("%s, %v", state, err)
			}
		}, idem.KindWrapped},
		"released while it was unknown": {func(t *testing.T, a *api) {
			ran := &executions{fail: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }}
			a.wrap("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, ran.ServeHTTP)
			a.gets(key(ask{}), 500)
			ran.fail = nil
			a.gets(key(ask{}), 201)
			a.later(time.Hour)
			a.release(a.mem.Records()[0])
		}, idem.KindWrapped},
		"its living holder was fenced off": {func(t *testing.T, a *api) {
			runs := 0
			a.handle("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
				if runs++; runs == 1 {
					a.gets(key(ask{}), 201)
					a.release(ended(a))
					return idem.Response{}, errors.New("no")
				}
				return idem.Response{Status: 201}, nil
			})
			a.gets(key(ask{}), 500)
		}, idem.KindAtomic},
		"released by a status": {func(t *testing.T, a *api) {
			var beside func()
			ran := &executions{fail: func(w http.ResponseWriter, _ *http.Request) {
				if beside != nil {
					now := beside
					beside = nil
					now()
					w.WriteHeader(503)
					return
				}
				w.WriteHeader(201)
			}}
			a.wrap("POST /orders", idem.Operation{ReleaseOn: []int{503}, Policy: idem.Observe(idem.IETF())}, ran.ServeHTTP)
			beside = func() { a.gets(key(ask{}), 201) }
			a.gets(key(ask{}), 503)
		}, idem.KindWrapped},
		"its handler failed": {func(t *testing.T, a *api) {
			runs := 0
			a.handle("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
				if runs++; runs == 1 {
					a.gets(key(ask{}), 201)
					return idem.Response{}, errors.New("no")
				}
				return idem.Response{Status: 201}, nil
			})
			a.gets(key(ask{}), 500)
		}, idem.KindAtomic},
	} {
		t.Run(name, func(t *testing.T) {
			before := newLocalAPI(t, nil)
			c.observe(t, before)
			if r := ended(before); r.State != storage.StateFailedRetryable {
				t.Fatalf("the record is %s", r.State)
			}

			after, ran := enforcing(t, before, c.kind)
			for range 2 {
				after.do(key(ask{})).is(t, 409, "unknown", header.CodeOutcomeUnknown)
			}
			r := ended(before)
			if len(ran.all) != 0 {
				t.Fatalf("%d runs, and the record is %s", len(ran.all), r.State)
			}
			after.release(r)
			after.gets(key(ask{}), 201)
			if len(ran.all) != 1 {
				t.Errorf("%d runs after it was freed", len(ran.all))
			}
		})
	}
}

// release is what an operator does who has looked, and found nothing under the record's operation id.
func (a *api) release(r storage.Record) {
	a.Helper()
	if _, err := a.engine.Free(a.Context(), r.Tenant, r.OperationID, r.Revision, "looked, and nothing is there"); err != nil {
		a.Fatal(err)
	}
}

// Whoever was sent to an operation's status hears there what a retry hears. Nothing of it runs where its policy is enforced.
func TestTheStatusOfWhatWasOnlyObservedIsUnknown(t *testing.T) {
	for name, died := range map[string]bool{"its holder died": true, "its handler failed": false} {
		t.Run(name, func(t *testing.T) {
			var store *faulty.Store
			before := newLocalAPI(t, func(s storage.Store) storage.Store {
				store = faulty.New(s.(faulty.Inner))
				return store
			})
			after := newLocalAPI(t, func(storage.Store) storage.Store { return before.mem })
			after.mux.Handle("GET /v1/operations/{id}", after.mw.Status(nil))
			policy := idem.IETF()
			policy.Name, policy.InFlight = "accepted", idem.InFlightAccepted
			after.handle("POST /orders", idem.Operation{Policy: policy}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
				t.Error("it was executed")
				return idem.Response{Status: 201}, nil
			})
			var location string
			before.handle("POST /orders", idem.Operation{Policy: idem.Observe(policy)}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
				location = after.do(key(ask{})).is(t, 202, "in_progress", "").Header.Get("Location")
				after.shows(location, "in_progress")
				if died {
					store.Each(func(faulty.Call) faulty.Fault {
						return func(context.Context, func(context.Context) error) error { return errors.New("the process is gone") }
					})
				}
				return idem.Response{}, errors.New("no")
			})
			before.gets(key(ask{}), 500)
			after.later(time.Hour)
			after.do(key(ask{})).is(t, 409, "unknown", header.CodeOutcomeUnknown)
			after.shows(location, "unknown")
		})
	}
}

// shows says what state an operation's status shows.
func (a *api) shows(location, state string) {
	a.Helper()
	got := a.do(ask{method: "GET", path: location})
	var status operationStatus
	if err := json.Unmarshal(got.body, &status); err != nil || got.StatusCode != 200 || status.State != state {
		a.Errorf("%s: %d %s (%v), want %s", location, got.StatusCode, got.body, err, state)
	}
}

// An answer that only observe mode stored can't be taken out of use: a duplicate may have been executed beside it, and the retry
// would be executed once more. It is replayed until it expires.
func TestAnObservedAnswerIsNotTakenOutOfUse(t *testing.T) {
	before := newLocalAPI(t, nil)
	runs := 0
	before.handle("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		if runs++; runs == 1 {
			return idem.Response{Status: 402}, nil
		}
		return idem.Response{Status: 201}, nil
	})
	before.gets(key(ask{}), 402)
	before.gets(key(ask{}), 201)
	all := before.mem.Records()
	r := all[slices.IndexFunc(all, func(r storage.Record) bool { return r.Response.Status == 402 })]
	after, ran := enforcing(t, before, idem.KindAtomic)
	_, err := after.engine.CacheBust(t.Context(), r.Tenant, r.OperationID, "", "it was refused by mistake")
	var not *idem.CacheBustError
	if !r.RecordOnly || !errors.As(err, &not) || !strings.Contains(not.Reason, "observed") {
		t.Errorf("record only: %t; got %v, want a CacheBustError", r.RecordOnly, err)
	}
	after.gets(key(ask{}), 402)
	if len(ran.all) != 0 {
		t.Errorf("ran %+v", ran.all)
	}
}

// ended is the record of the client's key: what ran beside it may have left one of its own.
func ended(a *api) storage.Record {
	for _, r := range a.mem.Records() {
		if r.State != storage.StateCompleted {
			return r
		}
	}
	return storage.Record{}
}

// enforcing is the next release of a service that observed: on the same store, and two hours later.
func enforcing(t *testing.T, before *api, kind idem.Kind) (*api, *executions) {
	return enforcingAfter(t, before, kind, 2*time.Hour)
}

func enforcingAfter(t *testing.T, before *api, kind idem.Kind, after time.Duration) (*api, *executions) {
	a, ran := newLocalAPI(t, func(storage.Store) storage.Store { return before.mem }), &executions{}
	a.later(after)
	if kind == idem.KindWrapped {
		a.wrap("POST /orders", idem.Operation{Policy: idem.IETF()}, ran.ServeHTTP)
		return a, ran
	}
	a.handle("POST /orders", idem.Operation{Policy: idem.IETF()}, middleware.Route{}, func(ctx context.Context, _ *idem.Tx, _ *middleware.Request) (idem.Response, error) {
		x, _ := idem.ExecutionFrom(ctx)
		ran.all = append(ran.all, x)
		return idem.Response{Status: 201}, nil
	})
	return a, ran
}

// deadObserved is an API whose process died in an observed handler, under a policy with this retention.
func deadObserved(t *testing.T, retention time.Duration) *api {
	var store *faulty.Store
	before := newLocalAPI(t, func(s storage.Store) storage.Store {
		store = faulty.New(s.(faulty.Inner))
		return store
	})
	policy := idem.IETF()
	policy.Retention = retention
	died := errors.New("the process is gone")
	before.handle("POST /orders", idem.Operation{Policy: idem.Observe(policy)}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		store.Each(func(faulty.Call) faulty.Fault {
			return func(context.Context, func(context.Context) error) error { return died }
		})
		return idem.Response{Status: 201}, nil
	})
	before.do(key(ask{}))
	before.in(storage.StateInProgress, 1)
	return before
}

// Whose process died while it observed leaves a dead lease, which is no permission either.
func TestADeadLeaseOfAnObservedRequestPermitsNobodyWhoEnforces(t *testing.T) {
	before := deadObserved(t, day)
	after, ran := enforcing(t, before, idem.KindAtomic)
	met := after.do(key(ask{})).is(t, 409, "unknown", header.CodeOutcomeUnknown)
	if len(ran.all) != 0 {
		t.Errorf("ran %+v", ran.all)
	}
	if strings.Contains(string(met.body), "being resolved") || !strings.Contains(string(met.body), "before this API was protected") {
		t.Errorf("nobody resolves it by itself: %s", met.body)
	}
	if log := after.log.String(); !strings.Contains(log, `"msg":"idempotency.reconcile.failed"`) || !strings.Contains(log, `"outcome":"only_observed"`) || !strings.Contains(log, `"alarm":true`) {
		t.Errorf("no operator is told: %s", log)
	}

	after.later(day - 3*time.Hour) // another payload is no news: the key is not free yet
	after.gets(key(ask{body: `{"other":1}`}), 422)
	after.later(2 * time.Hour) // nothing has removed the row
	after.gets(key(ask{body: `{"other":1}`}), 201)
	if len(ran.all) != 1 || len(before.mem.Records()) != 1 {
		t.Errorf("ran %+v; records %+v", ran.all, before.mem.Records())
	}
}

// The key of a dead lease is free when its retention is over by each instance's clock. Until then nobody resolves it, and whoever meets
// it is told so: the client, an operator, and who looks at its status.
func TestADeadLeaseOfAnObservedRequestIsToldAsSuchToItsEnd(t *testing.T) {
	before := deadObserved(t, day)
	after, ran := enforcing(t, before, idem.KindAtomic)
	after.mux.Handle("GET /v1/operations/{id}", after.mw.Status(nil))
	dead := before.mem.Records()[0]
	after.later(dead.LeaseUntil.Add(day + time.Second).Sub(after.now())) // half of Config.ClockSkew
	met := after.do(key(ask{})).is(t, 409, "unknown", header.CodeOutcomeUnknown)
	if !strings.Contains(string(met.body), "before this API was protected") {
		t.Errorf("nobody resolves it by itself: %s", met.body)
	}
	if log := after.log.String(); !strings.Contains(log, `"outcome":"only_observed"`) {
		t.Errorf("no operator is told: %s", log)
	}
	after.shows("/v1/operations/"+string(dead.OperationID), "unknown")
	after.later(time.Second)
	if after.engine.OnlyObserved(dead) {
		t.Error("it is only observed, though its key is free")
	}
	after.gone(dead.OperationID)
	after.gets(key(ask{}), 201)
	if len(ran.all) != 1 {
		t.Errorf("ran %+v", ran.all)
	}
}

// The same of what was released: nobody goes on with it once its retention is over, and its status is no longer that of what runs.
func TestAReleasedOperationHasNoStatusOnceItsKeyIsFree(t *testing.T) {
	for name, observe := range map[string]bool{"observed": true, "enforced": false} {
		t.Run(name, func(t *testing.T) {
			a := newLocalAPI(t, nil)
			policy := idem.IETF()
			if observe {
				policy = idem.Observe(policy)
			}
			a.handle("POST /orders", idem.Operation{Policy: policy}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
				return idem.Response{Status: 503}, nil
			})
			a.mux.Handle("GET /v1/operations/{id}", a.mw.Status(nil))
			a.gets(key(ask{}), 503)
			a.in(storage.StateFailedRetryable, 1)
			released := a.mem.Records()[0]
			a.later(released.FreeAt.Sub(a.now()) - time.Second)
			a.shows("/v1/operations/"+string(released.OperationID), map[bool]string{true: "unknown", false: "in_progress"}[observe])
			a.later(time.Second)
			a.gone(released.OperationID)
		})
	}
}

// gone demands that an operation has no status, though its row is there.
func (a *api) gone(id idem.OperationID) {
	a.Helper()
	r := a.do(ask{method: "GET", path: "/v1/operations/" + string(id)})
	if r.StatusCode != 404 || r.code(a.T) != "operation_not_found" {
		a.Errorf("got %d %s, want 404 of what is there", r.StatusCode, r.body)
	}
}

// The key is held for as long as the policy said under which it was observed, also where the one that enforces keeps its records for less.
func TestADeadLeaseOfAnObservedRequestEndsWithItsOwnRetention(t *testing.T) {
	before := deadObserved(t, 2*day)
	after, ran := enforcing(t, before, idem.KindAtomic) // which keeps them for a day, and comes two hours later
	after.later(day - time.Hour)
	after.do(key(ask{})).is(t, 409, "unknown", header.CodeOutcomeUnknown)
	after.later(day - 4*time.Hour)
	after.do(key(ask{})).is(t, 409, "unknown", header.CodeOutcomeUnknown)
	if len(ran.all) != 0 {
		t.Errorf("ran %+v", ran.all)
	}
	after.later(4 * time.Hour)
	after.gets(key(ask{}), 201)
}

// Where the policy that enforces keeps its records for longer, the key is held for no longer than it was observed with all the same: native
// TTL removes the row by what the row says. It ends alike whether it was released once before that, or after, or never, or is removed.
func TestADeadLeaseOfAnObservedRequestEndsAlikeForALongerRetention(t *testing.T) {
	nothing := func(_, _ *api) {}
	release := func(before, after *api) { after.release(before.mem.Records()[0]) }
	for name, c := range map[string]struct{ within, past func(before, after *api) }{
		"never released":            {nothing, nothing},
		"released in its retention": {release, nothing},
		"released after it":         {nothing, release},
		"removed by TTL": {nothing, func(before, after *api) {
			if records, _ := before.mem.Expire(after.now()); records != 1 {
				t.Errorf("%d records were removed, want it", records)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before := deadObserved(t, time.Hour)
			after, ran := enforcingAfter(t, before, idem.KindAtomic, 30*time.Minute) // which keeps its records for a day
			after.do(key(ask{})).is(t, 409, "unknown", header.CodeOutcomeUnknown)
			c.within(before, after)
			after.do(key(ask{})).is(t, 409, "unknown", header.CodeOutcomeUnknown)
			if len(ran.all) != 0 {
				t.Errorf("ran %+v", ran.all)
			}
			after.later(time.Hour)
			c.past(before, after)
			after.gets(key(ask{}), 201)
			after.gets(key(ask{}), 201) // which is its replay
			if len(ran.all) != 1 {
				t.Errorf("ran %+v", ran.all)
			}
		})
	}
}

// Who releases a dead lease does not hold its key for longer, and past its retention it is not said to be only observed.
func TestTheFirstReleaseOfADeadObservedLeaseMovesNoEnd(t *testing.T) {
	before := deadObserved(t, day)
	after, _ := enforcing(t, before, idem.KindAtomic)
	dead := before.mem.Records()[0]
	released, err := after.engine.Free(t.Context(), dead.Tenant, dead.OperationID, dead.Revision, "looked for its order")
	if err != nil || !after.engine.OnlyObserved(dead) || !after.engine.OnlyObserved(released) {
		t.Fatalf("%+v, %v", released, err)
	}
	after.later(day - time.Hour)
	if after.engine.OnlyObserved(dead) || after.engine.OnlyObserved(released) {
		t.Error("it is only observed past its retention")
	}
	after.gets(key(ask{}), 201)
}

// What is observed changes nothing: a handler that can take the connection over where the server lets it still finds that it can't, where
// the server does not.
func TestAnObservedHandlerTakesNoConnectionThatTheServerKeeps(t *testing.T) {
	a := newLocalAPI(t, nil)
	a.wrap("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF()), UnknownToOperator: true}, func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(http.Hijacker); ok {
			t.Error("it is told that it may")
		}
		w.WriteHeader(201)
	})
	a.gets(key(ask{}), 201)
}

// A store in trouble holds an observed answer back for seconds, and not for the rest of a lease: the client would give up, and each
// retry would be executed.
func TestAnObservedAnswerDoesNotWaitForItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store *faulty.Store
		a := newLocalAPI(t, func(s storage.Store) storage.Store {
			store = faulty.New(s.(faulty.Inner))
			return store
		})
		ran := 0
		a.wrap("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, func(w http.ResponseWriter, _ *http.Request) {
			ran++
			store.Each(func(faulty.Call) faulty.Fault {
				return func(context.Context, func(context.Context) error) error { return storage.ErrThrottled }
			})
			w.WriteHeader(201)
		})
		began := time.Now()
		a.gets(key(ask{}), 201)
		if took := time.Since(began); ran != 1 || took > 5*time.Second {
			t.Errorf("%d runs, answered after %s", ran, took)
		}
	})
}

// hang is a call of a store that answers nothing.
func hang(ctx context.Context, _ func(context.Context) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// semantics.md "Policies", observe mode: what an observed request may wait for its record once a wrapped handler has ended, also where
// a renewal of its lease is still under way.
func TestAnObservedAnswerDoesNotWaitForARenewal(t *testing.T) {
	for name, c := range map[string]struct {
		every  bool // call hangs once the handler has ended, and not the renewal only
		within time.Duration
	}{
		"the store answers again": {false, 0},
		"the store hangs":         {true, 3500 * time.Millisecond},
	} {
		for _, status := range []int{201, 500} {
			t.Run(fmt.Sprintf("%s, %d", name, status), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var store *faulty.Store
					a := newLocalAPI(t, func(s storage.Store) storage.Store {
						store = faulty.New(s.(faulty.Inner))
						return store
					})
					var ended time.Time
					var over, hung atomic.Bool
					store.Each(func(call faulty.Call) faulty.Fault {
						if call == faulty.Renew {
							hung.Store(true)
							return hang
						}
						if c.every && over.Load() {
							return hang
						}
						return func(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
					})
					a.wrap("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, func(w http.ResponseWriter, _ *http.Request) {
						for !hung.Load() {
							time.Sleep(time.Second)
						}
						ended = time.Now()
						over.Store(true)
						w.WriteHeader(status)
					})
					a.gets(key(ask{}), status)
					if took := time.Since(ended); took > c.within {
						t.Errorf("answered %s after the handler, want %s at most", took, c.within)
					}
				})
			})
		}
	}
}

// What a handler answers on a connection that it has taken over, nobody sees. No other answer may stand for it.
func TestAnObservedHandlerThatTakesTheConnectionLeavesTheOutcomeUnknown(t *testing.T) {
	told := &reports{}
	a := observing(t, nil, told.add)
	operation := withDefaults(idem.Operation{Policy: idem.Observe(idem.IETF())}, idem.KindWrapped)
	handler, err := a.mw.Wrap(operation, middleware.Route{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(buffered, "HTTP/1.1 402 Payment Required\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		if err := buffered.Flush(); err != nil {
			t.Error(err)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	a.mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		defer close(over)
		handler.ServeHTTP(w, r)
	})
	r, err := http.NewRequest("POST", a.server.URL+"/orders", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer tenant-a"}, "Idempotency-Key": {"k"}, "Content-Type": {"application/json"}}
	response, err := a.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	<-over
	if got := a.mem.Records()[0]; response.StatusCode != 402 || got.State != storage.StateUnknown {
		t.Errorf("answered %d, and the record is %s with %d", response.StatusCode, got.State, got.Response.Status)
	}
	if got := told.take(); len(got) != 1 || got[0] != "409 unknown "+header.CodeOutcomeUnknown {
		t.Errorf("reported %q", got)
	}
}
