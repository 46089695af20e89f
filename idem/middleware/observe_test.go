package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
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

// reports are what Config.Report was told.
type reports struct {
	mu  sync.Mutex
	all []middleware.Observation
}

func (r *reports) add(_ context.Context, o middleware.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, o)
}

// take returns what was reported since the last call, as "status outcome code".
func (r *reports) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var taken []string
	for _, o := range r.all {
		taken = append(taken, strings.TrimSpace(fmt.Sprintf("%d %s %s", o.Status, o.Outcome, o.Code)))
	}
	r.all = nil
	return taken
}

// observing is a server whose policies in observe mode report to the function.
func observing(t *testing.T, wrap func(storage.Store) storage.Store, report func(context.Context, middleware.Observation)) *api {
	t.Helper()
	a := newAPI(t, wrap)
	a.reportTo(report)
	return a
}

func (a *api) reportTo(report func(context.Context, middleware.Observation)) {
	a.Helper()
	mw, err := middleware.New(a.engine, middleware.Config{
		Identify: identify, DocsURL: "https://docs.example/idempotency", Logger: slog.New(slog.NewJSONHandler(a.log, nil)), Report: report,
	})
	if err != nil {
		a.Fatal(err)
	}
	a.mw = mw
}

// observes checks that the request executed, marked as unprotected, and what was reported of it.
func (a *api) observes(told *reports, q ask, status int, want ...string) *reply {
	a.Helper()
	r := a.do(q)
	if r.StatusCode != status || r.Header.Get("Idempotency-Status") != "unprotected" || r.Header.Get("Idempotent-Replayed") != "" || r.Header.Get("Idempotency-Expires") != "" {
		a.Errorf("got %d %s %v", r.StatusCode, r.body, r.Header)
	}
	if got := told.take(); fmt.Sprint(got) != fmt.Sprint(want) {
		a.Errorf("reported %q, want %q", got, want)
	}
	return r
}

// semantics.md "Policies", observe mode: what is found is reported and not acted on, for transactional and wrapped handlers.
func TestObserveReportsAndExecutes(t *testing.T) {
	var runs atomic.Int64
	for name, register := range map[string]func(*api, idem.Policy){
		"handle": func(a *api, p idem.Policy) {
			a.handle("POST /orders", idem.Operation{Policy: p}, middleware.Route{}, counting(&runs))
		},
		"handle optimistic": func(a *api, p idem.Policy) {
			a.handle("POST /orders", idem.Operation{Kind: idem.KindOptimistic, Policy: p}, middleware.Route{}, counting(&runs))
		},
		"wrap": func(a *api, p idem.Policy) {
			a.wrap("POST /orders", idem.Operation{Policy: p}, func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					t.Error(err)
				}
				w.WriteHeader(http.StatusCreated)
				fmt.Fprint(w, runs.Add(1))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			told := &reports{}
			a := observing(t, nil, told.add)
			register(a, idem.Observe(idem.IETF()))
			runs.Store(0)
			first := a.observes(told, key(ask{}), 201)
			again := a.observes(told, key(ask{}), 201, "201 replayed")
			if string(first.body) == string(again.body) {
				t.Error("the duplicate was answered from the record")
			}
			a.observes(told, key(ask{body: `{"a":1}`}), 201, "422 mismatch "+header.CodeKeyReused)
			a.observes(told, ask{}, 201, "400  "+header.CodeKeyMissing)
			a.observes(told, ask{keys: []string{""}}, 201, "400  "+header.CodeKeyInvalid)
			a.observes(told, ask{keys: []string{"a", "b"}}, 201, "400  "+header.CodeKeyInvalid)
			a.observes(told, ask{keys: []string{"new"}, body: `{"a":1,"a":2}`}, 201, "400  request_invalid")
			a.observes(told, sent(ask{keys: []string{"old"}}, "1994-11-06T08:49:37Z"), 201, "412  "+header.CodeKeyExpired)
			a.observes(told, sent(ask{keys: []string{"odd"}}, "yesterday"), 201, "400  "+header.CodeKeyInvalid)
			if runs.Load() != 9 {
				t.Errorf("%d of 9 requests ran", runs.Load())
			}
			a.do(key(ask{tenant: "wrong"})).wants(t, 403, "")
			if log := a.log.String(); !strings.Contains(log, `"idempotency.observed"`) || !strings.Contains(log, `"tenant":"tenant-a"`) || strings.Contains(log, `\"k\"`) {
				t.Errorf("log: %s", log)
			}
		})
	}
}

