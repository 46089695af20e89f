package pgstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/idem-go/idem-aws/docs/examples/postgres/pgstore"
	"github.com/idem-go/idem-aws/docs/examples/postgres/pgtest"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A write that waits for a row may find that another incarnation has taken its place: the row that it waited for is deleted, and
// another one inserted. The conflict has the one that is there.
func TestOnPostgreSQLAConflictHasTheIncarnationThatCameMeanwhile(t *testing.T) {
	url := database(t)
	direct := pgtest.Pool(t, url(""))
	proxy := pgtest.NewProxy(t, pgtest.Server(t).Address)
	slow, store := newStore(t, pgtest.Pool(t, url(proxy.Address)), pgstore.Config{}), newStore(t, direct, pgstore.Config{})
	earlier := completed(reserved(t))
	if err := store.Insert(t.Context(), earlier, start); err != nil {
		t.Fatal(err)
	}
	next := reserved(t)
	next.Key = earlier.Key
	held, release := make(chan struct{}), make(chan struct{})
	proxy.Lose(&pgtest.Loss{At: pgtest.AtCommit, Before: func() { close(held); <-release }, Forward: true})
	replaced, late := make(chan error, 1), make(chan error, 1)
	go func() { replaced <- slow.Insert(t.Context(), next, earlier.FreeAt) }()
	<-held
	go func() { late <- store.Update(t.Context(), earlier, storage.FenceOf(earlier)) }()
	waitForLock(t, direct)
	close(release)
	var unknown *storage.OutcomeUnknownError
	if err := <-replaced; !errors.As(err, &unknown) {
		t.Fatal(err)
	}
	var conflict *storage.RecordConflictError
	if err := <-late; !errors.As(err, &conflict) || conflict.Existing == nil || conflict.Existing.OperationID != next.OperationID {
		t.Errorf("got %v, want a conflict with %s", err, next.OperationID)
	}
}

// Two settlements about the same messages wait for each other in one direction: whoever waits for the first row holds no later one.
func TestOnPostgreSQLATransactionThatWaitsHoldsNoLaterRow(t *testing.T) {
	pool := pgtest.Pool(t, database(t)(""))
	store, r := newStore(t, pool, pgstore.Config{}), reserved(t)
	r.State, r.Kind, r.Response = storage.StatePending, storage.KindDeferred, storage.Response{Status: 202}
	first, second := sent(r, 1), sent(r, 2)
	send, err := store.Prepare(storage.Commit{Record: r, Now: start, Messages: []storage.Message{first, second}, Token: rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context()); err != nil {
		t.Fatal(err)
	}
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.WithoutCancel(t.Context()))
	if _, err := holder.Exec(t.Context(), "select from idem_messages where id = $1 for update", string(first.ID)); err != nil {
		t.Fatal(err)
	}
	settle, err := store.PrepareSettle(storage.Settlement{
		Message: storage.MessageEnd{ID: second.ID, State: storage.MessageDelivered, Revision: "settled", DoneAt: start, RemoveAt: start},
		Fence:   storage.MessageFence{Open: true}, Earlier: []storage.MessageID{first.ID}, Token: rand.Text(),
	})
	if err != nil {
		t.Fatal(err)
	}
	settled := make(chan error, 1)
	go func() { settled <- settle(t.Context()) }()
	waitForLock(t, pool)
	if _, err := pool.Exec(t.Context(), "select from idem_messages where id = $1 for update nowait", string(second.ID)); err != nil {
		t.Errorf("the settlement of %s waits for %s and holds its own message: %v", second.ID, first.ID, err)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-settled; err != nil {
		t.Error(err)
	}
}

// sent is the n-th message of the record's chain, as it is inserted.
func sent(r storage.Record, n int) storage.Message {
	return storage.Message{
		ID: r.OperationID.Message(n), Index: n, OperationID: r.OperationID, RecordKey: r.Key, Tenant: r.Tenant, Topic: "orders.ship",
		State: storage.MessagePending, Revision: "inserted", CreatedAt: start, NextAttemptAt: start, SweepAt: start,
		Retention: r.Retention, SchemaVersion: storage.SchemaVersion,
	}
}
