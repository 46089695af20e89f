package idemconstruct

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/spec"
)

const (
	// wakeUpDelayMax is the longest delay that SQS has.
	wakeUpDelayMax = 15 * time.Minute
	// deadLetterAgeMax is half of the time after which SQS drops a dead letter.
	deadLetterAgeMax = 7 * 24 * time.Hour
)

// Queues watches the queues themselves, whose metrics are SQS's. Each alarm rings in two of three minutes: a single one may
// be a restart's.
func (m *Monitor) Queues(queues *Queues, workerTimeout time.Duration) {
	// Older than any wake-up gets that is only waiting: and one visibility time-out after a worker that died.
	wakeUpAgeMax := wakeUpDelayMax + spec.Visibility(workerTimeout)
	every := Options("Maximum", time.Minute)
	for _, w := range []Watch{
		{
			ID: "DeadLetters", Metric: queues.DeadLetter.MetricApproximateNumberOfMessagesVisible(every), Threshold: 1,
			Description: "There are dead letters: copies of messages that were given up, wake-ups that failed too often, batches that a stream gave up. Redrive them; what is still there then wants a person.",
		},
		{
			ID: "DeadLettersOld", Metric: queues.DeadLetter.MetricApproximateAgeOfOldestMessage(every), Threshold: deadLetterAgeMax.Seconds(),
			Description: "A dead letter is a week old, and nobody has processed it. SQS drops it after two weeks; the outbox table keeps the message.",
		},
		{
			ID: "WakeUpsLate", Metric: queues.WakeUps.MetricApproximateAgeOfOldestMessage(every), Threshold: wakeUpAgeMax.Seconds(),
			Description: "Wake-ups are older than any delay: the worker fails, is throttled, or can't keep up. Nothing is lost; operations stay pending.",
		},
	} {
		w.Periods, w.OfLast = 2, 3
		m.Add(w)
	}
}

// Options are the statistic and period of a metric that AWS makes.
func Options(statistic string, period time.Duration) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: jsii.String(statistic), Period: awscdk.Duration_Seconds(jsii.Number(period.Seconds()))}
}
