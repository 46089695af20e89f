package function

import (
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// queueRetention is how long [QueuePolicy] remembers a key. SQS keeps a message for 14 days at most, and as long again in a
// dead-letter queue; the rest is time for an operator to move it back.
const queueRetention = 30 * 24 * time.Hour

// QueuePolicy is [idem.IETF] for the records of a queue: a key is remembered for 30 days, because SQS can deliver a message
// again after 28, from its dead-letter queue. With the 24 hours that are meant for HTTP clients, what was executed before
// would be executed again. Where records can come again later than that, such as those of a log with a long retention,
// set Policy.Retention.
func QueuePolicy() idem.Policy {
	policy := idem.IETF()
	policy.Name, policy.Retention = "queue", queueRetention
	return policy
}
