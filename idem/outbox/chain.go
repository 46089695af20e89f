package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ChainMax is the most messages that an operation's chain has, those included that undo what others did.
const ChainMax = 16

// Due is from when a message that is pending, claimed or evidenced wants somebody.
func Due(m storage.Message) time.Time {
	switch m.State {
	case storage.MessageClaimed:
		return m.LeaseUntil
	case storage.MessageEvidenced:
		return m.SweepAt
	}
	return m.NextAttemptAt
}

// Messages reads outbox messages strongly; nil where there is none.
type Messages interface {
	Message(ctx context.Context, id idem.MessageID) (*storage.Message, error)
}

// Open returns the message that a pending operation waits for: its recovery point. Where none is open it is the last of
// the chain, and nil where there is none at all. It costs one read for each message of the chain up to the open one.
func Open(ctx context.Context, messages Messages, id idem.OperationID) (*storage.Message, error) {
	var last *storage.Message
	for n := 1; ; n++ {
		next := id.Message(n)
		if _, _, err := next.Operation(); errors.Is(err, storage.ErrOperationID) {
			return last, nil
		}
		m, err := messages.Message(ctx, next)
		if err != nil {
			return nil, err
		}
		if m == nil {
			return last, nil
		}
		if last = m; !m.State.Final() {
			return m, nil
		}
	}
}
