package operator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// charges honour keys; of the old ones each attempt is executed, and can be asked about or not. Of a payout there are two, and a third one that
// undoes the first.
const topicName, probedName, keylessName, payoutsName = "payments.charges", "payments.old", "payments.oldest", "payments.payouts"

// auditLog is an audit log in memory that fails on request.
type auditLog struct {
	entries            []operator.Entry
	failBegin, failEnd error
	onBegin            func()
	// onEnd is told the context of each End.
	onEnd func(context.Context)
}

func (l *auditLog) Begin(_ context.Context, e operator.Entry) error {
	if l.failBegin != nil {
		return l.failBegin
	}
	l.entries = append(l.entries, e)
	if l.onBegin != nil {
		l.onBegin()
	}
	return nil
}

func (l *auditLog) End(ctx context.Context, e operator.Entry) error {
	if l.onEnd != nil {
		l.onEnd(ctx)
	}
	if l.failEnd != nil {
		return l.failEnd
	}
	i := slices.IndexFunc(l.entries, func(begun operator.Entry) bool { return begun.ID == e.ID && begun.State == operator.EntryIntended })
	if i < 0 {
		return errors.New("not begun, or ended already")
	}
	l.entries[i] = e
	return nil
}

func (l *auditLog) Entries(_ context.Context, from, to time.Time, subject string, limit int) ([]operator.Entry, error) {
	var found []operator.Entry
	for _, e := range slices.Backward(l.entries) {
		if !e.At.Before(from) && e.At.Before(to) && strings.HasPrefix(e.Subject, subject) && len(found) < limit {
			found = append(found, e)
		}
	}
	return found, nil
}

type world struct {
	*testing.T
	now    time.Time
	store  *memstore.Store
	engine *idem.Engine
	queue  *memqueue.Queue
	audit  *auditLog
	desk   *operator.Desk
	cfg    operator.Config
	mint   storage.IDGenerator
	// finding is what the provider's look-up, and the wrapped operation's, finds.
	finding outbox.Finding
	wrapped outbox.Finding
	// off is how far the clock is ahead of the store's; nil where it is right.
	off func(context.Context) (time.Duration, error)
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, now: noon, audit: &auditLog{}, mint: storage.IDGenerator{Random: rand.NewChaCha8([32]byte{1})}, finding: outbox.Absent{}, wrapped: outbox.Absent{}}
	clock := func() time.Time { return w.now }
	var err error
	w.store, err = memstore.New(memstore.Config{Now: clock, Shards: 2})
	w.ok(err)
	w.engine, err = idem.New(w.store, idem.Config{Now: clock, Random: w.mint.Random})
	w.ok(err)
	w.queue = memqueue.New(clock)
	charges := outbox.Topic{
		Name: topicName, Call: func(context.Context, storage.Message) outbox.Outcome { return outbox.NotExecuted{} },
		Probe: func(context.Context, storage.Message) outbox.Finding { return w.finding },
		Settle: func(_ storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
			status := map[string]int{"delivered": 201, "declined": 402}[o.Name()]
			return outbox.Settlement{Response: idem.Response{Status: status}}, nil
		},
		Keys: outbox.Keys{Honoured: true, Retention: time.Hour},
	}
	probed := charges
	probed.Name, probed.Keys = probedName, outbox.Keys{}
	keyless := probed
	keyless.Name, keyless.Probe = keylessName, nil
	payouts := charges
	payouts.Name, payouts.Settle = payoutsName, settlePayout
	topics, err := outbox.NewTopics(outbox.Config{Now: clock, Random: w.mint.Random}, charges, probed, keyless, payouts)
	w.ok(err)
	w.cfg = operator.Config{
		Store: w.store, Engine: w.engine, Topics: topics, WakeUps: w.queue, DeadLetters: w.queue, Audit: w.audit,
		Probes: map[string]outbox.Probe{"orders.import": func(context.Context, storage.Record) outbox.Finding { return w.wrapped }},
		Application: func(_ context.Context, tenant string, id idem.OperationID, messages []operator.MessageView) (any, error) {
			return fmt.Sprintf("%s asked about %d messages", tenant, len(messages)), nil
		},
		Now: clock, Random: w.mint.Random,
		ClockOff: func(ctx context.Context) (time.Duration, error) {
			if w.off == nil {
				return 0, nil
			}
			return w.off(ctx)
		},
	}
	w.desk, err = operator.New(w.cfg)
	w.ok(err)
	return w
}

