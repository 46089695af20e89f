package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/front"
	"github.com/idem-go/idem-aws/idem/internal/timers"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// delivery performs one [protocol.Delivery]: the machine decides, and each of its actions is one call. It belongs to one
// goroutine.
type delivery struct {
	*desk
	id      idem.MessageID
	machine protocol.Delivery
	config  protocol.Config
	topic   Topic

	// row is the message as it was read or written last, with all that the machine does not know of it; none, where there
	// is no such message.
	row  storage.Message
	none bool
	// foreign says why another release must decide about the message; nil where this one can.
	foreign error
	// first is the state in which it was found.
	first storage.MessageState
	// outcome is what the call, a probe, a webhook or a person said last, asked when the provider was asked.
	outcome Outcome
	finding Finding
	asked   time.Time
	// said is what the topic's Settle made of meant.
	said  Settlement
	meant protocol.Asked
	// send sends the write that is under way; end is what it makes of the record, and next the message that it inserts. ended
	// is what a write has made of the record.
	send       func(context.Context) error
	end, ended *storage.RecordEnd
	next       storage.Message
	// ending is the revision that the last settlement writes, landed or not.
	ending protocol.ID
	// unheard is what the last try without a reply came to.
	unheard error
	// pauses, where set, is what the [Inline] has learnt that the delivery belongs to.
	pauses *pauses
	// front is the largest response that gets to the caller of the request which the delivery belongs to.
	front front.Bound
	// closing, where set, ends when the process takes up no more: then nothing is claimed.
	closing <-chan struct{}
	// rehearsing, where set, says that nothing is written, and that no log and no queue is told.
	rehearsing *rehearsal
	// cause is why the last call to the store, or the topic's Settle, failed; called that the provider was called.
	cause  error
	called bool
	// clock is the latest instant that was read or waited for: it never goes back, and goes on while a wait does, whatever
	// Config.Now says. So a clock that stands still, or is set back, is no reason to go on for ever.
	clock time.Time
	// given is when the caller was first seen to have given up; answered that it was, and the delivery goes on without it.
	given    time.Time
	answered bool
	// span is the delivery's, from its first action that is more than a read; nil before, and where nobody traces.
	span *trace.Span
}

// newDelivery is a delivery that has yet to read the message.
func (d *desk) newDelivery(errand protocol.MessageErrand, id idem.MessageID) (*delivery, error) {
	seed, err := d.mint.Owner()
	if err != nil {
		return nil, err
	}
	return &delivery{desk: d, id: id, machine: protocol.Delivery{Errand: errand, Seed: translation.IDOf(seed)}, front: front.Boundless()}, nil
}

// deliveryOf begins with a row that is known: it came with the wake-up, or was written by the same request.
func (d *desk) deliveryOf(errand protocol.MessageErrand, m storage.Message) (*delivery, error) {
	x, err := d.newDelivery(errand, m.ID)
	if err == nil {
		x.machine.Held = x.know(&m)
	}
	return x, err
}

// know takes the row, and with it the topic, and returns what a machine judges of it. A message of another release is
// foreign, and x.foreign says why: an [*UnreadableError] or a [*TopicError].
func (x *delivery) know(m *storage.Message) protocol.Message {
	header := translation.HeaderOf(m)
	if x.none = m == nil; x.none {
		return header
	}
	topic, err := x.desk.topic(*m)
	switch remind := x.machine.Errand == protocol.Remind; { // what is dead is the operator's, whatever release it is of
	case remind && errors.As(err, new(*TopicError)):
		topic, err = Topic{Name: m.Topic}, nil
	case err == nil && !remind:
		err = topic.reads(*m, func(stack []byte) {
			x.log(context.Background(), levelError, "outbox.panic", *m, "stack", string(stack))
		})
	}
	if err != nil {
		x.foreign, header.Foreign = err, true
		return header
	}
	x.row, x.first, x.topic, x.config = *m, m.State, topic, topic.protocol(x.cfg)
	return header
}

