package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
)

const (
	day  = 24 * time.Hour
	skew = 2 * time.Second // the default of idem.Config.ClockSkew
	// late is how much longer than its key is held a record is kept: a request may be that late on the wire.
	late = 16 * time.Minute
)

func sent(q ask, value string) ask {
	q.header = map[string]string{"Idempotency-First-Sent": value}
	return q
}

func rfc3339(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

func httpDate(at time.Time) string { return at.UTC().Format(http.TimeFormat) }

// refuses checks a problem and that it says nothing of a record.
func (r *reply) refuses(t *testing.T, status int, code string) {
	t.Helper()
	if got := r.code(t); r.StatusCode != status || got != code {
		t.Errorf("got %d %s, want %d %s", r.StatusCode, got, status, code)
	}
	for _, name := range []string{"Idempotency-Expires", "Idempotency-Status", "Idempotent-Replayed", "Retry-After"} {
		if value := r.Header.Get(name); value != "" {
			t.Errorf("%d with %s: %s", status, name, value)
		}
	}
}

// semantics.md "On the wire": Idempotency-First-Sent in the future → 400, older than the retention and no live record →
// 412; whatever the policy.
func TestFirstSent(t *testing.T) {
	for _, policy := range []idem.Policy{idem.IETF(), idem.Stripe(), idem.Lenient()} {
		t.Run(policy.Name, func(t *testing.T) {
			a := newAPI(t, nil)
			var runs atomic.Int64
			a.handle("POST /orders", idem.Operation{Policy: policy}, middleware.Route{}, counting(&runs))
			start := a.now()
			for name, value := range map[string]string{
				"no time": "yesterday", "empty": "", "epoch seconds": "784111777", "joined by a gateway": rfc3339(start) + ", " + rfc3339(start),
				"in the future": rfc3339(start.Add(3 * time.Minute)), "an HTTP date in the future": httpDate(start.Add(time.Hour)),
			} {
				t.Log(name)
				a.do(sent(key(ask{}), value)).refuses(t, 400, header.CodeKeyInvalid)
			}
			for _, value := range []string{rfc3339(start.Add(-day)), httpDate(start.Add(-2 * day)), "1994-11-06T08:49:37Z", "0001-01-01T00:00:00Z"} {
				a.do(sent(key(ask{}), value)).refuses(t, 412, header.CodeKeyExpired)
			}
			if len(a.mem.Records()) != 0 || runs.Load() != 0 {
				t.Fatalf("%d records, %d runs of requests that were refused", len(a.mem.Records()), runs.Load())
			}
			a.do(sent(key(ask{}), rfc3339(start.Add(time.Minute)))).wants(t, 201, "executed")
			a.later(day - time.Minute)
			a.do(sent(key(ask{}), rfc3339(start.Add(-day)))).wants(t, 201, "replayed") // peers.md H12
			a.later(2 * time.Minute)
			a.do(sent(key(ask{}), rfc3339(start))).refuses(t, 412, header.CodeKeyExpired)
			a.mem.Expire(a.now().Add(late))
			a.do(sent(key(ask{}), rfc3339(start))).refuses(t, 412, header.CodeKeyExpired)
			a.do(key(ask{})).wants(t, 201, "executed") // a client that does not say is not protected
		})
	}
}

// Without a key there is nothing that the header could be about.
func TestFirstSentWithoutAKeyIsIgnored(t *testing.T) {
	a := newAPI(t, nil)
	a.handle("POST /orders", idem.Operation{Policy: idem.Stripe()}, middleware.Route{}, counting(new(atomic.Int64)))
	a.do(sent(ask{}, "1994-11-06T08:49:37Z")).wants(t, 201, "unprotected")
}

// semantics.md "Policies", after expiry: 410 as long as the tombstone stands, then a new request.
func TestGoneAfterExpiry(t *testing.T) {
	policy := idem.IETF()
	policy.GoneAfterExpiry, policy.KeepFor = true, 7*day
	a := newAPI(t, nil)
	var runs atomic.Int64
	var refuse atomic.Bool
	validate := func(*middleware.Request) *idem.Problem {
		if !refuse.Load() {
			return nil
		}
		p := idem.NewProblem(400, "request_invalid", "Invalid", "Tighter than before.")
		return &p
	}
	a.handle("POST /orders", idem.Operation{Policy: policy}, middleware.Route{Validate: validate}, counting(&runs))
	a.showOperations()
	first := a.do(key(ask{}))
	first.wants(t, 201, "executed")
	status := ask{method: "GET", path: "/v1/operations/" + string(a.mem.Records()[0].OperationID)}
	if got := a.do(status); got.StatusCode != 200 {
		t.Errorf("status %d", got.StatusCode)
	}
	a.later(day)
	for range 2 {
		a.do(key(ask{})).refuses(t, 410, header.CodeKeyExpired)
		a.do(key(ask{body: `{"other":true}`})).refuses(t, 410, header.CodeKeyExpired)
		a.do(sent(key(ask{}), rfc3339(a.now().Add(-day)))).refuses(t, 410, header.CodeKeyExpired)
		a.do(status).refuses(t, 410, header.CodeKeyExpired)
		foreign := status
		foreign.tenant = "tenant-b"
		a.do(foreign).refuses(t, 404, "not_found")
		a.mem.Expire(a.now().Add(late)) // not yet
	}
	refuse.Store(true)
	a.do(key(ask{})).refuses(t, 400, "request_invalid")
	refuse.Store(false)
	a.later(7*day + skew)
	a.do(status).refuses(t, 404, "not_found")
	a.do(key(ask{})).wants(t, 201, "executed")
	if runs.Load() != 2 {
		t.Errorf("%d runs, want 2", runs.Load())
	}
}

// showOperations serves the states of operations.
func (a *api) showOperations() {
	a.mux.Handle("GET /v1/operations/{id}", a.mw.Read(func(ctx context.Context, r *middleware.Request) (idem.Response, error) {
		record, err := a.engine.Status(ctx, r.Identity.Tenant, idem.OperationID(r.PathValue("id")))
		switch {
		case err != nil:
			return idem.Response{}, err
		case record == nil:
			return idem.NewProblem(404, "not_found", "Not Found", "There is no such operation.").Response(), nil
		}
		return idem.JSON(200, record.State)
	}))
}

func keyAt(at time.Time) ask {
	ms := fmt.Sprintf("%012x", at.UnixMilli())
	return ask{keys: []string{`"` + ms[:8] + "-" + ms[8:] + `-7abc-8def-0123456789ab"`}}
}

// A time in the key: 400 without or ahead, 410 by policy once it is too old, 412 where the client's own header says so.
func TestKeyTime(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("gone after expiry ", after), func(t *testing.T) {
			policy := idem.IETF()
			policy.MissingKey = idem.MissingKeyUnprotected
			policy.GoneAfterExpiry, policy.KeyTime, policy.KeyTimeRequired = after, idem.KeyTimeUUIDv7, true
			a := newAPI(t, nil)
			a.handle("POST /orders", idem.Operation{Policy: policy}, middleware.Route{}, counting(new(atomic.Int64)))
			start := a.now()
			a.do(key(ask{})).refuses(t, 400, header.CodeKeyInvalid)
			a.do(keyAt(start.Add(time.Hour))).refuses(t, 400, header.CodeKeyInvalid)
			a.do(ask{}).wants(t, 201, "unprotected")
			a.do(keyAt(start)).wants(t, 201, "executed")
			a.do(keyAt(start)).wants(t, 201, "replayed")
			a.later(day + skew + time.Second) // TTL is in seconds
			a.mem.Expire(a.now().Add(late))
			want := map[bool]int{false: 412, true: 410}[after]
			a.do(keyAt(start)).refuses(t, want, header.CodeKeyExpired)
			a.do(sent(keyAt(start), rfc3339(start))).refuses(t, 412, header.CodeKeyExpired)
			a.do(keyAt(a.now())).wants(t, 201, "executed")
		})
	}
}

