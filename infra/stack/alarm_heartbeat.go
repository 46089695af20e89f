package stack

import (
	"time"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// addHeartbeats rings where what is scheduled does not run, or not to its end, whatever the cause: each run that ends without an
// error counts itself.
func (m monitor) addHeartbeats() {
	for _, w := range []watch{
		{
			id: "SweepSilent", metric: m.metric(metric.SweepRun, "Sum", time.Minute), periods: 5, ofLast: 5,
			description: "The sweep has not run to its end for five minutes. What lost its wake-up or its worker is not delivered, and nobody is told of what dies.",
		},
		{
			id: "ReconcileSilent", metric: m.metric(metric.ReconcileRun, "Sum", time.Minute), periods: 5, ofLast: 5,
			description: "The reconciler has not run to its end for five minutes. What is unknown stays unknown.",
		},
		{
			id: "DriftSilent", metric: m.metric(metric.DriftRun, "Sum", time.Hour), periods: 3, ofLast: 3,
			description: "The drift job has not run to its end for three hours. A difference from the provider's books would not be seen.",
		},
	} {
		w.heartbeat, w.threshold = true, 1
		m.add(w)
	}
}
