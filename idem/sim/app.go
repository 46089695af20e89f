package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// App is an application as one story plays it: what its clients ask for, what it links in a process, what its provider has made, and
// what must be true of its rows. Everything else is the simulator's: clients, processes, the network, the queue and the streams, sweeps
// and reconcilers, people, time, and the judgement of records, messages and answers. What chance decides in an App it draws from its
// [Stage], so that the same seed makes the same story.
type App interface {
	// Requests are what the story's clients ask for: one for each of their keys. The store is empty, and the App may put its rows there.
	Requests() []Request
	// Topics are the application's, with their calls over the process's network. The simulator sets their bounds.
	Topics(Process) []outbox.Topic
	// Link makes what serves in a process.
	Link(Process) (Served, error)
	// Made says how often the provider has executed what was asked for under a downstream key, and what its books are evidence of: nil
	// where they have nothing.
	Made(downstream string) (times int, evidence outbox.Outcome)
	// Judge judges the application's rows after a write has landed, and JudgeEnd when everybody is gone and the background had time.
	Judge(Landed)
	JudgeEnd()
	// Idle says that nothing of the application's own waits to be done by [Served].Scheduled.
	Idle() bool
}

// Request is what the clients of one key ask for.
type Request struct {
	// Name is the key's in the story: another for each.
	Name string
	// Scope is whose key it is. Two tenants may give theirs the same name.
	Scope idem.Scope
	// Kind is the operation's.
	Kind idem.Kind
	// SafeToRunAgain is the operation's.
	SafeToRunAgain bool
	// Probed is the operation's.
	Probed bool
}

// Landed is what a write has changed: a record, a message or neither.
type Landed struct {
	// Record is the record as it is now; nil where none was changed.
	Record *storage.Record
	// Message is the message as it is now; nil where none was changed.
	Message *storage.Message
}

// Served is what an App links in a process.
type Served struct {
	// Serve answers a client: what it asked for, and which of its payloads. A result without an operation id is told of the record that
	// says so. An error is no answer about the key.
	Serve func(ctx context.Context, name string, body int) (*idem.Result, error)
	// Pry has another tenant look for what an answer told of, and says what they see; "" is nothing.
	Pry func(ctx context.Context, name string, told *idem.Result) (string, error)
	// Probes are of wrapped operations, by name.
	Probes map[string]outbox.Probe
	// Scheduled is what the application's schedule runs beside the sweep; nil for nothing.
	Scheduled func(context.Context) error
}

// Stage is where an App is played.
type Stage struct{ w *world }

// Rows is the story's store, as it is.
func (s Stage) Rows() *memstore.Store { return s.w.memory }

// OneOf draws one of so many ways, none of which is wrong. Whatever has the same name in a story is drawn alike.
func (s Stage) OneOf(name string, n int) int { return s.w.oneOf(name, n) }

// Numbered makes the names of what happens several times differ.
func (s Stage) Numbered(name string) string { return s.w.numbered(name) }

// Tenants is how many tenants the story has.
func (s Stage) Tenants() int { return s.w.mood.tenants }

// Keys is how many keys each tenant has.
func (s Stage) Keys() int { return s.w.mood.keys }

// LongestRequest bounds how long a request is on its way to the provider.
func (s Stage) LongestRequest() time.Duration { return s.w.mood.longest }

// Broken notes that something is not as it must be. Only Judge and JudgeEnd call it, and what runs in a call that arrives.
func (s Stage) Broken(format string, args ...any) { s.w.broken(format, args...) }

// BrokenLater is Broken for everybody else.
func (s Stage) BrokenLater(format string, args ...any) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !s.w.over.Load() {
		s.w.broken(format, args...)
	}
}

// Webhook is what the provider posts about a message, until it is acknowledged, a few times: early or late, by a process that may die.
func (s Stage) Webhook(name string, post func(context.Context, Process) error) {
	s.w.posts(name, func(ctx context.Context, p *process) error { return post(ctx, Process{p}) })
}

// Process is one process of the application, over a network that fails.
type Process struct{ p *process }

// Engine is the process's.
func (p Process) Engine() *idem.Engine { return p.p.engine }

// Worker is the process's.
func (p Process) Worker() *outbox.Worker { return p.p.worker }

// Inline is the process's inline delivery.
func (p Process) Inline() *outbox.Inline { return p.p.inline }

// Messages reads messages through the network.
func (p Process) Messages() outbox.Messages { return wire{p.p.store, p.p.world} }

// RefuseBefore reads the row of a loss through the network.
func (p Process) RefuseBefore(ctx context.Context) (time.Time, error) {
	return p.p.store.RefuseBefore(ctx)
}

