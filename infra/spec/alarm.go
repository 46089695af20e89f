package spec

import (
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// Alarm is one of CloudWatch. It rings when Expression of the metrics, or the only one without it, is at Threshold or above in so many
// (Periods) of the last (OfLast) periods. What is not counted is not wrong.
type Alarm struct {
	// ID is the alarm's, and Runbook is its heading among the runbooks where that is another.
	ID, Runbook, Description string
	Metrics                  []Metric
	Expression               string
	Threshold                float64
	Periods, OfLast          int
	// Least is the threshold of the first metric alone, where the expression is left out: on emulators.
	Least float64
	// Heartbeat rings below the threshold instead, and where there is no data at all.
	Heartbeat bool
}

// Metric is what an alarm looks at. ID is its name in the alarm's expression.
type Metric struct {
	ID, Namespace, Name, Statistic string
	Period                         time.Duration
	Dimensions                     []Dimension
}

// Dimension is the name of a resource, or Value where Of is empty.
type Dimension struct {
	Name  string
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
	all = slices.Concat(all, QueueAlarms(WorkerTimeout), Heartbeats(Shards), Backlog(), []Alarm{StreamLate(FunctionOf(reader.Role)), UserErrors()})
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