// provable is from when absence is proof, by what was read or written last.
func (x *delivery) provable() time.Time {
	config := x.machine.Heeding(&x.config)
	return translation.TimeOf(translation.HeaderOf(&x.row).Provable(&config))
}

// run drives the machine to its end. Besides what [delivery.trouble] says, it returns why the machine was left on the way:
// what [desk.unknown] tells of, [ErrNoTime], or that the caller gave up.
func (x *delivery) run(ctx context.Context) (protocol.Say, error) {
	say, err := x.drive(ctx, protocol.Input{What: protocol.Begin, Deadline: x.deadline(ctx)})
	if !errors.Is(err, errKeeping) {
		x.endSpan(err)
	}
	return say, err
}

func (x *delivery) drive(ctx context.Context, in protocol.Input) (protocol.Say, error) {
	for {
		in.Now = translation.InstantOf(x.now())
		x.heed(ctx, &in)
		var action protocol.Action
		if x.machine, action = x.machine.Next(in, &x.config); action.Do == protocol.Tell {
			if x.rehearsing == nil {
				x.notify(ctx, action.Say)
			}
			return action.Say, x.trouble(action.Say)
		}
		if x.rehearsing != nil && action.Do == protocol.Send {
			var made bool
			var err error
			if in, made, err = x.rehearse(ctx, action.Write); err != nil || made {
				return protocol.Say{Code: protocol.Changed}, err
			}
			continue
		}
		if x.machine.Beyond() && !x.answered {
			x.answered = true
			return protocol.Say{}, x.keepOn(context.WithoutCancel(ctx), action)
		}
		if action.Do != protocol.Read && x.rehearsing == nil {
			ctx = x.beginSpan(ctx) //nolint:fatcontext // one span at most
		}
		var err error
		if in, err = x.perform(ctx, action); err != nil {
			return protocol.Say{}, err
		}
	}
}

var errKeeping = errors.New("outbox: the caller's deadline has passed while the provider's answer is still being stored")

// keepOn goes on from the action while its caller is answered: the delivery is the goroutine's from here on.
func (x *delivery) keepOn(ctx context.Context, a protocol.Action) error {
	err := fmt.Errorf("%w, after %w", errKeeping, x.cause)
	x.inline.begin()
	go func() {
		defer x.inline.end()
		in, err := x.perform(ctx, a)
		if err == nil {
			_, err = x.drive(ctx, in)
		}
		x.endSpan(err)
		if err != nil {
			x.log(ctx, levelError, "outbox.delivery_failed", x.row, "error", err)
		}
	}()
	return err
}

func (x *delivery) perform(ctx context.Context, a protocol.Action) (protocol.Input, error) {
	switch a.Do {
	case protocol.Read:
		return x.read(ctx)
	case protocol.Send:
		return x.try(ctx, a)
	case protocol.Ask:
		return protocol.Input{What: protocol.Answered, Meant: x.ask(ctx, a.Asked)}, nil
	case protocol.Call:
		return x.call(ctx, a), nil
	case protocol.Probe:
		return x.probe(ctx)
	case protocol.Alert:
		x.alert(ctx)
		return protocol.Input{What: protocol.Alerted}, nil
	case protocol.Admit, protocol.Run, protocol.Wait, protocol.Tell: // never of a delivery
	}
	return protocol.Input{}, fmt.Errorf("outbox: a delivery does not %d", a.Do)
}

// now is the clock in the resolution that is stored.
func (x *delivery) now() time.Time {
	x.waited(x.desk.now())
	return x.clock
}

// waited says that it is at least so late.
func (x *delivery) waited(until time.Time) {
	if until.After(x.clock) {
		x.clock = until
	}
}

// deadline is the context's by the injected clock, 0 for none: the context's own is in the platform's time.
func (x *delivery) deadline(ctx context.Context) protocol.Instant {
	now := x.now() // first: what a freeze takes, it takes from the delivery
	left, bounded := remaining(ctx)
	if !bounded {
		return 0
	}
	return translation.InstantOf(now.Add(left))
}

