package faultproxy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/idem-go/idem-aws/localstack/faultproxy"
)

// upstream stands where DynamoDB would. It records what arrives and answers what it is told to.
type upstream struct {
	*httptest.Server
	mu     sync.Mutex
	got    []arrival
	answer func(http.ResponseWriter, *http.Request)
	// arrived has one value for each request.
	arrived chan struct{}
}

type arrival struct {
	method, uri, host string
	header            http.Header
	body              []byte
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{arrived: make(chan struct{}, 1000)}
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	u.got = append(u.got, arrival{r.Method, r.RequestURI, r.Host, r.Header, body})
	answer := u.answer
	u.mu.Unlock()
	u.arrived <- struct{}{}
	if answer != nil {
		answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_, _ = w.Write([]byte(`{}`))
}

func (u *upstream) answers(f func(http.ResponseWriter, *http.Request)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer = f
}

func (u *upstream) arrivals() []arrival {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.got)
}

// bench is a proxy before an upstream.
type bench struct {
	faultproxy.Control
	t        *testing.T
	upstream *upstream
	proxy    *faultproxy.Proxy
}

func start(t *testing.T) bench {
	t.Helper()
	return startWith(t, faultproxy.Config{})
}

func startWith(t *testing.T, c faultproxy.Config) bench {
	t.Helper()
	u := newUpstream(t)
	c.Target = u.URL
	p, err := faultproxy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(p.Close)
	return bench{Control: faultproxy.Control{URL: server.URL}, t: t, upstream: u, proxy: p}
}

func (b bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b bench) faults(rules ...faultproxy.Rule) {
	b.t.Helper()
	b.must(b.Faults(b.t.Context(), rules...))
}

func (b bench) log() []faultproxy.Entry {
	b.t.Helper()
	got, err := b.Log(b.t.Context())
	b.must(err)
	return got
}

// last is the newest entry of the log, once its request is over.
func (b bench) last() faultproxy.Entry {
	b.t.Helper()
	for {
		log := b.log()
		if n := len(log); n > 0 && log[n-1].EndedAt != nil {
			return log[n-1]
		}
	}
}

// until polls the counts of what waits.
func (b bench) until(want faultproxy.Waiting) {
	b.t.Helper()
	for {
		got, err := b.Waiting(b.t.Context())
		b.must(err)
		if got == want {
			return
		}
	}
}

type response struct {
	status int
	header http.Header
	body   string
}

func (b bench) send(ctx context.Context, operation, body string) (response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL+"/", strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	req.GetBody = nil
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, string(content)}, err
}

func (b bench) want(status int, operation, body string) response {
	b.t.Helper()
	r, err := b.send(b.t.Context(), operation, body)
	b.must(err)
	if r.status != status {
		b.t.Fatalf("%s: %d %s, want %d", operation, r.status, r.body, status)
	}
	return r
}

// lost sends a request that must get no answer.
func (b bench) lost(operation, body string) {
	b.t.Helper()
	if r, err := b.send(b.t.Context(), operation, body); err == nil {
		b.t.Fatalf("%s was answered: %d %s", operation, r.status, r.body)
	}
}

const put = `{"TableName":"outbox","Item":{"id":{"S":"m.1"}}}`
