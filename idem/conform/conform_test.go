package conform_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/conform"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// service is an endpoint of this library's, as an application makes it. Its handler counts how often it ran.
type service struct {
	http.Handler
	runs atomic.Int64
	came sync.Map // how many requests came, by key
}

// ServeHTTP implements http.Handler.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.arrivals(r.Header.Get(header.NameKey)).Add(1)
	s.Handler.ServeHTTP(w, r)
}

func (s *service) arrivals(key string) *atomic.Int64 {
	n, _ := s.came.LoadOrStore(key, new(atomic.Int64))
	return n.(*atomic.Int64)
}

// meets waits a moment for duplicates, and where there are any until they are answered.
func (s *service) meets(key string) {
	time.Sleep(40 * time.Millisecond)
	n := s.arrivals(key)
	for until := time.Now().Add(200 * time.Millisecond); n.Load() > 1 && n.Load() < 4 && time.Now().Before(until); {
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond)
}

func newService(t *testing.T, policy idem.Policy) *service {
	t.Helper()
	return newServiceThat(t, policy, func(s *service, tx *idem.Tx, key string) (idem.Response, error) {
		s.meets(key)
		return idem.JSON(http.StatusCreated, map[string]string{"id": string(tx.OperationID())})
	})
}

// handler answers a request under a key.
type handler func(s *service, tx *idem.Tx, key string) (idem.Response, error)

func newServiceThat(t *testing.T, policy idem.Policy, answers handler) *service {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := middleware.New(engine, middleware.Config{Logger: slog.New(slog.DiscardHandler), Identify: func(r *http.Request) (middleware.Identity, error) {
		tenant, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			return middleware.Identity{}, middleware.ErrUnauthenticated
		}
		return middleware.Identity{Tenant: tenant}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{}
	s.Handler, err = mw.Handle(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: policy}, middleware.Route{},
		func(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
			s.runs.Add(1)
			return answers(s, tx, r.HTTP.Header.Get(header.NameKey))
		})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// against is a target with two tenants.
func against(t *testing.T, h http.Handler, policy idem.Policy) conform.Target {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return conform.Target{
		URL: server.URL + "/orders", Body: []byte(`{"item":"book","count":2}`), Policy: policy, Settle: time.Minute,
		Pause:  func(ctx context.Context, d time.Duration) error { return idem.Pause(ctx, d/20) },
		Header: http.Header{"Authorization": {"Bearer tenant-a"}}, OtherCaller: http.Header{"Authorization": {"Bearer tenant-b"}},
	}
}

func policies() map[string]idem.Policy {
	strict, bound, gone, timed := idem.IETF(), idem.IETF(), idem.IETF(), idem.IETF()
	strict.Syntax = idem.SyntaxStrict
	bound.InFlight = idem.InFlightAccepted
	gone.GoneAfterExpiry, gone.KeepFor = true, 48*time.Hour
	timed.KeyTime, timed.KeyTimeRequired = idem.KeyTimeEither, true
	least := idem.Stripe()
	least.KeyBytesMin = 40
	return map[string]idem.Policy{
		"ietf": idem.IETF(), "stripe": idem.Stripe(), "lenient": idem.Lenient(), "strict": strict, "accepted": bound, "gone": gone, "timed": timed, "least": least,
	}
}

// Every check holds for this library under every policy, and nothing executes that the report does not count.
func TestThisLibraryConforms(t *testing.T) {
	for name, policy := range policies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, policy)
			report, err := conform.Check(t.Context(), against(t, s, policy))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range report.Findings {
				if f.Verdict != conform.Holds && !(f.Check == "two_keys" && f.Verdict == conform.NotTold) {
					t.Errorf("%s %s: %s", f.Check, f.Verdict, f.Saw)
				}
			}
			if runs := s.runs.Load(); int(runs) > report.Executed || runs == 0 {
				t.Errorf("%d executions, and the report counts %d", runs, report.Executed)
			}
		})
	}
}

// broken changes what goes into a service, or comes out of it.
type broken func(next http.Handler) http.Handler

