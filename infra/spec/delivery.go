package spec

import (
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
)

// How messages reach the functions.
const (
	// BatchRecords is Lambda's most without a batching window, which would delay every first delivery, and SQS's most for one
	// request of a relay.
	BatchRecords = environment.BatchRecordsMax
	// BatchWakeUpsMax is the most of one batch from the queue of wake-ups: a worker delivers all of it at once, whatever its size, so
	// a larger batch takes no longer, and carries more where Lambda runs no more batches (MappingMax).
	BatchWakeUpsMax = environment.BatchWakeUpsMax
	// batchWindow is the least that Lambda takes for more than BatchRecords of a queue: for so long it waits for a batch to fill.
	batchWindow = time.Second
	// ShardBatches is Lambda's most: wake-ups have no order to keep, and one provider that answers slowly must not
	// hold up the messages behind it.
	ShardBatches = 10
	// workerAgeMax and relayAgeMax are for how long a record is tried that fails, as often as Lambda does: a worker that is down for
	// an hour then finds its records in the stream, and no dead letters. A record that only it fails for holds up one lane
	// of its shard for as long, and the sweep offers the messages behind it. What a relay does fails for all records or for
	// none, so it may try until just before the stream, which keeps them for 24 hours, drops them untold.
	workerAgeMax = 2 * time.Hour
	relayAgeMax  = 23 * time.Hour
	// StartingPosition is the stream's beginning: LATEST can miss records for minutes while the mapping is created.
	StartingPosition = "TRIM_HORIZON"
	// SchedulePeriod is what a lost wake-up costs, and for how long what is unknown waits for a probe.
	SchedulePeriod = time.Minute
	// Shards is how many partitions the queues of the indexes are spread over unless somebody says otherwise.
	Shards = 8
)

// BatchWindow is for how long Lambda waits until a batch of so many wake-ups is full.
func BatchWindow(batch int) time.Duration {
	if batch > BatchRecords {
		return batchWindow
	}
	return 0
}

// RecordAgeMax is for how long the stream's mapping tries a record again: a relay's, or a worker's.
func RecordAgeMax(relay bool) time.Duration {
	if relay {
		return relayAgeMax
	}
	return workerAgeMax
}

const (
	// runsMax is how many calls of a function share the shards. A call goes through a shard that has nothing due in milliseconds, and
	// offers thousands of messages a second; more calls would hold more of the account's concurrency for nothing. EventBridge's five
	// targets a rule and CloudWatch's ten metrics an alarm allow no more either: 16 calls of two functions are seven rules.
	runsMax = 16
	// RuleTargets is EventBridge's most.
	RuleTargets = 5
)

// ScheduledRuns is how often sweep and reconciler are called each minute for so many shards.
func ScheduledRuns(shards int) int { return min(max(shards, 1), runsMax) }

// RunShards are the shards of one of the runs.
func RunShards(run, shards int) []int {
	var own []int
	for shard := run; shard < shards; shard += ScheduledRuns(shards) {
		own = append(own, shard)
	}
	return own
}

// InsertOfPending is the pattern of the stream's mapping: the birth of a message that nobody has claimed. Everything else on the
// stream is the worker's own doing, and filtered records are not billed.
func InsertOfPending() map[string]any {
	return map[string]any{
		"eventName": []string{"INSERT"},
		"dynamodb": map[string]any{
			"NewImage": map[string]any{schema.State: map[string]any{"S": []string{schema.MessageStatePending}}},
		},
	}
}
