package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/idem-go/idem-aws/idem"
)

// Sweep offers messages again whose wake-ups were lost or whose workers died, and parks or gives up what may not be
// offered. It never calls a provider itself. Its cost is proportional to what is due, not to the table. Any number of
// sweeps may run beside each other and beside workers: the fences decide.
type Sweep struct {
	*desk
	rounds *rounds
}

// NewSweep returns a sweep, or an [*idem.ConfigError] for an argument that is nil.
func NewSweep(store Store, topics *Topics, wakeUps WakeUps, deadLetters DeadLetters) (*Sweep, error) {
	d, err := newDesk(store, topics, wakeUps, deadLetters)
	if err != nil {
		return nil, err
	}
	// Places are SweepGrace late, so that a first claim, which comes seconds later, need not move its message (ADR 0004). A claim
	// that died is looked at when its lease is over all the same.
	ahead := max(0, d.cfg.SweepGrace-d.cfg.ClaimLease)
	return &Sweep{desk: d, rounds: newRounds(d, idem.QueueOffer, d.cfg.StoreTimeout, ahead, "outbox.sweep_failed")}, nil
}

// Report counts what a run of the sweep did.
type Report struct {
	// Offered messages got a wake-up.
	Offered int `json:"offered"`
	// Parked messages are unknown now.
	Parked int `json:"parked"`
	// Dead messages were given up.
	Dead int `json:"dead"`
	// Abandoned operations were cancelled, whose first message nobody had claimed in time.
	Abandoned int `json:"abandoned"`
	// Skipped messages needed nothing by the time they were read.
	Skipped int `json:"skipped"`
	// Errors counts messages, and listings, that met one; each is in the log.
	Errors int `json:"errors"`
	// Unfinished says that the run met its bound or its deadline; the next one goes on there.
	Unfinished bool `json:"unfinished"`
}

// Run looks once at everything that is due, within Config.SweepMax and the context's deadline; the next run goes on
// where it stopped. It returns an error only where listing failed for every shard.
func (s *Sweep) Run(ctx context.Context) (Report, error) {
	var report Report
	unfinished, failed, err := s.rounds.run(ctx, func(id idem.MessageID) { s.look(ctx, id, &report) })
	report.Unfinished = unfinished
	report.Errors += failed
	return report, err
}

// look reads one message, because the index is stale, and does what it asks for.
func (s *Sweep) look(ctx context.Context, id idem.MessageID, report *Report) {
	did, err := s.sweepMessage(ctx, id)
	var conflict *idem.MessageConflictError
	switch {
	case errors.As(err, &conflict): // somebody else was faster
		report.Skipped++
	case err != nil:
		report.Errors++
		s.cfg.Logger.ErrorContext(ctx, "outbox.sweep_failed", "message", id, "error", err)
	case did == idem.MessagePending:
		report.Offered++
	case did == idem.MessageUnknown:
		report.Parked++
	case did == idem.MessageDead:
		report.Dead++
	case did == idem.MessageCancelled:
		report.Abandoned++
	default:
		report.Skipped++
	}
}

// sweepMessage returns what the message was made: pending stands for offered, "" for nothing.
func (s *Sweep) sweepMessage(ctx context.Context, id idem.MessageID) (idem.MessageState, error) {
	seen, err := s.message(ctx, id)
	if err != nil || seen == nil {
		return "", err
	}
	topic, err := s.topic(*seen)
	if err != nil {
		return "", err
	}
	next, effect, err := Step(*seen, Woken{}, topic.rules(s.cfg), s.now())
	if err != nil {
		return "", err
	}
	switch effect {
	case EffectClaim:
		if err := s.schedule(ctx, *seen, s.now()); err != nil {
			return "", fmt.Errorf("outbox: offer: %w", err)
		}
		s.log(ctx, slog.LevelInfo, "outbox.offered", *seen)
		return idem.MessagePending, nil
	case EffectStore, EffectFail:
		owner, err := s.mint.Owner()
		if err != nil {
			return "", err
		}
		return s.carry(ctx, topic, *seen, next, effect, &execution{owner: owner})
	}
	return "", nil
}
