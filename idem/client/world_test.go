package client_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/client"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

// fault is what the proxy does to one request.
type fault string

const (
	pass       fault = "pass"
	dropBefore fault = "drop before"
	dropAfter  fault = "drop after"
	torn       fault = "half the answer"
	after504   fault = "504 after it was served"
	// dropDuring breaks the connection while the API still serves the request.
	dropDuring fault = "drop during"
)

// status is a fault: the answer of somebody before the API, or of the API's limits. seconds is its Retry-After, "" for none.
func status(code int, retryAfter string) fault { return fault(fmt.Sprintf("%d %s", code, retryAfter)) }

// proxy stands before the API and spoils POSTs, one fault each; when there are none left it passes them on.
type proxy struct {
	api http.Handler

	mu     sync.Mutex
	faults []fault
	// lines are the Idempotency-Key headers that arrived, one for each POST.
	lines []string

	// passed counts what the API has answered with no fault in between.
	passed atomic.Int64

	// running tells a dropDuring that the API serves the request; left are those requests.
	running chan struct{}
	left    sync.WaitGroup
}

func (p *proxy) next(r *http.Request) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Method != http.MethodPost {
		return pass
	}
	p.lines = append(p.lines, strings.Join(r.Header.Values("Idempotency-Key"), "|"))
	if len(p.faults) == 0 {
		return pass
	}
	f := p.faults[0]
	p.faults = p.faults[1:]
	return f
}

func (p *proxy) spoil(faults ...fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = faults
}

// arrived returns the headers that arrived so far.
func (p *proxy) arrived() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := p.next(r)
	if f == pass {
		p.api.ServeHTTP(w, r)
		p.passed.Add(1)
		return
	}
	// The whole request arrives, so that what is lost is always the answer.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	served := httptest.NewRecorder()
	if f == dropAfter || f == torn || f == after504 {
		p.api.ServeHTTP(served, r)
	}
	switch f {
	case dropDuring:
		left := r.WithContext(context.WithoutCancel(r.Context()))
		p.left.Go(func() { p.api.ServeHTTP(served, left) })
		<-p.running
		panic(http.ErrAbortHandler)
	case dropBefore, dropAfter:
		panic(http.ErrAbortHandler)
	case torn:
		w.Header().Set("Content-Length", fmt.Sprint(served.Body.Len()))
		w.WriteHeader(served.Code)
		w.Write(served.Body.Bytes()[:served.Body.Len()/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case after504:
		w.WriteHeader(http.StatusGatewayTimeout)
	default:
		var code int
		number, retryAfter, _ := strings.Cut(string(f), " ")
		fmt.Sscan(number, &code)
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(code)
		io.WriteString(w, "something before the API: secret-body")
	}
}

// clock is the client's time: it moves by the client's pauses only.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	pauses []time.Duration
	// meanwhile, where set, is what happens during a pause.
	meanwhile func(n int, d time.Duration)
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) Pause(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.pauses = append(c.pauses, d)
	n, meanwhile := len(c.pauses), c.meanwhile
	c.mu.Unlock()
	if meanwhile != nil {
		meanwhile(n, d)
	}
	return ctx.Err()
}

func (c *clock) paused() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.pauses)
}

// record is a log that a test reads.
type record struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

// world is an API on the reference store, a proxy before it, and a client.
type world struct {
	tester
	mem    *memstore.Store
	engine *idem.Engine
	mw     *middleware.Middleware
	mux    *http.ServeMux
	proxy  *proxy
	server *httptest.Server
	base   *http.Transport
	clock  *clock
	log    *record
	runs   atomic.Int64
}

