package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/internal/principal"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// chain answers for the messages of any operation, by their position.
type chain struct {
	states []storage.MessageState
	doneAt time.Time // of those that have ended
	err    error
}

func (c chain) Message(_ context.Context, id idem.MessageID) (*storage.Message, error) {
	_, n, err := id.Operation()
	if err != nil || c.err != nil || n > len(c.states) {
		return nil, errors.Join(err, c.err)
	}
	return &storage.Message{ID: id, State: c.states[n-1], DoneAt: c.doneAt}, nil
}

type operationStatus struct {
	ID          idem.OperationID `json:"id"`
	State       string           `json:"state"`
	CreatedAt   string           `json:"created_at"`
	CompletedAt *string          `json:"completed_at"`
	Response    *struct {
		Status       int               `json:"status"`
		Headers      map[string]string `json:"headers"`
		Body         string            `json:"body"`
		BodyEncoding string            `json:"body_encoding"`
	} `json:"response"`
}

// stored puts a record of tenant-a there and returns its id.
func (a *api) stored(key string, change func(*storage.Record)) idem.OperationID {
	a.Helper()
	scope := idem.Scope{Tenant: "tenant-a", Operation: "orders.create", Key: key}
	id, err := storage.IDGenerator{Random: strings.NewReader("0123456789abcdef")}.OperationID(scope.RecordKey())
	if err != nil {
		a.Fatal(err)
	}
	now := a.now().UTC().Truncate(time.Millisecond)
	r := storage.Record{
		Key: scope.RecordKey(), State: storage.StatePending, OperationID: id, Epoch: 1, Owner: "owner", Tenant: "tenant-a", Operation: "orders.create",
		Kind: idem.KindDeferred, CreatedAt: now, Retention: day, Attempts: 1, SchemaVersion: storage.SchemaVersion,
	}
	change(&r)
	if err := a.mem.Insert(a.Context(), r, now); err != nil {
		a.Fatal(err)
	}
	return id
}

func (a *api) status(id idem.OperationID, tenant string) *reply {
	a.Helper()
	return a.do(ask{method: "GET", path: "/v1/operations/" + string(id), tenant: tenant})
}

// The Location of a 202 leads to the operation's status, from its acceptance to its final answer.
func TestTheLocationOfA202ShowsTheOperation(t *testing.T) {
	a := newAPI(t, nil)
	r := a.mw.NewRouter()
	r.Handle("POST /orders", withDefaults(idem.Operation{}, idem.KindDeferred), middleware.Route{},
		func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
			tx.Send("orders.ship", []byte("1"))
			return idem.JSON(http.StatusAccepted, 1)
		})
	r.Status(a.mem)
	a.mux.Handle("/", r)
	accepted := a.do(key(ask{}))
	location := accepted.Header.Get("Location")
	got := a.do(ask{method: "GET", path: location})
	var status operationStatus
	if err := json.Unmarshal(got.body, &status); err != nil || got.StatusCode != 200 || got.Header.Get("Retry-After") != "1" || status.State != "pending" ||
		!strings.HasSuffix(location, string(status.ID)) || status.Response != nil || status.CompletedAt != nil {
		t.Errorf("%s: %d %s (%v)", location, got.StatusCode, got.body, err)
	}
}

func TestStatusShowsRecordAndMessageTogether(t *testing.T) {
	pending := func(*storage.Record) {}
	in := func(state storage.State) func(*storage.Record) {
		return func(r *storage.Record) {
			r.State, r.Kind, r.LeaseUntil = state, idem.KindWrapped, r.CreatedAt.Add(time.Minute)
		}
	}
	for name, c := range map[string]struct {
		record   func(*storage.Record)
		messages middleware.Messages
		want     string
	}{
		"running":                   {in(storage.StateInProgress), nil, "in_progress"},
		"free again":                {in(storage.StateFailedRetryable), nil, "in_progress"},
		"unknown":                   {in(storage.StateUnknown), nil, "unknown"},
		"pending, nobody asks":      {pending, nil, "pending"},
		"not claimed":               {pending, chain{states: []storage.MessageState{storage.MessagePending}}, "pending"},
		"claimed":                   {pending, chain{states: []storage.MessageState{storage.MessageClaimed}}, "in_progress"},
		"may have happened":         {pending, chain{states: []storage.MessageState{storage.MessageUnknown}}, "unknown"},
		"given up":                  {pending, chain{states: []storage.MessageState{storage.MessageDead}}, "unknown"},
		"second of a chain":         {pending, chain{states: []storage.MessageState{storage.MessageDelivered, storage.MessageClaimed}}, "in_progress"},
		"delivered since":           {pending, chain{states: []storage.MessageState{storage.MessageDelivered}, doneAt: time.Now()}, "pending"},
		"a chain as long as can be": {pending, chain{states: slicesOf(99, storage.MessageDeclined), doneAt: time.Now()}, "pending"},
	} {
		a := newAPI(t, nil)
		a.mux.Handle("GET /v1/operations/{id}", a.mw.Status(c.messages))
		r := a.status(a.stored("k", c.record), "tenant-a")
		var status operationStatus
		if err := json.Unmarshal(r.body, &status); err != nil || r.StatusCode != 200 || status.State != c.want || r.Header.Get("Retry-After") == "" || status.Response != nil {
			t.Errorf("%s: %d %s, want %s", name, r.StatusCode, r.body, c.want)
		}
	}
}

