package outbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// world is an application with one topic, its store, its provider and its queues, on a clock that only the test moves.
type world struct {
	*testing.T
	clock    *clock
	inner    *memstore.Store
	store    *faulty.Store
	queue    *memqueue.Queue
	wakes    outbox.WakeUps
	provider *provider
	topics   *outbox.Topics
	worker   *outbox.Worker
	// runner asks the provider by provider.probe.
	runner   *outbox.Runner
	operator *outbox.Operator
	log      *syncBuffer
	mint     storage.IDGenerator
}

// options vary a world; the zero value is a provider that honours keys.
type options struct {
	topic  func(*outbox.Topic)
	config func(*outbox.Config)
	store  memstore.Config
	wakes  outbox.WakeUps
	seed   uint64
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const lease = 10 * time.Second

const (
	topicName = "payments.charge"
	payload   = `{"card":"secret"}`
)

func newWorld(t *testing.T, o options) *world {
	t.Helper()
	w := &world{T: t, clock: &clock{now: noon}, log: &syncBuffer{}}
	w.queue, w.provider = memqueue.New(w.clock.Now), &provider{keyed: true, charges: map[idem.MessageID]int{}}
	w.mint = storage.IDGenerator{Random: &source{seed: rand.NewChaCha8([32]byte{byte(o.seed), byte(o.seed >> 8)})}}
	o.store.Now = w.clock.Now
	var err error
	w.inner, err = memstore.New(o.store)
	w.ok(err)
	w.store = faulty.New(w.inner)
	cfg := outbox.Config{
		Now: w.clock.Now, Random: w.mint.Random, Pause: w.clock.Pause,
		Logger: slog.New(slog.NewJSONHandler(w.log, nil)),
	}
	if o.config != nil {
		o.config(&cfg)
	}
	topic := outbox.Topic{
		Name: topicName, Call: w.provider.call, Probe: w.provider.probe, Settle: settle,
		Keys: outbox.Keys{Honoured: true, Retention: time.Hour}, AttemptsMax: 3,
	}
	if o.topic != nil {
		o.topic(&topic)
	}
	w.provider.keyed = topic.Keys.Honoured
	w.topics, err = outbox.NewTopics(cfg, topic)
	w.ok(err)
	if o.wakes == nil {
		o.wakes = w.queue
	}
	w.wakes = o.wakes
	w.worker, err = outbox.NewWorker(w.store, w.topics, w.wakes, w.queue)
	w.ok(err)
	w.runner, err = outbox.NewRunner(w.worker, nil, nil)
	w.ok(err)
	w.operator, err = outbox.NewOperator(w.store, w.topics, o.wakes, w.queue)
	w.ok(err)
	return w
}

// sweep and reconcile look once at the messages that are due.
func (w *world) sweep(ctx context.Context) (outbox.Counts, error) {
	did, err := w.runner.Sweep(ctx)
	return did.Messages, err
}

func (w *world) reconcile(ctx context.Context) (outbox.Counts, error) {
	did, err := w.runner.Reconcile(ctx)
	return did.Messages, err
}

func keyless(topic *outbox.Topic) { topic.Keys = outbox.Keys{} }

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// accept commits a deferred operation with its first message, and returns the message's id.
func (w *world) accept(change ...func(*storage.Message)) idem.MessageID {
	w.Helper()
	owner, err := w.mint.Owner()
	w.ok(err)
	key := idem.Scope{Tenant: "t", Operation: "payments.create", Key: string(owner)}.RecordKey()
	operation, err := w.mint.OperationID(key)
	w.ok(err)
	now := w.clock.Now()
	m := storage.Message{
		Revision: w.revision(), ID: operation.Message(1), Index: 1, OperationID: operation, RecordKey: key, Tenant: "t", Topic: topicName,
		Payload: []byte(payload), State: storage.MessagePending, CreatedAt: now, NextAttemptAt: now,
		SweepAt: now.Add(15 * time.Second), Retention: 24 * time.Hour, SchemaVersion: storage.SchemaVersion,
	}
	for _, f := range change {
		f(&m)
	}
	record := storage.Record{
		Key: key, State: storage.StatePending, OperationID: operation, Epoch: 1, Owner: owner, Revision: storage.Revision(owner), Tenant: "t", Operation: "payments.create",
		Kind: idem.KindDeferred, Response: idem.Response{Status: 202}, CreatedAt: now, Retention: m.Retention, Expiry: m.Expiry, SchemaVersion: storage.SchemaVersion,
	}
	if m.Detached {
		record.State, record.ExpiresAt, record.FreeAt = storage.StateCompleted, now.Add(m.Retention), now.Add(m.Retention)
	}
	send, err := w.inner.Prepare(storage.Commit{Record: record, Now: now, Messages: []storage.Message{m}, Token: string(owner)})
	w.ok(err)
	w.ok(send(w.Context()))
	return m.ID
}

func (w *world) revision() storage.Revision {
	w.Helper()
	revision, err := w.mint.Revision()
	w.ok(err)
	return revision
}

// rewrite changes a stored message as somebody else would.
func (w *world) rewrite(id idem.MessageID, change func(*storage.Message)) {
	w.Helper()
	m := w.message(id)
	seen := storage.FenceOfMessage(m)
	change(&m)
	m.Revision = w.revision()
	w.ok(w.inner.UpdateMessage(w.Context(), m, seen))
}

func (w *world) message(id idem.MessageID) storage.Message {
	w.Helper()
	m, err := w.inner.Message(w.Context(), id)
	w.ok(err)
	if m == nil {
		w.Fatalf("message %s is gone", id)
	}
	return *m
}

func (w *world) record(id idem.MessageID) storage.Record {
	w.Helper()
	operation, _, err := id.Operation()
	w.ok(err)
	key, err := operation.RecordKey()
	w.ok(err)
	for _, r := range w.inner.Records() {
		if r.Key == key {
			return r
		}
	}
	w.Fatalf("record of %s is gone", id)
	return storage.Record{}
}

// deliver wakes the worker for the message, and demands that it has no trouble.
func (w *world) deliver(id idem.MessageID) {
	w.Helper()
	w.ok(w.worker.Deliver(w.Context(), id))
}

// drain lets time pass and serves every wake-up that becomes due.
func (w *world) drain(d time.Duration) {
	w.Helper()
	until := w.clock.Now().Add(d)
	for {
		at, ok := w.queue.Next()
		if !ok || at.After(until) {
			break
		}
		w.clock.Set(at)
		for _, id := range w.queue.Take() {
			w.deliver(id)
		}
	}
	w.clock.Set(until)
}

// want compares what became of a message, its record, its business row, and what the provider made of it.
func (w *world) want(id idem.MessageID, message storage.MessageState, record storage.State, status int, row string, charges int) {
	w.Helper()
	m, r := w.message(id), w.record(id)
	if m.State != message || r.State != record || r.Response.Status != status {
		w.Errorf("message %s (%s), record %s with status %d; want %s, %s, %d", m.State, m.LastOutcome, r.State, r.Response.Status, message, record, status)
	}
	if got := string(w.inner.Row("payment " + string(id))); got != row {
		w.Errorf("business row %q, want %q", got, row)
	}
	if got := w.provider.made(id); got != charges {
		w.Errorf("%d charges at the provider, want %d", got, charges)
	}
	if final := r.State.Final(); final == r.ExpiresAt.IsZero() && !m.Detached {
		w.Errorf("record is %s and expires at %v", r.State, r.ExpiresAt)
	}
}

// logged says how often an event was logged, and fails on a line that tells a secret.
func (w *world) logged(event string) int {
	w.Helper()
	text := w.log.String()
	for _, secret := range []string{"secret", "ch_"} {
		if strings.Contains(text, secret) {
			w.Errorf("the log tells %q:\n%s", secret, text)
		}
	}
	return strings.Count(text, `"msg":"`+event+`"`)
}

// settle is the application's: a row that says what became of the payment, and a final response.
func settle(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	row := o.Name()
	write := memstore.Write{Key: "payment " + string(m.ID), Apply: func([]byte) []byte { return []byte(row) }}
	said := outbox.Settlement{Writes: []idem.Write{write}}
	switch o := o.(type) {
	case outbox.Delivered:
		said.Response = idem.Response{Status: 201, Body: o.Evidence}
	case outbox.Declined:
		said.Response = idem.Response{Status: 402, Body: o.Evidence}
	}
	return said, nil
}

// provider charges, once for each key where it honours keys, and fails as the script says, call by call.
type provider struct {
	mu      sync.Mutex
	keyed   bool
	charges map[idem.MessageID]int
	script  []string
	calls   int
	// during runs within each call, after the charge.
	during func()

	// answers script the probes, probe by probe; past them a probe tells the truth.
	answers []string
	probes  int
	// probing runs within each probe, after the provider looked.
	probing func()
}

func (p *provider) made(id idem.MessageID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.charges[id]
}

func (p *provider) called() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

func (p *provider) next() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if len(p.script) == 0 {
		return ""
	}
	step := p.script[0]
	p.script = p.script[1:]
	return step
}