// recorded lets an answer be changed before it is sent.
func recorded(change func(r *http.Request, w *httptest.ResponseRecorder)) broken {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got := httptest.NewRecorder()
			next.ServeHTTP(got, r)
			change(r, got)
			for name, values := range got.Header() {
				w.Header()[name] = values
			}
			w.Header().Del("Content-Length") // of the body before the change
			w.WriteHeader(got.Code)
			_, _ = w.Write(got.Body.Bytes())
		})
	}
}

// asked lets a request be changed before it is served.
func asked(change func(r *http.Request)) broken {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			change(r)
			next.ServeHTTP(w, r)
		})
	}
}

func body(r *http.Request) []byte {
	all, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(all))
	return all
}

var renamed atomic.Int64

// anew gives a request a key of its own, so that it executes.
func anew(r *http.Request) { r.Header.Set(header.NameKey, fmt.Sprintf(`"anew-%d"`, renamed.Add(1))) }

// answers makes every refusal with a status a success, or the other way round.
func answers(from, to int) broken {
	return recorded(func(_ *http.Request, w *httptest.ResponseRecorder) {
		if w.Code == from {
			w.Code = to
		}
	})
}

// Each check finds a service that breaks its clause: a check that finds none checks nothing.
func TestEachCheckFindsWhatBreaksIt(t *testing.T) {
	replayed := func(change func(w *httptest.ResponseRecorder)) broken {
		return recorded(func(_ *http.Request, w *httptest.ResponseRecorder) {
			if w.Header().Get(header.NameReplayed) == "true" {
				change(w)
			}
		})
	}
	var running errgroup.Group
	running.SetLimit(8)
	seen := map[string]bool{}
	for _, planted := range []struct {
		check  string
		breaks broken
	}{
		{"first", recorded(func(_ *http.Request, w *httptest.ResponseRecorder) { w.Header().Del(header.NameStatus) })},
		{"first", answers(201, 500)},
		{"replay", asked(anew)},
		{"replay", replayed(func(w *httptest.ResponseRecorder) { w.Body.WriteString(" ") })},
		{"replay", replayed(func(w *httptest.ResponseRecorder) { w.Code = 200 })},
		{"replay", replayed(func(w *httptest.ResponseRecorder) { w.Header().Del(header.NameReplayed) })},
		{"replay", replayed(func(w *httptest.ResponseRecorder) { w.Header().Set("Set-Cookie", "session=1") })},
		{"replay", replayed(func(w *httptest.ResponseRecorder) { w.Header().Set("Content-Type", "text/plain") })},
		{"expires", replayed(func(w *httptest.ResponseRecorder) { w.Header().Set(header.NameExpires, "2101-01-01T00:00:00Z") })},
		{"expires", recorded(func(_ *http.Request, w *httptest.ResponseRecorder) {
			w.Header().Set(header.NameExpires, "2001-01-01T00:00:00Z")
		})},
		{"respelled", asked(func(r *http.Request) {
			if bytes.Contains(body(r), []byte("\n")) {
				anew(r)
			}
		})},
		{"bare_key", asked(func(r *http.Request) {
			if !strings.HasPrefix(r.Header.Get(header.NameKey), `"`) {
				anew(r)
			}
		})},
		{"other_payload", asked(func(r *http.Request) {
			if strings.Contains(string(body(r)), "conform") { // another payload executes
				anew(r)
			}
		})},
		{"other_payload", answers(422, 400)},
		{"other_payload", recorded(func(_ *http.Request, w *httptest.ResponseRecorder) {
			if w.Code == 422 {
				w.Header().Set(header.NameStatus, "executed")
			}
		})},
		{"other_query", asked(func(r *http.Request) {
			if r.URL.RawQuery != "" {
				anew(r)
			}
		})},
		{"missing_key", asked(func(r *http.Request) {
			if r.Header[header.NameKey] == nil {
				anew(r)
			}
		})},
		{"empty_key", asked(func(r *http.Request) {
			if r.Header.Get(header.NameKey) == "" && r.Header[header.NameKey] != nil {
				anew(r)
			}
		})},
		{"invalid_key", asked(func(r *http.Request) {
			if strings.Contains(r.Header.Get(header.NameKey), ";") {
				anew(r)
			}
		})},
		{"invalid_key", recorded(func(_ *http.Request, w *httptest.ResponseRecorder) {
			if w.Code == 400 {
				w.Header().Set("Content-Type", "application/json")
			}
		})},
		{"two_keys", asked(func(r *http.Request) {
			if keys := r.Header[header.NameKey]; len(keys) > 1 {
				r.Header[header.NameKey] = keys[:1]
			}
		})},
		{"in_flight", func(next http.Handler) http.Handler { // whoever is beside another one executes too
			var at atomic.Int64
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if beside := at.Add(1); beside > 1 {
					anew(r)
				}
				next.ServeHTTP(w, r)
				at.Add(-1)
			})
		}},
		{"in_flight", recorded(func(_ *http.Request, w *httptest.ResponseRecorder) {
			if w.Code == 409 {
				body := bytes.ReplaceAll(w.Body.Bytes(), []byte(header.CodeInProgress), []byte(header.CodeInUse))
				w.Body.Reset()
				w.Body.Write(body)
			}
		})},
		{"invalid_body", func(next http.Handler) http.Handler { // a refused body is stored
			var refused sync.Map
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				key := r.Header.Get(header.NameKey)
				if _, ok := refused.Load(key); ok || strings.HasPrefix(string(body(r)), `{"unclosed"`) {
					refused.Store(key, true)
					w.WriteHeader(400)
					return
				}
				next.ServeHTTP(w, r)
			})
		}},
		{"duplicate_names", asked(func(r *http.Request) {
			if bytes.Contains(body(r), []byte(`1,"amount"`)) {
				r.Body = io.NopCloser(strings.NewReader(`{"amount":2}`))
			}
		})},
		{"first_sent_invalid", asked(func(r *http.Request) {
			if r.Header.Get(header.NameFirstSent) == "yesterday" {
				r.Header.Del(header.NameFirstSent)
			}
		})},
		{"first_sent_invalid", asked(func(r *http.Request) {
			if at, err := time.Parse(time.RFC3339, r.Header.Get(header.NameFirstSent)); err == nil && at.After(time.Now()) {
				r.Header.Del(header.NameFirstSent)
			}
		})},
		{"first_sent_old", asked(func(r *http.Request) {
			if at, err := time.Parse(time.RFC3339, r.Header.Get(header.NameFirstSent)); err == nil && at.Before(time.Now()) {
				r.Header.Del(header.NameFirstSent)
			}
		})},
		{"first_sent_live", func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if at, err := time.Parse(time.RFC3339, r.Header.Get(header.NameFirstSent)); err == nil && at.Before(time.Now()) {
					anew(r) // the time is judged before the record is looked up
				}
				next.ServeHTTP(w, r)
			})
		}},
		{"no_credentials", asked(func(r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				r.Header.Set("Authorization", "Bearer tenant-a")
			}
		})},
		{"other_tenant", asked(func(r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				r.Header.Set("Authorization", "Bearer everybody")
			}
		})},
		{"retry_after", recorded(func(_ *http.Request, w *httptest.ResponseRecorder) { w.Header().Del(header.NameRetryAfter) })},
		{"no_echo", recorded(func(r *http.Request, w *httptest.ResponseRecorder) {
			if w.Code == 422 {
				body := bytes.Replace(w.Body.Bytes(), []byte(`"detail":"`), []byte(`"detail":"`+strings.Trim(r.Header.Get(header.NameKey), `"`)), 1)
				w.Body.Reset()
				w.Body.Write(body)
			}
		})},
	} {
		seen[planted.check] = true
		running.Go(func() error { // they mostly wait
			for tries := 1; ; tries++ {
				report, err := conform.Check(t.Context(), against(t, planted.breaks(newService(t, idem.IETF())), idem.IETF()))
				i := slices.IndexFunc(report.Findings, func(f conform.Finding) bool { return f.Check == planted.check })
				if err == nil && i >= 0 && report.Findings[i].Verdict == conform.Differs && !report.Conforms() {
					return nil
				}
				// On a busy machine each of the requests at the same moment may come after the one before has ended.
				if err != nil || planted.check != "in_flight" || tries == 5 {
					t.Errorf("%s: %v, %+v: want it to differ", planted.check, err, report.Findings)
					return nil
				}
			}
		})
	}
	report, err := conform.Check(t.Context(), against(t, newService(t, idem.IETF()), idem.IETF()))
	if err != nil {
		t.Error(err)
	}
	for _, f := range report.Findings {
		if !seen[f.Check] {
			t.Errorf("nothing is planted for the check %s", f.Check)
		}
	}
	_ = running.Wait() // the errors are the test's
}

