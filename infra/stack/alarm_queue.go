package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

const (
	// wakeUpAgeMax is older than any wake-up gets that is only waiting: the longest delay that SQS has, and one visibility
	// time-out after a worker that died.
	wakeUpAgeMax = 15*time.Minute + 6*workerTimeout
	// deadLetterAgeMax is half of the time after which SQS drops a dead letter.
	deadLetterAgeMax = 7 * 24 * time.Hour
	// driftPieceAgeMax is that of an hour that is late (DriftLate).
	driftPieceAgeMax = 2 * time.Hour
)

// addQueues watches the queues themselves, whose metrics are SQS's. Each alarm rings in two of three minutes: a single one may
// be a restart's.
func (m monitor) addQueues(queues *idemconstruct.Queues, compared progress) {
	every := options("Maximum", time.Minute)
	for _, w := range []watch{
		{
			id: "DeadLetters", metric: queues.DeadLetter.MetricApproximateNumberOfMessagesVisible(every), threshold: 1,
			description: "There are dead letters: copies of messages that were given up, wake-ups that failed too often, batches that a stream gave up. Redrive them; what is still there then wants a person.",
		},
		{
			id: "DeadLettersOld", metric: queues.DeadLetter.MetricApproximateAgeOfOldestMessage(every), threshold: deadLetterAgeMax.Seconds(),
			description: "A dead letter is a week old, and nobody has processed it. SQS drops it after two weeks; the outbox table keeps the message.",
		},
		{
			id: "WakeUpsLate", metric: queues.WakeUps.MetricApproximateAgeOfOldestMessage(every), threshold: wakeUpAgeMax.Seconds(),
			description: "Wake-ups are older than any delay: the worker fails, is throttled, or can't keep up. Nothing is lost; operations stay pending.",
		},
		{
			id: "DriftPiecesOld", metric: compared.pieces.MetricApproximateAgeOfOldestMessage(every), threshold: driftPieceAgeMax.Seconds(),
			description: "Pieces of the drift job wait, or fail, for two hours. Hours are compared late, or not at all.",
		},
		{
			id: "DriftDeadLetters", metric: compared.dead.MetricApproximateNumberOfMessagesVisible(every), threshold: 1,
			description: "Runs of the drift job have ended with a failure or with their process five times for a piece, or somebody else has sent to its queue. The planner sends pieces again.",
		},
	} {
		w.periods, w.ofLast = 2, 3
		m.add(w)
	}
}

// options are the statistic and period of a metric that AWS makes.
func options(statistic string, period time.Duration) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: jsii.String(statistic), Period: awscdk.Duration_Seconds(jsii.Number(period.Seconds()))}
}
