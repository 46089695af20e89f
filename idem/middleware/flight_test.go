package middleware_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// gate is a handler that waits until the test lets it go on.
type gate struct {
	started, release chan struct{}
	runs             atomic.Int64
}

func newGate() *gate { return &gate{started: make(chan struct{}, 8), release: make(chan struct{})} }

func (g *gate) handle(ctx context.Context, _ *idem.Tx, _ *middleware.Request) (idem.Response, error) {
	g.started <- struct{}{}
	<-g.release
	return idem.JSON(http.StatusCreated, map[string]any{"run": g.runs.Add(1), "canceled": ctx.Err() != nil})
}

// watched tells when the server has noticed that a client is gone, and when its request was served to the end.
func watched(h http.Handler, noticed, served chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stop := context.AfterFunc(r.Context(), func() { noticed <- struct{}{} })
		h.ServeHTTP(w, r)
		if !stop() {
			served <- struct{}{}
		}
	})
}

// A client that hangs up changes nothing: the handler goes on, the answer is committed, the retry replays it.
func TestClientHangsUp(t *testing.T) {
	for _, wrapped := range []bool{false, true} {
		a, g := newAPI(t, nil), newGate()
		handler, err := a.mw.Handle(withDefaults(idem.Operation{}, idem.KindAtomic), middleware.Route{}, g.handle)
		if wrapped {
			handler, err = a.mw.Wrap(idem.Operation{Name: "orders.wrap", UnknownToOperator: true, Policy: idem.IETF()}, middleware.Route{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				response, err := g.handle(r.Context(), nil, nil)
				if err != nil {
					t.Error(err)
				}
				w.WriteHeader(response.Status)
				w.Write(response.Body)
			}))
		}
		if err != nil {
			t.Fatal(err)
		}
		noticed, served := make(chan struct{}, 1), make(chan struct{}, 1)
		a.mux.Handle("POST /orders", watched(handler, noticed, served))
		ctx, hangUp := context.WithCancel(context.Background())
		gone := make(chan error)
		go func() {
			_, err := a.send(key(ask{ctx: ctx}))
			gone <- err
		}()
		<-g.started
		hangUp()
		if err := <-gone; err == nil {
			t.Fatal("the client got an answer")
		}
		<-noticed
		a.do(key(ask{})).wants(t, 409, "in_progress")
		close(g.release)
		<-served
		r := a.do(key(ask{}))
		r.wants(t, 201, "replayed")
		var body struct {
			Run      int
			Canceled bool
		}
		if err := json.Unmarshal(r.body, &body); err != nil || body.Run != 1 || body.Canceled {
			t.Errorf("wrapped %v: %s, %v", wrapped, r.body, err)
		}
	}
}

// deferred registers an operation that accepts, and returns what settles it.
func deferred(a *api) (settle func(state storage.State, final idem.Response)) {
	a.handle("POST /orders", idem.Operation{Kind: idem.KindDeferred}, middleware.Route{}, func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
		tx.Send("orders.ship", []byte("parcel"))
		response, err := idem.JSON(http.StatusAccepted, map[string]any{"operation": tx.OperationID(), "state": "pending"})
		return response.With("X-Once", "1"), err
	})
	return func(state storage.State, final idem.Response) {
		m := a.mem.Messages()[0]
		now := a.now()
		send, err := a.mem.PrepareSettle(storage.Settlement{
			Message: storage.MessageEnd{ID: m.ID, State: storage.MessageDelivered, DoneAt: now}, Fence: storage.FenceOfMessage(m),
			Record: &storage.RecordEnd{
				Key: m.RecordKey, OperationID: m.OperationID, State: state, Response: final, DoneAt: now, ExpiresAt: now.Add(m.Retention),
			},
			Token: "settle",
		})
		if err == nil {
			err = send(context.Background())
		}
		if err != nil {
			a.Error(err)
		}
	}
}

// One wait too many of a tenant, or of the process, is answered at once with the 202 as it stands.
func TestPreferWaitIsBoundedByTenantAndInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newLocalAPI(t, nil)
		var err error
		if a.engine, err = idem.New(a.mem, idem.Config{WaitsMax: 3, WaitsPerTenantMax: 2, Logger: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(err)
		}
		if a.mw, err = middleware.New(a.engine, middleware.Config{Identify: identify, DocsURL: "https://docs.example/idempotency"}); err != nil {
			t.Fatal(err)
		}
		deferred(a)
		var group sync.WaitGroup
		var mu sync.Mutex
		held := map[string]int{}
		for _, tenant := range []string{"greedy", "other"} {
			for n := range 10 {
				group.Go(func() {
					began := time.Now()
					r := a.do(ask{tenant: tenant, keys: []string{strconv.Itoa(n)}, header: map[string]string{"Prefer": "wait=20"}})
					if r.wants(t, 202, "executed"); r.Header.Get("Retry-After") == "" {
						t.Errorf("%v", r.Header)
					}
					mu.Lock()
					defer mu.Unlock()
					if time.Since(began) > 19*time.Second {
						held[tenant]++
					}
				})
			}
			synctest.Wait()
		}
		group.Wait()
		if held["greedy"] != 2 || held["other"] != 1 {
			t.Errorf("held %v, want 2 of the first tenant and the one that is left of the other", held)
		}
	})
}

