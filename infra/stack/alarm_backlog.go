package stack

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

// addBacklog watches how long it takes what waits. What is unknown is asked about once an hour at least, and tells its age then.
func (m monitor) addBacklog() {
	m.add(watch{
		id: "DueOld", metric: m.metric(metric.OutboxDueAge, "Maximum", time.Minute), threshold: float64(dueAgeMax.Milliseconds()), periods: 3, ofLast: 5,
		description: "A message should have been delivered ten minutes ago, or a wrapped operation parked: the sweep offers it, and nobody brings it to an end.",
	})
	m.add(watch{
		id: "UnknownOld", metric: m.metric(metric.OutboxUnknownAge, "Maximum", time.Hour), threshold: float64(unknownAgeMax.Milliseconds()), periods: 1, ofLast: 2,
		description: "An operation that is two hours old is unknown: the provider's answers don't decide it. It is dead when it is a day old.",
	})
}
