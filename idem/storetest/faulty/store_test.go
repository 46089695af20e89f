package faulty_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

var start = time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)

const token = "token"

var (
	record = storage.Record{
		Key: "key", State: storage.StatePending, OperationID: "op_1", Epoch: 1, Owner: "owner", Revision: "first", Kind: storage.KindDeferred,
		Response: storage.Response{Status: 202, Body: make([]byte, 10_000)}, SchemaVersion: storage.SchemaVersion,
	}
	message = storage.Message{Revision: "one",
		ID: record.OperationID.Message(1), State: storage.MessagePending, SweepAt: start, SchemaVersion: storage.SchemaVersion,
	}
)

func newStore(t *testing.T) (*faulty.Store, *memstore.Store) {
	t.Helper()
	inner, err := memstore.New(memstore.Config{Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	return faulty.New(inner), inner
}

// every is each call of the store, in an order in which all of them succeed.
var every = []struct {
	call faulty.Call
	make func(context.Context, *faulty.Store) error
}{
	{faulty.Commit, func(ctx context.Context, s *faulty.Store) error {
		send, err := s.Prepare(storage.Commit{Record: record, Now: start, Messages: []storage.Message{message}, Token: token})
		if err != nil {
			return err
		}
		return send(ctx)
	}},
	{faulty.Get, func(ctx context.Context, s *faulty.Store) error {
		r, err := s.Get(ctx, record.Key)
		return found(r != nil && r.Chunks > 0, err)
	}},
	{faulty.LoadResponse, func(ctx context.Context, s *faulty.Store) error {
		r := record
		sum := sha256.Sum256(r.Response.Body)
		r.Chunks, r.ChunksDigest, r.Response.Body = 1, string(sum[:]), nil // as a store in memory reads it
		r, err := s.LoadResponse(ctx, r)
		return found(len(r.Response.Body) == 10_000, err)
	}},
	{faulty.Update, func(ctx context.Context, s *faulty.Store) error {
		return s.Update(ctx, record, storage.FenceOf(record))
	}},
	{faulty.Renew, func(ctx context.Context, s *faulty.Store) error { return s.Renew(ctx, record, storage.FenceOf(record)) }},
	{faulty.Postpone, func(ctx context.Context, s *faulty.Store) error {
		r := record
		r.LookAt = start
		return s.Postpone(ctx, r, storage.FenceOf(record))
	}},
	{faulty.Insert, func(ctx context.Context, s *faulty.Store) error {
		r := record
		r.Key, r.State, r.Kind, r.LeaseUntil = "other", storage.StateInProgress, storage.KindWrapped, start
		return s.Insert(ctx, r, start)
	}},
	{faulty.Message, func(ctx context.Context, s *faulty.Store) error {
		m, err := s.Message(ctx, message.ID)
		return found(m != nil, err)
	}},
	{faulty.UpdateMessage, func(ctx context.Context, s *faulty.Store) error {
		return s.UpdateMessage(ctx, message, storage.FenceOfMessage(message))
	}},
	{faulty.PatchMessage, func(ctx context.Context, s *faulty.Store) error {
		end := storage.MessageEnd{ID: message.ID, State: message.State, Revision: message.Revision, SweepAt: message.SweepAt}
		return s.PatchMessage(ctx, end, storage.FenceOfMessage(message))
	}},
	{faulty.PostponeMessage, func(ctx context.Context, s *faulty.Store) error {
		return s.PostponeMessage(ctx, message.ID, start, storage.FenceOfMessage(message))
	}},
	{faulty.Place, func(ctx context.Context, s *faulty.Store) error {
		_, err := s.Place(ctx, "offer.0")
		return err
	}},
	{faulty.SetPlace, func(ctx context.Context, s *faulty.Store) error { return s.SetPlace(ctx, "offer.0", "cursor") }},
	{faulty.QueuedMessages, func(ctx context.Context, s *faulty.Store) error {
		refs, _, err := s.QueuedMessages(ctx, storage.QueueOffer, s.Shards()-1, start, 10, "")
		return found(len(refs) == 1, err)
	}},
	{faulty.QueuedRecords, func(ctx context.Context, s *faulty.Store) error {
		refs, _, err := s.QueuedRecords(ctx, storage.QueueLease, s.Shards()-1, start, 10, "")
		return found(len(refs) == 1, err)
	}},
	{faulty.Settle, func(ctx context.Context, s *faulty.Store) error {
		end := storage.MessageEnd{ID: message.ID, State: storage.MessageDelivered}
		send, err := s.PrepareSettle(storage.Settlement{Message: end, Fence: storage.MessageFence{Open: true}, Token: token + " 2"})
		if err != nil {
			return err
		}
		return send(ctx)
	}},
}

var errNotFound = errors.New("the store did not find what is there")

func found(ok bool, err error) error {
	if err == nil && !ok {
		return errNotFound
	}
	return err
}

func isUnknown(err error) bool {
	var unknown *storage.OutcomeUnknownError
	return errors.As(err, &unknown)
}

func TestWithoutFaultsEveryCallPasses(t *testing.T) {
	store, _ := newStore(t)
	for _, c := range every {
		if err := c.make(t.Context(), store); err != nil {
			t.Errorf("%s: %v", c.call, err)
		}
		if n := store.Count(c.call); n != 1 {
			t.Errorf("%s was counted %d times", c.call, n)
		}
	}
}

func TestEveryCallCanBeRefused(t *testing.T) {
	store, _ := newStore(t)
	for _, c := range every {
		store.On(c.call, 1, faulty.Refuse(storage.ErrThrottled))
		if err := c.make(t.Context(), store); !errors.Is(err, storage.ErrContention) {
			t.Errorf("%s: got error %v, want ErrContention", c.call, err)
		}
		if err := c.make(t.Context(), store); err != nil {
			t.Errorf("%s, the next: %v", c.call, err)
		}
	}
}

func TestWhatCanNotBePreparedIsNoCall(t *testing.T) {
	store, _ := newStore(t)
	if _, err := store.Prepare(storage.Commit{Record: record}); err == nil {
		t.Error("a commit without a token was prepared")
	}
	if _, err := store.PrepareSettle(storage.Settlement{}); err == nil {
		t.Error("a settlement without a token was prepared")
	}
	if n := store.Count(faulty.Commit) + store.Count(faulty.Settle); n != 0 {
		t.Errorf("%d calls were counted", n)
	}
}

func TestOnCountsFromNow(t *testing.T) {
	store, _ := newStore(t)
	get := func() error { _, err := store.Get(t.Context(), "absent"); return err }
	if err := get(); err != nil {
		t.Fatal(err)
	}
	store.On(faulty.Get, 2, faulty.Refuse(storage.ErrContention))
	var failed []bool
	for range 3 {
		failed = append(failed, get() != nil)
	}
	if !slices.Equal(failed, []bool{false, true, false}) {
		t.Errorf("calls failed: %v, want the second alone", failed)
	}
}

func TestLostRequestAndLostReplyLookAlike(t *testing.T) {
	store, inner := newStore(t)
	insert := func() error { return store.Insert(t.Context(), record, start) }
	store.On(faulty.Insert, 1, faulty.LoseRequest())
	if err := insert(); !isUnknown(err) || len(inner.Records()) != 0 {
		t.Errorf("lost request: %v, %d records", err, len(inner.Records()))
	}
	store.On(faulty.Insert, 1, faulty.LoseReply())
	if err := insert(); !isUnknown(err) || len(inner.Records()) != 1 {
		t.Errorf("lost reply: %v, %d records", err, len(inner.Records()))
	}
}

func TestLateRequestLandsWhenItIsDelivered(t *testing.T) {
	store, inner := newStore(t)
	var late faulty.Late
	if err := late.Deliver(t.Context()); !errors.Is(err, faulty.ErrNotSent) {
		t.Errorf("got error %v, want ErrNotSent", err)
	}
	store.On(faulty.Insert, 1, late.Fault())
	ctx, cancel := context.WithCancel(t.Context())
	if err := store.Insert(ctx, record, start); !isUnknown(err) || len(inner.Records()) != 0 {
		t.Errorf("before: %v, %d records", err, len(inner.Records()))
	}
	cancel() // the caller has gone; its request has not
	if err := late.Deliver(t.Context()); err != nil || len(inner.Records()) != 1 {
		t.Errorf("after: %v, %d records", err, len(inner.Records()))
	}
	if err := late.Deliver(t.Context()); !errors.Is(err, faulty.ErrNotSent) {
		t.Errorf("got error %v, want ErrNotSent", err)
	}
}

func TestHooksStandAroundTheCall(t *testing.T) {
	store, inner := newStore(t)
	var seen []int
	store.On(faulty.Insert, 1, faulty.Before(func() { seen = append(seen, len(inner.Records())) }))
	store.On(faulty.Insert, 1, faulty.After(func(err error) { seen = append(seen, len(inner.Records())) }))
	if err := store.Insert(t.Context(), record, start); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []int{0, 1}) {
		t.Errorf("the hooks saw %v records, want 0 and 1", seen)
	}
}

// A process that is killed after a call reaches the store no more, until Clear starts another.
func TestKilledAfterACall(t *testing.T) {
	store, inner := newStore(t)
	killed := errors.New("killed")
	store.On(faulty.Insert, 1, faulty.After(func(error) { store.All(faulty.Refuse(killed)) }))
	if err := store.Insert(t.Context(), record, start); err != nil || len(inner.Records()) != 1 {
		t.Errorf("the last call: %v, %d records", err, len(inner.Records()))
	}
	for _, c := range every {
		if err := c.make(t.Context(), store); !errors.Is(err, killed) {
			t.Errorf("%s: got error %v, want that of the dead", c.call, err)
		}
	}
	store.Clear()
	if r, err := store.Get(t.Context(), record.Key); err != nil || r == nil {
		t.Errorf("after Clear: %v, %v", r, err)
	}
}

func TestGateHoldsTheCall(t *testing.T) {
	for name, hold := range map[string]struct {
		fault   func(*faulty.Gate) faulty.Fault
		records int
	}{"before": {(*faulty.Gate).Before, 0}, "after": {(*faulty.Gate).After, 1}} {
		t.Run(name, func(t *testing.T) {
			store, inner := newStore(t)
			gate := faulty.NewGate()
			store.On(faulty.Insert, 1, hold.fault(gate))
			done := make(chan error)
			go func() { done <- store.Insert(t.Context(), record, start) }()
			<-gate.Reached()
			if n := len(inner.Records()); n != hold.records {
				t.Errorf("at the gate there are %d records, want %d", n, hold.records)
			}
			gate.Release()
			gate.Release()
			if err := <-done; err != nil || len(inner.Records()) != 1 {
				t.Errorf("past the gate: %v, %d records", err, len(inner.Records()))
			}
		})
		t.Run(name+", and the caller gives up", func(t *testing.T) {
			store, inner := newStore(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			gate := faulty.NewGate()
			store.On(faulty.Insert, 1, hold.fault(gate))
			go func() { <-gate.Reached(); cancel() }()
			if err := store.Insert(ctx, record, start); !isUnknown(err) || !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want an OutcomeUnknownError", err)
			}
			if n := len(inner.Records()); n != hold.records {
				t.Errorf("there are %d records, want %d", n, hold.records)
			}
		})
	}
}