// foreign is a service of somebody else's: it keeps answers by key, says that they are replayed in its own words, and knows none of this
// library's headers.
func foreign(t *testing.T) http.Handler {
	t.Helper()
	type kept struct{ asked, answer string }
	var mu sync.Mutex
	all, n := map[string]kept{}, 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, payload := r.Header.Get("Idempotency-Key"), string(body(r))
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		was, ok := all[key]
		switch {
		case r.Header.Get("Authorization") == "":
			w.WriteHeader(http.StatusUnauthorized)
		case len(key) > 255:
			w.WriteHeader(http.StatusBadRequest)
		case !strings.HasSuffix(payload, "}"):
			w.WriteHeader(http.StatusBadRequest)
		case key != "" && ok && was.asked != payload:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"type":"idempotency_error"}}`)
		case key != "" && ok:
			_, _ = io.WriteString(w, was.answer)
		default:
			n++
			answer := fmt.Sprintf(`{"id":"ch_%d"}`, n)
			if key != "" {
				all[key] = kept{payload, answer}
			}
			_, _ = io.WriteString(w, answer)
		}
	})
}

// A service that another team wrote is judged as far as it tells; what it does not tell is not held against it.
func TestAForeignServiceIsJudgedAsFarAsItTells(t *testing.T) {
	target := against(t, foreign(t), idem.Stripe())
	target.Foreign, target.OtherCaller = true, nil
	report, err := conform.Check(t.Context(), target)
	if err != nil || !report.Conforms() {
		t.Fatalf("%v, %+v", err, report)
	}
	verdicts := map[conform.Verdict][]string{}
	for _, f := range report.Findings {
		verdicts[f.Verdict] = append(verdicts[f.Verdict], f.Check)
	}
	want := map[conform.Verdict][]string{
		conform.Holds:   {"replay", "bare_key", "other_payload", "missing_key", "empty_key", "invalid_key", "in_flight", "invalid_body", "first_sent_live", "no_credentials", "retry_after", "no_echo"},
		conform.NotTold: {"first", "expires", "respelled", "other_query", "two_keys", "duplicate_names", "first_sent_invalid", "first_sent_old"},
		conform.Skipped: {"other_tenant"},
	}
	for verdict, checks := range want {
		if !slices.Equal(verdicts[verdict], checks) {
			t.Errorf("%s: %v, want %v", verdict, verdicts[verdict], checks)
		}
	}
	target.Policy = idem.IETF()
	if report, err := conform.Check(t.Context(), target); err != nil || report.Conforms() {
		t.Errorf("%v, %+v: want it to differ from another policy", err, report)
	}
}

// A service that executes each time, and always answers the same, is not said to hold: a second execution would not show.
func TestAForeignServiceThatAlwaysAnswersTheSameTellsNothing(t *testing.T) {
	var executed atomic.Int64
	target := against(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		executed.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ok":true}`)
	}), idem.Stripe())
	target.Foreign, target.OtherCaller = true, nil
	report, err := conform.Check(t.Context(), target)
	if err != nil || int(executed.Load()) != report.Requests || report.Executed != report.Requests {
		t.Fatalf("%v after %d executions, and the report counts %d", err, executed.Load(), report.Executed)
	}
	if found := of(report, "other_query"); found.Verdict != conform.NotTold {
		t.Errorf("%+v", found)
	}
	for _, f := range report.Findings {
		if slices.Contains([]string{"replay", "bare_key", "in_flight", "missing_key", "first_sent_live"}, f.Check) && f.Verdict != conform.NotTold {
			t.Errorf("%s %s %s", f.Check, f.Verdict, f.Saw)
		}
	}
}

