package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// webhook is what the provider posts about a message that it has executed or declined: until it is acknowledged, a few times. Some
// say the opposite of what is true. Called with the lock held.
func (w *world) webhook(m storage.Message, made bool) {
	name := w.numbered("webhook about " + m.Topic + " of " + string(m.Payload))
	if w.oneOf(name, 3) != 0 || m.Topic == withNothing && made {
		return
	}
	if honours(m.Topic) && w.fault(name+" says the opposite", w.mood.lies, 1) != nothingWrong {
		w.key(string(m.Payload)).contradicted = true
		made = !made
	}
	w.post(name, m, made)
}

// refuted is a call that the provider has refused. Some providers tell later that they have made it all the same.
func (w *world) refuted(m storage.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := w.numbered("webhook about the refused " + m.Topic + " of " + string(m.Payload))
	if honours(m.Topic) && w.fault(name, w.mood.lies, 1) != nothingWrong {
		w.key(string(m.Payload)).contradicted = true
		w.post(name, m, true)
	}
}

// post sends a webhook until it is acknowledged, a few times.
func (w *world) post(name string, m storage.Message, made bool) {
	var evidence outbox.Outcome = outbox.Declined{Reference: string(m.ID), Evidence: []byte(`{"declined":true}`)}
	if made {
		evidence = outbox.Delivered{Reference: string(m.ID), Evidence: []byte(`{"made":true}`)}
	}
	w.posts(name, func(ctx context.Context, p *process) error {
		_, err := p.worker.Settle(ctx, m.ID, evidence)
		return err
	})
}

// posts sends a webhook about something until it is acknowledged, a few times, early or late.
func (w *world) posts(name string, post func(context.Context, *process) error) {
	soon := [...]time.Duration{500 * time.Millisecond, 3 * time.Minute}[w.oneOf(name+" is late", 2)]
	w.spawn(func() {
		for try := 1; try <= 4; try++ {
			who := fmt.Sprintf("%s, try %d", name, try)
			select {
			case <-time.After(w.between(who, 10*time.Millisecond, soon)):
			case <-w.end:
				return
			}
			if w.invoke("webhook", who, post) == nil {
				return
			}
		}
	})
}

// invoke is one invocation of a function, in a process of its own that the platform kills after a while; or, in a container, a
// goroutine that has no deadline.
func (w *world) invoke(role, who string, work func(ctx context.Context, p *process) error) error {
	return w.decide(role, who, "", "", work)
}

// decide is an invocation about a row as a person saw it.
func (w *world) decide(role, who, subject string, seen storage.Revision, work func(ctx context.Context, p *process) error) error {
	p := w.start(role)
	a := newAct(who, p)
	a.subject, a.seen = subject, seen
	ctx, cancel := context.WithCancel(acting(context.Background(), a))
	var killed <-chan time.Time
	if w.mood.invoked != 0 {
		ctx, cancel = context.WithTimeout(ctx, w.mood.invoked)
		a.deadline, killed = time.Now().Add(w.mood.invoked), time.After(w.mood.invoked-justBefore)
	}
	done := make(chan error, 1)
	w.spawn(func() {
		defer cancel()
		err := work(ctx, p)
		p.thaw()
		if !p.dead.Load() {
			w.done(a, err)
			done <- err
		}
	})
	select {
	case err := <-done:
		return err
	case <-w.end:
	case <-p.gone:
	case <-killed:
		w.killed(a)
		p.die()
	}
	return errNoReply
}

// operators decide what waits for a person, by the provider's books, and late enough for nothing to be on its way any more. They
// look at the same time, and take some time to decide.
func (w *world) operators(round, howMany int, patient bool) {
	for n := range howMany {
		for _, m := range w.memory.Messages() {
			if (m.State == storage.MessageDead || m.State == storage.MessageUnknown) && w.certain(m.LeaseUntil) && (!patient || !w.topics[m.Topic].looksUp || m.State == storage.MessageDead) {
				w.judgeMessageFor(m, w.numbered(fmt.Sprintf("operator %d.%d about %s of %s", round, n, m.Topic, w.subject(m))))
			}
		}
		for _, r := range w.memory.Records() {
			if r.State == storage.StateUnknown && w.certain(r.LeaseUntil) {
				w.judgeRecordFor(r, fmt.Sprintf("operator %d.%d about %s", round, n, w.nameOf(r.Key)))
			}
		}
	}
}

