package outbox

import (
	"context"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// WakeUps is a queue of wake-ups: hints, which may be late, doubled or lost. Package sqsqueue keeps them in SQS, package
// memqueue in memory. Implementations must be safe for concurrent use.
type WakeUps interface {
	// Schedule has the tenant's message delivered to a worker after the delay, or earlier where the queue can't wait so
	// long. A queue may use the tenant to share its consumers fairly; it changes nothing about what is delivered.
	Schedule(ctx context.Context, tenant string, id idem.MessageID, delay time.Duration) error
}

// DeadLetters takes copies of what stands before an operator. The outbox row stays the truth. Implementations: as with
// [WakeUps].
type DeadLetters interface {
	// Bury queues the copy.
	Bury(ctx context.Context, letter DeadLetter) error
}

// DeadLetter tells of a message that is dead. It carries no payload.
type DeadLetter struct {
	Message idem.MessageID `json:"message"`
	Topic   string         `json:"topic"`
	// Reason is why the message is dead.
	Reason string `json:"reason"`
	// Open says that an effect may have happened; the operation is then still pending.
	Open bool `json:"open"`
	// Attempts that were made.
	Attempts int `json:"attempts"`
}

// WakeUpDelayMax is the longest delay that is asked of a [WakeUps]: SQS can't wait longer. The sweep does the rest.
const WakeUpDelayMax = 15 * time.Minute
