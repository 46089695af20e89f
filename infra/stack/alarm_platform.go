package stack

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

// pace is how often something is called, by which its failures are judged: from how many on, in which period.
type pace struct {
	failedMin int
	period    time.Duration
}

var (
	often  = pace{failedMin, watchPeriod}
	hourly = pace{1, time.Hour}
)

// share is a percentage of failures, 0 below failedMin of them. A sparse metric of failures counts as 0; a period without
// requests has no value.
func (p pace) share(failures, all awscloudwatch.IMetric) awscloudwatch.IMetric {
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

// measured is an API Gateway of either kind.
type measured interface {
	MetricServerError(*awscloudwatch.MetricOptions) awscloudwatch.Metric
	MetricCount(*awscloudwatch.MetricOptions) awscloudwatch.Metric
	MetricLatency(*awscloudwatch.MetricOptions) awscloudwatch.Metric
}

// addGateway watches what clients see.
func (m monitor) addGateway(api measured) {
	requests := api.MetricCount(options("SampleCount", watchPeriod))
	m.add(watch{
		id: "GatewayErrors", metric: often.share(api.MetricServerError(options("Sum", watchPeriod)), requests),
		threshold: failedPercentMax, periods: 1, ofLast: 2,
		description: "At least 5 % of the requests, and at least 3, were answered with a 5xx. Clients send again with the same key.",
	})
	m.add(watch{
		id: "GatewaySlow",
		metric: formula(fmt.Sprintf("IF(requests >= %d, latency, 0)", slowRequestsMin), watchPeriod, map[string]awscloudwatch.IMetric{
			"requests": requests, "latency": api.MetricLatency(options("p99", watchPeriod)),
		}),
		threshold: float64(slowMax.Milliseconds()), periods: 2, ofLast: 3,
		description: "One request in a hundred takes 10 s or longer, of at least 20 in five minutes.",
	})
}

// addFunction watches one function. A share of throttled invocations counts them among all: they are no invocations of Lambda's.
func (m monitor) addFunction(id string, f awslambda.IFunction, p pace) {
	invocations := f.MetricInvocations(options("Sum", p.period))
	m.add(watch{
		id: "FunctionErrors" + id, runbook: "FunctionErrors", metric: p.share(f.MetricErrors(options("Sum", p.period)), invocations),
		threshold: failedPercentMax, periods: 1, ofLast: 2,
		description: fmt.Sprintf("At least %d %% of the invocations of the function %s within %v minutes, and at least %d, failed or ran out of time.", failedPercentMax, id, p.period.Minutes(), p.failedMin),
	})
	m.add(watch{
		id: "FunctionThrottled" + id, runbook: "FunctionThrottled",
		metric: formula(fmt.Sprintf("IF(FILL(throttled, 0) >= %d, 100 * FILL(throttled, 0) / (FILL(throttled, 0) + FILL(invoked, 0)), 0)", p.failedMin), p.period,
			map[string]awscloudwatch.IMetric{"throttled": f.MetricThrottles(options("Sum", p.period)), "invoked": invocations}),
		threshold: failedPercentMax, periods: 1, ofLast: 2,
		description: fmt.Sprintf("At least %d %% of the calls of the function %s within %v minutes, and at least %d, found no free execution.", failedPercentMax, id, p.period.Minutes(), p.failedMin),
	})
}

// addStream watches how late the outbox stream is read, by the function that reads it.
func (m monitor) addStream(reader awslambda.IFunction) {
	m.add(watch{
		id: "StreamLate", metric: iteratorAge(reader),
		threshold: float64(streamAgeMax.Milliseconds()), periods: 2, ofLast: 3,
		description: "Records of the outbox stream are read five minutes late. The sweep offers their messages meanwhile; nothing is lost.",
	})
}

func iteratorAge(reader awslambda.IFunction) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("AWS/Lambda"), MetricName: jsii.String("IteratorAge"),
		DimensionsMap: &map[string]*string{"FunctionName": reader.FunctionName()},
		Statistic:     jsii.String("Maximum"), Period: awscdk.Duration_Minutes(jsii.Number(1)),
	})
}

// addTable watches one table and its index. On-demand tables are throttled where a key is hot, or traffic has more than doubled at
// once; it is counted as it is, because no throttling is normal at any traffic.
func (m monitor) addTable(id string, table awsdynamodb.ITableV2, index string) {
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
	m.add(watch{
		id: "TableThrottled" + id, runbook: "TableThrottled", metric: sum(throttled...), threshold: throttledMax, periods: 1, ofLast: 2,
		description: "DynamoDB throttles the table " + id + " or its index: a hot key, or more traffic than the table has grown for.",
	})
}

// addUserErrors watches what DynamoDB refuses as malformed or not allowed. The metric is the whole account's in this Region:
// DynamoDB has it for no single table.
func (m monitor) addUserErrors() {
	m.add(watch{
		id: "TableUserErrors", threshold: userErrorsMax, periods: 1, ofLast: 2,
		metric: awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String("AWS/DynamoDB"), MetricName: jsii.String("UserErrors"),
			Statistic: jsii.String("Sum"), Period: awscdk.Duration_Seconds(jsii.Number(watchPeriod.Seconds())),
		}),
		description: "DynamoDB refuses requests of this account and Region as not valid or not allowed: a missing table or permission, or a bug of a release. They may be another application's.",
	})
}

// addSchedules watches what EventBridge could not hand to its targets.
func (m monitor) addSchedules(rules ...awsevents.Rule) {
	var failed []awscloudwatch.IMetric
	for _, rule := range rules {
		failed = append(failed, awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String("AWS/Events"), MetricName: jsii.String("FailedInvocations"),
			DimensionsMap: &map[string]*string{"RuleName": rule.RuleName()},
			Statistic:     jsii.String("Sum"), Period: awscdk.Duration_Seconds(jsii.Number(watchPeriod.Seconds())),
		}))
	}
	m.add(watch{
		id: "SchedulesFail", metric: sum(failed...), threshold: 1, periods: 1, ofLast: 2,
		description: "EventBridge could not call the sweep, the reconciler or the drift job: a permission is missing, or the function is gone.",
	})
}
