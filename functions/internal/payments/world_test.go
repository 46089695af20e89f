package payments_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/identity"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/localstack/provider"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// noon is when every test begins: after 2100, so that no native TTL removes anything.
var noon = time.Date(2101, 2, 3, 12, 0, 0, int(789*time.Millisecond), time.UTC)

const (
	tenantA = "tenant-a"
	tenantB = "tenant-b"
	// attemptsMax is how often a charge is tried before its message is dead.
	attemptsMax = 3
	seedBalance = 100_000_000
)

// world is the application with its store, its worker and its sweep, in front of the provider simulator, on a clock that
// only the test moves.
type world struct {
	*testing.T
	clock    *idemtest.Clock
	store    *faulty.Store
	backend  backend
	anew     func() backend // empty tables
	queue    *memqueue.Queue
	worker   *outbox.Worker
	runner   *outbox.Runner
	operator *outbox.Operator
	api      *httptest.Server
	provider provider.Control

	mu sync.Mutex
	// meanwhile is what happens while the application waits for something.
	meanwhile func()
	// given are the answers that clients got so far.
	given []givenAnswer
}

// options vary a world; the zero value is the one of the local stack.
type options struct {
	// hangs has a call given up soon after the simulator has begun to let it hang.
	hangs bool
	// workerOnly leaves every delivery to the worker: nothing is delivered inline.
	workerOnly bool
	// authorize puts credentials on the requests to the provider.
	authorize func(http.RoundTripper) http.RoundTripper
}

// meeting is a world in which a fault happens. Only a call that hangs is given up soon: others have the time that a busy machine takes.
func meeting(fault provider.Fault) options {
	return options{hangs: fault == provider.HangBefore || fault == provider.HangAfter}
}

// soonGivenUp makes the call that ends half a second after one of the provider's rules has been applied to it. A call that no
// rule has met yet is on its way to the provider, on a machine that may stand.
func (w *world) soonGivenUp(call func(context.Context, storage.Message) outbox.Outcome) func(context.Context, storage.Message) outbox.Outcome {
	return func(ctx context.Context, m storage.Message) outbox.Outcome {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		before := w.applied(ctx)
		go func() {
			for w.applied(ctx) == before && ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			time.AfterFunc(500*time.Millisecond, cancel)
		}()
		return call(ctx, m)
	}
}

// applied is how often the provider has applied its rules, which is read until the context ends.
func (w *world) applied(ctx context.Context) (n int) {
	rules, err := w.provider.Rules(ctx)
	if err != nil && ctx.Err() == nil {
		w.Error(err)
	}
	for _, rule := range rules {
		n += rule.Applied
	}
	return n
}

// onBoth runs a scenario on the reference store and on DynamoDB: the two translators of the application's writes are
// equal as far as any scenario can tell.
func onBoth(t *testing.T, scenario func(w *world), o ...options) {
	t.Helper()
	t.Parallel()
	for name, open := range backends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{T: t, clock: idemtest.NewClock(noon)}
			w.anew = func() backend { return open(t, w.clock) }
			w.backend = w.anew()
			w.start(append(o, options{})[0])
			scenario(w)
		})
	}
}

func (w *world) start(o options) {
	w.Helper()
	simulator := provider.New(provider.Config{Now: w.clock.Now})
	server := httptest.NewServer(simulator)
	w.Cleanup(func() { simulator.Close(); server.Close() })
	w.provider = provider.Control{URL: server.URL, Client: client}
	w.serve(o)
}

// serve starts the application on the backend, with the accounts that a seed makes.
func (w *world) serve(o options) {
	w.Helper()
	w.store = faulty.New(w.backend.store)
	w.queue = memqueue.New(w.clock.Now)
	for _, tenant := range []string{tenantA, tenantB} {
		w.open(payments.Account{Tenant: tenant, ID: "acct_1", Currency: "EUR", Balance: seedBalance})
		w.open(payments.Account{Tenant: tenant, ID: "acct_2", Currency: "EUR"})
	}
	client, err := payments.NewProvider(w.provider.URL, o.authorize)
	w.ok(err)
	all := client.Topics(payments.Bounds{AttemptsMax: attemptsMax})
	for i := range all {
		if o.hangs {
			all[i].Call = w.soonGivenUp(all[i].Call)
		}
	}
	topics, err := outbox.NewTopics(outbox.Config{Now: w.clock.Now, Pause: w.clock.Pause}, all...)
	w.ok(err)
	w.worker, err = outbox.NewWorker(w.store, topics, w.queue, w.queue)
	w.ok(err)
	w.operator, err = outbox.NewOperator(w.store, topics, w.queue, w.queue)
	w.ok(err)
	w.runner, err = outbox.NewRunner(w.worker, nil, nil)
	w.ok(err)

	delivery := w.worker
	if o.workerOnly {
		delivery = nil
	}
	app, err := newApp(w.store, w.backend.ledger, delivery, idem.Config{Now: w.clock.Now, Pause: w.pause})
	w.ok(err)
	w.api = httptest.NewServer(app)
	w.Cleanup(w.api.Close)
}

// newApp makes the application as the api function does; without a worker nothing is delivered inline.
func newApp(store *faulty.Store, ledger payments.Ledger, worker *outbox.Worker, cfg idem.Config) (http.Handler, error) {
	engine, err := idem.New(store, cfg)
	if err != nil {
		return nil, err
	}
	config := payments.Config{
		Engine: engine, Ledger: ledger, Messages: store, Identify: identity.Function(callers{}, nil, silent), Retention: 24 * time.Hour, BodyBytesMax: 256 << 10,
		Logger: silent,
	}
	if worker != nil {
		if config.Inline, err = outbox.NewInline(worker); err != nil {
			return nil, err
		}
	}
	return payments.New(config)
}

