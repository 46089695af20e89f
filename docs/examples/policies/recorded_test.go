package policies

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/internal/recording"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// The pages of docs/policies show exchanges of the file testdata/recorded.http. They are what a service answers whose store
// is DynamoDB, by the policy that the page is about.
func TestPagesShowWhatIsAnswered(t *testing.T) {
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]), wirefault.Patiently)
	tables, err := dynamotest.CreateTables(t.Context(), client, "policies")
	if err != nil {
		t.Fatal(err)
	}
	all := &recording.Recording{}
	for _, scenario := range []func(*recorder){
		unprotected, syntaxes, otherPayloads, inFlight, storedResults, scopes, retentions, expired, keyTimes, replayHeaders, observed, exempted,
	} {
		scenario(&recorder{t, client, tables, all, &clock{at: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}})
	}
	if err := all.Compare("testdata/recorded.http", *check.Update); err != nil {
		t.Error(err)
	}
}

// recorder records the exchanges of one page, at a clock that only moves when it is told to.
type recorder struct {
	*testing.T
	client *dynamodb.Client
	tables dynamotest.Tables
	all    *recording.Recording
	clock  *clock
}

// clock is the time of a service.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// shop is a service with two protected routes, behind an HTTP server.
type shop struct {
	*recorder
	server *httptest.Server
	// waiting, where set, is called when a duplicate begins to wait.
	waiting func()
	// busy, where set, is told when an order begins, and holds it until it is closed.
	busy chan chan struct{}
}

// shop starts a service whose routes have the policy. Its keys are its own.
func (r *recorder) shop(policy idem.Policy) *shop {
	r.Helper()
	store, err := dynamo.New(r.client, dynamo.Config{IdempotencyTable: r.tables.Idempotency, OutboxTable: r.tables.Outbox})
	r.ok(err)
	s := &shop{recorder: r}
	engine, err := idem.New(store, idem.Config{Now: r.clock.now, Pause: s.pause, Logger: slog.New(slog.DiscardHandler)})
	r.ok(err)
	tenant := rand.Text() // so that the keys of two shops are not the same
	mw, err := middleware.New(engine, middleware.Config{
		Logger: slog.New(slog.DiscardHandler),
		Identify: func(request *http.Request) (middleware.Identity, error) {
			return middleware.Identity{Tenant: tenant, Principal: request.Header.Get("Authorization")}, nil
		},
	})
	r.ok(err)
	routes := mw.NewRouter()
	routes.Handle("POST /orders", idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: policy}, middleware.Route{}, s.order)
	routes.Handle("POST /invoices", idem.Operation{Name: "invoices.create", Kind: idem.KindAtomic, Policy: policy}, middleware.Route{}, s.order)
	handler, err := routes.Handler()
	r.ok(err)
	s.server = httptest.NewServer(handler)
	r.Cleanup(s.server.Close)
	return s
}

// pause lets the time pass at once, and then a moment, in which the order may end that a duplicate waits for.
func (s *shop) pause(ctx context.Context, d time.Duration) error {
	if s.waiting != nil {
		s.waiting()
	}
	s.clock.pass(d)
	return idem.Pause(ctx, time.Millisecond)
}

// order answers as its item asks for. It writes nothing: the record alone is what the pages are about.
func (s *shop) order(_ context.Context, tx *idem.Tx, request *middleware.Request) (idem.Response, error) {
	var order struct {
		Item string `json:"item"`
	}
	if err := json.Unmarshal(request.Body, &order); err != nil {
		return idem.Response{}, err
	}
	if s.busy != nil {
		finish := make(chan struct{})
		s.busy <- finish
		<-finish
	}
	status, answer := http.StatusCreated, map[string]string{"id": "order_" + strings.TrimPrefix(string(tx.OperationID()), "op_"), "item": order.Item}
	switch order.Item {
	case "sold out":
		status, answer = http.StatusTooManyRequests, map[string]string{"error": "one order a minute"}
	case "broken":
		status, answer = http.StatusInternalServerError, map[string]string{"error": "the printer is on fire"}
	}
	response, err := idem.JSON(status, answer)
	return response.With("X-Rate", "1.08").With("X-Served-By", "instance-7"), err
}

func (r *recorder) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// sent is a request of a customer. Without a key it has no header; a key is sent as it stands.
type sent struct {
	key, path, item, session, firstSent string
	header                              bool // send the header, also where the key is empty
}

// record sends the request and records it under the name.
func (s *shop) record(name string, what sent) {
	s.Helper()
	request, body := s.request(what)
	response, received, err := exchange(request)
	s.ok(err)
	s.all.Add(name, request, body, response, received)
}

// quietly sends the request, which no page shows.
func (s *shop) quietly(what sent) {
	s.Helper()
	request, _ := s.request(what)
	_, _, err := exchange(request)
	s.ok(err)
}

func (s *shop) request(what sent) (*http.Request, []byte) {
	s.Helper()
	path, item := "/orders", "book"
	if what.path != "" {
		path = what.path
	}
	if what.item != "" {
		item = what.item
	}
	body := fmt.Appendf(nil, `{"item":%q}`, item)
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.server.URL+path, bytes.NewReader(body))
	s.ok(err)
	request.Header.Set("Content-Type", "application/json")
	if what.key != "" || what.header {
		request.Header.Set("Idempotency-Key", what.key)
	}
	if what.session != "" {
		request.Header.Set("Authorization", "Bearer "+what.session)
	}
	if what.firstSent != "" {
		request.Header.Set("Idempotency-First-Sent", what.firstSent)
	}
	return request, body
}

func exchange(request *http.Request) (*http.Response, []byte, error) {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, body, err
}

const key = `"order-17"`