func (x *delivery) read(ctx context.Context) (protocol.Input, error) {
	in := protocol.Input{What: protocol.Replied, Reply: protocol.Reply{Code: protocol.OK}}
	m, err := x.message(ctx, x.id)
	var malformed *storage.MalformedError
	switch {
	case errors.As(err, &malformed):
		return in, err
	case err != nil:
		x.cause, in.Reply.Code = err, protocol.Broken
		return in, nil
	}
	in.Reply.Msg = x.know(m)
	return in, nil
}

// try sends the write once, unless it is too late for it. A write is frozen before its first try, and every further one
// sends the same.
func (x *delivery) try(ctx context.Context, a protocol.Action) (protocol.Input, error) {
	in := protocol.Input{What: protocol.Replied, Reply: protocol.Reply{Code: protocol.NotSent}}
	until := translation.TimeOf(a.Until)
	if a.Pause == 0 {
		x.send, x.end, x.next = nil, nil, storage.Message{}
		if a.Write.Msg.State.Final() {
			x.ending = a.Write.Msg.Revision
		}
		if a.Write.Msg.State == protocol.Claimed && a.Write.MsgAs == protocol.Put && !x.mayClaim(ctx) {
			return in, ErrNoTime
		}
	} else if x.machine.Step == protocol.Keeping && x.left(ctx) {
		return in, fmt.Errorf("outbox: keep evidence: %w, after %w", context.Cause(ctx), x.cause)
	} else if err := x.rest(ctx, x.pause(int(a.Pause)-1), until); err != nil {
		return in, err
	}
	if x.unopened(a.Write) {
		x.cause, in.Reply = errSealed, refused(protocol.CondRecord)
		return in, nil
	}
	watch := timers.Begin()
	left := until.Sub(x.now())
	if left <= 0 {
		x.tooLate()
		return in, nil
	}
	err := x.sendWithin(ctx, a.Write, watch, min(left, x.cfg.StoreTimeout))
	var row *storage.Message
	if in.Reply, row = replyOf(err, x.id); err != nil {
		x.cause = err
	}
	if in.Reply.Code == protocol.Lost {
		x.unheard = err
	}
	x.none = in.Reply.Conds&protocol.CondMessage != 0 && row == nil
	switch own := row != nil && translation.IDOf(row.Revision) == a.Write.Msg.Revision; {
	case err == nil, own:
		x.landed(ctx, a.Write, row)
	case row != nil && !row.Readable(): // a later release has changed it meanwhile
		x.foreign, in.Reply.Msg.Foreign = &UnreadableError{row.SchemaVersion, row.State, nil}, true
	case row != nil:
		x.lost(ctx, *row)
		x.row = *row
	}
	return in, nil
}

// unopened says that a close would fail the operation of a message that can't be opened here. What that means to the application a worker with
// the keys can ask; without it only what has ended is closed.
func (x *delivery) unopened(w protocol.Write) bool {
	return x.machine.Errand == protocol.Close && x.row.Sealed && w.RecAs == protocol.End
}

// rest pauses before a write is sent again, not past until.
func (x *delivery) rest(ctx context.Context, pause time.Duration, until time.Time) error {
	now := x.now()
	if pause = min(pause, until.Sub(now)); pause <= 0 {
		return nil
	}
	if err := x.cfg.Pause(context.WithoutCancel(ctx), pause); err != nil { // nothing lets the time pass: trying on would never end
		return fmt.Errorf("outbox: pause: %w, after %w", err, x.cause)
	}
	x.waited(now.Add(pause))
	return nil
}

// sendWithin sends the write once, also where the caller has given up. The watch has been running since the clock was read: preparing
// the write takes time, too, where a tenant's key is fetched.
func (x *delivery) sendWithin(ctx context.Context, w protocol.Write, watch timers.Watch, timeout time.Duration) (err error) {
	if x.send == nil {
		if x.send, err = x.prepare(w); err != nil {
			return err
		}
	}
	deadline := watch.Deadline(timeout)
	now, left := x.now(), time.Until(deadline)
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	err = x.send(ctx)
	if ctx.Err() != nil {
		x.waited(now.Add(left))
	}
	return err
}

