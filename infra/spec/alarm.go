package spec

import (
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// Alarm is an alarm of CloudWatch. A period without data does not raise it, except for a heartbeat.
type Alarm struct {
	// ID is the alarm's name. Runbook is its heading among the runbooks; "" means that it is the ID.
	ID, Runbook string
	// Description says what has happened, for the operator who is called.
	Description string
	// Metrics are what the alarm looks at.
	Metrics []Metric
	// Expression is CloudWatch's metric math over the metrics' IDs. Without it there is one metric, which is looked at itself.
	Expression string
	// Threshold is the value from which on a period counts.
	Threshold float64
	// Periods of the last OfLast periods must count for the alarm to be raised.
	Periods, OfLast int
	// Least is the threshold of the first metric alone, where the expression is left out: on emulators.
	Least float64
	// Heartbeat rings below the threshold instead, and where there is no data at all.
	Heartbeat bool
	// Quiet has the alarm tell nobody: others ring at the same, and this one is read by machines. None of [Alarms] is quiet.
	Quiet bool
}

// Metric is what an alarm looks at.
type Metric struct {
	// ID is the metric's name in the alarm's expression.
	ID string
	// Namespace, Name and Statistic are CloudWatch's, such as AWS/Lambda, Errors and Sum.
	Namespace, Name, Statistic string
	// Period is the time that one value is of.
	Period time.Duration
	// Dimensions say which metric of the name it is.
	Dimensions []Dimension
}

// Dimension is a dimension of a metric of CloudWatch.
type Dimension struct {
	// Name is the dimension's, such as FunctionName.
	Name string
	// Of is the resource whose name is the dimension's value. Where it is "", Value is the value.
	Of    Resource
	Value string
}

// Service is the value of the functions' variable METRICS_SERVICE, which is the one dimension of their own metrics.
const Service Resource = "service"

// FunctionOf is the function of a role.
func FunctionOf(role string) Resource { return Resource("function " + role) }

// Runbooks is where the sections are that alarms name, unless somebody says otherwise.
const Runbooks = "https://github.com/idem-go/idem-aws/blob/main/docs/operator.md"

// Described is an alarm's description with its runbook.
func Described(description, runbooks, heading string) string {
	return description + " Runbook: " + runbooks + ", " + heading + "."
}

// Alarms are those of an application with its default resources: functions, their schedule's rules and the tables of package schema,
// whose indexes are named.
func Alarms(functions []Function, rules []Resource, recordsIndex, messagesIndex string) []Alarm {
	var all []Alarm
	for _, c := range counts {
		all = append(all, c.Alarm(FunctionOf(environment.API)))
	}
	reader := functions[slices.IndexFunc(functions, func(f Function) bool { return f.ReadsStream() })]
	all = slices.Concat(all, QueueAlarms(Visibility(WorkerTimeout, BatchRecords)), Heartbeats(Shards), Backlog(), []Alarm{StreamLate(FunctionOf(reader.Role))})
	for _, f := range functions {
		all = append(all, FunctionAlarms(f.ConstructID(), FunctionOf(f.Role), Often)...)
	}
	return append(all, TableThrottled("Idempotency", IdempotencyTable, recordsIndex),
		TableThrottled("Outbox", OutboxTable, messagesIndex), SchedulesFail(rules))
}

// own is one of the functions' own metrics.
func own(name, statistic string, period time.Duration) Metric {
	return Metric{
		ID: "own", Namespace: metric.Namespace, Name: name, Statistic: statistic, Period: period,
		Dimensions: []Dimension{{Name: metric.Service, Of: Service}},
	}
}
