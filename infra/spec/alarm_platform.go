package spec

import (
	"fmt"
	"strings"
	"time"
)

const (
	// watchPeriod is what most of AWS's metrics are judged by.
	watchPeriod = 5 * time.Minute
	// failedMin are as many failures as it takes for a share to say something.
	failedMin = 3
	// streamAgeMax is far below the two hours at which the stream's mapping gives a record up.
	streamAgeMax = 5 * time.Minute
	// throttledMax are the throttled requests of a table in a period that retries may make up for.
	throttledMax = 10
)

// FailedPercentMax is the share of requests or invocations that may fail.
const FailedPercentMax = 5

// Pace is how often something is called, by which its failures are judged: from how many on, in which period.
type Pace struct {
	// FailedMin is how many calls of a period must fail before their share is looked at.
	FailedMin int
	// Period is the time that the share is of.
	Period time.Duration
}

// The paces: of what is called all the time, and of what runs once an hour.
var (
	Often  = Pace{failedMin, watchPeriod}
	Hourly = Pace{1, time.Hour}
)

// Share is the expression of a percentage of failures, 0 below FailedMin of them. A sparse metric of failures counts as 0; a period
// without requests has no value.
func (p Pace) Share() string {
	return fmt.Sprintf("IF(FILL(failures, 0) >= %d, 100 * FILL(failures, 0) / all, 0)", p.FailedMin)
}

// FunctionAlarms are those on one function. A share of throttled invocations counts them among all: they are no invocations of
// Lambda's.
func FunctionAlarms(id string, function Resource, p Pace) []Alarm {
	of := func(as, name string) Metric {
		return Metric{ID: as, Namespace: "AWS/Lambda", Name: name, Statistic: "Sum", Period: p.Period, Dimensions: []Dimension{{Name: "FunctionName", Of: function}}}
	}
	return []Alarm{
		{
			ID: "FunctionErrors" + id, Runbook: "FunctionErrors", Expression: p.Share(), Metrics: []Metric{of("failures", "Errors"), of("all", "Invocations")},
			Threshold: FailedPercentMax, Periods: 1, OfLast: 2,
			Description: fmt.Sprintf("At least %d %% of the invocations of the function %s within %v minutes, and at least %d, failed or ran out of time.", FailedPercentMax, id, p.Period.Minutes(), p.FailedMin),
		},
		{
			ID: "FunctionThrottled" + id, Runbook: "FunctionThrottled",
			Expression: fmt.Sprintf("IF(FILL(throttled, 0) >= %d, 100 * FILL(throttled, 0) / (FILL(throttled, 0) + FILL(invoked, 0)), 0)", p.FailedMin),
			Metrics:    []Metric{of("throttled", "Throttles"), of("invoked", "Invocations")},
			Threshold:  FailedPercentMax, Periods: 1, OfLast: 2,
			Description: fmt.Sprintf("At least %d %% of the calls of the function %s within %v minutes, and at least %d, found no free execution.", FailedPercentMax, id, p.Period.Minutes(), p.FailedMin),
		},
	}
}

// VersionErrors is on the invocations of one version, by an alias that shifts to it: while it has a part of the calls only, its failures
// are few among all, and all of it may fail without an alarm on the function. Lambda counts by version for such an alias. alias is
// "function:alias".
func VersionErrors(id string, function, alias, version Resource, p Pace) Alarm {
	a := FunctionAlarms(id, function, p)[0]
	for i := range a.Metrics {
		a.Metrics[i].Dimensions = []Dimension{{Name: "FunctionName", Of: function}, {Name: "Resource", Of: alias}, {Name: "ExecutedVersion", Of: version}}
	}
	a.ID, a.Runbook = "ReleaseErrors"+id, "ReleaseErrors"
	a.Description = fmt.Sprintf("At least %d %% of the calls of the newest version of the function %s within %v minutes, and at least %d, failed or ran out of time. It takes the version back.",
		FailedPercentMax, id, p.Period.Minutes(), p.FailedMin)
	return a
}

// StreamLate is on how late the outbox stream is read, by the function that reads it.
func StreamLate(reader Resource) Alarm {
	return Alarm{
		ID: "StreamLate", Metrics: []Metric{{
			ID: "age", Namespace: "AWS/Lambda", Name: "IteratorAge", Statistic: "Maximum", Period: time.Minute, Dimensions: []Dimension{{Name: "FunctionName", Of: reader}},
		}},
		Threshold: float64(streamAgeMax.Milliseconds()), Periods: 2, OfLast: 3,
		Description: "Records of the outbox stream are read five minutes late. The sweep offers their messages meanwhile; nothing is lost.",
	}
}

// TableThrottled is on one table and its index, where it has one. Tables are throttled where a key is hot, or traffic has more than
// doubled at once; it is counted as it is, because no throttling is normal at any traffic.
func TableThrottled(id string, table Resource, index string) Alarm {
	var metrics []Metric
	for _, name := range []string{"ReadThrottleEvents", "WriteThrottleEvents"} {
		of := Dimension{Name: "TableName", Of: table}
		metrics = append(metrics, Metric{Namespace: "AWS/DynamoDB", Name: name, Dimensions: []Dimension{of}})
		if index != "" {
			metrics = append(metrics, Metric{Namespace: "AWS/DynamoDB", Name: name, Dimensions: []Dimension{of, {Name: "GlobalSecondaryIndexName", Value: index}}})
		}
	}
	return sumOf(watchPeriod, metrics, Alarm{
		ID: "TableThrottled" + id, Runbook: "TableThrottled", Threshold: throttledMax, Periods: 1, OfLast: 2,
		Description: "DynamoDB throttles the table " + id + " or its index: a hot key, or more traffic than the table has grown for.",
	})
}

// SchedulesFail is on what EventBridge could not hand to its targets.
func SchedulesFail(rules []Resource) Alarm {
	var metrics []Metric
	for _, rule := range rules {
		metrics = append(metrics, Metric{Namespace: "AWS/Events", Name: "FailedInvocations", Dimensions: []Dimension{{Name: "RuleName", Of: rule}}})
	}
	return sumOf(watchPeriod, metrics, Alarm{
		ID: "SchedulesFail", Threshold: 1, Periods: 1, OfLast: 2,
		Description: "EventBridge could not call the sweep, the reconciler or the drift job: a permission is missing, or the function is gone.",
	})
}

// sumOf is an alarm on the sum of sparse metrics within a period.
func sumOf(period time.Duration, metrics []Metric, a Alarm) Alarm {
	terms := make([]string, len(metrics))
	for i := range metrics {
		metrics[i].ID, metrics[i].Statistic, metrics[i].Period = fmt.Sprintf("m%d", i), "Sum", period
		terms[i] = "FILL(" + metrics[i].ID + ", 0)"
	}
	a.Metrics, a.Expression = metrics, strings.Join(terms, " + ")
	return a
}
