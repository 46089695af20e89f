package idemtest

import (
	"context"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// App is what [Crash] tests: one operation with its handler, and the topics that its messages go to. Handler, Operation.Name
// and Operation.Policy are required.
type App struct {
	// Operation is what the handler is registered as. It must have a transaction, so its kind is not wrapped; Inline says
	// whether it delivers within the request.
	Operation idem.Operation
	// Handler returns the handler, which reads business rows from the store that it is given. It is called once for each
	// process that a test starts.
	Handler func(rows *memstore.Store) idem.Handler
	// Translate turns the application's writes into memstore's, as memstore.Config has it. Default: they are a
	// memstore.Write already.
	Translate func(idem.Write) (memstore.Write, error)
	// Rows are the business rows before the request, by key. Default: none.
	Rows map[string][]byte
	// Topics are where the messages go. Call is a fake of the provider. If Keys.Honoured is set it may be called twice
	// for a message, and must make its effect once. Default: messages are only inserted.
	Topics []outbox.Topic
	// Inline delivers the messages within the request first.
	Inline bool
}

// Crash kills the process of an application before and after every call that it makes to the store, to its queue of
// wake-ups and to the providers of its topics: each time in a fresh store, for one request. A process that died makes no
// further call. A second process then lives for as long as there is something to do, up to an hour of its clock: the
// client repeats the request with the same key once a minute, and the platform runs the worker, the sweep and the reconciler.
//
// Crash fails the test where the end differs from that without a crash:
//
//   - the client got two different answers, or no final one, or another status;
//   - a business write was made twice, or not at all;
//   - a message was sent twice, or not at all, or with another payload, or ended in another state;
//   - a provider that honours no keys made an effect twice. An effect that it may have made, and that nobody can
//     look up, stays unknown, and is not a failure: a person decides how that run goes on, so nothing else of it is compared.
//
// Rows, payloads and responses that are the same in two runs without a crash must be the same after one. Those that differ
// have ids or times in them; of those only the number and the status count.
//
// It returns how often it crashed the application, and logs it. That is never 0: it ends the test where an hour without a
// crash does not bring the request to its end, such as with a provider that only ever fails. No two runs have the same operation ids, so that all of
// them may share one fake of a provider.
func Crash(t T, app App) int {
	t.Helper()
	if err := app.validate(); err != nil {
		t.Fatalf("idemtest: %v", err)
	}
	want, err := app.undisturbed(t.Context())
	if err != nil {
		t.Fatalf("idemtest: without a crash: %v", err)
	}
	points := 0
	for i, call := range want.calls {
		for _, at := range []crash{{i + 1, false}, {i + 1, true}} {
			points++
			if err := app.crashed(t.Context(), at, uint64(1+points), want); err != nil {
				t.Errorf("idemtest: the process died %v (%s): %v", at, call, err)
			}
		}
	}
	t.Logf("idemtest: %s: %d crashes, before and after each of %d calls", app.Operation.Name, points, len(want.calls))
	return points
}

// crash is where the first process dies.
type crash struct {
	// call is the number of the call, from 1; 0 where the process does not die.
	call  int
	after bool
}

func (c crash) String() string {
	if c.after {
		return fmt.Sprintf("after its call %d", c.call)
	}
	return fmt.Sprintf("before its call %d", c.call)
}

// undisturbed runs the application twice without a crash, with other ids and at another time, and returns what the two
// runs have in common.
func (a App) undisturbed(ctx context.Context) (*end, error) {
	first, err := a.run(ctx, crash{}, 0)
	if err != nil {
		return nil, err
	}
	second, err := a.run(ctx, crash{}, 1)
	if err != nil {
		return nil, err
	}
	if err := first.ends(); err != nil {
		return nil, err
	}
	first.keep(second)
	return first, nil
}

func (a App) crashed(ctx context.Context, at crash, seed uint64, want *end) error {
	got, err := a.run(ctx, at, seed)
	if err != nil {
		return err
	}
	return got.compare(want)
}
