package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/cutover"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// desk is what workers, sweeps and reconcilers share: how a transition is written, settled, logged and told to the queues.
type desk struct {
	store       Store
	topics      *Topics
	wakeUps     WakeUps
	deadLetters DeadLetters
	cfg         Config
	mint        storage.IDGenerator
	// loss knows until when data may have been lost.
	loss *cutover.Reader
	// inline counts the deliveries of an [Inline].
	inline underWay
}

func newDesk(store Store, topics *Topics, wakeUps WakeUps, deadLetters DeadLetters) (*desk, error) {
	if store == nil || topics == nil || wakeUps == nil || deadLetters == nil {
		return nil, &idem.ConfigError{Field: "store, topics, wakeUps, deadLetters", Value: nil, Rule: "must be given"}
	}
	d := &desk{
		store: store, topics: topics, wakeUps: wakeUps, deadLetters: deadLetters,
		cfg: topics.cfg, mint: storage.IDGenerator{Random: topics.cfg.Random},
	}
	d.loss = &cutover.Reader{Read: d.store.RefuseBefore, Now: d.cfg.Now, Timeout: d.cfg.StoreTimeout, Moved: d.tellLoss}
	return d, nil
}

func (d *desk) tellLoss(ctx context.Context, at time.Time) {
	d.cfg.Logger.WarnContext(ctx, "outbox.refuse_before", "refuse_before", at, "means", "messages created before may have been called")
}

// UnreadableError says that a message has a schema version or state that this release does not know, or a payload that its
// topic does not ([Topic].Knows). The message was not changed; the release that wrote it can process it.
type UnreadableError struct {
	// SchemaVersion and State are what the stored message says.
	SchemaVersion int
	State         storage.MessageState
	// Cause is what its topic says of the payload; nil where the message itself can't be read.
	Cause error
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Cause }

// Error implements error.
func (e *UnreadableError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("outbox: unreadable payload of a message in state %q: %v", e.State, e.Cause)
	}
	return fmt.Sprintf("outbox: unreadable message: schema %d, state %q", e.SchemaVersion, e.State)
}

// TopicError says that a message's topic is not registered here, because another release sends it. The message was not
// changed.
type TopicError struct {
	// Topic is the one that is not registered.
	Topic string
}

// Error implements error.
func (e *TopicError) Error() string {
	return fmt.Sprintf("outbox: topic %q is not registered", e.Topic)
}

// unknown says whether an error is another release's message, and tells of it: that release is offered it again by its
// sweep.
func (d *desk) unknown(ctx context.Context, id idem.MessageID, err error) bool {
	var topic *TopicError
	var unreadable *UnreadableError
	var malformed *storage.MalformedError
	if !errors.As(err, &topic) && !errors.As(err, &unreadable) && !errors.As(err, &malformed) {
		return false
	}
	d.cfg.Logger.ErrorContext(ctx, "outbox.unknown_topic", "message", id, "error", err, "alarm", true)
	return true
}

// topic returns the message's topic, or an [*UnreadableError] or a [*TopicError].
func (d *desk) topic(m storage.Message) (Topic, error) {
	if !m.Readable() {
		return Topic{}, &UnreadableError{m.SchemaVersion, m.State, nil}
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

// message reads a message strongly; nil when there is none.
func (d *desk) message(ctx context.Context, id idem.MessageID) (*storage.Message, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.StoreTimeout)
	defer cancel()
	m, err := d.store.Message(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("outbox: read message: %w", err)
	}
	return m, nil
}

// pause is what lies between two sendings of a write: up to 20 ms at first, up to a second later.
func (d *desk) pause(try int) time.Duration {
	most := doubled(20*time.Millisecond, time.Second, try)
	return between(most/2, most, d.random())
}

// schedule asks for a wake-up. Failing to is fine: the sweep does the rest.
func (d *desk) schedule(ctx context.Context, m storage.Message, at time.Time) error {
	delay := min(max(at.Sub(d.now()), 0), WakeUpDelayMax)
	err := d.wakeUps.Schedule(ctx, m.Tenant, m.ID, delay)
	if err != nil {
		d.log(ctx, slog.LevelWarn, "outbox.wake_up_lost", m, "error", err)
	}
	return err
}

// log writes one line about a message: never its payload, reference or evidence.
func (d *desk) log(ctx context.Context, level slog.Level, event string, m storage.Message, args ...any) {
	args = append([]any{
		"message", m.ID, "topic", m.Topic, "tenant", m.Tenant, "state", m.State, "epoch", m.Epoch,
		"attempts", m.Attempts, "age_ms", d.now().Sub(m.CreatedAt).Milliseconds(),
	}, args...)
	d.cfg.Logger.Log(trace.About(ctx, m.Trace), level, event, args...)
}

// alarm writes a line that needs an operator.
func (d *desk) alarm(ctx context.Context, event string, m storage.Message, args ...any) {
	d.log(ctx, slog.LevelError, event, m, append(args, "alarm", true)...)
}

// bury queues a copy for the operators. The row is the truth and stands in their queue whatever becomes of the copy.
func (d *desk) bury(ctx context.Context, m storage.Message, reason string) {
	letter := DeadLetter{Message: m.ID, Topic: m.Topic, Reason: reason, Open: !m.OpenSince.IsZero(), Attempts: m.Attempts}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.StoreTimeout)
	defer cancel()
	if err := d.deadLetters.Bury(ctx, letter); err != nil {
		d.alarm(ctx, "outbox.dead_letter_lost", m, "error", err)
	}
}
