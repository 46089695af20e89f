package idemconstruct

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"

	"github.com/idem-go/idem-aws/infra/spec"
)

// Heartbeats rings where sweep or reconciler does not run, or not to its end: see spec.Heartbeats.
func (m *Monitor) Heartbeats(shards int) { m.described(nil, spec.Heartbeats(shards)...) }

// Runs counts 0 in a period without a run. An alarm on what is missing would ring later: CloudWatch looks for data in some
// periods before the ones that it judges, and takes those instead. A plain monitor has no expressions.
func (m *Monitor) Runs(name string, period time.Duration) awscloudwatch.IMetric {
	counted := m.Metric(name, "Sum", period)
	if m.props.Plain {
		return counted
	}
	return formula(spec.RunsOrNone, period, map[string]awscloudwatch.IMetric{"runs": counted})
}
