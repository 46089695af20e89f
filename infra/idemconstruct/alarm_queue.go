package idemconstruct

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/spec"
)

// Queues watches the queues themselves.
func (m *Monitor) Queues(queues *Queues) {
	m.described(names{spec.DeadLetter: queues.DeadLetter.QueueName(), spec.WakeUps: queues.WakeUps.QueueName()}, spec.QueueAlarms(queues.hidden)...)
}

// Options are the statistic and period of a metric that AWS makes.
func Options(statistic string, period time.Duration) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: jsii.String(statistic), Period: awscdk.Duration_Seconds(jsii.Number(period.Seconds()))}
}