// Where the base policy lets a request without a key run unprotected, that is reported too: nobody else counts them.
func TestObserveReportsMissingKeysOfEveryPolicy(t *testing.T) {
	for _, base := range []idem.Policy{idem.Stripe(), idem.Lenient()} {
		told := &reports{}
		a := observing(t, nil, told.add)
		a.handle("POST /orders", idem.Operation{Policy: idem.Observe(base)}, middleware.Route{}, counting(new(atomic.Int64)))
		a.observes(told, ask{}, 201, "0 unprotected")
		a.observes(told, key(ask{}), 201)
		mismatch := []string{"400 mismatch " + header.CodeError}
		if base.Mismatch == idem.MismatchReplay {
			mismatch = []string{"201 replayed"}
		}
		a.observes(told, key(ask{body: `{"a":1}`}), 201, mismatch...)
	}
}

// A duplicate of a running request runs beside it: it neither waits nor is turned away, whatever the base says.
func TestObserveDoesNotWait(t *testing.T) {
	for _, base := range []idem.Policy{idem.IETF(), idem.Lenient()} {
		told := &reports{}
		a := observing(t, nil, told.add)
		started, release := make(chan struct{}), make(chan struct{})
		var runs atomic.Int64
		a.handle("POST /orders", idem.Operation{Policy: idem.Observe(base)}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
			if runs.Add(1) == 1 {
				close(started)
				<-release
			}
			return idem.JSON(201, runs.Load())
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			if r, err := a.send(key(ask{})); err != nil || r.StatusCode != 201 {
				t.Errorf("the first: %v, %v", r, err)
			}
		}()
		<-started
		a.observes(told, key(ask{}), 201, "409 in_progress "+header.CodeInProgress)
		close(release)
		<-done
	}
}

// What an enforcing endpoint would park as unknown is parked, and every request executes all the same: an enforcing
// endpoint that comes later must not take what it finds for permission.
func TestObservedFailureStopsNothingAndPermitsNothing(t *testing.T) {
	for name, fail := range map[string]func(http.ResponseWriter){
		"500": func(w http.ResponseWriter) { w.WriteHeader(500) },
		"408": func(w http.ResponseWriter) { w.WriteHeader(408) },
	} {
		t.Run(name, func(t *testing.T) {
			told := &reports{}
			a := observing(t, nil, told.add)
			var failing atomic.Bool
			var runs atomic.Int64
			failing.Store(true)
			a.wrap("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, func(w http.ResponseWriter, _ *http.Request) {
				runs.Add(1)
				if failing.Load() {
					fail(w)
					return
				}
				w.WriteHeader(201)
			})
			status := map[string]int{"500": 500, "408": 408}[name]
			a.observes(told, key(ask{}), status, "409 unknown "+header.CodeOutcomeUnknown)
			failing.Store(false)
			for range 2 {
				a.observes(told, key(ask{}), 201, "409 unknown "+header.CodeOutcomeUnknown)
			}
			if n := runs.Load(); n != 3 {
				t.Errorf("3 requests ran %d times", n)
			}
			if r := a.mem.Records()[0]; r.State != storage.StateUnknown || r.SafeToRunAgain {
				t.Errorf("left a record that is %s, safe to run again %v", r.State, r.SafeToRunAgain)
			}
		})
	}
}

// The handler's panic reaches whoever stands outside, as it would have without the middleware.
func TestObservedPanicPassesThrough(t *testing.T) {
	told := &reports{}
	a := observing(t, nil, told.add)
	handler, err := a.mw.Wrap(idem.Operation{Name: "orders.create", UnknownToOperator: true, Policy: idem.Observe(idem.IETF())}, middleware.Route{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic("boom")
	}))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("recovered %v", p)
				}
			}()
			r := httptest.NewRequest("POST", "/orders", strings.NewReader("{}"))
			r.Header.Set("Authorization", "Bearer tenant-a")
			r.Header.Set("Idempotency-Key", "k")
			handler.ServeHTTP(httptest.NewRecorder(), r)
		}()
		if got := told.take(); fmt.Sprint(got) != "[409 unknown "+header.CodeOutcomeUnknown+"]" {
			t.Errorf("reported %q", got)
		}
	}
}

