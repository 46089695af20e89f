package middleware_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Missing key on an unsafe method: 400.
func missingIsRefused(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	c.post("", 201, without).is(t, 400, "", "idempotency_key_missing")
	c.executed(0)
}

// Missing key on an unsafe method: executes without protection, marked so in header and metric.
func missingIsUnprotected(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	for range 2 {
		if got := c.post("", 201, without).is(t, 201, unprotected, ""); got.Header.Get("Idempotency-Expires") != "" {
			t.Errorf("an unprotected answer says until when it is kept: %v", got.Header)
		}
	}
	c.executed(2)
	if !strings.Contains(c.log.String(), `"msg":"idempotency.unprotected"`) {
		t.Error("no metric of it")
	}
}

// Empty header: 400.
func emptyIsRefused(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	for _, empty := range []string{"", `""`} {
		c.post(empty, 201).is(t, 400, "", "idempotency_key_invalid")
	}
	c.executed(0)
}

// Empty header: as missing, and never a key that callers share (peers.md P4).
func emptyIsMissing(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	c.post("", 201).is(t, 201, unprotected, "")
	c.post("", 201).is(t, 201, unprotected, "")
	c.executed(2)
}

// Syntax: structured-field string, quoted; a bare value is the same key unless strict.
func syntaxStructured(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	first := c.post(`"abc"`, 201).is(t, 201, executed, "")
	c.replays(first, c.post(`abc`, 201))
	for _, bad := range []string{`"a";p=1`, `"a", "b"`, `a,b`, `"a`, "a b"} {
		c.post(bad, 201).is(t, 400, "", "idempotency_key_invalid")
	}
	c.executed(1)
	strict := newContract(t, policy, func(p *idem.Policy) { p.Syntax = idem.SyntaxStrict })
	strict.post(`"abc"`, 201).is(t, 201, executed, "")
	strict.post(`abc`, 201).is(t, 400, "", "idempotency_key_invalid")
}

// Syntax: opaque, 1..255, minimum length by choice.
func syntaxOpaqueBounded(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	c.post(`"abc"`, 201).is(t, 201, executed, "")
	c.post(`abc`, 201).is(t, 201, executed, "") // quotes are part of an opaque key
	c.post(strings.Repeat("k", 255), 201).is(t, 201, executed, "")
	c.post(strings.Repeat("k", 256), 201).is(t, 400, "", "idempotency_key_invalid")
	c.executed(3)
	long := newContract(t, policy, func(p *idem.Policy) { p.KeyBytesMin = 8 })
	long.post("1234567", 201).is(t, 400, "", "idempotency_key_invalid")
	long.post("12345678", 201).is(t, 201, executed, "")
}

// Syntax: opaque, any.
func syntaxOpaqueAny(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	for _, key := range []string{"k", "a b", `{"id":1}`, "a;b=c"} {
		first := c.post(key, 201).is(t, 201, executed, "")
		c.replays(first, c.post(key, 201))
	}
}

// Other payload: 422.
func payload422(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	c.post("k", 201, body(`{"a":1}`)).is(t, 201, executed, "")
	c.post("k", 201, body(`{"a":2}`)).is(t, 422, mismatch, "idempotency_key_reused_with_different_payload")
	c.executed(1)
}

// Other payload: 400 idempotency_error.
func payload400(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	c.post("k", 201, body(`{"a":1}`)).is(t, 201, executed, "")
	c.post("k", 201, body(`{"a":2}`)).is(t, 400, mismatch, "idempotency_error")
	c.executed(1)
}

// Other payload: replays the first result.
func payloadReplays(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	first := c.post("k", 201, body(`{"a":1}`)).is(t, 201, executed, "")
	c.replays(first, c.post("k", 201, body(`{"a":2}`)))
}

// hold lets one request run until it is released, and returns what releases it and then its answer.
func (c *contract) hold(key string) func() *reply {
	c.reached, c.release = make(chan struct{}, 8), make(chan struct{})
	answer := make(chan *reply, 1)
	go func() {
		got, err := c.send(ask{keys: []string{key}})
		if err != nil {
			c.Error(err)
		}
		answer <- got
	}()
	<-c.reached
	return func() *reply {
		close(c.release)
		return <-answer
	}
}

