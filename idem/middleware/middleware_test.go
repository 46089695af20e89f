package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/storage"
)

// api is a server on the reference store: a real one, or none but its handler where server is nil.
type api struct {
	*testing.T
	mem    *memstore.Store
	engine *idem.Engine
	mw     *middleware.Middleware
	mux    *http.ServeMux
	server *httptest.Server
	log    *journal
	// ahead is how far the engine's clock is ahead of the real one.
	ahead atomic.Int64
}

func (a *api) now() time.Time { return time.Now().Add(time.Duration(a.ahead.Load())) }

// later moves the engine's clock.
func (a *api) later(d time.Duration) { a.ahead.Add(int64(d)) }

// journal is a log that a test reads.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.buf.Reset()
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// identify takes the bearer token for the tenant's name.
func identify(r *http.Request) (middleware.Identity, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	tenant, principal, _ := strings.Cut(token, "/")
	switch tenant {
	case "":
		return middleware.Identity{}, middleware.ErrUnauthenticated
	case "wrong":
		return middleware.Identity{}, middleware.ErrForbidden
	case "suspended":
		return middleware.Identity{}, &idem.RejectedError{Problem: idem.NewProblem(http.StatusForbidden, "suspended", "Suspended", "The tenant is suspended.")}
	case "without a status":
		return middleware.Identity{}, &idem.RejectedError{Problem: idem.Problem{Code: "suspended", Title: "Suspended"}}
	case "outage":
		return middleware.Identity{}, errors.New("nobody can be asked")
	case "misconfigured":
		return middleware.Identity{}, nil
	case "panics":
		panic("boom")
	}
	return middleware.Identity{Tenant: tenant, Principal: principal}, nil
}

// newAPI starts a server. wrap, where given, stands between the engine and the store.
func newAPI(t *testing.T, wrap func(storage.Store) storage.Store) *api {
	t.Helper()
	a := newLocalAPI(t, wrap)
	a.server = httptest.NewServer(middleware.Problems(a.mux))
	t.Cleanup(a.server.Close)
	return a
}

