package idemtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// process is one process of an application. When it dies in a call, its goroutine stands still there, and so does every
// other at its next call. Once the process is buried they get errors, and end.
type process struct {
	*world
	at crash

	mu     sync.Mutex
	calls  []string
	counts map[faulty.Call]int
	isDead bool
	// dead is closed when the process died, buried when its goroutines may end.
	dead, buried chan struct{}

	store     *faulty.Store
	operation *idem.Registered
	handler   idem.Handler
	worker    *outbox.Worker
	runner    *outbox.Runner
}

// errDied is what a buried process's calls return.
var errDied = errors.New("idemtest: the process died")

// start wires the application as one process of it does. No two processes of a world have the same seed.
func (w *world) start(at crash, seed uint64) (*process, error) {
	p := &process{
		world: w, at: at, counts: map[faulty.Call]int{}, dead: make(chan struct{}), buried: make(chan struct{}),
		store: faulty.New(w.memory), handler: w.app.Handler(w.memory),
	}
	p.store.All(func(ctx context.Context, run func(context.Context) error) error {
		return p.through(ctx, p.storeCall(), run)
	})
	random := newRandom(seed)
	operation := w.app.Operation
	if len(w.app.Topics) > 0 {
		if err := p.connect(random); err != nil {
			return nil, err
		}
	}
	if w.app.Inline {
		inline, err := outbox.NewInline(p.worker)
		if err != nil {
			return nil, err
		}
		operation.Inline = inline
	}
	engine, err := idem.New(p.store, idem.Config{Now: w.clock.Now, Pause: p.pause, Random: random, Logger: silent})
	if err != nil {
		return nil, err
	}
	p.operation, err = engine.Register(operation)
	return p, err
}

// connect makes what delivers the messages.
func (p *process) connect(random io.Reader) error {
	topics := make([]outbox.Topic, len(p.app.Topics))
	for i, topic := range p.app.Topics {
		topics[i] = p.connected(topic)
	}
	registry, err := outbox.NewTopics(outbox.Config{Now: p.clock.Now, Pause: p.pause, Random: random, Logger: silent, SweepConcurrency: 1}, topics...)
	if err != nil {
		return err
	}
	if p.worker, err = outbox.NewWorker(p.store, registry, p, p.queue); err != nil {
		return err
	}
	p.runner, err = outbox.NewRunner(p.worker, nil, nil)
	return err
}

// connected is the topic with calls that the process makes, and may die in.
func (p *process) connected(topic outbox.Topic) outbox.Topic {
	if call := topic.Call; call != nil {
		topic.Call = func(ctx context.Context, m storage.Message) (outcome outbox.Outcome) {
			err := p.through(ctx, "Call of "+topic.Name, func(ctx context.Context) error {
				outcome = call(ctx, m)
				p.made(m.ID, outcome)
				return nil
			})
			if err != nil {
				return outbox.Ambiguous{Cause: err}
			}
			return outcome
		}
	}
	if probe := topic.Probe; probe != nil {
		topic.Probe = func(ctx context.Context, m storage.Message) (finding outbox.Finding) {
			err := p.through(ctx, "Probe of "+topic.Name, func(ctx context.Context) error {
				finding = probe(ctx, m)
				return nil
			})
			if err != nil {
				return outbox.Unclear{Cause: err}
			}
			return finding
		}
	}
	return topic
}

// Schedule implements outbox.WakeUps on the world's queue.
func (p *process) Schedule(ctx context.Context, tenant string, id idem.MessageID, delay time.Duration) error {
	return p.through(ctx, "Schedule", func(ctx context.Context) error { return p.queue.Schedule(ctx, tenant, id, delay) })
}

// pause lets the time pass at once, unless the process is dead.
func (p *process) pause(ctx context.Context, d time.Duration) error {
	if p.died() {
		<-p.buried
		return errDied
	}
	return p.clock.Pause(ctx, d)
}

// through makes one call of the process to the outside, or dies there.
func (p *process) through(ctx context.Context, name string, run func(context.Context) error) error {
	p.mu.Lock()
	if !p.isDead {
		p.calls = append(p.calls, name)
	}
	here := !p.isDead && len(p.calls) == p.at.call
	if here && !p.at.after {
		p.die()
	}
	lost := p.isDead
	p.mu.Unlock()
	if lost {
		<-p.buried
		return &storage.OutcomeUnknownError{Cause: errDied}
	}
	err := run(ctx)
	if here {
		p.mu.Lock()
		p.die()
		p.mu.Unlock()
		<-p.buried
		return &storage.OutcomeUnknownError{Cause: errDied}
	}
	return err
}

// die is called with the lock held, once.
func (p *process) die() {
	p.isDead = true
	close(p.dead)
}

func (p *process) died() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isDead
}

// storeCalls are what a call to the store can be.
var storeCalls = []faulty.Call{
	faulty.Get, faulty.LoadResponse, faulty.Insert, faulty.Update, faulty.Commit, faulty.Message, faulty.UpdateMessage,
	faulty.Settle, faulty.QueuedMessages, faulty.QueuedRecords,
}

// storeCall names the call that the store is about to make: the one that it has counted since.
func (p *process) storeCall() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, call := range storeCalls {
		if n := p.store.Count(call); n > p.counts[call] {
			p.counts[call] = n
			return string(call)
		}
	}
	return "a call to the store"
}

// live is a round of the process: the client's request, and what the platform does. It ends early where the process dies.
func (p *process) live(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.post(ctx)
		p.serve(ctx)
	}()
	select {
	case <-done:
	case <-p.dead:
		close(p.buried)
		<-done
	}
}

// post sends the client's request and notes the answer. A process that dies gives none.
func (p *process) post(ctx context.Context) {
	result, err := p.operation.Do(ctx, idem.Request{Tenant: tenant, Key: key}, p.handler)
	if p.died() {
		return
	}
	a := answer{err: err}
	if result != nil {
		a.state, a.response = result.State, result.Response
	}
	p.answered(a)
}

// serve does what the platform does: the stream's record of a message, once, then the scheduled sweep and reconciler, then
// the wake-ups that are due. Trouble on the way is what the crash is about; the end tells.
func (p *process) serve(ctx context.Context) {
	if p.worker == nil || p.died() {
		return
	}
	for _, m := range p.fresh() {
		_ = p.worker.DeliverSeen(ctx, m)
	}
	_, _ = p.runner.Sweep(ctx)
	_, _ = p.runner.Reconcile(ctx)
	if p.died() {
		return
	}
	for _, id := range p.queue.Take() {
		_ = p.worker.Deliver(ctx, id)
	}
}

// validate refuses what can't be tested.
func (a App) validate() error {
	switch {
	case a.Handler == nil:
		return errors.New("App.Handler must be given")
	case a.Operation.Kind == idem.KindWrapped:
		return fmt.Errorf("App.Operation.Kind is %s: such a handler has no transaction that could be looked at", a.Operation.Kind)
	case a.Operation.Inline != nil:
		return errors.New("App.Operation.Inline must not be given: set App.Inline")
	case a.Inline && len(a.Topics) == 0:
		return errors.New("App.Inline is for an App with Topics")
	}
	return nil
}
