package stack

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// Outbox says how new messages reach the worker.
type Outbox string

// The ways. With Streams the worker takes them from the outbox table's stream itself; with SQS from a queue, which serves
// tenants fairly and can bound the workers, and which a relay function fills from the stream.
const (
	Streams Outbox = "streams"
	SQS     Outbox = "sqs"
)

// concurrency is the value of a key that has a bound of Lambda's on pollers; the default is 0.
func (r *reader) concurrency(key string) int {
	n := r.count(key, 0)
	if n == 1 || n > 1000 {
		r.refuse(key, strconv.Itoa(n), "2 to 1000, or 0 for no bound")
	}
	return n
}

// outboxShards is how many partitions the queues of the indexes are spread over unless the context says otherwise. It is the
// functions' default too.
const outboxShards = 8

// shards is the value of a key that has a bound of the store's.
func (r *reader) shards(key string) int {
	value := r.text(key, strconv.Itoa(outboxShards))
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 256 {
		r.refuse(key, value, "1 to 256, and never fewer than before")
	}
	return n
}

// sweepShards is how many shards the runs of sweep and reconciler are shared out by. In a local stack one run looks into all: its
// functions share the machine with everything else.
func (c Config) sweepShards() int {
	if c.Local {
		return 0
	}
	return c.OutboxShards
}

// sweepRuns is how often each of them runs in a minute.
func (c Config) sweepRuns() int { return idemconstruct.ScheduledRuns(c.sweepShards()) }

const (
	// wakeUpsMax is how many wake-ups the sweep lets wait in the queue by default, where few workers take them: 3,333 a second.
	wakeUpsMax = 200_000
	// batchesOfWorker is what a worker takes from one run of the sweep to the next: a batch in a second, the provider's time.
	batchesOfWorker = 60
)

// readWakeUps reads how many wake-ups may wait. Where the worker reads the stream itself, the sweep reads each message, as the worker
// is not needed then to park and to cancel.
func (r *reader) readWakeUps(config *Config) {
	const key = "wakeUpsMax"
	switch {
	case config.Outbox == SQS:
		workers := cmp.Or(config.WorkerConcurrency, mappingMax)
		config.WakeUpsMax = r.within(key, max(wakeUpsMax, workers*batchesOfWorker*config.WorkerBatch), 1000, 10_000_000)
	case r.lookup(key) != nil:
		r.refuse(key, fmt.Sprint(r.lookup(key)), "nothing, unless outbox=sqs")
	}
}

// readProbes reads how many look-ups the provider takes at once. Each run has its share of them, and at least one.
func (r *reader) readProbes(config *Config) {
	const key = "probesMax"
	if r.lookup(key) != nil {
		config.ProbesMax = r.within(key, 0, config.sweepRuns(), 10_000)
	}
}

// deliverTo wires the functions that deliver, with a relay where there is one, and returns who reads the stream.
func (p parts) deliverTo(stack awscdk.Stack, worker, sweep, reconcile deployed) (delivery *idemconstruct.Delivery, reader deployed) {
	reader = worker
	props := idemconstruct.DeliveryProps{
		Tables: p.tables, Queues: p.queues, Worker: worker.live, Sweep: sweep.live, Reconcile: reconcile.live,
		ConcurrencyMax: p.config.WorkerConcurrency, WakeUpBatch: p.config.WorkerBatch, ShardBatches: p.config.Stream.Batches, Shards: p.config.sweepShards(),
		Stopped: p.config.Stopped,
	}
	if p.config.Outbox == SQS {
		relay := p.relay().add(stack, p.config)
		output(stack, "FunctionRelay", relay.FunctionName())
		props.Relay, reader = relay.live, relay
	}
	delivery = idemconstruct.NewDelivery(stack, "Delivery", props)
	return delivery, reader
}

// relay sends to the dead-letter queue what its mapping gives up, too: Lambda does that in the function's role.
func (p parts) relay() function {
	return function{
		name: "relay", id: "Relay", description: "A wake-up for each new message of the outbox", memoryMiB: 256,
		timeout: relayTimeout, environment: map[string]*string{"WAKE_UP_QUEUE_URL": p.queues.WakeUps.QueueUrl()},
		statements: slices.Concat(p.tables.StreamStatements(), p.queues.SendStatements()), accepted: p.config.streamReader(),
	}
}