// of is what a check found.
func of(report conform.Report, check string) conform.Finding {
	for _, f := range report.Findings {
		if f.Check == check {
			return f
		}
	}
	return conform.Finding{}
}

// judged is what a check found at a service of somebody else's.
func judged(t *testing.T, check string, h http.Handler) conform.Finding {
	t.Helper()
	target := against(t, h, idem.Stripe())
	target.Foreign = true
	report, err := conform.Check(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return of(report, check)
}

// byTenant is a service that executes once for each tenant and key, or for each request without one, and answers by the execution's number.
func byTenant(answer func(w http.ResponseWriter, r *http.Request, n int)) http.Handler {
	var mu sync.Mutex
	all := map[string]*httptest.ResponseRecorder{}
	executed := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		scope := r.Header.Get("Authorization") + " " + r.Header.Get(header.NameKey)
		kept := all[scope]
		if kept == nil || r.Header.Get(header.NameKey) == "" {
			executed++
			kept = httptest.NewRecorder()
			answer(kept, r, executed)
			all[scope] = kept
		}
		for name, values := range kept.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(kept.Code)
		_, _ = w.Write(kept.Body.Bytes())
	})
}

// Where every execution has another answer, an answer that another tenant has already is a replay: nobody has to say so. Where executions
// are answered alike, or differ by the key alone, it may be one of an execution.
func TestAForeignServiceThatReplaysToAnotherTenantDiffers(t *testing.T) {
	for name, c := range map[string]struct {
		service http.Handler
		want    conform.Verdict
	}{
		"keys are of all tenants": {foreign(t), conform.Differs},
		"answers are numbered": {byTenant(func(w http.ResponseWriter, _ *http.Request, n int) {
			_, _ = fmt.Fprintf(w, `{"id":%d}`, n)
		}), conform.Holds},
		"addresses are numbered": {byTenant(func(w http.ResponseWriter, _ *http.Request, n int) {
			w.Header().Set("Location", fmt.Sprintf("/orders/%d", n))
			w.WriteHeader(http.StatusCreated)
		}), conform.Holds},
		"answers are alike": {byTenant(func(w http.ResponseWriter, _ *http.Request, _ int) {
			_, _ = io.WriteString(w, `{"ok":true}`)
		}), conform.NotTold},
		"answers have the key": {byTenant(func(w http.ResponseWriter, r *http.Request, _ int) {
			_, _ = fmt.Fprintf(w, `{"key":%q}`, r.Header.Get(header.NameKey))
		}), conform.NotTold},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found := judged(t, "other_tenant", c.service); found.Verdict != c.want {
				t.Errorf("%+v, want %s", found, c.want)
			}
		})
	}
}

