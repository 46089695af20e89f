package middleware_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// contract is an API whose two operations follow one policy. Its handler answers as the request's X-Answer says, with the
// number of the run.
type contract struct {
	*api
	policy idem.Policy
	told   reports
	runs   atomic.Int64
	// gates has what the next run waits for, where it waits.
	gates chan *gate
}

func newContract(t *testing.T, policy idem.Policy, change ...func(*idem.Policy)) *contract {
	t.Helper()
	return contractOn(newLocalAPI(t, nil), policy, change...)
}

func contractOn(a *api, policy idem.Policy, change ...func(*idem.Policy)) *contract {
	a.Helper()
	for _, f := range change {
		f(&policy)
	}
	c := &contract{api: a, policy: policy, gates: make(chan *gate, 1)}
	c.reportTo(c.told.add)
	for _, name := range []string{"orders", "refunds"} {
		c.handle("/"+name, idem.Operation{Name: name + ".create", Policy: policy}, middleware.Route{Validate: validate}, c.execute)
	}
	return c
}

// wrapped adds an existing handler that answers the same at /wrapped.
func (c *contract) wrapped(change ...func(*idem.Operation)) *contract {
	op := idem.Operation{Name: "wrapped.create", Policy: c.policy}
	for _, f := range change {
		f(&op)
	}
	c.wrap("/wrapped", op, func(w http.ResponseWriter, r *http.Request) {
		status, run := c.run(r)
		w.WriteHeader(status)
		w.Write([]byte(strconv.FormatInt(run, 10)))
		if size, err := strconv.Atoi(r.Header.Get("X-Size")); err == nil {
			w.Write(make([]byte, size))
		}
	})
	return c
}

// validate refuses a body with "invalid" in it, before anything executes.
func validate(r *middleware.Request) *idem.Problem {
	if !strings.Contains(string(r.Body), "invalid") {
		return nil
	}
	p := idem.NewProblem(http.StatusBadRequest, "request_invalid", "Invalid request", "The body is not valid.")
	return &p
}

// run is one execution: its answer and its number.
func (c *contract) run(r *http.Request) (status int, run int64) {
	run = c.runs.Add(1)
	select {
	case g := <-c.gates:
		g.started <- struct{}{}
		<-g.release
	default:
	}
	status, err := strconv.Atoi(r.Header.Get("X-Answer"))
	if err != nil {
		status = http.StatusCreated
	}
	return status, run
}

func (c *contract) execute(_ context.Context, _ *idem.Tx, r *middleware.Request) (idem.Response, error) {
	status, run := c.run(r.HTTP)
	if r.HTTP.Header.Get("X-Declared") != "" {
		return idem.Response{}, &idem.RejectedError{Problem: idem.NewProblem(status, "declared", "Declared", "By Reject.")}
	}
	if size, err := strconv.Atoi(r.HTTP.Header.Get("X-Size")); err == nil {
		return idem.Response{Status: status, Body: make([]byte, size)}, nil
	}
	return idem.JSON(status, run)
}

// order is a request with a key, to which the handler shall answer with the status.
func order(key string, answer int, more ...func(*ask)) ask {
	q := ask{keys: []string{key}, header: map[string]string{"X-Answer": strconv.Itoa(answer)}}
	for _, f := range more {
		f(&q)
	}
	return q
}

func (c *contract) post(key string, answer int, more ...func(*ask)) *reply {
	c.Helper()
	return c.do(order(key, answer, more...))
}

func body(text string) func(*ask) { return func(q *ask) { q.body = text } }
func at(path string) func(*ask)   { return func(q *ask) { q.path = path } }
func by(tenant string) func(*ask) { return func(q *ask) { q.tenant = tenant } }
func without(q *ask)              { q.keys = nil }
func declared(q *ask)             { q.header["X-Declared"] = "1" }
func sized(n int) func(*ask)      { return func(q *ask) { q.header["X-Size"] = strconv.Itoa(n) } }
func sentAt(at time.Time) func(*ask) {
	return func(q *ask) { q.header["Idempotency-First-Sent"] = rfc3339(at) }
}

// hold sends a request whose execution stops in its middle, and returns what lets it go on and answers.
func (c *contract) hold(key string, more ...func(*ask)) (finish func() *reply) {
	g, answer := newGate(), make(chan *reply, 1)
	c.gates <- g
	go func() {
		r, err := c.send(order(key, 201, more...))
		if err != nil {
			c.Error(err)
		}
		answer <- r
	}()
	<-g.started
	return func() *reply {
		close(g.release)
		return <-answer
	}
}

// executed demands that so many requests were executed.
func (c *contract) executed(n int64) {
	c.Helper()
	if got := c.runs.Load(); got != n {
		c.Errorf("executed %d times, want %d", got, n)
	}
}

// stored demands that so many records hold a final answer.
func (c *contract) stored(n int) {
	c.Helper()
	for _, r := range c.mem.Records() {
		if r.State.Final() {
			n--
		}
	}
	if n != 0 {
		c.Errorf("%d too few final answers are stored: %+v", n, c.mem.Records())
	}
}

// is demands a status, the Idempotency-Status that goes with it, and a problem's code ("" for none).
func (r *reply) is(t *testing.T, status int, became, code string) *reply {
	t.Helper()
	r.wants(t, status, became)
	got := ""
	if r.Header.Get("Content-Type") == "application/problem+json" {
		got = r.code(t)
	}
	if got != code {
		t.Errorf("%d with code %q, want %q", r.StatusCode, got, code)
	}
	return r
}

// replays demands that the second answer is the first one again, and that nothing was executed for it.
func (c *contract) replays(first *reply, again func() *reply) {
	c.Helper()
	runs := c.runs.Load()
	second := again()
	second.wants(c.T, first.StatusCode, replayed)
	if string(second.body) != string(first.body) || second.Header.Get("Idempotency-Expires") != first.Header.Get("Idempotency-Expires") {
		c.Errorf("%s %v; want a replay of %s %v", second.body, second.Header, first.body, first.Header)
	}
	c.executed(runs)
}

// again is the same request a second time, to which the handler would give another answer.
func (c *contract) again(key string, more ...func(*ask)) func() *reply {
	return func() *reply { return c.post(key, 202, more...) }
}

// expires demands that the answer is kept for so long from now.
func (c *contract) expires(got *reply, after time.Duration) {
	c.Helper()
	at, err := time.Parse(time.RFC3339, got.Header.Get("Idempotency-Expires"))
	if err != nil || !at.Equal(c.now().Add(after)) {
		c.Errorf("Idempotency-Expires %q, want %v from %v", got.Header.Get("Idempotency-Expires"), after, c.now())
	}
}

// The values of Idempotency-Status.
const (
	executed    = "executed"
	replayed    = "replayed"
	inProgress  = "in_progress"
	mismatch    = "mismatch"
	unknown     = "unknown"
	ignored     = "ignored"
	unprotected = "unprotected"
)
