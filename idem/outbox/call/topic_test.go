package call_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/call"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

// accepted is a store with one message that waits for its call, and its record.
func accepted(t *testing.T) (*memstore.Store, storage.Message) {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	key := idem.Scope{Tenant: "shop", Operation: "orders.create", Key: t.Name()}.RecordKey()
	id := idem.OperationID("op_" + string(key))
	now := time.Now().UTC().Truncate(time.Millisecond)
	r := storage.Record{
		Key: key, State: storage.StatePending, OperationID: id, Epoch: 1, Owner: "owner", Tenant: "shop", Operation: "orders.create", Kind: idem.KindDeferred,
		Response: idem.Response{Status: 202}, CreatedAt: now, Retention: 24 * time.Hour, Attempts: 1, SchemaVersion: storage.SchemaVersion,
	}
	m := storage.Message{
		Revision: "inserted", ID: id.Message(1), Index: 1, OperationID: id, RecordKey: key, Tenant: "shop", Topic: "orders.charge", Payload: []byte(`{"amount":1999}`),
		State: storage.MessagePending, CreatedAt: now, NextAttemptAt: now, SweepAt: now.Add(time.Minute), Retention: r.Retention, SchemaVersion: storage.SchemaVersion,
	}
	send, err := store.Prepare(storage.Commit{Record: r, Now: now, Token: "token", Messages: []storage.Message{m}})
	if err == nil {
		err = send(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return store, m
}

// A status that nobody listed, and a call that says nothing, leave the operation open: it is neither failed nor forgotten.
func TestWhatProvesNothingLeavesTheOperationOpen(t *testing.T) {
	for name, row := range map[string]struct {
		status int
		mute   bool
		open   bool
		record storage.State
	}{
		"listed as refused":     {400, false, false, storage.StateFailed},
		"not listed":            {410, false, true, storage.StatePending},
		"a redirect":            {302, false, true, storage.StatePending},
		"the call says nothing": {400, true, true, storage.StatePending},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(row.status) }))
			defer srv.Close()
			client := newClient(t, call.Config{})
			topics, err := outbox.NewTopics(outbox.Config{}, outbox.Topic{
				Name: "orders.charge", Keys: outbox.Keys{Honoured: true, Retention: 24 * time.Hour},
				Call: func(ctx context.Context, m storage.Message) outbox.Outcome {
					outcome := client.Post(ctx, call.Request{URL: srv.URL, Key: m.ID, Body: m.Payload})
					if row.mute {
						return nil
					}
					return outcome
				},
				Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) { return outbox.Settlement{}, nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			store, m := accepted(t)
			queue := memqueue.New(time.Now)
			worker, err := outbox.NewWorker(store, topics, queue, queue)
			if err == nil {
				err = worker.Deliver(t.Context(), m.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
			message, err := store.Message(t.Context(), m.ID)
			if err != nil || message.OpenSince.IsZero() == row.open {
				t.Errorf("message %s, open since %v, %v; want open: %v", message.State, message.OpenSince, err, row.open)
			}
			record, err := store.Get(t.Context(), m.RecordKey)
			if err != nil || record.State != row.record {
				t.Errorf("the record is %s, %v, want %s", record.State, err, row.record)
			}
		})
	}
}
