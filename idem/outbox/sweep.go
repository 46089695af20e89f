package outbox

import (
	"context"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Sweep offers messages again whose wake-ups were lost or whose workers died, parks or gives up what may not be offered, and
// settles the evidence that a message keeps. It never calls a provider itself. Its cost is proportional to what is due, not to the table. Any number of
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
	return &Sweep{desk: d, rounds: newRounds(d, storage.QueueOffer, d.cfg.StoreTimeout, ahead, "outbox.sweep_failed")}, nil
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
	// Settled messages kept evidence, and have their end now.
	Settled int `json:"settled"`
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
	if err != nil {
		report.Errors++
		if !s.unknown(ctx, id, err) {
			s.cfg.Logger.ErrorContext(ctx, "outbox.sweep_failed", "message", id, "error", err)
		}
		return
	}
	switch did {
	case storage.MessagePending:
		report.Offered++
	case storage.MessageUnknown:
		report.Parked++
	case storage.MessageDead:
		report.Dead++
	case storage.MessageCancelled:
		report.Abandoned++
	case storage.MessageDelivered, storage.MessageDeclined:
		report.Settled++
	default:
		report.Skipped++
	}
}

// sweepMessage returns what the message was made: pending stands for offered, "" for nothing.
func (s *Sweep) sweepMessage(ctx context.Context, id idem.MessageID) (storage.MessageState, error) {
	x, err := s.newDelivery(protocol.Offer, id)
	if err != nil {
		return "", err
	}
	say, err := x.run(ctx)
	switch {
	case err != nil:
		return "", err
	case say.Code == protocol.Vacant:
		if err := s.schedule(ctx, x.row, s.now()); err != nil {
			return "", fmt.Errorf("outbox: offer: %w", err)
		}
		s.log(ctx, levelInfo, "outbox.offered", x.row)
		return storage.MessagePending, nil
	case say.Code == protocol.Changed:
		return x.row.State, nil
	}
	return "", nil
}
