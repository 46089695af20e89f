package idem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// reserveFor bounds how long a reserve without a reply is sent again: a store that is down is answered with 503 soon.
const reserveFor = 4 * time.Second

// judgementsMax bounds how often a request judges what it met while others keep changing it.
const judgementsMax = 8

// verdict is what one look at the record led to: the right to execute, an answer, or the record to judge next (nil:
// there is none, a new incarnation may be reserved).
type verdict struct {
	held   bool
	answer *Result
	next   *Record
}

// acquire gets the right to execute, or an answer. Without either an answer or an error, x.record is what the execution
// goes on with. existing is what was seen last; nil means nothing was.
func (x *execution) acquire(ctx context.Context, existing *Record) (*Result, error) {
	owner, err := x.engine.mint.Owner()
	if err != nil {
		return nil, err
	}
	x.owner = owner
	for range judgementsMax {
		var v verdict
		if existing == nil {
			v, err = x.reserve(ctx)
		} else {
			v, err = x.meet(ctx, *existing)
		}
		switch {
		case errors.Is(err, ErrContention) && !errors.Is(err, ErrThrottled):
			return x.inProgress(), nil
		case err != nil:
			return nil, x.fail(err)
		case v.held || v.answer != nil:
			return v.answer, nil
		}
		existing = v.next
	}
	return x.inProgress(), nil
}

// reserve inserts a new incarnation and holds it; a kind without a lease only prepares one.
func (x *execution) reserve(ctx context.Context) (verdict, error) {
	if existing, err := x.mayBegin(ctx); err != nil || existing != nil {
		return verdict{next: existing}, err
	}
	if existing, err := x.newKey(ctx); err != nil || existing != nil {
		return verdict{next: existing}, err
	}
	fresh, err := x.fresh()
	if err != nil {
		return verdict{}, err
	}
	if !x.op.reserves() {
		x.record, x.fence = fresh, nil
		return verdict{held: true}, nil
	}
	err = x.send(ctx, x.reserveUntil(), func(ctx context.Context) error {
		return x.engine.store.Insert(ctx, fresh, fresh.CreatedAt)
	})
	return x.won(ctx, fresh, err)
}

// won holds the record that was written, or goes on with the one that was in the way.
func (x *execution) won(ctx context.Context, r Record, err error) (verdict, error) {
	var conflict *RecordConflictError
	var unknown *OutcomeUnknownError
	switch {
	case errors.As(err, &conflict):
		x.giveKeyBack()
		return verdict{next: conflict.Existing}, nil
	case errors.As(err, &unknown):
		x.abandon(ctx, r)
		return verdict{}, err
	case err != nil:
		return verdict{}, err
	}
	x.hold(r)
	return verdict{held: true}, nil
}

// abandonFor bounds the one try to give back what a reserve without a reply may have taken.
const abandonFor = time.Second

// abandon releases a lease that may be this execution's without its knowing: nothing has run under it, and the retry that
// the 503 asks for should not have to wait for its end. Best effort: it may fail as the reserve did.
func (x *execution) abandon(ctx context.Context, r Record) {
	next, err := x.engine.revised(Step(r, Released{Owner: x.owner, Reason: "the reserve had no reply"}, x.engine.now()))
	if err != nil {
		return
	}
	_ = x.try(context.WithoutCancel(ctx), abandonFor, func(ctx context.Context) error {
		return x.engine.store.Update(ctx, next, FenceOf(r))
	})
}

func (x *execution) reserveUntil() time.Time {
	until := x.engine.now().Add(reserveFor)
	if until.After(x.handlerUntil) {
		return x.handlerUntil
	}
	return until
}

func (x *execution) fresh() (Record, error) {
	id, err := x.engine.mint.OperationID(x.key)
	if err != nil {
		return Record{}, err
	}
	revision, err := x.engine.mint.Revision()
	if err != nil {
		return Record{}, err
	}
	record := Record{
		Key: x.key, State: StateInProgress, OperationID: id, Revision: revision, Epoch: 1, Owner: x.owner, LeaseUntil: x.leaseUntil,
		Tenant: x.req.Tenant, Operation: x.op.recordedAs(), Kind: x.op.Kind, SafeToRunAgain: x.op.runsAgain(),
		Fingerprint: x.fingerprint, CreatedAt: x.engine.now(), Retention: x.op.Policy.Retention, Attempts: 1,
		SchemaVersion: SchemaVersion,
	}
	if !x.req.OneOff {
		record.Expiry = x.op.Policy.expiry()
	}
	if x.op.Policy.BindPrincipal {
		record.Principal = x.req.Principal
	}
	return record, nil
}

func (x *execution) hold(r Record) {
	fence := FenceOfHolder(r)
	x.record, x.fence = r, &fence
}