func (p *provider) charge(id idem.MessageID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.keyed || p.charges[id] == 0 {
		p.charges[id]++
	}
}

func (p *provider) call(ctx context.Context, m storage.Message) outbox.Outcome {
	step := p.next()
	if _, ok := ctx.Deadline(); !ok {
		panic("a call without a deadline")
	}
	switch step {
	case "429":
		return outbox.NotExecuted{Cause: errors.New("429")}
	case "429 for 20 s":
		return outbox.NotExecuted{RetryAfter: 20 * time.Second, Cause: errors.New("429")}
	case "401":
		return outbox.NotExecuted{Unauthorized: true, Cause: errors.New("401")}
	case "unreachable":
		return outbox.NotExecuted{Unsent: true, Cause: errors.New("connection refused")}
	case "500 before":
		return outbox.Ambiguous{Cause: errors.New("500")}
	case "400":
		return outbox.Refused{Cause: errors.New("400")}
	case "400 data":
		return outbox.Refused{Answer: []byte(`{"error":{"param":"source"}}`), Cause: errors.New("400")}
	case "409 data":
		return outbox.Refused{Unproven: true, Answer: []byte(`{"error":{"param":"source"}}`), Cause: errors.New("409")}
	case "409":
		return outbox.Refused{Unproven: true, Cause: errors.New("409")}
	case "402":
		return outbox.Declined{Reference: "ch_no", Evidence: []byte(`{"id":"ch_no"}`)}
	case "nil":
		return nil
	}
	p.charge(m.ID)
	if p.during != nil {
		p.during()
	}
	switch step {
	case "lost":
		return outbox.Ambiguous{Cause: errors.New("connection lost")}
	case "charged, nil":
		return nil
	case "panic":
		panic("secret")
	}
	return outbox.Delivered{Reference: "ch_" + string(m.ID), Evidence: fmt.Appendf(nil, `{"id":"ch_%s"}`, m.ID)}
}

