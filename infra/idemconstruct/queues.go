package idemconstruct

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

const (
	// retryReceivesMax is AWS's floor for a queue behind Lambda: fewer, and throttling alone dead-letters messages.
	retryReceivesMax = 5
	// visibilityTimeouts is AWS's rule for a queue behind Lambda: visibility of six function timeouts, so that a
	// throttled batch is not received again while it is still being retried.
	visibilityTimeouts = 6
	// deadLetterRetention is SQS's maximum: a person has to look first.
	deadLetterRetention = 14 * 24 * time.Hour
)

// QueuesProps are the choices for Queues.
type QueuesProps struct {
	// WorkerTimeout is the time-out of the function that consumes the retry queue. Required, whole seconds.
	WorkerTimeout time.Duration
	// Disposable queues go with their stack. The zero value keeps the dead-letter queue.
	Disposable bool
}

// Queues are the wake-ups of messages that have to wait, and the place for what a person must look at.
type Queues struct {
	constructs.Construct
	// Retry carries delayed wake-ups. Losing one costs a minute, because the sweep offers the message again.
	Retry awssqs.Queue
	// DeadLetter receives copies of dead messages, wake-ups that failed too often, and what the stream gave up.
	DeadLetter awssqs.Queue
}

// NewQueues adds both queues to scope under id. They are encrypted and refuse plain HTTP.
func NewQueues(scope constructs.Construct, id string, props QueuesProps) *Queues {
	self := constructs.NewConstruct(scope, jsii.String(id))
	removal := awscdk.RemovalPolicy_RETAIN
	if props.Disposable {
		removal = awscdk.RemovalPolicy_DESTROY
	}
	dead := awssqs.NewQueue(self, jsii.String("DeadLetter"), &awssqs.QueueProps{
		Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:      jsii.Bool(true),
		RetentionPeriod: seconds(deadLetterRetention),
		RemovalPolicy:   removal,
	})
	retry := awssqs.NewQueue(self, jsii.String("Retry"), &awssqs.QueueProps{
		Encryption:        awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:        jsii.Bool(true),
		VisibilityTimeout: seconds(visibilityTimeouts * props.WorkerTimeout),
		DeadLetterQueue:   &awssqs.DeadLetterQueue{Queue: dead, MaxReceiveCount: jsii.Number(retryReceivesMax)},
		RemovalPolicy:     awscdk.RemovalPolicy_DESTROY,
	})
	return &Queues{Construct: self, Retry: retry, DeadLetter: dead}
}

// SendStatements is what a function needs that puts wake-ups and dead letters.
func (q *Queues) SendStatements() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{
		Allow([]string{"sqs:SendMessage"}, q.Retry.QueueArn(), q.DeadLetter.QueueArn()),
	}
}

// ConsumeStatements is what the function behind the retry queue needs for Lambda to poll it.
func (q *Queues) ConsumeStatements() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{Allow(
		[]string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"},
		q.Retry.QueueArn(),
	)}
}

func seconds(span time.Duration) awscdk.Duration {
	return awscdk.Duration_Seconds(jsii.Number(span.Seconds()))
}