// left says that the caller gave up KeepMax ago: the process is about to end.
func (x *delivery) left(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	if x.given.IsZero() {
		x.given = x.now()
	}
	return x.now().Sub(x.given) >= x.cfg.KeepMax
}

var errSealed = errors.New("outbox: the message can't be decrypted here")

// tooLate says why nothing was sent, where nothing else does.
func (x *delivery) tooLate() {
	if x.cause == nil {
		x.cause = &storage.NotAskedError{Cause: context.DeadlineExceeded}
	}
}

// lost says that an answer without evidence came too late for its claim.
func (x *delivery) lost(ctx context.Context, row storage.Message) {
	if x.called && x.machine.Step == protocol.Writing && row.Epoch != x.row.Epoch {
		x.log(ctx, levelWarn, "outbox.claim_lost", row, "outcome", nameOfOutcome(x.outcome))
	}
}

// trouble is the error of what a machine told.
func (x *delivery) trouble(s protocol.Say) error {
	var conflict *storage.MessageConflictError
	switch {
	case s.Code == protocol.OtherRelease:
		return x.foreign
	case s.Code == protocol.Stale:
		return x.overtaken()
	case s.Code != protocol.Unavailable:
		return nil
	case errors.Is(x.cause, errLossUnread) && (x.unheard == nil || x.machine.Seen.None()): // nothing was sent for it
		return x.cause
	case x.cause == nil || errors.As(x.cause, &conflict):
		return fmt.Errorf("outbox: other executions kept changing the message: %w", storage.ErrContention)
	}
	step := stepNames[x.machine.At.W.Msg.State]
	if x.machine.At.W.MsgAs == protocol.Postpone {
		step = "postpone"
	}
	switch {
	case x.unheard == nil || !x.machine.At.Tainted && x.machine.Seen.None():
		return fmt.Errorf("outbox: %s: %w", step, x.cause)
	case errors.Is(x.cause, x.unheard):
		return fmt.Errorf("outbox: %s: it may have landed: %w", step, x.unheard)
	}
	// What the last try met is no word on the one that had no reply.
	return fmt.Errorf("outbox: %s: it may have landed: %w; then: %v", step, x.unheard, x.cause) //nolint:errorlint // one of them decides
}

// overtaken is the error of a person's change that meets what somebody else wrote. Where a try of it had no reply, it may have landed
// before that: then nobody can say that it has not.
func (x *delivery) overtaken() error {
	row := x.existing()
	switch {
	case x.unheard != nil:
		return fmt.Errorf("outbox: the message has changed since, before or after this landed: %w", x.unheard)
	case row != nil && translation.IDOf(row.Revision) == x.machine.Seen:
		return &RefusalError{x.id, "data may have been lost since you looked at it: look at the provider and at the message again"}
	}
	return &storage.MessageConflictError{Existing: row}
}

// stepNames say what could not be done, by what the message was to become.
var stepNames = map[protocol.MessageState]string{
	protocol.NoMessage: "look", protocol.Due: "back off", protocol.Claimed: "claim", protocol.InDoubt: "park", protocol.Evidenced: "keep evidence",
	protocol.Dead: "give up", protocol.Delivered: "settle delivered", protocol.Declined: "settle declined", protocol.Cancelled: "cancel",
}

// existing is the row, if there is one.
func (x *delivery) existing() *storage.Message {
	if x.none || x.row.ID == "" {
		return nil
	}
	row := x.row
	return &row
}

// mayClaim says whether a call that is claimed now can be made, and settled.
func (x *delivery) mayClaim(ctx context.Context) bool {
	select {
	case <-x.closing:
		return false
	default:
		return x.timeForCall(ctx)
	}
}

// timeForCall says whether the context leaves time for a call and its settlement.
func (d *desk) timeForCall(ctx context.Context) bool {
	left, bounded := remaining(ctx)
	return !bounded || left >= d.cfg.CallTimeout+d.cfg.SettleMargin
}

// tokenOf is the client request token of a transaction.
func tokenOf(t protocol.Token) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "outbox %x %x %d %d", t.Seed[0], t.Seed[1], t.For, t.N))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}
