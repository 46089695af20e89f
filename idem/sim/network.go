package sim

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// What can go wrong with one call to the store. The order is that of the decisions' numbers.
const (
	nothingWrong = iota
	refusedByContention
	refusedByThrottle
	requestLost
	replyLost
	requestLate
	frozenBefore
	frozenAfter
	diedBefore
	diedAfter
	diedLate
	storeFaults = diedLate
)

var faultNames = [...]string{
	"", "meets another transaction", "is throttled", "never arrives", "has no reply", "is late and has no reply", "is sent after a freeze",
	"is answered into a freeze", "dies with its process before it is sent", "lands as its process dies", "is on its way as its process dies",
}

var errNoReply = errors.New("sim: no reply")

// reads are the calls that change nothing.
var reads = map[faulty.Call]bool{
	faulty.Get: true, faulty.LoadResponse: true, faulty.Message: true, faulty.QueuedMessages: true, faulty.QueuedRecords: true,
	faulty.Place: true, faulty.RefuseBefore: true,
}

// call is one call of a process to the store, with what goes wrong on its way.
func (p *process) call(ctx context.Context, call faulty.Call, run func(context.Context) error) error {
	w := p.world
	if w.over.Load() {
		return run(ctx)
	}
	name := w.numbered(actor(ctx, p.name) + " " + string(call))
	p.thaw()
	if p.dead.Load() {
		return p.stay(ctx, run)
	}
	wrong := w.storeFault(name, call)
	if wrong != nothingWrong {
		w.say("%s %s", name, faultNames[wrong])
	}
	switch wrong {
	case diedBefore:
		p.die()
		return p.stay(ctx, run)
	case frozenBefore:
		p.freezeFor(name)
		p.thaw()
	}
	if ctx.Err() != nil { // the last check before the wire
		return &storage.NotAskedError{Cause: ctx.Err()}
	}
	landing := w.between(name+" there", time.Millisecond, 40*time.Millisecond)
	land := func() error {
		time.Sleep(landing)
		return w.land(name, func() error { return run(context.WithoutCancel(ctx)) })
	}
	switch wrong {
	case refusedByContention, refusedByThrottle:
		time.Sleep(landing)
		if wrong == refusedByThrottle || reads[call] {
			return storage.ErrThrottled
		}
		return storage.ErrContention
	case requestLost:
		return p.wait(ctx, name)
	case requestLate, diedLate:
		landing = w.between(name+" late", time.Second, time.Minute)
		if !reads[call] {
			w.spawn(func() { _ = land() })
		}
		if wrong == diedLate {
			p.die()
			return p.stay(ctx, run)
		}
		return p.wait(ctx, name)
	}
	if reads[call] { // nothing can be left on the way, and its caller reads what it fills
		err := land()
		return p.reply(ctx, name, wrong, err, run)
	}
	landed := make(chan error, 1)
	w.spawn(func() { landed <- land() })
	select {
	case err := <-landed:
		return p.reply(ctx, name, wrong, err, run)
	case <-ctx.Done():
		return &storage.OutcomeUnknownError{Cause: ctx.Err()}
	}
}

// storeFault decides what goes wrong with a call. What every process reads first goes wrong more rarely: it keeps no secrets.
func (w *world) storeFault(name string, call faulty.Call) int {
	usual := w.mood.store
	if call == faulty.RefuseBefore || call == faulty.ScopeMark {
		usual /= 8
	}
	if way := w.fault(name, w.weather(usual), len(w.mood.storeFaults)); way > 0 {
		return w.mood.storeFaults[way-1]
	}
	return nothingWrong
}

// reply brings what the store said back to the process.
func (p *process) reply(ctx context.Context, name string, wrong int, err error, run func(context.Context) error) error {
	w := p.world
	switch wrong {
	case diedAfter:
		p.die()
		return p.stay(ctx, run)
	case replyLost:
		return p.wait(ctx, name)
	case frozenAfter:
		p.freezeFor(name)
	}
	time.Sleep(w.between(name+" back", time.Millisecond, 40*time.Millisecond))
	p.thaw()
	if p.dead.Load() {
		return p.stay(ctx, run)
	}
	return err
}

// wait waits for a reply that does not come.
func (p *process) wait(ctx context.Context, name string) error {
	timer := time.NewTimer(p.world.between(name+" in vain", 20*time.Millisecond, 6*time.Second))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	p.thaw()
	if p.dead.Load() {
		return p.stay(ctx, nil)
	}
	return &storage.OutcomeUnknownError{Cause: errNoReply}
}

// stay is where a call of a dead process stays until the story is over. What its goroutines do after that nobody judges.
func (p *process) stay(ctx context.Context, run func(context.Context) error) error {
	<-p.world.end
	if run == nil {
		return &storage.OutcomeUnknownError{Cause: errNoReply}
	}
	return run(context.WithoutCancel(ctx))
}

type actorKey struct{}

// acting names who acts in a context: decisions are named after that, not after the process, which others use too.
func acting(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actorKey{}, name)
}

func actor(ctx context.Context, process string) string {
	if name, ok := ctx.Value(actorKey{}).(string); ok {
		return name + " in " + process
	}
	return process
}
