package idemconstruct

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

const (
	// batchRecords is Lambda's most without a batching window, which would delay every first delivery.
	batchRecords = 10
	// shardBatches lets ten batches of one shard run at once: wake-ups have no order to keep, and one provider that
	// answers slowly must not hold up the messages behind it.
	shardBatches = 10
	// streamRetriesMax and streamAgeMax bound what a poison record may cost; both are infinite by default, and the
	// record then blocks its shard for a day. The sweep has offered the message again long before they are over.
	streamRetriesMax = 5
	streamAgeMax     = 15 * time.Minute
	// schedulePeriod is what a lost wake-up costs, and for how long what is unknown waits for a probe.
	schedulePeriod = time.Minute
)

// DeliveryProps are the parts that Delivery wires. All are required.
type DeliveryProps struct {
	Tables *Tables
	Queues *Queues
	// Worker takes records of the outbox stream and messages of the retry queue. Its role needs StreamStatements,
	// ConsumeStatements and SendStatements.
	Worker awslambda.IFunction
	// Sweep and Reconcile are called once a minute, with the schedule's event. Their roles need SweepStatements.
	Sweep, Reconcile awslambda.IFunction
}

// Delivery makes sure that every message of the outbox reaches the worker: at once through the stream, later through the
// retry queue, and in any case through the sweep; and that what is unknown is asked about.
type Delivery struct {
	constructs.Construct
	// Stream is the mapping from the outbox stream to the worker.
	Stream awslambda.EventSourceMapping
	// Retry is the mapping from the retry queue to the worker.
	Retry awslambda.EventSourceMapping
	// Schedule is the sweep's and the reconciler's.
	Schedule awsevents.Rule
}

// NewDelivery adds the two mappings and the schedule to scope under id.
func NewDelivery(scope constructs.Construct, id string, props DeliveryProps) *Delivery {
	self := constructs.NewConstruct(scope, jsii.String(id))
	stream := awslambda.NewEventSourceMapping(self, jsii.String("Stream"), &awslambda.EventSourceMappingProps{
		Target:         props.Worker,
		EventSourceArn: props.Tables.Outbox.TableStreamArn(),
		// LATEST can miss records for minutes while the mapping is created.
		StartingPosition:        awslambda.StartingPosition_TRIM_HORIZON,
		Filters:                 &[]*map[string]any{insertOfPending()},
		BatchSize:               jsii.Number(batchRecords),
		ParallelizationFactor:   jsii.Number(shardBatches),
		BisectBatchOnError:      jsii.Bool(true),
		ReportBatchItemFailures: jsii.Bool(true),
		RetryAttempts:           jsii.Number(streamRetriesMax),
		MaxRecordAge:            seconds(streamAgeMax),
		OnFailure:               awslambdaeventsources.NewSqsDlq(props.Queues.DeadLetter),
	})
	retry := awslambda.NewEventSourceMapping(self, jsii.String("Retry"), &awslambda.EventSourceMappingProps{
		Target:                  props.Worker,
		EventSourceArn:          props.Queues.Retry.QueueArn(),
		BatchSize:               jsii.Number(batchRecords),
		ReportBatchItemFailures: jsii.Bool(true),
	})
	// A Rule and not a Scheduler schedule: emulators run rules.
	schedule := awsevents.NewRule(self, jsii.String("Schedule"), &awsevents.RuleProps{
		Description: jsii.String("Offers due and abandoned messages again, and asks about unknown ones"),
		Schedule:    awsevents.Schedule_Rate(seconds(schedulePeriod)),
		Targets:     &[]awsevents.IRuleTarget{once(props.Sweep), once(props.Reconcile)},
	})
	return &Delivery{Construct: self, Stream: stream, Retry: retry, Schedule: schedule}
}

// once calls a function with the schedule's event, and not again: what was not delivered in its minute is the next one's
// work.
func once(function awslambda.IFunction) awsevents.IRuleTarget {
	return awseventstargets.NewLambdaFunction(function, &awseventstargets.LambdaFunctionProps{
		MaxEventAge: seconds(schedulePeriod), RetryAttempts: jsii.Number(0),
	})
}

// insertOfPending selects the birth of a message that nobody has claimed. Everything else on the stream is the worker's
// own doing, and filtered records are not billed.
func insertOfPending() *map[string]any {
	return awslambda.FilterCriteria_Filter(&map[string]any{
		"eventName": awslambda.FilterRule_IsEqual("INSERT"),
		"dynamodb": map[string]any{
			"NewImage": map[string]any{
				schema.State: map[string]any{"S": awslambda.FilterRule_IsEqual(schema.MessageStatePending)},
			},
		},
	})
}