// Observing changes nothing about a wrapped handler's exchange: it streams, its body has no bound, its client's context is
// its own.
func TestObservedExchangeIsUntouched(t *testing.T) {
	told := &reports{}
	a := observing(t, nil, told.add)
	large := strings.Repeat("a", 300<<10)
	flushed := make(chan struct{})
	a.wrap("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != large && string(body) != "{}" {
			t.Errorf("read %d bytes, %v", len(body), err)
		}
		if _, bounded := r.Context().Deadline(); bounded {
			t.Error("the handler has a deadline")
		}
		w.Header().Set("Set-Cookie", "session=1")
		io.WriteString(w, "first ")
		w.(http.Flusher).Flush()
		<-flushed
		w.Write(make([]byte, 5<<20))
	})
	for _, test := range []struct {
		body string
		want string
	}{{"{}", "[500 executed " + header.CodeResponseNotKept + "]"}, {large, "[413  request_too_large]"}} {
		r, err := http.NewRequest("POST", a.server.URL+"/orders", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer tenant-a"}, "Idempotency-Key": {"k"}}
		response, err := a.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		beginning := make([]byte, 6)
		if _, err := io.ReadFull(response.Body, beginning); err != nil || string(beginning) != "first " {
			t.Errorf("%q, %v", beginning, err)
		}
		flushed <- struct{}{} // only now may the handler go on
		rest, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || len(rest) != 5<<20 || response.Header.Get("Set-Cookie") == "" || response.Header.Get("Idempotency-Status") != "unprotected" {
			t.Errorf("%d bytes, %v, %v", len(rest), err, response.Header)
		}
		if got := fmt.Sprint(told.take()); got != test.want {
			t.Errorf("reported %s, want %s", got, test.want)
		}
	}
}

// What an enforcing endpoint could not fingerprint or bind goes through as well.
func TestObserveReportsWhatItCouldNotProtect(t *testing.T) {
	told := &reports{}
	a := observing(t, nil, told.add)
	bound := idem.Observe(idem.IETF())
	bound.BindPrincipal = true
	a.wrap("POST /orders", idem.Operation{Policy: bound}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "{}" {
			t.Errorf("read %q, %v", body, err)
		}
		if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
			t.Errorf("the connection is out of reach: %v", err)
		}
		w.WriteHeader(201)
	})
	coded := key(ask{tenant: "tenant-a/session-1", header: map[string]string{"Content-Encoding": "gzip"}})
	a.observes(told, coded, 201, "415  unsupported_media_type")
	a.observes(told, key(ask{}), 201, "500  internal_error") // no principal
	a.observes(told, key(ask{tenant: "tenant-a/session-1"}), 201)
	a.observes(told, key(ask{tenant: "tenant-a/session-1"}), 201, "201 replayed")
	a.observes(told, key(ask{tenant: "tenant-a/session-2"}), 201)
}

// A bound that is none bounds nothing: what is reported is about the whole body.
func TestObserveComparesBodiesWithoutABound(t *testing.T) {
	told := &reports{}
	a := newAPI(t, nil)
	var err error
	a.mw, err = middleware.New(a.engine, middleware.Config{
		Identify: identify, Logger: slog.New(slog.NewJSONHandler(a.log, nil)), Report: told.add, BodyBytesMax: math.MaxInt,
	})
	if err != nil {
		t.Fatal(err)
	}
	a.wrap("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) })
	a.observes(told, key(ask{body: `{"a":1}`}), 201)
	a.observes(told, key(ask{body: `{"a":2}`}), 201, "422 mismatch "+header.CodeKeyReused)
}

// A store that is down breaks no wrapped handler; a transactional one has nothing to commit to.
func TestObserveWithTheStoreDown(t *testing.T) {
	told := &reports{}
	var store *outage
	a := observing(t, func(s storage.Store) storage.Store { store = &outage{Store: s}; return store }, told.add)
	var runs atomic.Int64
	a.wrap("POST /wrapped", idem.Operation{Name: "orders.wrap", Policy: idem.Observe(idem.IETF())}, func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		w.WriteHeader(201)
	})
	a.handle("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, middleware.Route{}, counting(&runs))
	store.down.Store(true)
	a.observes(told, key(ask{path: "/wrapped"}), 201, "503  "+header.CodeStoreUnavailable)
	if r := a.do(key(ask{})); r.StatusCode != 503 || r.code(t) != header.CodeStoreUnavailable || runs.Load() != 1 {
		t.Errorf("%d %s, %d runs", r.StatusCode, r.body, runs.Load())
	}
}

// semantics.md "Policies", observe mode: a handler runs once, whatever became of its execution. A second run would do again what the
// first has done, or may have done.
func TestAnObservedRequestThatFailedRunsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fail   error
		fault  faulty.Fault
		status int
	}{
		"its handler fails":               {errors.New("no"), nil, 500},
		"its commit is lost":              {nil, faulty.LoseRequest(), 503},
		"the reply to its commit is lost": {nil, faulty.LoseReply(), 503},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := &reports{}
				var store *faulty.Store
				a := newLocalAPI(t, func(s storage.Store) storage.Store {
					store = faulty.New(s.(faulty.Inner))
					return store
				})
				a.reportTo(told.add)
				runs := 0
				a.handle("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
					runs++
					return idem.Response{Status: 201}, c.fail
				})
				if c.fault != nil {
					store.Each(func(call faulty.Call) faulty.Fault {
						if call == faulty.Commit || runs > 0 {
							return c.fault
						}
						return func(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
					})
				}
				r := a.do(key(ask{}))
				if runs != 1 || r.StatusCode != c.status || r.Header.Get("Idempotency-Status") != "unprotected" {
					t.Errorf("%d runs, %d %s %v", runs, r.StatusCode, r.body, r.Header)
				}
			})
		})
	}
}