// epoch is when the client's clock begins: a whole second, for HTTP dates.
var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newWorld starts one with POST /orders, which is atomic, POST /imports, which is wrapped, and their like by Stripe's policy.
func newWorld(t tester) *world {
	t.Helper()
	w := &world{tester: t, mux: http.NewServeMux(), clock: &clock{now: epoch}, log: &record{}, base: &http.Transport{}}
	var err error
	if w.mem, err = memstore.New(memstore.Config{}); err != nil {
		t.Fatal(err)
	}
	if w.engine, err = idem.New(w.mem, idem.Config{}); err != nil {
		t.Fatal(err)
	}
	w.mw, err = middleware.New(w.engine, middleware.Config{Identify: func(r *http.Request) (middleware.Identity, error) {
		if token := r.Header.Get("Authorization"); token != "Bearer secret-token" {
			return middleware.Identity{}, middleware.ErrUnauthenticated
		}
		return middleware.Identity{Tenant: "tenant-a"}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.handle("/orders", idem.IETF(), w.count)
	w.handle("/stripe", idem.Stripe(), w.count)
	w.wrap("/imports", func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusCreated)
		fmt.Fprintf(rw, `{"run":%d}`, w.runs.Add(1))
	})
	w.proxy = &proxy{api: w.mux, running: make(chan struct{})}
	w.server = httptest.NewUnstartedServer(w.proxy)
	w.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	w.server.Start()
	return w
}

// open is a world that ends with its test.
func open(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	t.Cleanup(w.close)
	return w
}

func (w *world) close() {
	w.base.CloseIdleConnections()
	w.server.Close()
}

// count answers with the number of its run, and leaves a row that says how often it was committed.
func (w *world) count(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
	tx.Write(memstore.Write{Key: "commits", Apply: func(row []byte) []byte { return append(row, '1') }})
	return idem.JSON(http.StatusCreated, map[string]int64{"run": w.runs.Add(1)})
}

func (w *world) handle(path string, policy idem.Policy, h middleware.Handler) {
	w.Helper()
	w.serve(path, idem.Operation{Kind: idem.KindAtomic, Policy: policy}, h)
}

func (w *world) serve(path string, op idem.Operation, h middleware.Handler) {
	w.Helper()
	op.Name = strings.Trim(path, "/") + ".create"
	handler, err := w.mw.Handle(op, middleware.Route{MediaTypes: []string{"*/*"}}, h)
	if err != nil {
		w.Fatal(err)
	}
	w.mux.Handle("POST "+path, handler)
}

func (w *world) wrap(path string, h http.HandlerFunc) {
	w.Helper()
	handler, err := w.mw.Wrap(idem.Operation{Name: strings.Trim(path, "/") + ".create", UnknownToOperator: true, Policy: idem.IETF()}, middleware.Route{}, h)
	if err != nil {
		w.Fatal(err)
	}
	w.mux.Handle("POST "+path, handler)
}

// transport makes a client on the world's clock.
func (w *world) transport(cfg client.Config) *client.Transport {
	w.Helper()
	if cfg.Base == nil {
		cfg.Base = w.base
	}
	cfg.Now, cfg.Pause = w.clock.Now, w.clock.Pause
	cfg.Logger = slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	t, err := client.New(cfg)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

// reply is a response with its body.
type reply struct {
	*http.Response
	body string
}

// post sends a POST through an http.Client with the transport.
func (w *world) post(ctx context.Context, t http.RoundTripper, path, body string, lines ...string) (*reply, error) {
	w.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer secret-token")
	for _, line := range lines {
		r.Header.Add("Idempotency-Key", line)
	}
	res, err := (&http.Client{Transport: t}).Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatalf("the body of a %d: %v", res.StatusCode, err)
	}
	return &reply{res, string(raw)}, nil
}

// ran checks that the handler ran that often, and that all that arrived had one and the same key, quoted.
func (w *world) ran(want int64) {
	w.Helper()
	if got := w.runs.Load(); got != want {
		w.Errorf("the handler ran %d times, want %d", got, want)
	}
	w.oneKey()
}

func (w *world) oneKey() {
	w.Helper()
	lines := w.proxy.arrived()
	if distinct := slices.Compact(slices.Sorted(slices.Values(lines))); len(distinct) > 1 || len(distinct) == 1 && !quoted(distinct[0]) {
		w.Errorf("the keys of one operation: %q", lines)
	}
}

func quoted(line string) bool {
	return len(line) > 2 && strings.HasPrefix(line, `"`) && strings.HasSuffix(line, `"`) && !strings.Contains(line, "|")
}

// roundTripper makes one of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// refused is an address at which nobody listens.
func refused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}
