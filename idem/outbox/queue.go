package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// WakeUps is a queue of wake-ups, which may be late, doubled or lost. Package sqsqueue keeps them in SQS, package
// memqueue in memory. Implementations must be safe for concurrent use.
type WakeUps interface {
	// Schedule delivers a wake-up for the tenant's message to a worker after the delay, or earlier if the queue cannot
	// wait so long. A queue may use the tenant only to share its consumers fairly.
	Schedule(ctx context.Context, tenant string, id idem.MessageID, delay time.Duration) error
}

// BatchWakeUps are wake-ups that a sweep can ask for in batches, as many as the queue has room for: what Config.WakeUpsMax needs.
// Packages sqsqueue and memqueue implement it.
type BatchWakeUps interface {
	WakeUps
	// Offer asks for wake-ups without a delay, for at most [OfferBatchMax] messages. It returns an error for each, in their order,
	// nil for those that are in the queue; one that is reported as failed may be there all the same.
	Offer(ctx context.Context, wakeUps []WakeUp) []error
	// Waiting is about how many wake-ups could be received now: not those that are delayed, or being served. It may be a
	// minute old.
	Waiting(ctx context.Context) (int, error)
}

// WakeUp asks for a look at a tenant's message.
type WakeUp struct {
	// Tenant is whose message it is, so that a queue can serve tenants fairly. Message is its id.
	Tenant  string
	Message idem.MessageID
}

// OfferBatchMax is the most that is asked of a [BatchWakeUps] at once, because SQS takes no more in one request.
const OfferBatchMax = 10

// DeadLetters is a queue of dead messages that wait for an operator. The state of a message is its row in the outbox, and
// a letter only names it. Implementations: as with [WakeUps].
type DeadLetters interface {
	// Bury queues the copy.
	Bury(ctx context.Context, letter DeadLetter) error
}

// ErrMessageGone: the message that a dead letter names is not there. It has ended and was removed since, and its letter is not needed.
var ErrMessageGone = errors.New("outbox: the letter's message is not there")

// DeadLetter names a message that is dead. It carries no payload.
type DeadLetter struct {
	// Message is the message's id.
	Message idem.MessageID `json:"message"`
	// Topic is the message's topic.
	Topic string `json:"topic"`
	// Reason is why the message is dead.
	Reason string `json:"reason"`
	// Open says that an effect may have happened; the operation is then still pending.
	Open bool `json:"open"`
	// Attempts that were made.
	Attempts int `json:"attempts"`
}

// WakeUpDelayMax is the longest delay that is asked of a [WakeUps], because SQS cannot wait longer. The sweep delivers
// messages that are due later.
const WakeUpDelayMax = 15 * time.Minute