func slicesOf[T any](n int, v T) (all []T) {
	for range n {
		all = append(all, v)
	}
	return all
}

func TestStatusShowsTheFinalAnswerByteForByte(t *testing.T) {
	for state, want := range map[storage.State]string{storage.StateCompleted: "completed", storage.StateFailed: "failed"} {
		for body, encoded := range map[string]struct{ body, encoding string }{
			"": {"", ""}, "na\u00efve \u2028<&>": {"na\u00efve \u2028<&>", ""}, "\xff\xfe": {"//4=", "base64"},
		} {
			a := newAPI(t, nil)
			a.mux.Handle("/v1/operations/", a.mw.Status(nil))
			id := a.stored("k", func(r *storage.Record) {
				r.State, r.DoneAt, r.ExpiresAt = state, r.CreatedAt.Add(time.Second), r.CreatedAt.Add(day)
				r.Response = idem.Response{Status: 201, Header: []idem.Field{{Name: "x-a", Value: "1"}, {Name: "X-A", Value: "2"}}, Body: []byte(body)}
			})
			r := a.status(id, "tenant-a")
			var got operationStatus
			if err := json.Unmarshal(r.body, &got); err != nil || r.StatusCode != 200 || got.State != want || got.ID != id || got.CompletedAt == nil || r.Header.Get("Retry-After") != "" {
				t.Fatalf("%s: %d %s", state, r.StatusCode, r.body)
			}
			if got.Response.Status != 201 || got.Response.Body != encoded.body || got.Response.BodyEncoding != encoded.encoding || got.Response.Headers["X-A"] != "1, 2" {
				t.Errorf("%q: %+v", body, got.Response)
			}
		}
	}
}

func TestStatusOfWhatTheTenantDoesNotHaveIsNotFound(t *testing.T) {
	a := newAPI(t, nil)
	a.mux.Handle("GET /v1/operations/{id}", a.mw.Status(chain{}))
	id := a.stored("k", func(r *storage.Record) { r.State, r.Kind = storage.StateUnknown, idem.KindWrapped })
	expired := a.stored("old", func(r *storage.Record) {
		r.State, r.CreatedAt, r.DoneAt, r.ExpiresAt = storage.StateCompleted, r.CreatedAt.Add(-2*day), r.CreatedAt.Add(-2*day), r.CreatedAt.Add(-day)
		r.FreeAt = r.ExpiresAt
	})
	for _, c := range []struct {
		id     idem.OperationID
		tenant string
	}{{id, "tenant-b"}, {id + "x", "tenant-a"}, {"nothing", "tenant-a"}, {expired, "tenant-a"}} {
		if r := a.status(c.id, c.tenant); r.StatusCode != 404 || r.code(t) != "operation_not_found" {
			t.Errorf("%s of %s: %d %s", c.id, c.tenant, r.StatusCode, r.body)
		}
	}
	if r := a.status(id, "-"); r.StatusCode != 401 {
		t.Errorf("nobody: %d", r.StatusCode)
	}
	gone := a.stored("gone", func(r *storage.Record) {
		r.State, r.CreatedAt, r.DoneAt, r.ExpiresAt = storage.StateCompleted, r.CreatedAt.Add(-2*day), r.CreatedAt.Add(-2*day), r.CreatedAt.Add(-day)
		r.Expiry = storage.Expiry{KeepFor: 7 * day, Gone: true}
		r.FreeAt = r.ExpiresAt.Add(r.Expiry.KeepFor)
	})
	if r := a.status(gone, "tenant-a"); r.StatusCode != 410 || r.code(t) != header.CodeKeyExpired {
		t.Errorf("kept as gone: %d", r.StatusCode)
	}
}

