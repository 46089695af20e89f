package middleware_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/storage"
)

// semantics.md "On the wire": the errors, their codes, and that none of them reserves or stores anything.
func TestRefusals(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	a.handle("POST /orders", idem.Operation{}, middleware.Route{}, counting(&runs))
	strict := idem.IETF()
	strict.Syntax = idem.SyntaxStrict
	a.handle("POST /strict", idem.Operation{Name: "orders.strict", Policy: strict}, middleware.Route{}, counting(&runs))
	long := strings.Repeat("k", 256)
	for _, test := range []struct {
		clause string
		ask    ask
		status int
		code   string
	}{
		{"no credentials", key(ask{tenant: "-"}), 401, "unauthorized"},
		{"wrong credentials", key(ask{tenant: "wrong"}), 403, "forbidden"},
		{"with a problem of its own", key(ask{tenant: "suspended"}), 403, "suspended"},
		{"nobody can authenticate", key(ask{tenant: "outage"}), 503, header.CodeStoreUnavailable},
		{"refused without a status", key(ask{tenant: "without a status"}), 503, header.CodeStoreUnavailable},
		{"no tenant fails closed", key(ask{tenant: "misconfigured"}), 500, "internal_error"},
		{"authentication comes before the key", ask{tenant: "-"}, 401, "unauthorized"},
		{"a panic is an answer", key(ask{tenant: "panics"}), 500, "internal_error"},
		{"key missing", ask{}, 400, header.CodeKeyMissing},
		{"key empty", ask{keys: []string{""}}, 400, header.CodeKeyInvalid},
		{"key an empty string", ask{keys: []string{`""`}}, 400, header.CodeKeyInvalid},
		{"key malformed", ask{keys: []string{`"abc`}}, 400, header.CodeKeyInvalid},
		{"key of 256 characters", ask{keys: []string{long}}, 400, header.CodeKeyInvalid},
		{"key of 256 characters, quoted", ask{keys: []string{`"` + long + `"`}}, 400, header.CodeKeyInvalid},
		{"two lines", ask{keys: []string{"a", "a"}}, 400, header.CodeKeyInvalid},
		{"joined by a gateway", ask{keys: []string{`"a", "b"`}}, 400, header.CodeKeyInvalid},
		{"bare with a comma", ask{keys: []string{`a,b`}}, 400, header.CodeKeyInvalid},
		{"parameters", ask{keys: []string{`"a";p=1`}}, 400, header.CodeKeyInvalid},
		{"bare where the policy is strict", ask{path: "/strict", keys: []string{`abc`}}, 400, header.CodeKeyInvalid},
		{"no content type", key(ask{contentType: "-"}), 415, "unsupported_media_type"},
		{"another content type", key(ask{contentType: "text/plain"}), 415, "unsupported_media_type"},
		{"malformed content type", key(ask{contentType: "application/json; a"}), 415, "unsupported_media_type"},
		{"coded body", key(ask{header: map[string]string{"Content-Encoding": "gzip"}}), 415, "unsupported_media_type"},
		{"body above 256 KiB", key(ask{body: `"` + strings.Repeat("a", 256<<10) + `"`}), 413, "request_too_large"},
		{"not JSON", key(ask{body: `{"a":`}), 400, "request_invalid"},
		{"duplicate names", key(ask{body: `{"a":1,"a":2}`}), 400, "request_invalid"},
		{"beyond a double", key(ask{body: `{"a":1e400}`}), 400, "request_invalid"},
		{"invalid UTF-8", key(ask{body: "{\"a\":\"\xff\"}"}), 400, "request_invalid"},
		{"too deep", key(ask{body: strings.Repeat("[", 1000) + strings.Repeat("]", 1000)}), 400, "request_invalid"},
	} {
		r := a.do(test.ask)
		r.wants(t, test.status, "")
		if code := r.code(t); code != test.code {
			t.Errorf("%s: code %s, want %s", test.clause, code, test.code)
		}
		if strings.Contains(string(r.body), "abc") {
			t.Errorf("%s: quotes the request: %s", test.clause, r.body)
		}
	}
	if challenge := a.do(ask{tenant: "-"}).Header.Get("Www-Authenticate"); challenge != "Bearer" {
		t.Errorf("challenge %q", challenge)
	}
	if runs.Load() != 0 || len(a.mem.Records()) != 0 {
		t.Errorf("%d runs, %d records", runs.Load(), len(a.mem.Records()))
	}
}

