package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/walk"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Sweep parks what died: wrapped records whose lease is over become unknown, as they would for the next request with their
// key. Its cost is proportional to the leases that are over, not to the table. Any number of sweeps may run beside each
// other and beside requests: the fences decide.
type Sweep struct {
	engine *idem.Engine
	cfg    Config
	walk   *walk.Walk[storage.RecordRef]
}

// NewSweep returns a sweep of the engine's records, or an [*idem.ConfigError]. The store is the engine's.
func NewSweep(engine *idem.Engine, store Store, cfg Config) (*Sweep, error) {
	cfg, err := settle(engine, store, cfg)
	if err != nil {
		return nil, err
	}
	return &Sweep{engine: engine, cfg: cfg, walk: newWalk(store, cfg, storage.QueueLease, cfg.StoreTimeout+cfg.SettleMargin)}, nil
}

// settle checks what both constructors take.
func settle(engine *idem.Engine, store Store, cfg Config) (Config, error) {
	if engine == nil || store == nil {
		return cfg, &idem.ConfigError{Field: "engine, store", Value: nil, Rule: "must be given"}
	}
	cfg = cfg.withDefaults()
	cfg.freeze = engine.FreezeAllowance()
	return cfg, cfg.validate()
}

func newWalk(store Store, cfg Config, queue string, lookTime time.Duration) *walk.Walk[storage.RecordRef] {
	return walk.New(walk.Queue[storage.RecordRef]{
		Shards: store.Shards(), Page: cfg.SweepPage, Max: cfg.SweepMax,
		ListTimeout: cfg.StoreTimeout, LookTime: lookTime, Now: cfg.Now,
		List: func(ctx context.Context, shard int, until time.Time, limit int, cursor string) ([]storage.RecordRef, string, error) {
			return store.QueuedRecords(ctx, queue, shard, until, limit, cursor)
		},
	})
}

// Report counts what a run of the sweep did.
type Report struct {
	// Parked records are unknown now.
	Parked int `json:"parked"`
	// Skipped records needed nothing by the time they were read.
	Skipped int `json:"skipped"`
	// Errors counts records, and listings, that met one; each is in the log.
	Errors int `json:"errors"`
	// Unfinished says that the run met its bound or its deadline; the next one goes on there.
	Unfinished bool `json:"unfinished"`
}

// Run looks once at everything that is due, within Config.SweepMax and the context's deadline; the next run goes on
// where it stopped. It returns an error only where listing failed for every shard.
func (s *Sweep) Run(ctx context.Context) (Report, error) {
	const failed = "idempotency.sweep_failed"
	var report Report
	unfinished, failures, err := s.walk.Run(ctx, func(ref storage.RecordRef) {
		state, err := s.engine.ParkDead(ctx, ref.Key)
		switch {
		case err != nil:
			report.Errors++
			s.cfg.Logger.ErrorContext(ctx, failed, "operation_id", ref.OperationID, "tenant", ref.Tenant, "error", err)
		case state == storage.StateUnknown:
			report.Parked++
		default:
			report.Skipped++
		}
	}, unlisted(ctx, s.cfg.Logger, failed))
	report.Unfinished = unfinished
	report.Errors += failures
	return report, wrapped(err)
}

// unlisted logs a shard that could not be listed.
func unlisted(ctx context.Context, logger *slog.Logger, event string) func(shard int, err error) {
	return func(shard int, err error) { logger.ErrorContext(ctx, event, "shard", shard, "error", err) }
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("recovery: %w", err)
}