// Duplicates that are sent to the operations of two executions were executed twice, whatever they are answered in the end.
func TestDuplicatesWithTwoOperationsDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		begun func(w http.ResponseWriter, n int)
		want  conform.Verdict
	}{
		"an address each": {func(w http.ResponseWriter, n int) {
			w.Header().Set("Location", fmt.Sprintf("/operations/%d", n))
		}, conform.Differs},
		"one address": {func(w http.ResponseWriter, n int) {
			w.Header().Set("Location", "/operations/1")
			_, _ = fmt.Fprintf(w, `{"asked":%d}`, n)
		}, conform.Holds},
		"a body each": {func(w http.ResponseWriter, n int) {
			_, _ = fmt.Fprintf(w, `{"operation":%d}`, n)
		}, conform.NotTold},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			asked, ended := map[string]int{}, foreign(t)
			found := judged(t, "in_flight", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked[r.Header.Get(header.NameKey)]++
				n := asked[r.Header.Get(header.NameKey)]
				mu.Unlock()
				if n > 8 || r.Header.Get(header.NameKey) == "" {
					ended.ServeHTTP(w, r)
					return
				}
				begun := httptest.NewRecorder()
				c.begun(begun, n)
				w.Header().Set("Location", begun.Header().Get("Location"))
				w.WriteHeader(http.StatusAccepted)
				_, _ = w.Write(begun.Body.Bytes())
			}))
			if found.Verdict != c.want {
				t.Errorf("%+v, want %s", found, c.want)
			}
		})
	}
}

