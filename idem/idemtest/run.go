package idemtest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
)

// T is what this package needs of a *testing.T or a *rapid.T.
type T interface {
	// Helper marks its caller as a helper, whose lines are not reported.
	Helper()
	// Context is the test's: it is canceled when the test ends.
	Context() context.Context
	// Logf records a line.
	Logf(format string, args ...any)
	// Errorf records a failure, and the test goes on.
	Errorf(format string, args ...any)
	// Fatalf records a failure and ends the test.
	Fatalf(format string, args ...any)
}

// Result is what one run of a handler would commit. Writes and messages are set only if the transaction would be sent:
// not with an error, nor with a response that the operation's policy does not store, such as a 503.
type Result struct {
	// OperationID is the id that the handler saw. It is the same in every run of a test.
	OperationID idem.OperationID
	// Writes are the business writes, in order. They were not executed, and their conditions were not checked.
	Writes []idem.Write
	// Messages are the messages, in order: look at Topic, Payload and ID.
	Messages []storage.Message
	// Response is what the client would get, a rejection's problem too.
	Response idem.Response
	// Err is the handler's error as it returned it, or the reason why the engine refuses the writes and messages.
	Err error
}

// Option changes how Run runs a handler.
type Option func(*request)

// request is what a handler is run for.
type request struct {
	tenant    string
	now       time.Time
	operation idem.Operation
}

// Tenant is the tenant that the handler sees. Default "tenant-a".
func Tenant(name string) Option { return func(r *request) { r.tenant = name } }

// At is the time that the handler sees as Tx.Now. Default noon of 2 January 2100, UTC: later than any emulator's TTL.
func At(now time.Time) Option { return func(r *request) { r.now = now } }

// Of runs the handler as that of the operation: its kind says what may be collected, and its policy which responses are
// stored. Nothing is delivered inline. Default: an optimistic operation with the policy idem.IETF.
func Of(op idem.Operation) Option { return func(r *request) { r.operation = op } }

// noon is when runs begin.
var noon = time.Date(2100, 1, 2, 12, 0, 0, 0, time.UTC)

// silent is the log of what runs in a test: it tells through T.
var silent = slog.New(slog.DiscardHandler)

const (
	tenant = "tenant-a"
	key    = "key"
)

// Run runs the handler once, for a new key, in an engine on memstore, and returns what it collected. It fails the test
// for a handler that panics and for an operation that an engine refuses. Runs share no state.
func Run(t T, handler idem.Handler, options ...Option) Result {
	t.Helper()
	r := request{tenant: tenant, now: noon, operation: idem.Operation{
		Name: "idemtest.run", Kind: idem.KindOptimistic, Policy: idem.IETF(),
	}}
	for _, option := range options {
		option(&r)
	}
	r.operation.Inline = nil
	if r.operation.Kind == idem.KindWrapped {
		t.Fatalf("idemtest: an operation of kind %s has no transaction: test its handler with net/http/httptest", r.operation.Kind)
	}
	var result Result
	store, err := memstore.New(memstore.Config{Translate: func(w idem.Write) (memstore.Write, error) {
		result.Writes = append(result.Writes, w)
		return memstore.Write{Key: strconv.Itoa(len(result.Writes))}, nil
	}})
	if err != nil {
		t.Fatalf("idemtest: %v", err)
	}
	clock := NewClock(r.now)
	engine, err := idem.New(store, idem.Config{Now: clock.Now, Pause: clock.Pause, Random: newRandom(0), Logger: silent})
	if err != nil {
		t.Fatalf("idemtest: %v", err)
	}
	operation, err := engine.Register(r.operation)
	if err != nil {
		t.Fatalf("idemtest: %v", err)
	}
	done, err := operation.Do(t.Context(), idem.Request{Tenant: r.tenant, Key: key}, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
		result.OperationID = tx.OperationID()
		response, err := handler(ctx, tx)
		result.Err = err
		return response, err
	})
	if panicked, ok := errors.AsType[*idem.HandlerError](err); ok && panicked.Stack != nil {
		t.Fatalf("idemtest: the handler: %v\n%s", panicked.Cause, panicked.Stack)
	}
	if result.Err == nil {
		result.Err = err
	}
	if err == nil {
		result.Response = done.Response
	}
	result.Messages = store.Messages()
	slices.SortFunc(result.Messages, func(a, b storage.Message) int { return a.Index - b.Index })
	if err != nil {
		result.Writes = nil
	}
	return result
}
