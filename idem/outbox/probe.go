package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Probe looks up, wherever a wrapped handler's effect would be, what became of an operation whose outcome is unknown; it never
// causes one. What it looks up by is what the handler wrote: the record's OperationID, where the handler handed it down
// (idem.Tx.OperationID), or something of the application's own. The record is without its response. The context ends after
// Config.CallTimeout; nil and a panic count as [Unclear]. One run of a [Runner] calls each operation's Config.SweepConcurrency times at
// once.
type Probe func(ctx context.Context, r storage.Record) Finding

// Finding is what a probe found: [Found] for a message, [Executed] for a wrapped operation, [Absent] or [Unclear].
type Finding interface{ finding() }

// Found is evidence about a message.
type Found struct {
	// Outcome is [Delivered] or [Declined].
	Outcome Outcome
}

// Executed is what a wrapped handler did, with the answer that it would have given: every request with the key gets it. What
// failed for good counts too, with the failure as its response.
type Executed struct {
	// Response is the answer that is stored.
	Response idem.Response
}

// Absent says that nothing was found. It proves that nothing happened only when no request can be under way any more and
// everything that was made is listed: after the last lease + FreezeAllowance + LongestRequest + ListingDelay. The allowance is
// that of [Config] for a message, and the engine's for a wrapped operation.
type Absent struct{}

// Unclear says that the provider could not be asked, or that its answer decides nothing.
type Unclear struct {
	// Cause is for the log; it must not hold payloads or keys.
	Cause error
}

func (Found) finding()    {}
func (Executed) finding() {}
func (Absent) finding()   {}
func (Unclear) finding()  {}

// probed asks a probe, within what the context leaves. What is neither absence nor usable evidence is [Unclear]; but where it
// was the caller who gave up, nothing was said: then it returns an error, or [ErrNoTime]. log writes a line about what is asked
// about.
func (d *desk) probed(ctx context.Context, log func(level slog.Level, event string, args ...any), usable func(Finding) error, ask func(context.Context) Finding) (finding Finding, err error) {
	timeout := d.cfg.CallTimeout
	if left, bounded := remaining(ctx); bounded {
		timeout = min(timeout, left-d.cfg.SettleMargin)
	}
	if timeout < min(callMin, d.cfg.CallTimeout) {
		return nil, ErrNoTime
	}
	log(levelInfo, "idempotency.reconcile.scheduled")
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	finding = caught(func() Finding { return ask(asking) }, func(stack []byte) {
		log(levelError, "outbox.panic", "stack", string(stack))
	})
	switch finding.(type) {
	case Absent, Unclear:
	default:
		if err := usable(finding); err != nil {
			finding = Unclear{Cause: err}
		}
	}
	if unclear, ok := finding.(Unclear); ok {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("outbox: probe: %w (%v)", ctx.Err(), unclear.Cause)
		}
		log(levelWarn, "idempotency.probe_unclear", "cause", unclear.Cause)
	}
	return finding, nil
}

// caught makes a panic of a probe an answer.
func caught(ask func() Finding, told func(stack []byte)) (finding Finding) {
	defer func() {
		if p := recover(); p != nil {
			told(debug.Stack())
			finding = Unclear{Cause: fmt.Errorf("outbox: probe panicked with a %T", p)}
		}
	}()
	return ask()
}