func unprotected(r *recorder) {
	s := r.shop(idem.Stripe())
	s.record("missing-key unprotected", sent{})
	s.record("missing-key unprotected again", sent{})
	s.record("missing-key empty as missing", sent{header: true})
	r.shop(idem.IETF()).record("missing-key empty, refused", sent{header: true})
}

func syntaxes(r *recorder) {
	strict := r.shop(Strict())
	strict.record("key-syntax strict, bare", sent{key: "order-17"})
	strict.record("key-syntax strict, quoted", sent{key: key})
	long := r.shop(Long())
	long.record("key-syntax opaque, short", sent{key: "order-17"})
	opaque := r.shop(idem.Stripe())
	opaque.quietly(sent{key: "order-17"})
	opaque.record("key-syntax opaque, quotes count", sent{key: key})
}

func otherPayloads(r *recorder) {
	for _, c := range []named{{"422", idem.IETF()}, {"400", idem.Stripe()}, {"replay", idem.Lenient()}} {
		s := r.shop(c.policy)
		s.quietly(sent{key: key})
		s.record("other-payload "+c.name, sent{key: key, item: "pen"})
	}
}

// named is a policy, and what the exchange is called that shows it.
type named struct {
	name   string
	policy idem.Policy
}

func inFlight(r *recorder) {
	for _, c := range []named{{"409", idem.IETF()}, {"409 in use", idem.Stripe()}, {"202", Polled()}, {"wait is over", Patient()}} {
		s := r.shop(c.policy)
		finish, ended := s.begin()
		s.record("in-flight "+c.name, sent{key: key})
		close(finish)
		r.ok(<-ended)
	}
	s := r.shop(Patient())
	finish, ended := s.begin()
	s.waiting = sync.OnceFunc(func() {
		close(finish)
		r.ok(<-ended)
	})
	s.record("in-flight wait", sent{key: key})
}

// begin sends an order that runs until finish is closed. Only the first order is held.
func (s *shop) begin() (finish chan struct{}, ended chan error) {
	s.Helper()
	s.busy, ended = make(chan chan struct{}), make(chan error, 1)
	request, _ := s.request(sent{key: key})
	go func() {
		_, _, err := exchange(request)
		ended <- err
	}()
	return <-s.busy, ended
}

func storedResults(r *recorder) {
	ietf := r.shop(idem.IETF())
	ietf.quietly(sent{key: key, item: "broken"})
	ietf.record("stored-results 500, not stored", sent{key: key, item: "broken"})
	ietf.quietly(sent{key: `"order-18"`, item: "sold out"})
	ietf.record("stored-results 429, not stored", sent{key: `"order-18"`, item: "sold out"})
	stripe := r.shop(idem.Stripe())
	stripe.quietly(sent{key: key, item: "broken"})
	stripe.record("stored-results 500, stored", sent{key: key, item: "broken"})
	lenient := r.shop(idem.Lenient())
	lenient.quietly(sent{key: key, item: "sold out"})
	lenient.record("stored-results 429, stored", sent{key: key, item: "sold out"})
}

func scopes(r *recorder) {
	for _, c := range []named{{"tenant+key, Stripe", idem.Stripe()}, {"tenant+key, Lenient", idem.Lenient()}} {
		s := r.shop(c.policy)
		s.quietly(sent{key: key})
		s.record("scope "+c.name, sent{key: key, path: "/invoices"})
	}
	s := r.shop(PerSession())
	s.record("scope one session", sent{key: key, session: "one"})
	s.record("scope other session", sent{key: key, session: "other"})
}

const day = 24 * time.Hour

func retentions(r *recorder) {
	payments := r.shop(Payments())
	payments.quietly(sent{key: key})
	r.clock.pass(6 * day)
	payments.record("retention after six days of seven", sent{key: key})
	owned := r.shop(Owned())
	owned.quietly(sent{key: key})
	r.clock.pass(365 * day)
	owned.record("retention after a year, resource exists", sent{key: key})
}

func expired(r *recorder) {
	again, gone := r.shop(idem.IETF()), r.shop(Payments())
	again.record("expired-key first", sent{key: key})
	gone.quietly(sent{key: key})
	r.clock.pass(8 * day)
	again.record("expired-key executed again", sent{key: key})
	gone.record("expired-key gone", sent{key: key})
}

func keyTimes(r *recorder) {
	fresh, old := keyOf(r.clock.now()), keyOf(r.clock.now().Add(-2*day))
	dated := r.shop(Dated())
	dated.record("key-time required", sent{key: key})
	dated.record("key-time fresh", sent{key: fresh})
	dated.record("key-time too old", sent{key: old})
	optional := Dated()
	optional.KeyTimeRequired, optional.GoneAfterExpiry = false, false
	r.shop(optional).record("key-time too old, without 410", sent{key: old})
}

// keyOf is a UUIDv7 of the instant, without its randomness.
func keyOf(at time.Time) string {
	ms := at.UnixMilli()
	return fmt.Sprintf(`"%08x-%04x-7000-8000-000000000017"`, ms>>16, ms&0xffff)
}

func replayHeaders(r *recorder) {
	s := r.shop(Payments())
	s.record("replay-headers first", sent{key: key})
	s.record("replay-headers replay", sent{key: key})
}

func observed(r *recorder) {
	s := r.shop(idem.Observe(idem.IETF()))
	s.record("observe first", sent{key: key})
	s.record("observe again", sent{key: key})
	s.record("observe without a key", sent{})
}

func exempted(r *recorder) {
	s := r.shop(idem.Exempt("looks orders up, and changes nothing"))
	s.record("exempt without a key", sent{})
	s.record("exempt with a key", sent{key: key})
}
