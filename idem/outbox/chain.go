package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ChainMax is the largest number of messages in an operation's chain, including those that undo earlier ones.
const ChainMax = 16

// Due is the time from which a worker or a sweep should process a message that is pending, claimed or evidenced.
func Due(m storage.Message) time.Time {
	switch m.State {
	case storage.MessageClaimed:
		return m.LeaseUntil
	case storage.MessageEvidenced:
		return m.SweepAt
	case storage.MessagePending, storage.MessageDelivered, storage.MessageDeclined, storage.MessageUnknown, storage.MessageDead, storage.MessageCancelled: // as planned
	}
	return m.NextAttemptAt
}

// Messages reads outbox messages strongly; nil where there is none.
type Messages interface {
	// Message returns the message with the id, or nil where there is none.
	Message(ctx context.Context, id idem.MessageID) (*storage.Message, error)
}

// Open returns the open message of a pending operation, which is its recovery point. If no message is open it returns the
// last of the chain, and nil if there is no message. It costs one read for each message of the chain up to the open one.
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