// The same of a wrapped handler: whatever it answered, and whatever became of the write that stores its answer.
func TestAnObservedExchangeWhoseStoreFailsRunsOnce(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"its completion is lost":              faulty.LoseRequest(),
		"the reply to its completion is lost": faulty.LoseReply(),
	} {
		for _, status := range []int{201, 408, 500} {
			t.Run(fmt.Sprintf("%s, %d", name, status), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var store *faulty.Store
					a := newLocalAPI(t, func(s storage.Store) storage.Store {
						store = faulty.New(s.(faulty.Inner))
						return store
					})
					runs := 0
					a.wrap("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, func(w http.ResponseWriter, _ *http.Request) {
						runs++
						w.WriteHeader(status)
					})
					met := 0
					store.Each(func(call faulty.Call) faulty.Fault {
						if runs > 0 {
							met++
							return fault
						}
						return func(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
					})
					r := a.do(key(ask{}))
					if runs != 1 || met == 0 || r.StatusCode != status || r.Header.Get("Idempotency-Status") != "unprotected" {
						t.Errorf("%d runs, %d calls lost, %d %s %v", runs, met, r.StatusCode, r.body, r.Header)
					}
				})
			})
		}
	}
}

// A failure of the route's own validation is the answer, as without protection, and what a look-up found is reported.
func TestObserveValidates(t *testing.T) {
	told := &reports{}
	a := observing(t, nil, told.add)
	var tightened atomic.Bool
	a.handle("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, middleware.Route{Validate: func(*middleware.Request) *idem.Problem {
		if !tightened.Load() {
			return nil
		}
		problem := idem.NewProblem(400, "request_invalid", "Invalid request", "The request is not valid.")
		return &problem
	}}, counting(new(atomic.Int64)))
	a.observes(told, key(ask{}), 201)
	tightened.Store(true)
	a.observes(told, key(ask{}), 400, "201 replayed")
	a.observes(told, ask{keys: []string{"new"}}, 400)
	a.observes(told, ask{}, 400, "400  "+header.CodeKeyMissing)
}

// Expired keys and quotas refuse nothing either, and a one-off execution counts against no quota.
func TestObserveRefusesNothing(t *testing.T) {
	told := &reports{}
	gone := idem.IETF()
	gone.GoneAfterExpiry, gone.KeepFor = true, day
	a := observing(t, nil, told.add)
	a.handle("POST /orders", idem.Operation{Policy: idem.Observe(gone)}, middleware.Route{}, counting(new(atomic.Int64)))
	a.observes(told, key(ask{}), 201)
	a.later(day + time.Minute)
	a.observes(told, key(ask{}), 201, "410  "+header.CodeKeyExpired)

	var err error
	if a.engine, err = idem.New(a.mem, idem.Config{Quota: usedUp{}}); err != nil {
		t.Fatal(err)
	}
	if a.mw, err = middleware.New(a.engine, middleware.Config{Identify: identify, Report: told.add}); err != nil {
		t.Fatal(err)
	}
	a.handle("POST /refunds", idem.Operation{Name: "refunds.create", Policy: idem.Observe(idem.IETF())}, middleware.Route{}, counting(new(atomic.Int64)))
	a.observes(told, key(ask{path: "/refunds"}), 201, "429  "+header.CodeQuotaExceeded)
}

// lossy is a store whose time of the last loss can be out of reach.
type lossy struct {
	storage.Store
	unread atomic.Bool
}

func (l *lossy) RefuseBefore(ctx context.Context) (time.Time, error) {
	if l.unread.Load() {
		return time.Time{}, errors.New("connection refused")
	}
	return l.Store.RefuseBefore(ctx)
}