// Idempotency-Expires says until when a key answers: it follows an extension, and is not there where no end is known.
func TestIdempotencyExpires(t *testing.T) {
	a := newAPI(t, nil)
	policy := idem.IETF()
	policy.ResourceBacked = true
	a.handle("POST /orders", idem.Operation{}, middleware.Route{}, counting(new(atomic.Int64)))
	a.handle("POST /backed", idem.Operation{Name: "orders.backed", Policy: policy}, middleware.Route{}, counting(new(atomic.Int64)))
	a.do(key(ask{})).wants(t, 201, "executed")
	r := a.mem.Records()[0]
	until, err := a.engine.Extend(t.Context(), "tenant-a", r.OperationID, r.DoneAt.Add(30*day))
	if err != nil {
		t.Fatal(err)
	}
	a.later(29 * day)
	again := a.do(key(ask{}))
	again.wants(t, 201, "replayed")
	if got := again.Header.Get("Idempotency-Expires"); got != until.Format("2006-01-02T15:04:05.000Z07:00") {
		t.Errorf("Idempotency-Expires: %q, want %v", got, until)
	}
	for _, status := range []string{"executed", "replayed"} {
		backed := a.do(key(ask{path: "/backed"}))
		backed.wants(t, 201, status)
		if got := backed.Header.Get("Idempotency-Expires"); got != "" || !json.Valid(backed.body) {
			t.Errorf("a record without an end says that it expires %q", got)
		}
		a.later(100 * day)
	}
}