// Tokens that are no tenant's.
const (
	strangerToken  = "stranger"  // is refused
	expiredToken   = "expired"   // was a tenant's
	revokedToken   = "revoked"   // was a tenant's too
	scopelessToken = "scopeless" // opens no route
	namelessToken  = "nameless"  // a fault of the configuration: nobody, and no error
	uncertainToken = "uncertain" // nobody can be asked whose it is
)

// callers take the token for the tenant's name.
type callers struct{}

// Caller implements identity.Authenticator.
func (callers) Caller(_ context.Context, authorization string) (apikey.Key, error) {
	tenant, ok := strings.CutPrefix(authorization, "Bearer ")
	if !ok {
		return apikey.Key{}, apikey.ErrMissing
	}
	switch tenant {
	case strangerToken:
		return apikey.Key{}, apikey.ErrUnknown
	case expiredToken:
		return apikey.Key{}, apikey.ErrExpired
	case revokedToken:
		return apikey.Key{}, apikey.ErrRevoked
	case scopelessToken:
		return apikey.Key{Tenant: tenant}, nil
	case namelessToken:
		return apikey.Key{Scopes: apikey.Scopes()}, nil
	case uncertainToken:
		return apikey.Key{}, errors.New("the keys can't be read")
	}
	return apikey.Key{Tenant: tenant, Scopes: apikey.Scopes()}, nil
}

// seen is the message as a person looks at it now.
func (w *world) seen(m storage.Message) outbox.Seen {
	w.Helper()
	lost, err := w.operator.Lost(w.Context())
	w.ok(err)
	return outbox.Seen{Revision: m.Revision, Lost: lost}
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) open(a payments.Account) {
	w.Helper()
	w.ok(w.backend.open(w.Context(), a))
}

// pause lets the time pass at once, and whatever happens meanwhile.
func (w *world) pause(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	meanwhile := w.meanwhile
	w.meanwhile = nil
	w.mu.Unlock()
	if meanwhile != nil {
		meanwhile()
	}
	return w.clock.Pause(ctx, d)
}

// during says what happens once while the application waits next.
func (w *world) during(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meanwhile = f
}

// deliver wakes the worker for the operation's first message, as its stream record does, and demands that it has no
// trouble.
func (w *world) deliver(id idem.OperationID) {
	w.Helper()
	w.deliverMessage(id, 1)
}

// deliverMessage is deliver for the n-th message of the operation's chain.
func (w *world) deliverMessage(id idem.OperationID, n int) {
	w.Helper()
	w.ok(w.worker.Deliver(w.Context(), id.Message(n)))
}

// reconciled lets the reconciler ask about everything, and what it offers be delivered.
func (w *world) reconciled() {
	w.Helper()
	_, err := w.runner.Reconcile(w.Context())
	w.ok(err)
	w.drain(time.Minute)
}

// drain lets time pass and serves every wake-up that becomes due.
func (w *world) drain(d time.Duration) {
	w.Helper()
	until := w.clock.Now().Add(d)
	for {
		at, ok := w.queue.Next()
		if !ok || at.After(until) {
			break
		}
		w.waitUntil(at)
		for _, id := range w.queue.Take() {
			w.ok(w.worker.Deliver(w.Context(), id))
		}
	}
	w.waitUntil(until)
}

// waitUntil moves the clock forward to a time, unless that is over.
func (w *world) waitUntil(at time.Time) { w.clock.Advance(max(0, at.Sub(w.clock.Now()))) }

// swept runs the sweep and serves what it offers.
func (w *world) swept() outbox.Counts {
	w.Helper()
	did, err := w.runner.Sweep(w.Context())
	w.ok(err)
	w.drain(0)
	return did.Messages
}

// faults replaces the rules of the provider.
func (w *world) faults(rules ...provider.Rule) {
	w.Helper()
	w.ok(w.provider.Faults(w.Context(), rules...))
}

// charges are all that the provider ever made, newest first.
func (w *world) charges() []provider.Object {
	w.Helper()
	charges, err := w.provider.Charges(w.Context())
	w.ok(err)
	return charges
}

// refunds, screenings, releases and payouts are likewise.
func (w *world) refunds() []provider.Object {
	w.Helper()
	refunds, err := w.provider.Refunds(w.Context())
	w.ok(err)
	return refunds
}

func (w *world) screenings() []provider.Object {
	w.Helper()
	screenings, err := w.provider.Screenings(w.Context())
	w.ok(err)
	return screenings
}

func (w *world) releases() []provider.Object {
	w.Helper()
	releases, err := w.provider.Releases(w.Context())
	w.ok(err)
	return releases
}

func (w *world) payouts() []provider.Object {
	w.Helper()
	payouts, err := w.provider.Payouts(w.Context())
	w.ok(err)
	return payouts
}

// charged demands how many charges the provider ever made (docs/design.md I2).
func (w *world) charged(n int) {
	w.Helper()
	if charges := w.charges(); len(charges) != n {
		w.Errorf("%d charges at the provider, want %d: %+v", len(charges), n, charges)
	}
}

// balance is an account's, as its owner reads it.
func (w *world) balance(tenant, account string) int64 {
	w.Helper()
	var view struct{ Balance int64 }
	a := w.get(tenant, "/v1/accounts/"+account).want(200)
	a.decode(&view)
	return view.Balance
}

// message is the operation's open message, or its last one.
func (w *world) message(id idem.OperationID) storage.Message {
	w.Helper()
	m, err := outbox.Open(w.Context(), w.backend.store, id)
	w.ok(err)
	if m == nil {
		w.Fatalf("operation %s has no message", id)
	}
	return *m
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
}
