package sim

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// process is one process of the application: all that a function or a container links, over a network that fails. A process
// that dies stands still in whatever it does, for ever.
type process struct {
	*world
	name string
	// skew is what its clock shows beyond the story's.
	skew   time.Duration
	dead   atomic.Bool
	gone   chan struct{} // is closed when it dies
	frozen atomic.Int64  // until when, in the story's time
	// hurt says that the process froze once: what it was late for is nobody's fault.
	hurt atomic.Bool
	// thawed counts who has waited for the process to thaw. busy says that it serves a request.
	thawed atomic.Int64
	busy   atomic.Bool
	// older says that its release knows none of the story's topics, observes that it acts on nothing that it finds.
	older, observes bool

	store    *faulty.Store
	engine   *idem.Engine
	worker   *outbox.Worker
	inline   *outbox.Inline
	operator *outbox.Operator
	runner   *outbox.Runner
	served   Served
}

// bell is the log of a process. It hears the alarms that ask an operator to look at what is unknown.
type bell struct{ *process }

// Enabled implements slog.Handler: alarms are errors.
func (bell) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

// Handle implements slog.Handler.
func (b bell) Handle(_ context.Context, line slog.Record) error {
	about, alarm := "", false
	line.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "message", "operation_id":
			about = a.Value.String()
		case "alarm":
			alarm = a.Value.Bool()
		}
		return true
	})
	asks := line.Message == "outbox.unknown" || line.Message == "idempotency.reconcile.failed"
	if alarm && asks && !b.dead.Load() {
		b.rang(about)
	}
	return nil
}

// WithAttrs and WithGroup implement slog.Handler: no line has others than its own.
func (b bell) WithAttrs([]slog.Attr) slog.Handler { return b }
func (b bell) WithGroup(string) slog.Handler      { return b }

// start starts a process. Those of one role share the role's name, and a number.
func (w *world) start(role string) *process {
	p := &process{world: w, name: w.numbered(role), store: faulty.New(w.memory), gone: make(chan struct{})}
	p.skew = w.between(p.name+" clock", -w.mood.skew, w.mood.skew+1)
	p.observes = w.mood.observers && w.oneOf(p.name+" observes", 2) == 0
	p.older = w.mood.older && w.oneOf(p.name+" is older", 3) == 0
	p.store.Each(func(call faulty.Call) faulty.Fault {
		return func(ctx context.Context, run func(context.Context) error) error { return p.call(ctx, call, run) }
	})
	w.must(p.link())
	return p
}

// instance is the process that a request comes to.
func (w *world) instance(who string) *process {
	if w.mood.instances == 0 {
		return w.start("api")
	}
	at := w.oneOf(who+" comes to", w.mood.instances)
	for len(w.instances) <= at {
		w.instances = append(w.instances, nil)
	}
	if p := w.instances[at]; p == nil || p.dead.Load() || w.mood.kills && p.busy.Load() {
		w.instances[at] = w.start("api")
	}
	return w.instances[at]
}

func (p *process) now() time.Time { return time.Now().Add(p.skew) }

// link makes the parts of the process.
func (p *process) link() (err error) {
	engine, box, store := p.mood.engine, p.mood.outbox, wire{p.store, p.world}
	engine.Now, engine.Random, engine.Quota = p.now, p.random(p.name), quota{}
	engine.Logger, box.Logger = slog.New(bell{p}), slog.New(bell{p})
	box.Now, box.Random = engine.Now, engine.Random
	if p.engine, err = idem.New(store, engine); err != nil {
		return err
	}
	declared := p.declared(p.app.Topics(Process{p}))
	for i := range declared {
		declared[i] = p.judged(declared[i])
	}
	topics, err := outbox.NewTopics(box, declared...)
	if err != nil {
		return err
	}
	if p.worker, err = outbox.NewWorker(store, topics, p, p); err != nil {
		return err
	}
	if p.operator, err = outbox.NewOperator(store, topics, p, p); err != nil {
		return err
	}
	if p.inline, err = outbox.NewInline(p.worker); err != nil {
		return err
	}
	if p.served, err = p.app.Link(Process{p}); err != nil {
		return err
	}
	p.runner, err = outbox.NewRunner(p.worker, p.engine, p.served.Probes)
	return err
}

// Schedule implements outbox.WakeUps: the wake-up may be lost, doubled or late.
func (p *process) Schedule(_ context.Context, _ string, id idem.MessageID, delay time.Duration) error {
	if !p.dead.Load() {
		p.wakeUp(id, delay)
	}
	return nil
}

