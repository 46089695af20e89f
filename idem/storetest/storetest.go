// Package storetest tests whether a store keeps the contract that the engine relies on: how records are reserved, committed
// and settled, and how messages are listed and moved (docs/extend/store.md). It also repeats failures that were reported for other
// idempotency libraries, where a store alone can show them. Use it in the tests of every implementation of
// storage.Store. Applications do not need it: they test their handlers with package idemtest.
//
// Call [Run] from a test of the store, and then package sequences, which tests the store below a running engine and
// worker. This project runs both on memstore and on dynamo with real endpoints. Package faulty wraps a store with
// faults.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Store is what is under test.
type Store interface {
	storage.Store
	outbox.Store
}

// Harness is a store under test, and business rows beside it that its transactions can write. A row is a counter, so that
// a transaction that was applied twice can be seen.
type Harness struct {
	// Store is the store under test.
	Store Store
	// InsertRow makes a write that creates the row with the count 1, under the condition that there is none; failure is
	// what the write declares for that condition.
	InsertRow func(key string, failure storage.Failure) storage.Write
	// AddRow makes a write without a condition that adds 1 to the row's count, creating it where there is none.
	AddRow func(key string) storage.Write
	// CountRow reads the row's count strongly; 0 where there is no row.
	CountRow func(ctx context.Context, key string) (int, error)
	// Remove removes what may be removed at now. Only RunRemoval calls it.
	Remove func(ctx context.Context, now time.Time) error
}

// Run runs the contract as subtests of t. It calls newHarness once for each of them, with the subtest's own t. Harnesses
// may share their tables: every subtest makes its own keys and ignores what others left. All times of rows lie beyond the year
// 2100, so native TTL removes nothing while the tests run. The deadlines of calls are of the present: a store that is given a
// clock needs one that shows it.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"insert", insertTests},
		{"update", updateTests},
		{"fence", fenceTests},
		{"touch", touchTests},
		{"response", responseTests},
		{"commit", commitTests},
		{"token", tokenTests},
		{"message", messageTests},
		{"settle", settleTests},
		{"expiry", expiryTests},
		{"loss", lossTests},
		{"queue", queueTests},
		{"record queue", recordQueueTests},
		{"place", placeTests},
		{"deadline", deadlineTests},
		{"race", raceTests},
		{"mark", markTests},
	} {
		t.Run(group.name, func(t *testing.T) { runAll(t, group.tests, newHarness) })
	}
}

// RunRemoval runs, as Run does, what the contract says of a store that removes rows by a job of its own: Harness.Remove must
// be given. DynamoDB's native TTL removes by itself, by an attribute that the tests of package dynamo look at. The rows of
// any other test may go.
func RunRemoval(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	runAll(t, removalTests, newHarness)
}

// RunSealed runs, as Run does, what package seal demands of the store that it wraps. A store with a decorator that encrypts does
// not pass it.
func RunSealed(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	runAll(t, sealedTests, newHarness)
}

func runAll(t *testing.T, tests []test, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			harness := newHarness(t)
			ctx, cancel := context.WithTimeout(t.Context(), testMax)
			defer cancel()
			test.run(&env{T: t, Harness: harness, ctx: ctx})
		})
	}
}

// testMax bounds each test, and so its waiting for an index to catch up. One test stores a hundred responses, of up to a megabyte:
// under the race detector, beside other programs, that takes half a minute.
const testMax = 2 * time.Minute

// test is one clause of the contract.
type test struct {
	name string
	run  func(e *env)
}