// semantics.md "Words", scope: where keys are the principal's, so is what became of them. An id alone opens no answer of another session.
func TestStatusIsThePrincipalsWhereItsKeysAre(t *testing.T) {
	a := newAPI(t, nil)
	a.mux.Handle("GET /v1/operations/{id}", a.mw.Status(chain{}))
	mine := a.stored("k", func(r *storage.Record) {
		r.State, r.Kind, r.Principal = storage.StateUnknown, idem.KindWrapped, principal.Stored("tenant-a", "session-1")
	})
	for caller, want := range map[string]int{"tenant-a/session-1": 200, "tenant-a/session-2": 404, "tenant-a": 404} {
		if r := a.status(mine, caller); r.StatusCode != want {
			t.Errorf("%s got %d %s, want %d", caller, r.StatusCode, r.body, want)
		}
	}
}

func TestStatusIsNotGuessedWhereTheMessageCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		messages middleware.Messages
		want     int
	}{
		"an outage": {chain{err: errors.New("down")}, 503}, "a chain without messages": {chain{}, 500},
		"a chain that ended an hour ago":      {chain{states: slicesOf(2, storage.MessageDelivered), doneAt: time.Now().Add(-time.Hour)}, 500},
		"a long chain that ended long before": {chain{states: slicesOf(99, storage.MessageDeclined)}, 500},
	} {
		a := newAPI(t, nil)
		a.mux.Handle("GET /v1/operations/{id}", a.mw.Status(c.messages))
		if r := a.status(a.stored("k", func(*storage.Record) {}), "tenant-a"); r.StatusCode != c.want || (r.Header.Get("Retry-After") != "") != (c.want == 503) {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
		// A record that waits for nothing is torn by a loss, and nobody else looks for it: an alarm rings. An outage is no such thing.
		if rings := strings.Contains(a.log.String(), `"msg":"outbox.message_gone"`) && strings.Contains(a.log.String(), `"alarm":true`); rings != (c.want == 500) {
			t.Errorf("%s: the log is %s", name, a.log)
		}
	}
}

// meanwhile answers for the messages of an operation that ends while they are read.
type meanwhile struct {
	middleware.Messages
	once func()
}

func (m *meanwhile) Message(ctx context.Context, id idem.MessageID) (*storage.Message, error) {
	if m.once != nil {
		m.once()
		m.once = nil
	}
	return m.Messages.Message(ctx, id)
}

// becomes writes the operation's record anew, as another process does.
func (a *api) becomes(id idem.OperationID, change func(*storage.Record)) {
	a.Helper()
	key, err := id.RecordKey()
	if err != nil {
		a.Fatal(err)
	}
	r, err := a.mem.Get(a.Context(), key)
	if err != nil {
		a.Fatal(err)
	}
	next := *r
	next.Revision = "after"
	change(&next)
	if err := a.mem.Update(a.Context(), next, storage.FenceOf(*r)); err != nil {
		a.Fatal(err)
	}
}

