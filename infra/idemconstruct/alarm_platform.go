package idemconstruct

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
)

const (
	// watchPeriod is what most of AWS's metrics are judged by.
	watchPeriod = 5 * time.Minute
	// failedPercentMax is the share of requests or invocations that may fail, and failedMin are as many failures as it takes
	// for a share to say something.
	failedPercentMax = 5
	failedMin        = 3
	// slowMax is twice what a request waits for the provider, and slowRequestsMin are as many requests as a percentile needs.
	slowMax         = 10 * time.Second
	slowRequestsMin = 20
	// streamAgeMax is far below the two hours at which the stream's mapping gives a record up.
	streamAgeMax = 5 * time.Minute
	// throttledMax are the throttled requests of a table in a period that retries may make up for.
	throttledMax = 10
	// userErrorsMax are the refused requests of an account in a period that say that something is wrong with ours.
	userErrorsMax = 10
)

// Pace is how often something is called, by which its failures are judged: from how many on, in which period.
type Pace struct {
	failedMin int
	period    time.Duration
}

// The paces: of what is called all the time, and of what runs once an hour.
var (
	Often  = Pace{failedMin, watchPeriod}
	Hourly = Pace{1, time.Hour}
)

// share is a percentage of failures, 0 below failedMin of them. A sparse metric of failures counts as 0; a period without
// requests has no value.
func (p Pace) share(failures, all awscloudwatch.IMetric) awscloudwatch.IMetric {
	return formula(fmt.Sprintf("IF(FILL(failures, 0) >= %d, 100 * FILL(failures, 0) / all, 0)", p.failedMin), p.period,
		map[string]awscloudwatch.IMetric{"failures": failures, "all": all})
}

func formula(expression string, period time.Duration, metrics map[string]awscloudwatch.IMetric) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(expression), UsingMetrics: &metrics, Period: awscdk.Duration_Seconds(jsii.Number(period.Seconds())),
	})
}

// sum adds sparse metrics up.
func sum(metrics ...awscloudwatch.IMetric) awscloudwatch.IMetric {
	named, terms := map[string]awscloudwatch.IMetric{}, make([]string, len(metrics))
	for i, m := range metrics {
		name := fmt.Sprintf("m%d", i)
		named[name], terms[i] = m, "FILL("+name+", 0)"
	}
	return formula(strings.Join(terms, " + "), watchPeriod, named)
}

// Measured is an API Gateway of either kind.
type Measured interface {
	MetricServerError(*awscloudwatch.MetricOptions) awscloudwatch.Metric
	MetricCount(*awscloudwatch.MetricOptions) awscloudwatch.Metric
	MetricLatency(*awscloudwatch.MetricOptions) awscloudwatch.Metric
}

// Gateway watches what clients see.
func (m *Monitor) Gateway(api Measured) {
	requests := api.MetricCount(Options("SampleCount", watchPeriod))
	m.Add(Watch{
		ID: "GatewayErrors", Metric: Often.share(api.MetricServerError(Options("Sum", watchPeriod)), requests),
		Threshold: failedPercentMax, Periods: 1, OfLast: 2,
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

// Function watches one function. A share of throttled invocations counts them among all: they are no invocations of Lambda's.
func (m *Monitor) Function(id string, f awslambda.IFunction, p Pace) {
	invocations := f.MetricInvocations(Options("Sum", p.period))
	m.Add(Watch{
		ID: "FunctionErrors" + id, Runbook: "FunctionErrors", Metric: p.share(f.MetricErrors(Options("Sum", p.period)), invocations),
		Threshold: failedPercentMax, Periods: 1, OfLast: 2,
		Description: fmt.Sprintf("At least %d %% of the invocations of the function %s within %v minutes, and at least %d, failed or ran out of time.", failedPercentMax, id, p.period.Minutes(), p.failedMin),
	})
	m.Add(Watch{
		ID: "FunctionThrottled" + id, Runbook: "FunctionThrottled",
		Metric: formula(fmt.Sprintf("IF(FILL(throttled, 0) >= %d, 100 * FILL(throttled, 0) / (FILL(throttled, 0) + FILL(invoked, 0)), 0)", p.failedMin), p.period,
			map[string]awscloudwatch.IMetric{"throttled": f.MetricThrottles(Options("Sum", p.period)), "invoked": invocations}),
		Threshold: failedPercentMax, Periods: 1, OfLast: 2,
		Description: fmt.Sprintf("At least %d %% of the calls of the function %s within %v minutes, and at least %d, found no free execution.", failedPercentMax, id, p.period.Minutes(), p.failedMin),
	})
}

// Stream watches how late the outbox stream is read, by the function that reads it.
func (m *Monitor) Stream(reader awslambda.IFunction) {
	m.Add(Watch{
		ID: "StreamLate", Metric: IteratorAge(reader),
		Threshold: float64(streamAgeMax.Milliseconds()), Periods: 2, OfLast: 3,
		Description: "Records of the outbox stream are read five minutes late. The sweep offers their messages meanwhile; nothing is lost.",
	})
}

// IteratorAge is how late a function reads its stream, in milliseconds.
func IteratorAge(reader awslambda.IFunction) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("AWS/Lambda"), MetricName: jsii.String("IteratorAge"),
		DimensionsMap: &map[string]*string{"FunctionName": reader.FunctionName()},
		Statistic:     jsii.String("Maximum"), Period: awscdk.Duration_Minutes(jsii.Number(1)),
	})
}