// A gateway before the service answers in its place, before or after the request was executed: the service is judged by its own answers.
func TestAGatewaysAnswersAreNotTheServices(t *testing.T) {
	for name, c := range map[string]struct {
		passes bool
		status int
	}{
		"before it executes": {false, http.StatusBadGateway}, "after it has executed": {true, http.StatusBadGateway},
		"503, before it executes": {false, http.StatusServiceUnavailable}, "503, after it has executed": {true, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next, met := newService(t, idem.IETF()), &sync.Map{}
			report, err := conform.Check(t.Context(), against(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, before := met.LoadOrStore(r.Header.Get(header.NameKey), true); before {
					next.ServeHTTP(w, r)
					return
				}
				if c.passes {
					next.ServeHTTP(httptest.NewRecorder(), r)
				}
				w.WriteHeader(c.status)
			}), idem.IETF()))
			if err != nil {
				t.Fatal(err)
			}
			for _, check := range []string{"first", "replay", "in_flight", "other_tenant", "retry_after"} {
				if found := of(report, check); found.Verdict != conform.Holds {
					t.Errorf("%+v", found)
				}
			}
		})
	}
}

// busyOnce is a handler whose first run under each key answers with the status, and frees the key.
func busyOnce(status int) handler {
	var ran sync.Map
	return func(_ *service, tx *idem.Tx, key string) (idem.Response, error) {
		if _, before := ran.LoadOrStore(key, true); !before {
			return idem.NewProblem(status, "busy", "Busy", "Send it again.").Response(), nil
		}
		return idem.JSON(http.StatusCreated, map[string]string{"id": string(tx.OperationID())})
	}
}

// oneFirst serves one request under each key, and the others once it is answered.
func oneFirst(next http.Handler) http.Handler {
	var begun sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answered := make(chan struct{})
		if first, before := begun.LoadOrStore(r.Header.Get(header.NameKey), answered); before {
			<-first.(chan struct{})
		} else {
			defer close(answered)
		}
		next.ServeHTTP(w, r)
	})
}

// A run that answers so that its key is free says that it executed, and so does the next one, which is the execution.
func TestARunThatFreedItsKeyIsNoSecondExecution(t *testing.T) {
	for _, status := range []int{
		http.StatusConflict, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			s := newServiceThat(t, idem.IETF(), busyOnce(status))
			report, err := conform.Check(t.Context(), against(t, oneFirst(s), idem.IETF()))
			if err != nil || !report.Conforms() {
				t.Errorf("%v, %+v", err, report)
			}
		})
	}
}

// A 503 that is the service's own says when to come back: its handler's, and that of the library where the store does not answer.
func TestA503ThatIsTheServicesOwnSaysWhenToComeBack(t *testing.T) {
	silent := recorded(func(_ *http.Request, w *httptest.ResponseRecorder) {
		if w.Code == http.StatusServiceUnavailable {
			w.Header().Del(header.NameRetryAfter)
		}
	})
	var met sync.Map
	down, next := idem.NewProblem(http.StatusServiceUnavailable, header.CodeStoreUnavailable, "Down", "Send it again."), newService(t, idem.IETF())
	for name, service := range map[string]http.Handler{
		"its handler's": silent(newServiceThat(t, idem.IETF(), busyOnce(http.StatusServiceUnavailable))),
		"the library's": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, before := met.LoadOrStore(r.Header.Get(header.NameKey), true); before {
				next.ServeHTTP(w, r)
				return
			}
			response := down.Response()
			w.Header().Set("Content-Type", response.Get("Content-Type"))
			w.WriteHeader(response.Status)
			_, _ = w.Write(response.Body)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := conform.Check(t.Context(), against(t, service, idem.IETF()))
			if found := of(report, "retry_after"); err != nil || found.Verdict != conform.Differs {
				t.Errorf("%v, %+v", err, found)
			}
		})
	}
}