// settlePayout goes on with what follows a delivered first message, and undoes that where the second one was not.
func settlePayout(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	_, delivered := o.(outbox.Delivered)
	next := &outbox.Next{Topic: payoutsName, Payload: []byte("{}")}
	switch {
	case m.Index == 1 && delivered:
		return outbox.Settlement{Next: next}, nil
	case m.Index == 2 && !delivered:
		next.Undoes = true
		return outbox.Settlement{Next: next}, nil
	}
	return outbox.Settlement{Response: idem.Response{Status: 200}}, nil
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// message leaves a deferred operation of the tenant, whose message is as change makes it.
func (w *world) message(tenant string, change func(*storage.Message)) storage.Message {
	w.Helper()
	return w.messages(tenant, change)[0]
}

// messages leaves a pending operation of the tenant with messages as the changes make them.
func (w *world) messages(tenant string, changes ...func(*storage.Message)) []storage.Message {
	w.Helper()
	return w.operation(tenant, func(*storage.Record) {}, changes...)
}

// ended leaves an operation that is completed, with messages as the changes make them.
func (w *world) ended(changes ...func(*storage.Message)) []storage.Message {
	w.Helper()
	return w.operation("acme", func(r *storage.Record) {
		r.State, r.Kind, r.Response.Status = storage.StateCompleted, idem.KindAtomic, 201
		r.DoneAt, r.ExpiresAt, r.FreeAt = noon, noon.Add(r.Retention), noon.Add(r.Retention)
	}, changes...)
}

// operation leaves an operation of the tenant, whose record and messages are as the changes make them.
func (w *world) operation(tenant string, record func(*storage.Record), changes ...func(*storage.Message)) []storage.Message {
	w.Helper()
	owner, err := w.mint.Owner()
	w.ok(err)
	key := idem.Scope{Tenant: tenant, Operation: "payments.create", Key: string(owner)}.RecordKey()
	id, err := w.mint.OperationID(key)
	w.ok(err)
	var all []storage.Message
	for i, change := range changes {
		m := storage.Message{
			Revision: storage.Revision(owner), ID: id.Message(i + 1), Index: i + 1, OperationID: id, RecordKey: key, Tenant: tenant, Topic: topicName,
			Payload: []byte("{}"), State: storage.MessagePending, CreatedAt: noon, NextAttemptAt: noon, SweepAt: noon, Retention: 24 * time.Hour,
			SchemaVersion: storage.SchemaVersion,
		}
		change(&m)
		all = append(all, m)
	}
	r := storage.Record{
		Key: key, State: storage.StatePending, OperationID: id, Epoch: 1, Owner: owner, Revision: storage.Revision(owner), Tenant: tenant, Operation: "payments.create",
		Kind: idem.KindDeferred, Response: idem.Response{Status: 202}, CreatedAt: noon, Retention: 24 * time.Hour, SchemaVersion: storage.SchemaVersion,
	}
	record(&r)
	send, err := w.store.Prepare(storage.Commit{Record: r, Now: noon, Messages: all, Token: string(owner)})
	w.ok(err)
	w.ok(send(w.Context()))
	return all
}

// recordless leaves a message whose operation has no record.
func (w *world) recordless(change func(*storage.Message)) storage.Message {
	w.Helper()
	m := w.ended(change)[0]
	w.now = noon.Add(25 * time.Hour)
	if records, messages := w.store.Expire(w.now); records != 1 || messages != 0 {
		w.Fatalf("%d records and %d messages expire", records, messages)
	}
	return m
}

// record leaves an operation without messages, in the state, as the changes make it.
func (w *world) record(kind idem.Kind, state storage.State, changes ...func(*storage.Record)) storage.Record {
	w.Helper()
	owner, err := w.mint.Owner()
	w.ok(err)
	key := idem.Scope{Tenant: "acme", Operation: "orders.import", Key: string(owner)}.RecordKey()
	id, err := w.mint.OperationID(key)
	w.ok(err)
	r := storage.Record{
		Key: key, State: state, OperationID: id, Epoch: 1, Owner: owner, Revision: storage.Revision(owner), LeaseUntil: noon, Tenant: "acme", Operation: "orders.import",
		Kind: kind, CreatedAt: noon, Retention: 24 * time.Hour, Attempts: 1, SchemaVersion: storage.SchemaVersion,
	}
	if state == storage.StateCompleted {
		r.Response, r.RecordOnly, r.DoneAt, r.ExpiresAt = idem.Response{Status: 201, Body: []byte("secret")}, true, noon, noon.Add(r.Retention)
	}
	for _, change := range changes {
		change(&r)
	}
	w.ok(w.store.Insert(w.Context(), r, noon))
	return r
}

func unknown(m *storage.Message) {
	m.State, m.Owner, m.Epoch, m.Attempts, m.LastOutcome = storage.MessageUnknown, "worker", 1, 1, "ambiguous"
	m.OpenSince, m.FirstClaimedAt, m.LeaseUntil = noon, noon, noon
}

func dead(m *storage.Message) {
	unknown(m)
	m.State = storage.MessageDead
}

func (w *world) stateOf(id idem.MessageID) storage.MessageState {
	w.Helper()
	m, err := w.store.Message(w.Context(), id)
	w.ok(err)
	return m.State
}

func (w *world) recordState(key storage.RecordKey) storage.State {
	w.Helper()
	r, err := w.store.Get(w.Context(), key)
	w.ok(err)
	return r.State
}
