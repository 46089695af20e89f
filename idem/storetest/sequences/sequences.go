// Package sequences is the second half of the contract that every store passes. The engine, a worker with inline
// delivery and an operator work on the store, while calls to it lose their replies, are throttled or meet other
// transactions. Use it in the tests of every implementation of storage.Store, after package storetest. Applications
// do not need it.
//
// Each sequence is a clause of docs/semantics.md. It demands how often the handler ran and the provider was called,
// and what is stored in the end. A [Harness] says how calls of the store fail: memstore by package faulty, dynamo by
// what its HTTP client meets (package wirefault). Each sequence runs in a bubble of package testing/synctest, so
// minutes and days pass at once.
package sequences

import (
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem-aws/idem/storetest"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// Faults are what may become of a call to the store.
type Faults struct {
	// LoseReply makes the call and loses its reply.
	LoseReply faulty.Fault
	// LoseRequest loses the call before it is made, which nobody can tell.
	LoseRequest faulty.Fault
	// Busy are, by name, all the answers of the store that judge nothing, of a write that may be sent again: throttles, and
	// other transactions in the way.
	Busy map[string]faulty.Fault
	// CredentialsExpired refuses the call for its credentials, which are renewed in time.
	CredentialsExpired faulty.Fault
}

// Harness is a store under test.
type Harness struct {
	// Open returns the store with business rows beside it. It is called within the bubble of each sequence, with its t. Stores
	// may share their tables: every sequence makes its own keys, and no sweep runs.
	Open func(t *testing.T) storetest.Harness
	// Faults are how calls to this store fail.
	Faults Faults
}

// sequence is one clause, under one of the circumstances in which it holds.
type sequence struct {
	name string
	run  func(w *world)
}

// Run runs all sequences as subtests of t.
func Run(t *testing.T, harness Harness) {
	t.Helper()
	for _, clause := range []struct {
		name      string
		sequences []sequence
	}{
		{"after a lost reply the identical commit is sent again", resentCommits(harness.Faults)},
		{"a reserve or a commit in contention is tried again", contended(harness.Faults)},
		{"inline delivery calls under the stored claim only", inlineClaims(harness.Faults)},
		{"a reserve without a reply is given back", givenBack(harness.Faults)},
		{"a reserve that landed is found, and a late one finds what was given back", foundReserves(harness.Faults)},
		{"an answer that is not stored is unknown unless it was declared", unstoredAnswers()},
		{"a stored answer is tried while the lease lives", completions(harness.Faults)},
		{"an answer whose headers do not fit is stored as not kept", headers()},
		{"contention at settlement calls nobody again", settlements(harness.Faults)},
		{"evidence between an operator's read and their write stays", operatorsWrites()},
		{"a redriven message that nobody had claimed is delivered", redriven(harness.Faults)},
	} {
		t.Run(clause.name, func(t *testing.T) {
			for _, s := range clause.sequences {
				t.Run(s.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { s.run(newWorld(t, harness)) })
				})
			}
		})
	}
}
