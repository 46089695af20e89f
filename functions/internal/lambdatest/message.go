package lambdatest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Accepted is the payment of the sample events of the worker, as its request left it.
type Accepted struct {
	Message storage.Message
	Payment payments.Payment
	// Stream is the event of its birth on the outbox stream, Queue a wake-up.
	Stream, Queue []byte

	stage *Stage
	store *delivery.Store
}

// The instant in the sample events.
const sampled = "1795228800000"

// Accept puts the message of worker-stream-insert into the tables, with its record and its payment, as if its request had
// come the given time ago.
func (s *Stage) Accept(t *testing.T, age time.Duration) *Accepted {
	t.Helper()
	a := s.accepted(t, age)
	a.commit(t, s.Outbox)
	a.seal(t)
	return a
}

// AcceptMore puts so many other messages of the same kind into the tables, each with its record and its payment.
func (s *Stage) AcceptMore(t *testing.T, count int, age time.Duration) {
	t.Helper()
	for range count {
		s.AcceptOf(t, Tenant, "card_ok", age)
	}
}

// AcceptOf puts a message of the same kind into the tables that charges a source for a tenant, with its record and its payment.
func (s *Stage) AcceptOf(t *testing.T, tenant, source string, age time.Duration) idem.MessageID {
	t.Helper()
	n := s.more.Add(1)
	a := s.accepted(t, age)
	m := &a.Message
	m.Tenant = tenant
	m.RecordKey = idem.Scope{Tenant: tenant, Operation: "payments.create", Key: fmt.Sprint("more-", n)}.RecordKey()
	id, err := storage.IDGenerator{Random: rand.Reader}.OperationID(m.RecordKey)
	if err != nil {
		t.Fatal(err)
	}
	m.OperationID, m.ID = id, id.Message(1)
	before := a.Payment
	a.Payment.Tenant, a.Payment.ID, a.Payment.Source, a.Payment.Message = tenant, fmt.Sprintf("pay_%022d", n), source, m.ID
	m.Payload = []byte(strings.NewReplacer(before.ID, a.Payment.ID, before.Source, source).Replace(string(m.Payload)))
	a.commit(t, fmt.Sprint(s.Outbox, n))
	return m.ID
}

// accepted is what a request leaves that came the given time ago; nothing is written.
func (s *Stage) accepted(t *testing.T, age time.Duration) *Accepted {
	t.Helper()
	a := &Accepted{stage: s, store: s.store(t), Queue: Sample(t, "worker-queue")}
	now := time.Now().Add(-age).UTC().Truncate(time.Millisecond)
	a.Stream = []byte(strings.ReplaceAll(string(Sample(t, "worker-stream-insert")), sampled, fmt.Sprint(now.UnixMilli())))
	var event events.DynamoDBEvent
	if err := json.Unmarshal(a.Stream, &event); err != nil {
		t.Fatal(err)
	}
	image, err := awslambda.Image(event.Records[0])
	if err != nil {
		t.Fatal(err)
	}
	m, err := a.store.Image(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	m.SweepAt = m.CreatedAt.Add(15 * time.Second)
	a.Message = m
	a.Payment = payments.Payment{
		Tenant: Tenant, ID: "pay_gAAQIDBAUGBwgJCgsMDQ4P", Status: payments.StatusPending, Amount: 1999, Currency: "EUR", Source: "card_ok",
		Reference: "order-17", CreatedAt: now, Message: m.ID,
	}
	return a
}

// Park leaves the message as a worker does that called, and whose lease ended, at once after its request: unknown.
func (a *Accepted) Park(t *testing.T) {
	t.Helper()
	m := a.Message
	m.State, m.Epoch, m.Owner, m.Revision, m.Attempts = storage.MessageUnknown, 1, "BBBBBBBBBBBBBBBBBBBBBB", "CCCCCCCCCCCCCCCCCCCCCA", 1
	m.FirstClaimedAt, m.OpenSince, m.LeaseUntil, m.SweepAt = m.CreatedAt, m.CreatedAt, m.CreatedAt, m.CreatedAt
	if err := a.store.UpdateMessage(t.Context(), m, storage.FenceOfMessage(a.Message)); err != nil {
		t.Fatal(err)
	}
}

// Charge makes the provider charge what the message asks for, under its key.
func (a *Accepted) Charge(t *testing.T) {
	t.Helper()
	body := strings.NewReader(`{"amount":1999,"currency":"EUR","source":"card_ok","reference":"order-17"}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.stage.Provider.URL+"/charges", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", string(a.Message.ID))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("charge: %s", resp.Status)
	}
}

func (a *Accepted) commit(t *testing.T, token string) {
	t.Helper()
	m, now := a.Message, a.Payment.CreatedAt
	send, err := a.store.Prepare(storage.Commit{
		Record: storage.Record{
			Key: m.RecordKey, State: storage.StatePending, OperationID: m.OperationID, Epoch: 1, Owner: "AAAAAAAAAAAAAAAAAAAAAA", Revision: "BBBBBBBBBBBBBBBBBBBBBA", Tenant: m.Tenant,
			Operation: "payments.create", Kind: idem.KindDeferred, Response: idem.Response{Status: 202}, CreatedAt: now,
			Retention: m.Retention, Attempts: 1, SchemaVersion: storage.SchemaVersion,
		},
		Now: now, Writes: []idem.Write{payments.InsertPayment{Payment: a.Payment}}, Messages: []storage.Message{m}, Token: token,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Want demands the states of the message, of its record and of its payment, and how many charges the provider has made.
func (a *Accepted) Want(t *testing.T, message storage.MessageState, record storage.State, payment payments.Status, charges int) {
	t.Helper()
	m, err := a.store.Message(t.Context(), a.Message.ID)
	if err != nil || m == nil {
		t.Fatalf("message: %v, %v", m, err)
	}
	r, err := a.store.Get(t.Context(), m.RecordKey)
	if err != nil || r == nil {
		t.Fatalf("record: %v, %v", r, err)
	}
	p, err := payments.Table{Client: a.stage.Client, Name: a.stage.Payments}.Payment(t.Context(), a.Payment.Tenant, a.Payment.ID)
	if err != nil || p == nil {
		t.Fatalf("payment: %v, %v", p, err)
	}
	made := a.stage.Charges(t)
	if m.State != message || r.State != record || p.Status != payment || len(made) != charges {
		t.Errorf("message %s (%s), record %s, payment %s, %d charges; want %s, %s, %s, %d",
			m.State, m.LastOutcome, r.State, p.Status, len(made), message, record, payment, charges)
	}
}
