package middleware_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
)

// Missing key on an unsafe method: 400.
func missingIsRefused(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	for _, method := range []string{http.MethodPost, http.MethodPatch} {
		c.do(ask{method: method}).is(t, 400, "", header.CodeKeyMissing)
	}
	c.executed(0)
	c.stored(0)
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
	for _, empty := range []string{"", " ", `""`} {
		c.post(empty, 201).is(t, 400, "", header.CodeKeyInvalid)
	}
	c.executed(0)
	c.stored(0)
}

// Empty header: as missing, and never a key that callers share (peers.md P4).
func emptyIsMissing(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	for _, empty := range []string{"", "", " "} {
		c.post(empty, 201).is(t, 201, unprotected, "")
	}
	c.executed(3)
}

// Syntax: structured-field string, quoted; a bare value is the same key unless strict.
func syntaxStructured(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	first := c.post(`"abc"`, 201).is(t, 201, executed, "")
	c.replays(first, c.again(`abc`))
	malformed := []string{`"a";p=1`, `"a", "b"`, `a,b`, `"a`, "a b", strings.Repeat("k", 256)}
	for _, bad := range malformed {
		c.post(bad, 201).is(t, 400, "", header.CodeKeyInvalid)
	}
	c.executed(1)
	strict := newContract(t, policy, func(p *idem.Policy) { p.Syntax = idem.SyntaxStrict })
	strict.post(`"abc"`, 201).is(t, 201, executed, "")
	for _, bad := range append(malformed, `abc`) {
		strict.post(bad, 201).is(t, 400, "", header.CodeKeyInvalid)
	}
	strict.executed(1)
	strict.stored(1)
}

// Syntax: opaque, 1..255, minimum length by choice.
func syntaxOpaqueBounded(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	c.post(`"abc"`, 201).is(t, 201, executed, "")
	c.post(`abc`, 201).is(t, 201, executed, "") // quotes are part of an opaque key
	c.post("k", 201).is(t, 201, executed, "")
	c.post(strings.Repeat("k", 255), 201).is(t, 201, executed, "")
	c.post(strings.Repeat("k", 256), 201).is(t, 400, "", header.CodeKeyInvalid)
	c.executed(4)
	c.stored(4)
	long := newContract(t, policy, func(p *idem.Policy) { p.KeyBytesMin = 8 })
	long.post("1234567", 201).is(t, 400, "", header.CodeKeyInvalid)
	long.post("12345678", 201).is(t, 201, executed, "")
	long.stored(1)
}

// Syntax: opaque, any.
func syntaxOpaqueAny(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	for n, key := range []string{"k", `"k"`, "a b", `{"id":1}`, "a;b=c", "a, b", strings.Repeat("k", 255)} {
		first := c.post(key, 201).is(t, 201, executed, "")
		c.replays(first, c.again(key))
		c.stored(n + 1)
	}
}

// Other payload: 422. It is no answer to store (peers.md, seen elsewhere: "the layer's own 409/422 is stored as the response").
func payload422(t *testing.T, policy idem.Policy) {
	otherPayload(t, policy, 422, header.CodeKeyReused)
}

// Other payload: 400 idempotency_error.
func payload400(t *testing.T, policy idem.Policy) { otherPayload(t, policy, 400, header.CodeError) }

func otherPayload(t *testing.T, policy idem.Policy, status int, code string) {
	t.Helper()
	c := newContract(t, policy)
	first := c.post("k", 201, body(`{"secret":1}`)).is(t, 201, executed, "")
	refused := c.post("k", 201, body(`{"a":1}`)).is(t, status, mismatch, code)
	if strings.Contains(string(refused.body), "secret") {
		t.Errorf("tells of the first payload: %s", refused.body)
	}
	if !strings.Contains(c.log.String(), "key misuse") {
		t.Error("key misuse is not logged")
	}
	c.replays(first, c.again("k", body(`{"secret":1}`)))
	c.executed(1)
	c.stored(1)
}

// Other payload: replays the first result.
func payloadReplays(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	first := c.post("k", 201, body(`{"a":1}`)).is(t, 201, executed, "")
	c.replays(first, c.again("k", body(`{"a":2}`)))
	c.stored(1)
}

