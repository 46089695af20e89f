package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
)

var errLossUnread = errors.New("outbox: read RefuseBefore")

// heed reads what was lost where it counts for what the machine makes of the input. After a call, or the topic's Settle, only a part of the
// caller's time is for that: what is left is for keeping what is known by then.
func (x *delivery) heed(ctx context.Context, in *protocol.Input) {
	if !x.machine.Heeds(*in, &x.config) {
		return
	}
	if in.What == protocol.Called || in.What == protocol.Answered {
		left, bounded := remaining(ctx)
		if ctx = context.WithoutCancel(ctx); bounded {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, left/4)
			defer cancel()
		}
	}
	before, err := x.loss.At(ctx)
	if err != nil {
		x.cause, in.Unread = fmt.Errorf("%w: %w", errLossUnread, err), true
		return
	}
	in.Lost = translation.InstantOf(before)
}