// In flight: 409 + Retry-After.
func flight409(t *testing.T, policy idem.Policy) {
	inFlight(t, policy, "idempotency_key_in_progress")
	// By choice 202 with the operation to ask for.
	c := newContract(t, policy, func(p *idem.Policy) { p.InFlight = idem.InFlightAccepted })
	finish := c.hold("k")
	accepted := c.post("k", 201).is(t, 202, inProgress, "")
	accepted.comesBack(t)
	if !strings.HasPrefix(accepted.Header.Get("Location"), "/v1/operations/op_") {
		t.Errorf("Location %q", accepted.Header.Get("Location"))
	}
	finish().is(t, 201, executed, "")
}

// In flight: 409 idempotency_key_in_use.
func flightInUse(t *testing.T, policy idem.Policy) { inFlight(t, policy, "idempotency_key_in_use") }

func inFlight(t *testing.T, policy idem.Policy, code string) {
	t.Helper()
	c := newContract(t, policy)
	finish := c.hold("k")
	c.post("k", 201).is(t, 409, inProgress, code).comesBack(t)
	first := finish().is(t, 201, executed, "")
	c.replays(first, c.post("k", 201))
}

// In flight: waits, then replays the winner's response; 409 only when the wait budget is over.
func flightWaits(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	finish := c.hold("k")
	waiting := make(chan *reply, 1)
	go func() { waiting <- c.post("k", 201) }()
	select {
	case got := <-waiting:
		t.Errorf("did not wait: %d %s", got.StatusCode, got.body)
	case <-time.After(200 * time.Millisecond):
		c.replays(finish().is(t, 201, executed, ""), <-waiting)
	}
	short := newContract(t, policy, func(p *idem.Policy) { p.WaitMax = 300 * time.Millisecond })
	finish = short.hold("k")
	short.post("k", 201).is(t, 409, inProgress, "idempotency_key_in_progress").comesBack(t)
	finish().is(t, 201, executed, "")
}

// 5xx result: not stored; retry executes.
func serverErrorReleases(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	c.post("k", 503).is(t, 503, executed, "")
	c.post("k", 201).is(t, 201, executed, "")
	c.executed(2)
}

// 5xx result: stored and replayed once execution began.
func serverErrorIsStored(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	first := c.post("k", 500).is(t, 500, executed, "")
	c.replays(first, c.post("k", 201))
}

// 4xx result: stored, except validation before execution and 401, 403, 408, 409, 425, 429, unless declared by Reject.
func clientErrorsFinal(t *testing.T, policy idem.Policy) {
	for _, status := range []int{400, 402, 404, 422} {
		c := newContract(t, policy)
		first := c.post("k", status).is(t, status, executed, "")
		c.replays(first, c.post("k", 201))
	}
	for _, status := range []int{401, 403, 408, 409, 425, 429} {
		c := newContract(t, policy)
		c.post("k", status).is(t, status, executed, "")
		c.post("k", 201).is(t, 201, executed, "")
		c.executed(2)
		d := newContract(t, policy)
		first := d.post("k", status, declared).is(t, status, executed, "declared")
		d.replays(first, d.post("k", 201))
	}
	validationIsNotStored(t, policy)
}

// 4xx result: stored.
func clientErrorsAll(t *testing.T, policy idem.Policy) {
	for _, status := range []int{400, 401, 402, 403, 404, 408, 409, 422, 425, 429} {
		c := newContract(t, policy)
		first := c.post("k", status).is(t, status, executed, "")
		c.replays(first, c.post("k", 201))
	}
	validationIsNotStored(t, policy)
}

// What validation refuses was never executed, and is nothing to store.
func validationIsNotStored(t *testing.T, policy idem.Policy) {
	t.Helper()
	c := newContract(t, policy)
	c.post("k", 201, body(`{"invalid":1}`)).is(t, 400, "", "request_invalid")
	c.post("k", 201).is(t, 201, executed, "")
	c.executed(1)
}

// Scope: tenant + operation + key.
func scopeOperation(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	c.post("k", 201).is(t, 201, executed, "")
	c.post("k", 201, at("/refunds")).is(t, 201, executed, "")
	c.post("k", 201, by("tenant-b")).is(t, 201, executed, "")
	c.executed(3)
}