// Table watches one table and its index. On-demand tables are throttled where a key is hot, or traffic has more than doubled at
// once; it is counted as it is, because no throttling is normal at any traffic.
func (m *Monitor) Table(id string, table awsdynamodb.ITableV2, index string) {
	of := func(name string, dimensions map[string]*string) awscloudwatch.IMetric {
		dimensions["TableName"] = table.TableName()
		return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String("AWS/DynamoDB"), MetricName: jsii.String(name), DimensionsMap: &dimensions,
			Statistic: jsii.String("Sum"), Period: awscdk.Duration_Seconds(jsii.Number(watchPeriod.Seconds())),
		})
	}
	var throttled []awscloudwatch.IMetric
	for _, name := range []string{"ReadThrottleEvents", "WriteThrottleEvents"} {
		throttled = append(throttled, of(name, map[string]*string{}))
		if index != "" {
			throttled = append(throttled, of(name, map[string]*string{"GlobalSecondaryIndexName": jsii.String(index)}))
		}
	}
	m.Add(Watch{
		ID: "TableThrottled" + id, Runbook: "TableThrottled", Metric: sum(throttled...), Threshold: throttledMax, Periods: 1, OfLast: 2,
		Description: "DynamoDB throttles the table " + id + " or its index: a hot key, or more traffic than the table has grown for.",
	})
}

// UserErrors watches what DynamoDB refuses as malformed or not allowed. The metric is the whole account's in this Region:
// DynamoDB has it for no single table.
func (m *Monitor) UserErrors() {
	m.Add(Watch{
		ID: "TableUserErrors", Threshold: userErrorsMax, Periods: 1, OfLast: 2,
		Metric: awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String("AWS/DynamoDB"), MetricName: jsii.String("UserErrors"),
			Statistic: jsii.String("Sum"), Period: awscdk.Duration_Seconds(jsii.Number(watchPeriod.Seconds())),
		}),
		Description: "DynamoDB refuses requests of this account and Region as not valid or not allowed: a missing table or permission, or a bug of a release. They may be another application's.",
	})
}

// Schedules watches what EventBridge could not hand to its targets.
func (m *Monitor) Schedules(rules ...awsevents.Rule) {
	var failed []awscloudwatch.IMetric
	for _, rule := range rules {
		failed = append(failed, awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String("AWS/Events"), MetricName: jsii.String("FailedInvocations"),
			DimensionsMap: &map[string]*string{"RuleName": rule.RuleName()},
			Statistic:     jsii.String("Sum"), Period: awscdk.Duration_Seconds(jsii.Number(watchPeriod.Seconds())),
		}))
	}
	m.Add(Watch{
		ID: "SchedulesFail", Metric: sum(failed...), Threshold: 1, Periods: 1, OfLast: 2,
		Description: "EventBridge could not call the sweep, the reconciler or the drift job: a permission is missing, or the function is gone.",
	})
}
