package idemconstruct

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/spec"
)

// DeliveryProps are the parts that Delivery wires. Those without a default are required.
type DeliveryProps struct {
	// Tables are those of the store, and Queues those of the outbox.
	Tables *Tables
	Queues *Queues
	// Worker takes messages of the queue of wake-ups and, without a Relay, records of the outbox stream. Its role needs
	// ConsumeStatements, SendStatements and, without a Relay, StreamStatements.
	Worker awslambda.IFunction
	// Sweep and Reconcile are called once a minute, with the schedule's event. Their roles need SweepStatements; that of a sweep that
	// offers messages unread (outbox.Config.WakeUpsMax) needs the queues' OfferStatements too.
	Sweep, Reconcile awslambda.IFunction
	// Shards is the number of shards that the store has. Each minute Sweep and Reconcile are then called ScheduledRuns times each, side by
	// side, every time with its share of the shards: {"shards":[0,16]}. Default: 0, one call each for all shards, for small stacks.
	Shards int
	// Relay takes the records of the outbox stream in the worker's place and puts a wake-up for each new message into the
	// queue of wake-ups. From there tenants are served fairly and by a bounded number of workers. Its role needs
	// StreamStatements and SendStatements.
	//
	// Default: none. The worker then takes the records itself: the fewest requests and the shortest way, and a message need
	// not be read before it is claimed. A slow batch holds up its shard, whichever tenants are in it.
	Relay awslambda.IFunction
	// ConcurrencyMax bounds how many workers take wake-ups at once, 2 to 1000, so that a long queue leaves the account's
	// concurrency to others. Default: no bound.
	ConcurrencyMax int
	// WakeUpBatch is how many wake-ups a worker takes at once at most, 10 to 40, and delivers side by side: Lambda runs 1,000 batches of
	// a queue at the most. Above 10 it waits up to a second for a batch to fill, and the queue needs the same number
	// (QueuesProps.WakeUpBatch). Default: 10, without a wait.
	WakeUpBatch int
	// ShardBatches bounds how many batches of one shard of the outbox stream run at once, 1 to 10. With the number of shards,
	// which is that of the table's partitions, it is the most executions that the stream takes: Lambda has no other bound for
	// a stream but the function's reserved concurrency. Default: 10.
	ShardBatches int
	// Stopped switches mappings and schedule off: nothing is delivered, swept or reconciled until a later deployment.
	Stopped bool
}

// Delivery makes sure that every message of the outbox reaches the worker: at once from the stream, later through the
// queue of wake-ups, and in any case through the sweep; and that what is unknown is asked about. The row is the truth, and
// the sweep offers what got lost on the way.
type Delivery struct {
	constructs.Construct
	// Stream is the mapping from the outbox stream to the relay, or to the worker where there is none.
	Stream awslambda.EventSourceMapping
	// WakeUps is the mapping from the queue of wake-ups to the worker.
	WakeUps awslambda.EventSourceMapping
	// Schedules are the sweep's and the reconciler's, five calls each.
	Schedules []awsevents.Rule
}

// ScheduledRuns is how often sweep and reconciler are called each minute for so many shards.
func ScheduledRuns(shards int) int { return spec.ScheduledRuns(shards) }

// NewDelivery adds the mappings of stream and queue and the schedule to scope under id.
func NewDelivery(scope constructs.Construct, id string, props DeliveryProps) *Delivery {
	self := constructs.NewConstruct(scope, jsii.String(id))
	d := &Delivery{Construct: self}
	d.Stream = newStream(self, props)
	batch := cmp.Or(props.WakeUpBatch, spec.BatchRecords)
	wakeUps := &awslambda.EventSourceMappingProps{
		Target:         props.Worker,
		EventSourceArn: props.Queues.WakeUps.QueueArn(),
		// A whole batch runs at once in one worker, so a larger one saves invocations and costs no time; more than the default needs
		// a window, which delays each wake-up where there are few.
		BatchSize:               jsii.Number(batch),
		ReportBatchItemFailures: jsii.Bool(true),
		Enabled:                 jsii.Bool(!props.Stopped),
	}
	if window := spec.BatchWindow(batch); window != 0 {
		wakeUps.MaxBatchingWindow = seconds(window)
	}
	if props.ConcurrencyMax != 0 {
		wakeUps.MaxConcurrency = jsii.Number(props.ConcurrencyMax)
	}
	d.WakeUps = awslambda.NewEventSourceMapping(self, jsii.String("WakeUps"), wakeUps)
	d.Schedules = newSchedules(self, props)
	d.accept()
	return d
}

