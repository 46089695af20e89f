package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// desk is what workers, sweeps and reconcilers share: how a transition is written, settled, logged and told to the queues.
type desk struct {
	store       Store
	topics      *Topics
	wakeUps     WakeUps
	deadLetters DeadLetters
	cfg         Config
	mint        idem.Mint
}

func newDesk(store Store, topics *Topics, wakeUps WakeUps, deadLetters DeadLetters) (*desk, error) {
	if store == nil || topics == nil || wakeUps == nil || deadLetters == nil {
		return nil, &idem.ConfigError{Field: "store, topics, wakeUps, deadLetters", Value: nil, Rule: "must be given"}
	}
	return &desk{
		store: store, topics: topics, wakeUps: wakeUps, deadLetters: deadLetters,
		cfg: topics.cfg, mint: idem.Mint{Random: topics.cfg.Random},
	}, nil
}

// TopicError is a message of a topic that is not registered here: another release's. Nothing is done with it.
type TopicError struct{ Topic string }

// Error implements error.
func (e *TopicError) Error() string {
	return fmt.Sprintf("outbox: topic %q is not registered", e.Topic)
}

// topic returns the message's topic, or an [*UnreadableError] or a [*TopicError].
func (d *desk) topic(m idem.Message) (Topic, error) {
	if !m.Readable() {
		return Topic{}, &UnreadableError{m.SchemaVersion, m.State}
	}
	topic, ok := d.topics.byName[m.Topic]
	if !ok {
		return Topic{}, &TopicError{m.Topic}
	}
	return topic, nil
}

// now is the clock in the resolution that is stored.
func (d *desk) now() time.Time { return d.cfg.Now().UTC().Truncate(time.Millisecond) }

// remaining is how much time the context leaves; context deadlines are in the platform's time, whatever clock is injected.
func remaining(ctx context.Context) (time.Duration, bool) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0, false
	}
	return time.Until(deadline), true
}

// until is when a write without a reply is given up: SettleMax from now, or the context's earlier deadline.
func (d *desk) until(ctx context.Context) time.Time {
	most := d.cfg.SettleMax
	if left, ok := remaining(ctx); ok && left < most {
		most = left
	}
	return d.now().Add(most)
}

// message reads a message strongly; nil when there is none.
func (d *desk) message(ctx context.Context, id idem.MessageID) (*idem.Message, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.StoreTimeout)
	defer cancel()
	m, err := d.store.Message(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("outbox: read message: %w", err)
	}
	return m, nil
}

// send makes a call to the store until its outcome is known or the time is over: no reply leads to the identical call
// again. A caller that gives up changes nothing about a call that has begun.
func (d *desk) send(ctx context.Context, until time.Time, call func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	lost := false
	for try := 0; ; try++ {
		left := until.Sub(d.now())
		if left <= 0 {
			return &idem.OutcomeUnknownError{Cause: context.DeadlineExceeded}
		}
		err := d.try(ctx, min(left, d.cfg.StoreTimeout), call)
		var unknown *idem.OutcomeUnknownError
		var notAsked *idem.NotAskedError
		switch {
		case lost && errors.As(err, &notAsked):
			return &idem.OutcomeUnknownError{Cause: err} // this try did not leave, but an earlier one may have happened
		case !errors.As(err, &unknown):
			return err
		}
		lost = true
		pause := d.pause(try)
		if pause >= until.Sub(d.now()) || d.cfg.Pause(ctx, pause) != nil {
			return err
		}
	}
}

func (d *desk) try(ctx context.Context, timeout time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return call(ctx)
}

// pause is what lies between two sendings of a write: up to 20 ms at first, up to a second later.
func (d *desk) pause(try int) time.Duration {
	most := doubled(20*time.Millisecond, time.Second, try)
	return between(most/2, most, d.random())
}

// contended repeats an attempt that met a running transaction or a throttle, which provably did nothing.
func (d *desk) contended(ctx context.Context, until time.Time, attempt func() error) error {
	for try := 1; ; try++ {
		err := attempt()
		if !errors.Is(err, idem.ErrContention) || try >= d.cfg.ContentionTries {
			return err
		}
		pause := d.pause(try)
		if pause >= until.Sub(d.now()) || d.cfg.Pause(context.WithoutCancel(ctx), pause) != nil {
			return err
		}
	}
}

// write stores what a message becomes where it still is what was seen. A conflict with exactly what was to be written is
// the lost reply of an earlier sending.
func (d *desk) write(ctx context.Context, until time.Time, seen, next idem.Message) error {
	fence := idem.FenceOfMessage(seen)
	err := d.contended(ctx, until, func() error {
		return d.send(ctx, until, func(ctx context.Context) error { return d.store.UpdateMessage(ctx, next, fence) })
	})
	var conflict *idem.MessageConflictError
	if errors.As(err, &conflict) && conflict.Existing != nil && idem.FenceOfMessage(next).Admits(*conflict.Existing) {
		return nil
	}
	return err
}

// transact freezes a settlement and sends it: again under the same token while there is no reply, under a new one after
// contention.
func (d *desk) transact(ctx context.Context, s idem.Settlement, x *execution) error {
	until := d.until(ctx)
	return d.contended(ctx, until, func() error {
		s.Token = x.token()
		send, err := d.store.PrepareSettle(s)
		if errors.Is(err, idem.ErrContention) { // something was in the way; nothing is wrong with the settlement
			return err
		}
		if err != nil {
			return &unpreparedError{err}
		}
		return d.send(ctx, until, send)
	})
}

// unpreparedError: the transaction can't be built, now or later.
type unpreparedError struct{ cause error }

func (e *unpreparedError) Error() string {
	return fmt.Sprintf("outbox: prepare settlement: %v", e.cause)
}
func (e *unpreparedError) Unwrap() error { return e.cause }

// execution is one wake-up's, or one request's, way through the desk.
type execution struct {
	owner idem.Owner
	// sends counts transactions: no two of any executions carry the same token (peers.md H7).
	sends int
	// fence, where set, is the message as a person saw it: their evidence is about nothing else.
	fence *idem.MessageFence
	// claimNext, where set, claims the next message of a chain as it is inserted, if there is time for its call.
	claimNext func(idem.Message) idem.Message
}

// token is the client request token of the next transaction.
func (x *execution) token() string {
	x.sends++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s settle %d", x.owner, x.sends))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}

// schedule asks for a wake-up. Failing to is fine: the sweep does the rest.
func (d *desk) schedule(ctx context.Context, m idem.Message, at time.Time) error {
	delay := min(max(at.Sub(d.now()), 0), WakeUpDelayMax)
	err := d.wakeUps.Schedule(ctx, m.Tenant, m.ID, delay)
	if err != nil {
		d.log(ctx, slog.LevelWarn, "outbox.wake_up_lost", m, "error", err)
	}
	return err
}

// log writes one line about a message: never its payload, reference or evidence.
func (d *desk) log(ctx context.Context, level slog.Level, event string, m idem.Message, args ...any) {
	args = append([]any{
		"message", m.ID, "topic", m.Topic, "tenant", m.Tenant, "state", m.State, "epoch", m.Epoch,
		"attempts", m.Attempts, "age_ms", d.now().Sub(m.CreatedAt).Milliseconds(),
	}, args...)
	d.cfg.Logger.Log(ctx, level, event, args...)
}

// alarm writes a line that wants a person.
func (d *desk) alarm(ctx context.Context, event string, m idem.Message, args ...any) {
	d.log(ctx, slog.LevelError, event, m, append(args, "alarm", true)...)
}
