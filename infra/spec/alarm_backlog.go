package spec

import (
	"time"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

const (
	// dueAgeMax is as many runs of the sweep as deliver what only lost its wake-up.
	dueAgeMax = 10 * time.Minute
	// unknownAgeMax is longer than a provider is away usually, and long before what is unknown is dead.
	unknownAgeMax = 2 * time.Hour
)

// Backlog are the alarms on how long it takes what waits. What is unknown is asked about once an hour at least, and tells its age then.
func Backlog() []Alarm {
	return []Alarm{
		{
			ID: "DueOld", Metrics: []Metric{own(metric.OutboxDueAge, "Maximum", time.Minute)}, Threshold: float64(dueAgeMax.Milliseconds()), Periods: 3, OfLast: 5,
			Description: "A message should have been delivered ten minutes ago, or a wrapped operation parked: the sweep offers it, and nobody brings it to an end.",
		},
		{
			ID: "UnknownOld", Metrics: []Metric{own(metric.OutboxUnknownAge, "Maximum", time.Hour)}, Threshold: float64(unknownAgeMax.Milliseconds()), Periods: 1, OfLast: 2,
			Description: "An operation that is two hours old is unknown: the provider's answers don't decide it. It is dead when it is a day old.",
		},
	}
}
