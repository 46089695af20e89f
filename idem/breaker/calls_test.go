package breaker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem/breaker"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// What begins is refused while the breaker is open; what ends is sent always, and still gets what the store says of it.
func TestWhatIsSentWhileOpen(t *testing.T) {
	record := func(state storage.State) storage.Record {
		return storage.Record{Key: "key", State: state, OperationID: "op_1", Epoch: 1, Owner: "owner", SchemaVersion: storage.SchemaVersion}
	}
	insert := func(state storage.State) func(context.Context, *breaker.Store) error {
		return func(ctx context.Context, s *breaker.Store) error { return s.Insert(ctx, record(state), time.Now()) }
	}
	update := func(state storage.State) func(context.Context, *breaker.Store) error {
		return func(ctx context.Context, s *breaker.Store) error {
			return s.Update(ctx, record(state), storage.FenceOfHolder(record(storage.StateInProgress)))
		}
	}
	message := func(state storage.MessageState) func(context.Context, *breaker.Store) error {
		return func(ctx context.Context, s *breaker.Store) error {
			m := storage.Message{ID: "op_1.1", State: state, SchemaVersion: storage.SchemaVersion}
			return s.UpdateMessage(ctx, m, storage.FenceOfMessage(m))
		}
	}
	for name, test := range map[string]struct {
		make func(context.Context, *breaker.Store) error
		call faulty.Call
		sent bool
	}{
		"first look": {func(ctx context.Context, s *breaker.Store) error { _, err := s.Get(ctx, "key"); return err }, faulty.Get, false},
		"reserve":    {insert(storage.StateInProgress), faulty.Insert, false},
		"take over":  {update(storage.StateInProgress), faulty.Update, false},
		"claim":      {message(storage.MessageClaimed), faulty.UpdateMessage, false},
		"sweep": {func(ctx context.Context, s *breaker.Store) error {
			_, _, err := s.QueuedMessages(ctx, storage.QueueOffer, 0, time.Now(), 1, "")
			return err
		}, faulty.QueuedMessages, false},
		"a listing of records": {func(ctx context.Context, s *breaker.Store) error {
			_, _, err := s.QueuedRecords(ctx, storage.QueueLease, 0, time.Now(), 1, "")
			return err
		}, faulty.QueuedRecords, false},
		"where a run goes on": {func(ctx context.Context, s *breaker.Store) error { _, err := s.Place(ctx, "offer.0"); return err }, faulty.Place, false},
		"where a run stopped": {func(ctx context.Context, s *breaker.Store) error { return s.SetPlace(ctx, "offer.0", "cursor") }, faulty.SetPlace, true},
		"store a decline":     {insert(storage.StateCompleted), faulty.Insert, true},
		"complete":            {update(storage.StateCompleted), faulty.Update, true},
		"release":             {update(storage.StateFailedRetryable), faulty.Update, true},
		"renew": {func(ctx context.Context, s *breaker.Store) error {
			return s.Renew(ctx, record(storage.StateInProgress), storage.FenceOfHolder(record(storage.StateInProgress)))
		}, faulty.Renew, true},
		"postpone": {func(ctx context.Context, s *breaker.Store) error {
			return s.Postpone(ctx, record(storage.StateUnknown), storage.FenceOfHolder(record(storage.StateUnknown)))
		}, faulty.Postpone, true},
		"park":           {update(storage.StateUnknown), faulty.Update, true},
		"back off":       {message(storage.MessagePending), faulty.UpdateMessage, true},
		"park a message": {message(storage.MessageUnknown), faulty.UpdateMessage, true},
		"keep evidence": {func(ctx context.Context, s *breaker.Store) error {
			return s.PatchMessage(ctx, storage.MessageEnd{ID: "op_1.1", State: storage.MessageEvidenced}, storage.MessageFence{Open: true})
		}, faulty.PatchMessage, true},
		"postpone a message": {func(ctx context.Context, s *breaker.Store) error {
			return s.PostponeMessage(ctx, "op_1.1", time.Now(), storage.MessageFence{Open: true})
		}, faulty.PostponeMessage, true},
		"judge evidence": {func(ctx context.Context, s *breaker.Store) error { _, err := s.Message(ctx, "op_1.1"); return err }, faulty.Message, true},
		"load a response": {func(ctx context.Context, s *breaker.Store) error {
			_, err := s.LoadResponse(ctx, record(storage.StateCompleted))
			return err
		}, faulty.LoadResponse, true},
		"commit an insert": {commit(nil), faulty.Commit, true},
		"commit a lease":   {commit(&storage.Fence{OperationID: "op_1", Owner: "owner", Epoch: 1, States: []storage.State{storage.StateInProgress}}), faulty.Commit, true},
		"settle": {func(ctx context.Context, s *breaker.Store) error {
			send, err := s.PrepareSettle(storage.Settlement{Message: storage.MessageEnd{ID: "op_1.1", State: storage.MessageDelivered}, Fence: storage.MessageFence{Open: true}, Token: "token"})
			if err != nil {
				return err
			}
			return send(ctx)
		}, faulty.Settle, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, breaker.Config{})
				w.trip()
				before, began := w.faults.Count(test.call), time.Now()
				err := test.make(t.Context(), w.breaker)
				if sent := w.faults.Count(test.call) > before; sent != test.sent || (notAsked(err) == nil) != test.sent || err == nil {
					t.Errorf("sent: %v, want %v; error %v", sent, test.sent, err)
				}
				if !test.sent && time.Since(began) != 0 {
					t.Errorf("it was refused after %v, want at once", time.Since(began))
				}
			})
		})
	}
}

func commit(fence *storage.Fence) func(context.Context, *breaker.Store) error {
	return func(ctx context.Context, s *breaker.Store) error {
		r := storage.Record{Key: "key", State: storage.StateCompleted, OperationID: "op_1", Epoch: 1, Owner: "owner", SchemaVersion: storage.SchemaVersion}
		send, err := s.Prepare(storage.Commit{Record: r, Fence: fence, Now: time.Now(), Token: "token"})
		if err != nil {
			return err
		}
		return send(ctx)
	}
}
