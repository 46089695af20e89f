package middleware_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// peers.md H15: authorization comes before everything that a record or its absence could tell: a replay, a mismatch, an
// unknown outcome, an expiry, a first-sent time, a malformed or missing key, a body that is refused.
func TestH15NobodyIsToldAnythingBeforeTheyAreAuthorised(t *testing.T) {
	a := newAPI(t, nil)
	gone := idem.IETF()
	gone.GoneAfterExpiry, gone.KeepFor, gone.KeyTime = true, day, idem.KeyTimeEither
	var runs atomic.Int64
	a.handle("POST /orders", idem.Operation{Policy: gone}, middleware.Route{}, counting(&runs))
	a.wrap("POST /wrapped", idem.Operation{Name: "orders.wrap"}, func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	})
	a.do(ask{keys: []string{"expired"}}).wants(t, 201, "executed")
	a.later(day + time.Minute)
	a.do(ask{keys: []string{"live"}}).wants(t, 201, "executed")
	a.do(key(ask{path: "/wrapped"})).wants(t, 502, "unknown")
	for name, c := range map[string]struct {
		ask    ask
		status int
	}{
		"replay":         {ask{keys: []string{"live"}}, 201},
		"mismatch":       {ask{keys: []string{"live"}, body: `{"a":1}`}, 422},
		"unknown":        {key(ask{path: "/wrapped"}), 409},
		"expired":        {ask{keys: []string{"expired"}}, 410},
		"first sent":     {sent(ask{keys: []string{"new"}}, "1994-11-06T08:49:37Z"), 412},
		"malformed time": {sent(ask{keys: []string{"new"}}, "yesterday"), 400},
		"time in a key":  {ask{keys: []string{"01890a5d-ac96-774b-bcce-b302099a8057"}}, 410},
		"missing key":    {ask{}, 400},
		"malformed key":  {ask{keys: []string{"a", "b"}}, 400},
		"malformed body": {ask{keys: []string{"new"}, body: "{"}, 400},
	} {
		if r := a.do(c.ask); r.StatusCode != c.status {
			t.Errorf("%s of its owner: %d %s, want %d", name, r.StatusCode, r.body, c.status)
		}
		for tenant, want := range map[string]int{"-": 401, "wrong": 403, "outage": 503} {
			q := c.ask
			q.tenant = tenant
			r := a.do(q)
			r.wants(t, want, "")
			if r.Header.Get("Idempotency-Expires") != "" || r.Header.Get("Location") != "" {
				t.Errorf("%s for %s: %v", name, tenant, r.Header)
			}
		}
		// I5: to another tenant the key is simply absent.
		if q := c.ask; c.status == 201 || c.status == 410 && name == "expired" {
			q.tenant = "tenant-" + q.keys[0]
			a.do(q).wants(t, 201, "executed")
		}
	}
	if got := runs.Load(); got != 5 {
		t.Errorf("%d runs", got)
	}
}

// peers.md H14 meets H12: a request that fails the validation of today is looked up first. Its live record answers, however
// old the client says that it is; where no record is live, the request's own fault is the answer and not its age.
func TestH14ValidationMeetsExpiry(t *testing.T) {
	for _, policy := range []idem.Policy{idem.IETF(), withTombstone(), withKeyTime()} {
		t.Run(policy.Name, func(t *testing.T) {
			a := newAPI(t, nil)
			var tightened atomic.Bool
			var runs atomic.Int64
			a.handle("POST /orders", idem.Operation{Policy: policy}, middleware.Route{Validate: func(*middleware.Request) *idem.Problem {
				if !tightened.Load() {
					return nil
				}
				problem := idem.NewProblem(400, "request_invalid", "Invalid request", "The request is not valid any more.")
				return &problem
			}}, counting(&runs))
			start := a.now()
			mine := keyAt(start)
			first := a.do(mine)
			first.wants(t, 201, "executed")
			tightened.Store(true)
			a.later(day - time.Minute)
			for _, q := range []ask{mine, sent(mine, rfc3339(start)), sent(mine, "1994-11-06T08:49:37Z")} {
				again := a.do(q)
				again.wants(t, 201, "replayed")
				if string(again.body) != string(first.body) {
					t.Errorf("%s, then %s", first.body, again.body)
				}
			}
			other := sent(mine, rfc3339(start))
			other.body = `{"a":1}`
			a.do(other).wants(t, 422, "mismatch")

			a.later(day)
			for range 2 {
				for _, q := range []ask{mine, sent(mine, rfc3339(start))} {
					a.do(q).refuses(t, 400, "request_invalid")
				}
				a.later(2 * day)
				a.mem.Expire(a.now().Add(late))
			}
			if runs.Load() != 1 || len(a.mem.Records()) != 0 {
				t.Errorf("%d runs, %d records", runs.Load(), len(a.mem.Records()))
			}
		})
	}
}

func withTombstone() idem.Policy {
	p := idem.IETF()
	p.Name, p.GoneAfterExpiry, p.KeepFor = "with a tombstone", true, day
	return p
}

func withKeyTime() idem.Policy {
	p := idem.IETF()
	p.Name, p.GoneAfterExpiry, p.KeyTime, p.KeyTimeRequired = "with a time in the key", true, idem.KeyTimeUUIDv7, true
	return p
}
