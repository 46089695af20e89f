package outbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Courier delivers messages within the request that sends them, by a worker's means, and goes on with their chain as long
// as there is time: an [idem.Courier]. What it leaves, being killed too, a worker finishes: the chain's open message is
// the only recovery point, whoever goes on from it.
type Courier struct{ worker *Worker }

// NewCourier returns a courier that delivers as the worker does, or an [*idem.ConfigError] without one.
func NewCourier(worker *Worker) (*Courier, error) {
	if worker == nil {
		return nil, &idem.ConfigError{Field: "worker", Value: nil, Rule: "must be given"}
	}
	return &Courier{worker}, nil
}

var errUnclaimable = errors.New("outbox: a new message can't be claimed")

// Claimed implements [idem.Courier]. No stream record wakes a worker for a message that is inserted as claimed: whoever
// finds the claim dead goes on. It returns a [*TopicError] for a topic that is not registered.
func (c *Courier) Claimed(m idem.Message, owner idem.Owner, now time.Time) (idem.Message, error) {
	w := c.worker
	topic, err := w.topic(m)
	if err != nil {
		return m, err
	}
	claimed, effect, err := Step(m, Woken{Owner: owner, LeaseUntil: now.Add(w.cfg.ClaimLease)}, topic.rules(w.cfg), now)
	if err == nil && effect != EffectClaim {
		err = errUnclaimable
	}
	return claimed, err
}

// Carry implements [idem.Courier].
func (c *Courier) Carry(ctx context.Context, m idem.Message) (*idem.RecordEnd, error) {
	return c.onward(ctx, &m, c.execution(ctx, m.Owner))
}

// Resume implements [idem.Courier]. It costs the reads of [Open], and a claim where there is something to do.
func (c *Courier) Resume(ctx context.Context, id idem.OperationID) (*idem.RecordEnd, error) {
	w := c.worker
	open, err := Open(ctx, readOnly{w.desk}, id)
	if err != nil || open == nil || w.now().Before(Due(*open)) {
		return nil, err
	}
	owner, err := w.mint.Owner()
	if err != nil {
		return nil, err
	}
	x := c.execution(ctx, owner)
	settled, err := w.deliver(ctx, *open, x)
	if errors.Is(err, ErrNoTime) {
		return nil, nil
	}
	if err != nil || settled == nil || settled.Next == nil {
		return endIn(settled), err
	}
	return c.onward(ctx, settled.Next, x)
}

// onward makes the call of a claimed message and, as long as its settlement claims the next one of the chain, that one's.
func (c *Courier) onward(ctx context.Context, m *idem.Message, x *execution) (*idem.RecordEnd, error) {
	for m != nil && m.State == idem.MessageClaimed && m.Owner == x.owner {
		topic, err := c.worker.topic(*m)
		if err != nil {
			return nil, err
		}
		settled, err := c.worker.perform(ctx, topic, *m, false, x)
		if err != nil || settled == nil || settled.Next == nil {
			return endIn(settled), err
		}
		m = settled.Next
	}
	return nil, nil
}

func endIn(settled *idem.Settlement) *idem.RecordEnd {
	if settled == nil {
		return nil
	}
	return settled.Record
}

// execution claims the next message of a chain in the settlement that writes it, unless there is no time left for its call.
func (c *Courier) execution(ctx context.Context, owner idem.Owner) *execution {
	w := c.worker
	return &execution{owner: owner, claimNext: func(m idem.Message) idem.Message {
		if !w.timeForCall(ctx) {
			return m
		}
		claimed, err := c.Claimed(m, owner, w.now())
		if err != nil {
			w.log(ctx, slog.LevelWarn, "outbox.not_claimed", m, "error", err)
			return m
		}
		return claimed
	}}
}

// readOnly reads messages with the desk's bounds on time.
type readOnly struct{ desk *desk }

// Message implements [Messages].
func (r readOnly) Message(ctx context.Context, id idem.MessageID) (*idem.Message, error) {
	return r.desk.message(ctx, id)
}