func TestBodyWithoutLengthIsBoundedToo(t *testing.T) {
	a := newAPI(t, nil)
	a.handle("POST /orders", idem.Operation{}, middleware.Route{}, counting(new(atomic.Int64)))
	// An io.Reader that is no bytes.Reader is sent in chunks.
	r, err := http.NewRequest("POST", a.server.URL+"/orders", io.LimitReader(strings.NewReader(strings.Repeat(" ", 1<<20)), 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer tenant-a"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
	response, err := a.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 413 {
		t.Errorf("got %d", response.StatusCode)
	}
}

func TestQuotedAndBareAreTheSameKey(t *testing.T) {
	a := newAPI(t, nil)
	a.handle("POST /orders", idem.Operation{}, middleware.Route{}, counting(new(atomic.Int64)))
	a.do(ask{keys: []string{`"abc"`}}).wants(t, 201, "executed")
	a.do(ask{keys: []string{`abc`}}).wants(t, 201, "replayed")
}

func TestRouterRefusalsAreProblems(t *testing.T) {
	a := newAPI(t, nil)
	a.handle("POST /orders", idem.Operation{}, middleware.Route{}, counting(new(atomic.Int64)))
	unknown := a.do(key(ask{path: "/nothing"}))
	if unknown.StatusCode != 404 || unknown.code(t) != "not_found" {
		t.Errorf("unknown route: %d %s", unknown.StatusCode, unknown.body)
	}
	method := a.do(key(ask{method: "DELETE"}))
	if method.StatusCode != 405 || method.code(t) != "method_not_allowed" || method.Header.Get("Allow") != "POST" {
		t.Errorf("wrong method: %d %s, Allow %q", method.StatusCode, method.body, method.Header.Get("Allow"))
	}
}

// The retry of a completed request replays although a release tightened validation meanwhile.
func TestValidationLooksUpFirst(t *testing.T) {
	a := newAPI(t, nil)
	var runs atomic.Int64
	var tightened atomic.Bool
	release := make(chan struct{})
	started := make(chan struct{})
	validate := func(r *middleware.Request) *idem.Problem {
		if !tightened.Load() {
			return nil
		}
		p := idem.NewProblem(400, "request_invalid", "Invalid request", "The request body is not valid.")
		p.Errors = []idem.ProblemError{{Pointer: "/a", Detail: "is too old-fashioned"}, {Pointer: "/b", Detail: "is required"}}
		return &p
	}
	a.handle("POST /orders", idem.Operation{}, middleware.Route{Validate: validate}, counting(&runs))
	a.handle("POST /slow", idem.Operation{Name: "orders.slow"}, middleware.Route{Validate: validate}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		close(started)
		<-release
		return idem.JSON(201, 1)
	})
	first := a.do(key(ask{body: `{"a":1}`}))
	first.wants(t, 201, "executed")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r, err := a.send(key(ask{path: "/slow"})); err != nil || r.StatusCode != 201 {
			t.Errorf("slow: %v, %v", r, err)
		}
	}()
	<-started
	tightened.Store(true)

	again := a.do(key(ask{body: `{"a":1}`}))
	again.wants(t, 201, "replayed")
	if string(again.body) != string(first.body) {
		t.Errorf("%s, then %s", first.body, again.body)
	}
	a.do(key(ask{body: `{"a":2}`})).wants(t, 422, "mismatch")
	a.do(key(ask{path: "/slow"})).wants(t, 409, "in_progress")
	refused := a.do(ask{keys: []string{"new"}})
	refused.wants(t, 400, "")
	if refused.code(t) != "request_invalid" || !strings.Contains(string(refused.body), `"pointer":"/b"`) {
		t.Errorf("got %s", refused.body)
	}
	close(release)
	<-done
	tightened.Store(false)
	a.do(ask{keys: []string{"new"}}).wants(t, 201, "executed") // nothing was reserved or stored
	if runs.Load() != 2 {
		t.Errorf("%d runs", runs.Load())
	}
}

