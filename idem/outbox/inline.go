package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/front"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Inline delivers messages within the request that sends them, by a worker's means, and goes on with their chain as long
// as there is time: an [idem.InlineDelivery]. What it leaves, being killed too, a worker finishes: the chain's open
// message is the only recovery point, for the request and for a worker alike.
//
// A provider's definite answer that could not be written by the request's deadline, and that neither another call nor a probe
// would bring again, is nowhere but in this process. Unless [idem.Config].KillsAtDeadline is set the client gets its 202 at the
// deadline, and the answer is sent to the store for as long as the process lives. So a process that ends must call [Inline.Wait]
// after its server has served its last request.
//
// A provider that hangs holds the requests that call it. An Inline learns from that: after a call that timed out, or took longer
// than [Config].InlineSlowAfter, it leaves messages of the same tenant and topic to a worker for about [Config].InlinePause, and
// after [Config].InlineSlowMax such calls in a row those of everybody. Their requests get the 202 at once. It knows what this
// process has seen, and of 1,000 tenants at most.
type Inline struct {
	worker *Worker
	pauses *pauses
}

// NewInline returns an inline delivery that works as the worker does, or an [*idem.ConfigError] without one.
func NewInline(worker *Worker) (*Inline, error) {
	if worker == nil {
		return nil, &idem.ConfigError{Field: "worker", Value: nil, Rule: "must be given"}
	}
	return &Inline{worker, newPauses(worker.desk)}, nil
}

// Leaves implements [idem.InlineDelivery]: nothing is read or written.
func (i *Inline) Leaves(m storage.Message) bool {
	return !i.pauses.admits(m.Tenant, m.Topic, i.worker.now())
}

// Left implements [idem.InlineDelivery]. Where no relay wakes a worker ([Config].InlineWakes) it asks for the wake-up.
func (i *Inline) Left(ctx context.Context, m storage.Message) {
	if i.worker.cfg.InlineWakes {
		_ = i.worker.schedule(ctx, m, Due(m)) // logged; the sweep does the rest
	}
}

var errUnclaimable = errors.New("outbox: a new message can't be claimed")

// Claimed implements [idem.InlineDelivery]. No stream record wakes a worker for a message that is inserted as claimed:
// a worker that finds the claim dead goes on. It returns a [*TopicError] for a topic that is not registered.
func (i *Inline) Claimed(m storage.Message, owner storage.Owner, now time.Time) (storage.Message, error) {
	x, err := i.worker.deliveryOf(protocol.Wake, m)
	if err != nil {
		return m, err
	}
	revision := x.machine.Seed
	x.machine.Seed = translation.IDOf(owner)
	_, action := x.machine.Next(protocol.Input{What: protocol.Begin, Now: translation.InstantOf(now)}, &x.config)
	switch {
	case x.foreign != nil:
		return m, x.foreign
	case action.Do != protocol.Send || action.Write.Msg.State != protocol.Claimed:
		return m, errUnclaimable
	}
	claimed := translation.WithHeader(m, action.Write.Msg)
	claimed.Owner, claimed.Revision = owner, storage.NameOf[storage.Revision](revision)
	return claimed, nil
}

// Deliver implements [idem.InlineDelivery].
func (i *Inline) Deliver(ctx context.Context, m storage.Message, outlives bool) (*storage.RecordEnd, error) {
	x, err := i.worker.deliveryOf(protocol.Carry, m)
	if err != nil {
		return nil, err
	}
	return i.onward(ctx, x, outlives)
}

// Resume implements [idem.InlineDelivery]. It costs the reads of [Open], and a claim where there is something to do.
func (i *Inline) Resume(ctx context.Context, id idem.OperationID, outlives bool) (*storage.RecordEnd, error) {
	w := i.worker
	open, err := Open(ctx, readOnly{w.desk}, id)
	if err != nil || open == nil || !i.resumes(*open) {
		return nil, err
	}
	x, err := w.deliveryOf(protocol.Wake, *open)
	if err != nil {
		return nil, err
	}
	end, err := i.onward(ctx, x, outlives)
	if errors.Is(err, ErrNoTime) {
		return nil, nil
	}
	return end, err
}

// resumes says whether the request does what the message asks for. Only what may call asks the pauses: a call that they let through
// uses up the one that finds out whether the provider still hangs.
func (i *Inline) resumes(m storage.Message) bool {
	switch m.State {
	case storage.MessageUnknown, storage.MessageDead, storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled:
		return false
	case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced: // where it is due
	}
	return !i.worker.now().Before(Due(m)) && (m.State == storage.MessageEvidenced || !i.Leaves(m))
}

// onward delivers and, as long as a settlement claims the next message of the chain, that one.
func (i *Inline) onward(ctx context.Context, x *delivery, outlives bool) (*storage.RecordEnd, error) {
	i.worker.inline.begin()
	defer i.worker.inline.end()
	for {
		x.machine.Onward, x.machine.Outlives, x.pauses = true, outlives, i.pauses
		x.front = front.BoundOf(ctx)
		say, err := x.run(ctx)
		if err != nil { // the delivery may go on
			return nil, err
		}
		if say.Carry.State == protocol.NoMessage {
			if x.next.State == storage.MessagePending {
				i.Left(ctx, x.next)
			}
			return x.ended, nil
		}
		if x, err = i.worker.deliveryOf(protocol.Carry, x.next); err != nil {
			return nil, err
		}
	}
}

// Wait waits until no delivery is under way, not even one that goes on to keep an answer after its request was answered, or until
// ctx ends: then it returns [ErrUndrained], and an answer that this process has not kept is lost when it ends. Call it after
// http.Server.Shutdown has returned, beside a [Runner] too: [Runner.Run] waits for the deliveries that are under way when its
// context ends, and knows nothing of requests that are served later.
func (i *Inline) Wait(ctx context.Context) error { return i.worker.inline.wait(ctx) }

// readOnly reads messages with the desk's bounds on time.
type readOnly struct{ desk *desk }

// Message implements [Messages].
func (r readOnly) Message(ctx context.Context, id idem.MessageID) (*storage.Message, error) {
	return r.desk.message(ctx, id)
}
