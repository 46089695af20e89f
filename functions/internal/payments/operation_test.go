package payments_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// docs/payments-api.md GET /v1/operations/{id}: the response is null until it is final, and then the final answer's exact
// bytes. What is unknown, failed and declined: fault_test.go.
func TestOperationShowsTheFinalAnswer(t *testing.T) {
	onBoth(t, func(w *world) {
		a := w.pay("k", "card_ok")
		pending := w.operation(a.Operation)
		if pending.ID != a.Operation || pending.State != "pending" || pending.CreatedAt != "2101-02-03T12:00:00.789Z" || pending.Response != nil {
			w.Errorf("pending: %+v", pending)
		}
		w.clock.Advance(time.Second)
		w.deliver(a.Operation)
		final := w.again("k", "card_ok").want(201)
		done := w.operation(a.Operation)
		if done.State != "completed" || *done.CompletedAt != "2101-02-03T12:00:01.789Z" {
			w.Errorf("completed: %+v", done)
		}
		if r := done.Response; r.Status != 201 || r.Body != final.body || r.BodyEncoding != "" || r.Headers["Content-Type"] != "application/json" {
			w.Errorf("response %+v, want %s", r, final.body)
		}
		w.send("GET", tenantA, "/v1/operations/"+string(a.Operation), "", `Idempotency-Key: "k"`).want(200, "Idempotency-Status: ignored")
	})
}

// A transfer that runs has an operation too; after a release its next request runs it, so that it is still in progress.
func TestOperationOfARunningTransfer(t *testing.T) {
	onBoth(t, func(w *world) {
		key := idem.Scope{Tenant: tenantA, Operation: "transfers.create", Key: "k"}.RecordKey()
		running := func() operation {
			r, err := w.backend.store.Get(w.Context(), key)
			w.ok(err)
			if r == nil {
				w.Fatal("there is no record")
			}
			return w.operation(r.OperationID)
		}
		var during operation
		w.store.On(faulty.Commit, 1, faulty.Before(func() { during = running() }))
		for n := range 6 {
			w.store.On(faulty.Commit, n+1, faulty.Refuse(storage.ErrThrottled))
		}
		w.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_2", 500)).problem(503, "idempotency_store_unavailable")
		if during.State != "in_progress" || during.Response != nil {
			w.Errorf("running: %+v", during)
		}
		if released := running(); released.State != "in_progress" || released.ID != during.ID {
			w.Errorf("released: %+v", released)
		}
		w.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_2", 500)).want(201, "Idempotency-Status: executed")
		if done := running(); done.State != "completed" || done.ID != during.ID || done.Response.Status != 201 {
			w.Errorf("completed: %+v", done)
		}
		w.balances(tenantA, seedBalance-500, 500)
	})
}

// "body a string of the exact bytes (base64, and body_encoding says so, where they are not UTF-8)", small and in chunks.
func TestOperationShowsExactBytes(t *testing.T) {
	onBoth(t, func(w *world) {
		large := make([]byte, 700<<10)
		for i := range large {
			large[i] = byte(i * i >> 3)
		}
		for name, c := range map[string]struct {
			body     []byte
			encoding string
		}{
			"empty": {nil, ""}, "text": {[]byte("naïve \u2028 <&> \x00"), ""}, "binary": {[]byte{0xff, 0xfe, 0}, "base64"}, "large": {large, "base64"},
		} {
			id := w.stored(name, c.body)
			got := w.operation(id).Response
			body := []byte(got.Body)
			if got.BodyEncoding == "base64" {
				var err error
				body, err = base64.StdEncoding.DecodeString(got.Body)
				w.ok(err)
			}
			if string(body) != string(c.body) || got.BodyEncoding != c.encoding || got.Headers["X-Made-By"] != "test" {
				w.Errorf("%s: %d bytes in %q, want %d in %q; headers %v", name, len(body), got.BodyEncoding, len(c.body), c.encoding, got.Headers)
			}
		}
	})
}

// stored puts a completed record with the body there, as another application on the same tables would.
func (w *world) stored(key string, body []byte) idem.OperationID {
	w.Helper()
	mint := storage.IDGenerator{Random: zeros{}}
	scope := idem.Scope{Tenant: tenantA, Operation: "documents.render", Key: key}
	id, err := mint.OperationID(scope.RecordKey())
	w.ok(err)
	now := w.clock.Now()
	w.ok(w.backend.store.Insert(w.Context(), storage.Record{
		Key: scope.RecordKey(), State: storage.StateCompleted, OperationID: id, Epoch: 1, Owner: "AAAAAAAAAAAAAAAAAAAAAA", Revision: "BBBBBBBBBBBBBBBBBBBBBA", Tenant: tenantA,
		Operation: scope.Operation, Kind: idem.KindAtomic, Fingerprint: canonical.Fingerprint{Version: 1},
		Response:  idem.Response{Status: 200, Header: []idem.Field{{Name: "x-made-by", Value: "test"}}, Body: body},
		CreatedAt: now, DoneAt: now, ExpiresAt: now.Add(time.Hour), Retention: time.Hour, Attempts: 1, SchemaVersion: storage.SchemaVersion,
	}, now))
	return id
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
