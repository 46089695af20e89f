package operator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Store is what a desk reads. dynamo.Store and its decorators implement it.
type Store interface {
	storage.Store
	outbox.Store
}

// Config is what a desk works with. Store, Engine, Topics, WakeUps, DeadLetters and Audit are required.
type Config struct {
	// Store holds the records and messages. Where it is a [storage.Decrypter] that decrypts, such as a seal.Store, a person may resolve what it
	// returns as sealed, because nobody can open that any more. With any other store, what is sealed is left alone: see [ErrSealed].
	Store Store
	// Engine makes the changes of records.
	Engine *idem.Engine
	// Topics are those of the application's outbox.
	Topics *outbox.Topics
	// WakeUps gets a wake-up for each message that is started again.
	WakeUps outbox.WakeUps
	// DeadLetters gets the notice of each message that a change leaves dead.
	DeadLetters outbox.DeadLetters
	// Audit is the log of changes.
	Audit AuditLog
	// Probes are those of wrapped operations, as for outbox.NewRunner. Default: none.
	Probes map[string]outbox.Probe
	// Application tells what the application and its provider know of an operation and its messages; nil where they know
	// nothing. What it returns beside an error is told with it, as a part of what they know: the rest of the story is. Default: nobody is
	// asked.
	Application func(ctx context.Context, tenant string, id idem.OperationID, messages []MessageView) (any, error)
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// ClockOff tells how far Now is ahead of the store's clock; negative where it is behind. With more than [ClockOffMax] every
	// change is refused. Default: nobody is asked, as for a desk on a machine whose clock is kept right, such as a function's.
	ClockOff func(ctx context.Context) (time.Duration, error)
	// SameShards returns an error where rows are written with another number of shards than Store lists, as dynamo.Store.SameShards does.
	// It is asked before each list, count, search and sweep, and nothing is listed where it fails: a desk that is kept, such as a
	// console's, may outlive the number that it was made with, and would miss what lies in the new shards. Default: nobody is asked.
	SameShards func(ctx context.Context) error
	// Random is a cryptographic source of randomness, for the entries' ids. Default crypto/rand.Reader.
	Random io.Reader
	// Logger gets a line for each change, and what could not be written into the audit log. Default slog.Default(), as it is when
	// the desk is made; slog.New(slog.DiscardHandler) silences it.
	Logger *slog.Logger
}

// Desk is an operator's desk. It is safe for concurrent use.
type Desk struct {
	cfg      Config
	clerk    *Clerk
	operator *outbox.Operator
	closer   *outbox.Operator
	// settler settles by a person's evidence, which alone ends what nobody can open any more.
	settler *outbox.Operator
	runner  *outbox.Runner
	mint    storage.IDGenerator
	// decrypts says that what the store returns as sealed nobody can open any more. Without keys, somebody else may.
	decrypts bool
}

// New returns a desk, or an [*idem.ConfigError].
func New(cfg Config) (*Desk, error) {
	if cfg.Store == nil || cfg.Engine == nil || cfg.Audit == nil {
		return nil, &idem.ConfigError{Field: "Config.Store, Config.Engine, Config.Audit", Value: nil, Rule: "must be given"}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	clerk, err := NewClerk(ClerkConfig{Audit: cfg.Audit, Now: cfg.Now, ClockOff: cfg.ClockOff, Random: cfg.Random})
	if err != nil {
		return nil, err
	}
	d := &Desk{cfg: cfg, clerk: clerk, mint: storage.IDGenerator{Random: cfg.Random}, decrypts: storage.Decrypts(cfg.Store)}
	open := opened{cfg.Store}
	if d.operator, err = outbox.NewOperator(open, cfg.Topics, cfg.WakeUps, cfg.DeadLetters); err != nil {
		return nil, err
	}
	if d.closer, err = outbox.NewOperator(cfg.Store, cfg.Topics, cfg.WakeUps, cfg.DeadLetters); err != nil {
		return nil, err
	}
	if d.settler = d.operator; d.decrypts {
		d.settler = d.closer
	}
	worker, err := outbox.NewWorker(open, cfg.Topics, cfg.WakeUps, cfg.DeadLetters)
	if err != nil {
		return nil, err
	}
	d.runner, err = outbox.NewRunner(worker, cfg.Engine, cfg.Probes)
	return d, err
}

// ErrSealed: the message is encrypted, and this desk has no key that opens it. It is left alone, except that a desk whose store decrypts
// resolves it: nobody else can open it either.
var ErrSealed = errors.New("operator: the message can't be decrypted: the tenant's key was erased, or this desk has no keys")

// opened is the store for a caller that gives up what can't be opened: a desk without keys must not.
type opened struct{ Store }

// Message implements outbox.Store.
func (o opened) Message(ctx context.Context, id idem.MessageID) (*storage.Message, error) {
	m, err := o.Store.Message(ctx, id)
	if err == nil && m != nil && m.Sealed {
		return nil, ErrSealed
	}
	return m, err
}

// listable says whether no shard would be missed.
func (d *Desk) listable(ctx context.Context) error {
	if d.cfg.SameShards == nil {
		return nil
	}
	err := d.cfg.SameShards(ctx)
	switch {
	case errors.As(err, new(*idem.ConfigError)):
		return fmt.Errorf("%w: not all of the queues can be listed: start this again with the number of shards that the service has now: %w", ErrRefused, err)
	case err != nil:
		return fmt.Errorf("operator: read the number of shards: %w", err)
	}
	return nil
}

func (d *Desk) now() time.Time { return d.cfg.Now().UTC().Truncate(time.Millisecond) }

// record reads the record of this incarnation; nil where there is none any more.
func (d *Desk) record(ctx context.Context, id idem.OperationID) (*storage.Record, error) {
	key, err := id.RecordKey()
	if err != nil {
		return nil, err
	}
	r, err := d.cfg.Store.Get(ctx, key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("operator: read record: %w", err)
	case r == nil || r.OperationID != id:
		return nil, nil
	}
	return r, nil
}
