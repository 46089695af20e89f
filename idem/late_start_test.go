package idem_test

import (
	"context"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// docs/semantics.md "Leases": a handler that starts has time. However long the reply to the reserve takes, a handler whose context has
// ended does not start.
func TestAHandlerDoesNotStartAfterItsContextsEnd(t *testing.T) {
	const deadline = 6 * time.Second
	started, late := 0, 0
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindWrapped} {
		for reply := 50 * time.Millisecond; reply < deadline; reply += 50 * time.Millisecond {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				op := w.register(idem.Operation{Kind: kind})
				store.On(faulty.Insert, 1, func(ctx context.Context, run func(context.Context) error) error {
					err := run(ctx)
					time.Sleep(reply)
					return err
				})
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				ran := false
				_, err := op.Do(ctx, request("{}"), func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
					ran = true
					if ctx.Err() != nil {
						t.Errorf("%s, a reply after %v: the handler starts, and its context says %v", kind, reply, ctx.Err())
					}
					return idem.Response{Status: 201}, nil
				})
				switch {
				case ran:
					started++
				case err == nil:
					t.Errorf("%s, a reply after %v: the handler did not run, and there is an answer", kind, reply)
				default:
					late++
				}
			})
		}
	}
	if started == 0 || late == 0 {
		t.Errorf("%d handlers started, %d were late: the test shows one side only", started, late)
	}
}