// A process may be frozen between the record and its messages, and the operation end meanwhile: it is whole, and nobody is called for it.
func TestAnOperationThatEndsWhileItsStatusIsReadIsWhole(t *testing.T) {
	for name, c := range map[string]struct {
		becomes storage.State
		want    string
	}{"it ends": {storage.StateCompleted, "completed"}, "it fails": {storage.StateFailed, "failed"}} {
		a := newAPI(t, nil)
		pending := func(r *storage.Record) { r.Revision = "before" }
		id := a.stored("k", pending)
		frozen := &meanwhile{Messages: chain{states: slicesOf(2, storage.MessageDelivered), doneAt: a.now()}}
		frozen.once = func() {
			a.becomes(id, func(r *storage.Record) {
				r.State, r.Response = c.becomes, idem.Response{Status: 201}
				r.DoneAt, r.ExpiresAt, r.FreeAt = r.CreatedAt, r.CreatedAt.Add(day), r.CreatedAt.Add(day)
			})
			a.later(2 * time.Minute)
		}
		a.mux.Handle("GET /v1/operations/{id}", a.mw.Status(frozen))
		r := a.status(id, "tenant-a")
		var status operationStatus
		if err := json.Unmarshal(r.body, &status); err != nil || r.StatusCode != 200 || status.State != c.want || status.Response == nil {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
		if strings.Contains(a.log.String(), "outbox.message_gone") {
			t.Errorf("%s: the log is %s", name, a.log)
		}
	}
}

// lookUps is a quota with so many look-ups left.
type lookUps struct {
	usedUp
	left *int
}

func (l lookUps) LookUp(context.Context, string) error {
	if *l.left--; *l.left < 0 {
		return &idem.QuotaError{Limit: "look-ups per second", RetryAfter: time.Second}
	}
	return nil
}

// The second look at a torn operation is the server's: a tenant that has used up its look-ups rings the alarm all the same.
func TestATornOperationIsToldOfWithTheLastLookUp(t *testing.T) {
	a := newAPI(t, nil)
	left := 1
	var err error
	if a.engine, err = idem.New(a.mem, idem.Config{Quota: lookUps{left: &left}}); err != nil {
		t.Fatal(err)
	}
	if a.mw, err = middleware.New(a.engine, middleware.Config{Identify: identify, Logger: slog.New(slog.NewJSONHandler(a.log, nil))}); err != nil {
		t.Fatal(err)
	}
	a.mux.Handle("GET /v1/operations/{id}", a.mw.Status(chain{}))
	r := a.status(a.stored("k", func(*storage.Record) {}), "tenant-a")
	if r.StatusCode != 500 || !strings.Contains(a.log.String(), `"msg":"outbox.message_gone"`) {
		t.Errorf("%d %s, the log is %s", r.StatusCode, r.body, a.log)
	}
}

// A second look that meets trouble, or the tombstone of what has expired meanwhile, says so. A 404 would tell the client that there is no such
// operation, so that it asks no more.
func TestTheSecondLookAtATornOperationSaysWhatItMeets(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(a *api, store *faulty.Store, id idem.OperationID)
		status    int
		code      string
	}{
		"the store does not answer": {func(_ *api, store *faulty.Store, _ idem.OperationID) {
			store.On(faulty.Get, 1, faulty.LoseRequest())
		}, 503, header.CodeStoreUnavailable},
		"it has expired": {func(a *api, _ *faulty.Store, id idem.OperationID) {
			a.becomes(id, func(r *storage.Record) {
				r.State, r.DoneAt, r.ExpiresAt = storage.StateCompleted, r.CreatedAt.Add(-2*day), r.CreatedAt.Add(-day)
				r.Expiry = storage.Expiry{KeepFor: 7 * day, Gone: true}
				r.FreeAt = r.ExpiresAt.Add(r.Expiry.KeepFor)
			})
		}, 410, header.CodeKeyExpired},
	} {
		t.Run(name, func(t *testing.T) {
			var store *faulty.Store
			a := newLocalAPI(t, func(inner storage.Store) storage.Store {
				store = faulty.New(inner.(*memstore.Store))
				return store
			})
			id := a.stored("k", func(r *storage.Record) { r.Revision = "before" })
			torn := &meanwhile{Messages: chain{}, once: func() { c.meanwhile(a, store, id) }}
			a.mux.Handle("GET /v1/operations/{id}", a.mw.Status(torn))
			r := a.status(id, "tenant-a")
			if r.StatusCode != c.status || r.code(t) != c.code || (r.Header.Get("Retry-After") != "") != (c.status == 503) {
				t.Errorf("%d %s, Retry-After %q; want %d %s", r.StatusCode, r.body, r.Header.Get("Retry-After"), c.status, c.code)
			}
			if strings.Contains(a.log.String(), "outbox.message_gone") {
				t.Errorf("the log is %s", a.log)
			}
		})
	}
}

// hanging answers for no message until its caller gives up.
type hanging struct{ middleware.Messages }

func (hanging) Message(ctx context.Context, _ idem.MessageID) (*storage.Message, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// docs/design.md "What the system promises", 3: also where the table of messages hangs, and the platform ends the process at the deadline.
func TestAStatusWhoseMessagesHangIsAnsweredBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newLocalAPI(t, nil)
		id := a.stored("k", func(*storage.Record) {})
		const deadline = 3 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/operations/"+string(id), nil)
		r.Header.Set("Authorization", "Bearer tenant-a")
		began, w := time.Now(), httptest.NewRecorder()
		a.mw.Status(hanging{}).ServeHTTP(w, r)
		if took := time.Since(began); w.Code != 503 || took >= deadline {
			t.Errorf("%d after %v", w.Code, took)
		}
	})
}

// A caller without a deadline waits for no longer than an execution may take.
func TestAStatusWhoseMessagesHangIsAnsweredWithoutADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newLocalAPI(t, nil)
		id := a.stored("k", func(*storage.Record) {})
		a.mux.Handle("GET /v1/operations/{id}", a.mw.Status(hanging{}))
		began := time.Now()
		r := a.status(id, "tenant-a")
		if took := time.Since(began); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" || took > 25*time.Second {
			t.Errorf("%d after %v", r.StatusCode, took)
		}
	})
}
