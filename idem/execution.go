package idem

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/idem-go/idem-aws/idem/canonical"
)

// fenceOffShare is the part of an execution's time that is kept for fencing off a commit without a reply.
const fenceOffShare = time.Second

// execution is one request's way through the engine.
type execution struct {
	engine     *Engine
	registered *Registered
	op         Operation
	req        Request
	key        RecordKey
	// fingerprint is the request's under the current version; seenAs is it under the version of the record in its way.
	fingerprint canonical.Fingerprint
	seenAs      canonical.Fingerprint

	began time.Time
	// The four instants of an execution: the handler's context ends, commits are no longer sent again, nothing is sent
	// at all any more, the lease ends.
	handlerUntil, commitUntil, storeUntil, leaseUntil time.Time

	owner Owner
	// looked says that the record was read; giveBack returns the right to a new key, where one was taken.
	looked   bool
	giveBack func()
	// met is how often the record that was judged last had been executed.
	met int
	// record is what is held (fence set), or what would be inserted (fence nil).
	record Record
	fence  *Fence
	// sends counts transactions, so that no two carry the same token; sent are the messages of the last one.
	sends int
	sent  []Message
}

func (o *Registered) begin(ctx context.Context, req Request) (*execution, error) {
	e := o.engine
	scope := o.op.scope(req)
	if err := scope.validate(); err != nil {
		return nil, err
	}
	req.Input.Operation = o.op.recordedAs()
	fingerprint, err := e.cfg.Fingerprinter.Sum(req.Input)
	if err != nil {
		return nil, err
	}
	x := &execution{engine: e, registered: o, op: o.op, req: req, key: scope.RecordKey(), fingerprint: fingerprint, seenAs: fingerprint}
	if err := x.plan(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// plan derives the execution's instants from the earlier of the caller's deadline and ExecutionMax. The lease outlives
// the caller's own deadline too: an opaque handler may ignore its context until the platform kills it.
func (x *execution) plan(ctx context.Context) error {
	cfg, now := x.engine.cfg, x.engine.now()
	x.began = now
	end := now.Add(cfg.ExecutionMax)
	x.leaseUntil = end
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		x.leaseUntil = now.Add(left)
		if left < cfg.ExecutionMax {
			end = x.leaseUntil
		}
	}
	x.leaseUntil = x.leaseUntil.Add(cfg.LeaseMargin).UTC().Truncate(time.Millisecond)
	x.storeUntil = end.Add(-cfg.AnswerMargin)
	x.commitUntil = x.storeUntil.Add(-fenceOffShare)
	x.handlerUntil = x.storeUntil.Add(-cfg.HandlerMargin)
	if x.handlerUntil.Sub(now) < workMin {
		return unavailable(ErrNoTime)
	}
	return nil
}

// loopsMax bounds how often one request starts over because it lost a race.
const loopsMax = 4

// run acquires, executes and commits; losing a race leads back to judging what won.
func (x *execution) run(ctx context.Context, handler Handler) (*Result, error) {
	existing, err := x.firstLook(ctx)
	if err != nil {
		return nil, err
	}
	for range loopsMax {
		if result, err := x.acquire(ctx, existing); err != nil || result != nil {
			return result, err
		}
		lost, result, err := x.execute(ctx, handler)
		if lost == nil {
			return result, err
		}
		x.giveKeyBack()
		existing = lost.Existing
		if x.engine.now().After(x.handlerUntil) {
			return x.tooLate(ctx, existing)
		}
	}
	return x.inProgress(), nil
}

// tooLate answers with what won, where that is an answer; there is no time left to execute anything in.
func (x *execution) tooLate(ctx context.Context, existing *Record) (*Result, error) {
	if existing == nil {
		return x.inProgress(), nil
	}
	_, effect, err := x.judge(*existing)
	switch {
	case err != nil:
		return nil, x.fail(err)
	case effect == EffectReplay || effect == EffectUnknown:
		return x.answer(context.WithoutCancel(ctx), *existing, effect)
	}
	return x.inProgress(), nil
}

func (x *execution) firstLook(ctx context.Context) (*Record, error) {
	if !x.op.readsFirst() {
		return nil, nil
	}
	return x.read(ctx)
}

func (x *execution) read(ctx context.Context) (*Record, error) {
	x.looked = true
	return x.engine.get(ctx, x.key)
}

// execute runs the handler and commits, again where an optimistic lock was lost. A returned conflict means that the
// record is another's now.
func (x *execution) execute(ctx context.Context, handler Handler) (*RecordConflictError, *Result, error) {
	for attempt := 1; attempt <= x.engine.cfg.RunsMax; attempt++ {
		tx := x.newTx(attempt)
		response, err := x.call(ctx, handler, tx)
		if x.op.Kind == KindOpaque {
			return x.completeOpaque(ctx, response, err)
		}
		var rejected *RejectedError
		switch {
		case errors.As(err, &rejected):
			return x.store(ctx, rejected.Problem.Response())
		case err != nil && x.op.Policy.StoreServerErrors:
			return x.store(ctx, x.serverError(ctx, err))
		case err != nil:
			return nil, nil, x.giveUp(ctx, err)
		}
		if !x.op.Policy.stores(response.Status) {
			return nil, x.answerUnstored(ctx, response), nil
		}
		lost, result, again, err := x.commit(ctx, tx, response)
		if !again {
			return lost, result, err
		}
		if x.engine.cfg.Pause(ctx, x.engine.jitter(growing(10*time.Millisecond, 200*time.Millisecond, attempt))) != nil || x.engine.now().After(x.handlerUntil) {
			break
		}
	}
	return nil, nil, x.giveUp(ctx, unavailable(fmt.Errorf("%w: the handler lost its optimistic lock each time", ErrContention)))
}

func (x *execution) newTx(attempt int) *Tx {
	return &Tx{
		operationID: x.record.OperationID, recordKey: x.key, tenant: x.req.Tenant, now: x.engine.now(), attempt: attempt,
		retention: x.op.Policy.Retention, expiry: x.record.Expiry, detached: x.op.Kind != KindDeferred, sweepGrace: x.engine.cfg.SweepGrace,
	}
}

// call runs the handler with its own, earlier deadline, and on when the client hangs up: its effect may be under way. A
// panic is an error like any other.
func (x *execution) call(ctx context.Context, handler Handler, tx *Tx) (response Response, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.handlerUntil.Sub(x.engine.now()))
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = &HandlerError{Cause: fmt.Errorf("panic: %v", p), Stack: debug.Stack()}
		}
	}()
	response, err = handler(ctx, tx)
	var rejected *RejectedError
	if err != nil && !errors.As(err, &rejected) {
		err = &HandlerError{Cause: err}
	}
	return response, err
}