// Bury implements outbox.DeadLetters: the letter may be lost, or arrive without a reply.
func (p *process) Bury(_ context.Context, letter outbox.DeadLetter) error {
	if p.dead.Load() {
		return errNoReply
	}
	wrong := p.fault(p.numbered("dead letter of "+p.ofMessage(letter.Message)), p.mood.store, 2)
	if wrong != 1 {
		p.told(letter.Message)
	}
	if wrong != nothingWrong {
		return errNoReply
	}
	return nil
}

// die kills the process.
func (p *process) die() {
	if p.dead.CompareAndSwap(false, true) {
		close(p.gone)
	}
}

// freeze stops everything that the process does for a while.
func (p *process) freeze(d time.Duration) {
	p.hurt.Store(true)
	p.frozen.Store(time.Now().Add(d).UnixNano())
}

// longestFreeze is how long a process is frozen at most between a decision and the call that it leads to, where the call itself
// looks at the time again. Elsewhere mood.freeze says how long.
const longestFreeze = 55 * time.Second

// freezeFor freezes the process for as long as the name of a call decides: often for a short time only.
func (p *process) freezeFor(name string, longest time.Duration) {
	if p.oneOf(name+" is short", 2) == 0 {
		longest = 8 * time.Second
	}
	p.freeze(p.between(name+" freeze", time.Second, longest))
}

// thaw waits for as long as the process is frozen. Requests of one process wake up one after the other: of what happens at the same
// instant, the order is another one each time.
func (p *process) thaw() {
	turn := int64(0)
	if p.mood.instances > 0 && p.frozen.Load() > time.Now().UnixNano() {
		turn = p.thawed.Add(1) * int64(time.Microsecond)
	}
	for until := p.frozen.Load() + turn; until > time.Now().UnixNano(); until = p.frozen.Load() + turn {
		time.Sleep(time.Duration(until - time.Now().UnixNano()))
	}
}

// answer is what a client was told.
type answer struct {
	result *idem.Result
	err    error
	// at is when it was given; of one that was told several times, the first time.
	at time.Time
}

// final says whether every later answer must be the same.
func (a answer) final() bool {
	return a.err == nil && a.result.State.Final() && a.result.Response.Status != 0
}

// mismatch says that the key belongs to another request.
func (a answer) mismatch() bool { return a.err == nil && a.result.Outcome == idem.OutcomeMismatch }

// accepted says whether the answer is the 202 that stands until the final one.
func (a answer) accepted() bool {
	return a.err == nil && a.result.State == storage.StatePending && a.result.Response.Status != 0
}

// errNoAnswer is what a client has that gave up waiting, or whose connection broke.
var errNoAnswer = errors.New("sim: no answer")

// quota admits everybody, and tells the judge of what is given back.
type quota struct{}

// NewKey implements idem.Quota.
func (quota) NewKey(ctx context.Context, _ string) (giveBack func(), err error) {
	a := actOf(ctx)
	return func() { a.process.gaveBack(a) }, nil
}

// LookUp implements idem.Quota.
func (quota) LookUp(context.Context, string) error { return nil }

// justBefore the deadline a process is killed that the platform kills at it: no two things happen at once.
const justBefore = time.Nanosecond

// serve is a request. Where the platform kills at a deadline the process dies with it.
func (p *process) serve(k *key, who string, body int, patience time.Duration) answer {
	w := p.world
	request := newAct(who, p)
	request.key, request.body = k, body
	ctx, cancel := context.WithCancel(acting(context.Background(), request))
	limit := w.between(who+" time-out", w.mood.limit/2, w.mood.limit)
	if w.mood.kills || w.oneOf(who+" has a deadline", 2) == 0 {
		ctx, cancel = context.WithTimeout(ctx, limit)
		request.deadline = time.Now().Add(limit)
	}
	got := make(chan answer, 1)
	w.served(k, p)
	p.busy.Store(true)
	answered := make(chan struct{})
	w.spawn(func() {
		defer cancel()
		defer close(answered)
		var a answer
		a.result, a.err = p.served.Serve(ctx, k.name, body)
		p.thaw()
		if !p.dead.Load() {
			a.at = time.Now()
			w.returned(request, a)
			p.busy.Store(false)
			got <- a
		}
	})
	if w.mood.kills {
		w.spawn(func() {
			select {
			case <-time.After(limit - justBefore):
				p.die()
			case <-answered:
			case <-w.end:
			}
		})
	}
	select {
	case a := <-got:
		return a
	case <-time.After(patience):
		if !w.mood.kills && w.oneOf(who+" hangs up", 2) == 0 {
			cancel() // as a server does whose client hangs up
		}
		return answer{err: errNoAnswer}
	}
}
