package idem

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/internal/cutover"
	"github.com/idem-go/idem-aws/idem/internal/timers"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// Engine runs operations exactly once against a store. It is safe for concurrent use once every operation is registered.
type Engine struct {
	store      storage.Store
	cfg        Config
	mint       storage.IDGenerator
	operations map[string]Operation
	// loss knows until when records may have been lost.
	loss      *cutover.Reader
	agreement agreement
	waits     *waits
	// timers are those of its calls and of its handlers.
	timers timers.Set
}

// New returns an engine, or a [*ConfigError] that names the field, its value and the rule.
func New(store storage.Store, cfg Config) (*Engine, error) {
	if store == nil {
		return nil, &ConfigError{"store", nil, "must be given"}
	}
	cfg, err := cfg.withDefaults().agree(store)
	if err != nil {
		return nil, err
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Fingerprinter == nil {
		f, err := canonical.New(canonical.Config{})
		if err != nil {
			return nil, fmt.Errorf("idem: default fingerprinter: %w", err)
		}
		cfg.Fingerprinter = f
	}
	cfg.ScopeSecret = slices.Clone(cfg.ScopeSecret)
	e := &Engine{store: store, cfg: cfg, mint: storage.IDGenerator{Random: cfg.Random}, operations: map[string]Operation{}, waits: newWaits(cfg)}
	if e.cfg.AfterFunc == nil {
		e.cfg.AfterFunc = func(d time.Duration, f func()) func() bool { return e.timers.AfterFunc(d, f).Stop }
	}
	e.loss = e.newLoss()
	if !cfg.RefuseBefore.IsZero() {
		e.tellRefuseBefore(context.Background(), "Config.RefuseBefore", cfg.RefuseBefore)
	}
	return e, nil
}

// Registered is an operation of an engine.
type Registered struct {
	engine *Engine
	op     Operation
	// protocol is what the machines depend on.
	protocol protocol.Config
	// executes is how long its executions take, settles how long it takes from a 202 to the final answer.
	executes, settles latencyEstimate
}

// Operation returns what was registered.
func (o *Registered) Operation() Operation { return o.op }

// RecordKey returns the key of the record that the request is about. Logs show it in place of the client's key.
func (o *Registered) RecordKey(req Request) storage.RecordKey {
	return o.op.scope(req).recordKey(o.engine.cfg.ScopeSecret)
}

// Register adds an operation at start-up, or returns a [*ConfigError].
func (e *Engine) Register(op Operation) (*Registered, error) {
	if err := op.validate(e.cfg.ExecutionMax + storage.WireMax); err != nil {
		return nil, err
	}
	if err := e.unclaimed(op); err != nil {
		return nil, err
	}
	e.tellUnkeyed()
	e.operations[op.Name] = op
	return &Registered{engine: e, op: op, protocol: e.protocolOf(op)}, nil
}

// unclaimed rejects an operation with a name that another one has or had: their keys would be each other's.
func (e *Engine) unclaimed(op Operation) error {
	for _, other := range e.Operations() {
		switch {
		case slices.Contains(other.claims(), op.Name):
			return &ConfigError{"Operation.Name", op.Name, fmt.Sprintf("is registered twice, or was the name of %s", other.Name)}
		case op.RenamedFrom != "" && slices.Contains(other.claims(), op.RenamedFrom):
			return &ConfigError{"Operation.RenamedFrom", op.RenamedFrom, fmt.Sprintf("is or was the name of %s too", other.Name)}
		}
	}
	return nil
}

// FreezeAllowance is Config.FreezeAllowance: what outbox.Runner adds to the wait for a proof of a record's absence.
func (e *Engine) FreezeAllowance() time.Duration { return e.cfg.FreezeAllowance }

// ClockSkew is Config.ClockSkew: outbox.Config.ClockSkew must be at least that long.
func (e *Engine) ClockSkew() time.Duration { return e.cfg.ClockSkew }

// Operations lists what is registered, by name.
func (e *Engine) Operations() []Operation {
	names := slices.Sorted(maps.Keys(e.operations))
	operations := make([]Operation, len(names))
	for i, name := range names {
		operations[i] = e.operations[name]
	}
	return operations
}

// UnavailableError says that the store could not be reached, or did not confirm a write in time. Nothing was
// acknowledged; the same key may be sent again.
type UnavailableError struct {
	// RetryAfter is when to try again.
	RetryAfter time.Duration
	// Cause is the store's last error.
	Cause error
}

// Error implements error.
func (e *UnavailableError) Error() string { return fmt.Sprintf("idem: store unavailable: %v", e.Cause) }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// HandlerError is an error or panic of the handler. Nothing was stored, except that a wrapped operation is now unknown.
type HandlerError struct {
	// Cause is the error that the handler returned, or an error with the value that it panicked with.
	Cause error
	// Stack is where a panic came from.
	Stack []byte
}

// Error implements error.
func (e *HandlerError) Error() string { return fmt.Sprintf("idem: handler: %v", e.Cause) }

// Unwrap returns the cause.
func (e *HandlerError) Unwrap() error { return e.Cause }

// ErrNoTime: the caller's deadline leaves no time to execute anything in, from the beginning or once the key was free. Nothing was
// executed.
var ErrNoTime = errors.New("idem: no time left before the deadline")

// Do executes the operation for the request, or answers from what an earlier request stored. At most one run of the
// handler is committed, whatever retries, races, crashes or lost replies happen.
//
// Errors: those of package canonical for a body that has no fingerprint; [*UnavailableError] (503); [ErrNoTime] inside
// one; [*QuotaError]; [*ExpiredError] and [*KeyTimeError], which have no live record; [*HandlerError];
// [storage.ErrErased] for a response that nobody can decrypt any more; [ErrResponseTooLarge], with nothing committed.
// [ProblemOf] says what a client is answered.
func (o *Registered) Do(ctx context.Context, req Request, handler Handler) (*Result, error) {
	x, err := o.begin(req)
	if err != nil {
		o.logEvent(ctx, req, nil, nil, err)
		return nil, err
	}
	x.span = trace.From(ctx)
	result, err := x.do(ctx, handler)
	x.tell(ctx, result, err)
	o.logEvent(ctx, req, x, result, err)
	return result, err
}

// Lookup answers from what an earlier request stored, without reserving or running anything. It is for a request that
// fails validation, which must still be replayed if an earlier request with the same fingerprint passed. It returns nil
// where the record is absent, expired, or free to be executed again.
func (o *Registered) Lookup(ctx context.Context, req Request) (*Result, error) {
	x, err := o.begin(req)
	if err != nil {
		o.logEvent(ctx, req, nil, nil, err)
		return nil, err
	}
	x.span = trace.From(ctx)
	result, err := x.lookup(ctx)
	if result != nil || err != nil {
		x.tell(ctx, result, err)
		o.logEvent(ctx, req, x, result, err)
	}
	return result, err
}

// Status reads the record of an operation id that a client holds; nil where there is none, where it is another tenant's
// or another incarnation's, or where it has expired or been given up and its key is free. It returns an [*ExpiredError] while the policy
// keeps an expired record as gone, an [*UnavailableError], a [*QuotaError] or [storage.ErrErased].
func (e *Engine) Status(ctx context.Context, tenant string, id OperationID) (*storage.Record, error) {
	return e.told(ctx, tenant, id, e.limitedStatus)
}

// StatusAgain is [Engine.Status] for a further read within one request: the quota of look-ups is not asked again.
func (e *Engine) StatusAgain(ctx context.Context, tenant string, id OperationID) (*storage.Record, error) {
	return e.told(ctx, tenant, id, e.status)
}

// told reads a status in time, and tells of what went wrong.
func (e *Engine) told(
	ctx context.Context, tenant string, id OperationID, read func(ctx context.Context, tenant string, id OperationID) (*storage.Record, error),
) (*storage.Record, error) {
	asking, cancel := e.InTime(ctx)
	defer cancel()
	r, err := read(asking, tenant, id)
	if err != nil {
		e.tellStatus(ctx, tenant, id, err)
	}
	return r, err
}

func (e *Engine) limitedStatus(ctx context.Context, tenant string, id OperationID) (*storage.Record, error) {
	if e.cfg.Quota != nil {
		if err := e.cfg.Quota.LookUp(ctx, tenant); err != nil {
			return nil, quotaError(err)
		}
	}
	return e.status(ctx, tenant, id)
}

// OnlyObserved is [storage.Record.OnlyObserved] by the engine's clock and skew.
func (e *Engine) OnlyObserved(r storage.Record) bool { return r.OnlyObserved(e.now(), e.cfg.ClockSkew) }

// Since is how long ago an instant is by the engine's clock; negative where it lies ahead.
func (e *Engine) Since(at time.Time) time.Duration { return e.now().Sub(at) }

// status is Status for reads of the engine's own.
func (e *Engine) status(ctx context.Context, tenant string, id OperationID) (*storage.Record, error) {
	key, err := id.RecordKey()
	if err != nil {
		return nil, nil // an id that can't exist is as absent as any other
	}
	r, err := e.get(ctx, key, e.cfg.CallTimeout)
	if err != nil || r == nil || r.Tenant != tenant || r.OperationID != id {
		return nil, err
	}
	if !r.Readable() {
		return nil, unavailable(&UnreadableError{r.SchemaVersion, r.State, r.Kind})
	}
	switch now := e.now(); {
	case r.Expired(now):
		return nil, gone(*r, now)
	case r.KeyFree(now) || r.Abandoned(now, e.cfg.ClockSkew): // TTL is late: nobody goes on with it any more
		return nil, nil
	}
	loaded, err := e.load(ctx, *r, e.cfg.CallTimeout)
	if err != nil {
		return nil, err
	}
	return &loaded, nil
}

// lastPoll is how long after a wait its last poll may take: less than the caller has kept to answer in.
const lastPoll = 250 * time.Millisecond

// Await polls the status of an operation until it is final or the wait is over, and returns it as [Engine.Status] does,
// without asking the quota of look-ups. The polls are jittered and back off from 50 ms to 1 s. Where too many wait already
// (Config.WaitsMax, Config.WaitsPerTenantMax), or the tenant is over its quota of waits, it returns at once what there is. A poll that the
// store has not answered 250 ms after the wait is an [*UnavailableError].
func (e *Engine) Await(ctx context.Context, tenant string, id OperationID, wait time.Duration) (*storage.Record, error) {
	ctx, cancel := e.timers.WithTimeout(ctx, wait+lastPoll)
	defer cancel()
	clock := e.now()
	until := clock.Add(wait)
	r, err := e.status(ctx, tenant, id)
	if err != nil || r == nil || r.State.Final() {
		return r, err
	}
	leave, may := e.mayWait(ctx, tenant)
	if !may {
		return r, nil
	}
	defer leave()
	for try := 0; ; try++ {
		if try > 0 {
			r, err = e.status(ctx, tenant, id)
			if err != nil || r == nil || r.State.Final() {
				return r, err
			}
		}
		if now := e.now(); now.After(clock) { // as a driver's: it never goes back, and goes on while a pause does, whatever Config.Now says
			clock = now
		}
		pause := min(until.Sub(clock), e.jitter(pollPause(try)))
		if pause <= 0 || e.cfg.Pause(ctx, pause) != nil {
			return r, nil
		}
		clock = clock.Add(pause)
	}
}

// now is the clock in the resolution that is stored.
func (e *Engine) now() time.Time { return e.cfg.Now().UTC().Truncate(time.Millisecond) }

// InTime bounds what is asked for a request beside its execution's own reads and writes, of the store and of the quota. It ends when an
// execution's reads do, a little before the caller's deadline: where nobody answers, the caller is told so before the platform ends the
// process. Where the caller has no deadline, Config.ExecutionMax stands for it.
func (e *Engine) InTime(ctx context.Context) (context.Context, context.CancelFunc) {
	watch, c := timers.Begin(), e.cfg.protocol()
	const began = 1 // an instant of 0 is none
	var end protocol.Instant
	if deadline, bounded := ctx.Deadline(); bounded {
		end = began + max(0, translation.MillisOf(time.Until(deadline)))
	}
	until := protocol.PlanOf(began, end, &c).ReplyUntil()
	return e.timers.WithDeadline(ctx, watch.Deadline(translation.SpanOf(until-began)))
}

func (e *Engine) get(ctx context.Context, key storage.RecordKey, within time.Duration) (*storage.Record, error) {
	ctx, cancel := e.timers.WithTimeout(ctx, within)
	defer cancel()
	r, err := e.store.Get(ctx, key)
	if err != nil {
		return nil, unavailable(err)
	}
	return r, nil
}

func (e *Engine) load(ctx context.Context, r storage.Record, within time.Duration) (storage.Record, error) {
	if r.Chunks == 0 && !r.Sealed {
		return r, nil
	}
	ctx, cancel := e.timers.WithTimeout(ctx, within)
	defer cancel()
	loaded, err := e.store.LoadResponse(ctx, r)
	switch {
	case errors.Is(err, storage.ErrErased):
		return r, err
	case err != nil:
		return r, unavailable(err)
	}
	return loaded, nil
}

// jitter draws a duration from (d/2, d].
func (e *Engine) jitter(d time.Duration) time.Duration {
	random, err := e.mint.ID()
	if err != nil || d < 2 {
		return d
	}
	return d - time.Duration(random[0]%uint64(d/2))
}

func pollPause(try int) time.Duration { return growing(50*time.Millisecond, time.Second, try) }

// growing doubles from first with each try, up to last.
func growing(first, last time.Duration, try int) time.Duration {
	if try > 20 {
		return last
	}
	return min(first<<try, last)
}
