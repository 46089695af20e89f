package lambdatest

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Die leaves the record of a wrapped operation whose holder died, its lease having ended the given time ago.
func (s *Stage) Die(t *testing.T, ago time.Duration) storage.RecordKey {
	t.Helper()
	return s.wrapped(t, storage.StateInProgress, ago)
}

// Unknown leaves the record of a wrapped operation that was parked, its lease having ended the given time ago.
func (s *Stage) Unknown(t *testing.T, ago time.Duration) storage.RecordKey {
	t.Helper()
	return s.wrapped(t, storage.StateUnknown, ago)
}

func (s *Stage) wrapped(t *testing.T, state storage.State, ago time.Duration) storage.RecordKey {
	t.Helper()
	key := idem.Scope{Tenant: Tenant, Operation: "orders.import", Key: "order-17"}.RecordKey()
	id, err := storage.IDGenerator{Random: rand.Reader}.OperationID(key)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(-ago).UTC().Truncate(time.Millisecond)
	r := storage.Record{
		Key: key, State: state, OperationID: id, Epoch: 1, Owner: "AAAAAAAAAAAAAAAAAAAAAA", Revision: "BBBBBBBBBBBBBBBBBBBBBA", LeaseUntil: end, Tenant: Tenant,
		Operation: "orders.import", Kind: idem.KindWrapped, CreatedAt: end.Add(-30 * time.Second), Retention: 24 * time.Hour,
		Attempts: 1, SchemaVersion: storage.SchemaVersion,
	}
	if err := s.store(t).Insert(t.Context(), r, time.Now()); err != nil {
		t.Fatal(err)
	}
	return key
}

// RecordState is the state of a record, "" where there is none.
func (s *Stage) RecordState(t *testing.T, key storage.RecordKey) storage.State {
	t.Helper()
	r, err := s.store(t).Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if r == nil {
		return ""
	}
	return r.State
}

// store is the functions' own, as the environment makes it.
func (s *Stage) store(t *testing.T) *delivery.Store {
	t.Helper()
	return parts(t).Store
}

// Deliver has a worker deliver the message, as its wake-up does.
func (s *Stage) Deliver(t *testing.T, id idem.MessageID) {
	t.Helper()
	p := parts(t)
	worker, err := outbox.NewWorker(p.Store, p.Topics, p.Queue, p.Queue)
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Deliver(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// parts are what the worker is made of, as the environment says.
func parts(t *testing.T) delivery.Parts {
	t.Helper()
	cfg, err := config.Read[config.Worker]()
	if err != nil {
		t.Fatal(err)
	}
	made, err := delivery.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return made
}