// In flight: 409 + Retry-After, with the policy's code. It is no answer to store (peers.md, seen elsewhere: "the layer's own
// 409/422 is stored as the response").
func flight(code string) func(*testing.T, idem.Policy) {
	return func(t *testing.T, policy idem.Policy) {
		c := newContract(t, policy)
		finish := c.hold("k")
		c.post("k", 201).is(t, 409, inProgress, code)
		c.executed(1)
		c.stored(0)
		first := finish().is(t, 201, executed, "")
		c.replays(first, c.again("k"))
		c.stored(1)
	}
}

// In flight: waits, then replays the winner's response; 409 only when the wait budget is over. A waiter that gives
// up leaves the winner alone (peers.md, seen elsewhere: "a waiter that gives up deletes the live owner's row").
func flightWaits(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	finish := c.hold("k")
	waiting := make(chan *reply, 3)
	for range cap(waiting) {
		go func() { waiting <- c.post("k", 202) }()
	}
	time.Sleep(policy.WaitMax / 2)
	synctest.Wait()
	if len(waiting) > 0 {
		t.Errorf("did not wait: %d", (<-waiting).StatusCode)
	}
	first := finish().is(t, 201, executed, "")
	for range cap(waiting) {
		c.replays(first, func() *reply { return <-waiting })
	}
	c.stored(1)

	short := newContract(t, policy, func(p *idem.Policy) { p.WaitMax = 300 * time.Millisecond })
	finish = short.hold("k")
	begun := time.Now()
	short.post("k", 201).is(t, 409, inProgress, header.CodeInProgress)
	if waited := time.Since(begun); (waited - 300*time.Millisecond).Abs() > time.Millisecond {
		t.Errorf("waited %v", waited)
	}
	finish().is(t, 201, executed, "")
	short.executed(1)
}

// 5xx result: not stored; retry executes.
func serverErrorReleases(t *testing.T, policy idem.Policy) {
	for _, status := range []int{500, 502, 503} {
		c := newContract(t, policy)
		if got := c.post("k", status).is(t, status, executed, ""); got.Header.Get("Idempotency-Expires") != "" {
			t.Errorf("%d says until when it is kept: %v", status, got.Header)
		}
		c.stored(0)
		c.post("k", 201).is(t, 201, executed, "")
		c.executed(2)
		c.stored(1)
	}
}

// 5xx result: stored and replayed once execution began.
func serverErrorIsStored(t *testing.T, policy idem.Policy) {
	for _, status := range []int{500, 502, 503} {
		c := newContract(t, policy)
		first := c.post("k", status).is(t, status, executed, "")
		c.replays(first, c.again("k"))
		c.stored(1)
	}
}

// 4xx result: stored, except validation before execution and 401, 403, 408, 409, 425, 429, unless declared by Reject.
func clientErrorsFinal(t *testing.T, policy idem.Policy) {
	for _, status := range []int{400, 402, 404, 422} {
		resultIsStored(t, policy, status)
	}
	for _, status := range []int{401, 403, 408, 409, 425, 429} {
		c := newContract(t, policy)
		c.post("k", status).is(t, status, executed, "")
		c.stored(0)
		c.post("k", 201).is(t, 201, executed, "")
		c.executed(2)
		d := newContract(t, policy)
		first := d.post("k", status, declared).is(t, status, executed, "declared")
		d.replays(first, d.again("k"))
		d.stored(1)
	}
	validationIsNotStored(t, policy)
}

// 4xx result: stored.
func clientErrorsAll(t *testing.T, policy idem.Policy) {
	for _, status := range []int{400, 401, 402, 403, 404, 408, 409, 422, 425, 429} {
		resultIsStored(t, policy, status)
	}
	validationIsNotStored(t, policy)
}

func resultIsStored(t *testing.T, policy idem.Policy, status int) {
	t.Helper()
	c := newContract(t, policy)
	first := c.post("k", status).is(t, status, executed, "")
	c.replays(first, c.again("k"))
	c.stored(1)
}

// What validation refuses was never executed, and is nothing to store.
func validationIsNotStored(t *testing.T, policy idem.Policy) {
	t.Helper()
	c := newContract(t, policy)
	c.post("k", 201, body(`{"invalid":1}`)).is(t, 400, "", "request_invalid")
	c.executed(0)
	c.stored(0)
	c.post("k", 201).is(t, 201, executed, "")
}

