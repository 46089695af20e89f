package breaker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/breaker"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// What begins is refused while the breaker is open; what ends is sent always, and still gets what the store says of it.
func TestWhatIsSentWhileOpen(t *testing.T) {
	record := func(state idem.State) idem.Record {
		return idem.Record{Key: "key", State: state, OperationID: "op_1", Epoch: 1, Owner: "owner", SchemaVersion: idem.SchemaVersion}
	}
	insert := func(state idem.State) func(context.Context, *breaker.Store) error {
		return func(ctx context.Context, s *breaker.Store) error { return s.Insert(ctx, record(state), time.Now()) }
	}
	update := func(state idem.State) func(context.Context, *breaker.Store) error {
		return func(ctx context.Context, s *breaker.Store) error {
			return s.Update(ctx, record(state), idem.FenceOfHolder(record(idem.StateInProgress)))
		}
	}
	message := func(state idem.MessageState) func(context.Context, *breaker.Store) error {
		return func(ctx context.Context, s *breaker.Store) error {
			m := idem.Message{ID: "op_1.1", State: state, SchemaVersion: idem.SchemaVersion}
			return s.UpdateMessage(ctx, m, idem.FenceOfMessage(m))
		}
	}
	for name, test := range map[string]struct {
		make func(context.Context, *breaker.Store) error
		call faulty.Call
		sent bool
	}{
		"first look": {func(ctx context.Context, s *breaker.Store) error { _, err := s.Get(ctx, "key"); return err }, faulty.Get, false},
		"reserve":    {insert(idem.StateInProgress), faulty.Insert, false},
		"take over":  {update(idem.StateInProgress), faulty.Update, false},
		"claim":      {message(idem.MessageClaimed), faulty.UpdateMessage, false},
		"sweep": {func(ctx context.Context, s *breaker.Store) error {
			_, _, err := s.QueuedMessages(ctx, idem.QueueOffer, 0, time.Now(), 1, "")
			return err
		}, faulty.QueuedMessages, false},
		"a listing of records": {func(ctx context.Context, s *breaker.Store) error {
			_, _, err := s.QueuedRecords(ctx, idem.QueueLease, 0, time.Now(), 1, "")
			return err
		}, faulty.QueuedRecords, false},
		"store a decline": {insert(idem.StateCompleted), faulty.Insert, true},
		"complete":        {update(idem.StateCompleted), faulty.Update, true},
		"release":         {update(idem.StateFailedRetryable), faulty.Update, true},
		"renew": {func(ctx context.Context, s *breaker.Store) error {
			return s.Renew(ctx, record(idem.StateInProgress), idem.FenceOfHolder(record(idem.StateInProgress)))
		}, faulty.Renew, true},
		"postpone": {func(ctx context.Context, s *breaker.Store) error {
			return s.Postpone(ctx, record(idem.StateUnknown), idem.FenceOfHolder(record(idem.StateUnknown)))
		}, faulty.Postpone, true},
		"park":           {update(idem.StateUnknown), faulty.Update, true},
		"back off":       {message(idem.MessagePending), faulty.UpdateMessage, true},
		"park a message": {message(idem.MessageUnknown), faulty.UpdateMessage, true},
		"judge evidence": {func(ctx context.Context, s *breaker.Store) error { _, err := s.Message(ctx, "op_1.1"); return err }, faulty.Message, true},
		"load a response": {func(ctx context.Context, s *breaker.Store) error {
			_, err := s.LoadResponse(ctx, record(idem.StateCompleted))
			return err
		}, faulty.LoadResponse, true},
		"commit an insert": {commit(nil), faulty.Commit, true},
		"commit a lease":   {commit(&idem.Fence{OperationID: "op_1", Owner: "owner", Epoch: 1, States: []idem.State{idem.StateInProgress}}), faulty.Commit, true},
		"settle": {func(ctx context.Context, s *breaker.Store) error {
			send, err := s.PrepareSettle(idem.Settlement{Message: idem.MessageEnd{ID: "op_1.1", State: idem.MessageDelivered}, Token: "token"})
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

func commit(fence *idem.Fence) func(context.Context, *breaker.Store) error {
	return func(ctx context.Context, s *breaker.Store) error {
		r := idem.Record{Key: "key", State: idem.StateCompleted, OperationID: "op_1", Epoch: 1, Owner: "owner", SchemaVersion: idem.SchemaVersion}
		send, err := s.Prepare(idem.Commit{Record: r, Fence: fence, Now: time.Now(), Token: "token"})
		if err != nil {
			return err
		}
		return send(ctx)
	}
}
