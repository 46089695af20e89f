package environment_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
)

// A deployment by another tool than this project's own sets these variables of its sweep.
func Example() {
	variables := map[string]string{
		environment.Function:           environment.Sweep,
		environment.IdempotencyTable:   "shop-idempotency",
		environment.OutboxTable:        "shop-outbox",
		environment.OutboxShards:       "16",
		environment.WakeUpQueueURL:     "https://sqs.eu-central-1.amazonaws.com/111122223333/shop-wake-ups",
		environment.DeadLetterQueueURL: "https://sqs.eu-central-1.amazonaws.com/111122223333/shop-dead-letters",
		environment.FunctionTimeout:    "1m",
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		fmt.Printf("%s=%s\n", name, variables[name])
	}
	// Output:
	// DEAD_LETTER_QUEUE_URL=https://sqs.eu-central-1.amazonaws.com/111122223333/shop-dead-letters
	// FUNCTION_TIMEOUT=1m
	// IDEMPOTENCY_TABLE=shop-idempotency
	// IDEM_FUNCTION=sweep
	// OUTBOX_SHARDS=16
	// OUTBOX_TABLE=shop-outbox
	// WAKE_UP_QUEUE_URL=https://sqs.eu-central-1.amazonaws.com/111122223333/shop-wake-ups
}
