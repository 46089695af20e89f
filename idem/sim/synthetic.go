package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// synthetic is the simulator's own application: each way to protect a request, as plain as it can be. Its handlers are in key.go, and its
// topics in provider.go.
type synthetic struct{ *world }

// Requests implements App.
func (s *synthetic) Requests() (all []Request) {
	for i := range s.mood.keys {
		for _, tenant := range []string{oneTenant, anotherTenant}[:s.mood.tenants] {
			all = append(all, asks(tenant, fmt.Sprintf("k%d", i+1), s.mood.kinds[i%len(s.mood.kinds)]))
		}
	}
	return all
}

// Topics implements App.
func (s *synthetic) Topics(p Process) []outbox.Topic { return p.p.topics() }

// Link implements App.
func (s *synthetic) Link(process Process) (Served, error) {
	p, routes := process.p, map[kind]*idem.Registered{}
	for _, kind := range p.mood.kinds {
		if routes[kind] != nil {
			continue
		}
		operation := kind.operation()
		operation.Policy.Retention = time.Hour
		if p.observes {
			operation.Policy = idem.Observe(operation.Policy)
		}
		if kind.inline() {
			operation.Inline = p.inline
		}
		var err error
		if routes[kind], err = p.engine.Register(operation); err != nil {
			return Served{}, err
		}
	}
	return Served{
		Serve: func(ctx context.Context, name string, body int) (*idem.Result, error) {
			k := s.key(name)
			return routes[k.kind].Do(ctx, s.request(k, body), k.handler(p, body))
		},
		Pry: func(ctx context.Context, name string, told *idem.Result) (string, error) {
			other := anotherTenant
			if s.key(name).tenant == anotherTenant {
				other = oneTenant
			}
			found, err := p.engine.Status(ctx, other, told.OperationID)
			if found == nil {
				return "", err
			}
			return string(found.State), err
		},
		Probes: map[string]outbox.Probe{string(wrappedProbed): p.probeWrapped},
	}, nil
}

// Made implements App.
func (s *synthetic) Made(downstream string) (int, outbox.Outcome) {
	n := s.provider.has(downstream)
	if n == 0 {
		return 0, nil
	}
	return n, outbox.Delivered{Reference: downstream, Evidence: []byte(`{"made":true}`)}
}

// Idle implements App.
func (s *synthetic) Idle() bool { return true }

// Judge implements App.
func (s *synthetic) Judge(landed Landed) {
	w := s.world
	if r := landed.Record; r != nil {
		k := w.keyOf(r.Key)
		if _, other := w.others.Load(r.Key); other {
			w.broken("I5: a record of %s that no client asked for", r.Operation)
		}
		if n := len(w.memory.Row(written(r.OperationID))); n > 1 {
			w.broken("I1: the business write of %s happened %d times", k.name, n)
		} else if n > 0 && k.nothing {
			w.broken("I1: the business write of %s happened after its client was told that nothing had", k.name)
		}
	}
	if m := landed.Message; m != nil {
		if n := len(w.memory.Row(settled(m.ID))); n > 1 && !w.keyOf(m.RecordKey).contradicted {
			w.broken("I1: message %s to %s was settled %d times", short(string(m.ID)), m.Topic, n)
		}
		w.judgeReturned(*m)
	}
}

// JudgeEnd implements App.
func (s *synthetic) JudgeEnd() {
	w, successes := s.world, 0
	w.incarnations(w.judgeWritten)
	for op, k := range w.judge.keys {
		if k.kind.shares() {
			successes += len(w.memory.Row(written(op)))
		}
	}
	for _, row := range []string{limited, locked} {
		if n := len(w.memory.Row(row)); n != successes {
			w.broken("I1: row %s was changed %d times by %d operations", row, n, successes)
		}
	}
}

// judgeWritten holds a record to what its handler wrote, or did.
func (w *world) judgeWritten(k *key, r storage.Record) {
	switch written := len(w.memory.Row(written(r.OperationID))); {
	case k.wrapped:
		w.judgeWrapped(k, r)
	case r.State.Final() && r.Response.Status == 201 && written != 1 && k.kind != pure:
		w.broken("I1: %s is completed, and its write happened %d times", k.name, written)
	case r.State == storage.StateFailedRetryable && written != 0:
		w.broken("I1: %s is free, and its write happened %d times", k.name, written)
	case r.State == storage.StatePending && written != 1:
		w.broken("I1: %s is pending with %d writes", k.name, written)
	}
	if r.State.Final() && k.kind.chained() && len(w.messagesOf(r)) > 0 {
		w.judgeChain(k, r)
	}
}

// judgeWrapped holds a wrapped key's record to what its handler did.
func (w *world) judgeWrapped(k *key, r storage.Record) {
	made := w.judge.effects[string(r.OperationID)]
	switch {
	case k.kind == wrappedSafe:
	case r.State == storage.StateCompleted && r.Response.Status == 201 && made != 1:
		w.broken("I1: %s is completed, and was made %d times", k.name, made)
	case r.State == storage.StateCompleted && r.Response.Status == 402 && made != 0:
		w.broken("I1: %s is declined, and was made %d times", k.name, made)
	case r.State == storage.StateFailedRetryable && made != 0:
		w.broken("I1: %s is free, and was made %d times", k.name, made)
	case r.State == storage.StateInProgress:
		w.broken("I9: %s is still in progress", k.name)
	case r.State == storage.StateUnknown && !k.began[r.OperationID] && unhurt(k.servers) && w.leftStanding(r):
		w.broken("I9: %s is unknown, and its handler never began", k.name)
	case r.State == storage.StateUnknown && k.kind == wrappedProbed:
		w.broken("I9: %s can be looked up, and is still unknown", k.name)
	}
}

// leftStanding says that the holder of a record had a fair chance to take its reserve back before its caller was answered. Where the store
// took nothing until the request's time was over, the lease stands, and nobody who finds it dead can know that its handler never began.
func (w *world) leftStanding(r storage.Record) bool {
	holder := w.judge.owners[r.Owner]
	return holder == nil || holder.timely(holder.told)
}

// judgeChain demands that what a chain holds at the provider goes with what its record says.
func (w *world) judgeChain(k *key, r storage.Record) {
	count := func(topic string) int { return w.judge.effects[topic+" of "+string(r.OperationID)] }
	held, paid, undone := count(first), count(second), count(undo)
	switch {
	case r.Response.Status == 201 && (held != 1 || paid != 1 || undone != 0):
		w.broken("I6: %s is completed with %d held, %d paid and %d undone", k.name, held, paid, undone)
	case r.Response.Status != 201 && (paid != 0 || held != undone):
		w.broken("I6: %s is %d with %d held, %d paid and %d undone", k.name, r.Response.Status, held, paid, undone)
	}
}
