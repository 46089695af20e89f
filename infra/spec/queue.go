package spec

import "time"

// The two queues.
const (
	// receivesMin is AWS's floor for a queue behind Lambda: fewer, and throttling alone dead-letters messages.
	receivesMin = 5
	// visibilityTimeouts is AWS's rule for a queue behind Lambda: visibility of six function timeouts plus the mapping's
	// batching window, so that a throttled batch is not received again while it is still being
	// retried. A wake-up that died with its worker comes again after it at the earliest; the sweep is there before.
	visibilityTimeouts = 6
	// WakeUpRetention is longer than any wake-up is worth: after a minute or two the sweep sends another. The queue's
	// default, four days, would have a worker that was down for a day hear of everything once for each sweep.
	WakeUpRetention = time.Hour
	// DeadLetterRetention is SQS's maximum: a person has to look first. It counts from when a wake-up was first sent.
	DeadLetterRetention = 14 * 24 * time.Hour
)

// Visibility is how long a wake-up is hidden while a worker with this time-out has it, in a batch of at most so many.
func Visibility(workerTimeout time.Duration, batch int) time.Duration {
	return visibilityTimeouts*workerTimeout + BatchWindow(batch)
}

// ReceivesMax is after how many receives a wake-up is a dead letter, where each hides it for so long at least: after as many as a consumer
// that fails at all of them has in the wake-up's life, so that no outage makes dead letters, however long it is. A letter would say nothing
// then: the row has the message, and the sweep sends it another wake-up each minute. What comes to nothing all the same rings DueOld.
func ReceivesMax(hidden time.Duration) int {
	return max(receivesMin, int((WakeUpRetention+hidden-1)/hidden)+1)
}
