package idemconstruct

import (
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/spec"
)

const (
	// watchPeriod is what most of AWS's metrics are judged by.
	watchPeriod = 5 * time.Minute
	// slowMax is twice what a request waits for the provider, and slowRequestsMin are as many requests as a percentile needs.
	slowMax         = 10 * time.Second
	slowRequestsMin = 20
)

// Pace is how often something is called, by which its failures are judged.
type Pace = spec.Pace

// The paces: of what is called all the time, and of what runs once an hour.
var (
	Often  = spec.Often
	Hourly = spec.Hourly
)

func formula(expression string, period time.Duration, metrics map[string]awscloudwatch.IMetric) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(expression), UsingMetrics: &metrics, Period: awscdk.Duration_Seconds(jsii.Number(period.Seconds())),
	})
}

// Measured is an API Gateway of either kind.
type Measured interface {
	// MetricServerError counts answers with a 5xx status.
	MetricServerError(*awscloudwatch.MetricOptions) awscloudwatch.Metric
	// MetricCount counts requests.
	MetricCount(*awscloudwatch.MetricOptions) awscloudwatch.Metric
	// MetricLatency is the time from a request to its answer, in milliseconds.
	MetricLatency(*awscloudwatch.MetricOptions) awscloudwatch.Metric
}

// Gateway watches what clients see.
func (m *Monitor) Gateway(api Measured) {
	requests := api.MetricCount(Options("SampleCount", watchPeriod))
	m.Add(Watch{
		ID: "GatewayErrors", Metric: formula(spec.Often.Share(), watchPeriod, map[string]awscloudwatch.IMetric{
			"failures": api.MetricServerError(Options("Sum", watchPeriod)), "all": requests,
		}),
		Threshold: spec.FailedPercentMax, Periods: 1, OfLast: 2,
		Description: "At least 5 % of the requests, and at least 3, were answered with a 5xx. Clients send again with the same key.",
	})
	m.Add(Watch{
		ID: "GatewaySlow",
		Metric: formula(fmt.Sprintf("IF(requests >= %d, latency, 0)", slowRequestsMin), watchPeriod, map[string]awscloudwatch.IMetric{
			"requests": requests, "latency": api.MetricLatency(Options("p99", watchPeriod)),
		}),
		Threshold: float64(slowMax.Milliseconds()), Periods: 2, OfLast: 3,
		Description: "One request in a hundred takes 10 s or longer, of at least 20 in five minutes.",
	})
}

// Function watches one function, by what it is called in the alarms' ids.
func (m *Monitor) Function(id string, f awslambda.IFunction, p Pace) {
	const one = spec.Resource("function")
	m.described(names{one: f.FunctionName()}, spec.FunctionAlarms(id, one, p)...)
}

// Stream watches how late the outbox stream is read, by the function that reads it.
func (m *Monitor) Stream(reader awslambda.IFunction) {
	const one = spec.Resource("function")
	m.described(names{one: reader.FunctionName()}, spec.StreamLate(one))
}

// IteratorAge is how late a function reads its stream, in milliseconds.
func IteratorAge(reader awslambda.IFunction) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("AWS/Lambda"), MetricName: jsii.String("IteratorAge"),
		DimensionsMap: &map[string]*string{"FunctionName": reader.FunctionName()},
		Statistic:     jsii.String("Maximum"), Period: awscdk.Duration_Minutes(jsii.Number(1)),
	})
}

// Table watches one table and its index, where it has one.
func (m *Monitor) Table(id string, table awsdynamodb.ITableV2, index string) {
	const one = spec.Resource("table")
	m.described(names{one: table.TableName()}, spec.TableThrottled(id, one, index))
}

// Schedules watches what EventBridge could not hand to its targets.
func (m *Monitor) Schedules(rules ...awsevents.Rule) {
	of, all := names{}, make([]spec.Resource, len(rules))
	for i, rule := range rules {
		all[i] = spec.Resource(fmt.Sprint("rule ", i+1))
		of[all[i]] = rule.RuleName()
	}
	m.described(of, spec.SchedulesFail(all))
}