// newLocalAPI is newAPI without a network: in a bubble of synctest the clocks are its own.
func newLocalAPI(t *testing.T, wrap func(storage.Store) storage.Store) *api {
	t.Helper()
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var store storage.Store = mem
	if wrap != nil {
		store = wrap(mem)
	}
	a := &api{T: t, mem: mem, mux: http.NewServeMux(), log: &journal{}}
	logger := slog.New(slog.NewJSONHandler(a.log, nil))
	if a.engine, err = idem.New(store, idem.Config{Logger: logger, Now: a.now}); err != nil {
		t.Fatal(err)
	}
	a.mw, err = middleware.New(a.engine, middleware.Config{Identify: identify, DocsURL: "https://docs.example/idempotency", Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *api) handle(pattern string, op idem.Operation, route middleware.Route, h middleware.Handler) {
	a.Helper()
	handler, err := a.mw.Handle(withDefaults(op, idem.KindAtomic), route, h)
	if err != nil {
		a.Fatal(err)
	}
	a.mux.Handle(pattern, handler)
}

func (a *api) wrap(pattern string, op idem.Operation, h http.HandlerFunc) {
	a.Helper()
	handler, err := a.mw.Wrap(withDefaults(op, idem.KindWrapped), middleware.Route{}, h)
	if err != nil {
		a.Fatal(err)
	}
	a.mux.Handle(pattern, handler)
}

func withDefaults(op idem.Operation, kind idem.Kind) idem.Operation {
	if op.Name == "" {
		op.Name = "orders.create"
	}
	if op.Kind == "" {
		op.Kind = kind
	}
	if op.Policy.Name == "" {
		op.Policy = idem.IETF()
	}
	op.UnknownToOperator = op.Kind == idem.KindWrapped
	return op
}

// ask describes a request; its zero value is POST /orders {} by tenant-a without a key.
type ask struct {
	method, path, body, tenant, contentType string
	// keys are the lines of Idempotency-Key.
	keys   []string
	header map[string]string
	ctx    context.Context
	// unsized sends the body without its length.
	unsized bool
}

// reply is a response with its body.
type reply struct {
	*http.Response
	body []byte
}

func (a *api) send(q ask) (*reply, error) {
	for _, field := range []struct {
		value    *string
		fallback string
	}{{&q.method, "POST"}, {&q.path, "/orders"}, {&q.body, "{}"}, {&q.tenant, "tenant-a"}, {&q.contentType, "application/json"}} {
		if *field.value == "" {
			*field.value = field.fallback
		}
	}
	if q.ctx == nil {
		q.ctx = context.Background()
	}
	var body io.Reader = strings.NewReader(q.body)
	if q.unsized {
		body = io.MultiReader(body) // whose length nobody knows
	}
	r, err := http.NewRequestWithContext(q.ctx, q.method, q.path, body)
	if err != nil {
		return nil, err
	}
	if q.tenant != "-" {
		r.Header.Set("Authorization", "Bearer "+q.tenant)
	}
	if q.contentType != "-" {
		r.Header.Set("Content-Type", q.contentType)
	}
	for _, key := range q.keys {
		r.Header.Add("Idempotency-Key", key)
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	response, err := a.exchange(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answered, err := io.ReadAll(response.Body)
	return &reply{response, answered}, err
}

func (a *api) exchange(r *http.Request) (*http.Response, error) {
	if a.server == nil {
		w := httptest.NewRecorder()
		middleware.Problems(a.mux).ServeHTTP(w, r)
		return w.Result(), nil
	}
	base, err := url.Parse(a.server.URL)
	if err != nil {
		return nil, err
	}
	r.URL.Scheme, r.URL.Host = base.Scheme, base.Host
	return a.server.Client().Do(r)
}

func (a *api) do(q ask) *reply {
	a.Helper()
	response, err := a.send(q)
	if err != nil {
		a.Fatal(err)
	}
	return response
}

// key is a request with the key "k".
func key(q ask) ask {
	q.keys = []string{`"k"`}
	return q
}

func (r *reply) code(t *testing.T) string {
	t.Helper()
	var p idem.Problem
	if r.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%d with content type %q", r.StatusCode, r.Header.Get("Content-Type"))
	}
	if err := json.Unmarshal(r.body, &p); err != nil || p.Status != r.StatusCode || p.Title == "" || p.Detail == "" || p.Type != "urn:idem:problem:"+p.Code {
		t.Fatalf("%d with problem %s (%v)", r.StatusCode, r.body, err)
	}
	return p.Code
}

// wants checks status, Idempotency-Status and what goes with them.
func (r *reply) wants(t *testing.T, status int, idempotency string) {
	t.Helper()
	if r.StatusCode != status || r.Header.Get("Idempotency-Status") != idempotency {
		t.Errorf("got %d %q %s, want %d %q", r.StatusCode, r.Header.Get("Idempotency-Status"), r.body, status, idempotency)
	}
	if replayed := r.Header.Get("Idempotent-Replayed"); (replayed == "true") != (idempotency == "replayed") {
		t.Errorf("Idempotent-Replayed: %q with status %q", replayed, idempotency)
	}
	waits := slices.Contains([]int{202, 409, 503}, status)
	if has := r.Header.Get("Retry-After") != ""; has != waits {
		t.Errorf("%d with Retry-After %q", status, r.Header.Get("Retry-After"))
	}
	if r.Header.Get("Link") != `<https://docs.example/idempotency>; rel="describedby"` {
		t.Errorf("Link: %q", r.Header.Get("Link"))
	}
}

// counting answers 201 with the number of its run, and writes a business row.
func counting(runs *atomic.Int64) middleware.Handler {
	return func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
		tx.Write(memstore.Write{Key: "runs", Apply: func(row []byte) []byte { return append(row, '1') }})
		return idem.JSON(http.StatusCreated, map[string]int64{"run": runs.Add(1)})
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(mem, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var refused *idem.ConfigError
	for name, cfg := range map[string]middleware.Config{
		"no identity":     {},
		"body":            {Identify: identify, BodyBytesMax: -1},
		"wait":            {Identify: identify, WaitMax: 1 << 40},
		"operations path": {Identify: identify, OperationsPath: "v1/operations"},
		"docs":            {Identify: identify, DocsURL: "https://x/\"><script>"},
	} {
		if _, err := middleware.New(engine, cfg); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := middleware.New(nil, middleware.Config{Identify: identify}); !errors.As(err, &refused) {
		t.Errorf("no engine: %v", err)
	}
	mw, err := middleware.New(engine, middleware.Config{Identify: identify})
	if err != nil {
		t.Fatal(err)
	}
	op := idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	handler := counting(new(atomic.Int64))
	wrapped := op
	wrapped.Kind, wrapped.UnknownToOperator = idem.KindWrapped, true
	for name, try := range map[string]func() error{
		"a wrapped operation for Handle": func() error { _, err := mw.Handle(wrapped, middleware.Route{}, handler); return err },
		"an atomic operation for Wrap":   func() error { _, err := mw.Wrap(op, middleware.Route{}, http.NotFoundHandler()); return err },
		"no handler":                     func() error { _, err := mw.Handle(op, middleware.Route{}, nil); return err },
		"nothing to wrap":                func() error { _, err := mw.Wrap(wrapped, middleware.Route{}, nil); return err },
		"a media type with parameters": func() error {
			_, err := mw.Handle(op, middleware.Route{MediaTypes: []string{"text/plain; charset=utf-8"}}, handler)
			return err
		},
		"no policy": func() error {
			_, err := mw.Handle(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic}, middleware.Route{}, handler)
			return err
		},
	} {
		if err := try(); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