// outage is a store that can be switched off.
type outage struct {
	storage.Store
	down atomic.Bool
}

func (o *outage) Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	if o.down.Load() {
		return nil, errors.New("connection refused")
	}
	return o.Store.Get(ctx, key)
}

func (o *outage) Insert(ctx context.Context, r storage.Record, now time.Time) error {
	if o.down.Load() {
		return errors.New("connection refused")
	}
	return o.Store.Insert(ctx, r, now)
}

// semantics.md "What is never cached or trusted": store trouble fails closed, 503 before the handler runs.
func TestStoreDownFailsClosed(t *testing.T) {
	var store *outage
	a := newAPI(t, func(s storage.Store) storage.Store { store = &outage{Store: s}; return store })
	var runs atomic.Int64
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindOptimistic} {
		a.handle("POST /"+string(kind), idem.Operation{Name: "orders." + string(kind), Kind: kind}, middleware.Route{}, counting(&runs))
	}
	for _, path := range []string{"/atomic", "/optimistic"} {
		store.down.Store(true)
		runs.Store(0)
		r := a.do(key(ask{path: path}))
		r.wants(t, 503, "")
		if r.code(t) != header.CodeStoreUnavailable || runs.Load() != 0 || strings.Contains(string(r.body), "connection") {
			t.Errorf("%s: %s, %d runs", path, r.body, runs.Load())
		}
		store.down.Store(false)
		a.do(key(ask{path: path})).wants(t, 201, "executed")
	}
}

func TestHandlerErrorsAreNotStoredAndTellNothing(t *testing.T) {
	a := newAPI(t, nil)
	var fail atomic.Pointer[error]
	a.handle("POST /orders", idem.Operation{}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		switch failure := fail.Load(); {
		case failure == nil:
			return idem.JSON(201, 1)
		case *failure == nil:
			panic("the secret panic")
		default:
			return idem.Response{}, *failure
		}
	})
	var panics error
	plain := errors.New("the secret reason")
	busy := error(&idem.UnavailableError{RetryAfter: 7 * time.Second, Cause: plain})
	for _, test := range []struct {
		fail   *error
		status int
		code   string
	}{{&panics, 500, "internal_error"}, {&plain, 500, "internal_error"}, {&busy, 503, header.CodeStoreUnavailable}} {
		fail.Store(test.fail)
		r := a.do(key(ask{body: `{"body":"private"}`}))
		r.wants(t, test.status, "")
		if r.code(t) != test.code || strings.Contains(string(r.body), "secret") {
			t.Errorf("got %s", r.body)
		}
		if test.status == 503 && r.Header.Get("Retry-After") != "7" {
			t.Errorf("Retry-After %q", r.Header.Get("Retry-After"))
		}
	}
	fail.Store(nil)
	a.do(key(ask{body: `{"body":"private"}`})).wants(t, 201, "executed")
	log := a.log.String()
	if !strings.Contains(log, "the secret reason") || !strings.Contains(log, "goroutine") || !strings.Contains(log, "key_hash") {
		t.Errorf("the log misses what happened: %s", log)
	}
	if strings.Contains(log, "private") || strings.Contains(log, "Bearer") || strings.Contains(log, `\"k\"`) {
		t.Errorf("the log has a body, token or key: %s", log)
	}
}

func TestTooLargeResponseCommitsNothing(t *testing.T) {
	a := newAPI(t, nil)
	a.handle("POST /orders", idem.Operation{}, middleware.Route{}, func(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
		_, err := counting(new(atomic.Int64))(nil, tx, r) //nolint:staticcheck // the handler ignores its context
		return idem.Response{Status: 201, Body: make([]byte, 4<<20)}, err
	})
	r := a.do(key(ask{}))
	r.wants(t, 500, "")
	if r.code(t) != header.CodeResponseTooLarge || len(a.mem.Rows()) != 0 {
		t.Errorf("%s, rows %v", r.body, a.mem.Rows())
	}
}