// NewRelay adds to scope under id only the mapping of the outbox stream to a relay function (lambdaapp.Relay), where containers poll the
// queue of wake-ups. The relay's role needs StreamStatements and SendStatements.
func NewRelay(scope constructs.Construct, id string, tables *Tables, queues *Queues, relay awslambda.IFunction) awslambda.EventSourceMapping {
	return newStream(constructs.NewConstruct(scope, jsii.String(id)), DeliveryProps{Tables: tables, Queues: queues, Relay: relay})
}

// newSchedules calls both functions for all shards. Rules and not Scheduler schedules: emulators run rules.
func newSchedules(scope constructs.Construct, props DeliveryProps) (rules []awsevents.Rule) {
	var targets []awsevents.IRuleTarget
	for _, function := range []awslambda.IFunction{props.Sweep, props.Reconcile} {
		for run := range ScheduledRuns(props.Shards) {
			targets = append(targets, once(function, shardsOf(run, props.Shards)))
		}
	}
	for some := range slices.Chunk(targets, spec.RuleTargets) {
		id := "Schedule"
		if n := len(rules); n > 0 {
			id += strconv.Itoa(n + 1)
		}
		rules = append(rules, awsevents.NewRule(scope, jsii.String(id), &awsevents.RuleProps{
			Description: jsii.String("Offers due and abandoned messages again, and asks about unknown ones"),
			Schedule:    awsevents.Schedule_Rate(seconds(spec.SchedulePeriod)),
			Targets:     &some,
			Enabled:     jsii.Bool(!props.Stopped),
		}))
	}
	return rules
}

// shardsOf is the event of a run: its share of the shards. nil, the schedule's own event, is all.
func shardsOf(run, shards int) awsevents.RuleTargetInput {
	if shards == 0 {
		return nil
	}
	return awsevents.RuleTargetInput_FromObject(map[string]any{"shards": spec.RunShards(run, shards)})
}

// newStream maps the outbox stream to a function. The mapping keeps its name, and so its place in the stream, when its
// function changes.
func newStream(scope constructs.Construct, props DeliveryProps) awslambda.EventSourceMapping {
	target := props.Worker
	if props.Relay != nil {
		target = props.Relay
	}
	mapping := awslambda.NewEventSourceMapping(scope, jsii.String("Stream"), &awslambda.EventSourceMappingProps{
		Target:                  target,
		EventSourceArn:          props.Tables.Outbox.TableStreamArn(),
		StartingPosition:        awslambda.StartingPosition(spec.StartingPosition),
		Filters:                 &[]*map[string]any{awslambda.FilterCriteria_Filter(new(spec.InsertOfPending()))},
		BatchSize:               jsii.Number(spec.BatchRecords),
		ParallelizationFactor:   jsii.Number(cmp.Or(props.ShardBatches, spec.ShardBatches)),
		BisectBatchOnError:      jsii.Bool(true),
		ReportBatchItemFailures: jsii.Bool(true),
		MaxRecordAge:            seconds(spec.RecordAgeMax(props.Relay != nil)), // and no bound on the attempts
		Enabled:                 jsii.Bool(!props.Stopped),
	})
	// Not by OnFailure, which would widen the function's role beside SendStatements.
	mapping.Node().DefaultChild().(awslambda.CfnEventSourceMapping).SetDestinationConfig(&awslambda.CfnEventSourceMapping_DestinationConfigProperty{
		OnFailure: &awslambda.CfnEventSourceMapping_OnFailureProperty{Destination: props.Queues.DeadLetter.QueueArn()},
	})
	return mapping
}

// once calls a function with the event, or with the schedule's own, and not again: what was not delivered in its minute is the next
// one's work.
func once(function awslambda.IFunction, event awsevents.RuleTargetInput) awsevents.IRuleTarget {
	return awseventstargets.NewLambdaFunction(function, &awseventstargets.LambdaFunctionProps{
		Event: event, MaxEventAge: seconds(spec.SchedulePeriod), RetryAttempts: jsii.Number(0),
	})
}