// payments-api.md "Prefer: wait=N" (RFC 7240): holds the request until the final answer or N is over; then the 202.
func TestPreferWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newLocalAPI(t, nil)
		settle := deferred(a)
		wait := func(n string) ask { return key(ask{header: map[string]string{"Prefer": "respond-async, wait=" + n}}) }
		begun := time.Now()
		a.do(wait("1")).wants(t, 202, "executed")
		if took := time.Since(begun); (took - time.Second).Abs() > 10*time.Millisecond {
			t.Errorf("waited %v", took)
		}
		for _, malformed := range []string{"0", "-1", "x"} {
			a.do(wait(malformed)).wants(t, 202, "replayed")
		}
		time.AfterFunc(100*time.Millisecond, func() { settle(storage.StateCompleted, idem.Response{Status: 201, Body: []byte("final")}) })
		r := a.do(wait("20"))
		r.wants(t, 201, "replayed")
		if string(r.body) != "final" || r.Header.Get("Idempotency-Expires") == "" || r.Header.Get("Location") != "" {
			t.Errorf("%s %v", r.body, r.Header)
		}
	})
}

// Trouble while waiting changes nothing: where the store hangs, the 202 comes before the caller's deadline.
func TestPreferWaitIsAnsweredBeforeTheDeadlineThoughAPollHangs(t *testing.T) {
	for _, c := range []struct{ deadline, hangs time.Duration }{{3 * time.Second, 0}, {10 * time.Second, 0}, {10 * time.Second, 8 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			var store *faulty.Store
			a := newLocalAPI(t, func(s storage.Store) storage.Store {
				store = faulty.New(s.(faulty.Inner))
				return store
			})
			deferred(a)
			a.do(key(ask{})).wants(t, 202, "executed")
			began := time.Now()
			store.Each(func(call faulty.Call) faulty.Fault {
				if call == faulty.Get && time.Since(began) >= c.hangs && store.Count(faulty.Get) > 2 { // but for the look of the duplicate itself
					return hang
				}
				return faulty.Before(func() {})
			})
			ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
			defer cancel()
			r := a.do(key(ask{ctx: ctx, header: map[string]string{"Prefer": "wait=20"}}))
			r.wants(t, 202, "replayed")
			if took := time.Since(began); took >= c.deadline {
				t.Errorf("answered after %v", took)
			}
		})
	}
}

// The 202 of a duplicate in flight is held as that of a deferred operation is; a policy that answers 409 holds nobody.
func TestPreferWaitHoldsADuplicateThatWouldBeAccepted(t *testing.T) {
	for _, inFlight := range []idem.InFlight{idem.InFlightAccepted, idem.InFlightConflict} {
		synctest.Test(t, func(t *testing.T) {
			a, g := newLocalAPI(t, nil), newGate()
			policy := idem.IETF()
			policy.Name, policy.InFlight = "orders", inFlight
			a.handle("POST /orders", idem.Operation{Policy: policy}, middleware.Route{}, g.handle)
			go func() { _, _ = a.send(key(ask{})) }()
			<-g.started
			wait := key(ask{header: map[string]string{"Prefer": "wait=5"}})
			begun := time.Now()
			took := func() time.Duration { return time.Since(begun).Round(100 * time.Millisecond) }
			if inFlight == idem.InFlightConflict {
				a.do(wait).is(t, 409, "in_progress", header.CodeInProgress)
				if took() != 0 {
					t.Errorf("a 409 was held for %v", took())
				}
				close(g.release)
				return
			}
			r := a.do(wait)
			r.wants(t, 202, "in_progress")
			if took() != 5*time.Second || r.Header.Get("Location") == "" || r.Header.Get("Retry-After") == "" {
				t.Errorf("after %v: %v", took(), r.Header)
			}
			time.AfterFunc(3*time.Second, func() { close(g.release) })
			r = a.do(wait)
			r.wants(t, 201, "replayed")
			if took() < 8*time.Second || took() > 9*time.Second || r.Header.Get("Idempotent-Replayed") != "true" || r.Header.Get("Idempotency-Expires") == "" || r.Header.Get("Location") != "" || len(r.body) == 0 {
				t.Errorf("after %v: %s %v", took(), r.body, r.Header)
			}
		})
	}
}

// afterCommit is a store that tells when a commit has landed.
type afterCommit struct {
	storage.Store
	then func()
}

func (s *afterCommit) Prepare(c storage.Commit) (func(context.Context) error, error) {
	send, err := s.Store.Prepare(c)
	return func(ctx context.Context) error {
		err := send(ctx)
		if err == nil {
			s.then()
		}
		return err
	}, err
}

func TestPreferWaitAnswersItsOwnRequest(t *testing.T) {
	store := &afterCommit{}
	a := newAPI(t, func(s storage.Store) storage.Store { store.Store = s; return store })
	settle := deferred(a)
	store.then = func() { go settle(storage.StateCompleted, idem.Response{Status: 201, Body: []byte("final")}) }
	r := a.do(key(ask{header: map[string]string{"Prefer": "wait=10"}}))
	r.wants(t, 201, "executed")
	if r.Header.Get("X-Once") != "" {
		t.Errorf("the final answer has the 202's headers: %v", r.Header)
	}
}

func TestTwentyDuplicatesAtOnce(t *testing.T) {
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindOptimistic} {
		a := newAPI(t, nil)
		a.handle("POST /orders", idem.Operation{Kind: kind}, middleware.Route{}, counting(new(atomic.Int64)))
		bodies := []string{`{"a":1,"b":2}`, `{ "b": 2, "a": 1 }`}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				for {
					r, err := a.send(key(ask{body: bodies[i%2]}))
					if err != nil || r.StatusCode != 201 && r.StatusCode != 409 {
						t.Errorf("got %v, %v", r, err)
						return
					}
					if r.StatusCode == 201 {
						return
					}
					runtime.Gosched()
				}
			})
		}
		wg.Wait()
		if row := string(a.mem.Row("runs")); row != "1" {
			t.Errorf("%s: committed %q", kind, row)
		}
	}
}
