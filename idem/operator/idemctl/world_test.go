package idemctl_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/operator/memlog"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

var update = flag.Bool("update", false, "write the transcripts of testdata anew")

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is an application whose clock and chance are the test's, with an operator who types.
type world struct {
	*testing.T
	now   time.Time
	inner *memstore.Store
	store *faulty.Store
	queue *memqueue.Queue
	mint  storage.IDGenerator
	audit *memlog.Log
	app   idemctl.App
	// desk is what a desk is made with.
	desk operator.Config
	// typed is the transcript so far.
	typed strings.Builder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Setenv("IDEMCTL_ACTOR", "ada")
	w := &world{T: t, now: noon, audit: memlog.New(), mint: storage.IDGenerator{Random: rand.NewChaCha8([32]byte{7})}}
	clock := func() time.Time { return w.now }
	var err error
	w.inner, err = memstore.New(memstore.Config{Now: clock, Shards: 1})
	w.ok(err)
	w.store, w.queue = faulty.New(w.inner), memqueue.New(clock)
	engine, err := idem.New(w.store, idem.Config{Now: clock, Random: w.mint.Random})
	w.ok(err)
	topics, err := outbox.NewTopics(outbox.Config{Now: clock, Random: w.mint.Random}, topic("payments.charges", nothing), topic("payments.legacy", nil))
	w.ok(err)
	w.desk = operator.Config{
		Store: w.store, Engine: engine, Topics: topics, WakeUps: w.queue, DeadLetters: w.queue, Audit: w.audit,
		Probes: map[string]outbox.Probe{"orders.import": func(context.Context, storage.Record) outbox.Finding { return outbox.Absent{} }},
		Application: func(context.Context, string, idem.OperationID, []operator.MessageView) (any, error) {
			return map[string]any{"row": map[string]any{"id": "pay_1", "amount": 1999}}, nil
		},
		Now: clock, Random: w.mint.Random,
	}
	desk, err := operator.New(w.desk)
	w.ok(err)
	w.app = idemctl.App{Build: func(context.Context) (*operator.Desk, error) { return desk, nil }, Now: clock}
	return w
}

// built is another desk of the world, with one thing changed.
func (w *world) built(change func(*operator.Config)) (*operator.Desk, error) {
	cfg := w.desk
	change(&cfg)
	return operator.New(cfg)
}

func nothing(context.Context, storage.Message) outbox.Finding { return outbox.Absent{} }

