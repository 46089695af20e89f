package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Where encryption is on, the stream shows a payload that nobody else can read; the worker opens and delivers it.
func TestSealedMessageIsDeliveredAsTheStreamShowsIt(t *testing.T) {
	s := lambdatest.New(t)
	s.Seal(t)
	a, h := s.Accept(t, 0), started(t)
	if bytes.Equal(a.Stream, lambdatest.Sample(t, "worker-stream-insert")) || bytes.Contains(a.Stream, []byte("order-17")) {
		t.Fatalf("the payload is not sealed: %s", a.Stream)
	}
	none(t, failures(t, h, a.Stream))
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
	if charge := s.Charges(t)[0]; charge.Amount != 1999 || charge.Reference != "order-17" {
		t.Errorf("charge %+v", charge)
	}
}

// semantics.md "What is never cached or trusted": an erased tenant's messages end dead, nothing of it is executed, and its
// operations fail. Only the payload could say what that means to the application.
func TestErasedTenantsMessageEndsDead(t *testing.T) {
	s := lambdatest.New(t)
	keys := s.Seal(t)
	a, h := s.Accept(t, 0), started(t)
	if err := keys.Erase(t.Context(), lambdatest.Tenant); err != nil {
		t.Fatal(err)
	}
	none(t, failures(t, h, a.Stream))
	a.Want(t, storage.MessageDead, storage.StateFailed, payments.StatusPending, 0)
	if sent := s.Queues.Dead(); len(sent) != 1 {
		t.Errorf("dead-letter queue %+v", sent)
	}
}

// Trouble with the keys loses nothing: the record comes again.
func TestKeysThatCannotBeFetchedFailTheRecord(t *testing.T) {
	s := lambdatest.New(t)
	s.Seal(t)
	a := s.Accept(t, 0)
	working := started(t)
	t.Setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:1")
	if failed := failures(t, started(t), a.Stream); len(failed) != 1 {
		t.Errorf("failed %q, want the record", failed)
	}
	a.Want(t, storage.MessagePending, storage.StatePending, payments.StatusPending, 0)
	none(t, failures(t, working, a.Stream))
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
}

// SEAL_OPEN_ONLY: the release before the first that seals reads what the next one stores.
func TestOpenOnlyOpensAndDoesNotSeal(t *testing.T) {
	s := lambdatest.New(t)
	s.Seal(t)
	sealed := s.Accept(t, time.Second)
	t.Setenv("SEAL_OPEN_ONLY", "true")
	none(t, failures(t, started(t), sealed.Stream))
	sealed.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
	for _, record := range s.Items(t, s.Idempotency) {
		if record[schema.Sealed] != nil {
			t.Errorf("a record was sealed: %v", record)
		}
	}
}
