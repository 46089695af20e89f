package spec

import (
	"fmt"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// Count is an alarm on how often a metric was counted. It looks at more than the last period, because a log line can reach
// CloudWatch late.
type Count struct {
	// ID is the alarm's name, and its runbook's heading. Metric is one of package metric.
	ID, Metric string
	// Description says what has happened, for the operator who is called.
	Description string
	// Threshold is how often it must be counted within Period.
	Threshold float64
	// Percent has it ring only where it was counted in so many percent of the API function's invocations, too: what clients cause by
	// themselves now and then, or a network does, is counted at any time where there is traffic. Default 0: at the threshold.
	Percent float64
	// Period is the time within which it is counted.
	Period time.Duration
	// Periods of the last OfLast periods must reach the threshold.
	Periods, OfLast int
}

// Counts are the alarms on metrics of the library that an operator has to look at (docs/semantics.md "Metrics"). Every log line
// with alarm=true has an alarm of its own, which is raised at the first line; a test compares them with the source.
func Counts() []Count { return slices.Clone(counts) }

var counts = []Count{
	{
		ID: "KeyMisuse", Metric: metric.ReserveKeyMisuse, Threshold: 5, Percent: countedPercentMax, Period: 5 * time.Minute, Periods: 1, OfLast: 2,
		Description: "At least 1 % of the requests of five minutes, and at least 5, were of this kind: idempotency keys come with other requests than they were made for: a client's bug, or somebody who tries keys. The log lines of this name say which tenant.",
	},
	{
		ID: "StoreError", Metric: metric.StoreError, Threshold: 5, Percent: countedPercentMax, Period: time.Minute, Periods: 2, OfLast: 3,
		Description: "At least 1 % of the requests of a minute, and at least 5, are answered with 503, because the idempotency table can't be asked or does not answer in time. Nothing is lost; clients send again.",
	},
	{
		ID: "StoreRefused", Metric: metric.StoreRefused, Threshold: 3, Period: 5 * time.Minute, Periods: 1, OfLast: 2,
		Description: "DynamoDB refuses calls of the functions as not allowed or not valid: a missing table or permission, or a bug of a release. The log lines of this name have the call and DynamoDB's message.",
	},
	{
		ID: "OutboxUnauthorized", Metric: metric.OutboxUnauthorized, Threshold: 10, Period: 5 * time.Minute, Periods: 2, OfLast: 3,
		Description: "The provider refuses the functions' credential. Nothing is executed, and what waits is called again until it is as old as its topic allows, a day by default: then its operation fails.",
	},
	{
		// One message that waits is called seven times in a period at least, where each call takes its 5 s to fail. A provider that
		// restarts refuses more calls than that, within two periods: three are touched only where it is away for five minutes.
		ID: "OutboxUnsent", Metric: metric.OutboxUnsent, Threshold: 5, Period: 5 * time.Minute, Periods: 3, OfLast: 4,
		Description: "Calls to the provider do not leave: it can't be reached, or there is nothing to call it with. Nothing is executed, and what waits is called again until it is as old as its topic allows, a day by default: then its operation fails.",
	},
	{
		ID: "OutboxDead", Metric: metric.OutboxDead, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "A message was given up, or its settlement failed. It stands in the outbox table with its evidence, and a copy in the dead-letter queue.",
	},
	{
		ID: "OutboxUnknown", Metric: metric.OutboxUnknown, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "An effect may or may not have happened, and its message is parked: nothing calls again. The reconciler asks the provider every minute; what it can't decide is dead after a day.",
	},
	{
		ID: "OutboxAbandoned", Metric: metric.OutboxAbandoned, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "Nobody has claimed a message since it was accepted, for as long as its topic allows: no worker runs. The operation was answered with 408, and nothing happened.",
	},
	{
		ID: "UnknownTopic", Metric: metric.OutboxUnknownTopic, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "A message has a topic that a deployed release does not know, or can't be read by it. Nothing calls: its operation stays pending until a release that knows it is deployed.",
	},
	{
		ID: "RecordUnreadable", Metric: metric.RecordUnreadable, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "A wrapped operation's record can't be judged by a deployed release: a later one wrote it, or it is damaged. Nothing asks what became of it: its key answers with 503 or 409 until a release that can read it is deployed.",
	},
	{
		ID: "SettleFailed", Metric: metric.OutboxSettleFailed, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "What became of an effect is known, and could not be written. The message is dead and keeps the evidence; its client still waits.",
	},
	{
		ID: "DeadLetterLost", Metric: metric.OutboxDeadLetterLost, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "A message is dead, and no copy of it could be put into the dead-letter queue. The outbox table still has it, and it is reported again within a day.",
	},
	{
		ID: "MessageGone", Metric: metric.OutboxMessageGone, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "The provider answered about a message that is not in the outbox table, or an operation waits for one: rows were lost, or the answer belongs to another deployment.",
	},
	{
		ID: "EvidenceLate", Metric: metric.OutboxEvidenceLate, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "The provider answered about a message after its operation had failed. The client was told that it failed; the effect may exist.",
	},
	{
		ID: "EvidenceDiffers", Metric: metric.OutboxEvidenceDiffers, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "Two answers about one message contradict each other, or name two objects of the provider: there may be two charges.",
	},
	{
		ID: "EvidenceWeak", Metric: metric.OutboxEvidenceWeak, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "The provider declined one attempt of several, and nobody knows which. The decline is kept and settles nothing, because another attempt may have been executed.",
	},
	{
		ID: "OutboxRedriven", Metric: metric.OutboxRedriven, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "A dead message was started again by hand. If nobody of you did it, find out who did.",
	},
	{
		ID: "OutboxClosed", Metric: metric.OutboxClosed, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "A message was closed by hand, and its operation failed. If nobody of you did it, find out who did.",
	},
	{
		ID: "ReconcileFailed", Metric: metric.ReconcileFailed, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "An operation's outcome is unknown, and nobody can be asked about it, or a day of questions has decided nothing. Only a person can end it.",
	},
	{
		ID: "RunMax", Metric: metric.RunMax, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "A wrapped handler has run for longer than its lease is renewed. Its outcome becomes unknown when the lease is over.",
	},
	{
		ID: "SealNotAuthentic", Metric: metric.SealNotAuthentic, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "Stored ciphertext can't be authenticated: it was changed, or stands in another row than it was written to. A security signal.",
	},
	{
		ID: "TimeoutShort", Metric: metric.TimeoutShort, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "A function's time-out is shorter than the stack declared. It executes nothing, and the API answers 503.",
	},
}

// AnyOf is one alarm on several counts of one period that ring at the first line each. It stands for their alarms where only so many
// alarms are looked at, and tells nobody by itself: theirs do.
func AnyOf(id, description string, some ...Count) Alarm {
	metrics := make([]Metric, len(some))
	for i, c := range some {
		metrics[i] = own(c.Metric, "Sum", c.Period)
	}
	return sumOf(some[0].Period, metrics, Alarm{
		ID: id, Description: description, Threshold: some[0].Threshold, Periods: some[0].Periods, OfLast: some[0].OfLast, Quiet: true,
	})
}

// countedPercentMax is a tenth of the calls of a new version that has 10 % of them: StoreError takes it back.
const countedPercentMax = 1

// Alarm is a count as an alarm. api is the function whose invocations are the requests.
func (c Count) Alarm(api Resource) Alarm {
	if c.Percent > 0 {
		counted := own(c.Metric, "Sum", c.Period)
		counted.ID = "counted"
		return Alarm{
			ID: c.ID, Description: c.Description, Threshold: c.Percent, Periods: c.Periods, OfLast: c.OfLast, Least: c.Threshold,
			Expression: fmt.Sprintf("IF(FILL(counted, 0) >= %v, 100 * FILL(counted, 0) / all, 0)", c.Threshold),
			Metrics: []Metric{counted, {
				ID: "all", Namespace: "AWS/Lambda", Name: "Invocations", Statistic: "Sum", Period: c.Period, Dimensions: []Dimension{{Name: "FunctionName", Of: api}},
			}},
		}
	}
	return Alarm{
		ID: c.ID, Description: c.Description, Metrics: []Metric{own(c.Metric, "Sum", c.Period)},
		Threshold: c.Threshold, Periods: c.Periods, OfLast: c.OfLast,
	}
}