// certain says that nothing that was sent under a lease is under way any more.
func (w *world) certain(lease time.Time) bool {
	return time.Now().After(lease.Add(w.mood.longest + w.mood.freeze + 5*time.Second))
}

// thinks is how long a person takes to decide.
func (w *world) thinks(who string) time.Duration {
	longest := [...]time.Duration{time.Second, 4 * time.Minute}[w.oneOf(who+" thinks long", 2)]
	return w.between(who+" thinks", time.Millisecond, longest)
}

// operatorsDo is what operators do about a message that was not made: they close it, or start it anew.
const (
	operatorsDo      = "what operators do"
	operatorsClose   = 0
	operatorsRedrive = 1
)

// judgeMessageFor is one decision about a message. What undoes something is never given up.
func (w *world) judgeMessageFor(m storage.Message, who string) {
	times, evidence := w.app.Made(string(m.ID))
	w.spawn(func() {
		time.Sleep(w.thinks(who))
		w.say("%s, which was %s: made %v", who, m.State, times > 0)
		_ = w.decide("operator", who, string(m.ID), m.Revision, func(ctx context.Context, p *process) error { // what is refused stays for a person
			switch {
			case evidence != nil:
				_, err := p.operator.Settle(ctx, m.ID, outbox.Seen{Revision: m.Revision}, evidence)
				return err
			case m.Undoes || w.oneOfAll(operatorsDo, who, 3) != operatorsClose:
				_, err := p.operator.Redrive(ctx, m.ID, outbox.Seen{Revision: m.Revision})
				return err
			default:
				return p.operator.Close(ctx, m.ID, outbox.Seen{Revision: m.Revision})
			}
		})
	})
}

// judgeRecordFor is one decision about a record.
func (w *world) judgeRecordFor(r storage.Record, who string) {
	made := w.has(string(r.OperationID)) > 0
	w.spawn(func() {
		time.Sleep(w.thinks(who))
		w.say("%s, which was unknown: made %v", who, made)
		_ = w.decide("operator", who, string(r.OperationID), r.Revision, func(ctx context.Context, p *process) error {
			if made {
				_, err := p.engine.Resolve(ctx, r.Tenant, r.OperationID, r.Revision, idem.Response{Status: 201, Body: []byte(`{"resolved":true}`)})
				return err
			}
			_, err := p.engine.Free(ctx, r.Tenant, r.OperationID, r.Revision, "the provider has nothing of it")
			return err
		})
	})
}

// amenderBusts is that people take an answer out of use where they could extend it.
const amenderBusts = 0

// amender begins the names of those who amend.
const amender = "amender "

// amend changes how long answers last: two people at once extend one, or take it out of use.
func (w *world) amend(round int) {
	for _, r := range w.memory.Records() {
		if r.State != storage.StateCompleted || r.ExpiresAt.IsZero() {
			continue
		}
		for n := range 2 {
			who := fmt.Sprintf(amender+"%d.%d of %s", round, n, w.nameOf(r.Key))
			w.spawn(func() {
				time.Sleep(w.between(who, time.Millisecond, 300*time.Millisecond))
				_ = w.invoke("amender", who, func(ctx context.Context, p *process) error {
					if (r.Operation == string(pure) || r.Operation == string(wrappedSafe)) && w.oneOf("amender of "+w.nameOf(r.Key)+" busts", 2) == amenderBusts {
						_, err := p.engine.CacheBust(ctx, r.Tenant, r.OperationID, "", "it is wrong")
						return err
					}
					_, err := p.engine.Extend(ctx, r.Tenant, r.OperationID, r.ExpiresAt.Add(w.between(who+" extends", time.Second, 20*time.Minute)))
					return err
				})
			})
		}
	}
}