// semantics.md "Policies", observe mode, after a loss of records: no request is refused, whether the row or the configuration says
// when the loss was, or nobody can say it. What enforcement would have answered is reported, of duplicates too.
func TestObserveRefusesNothingAfterALossOfRecords(t *testing.T) {
	const (
		row        = "the row"
		configured = "the configuration"
		unread     = "nobody knows"
	)
	refused := map[string]string{row: "503  " + header.CodeRefusedBefore, configured: "503  " + header.CodeRefusedBefore, unread: "503  " + header.CodeStoreUnavailable}
	for _, how := range []string{row, configured, unread} {
		for name, kind := range map[string]idem.Kind{"atomic": idem.KindAtomic, "optimistic": idem.KindOptimistic, "wrapped": ""} {
			t.Run(how+", "+name, func(t *testing.T) {
				told, store := &reports{}, (*lossy)(nil)
				a := observing(t, func(s storage.Store) storage.Store { store = &lossy{Store: s}; return store }, told.add)
				var runs atomic.Int64
				register := func() {
					if kind != "" {
						a.handle("POST /orders", idem.Operation{Kind: kind, Policy: idem.Observe(idem.IETF())}, middleware.Route{}, counting(&runs))
						return
					}
					a.wrap("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, func(w http.ResponseWriter, _ *http.Request) {
						w.WriteHeader(http.StatusCreated)
						fmt.Fprint(w, runs.Add(1))
					})
				}
				register()
				a.observes(told, ask{keys: []string{"old"}}, 201)
				a.later(2 * time.Minute) // what was read of the row counts no more
				switch loss := a.now(); how {
				case row:
					if _, err := store.SetRefuseBefore(t.Context(), loss); err != nil {
						t.Fatal(err)
					}
				case configured:
					var err error
					if a.engine, err = idem.New(store, idem.Config{Logger: slog.New(slog.NewJSONHandler(a.log, nil)), Now: a.now, RefuseBefore: loss}); err != nil {
						t.Fatal(err)
					}
					a.mux = http.NewServeMux()
					a.server.Config.Handler = middleware.Problems(a.mux)
					a.reportTo(told.add)
					register()
				case unread:
					store.unread.Store(true)
				}
				for _, of := range []string{refused[how], "201 replayed"} {
					a.observes(told, ask{keys: []string{"old"}}, 201, "201 replayed")
					a.observes(told, ask{keys: []string{"new"}}, 201, of)
					a.observes(told, ask{}, 201, "400  "+header.CodeKeyMissing)
				}
				a.observes(told, ask{keys: []string{"old"}, body: `{"a":1}`}, 201, "422 mismatch "+header.CodeKeyReused)
				store.unread.Store(false)
				a.later(5 * time.Minute)
				proven := sent(ask{keys: []string{"young"}}, a.now().Format(time.RFC3339))
				a.observes(told, proven, 201)
				a.observes(told, proven, 201, "201 replayed")
				if runs.Load() != 10 {
					t.Errorf("%d of 10 requests ran", runs.Load())
				}
			})
		}
	}
}

// usedUp is a quota without room.
type usedUp struct{}

func (usedUp) NewKey(context.Context, string) (func(), error) {
	return nil, &idem.QuotaError{Limit: "new keys per second", RetryAfter: time.Second}
}

func (usedUp) LookUp(context.Context, string) error { return nil }

func TestReportMayPanic(t *testing.T) {
	a := observing(t, nil, func(context.Context, middleware.Observation) { panic("boom") })
	a.handle("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, middleware.Route{}, counting(new(atomic.Int64)))
	a.wrap("POST /wrapped", idem.Operation{Name: "orders.wrap", Policy: idem.Observe(idem.IETF())}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(201)
	})
	for _, path := range []string{"/orders", "/wrapped"} {
		if r := a.do(ask{path: path}); r.StatusCode != 201 {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
	if !strings.Contains(a.log.String(), "Config.Report panicked") {
		t.Error("not logged")
	}
}

// Methods that need no key are not observed, and a policy that stores 5xx of a wrapped handler is as contradictory as ever.
func TestObserveKeepsToItsPolicy(t *testing.T) {
	told := &reports{}
	a := observing(t, nil, told.add)
	a.wrap("/orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) })
	if r := a.do(key(ask{method: "PUT"})); r.StatusCode != 201 || r.Header.Get("Idempotency-Status") != "ignored" || len(told.take()) > 0 {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	if _, err := a.mw.Wrap(idem.Operation{Name: "orders.stripe", UnknownToOperator: true, Policy: idem.Observe(idem.Stripe())}, middleware.Route{}, http.NotFoundHandler()); err == nil {
		t.Error("a wrapped handler whose 5xx are stored is accepted")
	}
}
