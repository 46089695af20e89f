package spec

import "time"

// The two queues.
const (
	// ReceivesMax is AWS's floor for a queue behind Lambda: fewer, and throttling alone dead-letters messages.
	ReceivesMax = 5
	// visibilityTimeouts is AWS's rule for a queue behind Lambda: visibility of six function timeouts (plus the mapping's
	// batching window, which there is none of), so that a throttled batch is not received again while it is still being
	// retried. A wake-up that died with its worker comes again after it at the earliest; the sweep is there before.
	visibilityTimeouts = 6
	// WakeUpRetention is longer than any wake-up is worth: after a minute or two the sweep sends another. The queue's
	// default, four days, would have a worker that was down for a day hear of everything once for each sweep.
	WakeUpRetention = time.Hour
	// DeadLetterRetention is SQS's maximum: a person has to look first. It counts from when a wake-up was first sent.
	DeadLetterRetention = 14 * 24 * time.Hour
)

// Visibility is how long a wake-up is hidden while a worker with this time-out has it.
func Visibility(workerTimeout time.Duration) time.Duration { return visibilityTimeouts * workerTimeout }
