package call_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/call"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
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

// provider is a transport that takes a request as net/http's does: what it can't read to the end never leaves.
type provider func()

func (p provider) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	p()
	return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(strings.NewReader(`{"id":"ch_1"}`))}, nil
}

// A process may be frozen after it has read the clock, and before it sends what it decided by that reading. Once its claim is over,
// another one may have taken its absence for proof, and called.
func TestAWorkerThatIsFrozenAfterItReadTheClockSendsNothing(t *testing.T) {
	const freeze = 20 * time.Minute
	held := 0
	for n := 1; ; n++ { // it is frozen at the n-th reading after its claim
		var frozen, sent bool
		synctest.Test(t, func(t *testing.T) {
			var claimed bool
			reads := 0
			now := func() time.Time {
				read := time.Now()
				if claimed {
					if reads++; reads == n {
						time.Sleep(freeze)
						frozen = !sent
					}
				}
				return read
			}
			client := newClient(t, call.Config{Transport: provider(func() { sent = true })})
			topics, err := outbox.NewTopics(outbox.Config{Now: now}, outbox.Topic{
				Name: "orders.charge",
				Call: func(ctx context.Context, m storage.Message) outbox.Outcome {
					return client.Post(ctx, call.Request{URL: "http://provider.test/", Key: m.ID, Body: m.Payload})
				},
				Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
					return outbox.Settlement{Response: idem.Response{Status: 201}}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			inner, m := accepted(t)
			store := faulty.New(inner)
			store.Each(func(faulty.Call) faulty.Fault {
				return func(ctx context.Context, run func(context.Context) error) error {
					err := run(ctx)
					row, _ := inner.Message(ctx, m.ID)
					claimed = claimed || row != nil && row.State == storage.MessageClaimed
					return err
				}
			})
			queue := memqueue.New(time.Now)
			worker, err := outbox.NewWorker(store, topics, queue, queue)
			if err != nil {
				t.Fatal(err)
			}
			// What is too late for its claim can't be written either, and is the next worker's.
			if err := worker.Deliver(t.Context(), m.ID); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		switch {
		case frozen && sent:
			t.Errorf("frozen for %v at reading %d of the clock after its claim, it sent the request all the same", freeze, n)
		case frozen:
			held++
		case held < 2:
			t.Fatalf("it was frozen before the request in %d runs only", held)
		default:
			return
		}
	}
}
