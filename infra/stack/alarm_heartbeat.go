package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// addHeartbeats rings where what is scheduled does not run, or not to its end, whatever the cause: each run that ends without an
// error counts itself. Of sweep and reconciler every run of a minute must: each has shards of its own, and no other looks into them.
func (m monitor) addHeartbeats() {
	runs := float64(m.config.sweepRuns())
	for _, w := range []watch{
		{
			id: "SweepSilent", metric: m.runs(metric.SweepRun, time.Minute), threshold: runs, periods: 5, ofLast: 5,
			description: "The sweep has not run to its end for five minutes, in some shards or in all. What lost its wake-up or its worker there is not delivered, and nobody is told of what dies.",
		},
		{
			id: "ReconcileSilent", metric: m.runs(metric.ReconcileRun, time.Minute), threshold: runs, periods: 5, ofLast: 5,
			description: "The reconciler has not run to its end for five minutes, in some shards or in all. What is unknown there stays unknown.",
		},
		{
			id: "DriftSilent", metric: m.runs(metric.DriftRun, time.Hour), threshold: 1, periods: 3, ofLast: 3,
			description: "The drift job has not run to its end for three hours. A difference from the provider's books would not be seen.",
		},
	} {
		w.heartbeat = true
		m.add(w)
	}
}

// runs counts 0 in a period without a run. An alarm on what is missing would ring later: CloudWatch looks for data in some
// periods before the ones that it judges, and takes those instead. A local stack has no expressions.
func (m monitor) runs(name string, period time.Duration) awscloudwatch.IMetric {
	counted := m.metric(name, "Sum", period)
	if m.config.Local {
		return counted
	}
	return formula("FILL(runs, 0)", period, map[string]awscloudwatch.IMetric{"runs": counted})
}