// The body is spelled in another way, and its numbers stay what they are.
func TestARespelledBodyKeepsItsNumbers(t *testing.T) {
	target := against(t, newService(t, idem.IETF()), idem.IETF())
	target.Body = []byte(`{"amount":9007199254740993,"rate":1e2}`)
	report, err := conform.Check(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if found := of(report, "respelled"); found.Verdict != conform.Holds {
		t.Errorf("%+v", found)
	}
}

// What executes where it must be refused is counted with what ought to execute.
func TestExecutionsThatShouldHaveBeenRefusedAreCounted(t *testing.T) {
	var executed atomic.Int64
	s := byTenant(func(w http.ResponseWriter, _ *http.Request, n int) {
		executed.Add(1)
		_, _ = fmt.Fprintf(w, `{"id":%d}`, n)
	})
	for _, foreign := range []bool{true, false} {
		executed.Store(0)
		target := against(t, s, idem.Stripe())
		target.Foreign = foreign
		if report, err := conform.Check(t.Context(), target); err != nil || report.Executed < int(executed.Load()) || report.Conforms() {
			t.Errorf("%v, %d executions, and the report counts %d", err, executed.Load(), report.Executed)
		}
	}
}

// A target that can't be asked is refused, with the field and the rule; one that does not answer is an error with what was found before.
func TestTargetsThatCannotBeAskedAreRefused(t *testing.T) {
	timed := idem.IETF()
	timed.KeyTime, timed.KeyTimeRequired = idem.KeyTimeULID, true
	for field, change := range map[string]func(*conform.Target){
		"Target.URL":            func(t *conform.Target) { t.URL = "ftp://example.test" },
		"Target.Method":         func(t *conform.Target) { t.Method = http.MethodPut },
		"Target.Body":           func(t *conform.Target) { t.Body = nil },
		"Target.Policy":         func(t *conform.Target) { t.Policy = idem.Exempt("public") },
		"Target.Duplicates":     func(t *conform.Target) { t.Duplicates = 1 },
		"Target.Policy.KeyTime": func(t *conform.Target) { t.Policy = timed },
	} {
		target := against(t, http.NotFoundHandler(), idem.IETF())
		change(&target)
		var refused *idem.ConfigError
		if _, err := conform.Check(t.Context(), target); !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("%v, want %s to be refused", err, field)
		}
	}
	gone := against(t, http.NotFoundHandler(), idem.IETF())
	gone.URL = "http://127.0.0.1:1/orders"
	if report, err := conform.Check(t.Context(), gone); err == nil || len(report.Findings) != 0 || report.Requests != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// A caller's source of randomness that fails is an error of the run, whichever check it fails in.
func TestARunWithoutRandomnessEndsInAnError(t *testing.T) {
	policy := idem.IETF()
	policy.KeyTime, policy.KeyTimeRequired = idem.KeyTimeEither, true
	target := against(t, newService(t, policy), policy)
	target.Duplicates = 2
	const ofRun, ofKey = 5, 16
	for keys := 0; ; keys++ {
		target.Random = io.LimitReader(zeros{}, int64(ofRun+keys*ofKey))
		_, err := conform.Check(t.Context(), target)
		if err == nil {
			if keys < 10 {
				t.Errorf("%d keys are enough for all checks", keys)
			}
			return
		}
		if !errors.Is(err, io.EOF) {
			t.Fatalf("with %d keys: %v", keys, err)
		}
	}
}

// zeros is a source of randomness of which a UUIDv7 is new by its time alone.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// docs/verify/conform.md lists the checks, in their order, with their clauses.
func TestThePageListsTheChecks(t *testing.T) {
	page, err := os.ReadFile("../../docs/verify/conform.md")
	if err != nil {
		t.Fatal(err)
	}
	report, err := conform.Check(t.Context(), against(t, newService(t, idem.IETF()), idem.IETF()))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, f := range report.Findings {
		fmt.Fprintf(&want, "| `%s` | %s |\n", f.Check, f.Clause)
	}
	if !strings.Contains(string(page), "|---|---|\n"+want.String()+"\n") {
		t.Errorf("the page does not have:\n%s", want.String())
	}
}
