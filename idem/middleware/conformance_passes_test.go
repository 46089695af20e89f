package middleware_test

import (
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// passes proves a row at a route whose policy acts on nothing: of an exempt route nobody hears anything, of one in observe
// mode the reports.
func passes(t *testing.T, policy idem.Policy, requests func(*contract), reports []string) {
	c := newContract(t, policy)
	requests(c)
	if got := c.told.take(); !slices.Equal(got, reports) {
		t.Errorf("reported %q, want %q", got, reports)
	}
}

// passed demands that the request, the nth of its server, was executed, and that its answer promises nothing.
func (c *contract) passed(n int64, status int, got *reply) {
	c.Helper()
	got.is(c.T, status, unprotected, "")
	if until := got.Header.Get("Idempotency-Expires"); until != "" {
		c.Errorf("an unprotected answer is kept until %s", until)
	}
	c.executed(n)
}

func passMissing(c *contract) { c.passed(1, 201, c.post("", 201, without)) }

func passEmpty(c *contract) { c.passed(1, 201, c.post("", 201)) }

func passSyntax(c *contract) { c.passed(1, 201, c.post(`"a", "b"`, 201)) }

func passPayload(c *contract) {
	c.passed(1, 201, c.post("k", 201, body(`{"a":1}`)))
	c.passed(2, 201, c.post("k", 201, body(`{"a":2}`)))
}

func passFlight(c *contract) {
	finish := c.hold("k")
	c.passed(2, 201, c.post("k", 201))
	c.passed(2, 201, finish())
}

func passServerError(c *contract) {
	c.passed(1, 500, c.post("k", 500))
	c.passed(2, 201, c.post("k", 201))
}

func passClientError(c *contract) {
	c.passed(1, 402, c.post("k", 402))
	c.passed(2, 201, c.post("k", 201))
}

func passScope(c *contract) {
	c.passed(1, 201, c.post("k", 201))
	c.passed(2, 201, c.post("k", 201, at("/refunds")))
	c.passed(3, 201, c.post("k", 201, by("tenant-b")))
}

func passRetention(c *contract) {
	c.passed(1, 201, c.post("k", 201))
	c.later(day - time.Millisecond)
	c.passed(2, 201, c.post("k", 201))
}

func passExpiry(c *contract) {
	c.passed(1, 201, c.post("k", 201))
	c.later(day + skew)
	c.passed(2, 201, c.post("k", 201))
}
