package idemconstruct

import (
	"cmp"
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/lint"
	"github.com/idem-go/idem-aws/infra/spec"
)

// QueuesProps are the choices for Queues.
type QueuesProps struct {
	// WorkerTimeout is the time-out of the function that consumes the queue of wake-ups: whole seconds. Required, unless containers do.
	WorkerTimeout time.Duration
	// ConsumerVisibility is sqsqueue.ConsumerConfig.Visibility, where containers consume the queue: in place of WorkerTimeout. Whole
	// seconds, 4 s to 12 h: where it is shorter, SQS can't count a wake-up's receives for as long as it lives.
	ConsumerVisibility time.Duration
	// WakeUpBatch is DeliveryProps.WakeUpBatch. Default: 10. Containers have none.
	WakeUpBatch int
	// Disposable queues go with their stack. The zero value keeps the dead-letter queue.
	Disposable bool
	// Key is the KMS key that SQS encrypts with. Its policy must let the account's principals use it through SQS. Default: a key of
	// SQS's own.
	Key awskms.IKey
}

// Queues are the wake-ups of messages, and the place for what a person must look at.
type Queues struct {
	constructs.Construct
	// WakeUps carries every wake-up that does not come from the stream itself: delayed ones of what has to wait, the sweep's,
	// and, with a relay, those of new messages. Each stands in its tenant's message group, by which a
	// standard queue shares its consumers fairly. Losing one costs a minute, because the sweep offers the message again.
	WakeUps awssqs.Queue
	// DeadLetter receives copies of dead messages, what the stream gave up, and wake-ups that somebody received too often: a worker or
	// a container that fails makes none of them, see spec.ReceivesMax.
	DeadLetter awssqs.Queue
	// hidden is for how long a wake-up is hidden when its consumer has received it.
	hidden time.Duration
}

// NewQueues adds both queues to scope under id. They are encrypted and refuse plain HTTP. It panics at props that say no consumer, or two.
func NewQueues(scope constructs.Construct, id string, props QueuesProps) *Queues {
	hidden := props.hidden()
	self := constructs.NewConstruct(scope, jsii.String(id))
	removal := awscdk.RemovalPolicy_RETAIN
	if props.Disposable {
		removal = awscdk.RemovalPolicy_DESTROY
	}
	encryption := awssqs.QueueEncryption_SQS_MANAGED
	if props.Key != nil {
		encryption = awssqs.QueueEncryption_KMS
	}
	dead := awssqs.NewQueue(self, jsii.String("DeadLetter"), &awssqs.QueueProps{
		Encryption:          encryption,
		EncryptionMasterKey: props.Key,
		EnforceSSL:          jsii.Bool(true),
		RetentionPeriod:     seconds(spec.DeadLetterRetention),
		RemovalPolicy:       removal,
	})
	wakeUps := awssqs.NewQueue(self, jsii.String("WakeUps"), &awssqs.QueueProps{
		Encryption:          encryption,
		EncryptionMasterKey: props.Key,
		EnforceSSL:          jsii.Bool(true),
		VisibilityTimeout:   seconds(hidden),
		RetentionPeriod:     seconds(spec.WakeUpRetention),
		DeadLetterQueue:     &awssqs.DeadLetterQueue{Queue: dead, MaxReceiveCount: jsii.Number(spec.ReceivesMax(hidden))},
		RemovalPolicy:       awscdk.RemovalPolicy_DESTROY,
	})
	lint.Accept(dead, map[string]string{"Serverless-SQSRedrivePolicy": "This is the dead-letter queue: an operator empties it."})
	return &Queues{Construct: self, WakeUps: wakeUps, DeadLetter: dead, hidden: hidden}
}

// hidden is for how long a wake-up is hidden from others at least when its consumer has received it.
func (p QueuesProps) hidden() time.Duration {
	functions := p.WorkerTimeout > 0 && p.ConsumerVisibility == 0
	containers := p.WorkerTimeout == 0 && p.ConsumerVisibility >= 4*time.Second && p.ConsumerVisibility <= 12*time.Hour &&
		p.ConsumerVisibility%time.Second == 0 && p.WakeUpBatch == 0
	if !functions && !containers {
		panic(fmt.Sprintf("idemconstruct: QueuesProps.WorkerTimeout = %v, QueuesProps.ConsumerVisibility = %v, QueuesProps.WakeUpBatch = %d: must be the time-out of a function, or whole seconds of 4 s to 12 h without a batch",
			p.WorkerTimeout, p.ConsumerVisibility, p.WakeUpBatch))
	}
	if containers {
		return p.ConsumerVisibility
	}
	return spec.Visibility(p.WorkerTimeout, cmp.Or(p.WakeUpBatch, spec.BatchRecords))
}

// SendStatements is what a function needs that puts wake-ups and dead letters.
func (q *Queues) SendStatements() []awsiam.PolicyStatement { return allow(spec.Send(), q.arn) }

// OfferStatements is what a sweep needs beside SendStatements that offers messages unread: how many wake-ups wait.
func (q *Queues) OfferStatements() []awsiam.PolicyStatement { return allow(spec.Offer(), q.arn) }

// ConsumeStatements is what the function behind the queue of wake-ups needs for Lambda to poll it.
func (q *Queues) ConsumeStatements() []awsiam.PolicyStatement { return allow(spec.Consume(), q.arn) }

// PollStatements is what a container needs that takes wake-ups by sqsqueue.Consumer.
func (q *Queues) PollStatements() []awsiam.PolicyStatement { return allow(spec.Poll(), q.arn) }

// arn is a queue's.
func (q *Queues) arn(of spec.Resource) *string {
	switch of {
	case spec.WakeUps:
		return q.WakeUps.QueueArn()
	case spec.DeadLetter:
		return q.DeadLetter.QueueArn()
	case spec.Service, spec.IdempotencyTable, spec.OutboxTable, spec.IdempotencyIndex, spec.OutboxIndex, spec.OutboxStream, spec.OutboxStreams: // not of the queues
	}
	return nil
}

func seconds(span time.Duration) awscdk.Duration {
	return awscdk.Duration_Seconds(jsii.Number(span.Seconds()))
}