func topic(name string, probe func(context.Context, storage.Message) outbox.Finding) outbox.Topic {
	return outbox.Topic{
		Name: name, Call: func(context.Context, storage.Message) outbox.Outcome { return outbox.NotExecuted{} }, Probe: probe,
		Settle: func(_ storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
			status := map[string]int{"delivered": 201, "declined": 402}[o.Name()]
			return outbox.Settlement{Response: idem.Response{Status: status}}, nil
		},
	}
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// operation leaves a deferred operation with the messages, one after the other.
func (w *world) operation(tenant string, record func(*storage.Record), messages ...func(*storage.Message)) idem.OperationID {
	w.Helper()
	owner, err := w.mint.Owner()
	w.ok(err)
	r := storage.Record{
		Key: idem.Scope{Tenant: tenant, Operation: "payments.create", Key: "order-17"}.RecordKey(), State: storage.StatePending, Epoch: 1, Owner: owner, Revision: storage.Revision(owner),
		Tenant: tenant, Operation: "payments.create", Kind: idem.KindDeferred, Response: idem.Response{Status: 202}, CreatedAt: noon,
		Retention: 24 * time.Hour, Attempts: 1, SchemaVersion: storage.SchemaVersion,
	}
	record(&r)
	r.OperationID, err = w.mint.OperationID(r.Key)
	w.ok(err)
	commit := storage.Commit{Record: r, Now: noon, Token: string(owner)}
	for i, change := range messages {
		m := storage.Message{
			Revision: storage.Revision(fmt.Sprintf("revision-%d", i)), ID: r.OperationID.Message(i + 1), Index: i + 1, OperationID: r.OperationID, RecordKey: r.Key, Tenant: tenant, Topic: "payments.charges",
			Payload: []byte("{}"), State: storage.MessagePending, CreatedAt: noon, NextAttemptAt: noon, SweepAt: noon, Retention: r.Retention,
			SchemaVersion: storage.SchemaVersion,
		}
		change(&m)
		commit.Messages = append(commit.Messages, m)
	}
	send, err := w.inner.Prepare(commit)
	w.ok(err)
	w.ok(send(w.Context()))
	return r.OperationID
}

func pending(*storage.Message) {}

func deferred(*storage.Record) {}

func completed(r *storage.Record) {
	r.State, r.Response, r.DoneAt, r.ExpiresAt = storage.StateCompleted, idem.Response{Status: 201, Body: []byte("secret")}, noon, noon.Add(r.Retention)
}

// wrapped makes the record of an operation whose handler wrote for itself.
func wrapped(state storage.State, lastError string) func(*storage.Record) {
	return func(r *storage.Record) {
		r.Key = idem.Scope{Tenant: r.Tenant, Operation: "orders.import", Key: "order-18"}.RecordKey()
		r.State, r.Kind, r.Operation, r.LeaseUntil, r.Response, r.LastError = state, idem.KindWrapped, "orders.import", noon, idem.Response{}, lastError
	}
}

func delivered(m *storage.Message) {
	m.State, m.Epoch, m.Owner, m.Reference, m.LastOutcome, m.DoneAt = storage.MessageDelivered, 1, "worker", "ch_1", "delivered", noon
}

func legacyUnknown(m *storage.Message) {
	m.Topic, m.State, m.Owner, m.Epoch, m.Attempts, m.LastOutcome = "payments.legacy", storage.MessageUnknown, "worker", 1, 1, "ambiguous"
	m.OpenSince, m.FirstClaimedAt, m.LeaseUntil = noon, noon, noon.Add(10*time.Second)
}

func dead(m *storage.Message) {
	legacyUnknown(m)
	m.Topic, m.State, m.Attempts = "payments.charges", storage.MessageDead, 10
}

// types runs a command line as a shell does, demands its exit code, and adds it to the transcript.
func (w *world) types(want int, args ...string) (stdout, stderr string) {
	w.Helper()
	var out, errs strings.Builder
	got := idemctl.Run(w.Context(), w.app, args, &out, &errs)
	if got != want {
		w.Errorf("%q exits with %d, want %d\n%s%s", args, got, want, &out, &errs)
	}
	line := "$ idemctl"
	for _, arg := range args {
		if strings.ContainsAny(arg, " \n") {
			arg = "'" + arg + "'"
		}
		line += " " + arg
	}
	fmt.Fprintf(&w.typed, "%s\n%s%s[%d]\n\n", line, &out, &errs, got)
	return out.String(), errs.String()
}

// transcript compares what was typed and answered with testdata.
func (w *world) transcript() {
	w.Helper()
	path := filepath.Join("testdata", strings.TrimPrefix(w.Name(), "Test")+".txt")
	if *update {
		w.ok(os.WriteFile(path, []byte(w.typed.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	w.ok(err)
	if got := w.typed.String(); got != string(want) {
		w.Errorf("%s differs; with -update it is written anew:\n%s", path, got)
	}
	for _, secret := range []string{"secret", "order-17"} {
		if strings.Contains(string(want), secret) {
			w.Errorf("%s tells %q", path, secret)
		}
	}
}

var errDown = errors.New("down")

// driftOf says what it was asked for, and that the window is clean or not.
func driftOf(t *testing.T, clean *bool) func(context.Context, idemctl.Window, bool, io.Writer) (bool, error) {
	return func(_ context.Context, w idemctl.Window, asJSON bool, out io.Writer) (bool, error) {
		if w.Tenant != "acme" || !w.From.Equal(noon.Add(-2*time.Hour)) || !w.To.Equal(noon.Add(-time.Hour)) || asJSON {
			t.Errorf("window %+v", w)
		}
		_, err := fmt.Fprintln(out, "compared")
		return *clean, err
	}
}
