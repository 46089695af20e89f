package middleware_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
)

// states is the table "States of a record" of docs/semantics.md: what a same-key, same-fingerprint request gets. Each test
// shows, before that, that another fingerprint is a mismatch whatever the state.
var states = []struct {
	name, gets string
	prove      func(*testing.T)
}{
	{"`pending`", "the stored 202, byte for byte, + Retry-After + Location; also while its message is unknown", pendingGetsThe202},
	{"`in_progress`", "by policy: 409, 202 or wait; always Retry-After", inProgressIsToldByPolicy},
	{"`completed`", "replay, byte for byte", completedReplays},
	{"`failed`", "replay of that error", failedReplays},
	{"`failed_retryable`", "executes again, epoch + 1", failedRetryableExecutes},
	{"`unknown`", "409 `idempotency_outcome_unknown` + Retry-After; never executes", unknownNeverExecutes},
	{"`expired`", "by policy: new request, 410 Gone, or 404 on the status endpoint", expiredIsAbsentOrGone},
}

func TestStates(t *testing.T) { // docs/semantics.md "States of a record"
	var want [][]string
	for _, s := range states {
		proves(t, s.name[1:len(s.name)-1], s.prove)
		want = append(want, []string{s.name, s.gets})
	}
	var document [][]string
	for _, line := range table(t, "States of a record")[1:] {
		document = append(document, []string{line[0], line[len(line)-1]})
	}
	sameTable(t, document, want)
}

// A lease that ran out, by the kind of operation.
func TestStatesOfADeadLease(t *testing.T) { // docs/semantics.md "States of a record"
	proves(t, "atomic", func(t *testing.T) { deadLeaseIsTakenOver(t, newContract(t, idem.IETF()), "/orders", 2) })
	proves(t, "wrapped", deadWrappedLeaseIsUnknown)
	proves(t, "wrapped, declared safe to run again", func(t *testing.T) {
		c := newContract(t, idem.IETF()).wrapped(func(op *idem.Operation) { op.SafeToRunAgain = true })
		deadLeaseIsTakenOver(t, c, "/wrapped", 3) // a completion raises the epoch
	})
}

// mismatches demands that the key with another payload tells nothing and changes nothing.
func (a *api) mismatches(q ask) {
	a.Helper()
	before := a.mem.Records()[0]
	q.body = `{"another":"payload"}`
	a.do(q).is(a.T, 422, mismatch, header.CodeKeyReused)
	if after := a.mem.Records()[0]; after.State != before.State || after.Epoch != before.Epoch || after.Owner != before.Owner {
		a.Errorf("another payload changed %+v into %+v", before, after)
	}
}

// in demands the state and the epoch of the one record.
func (a *api) in(state storage.State, epoch int64) {
	a.Helper()
	if r := a.mem.Records(); len(r) != 1 || r[0].State != state || r[0].Epoch != epoch {
		a.Errorf("records %+v, want one that is %s in epoch %d", r, state, epoch)
	}
}

// pending: the stored 202, byte for byte, + Retry-After + Location; also while its message is unknown.
func pendingGetsThe202(t *testing.T) {
	a := newLocalAPI(t, nil)
	settle := deferred(a)
	first := a.do(key(ask{})).is(t, 202, executed, "")
	if first.Header.Get("X-Once") != "1" {
		t.Errorf("first answer: %v", first.Header)
	}
	var body struct{ Operation string }
	if err := json.Unmarshal(first.body, &body); err != nil || first.Header.Get("Location") != "/v1/operations/"+body.Operation {
		t.Errorf("202 with %s, Location %q", first.body, first.Header.Get("Location"))
	}
	the202 := func() {
		again := a.do(key(ask{})).is(t, 202, replayed, "")
		for _, name := range []string{"Location", "Retry-After", "Content-Type"} {
			if again.Header.Get(name) != first.Header.Get(name) {
				t.Errorf("%s: %q, then %q", name, first.Header.Get(name), again.Header.Get(name))
			}
		}
		if string(again.body) != string(first.body) || again.Header.Get("Idempotency-Expires") != "" || again.Header.Get("X-Once") != "" {
			t.Errorf("%s %v, then %s %v", first.body, first.Header, again.body, again.Header)
		}
		a.mismatches(key(ask{}))
	}
	the202()
	m := a.mem.Messages()[0]
	fence := storage.FenceOfMessage(m)
	m.State = storage.MessageUnknown
	if err := a.mem.UpdateMessage(t.Context(), m, fence); err != nil {
		t.Fatal(err)
	}
	the202()
	a.later(100 * day) // only completed and failed expire
	the202()
	a.in(storage.StatePending, 1)
	settle(storage.StateCompleted, idem.Response{Status: 201, Body: []byte(`{"id":1}`)})
	for range 2 {
		final := a.do(key(ask{})).is(t, 201, replayed, "")
		if string(final.body) != `{"id":1}` || final.Header.Get("Idempotency-Expires") == "" || final.Header.Get("Location") != "" {
			t.Errorf("final: %s %v", final.body, final.Header)
		}
	}
}

// in_progress: by policy: 409, 202 or wait; always Retry-After.
func inProgressIsToldByPolicy(t *testing.T) {
	wait := func(p *idem.Policy) { p.InFlight, p.WaitMax = idem.InFlightWait, time.Second }
	for status, change := range map[int][]func(*idem.Policy){
		409: {func(*idem.Policy) {}, wait}, 202: {func(p *idem.Policy) { p.InFlight = idem.InFlightAccepted }},
	} {
		for _, change := range change {
			c := newContract(t, idem.IETF(), change)
			finish := c.hold("k")
			c.mismatches(order("k", 201))
			c.post("k", 201).wants(t, status, inProgress) // and Retry-After
			c.in(storage.StateInProgress, 1)
			finish().is(t, 201, executed, "")
			c.executed(1)
		}
	}
}

