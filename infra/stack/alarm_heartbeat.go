package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// addHeartbeats rings where what is scheduled does not run, or not to its end, whatever the cause: each run that ends without an
// error counts itself. Of sweep and reconciler every run of a minute must: each has shards of its own, and no other looks into them.
//
// A run that ends a little later than the one before counts in the next minute, and all runs of a minute may. So their number is that
// of a quarter of an hour, in which one that is always missing is missing 15 times, and half of that rings. It must be missing in
// two of them, one after the other: when runs begin to take longer, the ends of a minute's runs are missing in one.
func (m monitor) addHeartbeats() {
	const minutes = 15
	runs := float64(minutes*m.config.sweepRuns() - minutes/2)
	for _, w := range []watch{
		{
			id: "SweepSilent", metric: m.runs(metric.SweepRun, minutes*time.Minute), threshold: runs, periods: 2, ofLast: 2,
			description: "The sweep has not run to its end in some shards, or in all, half of the time or more, for a quarter of an hour. What lost its wake-up or its worker there is not delivered, and nobody is told of what dies.",
		},
		{
			id: "ReconcileSilent", metric: m.runs(metric.ReconcileRun, minutes*time.Minute), threshold: runs, periods: 2, ofLast: 2,
			description: "The reconciler has not run to its end in some shards, or in all, half of the time or more, for a quarter of an hour. What is unknown there stays unknown.",
		},
		{
			id: "DriftSilent", metric: m.runs(metric.DriftRun, time.Hour), threshold: 1, periods: 3, ofLast: 3,
			description: "The drift job has compared no hour to its end for three hours. A difference from the provider's books would not be seen.",
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