func (p *provider) probed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.probes
}

func (p *provider) answer() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.probes++
	if len(p.answers) == 0 {
		return ""
	}
	answer := p.answers[0]
	p.answers = p.answers[1:]
	return answer
}

func (p *provider) probe(ctx context.Context, m storage.Message) outbox.Finding {
	answer, made := p.answer(), p.made(m.ID)
	if _, ok := ctx.Deadline(); !ok {
		panic("a probe without a deadline")
	}
	if p.probing != nil {
		p.probing()
	}
	switch answer {
	case "unclear":
		return outbox.Unclear{Cause: errors.New("503")}
	case "panic":
		panic("secret")
	case "nil":
		return nil
	case "no evidence":
		return outbox.Found{Outcome: outbox.Ambiguous{}}
	case "declined":
		return outbox.Found{Outcome: outbox.Declined{Reference: "ch_no", Evidence: []byte(`{"id":"ch_no"}`)}}
	}
	if made == 0 {
		return outbox.Absent{}
	}
	return outbox.Found{Outcome: outbox.Delivered{Reference: "ch_" + string(m.ID), Evidence: fmt.Appendf(nil, `{"id":"ch_%s"}`, m.ID)}}
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.After(c.now) {
		c.now = now
	}
}

func (c *clock) Add(d time.Duration) { c.Set(c.Now().Add(d)) }

// Pause lets the time pass at once.
func (c *clock) Pause(_ context.Context, d time.Duration) error {
	c.Add(d)
	return nil
}

// source is a seeded source of randomness for several goroutines.
type source struct {
	mu   sync.Mutex
	seed io.Reader
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seed.Read(p)
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func operationOf(t *testing.T, body []byte) (operation, reference, code string) {
	t.Helper()
	var short struct{ Operation, Reference, Code string }
	if err := json.Unmarshal(body, &short); err != nil {
		t.Fatal(err)
	}
	return short.Operation, short.Reference, short.Code
}