// completed: replay, byte for byte.
func completedReplays(t *testing.T) {
	c := newContract(t, idem.IETF())
	for key, status := range map[string]int{"done": 201, "declined": 402} {
		first := c.post(key, status).is(t, status, executed, "")
		c.replays(first, c.again(key))
		c.mismatches(order(key, 201))
	}
	c.stored(2)
}

// failed: replay of that error.
func failedReplays(t *testing.T) {
	a := newLocalAPI(t, nil)
	settle := deferred(a)
	a.do(key(ask{})).is(t, 202, executed, "")
	gone := idem.NewProblem(http.StatusBadGateway, "provider_unavailable", "Provider unavailable", "Nothing was executed.")
	settle(storage.StateFailed, gone.Response())
	a.in(storage.StateFailed, 1)
	for range 2 {
		if again := a.do(key(ask{})).is(t, 502, replayed, "provider_unavailable"); again.Header.Get("Idempotency-Expires") == "" {
			t.Errorf("final without an end: %v", again.Header)
		}
		a.mismatches(key(ask{}))
	}
}

// failed_retryable: executes again, epoch + 1.
func failedRetryableExecutes(t *testing.T) {
	c := newContract(t, idem.IETF())
	c.post("k", 500).is(t, 500, executed, "")
	c.in(storage.StateFailedRetryable, 1)
	c.mismatches(order("k", 201))
	c.post("k", 503).is(t, 503, executed, "")
	c.in(storage.StateFailedRetryable, 2)
	c.post("k", 201).is(t, 201, executed, "")
	c.in(storage.StateCompleted, 3)
	c.executed(3)
}

// unknown: 409 idempotency_outcome_unknown + Retry-After; never executes.
func unknownNeverExecutes(t *testing.T) {
	c := newContract(t, idem.IETF()).wrapped()
	c.post("k", 502, at("/wrapped")).is(t, 502, unknown, "") // its own answer, of which nobody knows what it did
	for range 3 {
		c.in(storage.StateUnknown, 1)
		c.mismatches(order("k", 201, at("/wrapped")))
		c.post("k", 201, at("/wrapped")).is(t, 409, unknown, header.CodeOutcomeUnknown) // and Retry-After
		c.later(100 * day)
		c.mem.Expire(c.now().Add(late))
	}
	c.executed(1)
}

// expired: by policy: new request, 410 Gone, or 404 on the status endpoint. What expired has no fingerprint to compare.
func expiredIsAbsentOrGone(t *testing.T) {
	tombstone := func(p *idem.Policy) { p.GoneAfterExpiry, p.KeepFor = true, day }
	for _, change := range []func(*idem.Policy){func(*idem.Policy) {}, tombstone} {
		c := newContract(t, idem.IETF(), change)
		c.showOperations()
		c.post("k", 201).is(t, 201, executed, "")
		c.in(storage.StateCompleted, 1)
		c.mismatches(order("k", 201))
		status := ask{method: http.MethodGet, path: "/v1/operations/" + string(c.mem.Records()[0].OperationID)}
		c.do(status).is(t, 200, "", "")
		c.later(day)
		if c.policy.GoneAfterExpiry {
			c.do(status).is(t, 410, "", header.CodeKeyExpired)
			c.post("k", 201, body(`{"a":1}`)).is(t, 410, "", header.CodeKeyExpired)
			c.executed(1)
			continue
		}
		c.do(status).is(t, 404, "", "not_found")
		c.later(skew)
		c.post("k", 201, body(`{"a":1}`)).is(t, 201, executed, "")
		c.in(storage.StateCompleted, 1) // of another incarnation
		c.do(status).is(t, 404, "", "not_found")
		c.executed(2)
	}
}

// A lease that ran out: the next request takes it over. The holder comes too late for any write: it answers with what the
// winner stored (peers.md P1), in this epoch.
func deadLeaseIsTakenOver(t *testing.T, c *contract, path string, epoch int64) {
	t.Helper()
	finish := c.hold("k", at(path))
	c.later(time.Hour)
	c.mismatches(order("k", 201, at(path)))
	winner := c.post("k", 201, at(path)).is(t, 201, executed, "")
	c.in(storage.StateCompleted, epoch)
	if got := finish(); got.StatusCode != 201 || string(got.body) != string(winner.body) {
		t.Errorf("the holder that was too late answers %d %s, the winner %s", got.StatusCode, got.body, winner.body)
	}
	c.replays(winner, c.again("k", at(path)))
	c.in(storage.StateCompleted, epoch)
	c.executed(2)
}

// A lease that ran out, wrapped: whoever meets it writes unknown (fenced) and answers 409 (peers.md, seen elsewhere: "lease
// expiry treated as permission to run an ambiguous withdrawal again").
func deadWrappedLeaseIsUnknown(t *testing.T) {
	c := newContract(t, idem.IETF()).wrapped()
	finish := c.hold("k", at("/wrapped"))
	c.later(time.Hour)
	c.mismatches(order("k", 201, at("/wrapped")))
	c.in(storage.StateInProgress, 1)
	stillUnknown := func() {
		t.Helper()
		c.post("k", 201, at("/wrapped")).is(t, 409, unknown, header.CodeOutcomeUnknown)
		c.in(storage.StateUnknown, 1)
	}
	stillUnknown()
	stillUnknown()
	late := finish().is(t, 201, executed, "") // evidence settles, however late it comes
	c.in(storage.StateCompleted, 2)
	c.replays(late, c.again("k", at("/wrapped")))
	c.executed(1)
}
