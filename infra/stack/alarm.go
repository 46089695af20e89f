package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// metricsEnvironment tells every function where its metrics go; the alarms look there. The stack's name is their only
// dimension, so that two stacks of one account don't ring for each other.
func metricsEnvironment(config Config) map[string]*string {
	return map[string]*string{
		"METRICS_NAMESPACE": jsii.String(metric.Namespace),
		"METRICS_SERVICE":   jsii.String(config.Stack),
	}
}

// alarm rings when a metric was counted so often within a period, in as many of the last periods as it says. It looks at
// more than the very last one, because a log line can reach CloudWatch late.
type alarm struct {
	id, metric, description string
	threshold               float64
	period                  time.Duration
	periods, ofLast         float64
}

// alarms are those of docs/semantics.md "Metrics" that want a person.
var alarms = []alarm{
	{
		id: "KeyMisuse", metric: metric.ReserveKeyMisuse, threshold: 5, period: 5 * time.Minute, periods: 1, ofLast: 2,
		description: "Idempotency keys come with other requests than they were made for: a client's bug, or somebody who tries keys. The log lines of this name say which tenant.",
	},
	{
		id: "StoreError", metric: metric.StoreError, threshold: 5, period: time.Minute, periods: 2, ofLast: 3,
		description: "Requests are answered with 503, because the idempotency table can't be asked or does not answer in time. Nothing is lost; clients send again.",
	},
	{
		id: "OutboxDead", metric: metric.OutboxDead, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "A message was given up, or its settlement failed. It stands in the outbox table with its evidence, and a copy in the dead-letter queue.",
	},
	{
		id: "OutboxUnknown", metric: metric.OutboxUnknown, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "An effect may or may not have happened, and its message is parked: nothing calls again. The reconciler asks the provider every minute; what it can't decide is dead after a day.",
	},
	{
		id: "OutboxAbandoned", metric: metric.OutboxAbandoned, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "Nobody has claimed a message since it was accepted, for as long as its topic allows: no worker runs. The operation was answered with 408, and nothing happened.",
	},
	{
		id: "UnknownTopic", metric: metric.OutboxUnknownTopic, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "A message has a topic that a deployed release does not know, or can't be read by it. Nothing calls: its operation stays pending until a release that knows it is deployed.",
	},
	{
		id: "RecordUnreadable", metric: metric.RecordUnreadable, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "A wrapped operation's record can't be judged by a deployed release: a later one wrote it, or it is damaged. Nothing asks what became of it: its key answers with 503 or 409 until a release that can read it is deployed.",
	},
	{
		id: "DriftFound", metric: metric.DriftFound, threshold: 1, period: time.Hour, periods: 1, ofLast: 2,
		description: "Keys, messages, payments and the provider's objects don't agree. The log lines of this name say about what; the drift function, or the command, reports all of it.",
	},
	{
		id: "DriftFailed", metric: metric.DriftFailed, threshold: 1, period: time.Hour, periods: 1, ofLast: 2,
		description: "Not all could be compared: a table or the provider did not answer, or there was no time. What was not compared is not known to be clean.",
	},
}

// addAlarms watches the functions' metrics. What is not counted is not wrong: a metric without data keeps its alarm quiet.
func addAlarms(scope constructs.Construct, config Config) {
	self := constructs.NewConstruct(scope, jsii.String("Alarms"))
	var actions *[]any
	if config.AlarmTopic != "" {
		actions = &[]any{config.AlarmTopic}
	}
	for _, a := range alarms {
		awscloudwatch.NewCfnAlarm(self, jsii.String(a.id), &awscloudwatch.CfnAlarmProps{
			AlarmDescription: jsii.String(a.description),
			Namespace:        jsii.String(metric.Namespace),
			MetricName:       jsii.String(a.metric),
			Dimensions: []any{&awscloudwatch.CfnAlarm_DimensionProperty{
				Name: jsii.String(metric.Service), Value: jsii.String(config.Stack),
			}},
			Statistic:          jsii.String("Sum"),
			Period:             jsii.Number(a.period.Seconds()),
			Threshold:          jsii.Number(a.threshold),
			ComparisonOperator: jsii.String("GreaterThanOrEqualToThreshold"),
			DatapointsToAlarm:  jsii.Number(a.periods),
			EvaluationPeriods:  jsii.Number(a.ofLast),
			TreatMissingData:   jsii.String("notBreaching"),
			AlarmActions:       actions,
		})
	}
}

// addInsights counts duplicates by tenant, from the lines of the api function: a tenant is no dimension of a metric, of
// which each value would be one more metric to pay for.
func addInsights(stack awscdk.Stack, config Config, log awslogs.ILogGroup) {
	rule := map[string]any{
		"Schema":        map[string]any{"Name": "CloudWatchLogRule", "Version": 1},
		"LogGroupNames": []any{log.LogGroupName()},
		"LogFormat":     "JSON",
		"Contribution": map[string]any{
			"Keys":    []any{"$.tenant"},
			"Filters": []any{map[string]any{"Match": "$.msg", "In": []any{metric.ReserveReplay}}},
		},
		"AggregateOn": "Count",
	}
	awscloudwatch.NewCfnInsightRule(stack, jsii.String("DuplicatesByTenant"), &awscloudwatch.CfnInsightRuleProps{
		RuleName:  jsii.String(config.Stack + "-duplicates-by-tenant"),
		RuleState: jsii.String("ENABLED"),
		RuleBody:  stack.ToJsonString(rule, nil),
	})
}