// Now is the process's clock.
func (p Process) Now() time.Time { return p.p.now() }

// Served is what the App linked.
func (p Process) Served() Served { return p.p.served }

// Read reads rows of the application through the network, and Write writes some: what went wrong is as of the store's own calls.
func (p Process) Read(ctx context.Context, what string, read func() error) error {
	return p.p.call(about(ctx, what), readsRow, func(context.Context) error { return read() })
}

// Write writes rows of the application: see Read.
func (p Process) Write(ctx context.Context, what string, write func() error) error {
	return p.p.call(about(ctx, what), writesRows, func(context.Context) error { return write() })
}

// The calls to rows that the application makes by itself.
const (
	readsRow   faulty.Call = "Read"
	writesRows faulty.Call = "Write"
)

// Call sends one call to the provider, and returns what its caller knows where the answer does not arrive: see the ways in provider.go. It
// returns nil where the answer arrives. Arrive has the provider execute the call, then or later, or never.
func (p Process) Call(ctx context.Context, name string, arrive func()) outbox.Outcome {
	_, outcome := p.p.reach(ctx, name, arrive)
	return outcome
}

// Look is one look into the provider's books: read reads them when it arrives. It says whether the answer came back.
func (p Process) Look(ctx context.Context, name string, read func()) bool {
	_, known := p.p.look(ctx, name, func() bool { read(); return true })
	return known
}

// identify finds the incarnation whose answer a client was told, where the answer does not say so. Called with the lock held.
func (w *world) identify(k *key, a *answer) {
	if a.err != nil || a.result.OperationID != "" || !a.final() {
		return
	}
	if r := w.judge.records[k.id]; r.State.Final() && a.same(answer{result: &idem.Result{Response: r.Response}}) {
		a.result.OperationID = r.OperationID
		return
	}
	for _, id := range k.ended {
		if said := w.judge.finals[id]; a.same(answer{result: &idem.Result{Response: said}}) {
			a.result.OperationID = id
		}
	}
	if a.result.OperationID == "" {
		w.broken("I4: %s is told %s, and no record of it says so", k.name, a)
	}
}

// keyFor makes the story's key of a request.
func keyFor(r Request) *key {
	return &key{
		name: r.Name, tenant: r.Scope.Tenant, client: r.Scope.Key, kind: kind(r.Scope.Operation), id: r.Scope.RecordKey(),
		wrapped: r.Kind == idem.KindWrapped, safe: r.SafeToRunAgain, probed: r.Probed,
		finals: map[idem.OperationID]*answer{}, accepted: map[idem.OperationID]*answer{}, began: map[idem.OperationID]bool{},
	}
}

// unasked is the key of a record that no client of the story asked for, such as that of an event. The App judges whether it may be there.
func (w *world) unasked(r storage.Record) *key {
	k := keyFor(Request{Name: fmt.Sprintf("key %.6s of %s", r.Key, r.Operation), Scope: idem.Scope{Tenant: r.Tenant, Operation: r.Operation}, Kind: r.Kind, SafeToRunAgain: r.SafeToRunAgain})
	k.id = r.Key
	known, _ := w.others.LoadOrStore(k.id, k)
	return known.(*key)
}

// subject names the key that a message is about.
func (w *world) subject(m storage.Message) string { return w.nameOf(m.RecordKey) }

// has says how often the provider has executed what a downstream key asks for.
func (w *world) has(downstream string) int {
	times, _ := w.app.Made(downstream)
	return times
}

// traits are what is known of a topic from its declaration.
type traits struct{ honours, looksUp bool }

// declared notes what the topics of a process declare, and sets their bounds.
func (w *world) declared(topics []outbox.Topic) []outbox.Topic {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range topics {
		t := &topics[i]
		w.topics[t.Name] = traits{t.Keys.Honoured, t.Probe != nil}
		b := w.mood.topic
		t.AttemptsMax, t.AgeMax, t.UnknownMax, t.AbandonAfter = b.AttemptsMax, b.AgeMax, b.UnknownMax, b.AbandonAfter
	}
	return topics
}

// judged has the judge watch the calls of a topic.
func (p *process) judged(t outbox.Topic) outbox.Topic {
	call := t.Call
	t.Call = func(ctx context.Context, m storage.Message) outbox.Outcome {
		w, a := p.world, actOf(ctx)
		if !w.over.Load() {
			w.calls(a, m, p.now())
		}
		outcome := call(ctx, m)
		switch outcome := outcome.(type) {
		case outbox.Delivered:
			w.learnt(a, m, true)
		case outbox.Declined:
			w.learnt(a, m, false)
		case outbox.NotExecuted:
			if outcome.Unsent {
				w.unsent(m)
			}
		}
		return outcome
	}
	return t
}