// Scope: tenant + operation + key (peers.md, seen elsewhere: "default settings replay across tenants or endpoints").
func scopeOperation(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	for n, q := range []func(*ask){at("/orders"), at("/refunds"), by("tenant-b")} {
		first := c.post("k", 201, q).is(t, 201, executed, "")
		c.replays(first, c.again("k", q))
		c.executed(int64(n + 1))
	}
	c.stored(3)
}

// Scope: tenant + key; another operation = mismatch, never a replay.
func scopeTenant(status int, code string) func(*testing.T, idem.Policy) {
	return func(t *testing.T, policy idem.Policy) {
		c := newContract(t, policy)
		c.post("k", 201).is(t, 201, executed, "")
		c.post("k", 201, at("/refunds")).is(t, status, mismatch, code)
		c.post("k", 201, by("tenant-b")).is(t, 201, executed, "")
		c.executed(2)
		c.stored(2)
	}
}

// Retention: 24 h.
func retentionOfADay(t *testing.T, policy idem.Policy) {
	c := newContract(t, policy)
	first := c.post("k", 201).is(t, 201, executed, "")
	c.expires(first, 24*time.Hour)
	c.later(24*time.Hour - time.Millisecond)
	c.replays(first, c.again("k"))
	c.later(time.Millisecond + skew)
	c.post("k", 201).is(t, 201, executed, "")
}

// Retention: 24 h, per operation 1 h .. 90 d.
func retentionChosen(t *testing.T, policy idem.Policy) {
	retentionOfADay(t, policy)
	for _, chosen := range []time.Duration{time.Hour, 90 * day} {
		c := newContract(t, policy, func(p *idem.Policy) { p.Retention = chosen })
		first := c.post("k", 201).is(t, 201, executed, "")
		c.expires(first, chosen)
		c.later(chosen - time.Millisecond)
		c.replays(first, c.again("k"))
	}
	for _, refused := range []time.Duration{time.Hour - 1, 90*day + 1} {
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
	c.later(100 * day)
	c.mem.Expire(c.now().Add(late))
	c.replays(first, c.again("k"))
	if err := c.engine.End(t.Context(), "tenant-a", c.mem.Records()[0].OperationID); err != nil {
		t.Fatal(err)
	}
	c.later(skew)
	c.post("k", 201).is(t, 201, executed, "")
}

// After expiry: new request, whatever it asks for, and whether TTL has removed the record or not.
func expiredIsNew(t *testing.T, policy idem.Policy) {
	for _, removed := range []bool{false, true} {
		c := newContract(t, policy)
		c.post("k", 201, body(`{"a":1}`)).is(t, 201, executed, "")
		if c.later(policy.Retention + skew); removed {
			c.mem.Expire(c.now().Add(time.Hour))
		}
		c.post("k", 201, body(`{"a":2}`)).is(t, 201, executed, "")
		c.executed(2)
		c.stored(1)
	}
}

// After expiry: new request, or 410 by tombstone or a time in every key.
func expiredIsNewOrGone(t *testing.T, policy idem.Policy) {
	expiredIsNew(t, policy)
	c := newContract(t, policy, func(p *idem.Policy) { p.GoneAfterExpiry, p.KeepFor = true, time.Hour })
	c.expires(c.post("k", 201).is(t, 201, executed, ""), policy.Retention) // the tombstone holds the key longer
	c.later(policy.Retention)
	c.post("k", 201).is(t, 410, "", header.CodeKeyExpired)
	c.later(time.Hour - time.Millisecond)
	c.mem.Expire(c.now().Add(late))
	c.post("k", 201).is(t, 410, "", header.CodeKeyExpired)
	c.later(time.Millisecond + skew)
	c.post("k", 201).is(t, 201, executed, "")
	c.executed(2)

	timed := newContract(t, policy, func(p *idem.Policy) {
		p.GoneAfterExpiry, p.KeyTime, p.KeyTimeRequired = true, idem.KeyTimeUUIDv7, true
	})
	timed.post("k", 201).is(t, 400, "", header.CodeKeyInvalid)
	mine := keyAt(timed.now())
	timed.do(mine).is(t, 201, executed, "")
	timed.later(policy.Retention)
	timed.mem.Expire(timed.now().Add(time.Hour))
	timed.do(mine).is(t, 410, "", header.CodeKeyExpired)
	timed.executed(1)
}
