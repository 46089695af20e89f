package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// wakeUpAgeMax is older than any wake-up gets that is only waiting: the longest delay that SQS has, and one visibility
// time-out after a worker that died.
const wakeUpAgeMax = 15*time.Minute + 6*workerTimeout

// queueAlarm rings when a metric of a queue is so high in two of three minutes: a single one may be a restart's.
type queueAlarm struct {
	id, metric, description string
	queue                   awssqs.IQueue
	threshold               float64
}

// addQueueAlarms watches the queues themselves, whose metrics are SQS's.
func addQueueAlarms(scope constructs.Construct, config Config, queues *idemconstruct.Queues) {
	self := constructs.NewConstruct(scope, jsii.String("QueueAlarms"))
	var actions *[]any
	if config.AlarmTopic != "" {
		actions = &[]any{config.AlarmTopic}
	}
	for _, a := range []queueAlarm{
		{
			id: "DeadLetters", metric: "ApproximateNumberOfMessagesVisible", queue: queues.DeadLetter, threshold: 1,
			description: "There are dead letters: copies of messages that were given up, wake-ups that failed too often, batches that a stream gave up. Redrive them; what is still there then wants a person.",
		},
		{
			id: "WakeUpsLate", metric: "ApproximateAgeOfOldestMessage", queue: queues.WakeUps, threshold: wakeUpAgeMax.Seconds(),
			description: "Wake-ups are older than any delay: the worker fails, is throttled, or can't keep up. Nothing is lost; operations stay pending.",
		},
	} {
		awscloudwatch.NewCfnAlarm(self, jsii.String(a.id), &awscloudwatch.CfnAlarmProps{
			AlarmDescription: jsii.String(a.description),
			Namespace:        jsii.String("AWS/SQS"),
			MetricName:       jsii.String(a.metric),
			Dimensions: []any{&awscloudwatch.CfnAlarm_DimensionProperty{
				Name: jsii.String("QueueName"), Value: a.queue.QueueName(),
			}},
			Statistic:          jsii.String("Maximum"),
			Period:             jsii.Number(time.Minute.Seconds()),
			Threshold:          jsii.Number(a.threshold),
			ComparisonOperator: jsii.String("GreaterThanOrEqualToThreshold"),
			DatapointsToAlarm:  jsii.Number(2),
			EvaluationPeriods:  jsii.Number(3),
			TreatMissingData:   jsii.String("notBreaching"),
			AlarmActions:       actions,
		})
	}
}