// Scope: tenant + key; another operation = mismatch, never a replay.
func scopeTenant(status int, code string) func(*testing.T, idem.Policy) {
	return func(t *testing.T, policy idem.Policy) {
		c := newContract(t, policy)
		c.post("k", 201).is(t, 201, executed, "")
		c.post("k", 201, at("/refunds")).is(t, status, mismatch, code)
		c.post("k", 201, by("tenant-b")).is(t, 201, executed, "")
		c.executed(2)
	}
}

// expires demands that the answer is kept for so long.
func (c *contract) expires(got *reply, after time.Duration) {
	c.Helper()
	at, err := time.Parse(time.RFC3339, got.Header.Get("Idempotency-Expires"))
	if off := at.Sub(c.now().Add(after)).Abs(); err != nil || off > 5*time.Second {
		c.Errorf("Idempotency-Expires %q, want %v from now", got.Header.Get("Idempotency-Expires"), after)
	}
}

// Retention: 24 h.
func retentionOfADay(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	first := c.post("k", 201).is(t, 201, executed, "")
	c.expires(first, 24*time.Hour)
	c.later(24*time.Hour - 10*time.Second)
	c.replays(first, c.post("k", 201))
	c.later(20 * time.Second)
	c.post("k", 201).is(t, 201, executed, "")
}

// Retention: 24 h, per operation 1 h .. 90 d.
func retentionChosen(t *testing.T, policy idem.Policy) {
	retentionOfADay(t, policy)
	for _, chosen := range []time.Duration{time.Hour, 90 * 24 * time.Hour} {
		c := newContract(t, policy, func(p *idem.Policy) { p.Retention = chosen })
		c.expires(c.post("k", 201).is(t, 201, executed, ""), chosen)
	}
	for _, refused := range []time.Duration{time.Hour - 1, 90*24*time.Hour + 1} {
		policy.Retention = refused
		if policy.Validate() == nil {
			t.Errorf("a retention of %v is admitted", refused)
		}
	}
}

// Retention: 24 h, or the resource's lifetime.
func retentionOrLifetime(t *testing.T, policy idem.Policy) {
	retentionOfADay(t, policy)
	c := newContract(t, policy, func(p *idem.Policy) { p.ResourceBacked = true })
	first := c.post("k", 201).is(t, 201, executed, "")
	if got := first.Header.Get("Idempotency-Expires"); got != "" {
		t.Errorf("Idempotency-Expires %q of a record that lives as long as its resource", got)
	}
	c.later(100 * 24 * time.Hour)
	c.replays(first, c.post("k", 201))
	if err := c.engine.End(t.Context(), "tenant-a", c.mem.Records()[0].OperationID); err != nil {
		t.Fatal(err)
	}
	c.post("k", 201).is(t, 201, executed, "")
}

// After expiry: new request.
func expiredIsNew(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	c.post("k", 201, body(`{"a":1}`)).is(t, 201, executed, "")
	c.later(policy.Retention + time.Second)
	c.post("k", 201, body(`{"a":2}`)).is(t, 201, executed, "") // whatever it asks for
	c.executed(2)
}

// After expiry: new request, or 410 by tombstone or a time in every key; first-sent 412 under any of them.
func expiredIsNewOrGone(t *testing.T, policy idem.Policy) {
	expiredIsNew(t, policy)
	c := newContract(t, policy, func(p *idem.Policy) { p.AfterExpiry, p.KeepFor = idem.AfterExpiryGone, time.Hour })
	c.post("k", 201).is(t, 201, executed, "")
	c.later(policy.Retention + time.Second)
	c.post("k", 201).is(t, http.StatusGone, "", "idempotency_key_expired")
	c.later(time.Hour)
	c.post("k", 201).is(t, 201, executed, "")
	c.executed(2)
	timed := newContract(t, policy, func(p *idem.Policy) {
		p.AfterExpiry, p.KeyTime, p.KeyTimeRequired = idem.AfterExpiryGone, idem.KeyTimeUUIDv7, true
	})
	timed.post("k", 201).is(t, 400, "", "idempotency_key_invalid")
	timed.post("01890a5d-ac96-774b-bcce-b302099a8057", 201).is(t, http.StatusGone, "", "idempotency_key_expired") // of 2023
	timed.executed(0)
	late := newContract(t, policy)
	late.post("k", 201, sentAt(late.now().Add(-25*time.Hour))).is(t, http.StatusPreconditionFailed, "", "idempotency_key_expired")
	late.executed(0)
}
