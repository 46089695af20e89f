package sim

import (
	"context"
	"errors"
	"strings"
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
	storeDown
	storeRejects
	notJudged
	storeFaults = notJudged
)

var faultNames = [...]string{
	"", "meets another transaction", "is throttled", "never arrives", "has no reply", "is late and has no reply", "is sent after a freeze",
	"is answered into a freeze", "dies with its process before it is sent", "lands as its process dies", "is on its way as its process dies",
	"is not sent: the store is known to be down", "is refused: credentials have expired", "is not judged in all of its items",
}

var (
	errNoReply  = errors.New("sim: no reply")
	errRejected = errors.New("sim: credentials have expired")
)

// reads are the calls that change nothing.
var reads = map[faulty.Call]bool{
	faulty.Get: true, faulty.LoadResponse: true, faulty.Message: true, faulty.QueuedMessages: true, faulty.QueuedRecords: true,
	faulty.Place: true, faulty.RefuseBefore: true, readsRow: true,
}

// call is one call of a process to the store, and what its caller hears of it.
func (p *process) call(ctx context.Context, call faulty.Call, run func(context.Context) error) error {
	w, a, at := p.world, actOf(ctx), aimOf(ctx, call)
	if w.over.Load() {
		return run(ctx)
	}
	w.mu.Lock()
	a.with(at)
	a.sending++
	w.mu.Unlock()
	err := p.send(ctx, call, run)
	w.mu.Lock()
	defer w.mu.Unlock()
	a.sending, a.heard = a.sending-1, time.Now()
	if !w.over.Load() {
		a.hears(at, err)
	}
	return err
}

// send sends a call, with what goes wrong on its way.
func (p *process) send(ctx context.Context, call faulty.Call, run func(context.Context) error) error {
	w, a := p.world, actOf(ctx)
	name := w.numbered(strings.TrimSuffix(a.name+" in "+p.name+" "+string(call)+" of "+aboutOf(ctx), " of "))
	p.thaw()
	if p.dead.Load() {
		return p.stay(ctx, run)
	}
	wrong := w.storeFault(a, name, call)
	if wrong != nothingWrong {
		w.say("%s %s", name, faultNames[wrong])
	}
	switch wrong {
	case diedBefore:
		p.die()
		return p.stay(ctx, run)
	case frozenBefore:
		p.freezeFor(name, longestFreeze)
		p.thaw()
	}
	if ctx.Err() != nil { // the last check before the wire
		return &storage.NotAskedError{Cause: ctx.Err()}
	}
	landing := w.between(name+" there", time.Millisecond, 40*time.Millisecond)
	land := func() error {
		time.Sleep(landing)
		return w.land(a, name, !reads[call], func() error { return run(context.WithoutCancel(ctx)) })
	}
	switch wrong {
	case refusedByContention, refusedByThrottle, storeRejects, storeDown:
		return w.refusal(name, wrong, call, landing)
	case requestLost:
		return p.wait(ctx, name)
	case requestLate, diedLate:
		landing = w.between(name+" late", time.Second, w.mood.wire)
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

// refusal is what a call is answered with that the store does not judge.
func (w *world) refusal(name string, wrong int, call faulty.Call, after time.Duration) error {
	if wrong == storeDown {
		return &storage.NotAskedError{Cause: errNoReply}
	}
	time.Sleep(after)
	switch {
	case wrong == storeRejects:
		return errRejected
	case wrong == refusedByThrottle || reads[call]:
		return storage.ErrThrottled
	case call == faulty.Commit && w.oneOf(name+" meets another at the lock", 2) == 0:
		return &storage.ContentionError{Unjudged: []int{w.contended}}
	}
	return storage.ErrContention
}

// storeFault decides what goes wrong with a call. What every process reads first goes wrong more rarely: it keeps no secrets.
func (w *world) storeFault(a *act, name string, call faulty.Call) int {
	w.noteCall(name, cutsOf(call))
	usual := w.mood.store
	switch {
	case call == faulty.RefuseBefore || call == faulty.ScopeMark:
		usual /= 8
	case !reads[call]:
		if out := w.outage(); out != nothingWrong {
			return [...]int{throttlesAll: refusedByThrottle, downForAll: storeDown, refusesAll: storeRejects}[out]
		}
	}
	if call == faulty.Settle && w.crowded() {
		return refusedByContention
	}
	if way := w.fault(name, w.weather(a.name, usual), len(w.mood.storeFaults)); way > 0 {
		return w.mood.storeFaults[way-1]
	}
	return nothingWrong
}

// cutsOf are the ways in which a call to the store can be cut off.
func cutsOf(call faulty.Call) []int {
	if reads[call] {
		return cutsOfReads
	}
	return cutsOfWrites
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
	case frozenAfter: // what it sends next it decides afterwards, however long that is
		p.freezeFor(name, w.mood.frozen)
	case notJudged:
		err = partly(err)
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
	longest := [...]time.Duration{300 * time.Millisecond, 6 * time.Second}[p.world.oneOf(name+" waits long", 2)]
	timer := time.NewTimer(p.world.between(name+" in vain", 20*time.Millisecond, longest))
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

// partly is a failed transaction of which the last item that failed was not judged, or the one behind the others: another
// transaction was at it.
func partly(err error) error {
	var failed *storage.WriteFailedError
	if !errors.As(err, &failed) {
		return err
	}
	last := len(failed.Indexes) - 1
	if last == 0 {
		return &storage.WriteFailedError{Indexes: failed.Indexes, Unjudged: []int{failed.Indexes[0] + 1}}
	}
	return &storage.WriteFailedError{Indexes: failed.Indexes[:last], Unjudged: failed.Indexes[last:]}
}