// serverError is the stored answer of a handler that failed, under a policy that stores those. It tells nothing: details
// are the log's.
func (x *execution) serverError(ctx context.Context, cause error) Response {
	x.engine.cfg.Logger.ErrorContext(ctx, "handler failed", "operation", x.op.Name, "key_hash", x.key, "error", cause)
	return NewProblem(500, "internal_error", "Internal Server Error", "The request failed.").Response()
}

// giveUp releases what is held, because provably nothing happened, and passes the error on.
func (x *execution) giveUp(ctx context.Context, cause error) error {
	x.release(ctx, fmt.Sprintf("%T", cause))
	return cause
}

func (x *execution) answerUnstored(ctx context.Context, response Response) *Result {
	x.release(ctx, fmt.Sprintf("status %d is not stored", response.Status))
	return &Result{Outcome: OutcomeExecuted, OperationID: x.record.OperationID, State: StateFailedRetryable, Response: response}
}

// release is best effort: should it fail, the lease runs out.
func (x *execution) release(ctx context.Context, reason string) {
	if x.fence == nil {
		return
	}
	if err := x.transition(ctx, Released{Owner: x.owner, Reason: reason}); err != nil {
		x.engine.cfg.Logger.WarnContext(ctx, "release failed", "operation", x.op.Name, "key_hash", x.key, "error", err)
	}
}

// transition writes what an event makes of the held record, under its fence.
func (x *execution) transition(ctx context.Context, event Event) error {
	next, err := x.engine.revised(Step(x.record, event, x.engine.now()))
	if err != nil {
		return err
	}
	err = x.send(ctx, x.storeUntil, func(ctx context.Context) error { return x.engine.store.Update(ctx, next, *x.fence) })
	x.tellZombie(ctx, err)
	return err
}

// send is sendTries with the configured bound on contention.
func (x *execution) send(ctx context.Context, until time.Time, call func(context.Context) error) error {
	return x.sendTries(ctx, until, x.engine.cfg.ContentionTries, call)
}

// sendTries makes a call to the store until its outcome is known or the time is over. It outlives the client: a caller
// that hangs up changes nothing. Contention ends it at the given number of tries that met it.
func (x *execution) sendTries(ctx context.Context, until time.Time, tries int, call func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	cfg := x.engine.cfg
	lost := false
	for try, contended := 0, 0; ; try++ {
		left := until.Sub(x.engine.now())
		if left <= 0 {
			return &OutcomeUnknownError{Cause: context.DeadlineExceeded}
		}
		err := x.try(ctx, min(left, cfg.CallTimeout), call)
		var unknown *OutcomeUnknownError
		var notAsked *NotAskedError
		switch {
		case lost && errors.As(err, &notAsked):
			return &OutcomeUnknownError{Cause: err} // not asked again, but an earlier try may have happened
		case errors.Is(err, ErrContention):
			if contended++; contended >= tries {
				return err
			}
		case !errors.As(err, &unknown):
			return err
		default:
			lost = true
		}
		pause := x.engine.jitter(growing(20*time.Millisecond, time.Second, try))
		if pause >= until.Sub(x.engine.now()) || cfg.Pause(ctx, pause) != nil {
			return err
		}
	}
}

func (x *execution) try(ctx context.Context, timeout time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return call(ctx)
}

// token is the client request token of the next transaction: no two of any executions are the same (peers.md H7).
func (x *execution) token() string {
	x.sends++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s commit %d", x.owner, x.sends))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}
