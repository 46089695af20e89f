package idem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/cutover"
)

// RefusedBeforeError refuses to execute for a key that may be older than a loss of records: 503, inside an
// [*UnavailableError]. Nothing was executed. See Config.RefuseBefore and [storage.Loss].
type RefusedBeforeError struct {
	// Before is the time up to which records may have been lost.
	Before time.Time
}

// Error implements error.
func (e *RefusedBeforeError) Error() string {
	return fmt.Sprintf("idem: nothing is executed for a key that is not proven to be from after %v", e.Before)
}

// ErrLossUnread is why nothing was executed while the time of the last loss of records can't be read: inside an
// [*UnavailableError].
var ErrLossUnread = errors.New("idem: read RefuseBefore")

// refuseBeforeFor bounds one reading of the row: final answers are replayed without it.
const refuseBeforeFor = 2 * time.Second

// RefuseBefore is Config.RefuseBefore, for packages that register operations whose requests carry no time.
func (e *Engine) RefuseBefore() time.Time { return e.cfg.RefuseBefore }

// newLoss reads the row of the engine's store.
func (e *Engine) newLoss() *cutover.Reader {
	return &cutover.Reader{
		Now: e.cfg.Now, Timeout: min(refuseBeforeFor, e.cfg.CallTimeout), Read: e.store.RefuseBefore,
		Moved: func(ctx context.Context, at time.Time) { e.tellRefuseBefore(ctx, "the table", at) },
	}
}

// tellRefuseBefore says what becomes of clients that send no time.
func (e *Engine) tellRefuseBefore(ctx context.Context, source string, before time.Time) {
	e.cfg.Logger.WarnContext(ctx, "nothing is executed for keys that are not proven younger than RefuseBefore: "+
		"clients that send neither Idempotency-First-Sent nor a time in the key get a 503", "refuse_before", before, "source", source)
}

// bars says why nothing may be executed for the request: its key may be older than the last loss of records, or nobody can
// say when that was. ctx is bounded in time. It returns an [*UnavailableError], or nil.
func (e *Engine) bars(ctx context.Context, op *Operation, req Request) error {
	if req.OneOff || op.SafeToRunAgain {
		return nil
	}
	before, err := e.loss.At(ctx)
	if err != nil {
		return unavailable(fmt.Errorf("%w: %w", ErrLossUnread, err))
	}
	if e.cfg.RefuseBefore.After(before) {
		before = e.cfg.RefuseBefore
	}
	if before.IsZero() || op.Policy.youngerThan(before, req) {
		return nil
	}
	return &UnavailableError{RetryAfter: retryBarred, Cause: &RefusedBeforeError{before}}
}

// youngerThan says whether it is proven that the key is younger. The proof is a time in the key, or the client's word about
// when the request was sent first; a client's clock may be ahead by [FirstSentSkew].
func (p Policy) youngerThan(before time.Time, req Request) bool {
	proven := false
	for _, at := range p.times(req) {
		if at.Add(-FirstSentSkew).Before(before) {
			return false
		}
		proven = true
	}
	return proven
}

// times are when the request says that it was first sent.
func (p Policy) times(req Request) (all []time.Time) {
	if at, has := p.KeyTime.of(req.Key); has {
		all = append(all, at)
	}
	if req.FirstSent != nil {
		all = append(all, *req.FirstSent)
	}
	return all
}
