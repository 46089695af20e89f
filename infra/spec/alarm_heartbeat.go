package spec

import (
	"time"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// Heartbeats ring where what is scheduled does not run, or not to its end, whatever the cause: each run that ends without an
// error counts itself. Of sweep and reconciler every run of a minute must: each has shards of its own, and no other looks into them.
//
// A run that ends a little later than the one before counts in the next minute, and all runs of a minute may. So their number is that
// of a quarter of an hour, in which one that is always missing is missing 15 times, and half of that rings. It must be missing in
// two of them, one after the other: when runs begin to take longer, the ends of a minute's runs are missing in one.
func Heartbeats(shards int) []Alarm {
	const minutes = 15
	runs := float64(minutes*ScheduledRuns(shards) - minutes/2)
	return []Alarm{
		heartbeat("SweepSilent", metric.SweepRun, minutes*time.Minute, runs, 2,
			"The sweep has not run to its end in some shards, or in all, half of the time or more, for a quarter of an hour. What lost its wake-up or its worker there is not delivered, and nobody is told of what dies."),
		heartbeat("ReconcileSilent", metric.ReconcileRun, minutes*time.Minute, runs, 2,
			"The reconciler has not run to its end in some shards, or in all, half of the time or more, for a quarter of an hour. What is unknown there stays unknown."),
	}
}

// RunsOrNone counts 0 in a period without a run. An alarm on what is missing would ring later: CloudWatch looks for data in some
// periods before the ones that it judges, and takes those instead.
const RunsOrNone = "FILL(runs, 0)"

// heartbeat rings after so many periods with fewer runs.
func heartbeat(id, name string, period time.Duration, runs float64, periods int, description string) Alarm {
	counted := own(name, "Sum", period)
	counted.ID = "runs"
	return Alarm{
		ID: id, Description: description, Metrics: []Metric{counted}, Expression: RunsOrNone,
		Threshold: runs, Periods: periods, OfLast: periods, Heartbeat: true,
	}
}
