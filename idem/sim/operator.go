package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// webhook is what the provider posts about an effect that it has made: until it is acknowledged, a few times. Called with the
// lock held.
func (w *world) webhook(m storage.Message) {
	name := w.numbered("webhook about " + m.Topic + " of " + string(m.Payload))
	if m.Topic == withNothing || w.oneOf(name, 3) != 0 {
		return
	}
	w.spawn(func() {
		for try := 1; try <= 4; try++ {
			who := fmt.Sprintf("%s, try %d", name, try)
			select {
			case <-time.After(w.between(who, 10*time.Millisecond, 3*time.Minute)):
			case <-w.end:
				return
			}
			evidence := outbox.Delivered{Reference: string(m.ID), Evidence: []byte(`{"made":true}`)}
			if w.invoke("webhook", who, func(ctx context.Context, p *process) error {
				_, err := p.worker.Settle(ctx, m.ID, evidence)
				return err
			}) == nil {
				return
			}
		}
	})
}

// invoke is one invocation of a function, in a process of its own that the platform kills after a minute.
func (w *world) invoke(role, who string, work func(ctx context.Context, p *process) error) error {
	p := w.start(role)
	ctx, cancel := context.WithTimeout(acting(context.Background(), who), time.Minute)
	done := make(chan error, 1)
	w.spawn(func() {
		defer cancel()
		done <- work(ctx, p)
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select { // both may have happened at once
	case err := <-done:
		return err
	default:
		p.die()
		return ctx.Err()
	}
}

// operator decides what waits for a person, by the provider's books: late enough for nothing to be on its way any more.
func (w *world) operator(round int) {
	for _, m := range w.memory.Messages() {
		if m.State != storage.MessageDead && (m.State != storage.MessageUnknown || m.Topic != withNothing) {
			continue
		}
		who := fmt.Sprintf("operator %d about %s of %s", round, m.Topic, m.Payload)
		made := w.provider.has(string(m.ID)) > 0
		w.say("%s, which is %s: made %v", who, m.State, made)
		_ = w.invoke("operator", who, func(ctx context.Context, p *process) error { // what is refused stays for a person
			switch {
			case made:
				_, err := p.operator.Settle(ctx, m.ID, m.Revision, outbox.Delivered{Reference: string(m.ID), Evidence: []byte(`{"made":true}`)})
				return err
			case w.oneOf(who, 2) == 0:
				_, err := p.operator.Redrive(ctx, m.ID, m.Revision)
				return err
			default:
				return p.operator.Close(ctx, m.ID, m.Revision)
			}
		})
	}
	for _, r := range w.memory.Records() {
		if r.State != storage.StateUnknown {
			continue
		}
		who := fmt.Sprintf("operator %d about %s", round, w.nameOf(r.Key))
		made := w.provider.has(string(r.OperationID)) > 0
		w.say("%s, which is unknown: made %v", who, made)
		_ = w.invoke("operator", who, func(ctx context.Context, p *process) error {
			if made {
				_, err := p.engine.Resolve(ctx, tenant, r.OperationID, r.Revision, idem.Response{Status: 201, Body: []byte(`{"resolved":true}`)})
				return err
			}
			_, err := p.engine.Free(ctx, tenant, r.OperationID, r.Revision, "the provider has nothing of it")
			return err
		})
	}
}