// meet judges a record in the way and does what the judgement asks for.
func (x *execution) meet(ctx context.Context, existing Record) (verdict, error) {
	next, effect, err := x.judge(existing)
	if err != nil {
		return verdict{}, err
	}
	switch effect {
	case EffectReserve:
		return x.reserve(ctx)
	case EffectRun:
		x.hold(existing)
		return verdict{held: true}, nil
	case EffectTakeOver, EffectStore:
		if next.Revision, err = x.engine.mint.Revision(); err != nil {
			return verdict{}, err
		}
		err := x.send(ctx, x.reserveUntil(), func(ctx context.Context) error {
			return x.engine.store.Update(ctx, next, FenceOf(existing))
		})
		if err == nil && effect == EffectStore { // parked, not held
			return verdict{next: &next}, nil
		}
		return x.won(ctx, next, err)
	}
	result, err := x.answer(ctx, existing, effect)
	return verdict{answer: result}, err
}

// judge steps the record with this request, computing the fingerprint under the record's version, secret and
// selection where one of them differs.
func (x *execution) judge(r Record) (Record, Effect, error) {
	x.met = r.Attempts
	for range 2 {
		next, effect, err := Step(r, Arrived{
			Owner: x.owner, LeaseUntil: x.leaseUntil, Kind: x.op.Kind, SafeToRunAgain: x.op.runsAgain(),
			Operation: x.op.recordedAs(), Fingerprint: x.seenAs, AnyPayload: x.op.Policy.Mismatch == MismatchReplay,
		}, x.engine.now())
		if err != nil || effect != EffectRefingerprint {
			return next, effect, err
		}
		x.seenAs, err = x.engine.cfg.Fingerprinter.SumAs(r.Fingerprint, x.req.Input)
		if err != nil {
			return r, 0, fmt.Errorf("idem: fingerprint under version %d, selection %q: %w", r.Fingerprint.Version, r.Fingerprint.Selection, err)
		}
	}
	return r, 0, &UnreadableError{r.SchemaVersion, r.State, r.Kind}
}

// answer makes the result that an effect without a write stands for.
func (x *execution) answer(ctx context.Context, r Record, effect Effect) (*Result, error) {
	result := &Result{OperationID: r.OperationID, State: r.State, ExpiresAt: r.ExpiresAt}
	switch effect {
	case EffectReplay:
		loaded, err := x.engine.load(ctx, r)
		if err != nil {
			return nil, err
		}
		result.Outcome, result.Response = OutcomeReplayed, loaded.Response
		x.registered.replayed(r)
		if r.State == StatePending {
			result.RetryAfter = x.registered.retryPending(r.CreatedAt, x.engine.now())
		}
	case EffectWait:
		result.Outcome, result.RetryAfter = OutcomeInProgress, x.registered.retryInProgress(r, x.engine.now())
	case EffectUnknown:
		result.Outcome, result.RetryAfter = OutcomeUnknown, retryUnknown
	case EffectGone:
		return nil, &ExpiredError{OperationID: r.OperationID}
	case EffectMismatch:
		// Nothing of the stored request is told to one that may not be its owner's; what differs is for the log.
		return &Result{Outcome: OutcomeMismatch, Differing: r.Fingerprint.Differing(x.seenAs)}, nil
	default:
		return nil, fmt.Errorf("idem: no answer for effect %q", effect)
	}
	return result, nil
}

func (x *execution) inProgress() *Result {
	return &Result{Outcome: OutcomeInProgress, State: StateInProgress, RetryAfter: retryAfterMin}
}

// fail turns what the store could not do into 503: the handler has not run.
func (x *execution) fail(err error) error {
	var already *UnavailableError
	var over *QuotaError
	var expired *ExpiredError
	var keyTime *KeyTimeError
	if errors.As(err, &already) || errors.As(err, &over) || errors.As(err, &expired) || errors.As(err, &keyTime) || errors.Is(err, ErrErased) {
		return err
	}
	return unavailable(err)
}

// waitForWinner polls until another execution's record is decided or the policy's wait is over.
func (x *execution) waitForWinner(ctx context.Context, handler Handler, last *Result) (*Result, error) {
	until := x.engine.now().Add(x.op.Policy.WaitMax)
	for try := 0; ; try++ {
		now := x.engine.now()
		pause := min(x.engine.jitter(pollPause(try)), until.Sub(now)) // for the whole wait, to look once more at its end
		if pause <= 0 || now.Add(pause).After(x.handlerUntil) || x.engine.cfg.Pause(ctx, pause) != nil {
			return last, nil
		}
		existing, err := x.read(ctx)
		if err != nil {
			return nil, err
		}
		if existing != nil {
			_, effect, err := x.judge(*existing)
			if err != nil {
				return nil, x.fail(err)
			}
			if effect == EffectWait {
				continue
			}
		}
		result, err := x.run(ctx, handler)
		if err != nil || result.Outcome != OutcomeInProgress {
			return result, err
		}
	}
}
