package sim

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// act is one request, delivery, visit or run: who acts, and what it met. By this the judge knows what the actor has no
// excuse for.
type act struct {
	name    string
	process *process
	// key is what a request is about, nil of everybody else; body is which of the key's requests it is.
	key  *key
	body int
	// deadline is the caller's; zero is none. began is when the act began, and told when its caller was answered.
	deadline, began, told time.Time
	// subject is the operation or the message that a person decides about, and seen the revision that they saw; "" of
	// everybody else.
	subject string
	seen    storage.Revision

	// met are the calls so far, by what they were to write.
	met map[aim]*met
	// saw are the revisions of rows that were read, or were in the way, or were written.
	saw map[storage.Revision]bool
	// wrote are the revisions that it has written.
	wrote map[storage.Revision]bool
	// commit is the transaction that was sent last, and tokens are those of all.
	commit *prepared
	tokens map[string]*prepared

	// ran says that a handler ran, running that it runs, locks that it writes under a lock, lost that the transaction of which it heard
	// last met a lost one: what else it sent may be judged later, and it does not know.
	ran, running, locks, lost bool
	// late says that the handler ended after its context, made that it had its effect.
	late, made bool
	// answers says that a wrapped handler has ended with an answer that is to be stored, at ended.
	answers bool
	ended   time.Time
	// lease is until when its lease lasts, as the store has confirmed it: of a renewal without a reply it does not know.
	lease time.Time
	// over says that the act has ended, nothing that its caller was told that nothing had happened, gaveBack that the right to a new
	// key was given back, landed that it changed something, shown that a reply showed it its own change.
	over, nothing, gaveBack, landed, shown bool
	// sending is how many of its calls to the store are under way, and heard when the last one ended: what a caller was answered before is
	// gone on with.
	sending int
	heard   time.Time
	// evidence are the definite answers that the provider gave it, by message.
	evidence map[storage.MessageID]evidence
}

// evidence is a provider's definite answer to a call, and the claim that the call was made under.
type evidence struct {
	made  bool
	at    time.Time
	claim storage.Message
}

// aim is what a call is to write: the state of a record, or else the name of the call.
type aim string

const (
	reserves = aim(storage.StateInProgress)
	frees    = aim(storage.StateFailedRetryable)
	renews   = aim(faulty.Renew)
	keeps    = aim(faulty.PatchMessage)
)

// met is what became of the calls with one aim.
type met struct {
	first time.Time
	// own are those whose answer said that the act's own write stands, unheard those without a reply, refused those that met
	// another transaction or a throttle, and failed all others that were not judged.
	own, unheard, refused, failed int
}

// faults counts what the act met besides answers.
func (m *met) faults() int { return m.unheard + m.refused + m.failed }

func newAct(name string, p *process) *act {
	return &act{
		name: name, process: p, began: time.Now(), met: map[aim]*met{}, saw: map[storage.Revision]bool{}, wrote: map[storage.Revision]bool{},
		tokens: map[string]*prepared{}, evidence: map[storage.MessageID]evidence{},
	}
}

type actKey struct{}

// acting says who acts in a context: decisions are named after that, not after the process, which others use too.
func acting(ctx context.Context, a *act) context.Context { return context.WithValue(ctx, actKey{}, a) }

func actOf(ctx context.Context) *act { return ctx.Value(actKey{}).(*act) }

type aimKey struct{}

func aiming(ctx context.Context, at storage.State) context.Context {
	return context.WithValue(ctx, aimKey{}, aim(at))
}

// aimOf is what a call is to write.
func aimOf(ctx context.Context, call faulty.Call) aim {
	if at, ok := ctx.Value(aimKey{}).(aim); ok {
		return at
	}
	return aim(call)
}

type aboutKey struct{}

// about says what a call is about: calls of one act that are under way at the same time are named after that.
func about(ctx context.Context, what string) context.Context {
	return context.WithValue(ctx, aboutKey{}, what)
}

func aboutOf(ctx context.Context) string {
	what, _ := ctx.Value(aboutKey{}).(string)
	return what
}

// with is what the act met with calls of an aim.
func (a *act) with(at aim) *met {
	m := a.met[at]
	if m == nil {
		m = &met{first: time.Now()}
		a.met[at] = m
	}
	return m
}

// writes notes a revision that the act has written, and shows one that is in the way of what it sends.
func (a *act) writes(r storage.Revision) { a.wrote[r], a.saw[r], a.landed = true, true, true }

func (a *act) shows(r storage.Revision) {
	a.saw[r] = true
	a.shown = a.shown || a.wrote[r]
}

// hears notes what a call came to, as its caller knows it. Called with the lock held.
func (a *act) hears(at aim, err error) {
	var record *storage.RecordConflictError
	var message *storage.MessageConflictError
	var failed *storage.WriteFailedError
	var unknown *storage.OutcomeUnknownError
	m := a.with(at)
	switch {
	case err == nil:
		if m.own++; a.key != nil && (at == reserves || at == renews) {
			a.lease = a.process.world.judge.records[a.key.id].LeaseUntil
		}
	case errors.As(err, &record):
		if r := record.Existing; r != nil {
			a.shows(r.Revision)
			if w := a.process.world; w.judge.owners[r.Owner] == a {
				m.own++
				a.lease = r.LeaseUntil
			}
		}
		if record.Message != nil {
			a.shows(record.Message.Revision)
		}
	case errors.As(err, &message):
		if message.Existing != nil {
			a.shows(message.Existing.Revision)
		}
	case errors.As(err, &failed): // it was judged
		a.lost = a.locks && atLock(failed)
	case errors.As(err, &unknown):
		m.unheard++
	case errors.Is(err, storage.ErrContention):
		m.refused++
	default:
		m.failed++
	}
}

// timely says whether the act had a fair chance to take back a reserve, and so left none standing by its own fault. What nobody
// confirmed is given back for a while, whatever refuses that; what is held is released with a few tries.
func (a *act) timely(now time.Time) bool {
	m := a.met[frees]
	end := a.began.Add(executionMax)
	if !a.deadline.IsZero() && a.deadline.Before(end) {
		end = a.deadline
	}
	pressed := now.After(end.Add(-3 * skews / 2))
	switch {
	case a.process.dead.Load() || a.late || a.process.hurt.Load() && pressed:
		return false
	case m == nil:
		return true
	case m.unheard > 0 || m.faults() > 0 && pressed:
		return false
	case a.with(reserves).own > 0:
		return m.faults() == 0
	}
	return now.Sub(m.first) < giveBackFor
}

// undisturbed says that nothing went wrong with what the act did.
func (a *act) undisturbed() bool {
	for _, m := range a.met {
		if m.faults() > 0 {
			return false
		}
	}
	return !a.process.hurt.Load()
}

// executionMax is idem.Config's default.
const executionMax = 25 * time.Second

// giveBackFor is how long a reserve without a reply is given back at least.
const giveBackFor = time.Second
