package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// metricsEnvironment tells every function where its metrics go; the alarms look there. The stack's name is their only
// dimension, so that two stacks of one account don't ring for each other.
func metricsEnvironment(config Config) map[string]*string {
	return map[string]*string{
		"METRICS_NAMESPACE": jsii.String(metric.Namespace),
		"METRICS_SERVICE":   jsii.String(config.Stack),
	}
}

// counts are the alarms on what this application's own functions count, beside those of the library.
var counts = []idemconstruct.Count{
	{
		ID: "WebhookContradicts", Metric: metric.WebhookContradicts, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "A signed webhook contradicts an earlier one, itself, or what was asked for. It was acknowledged, and settled nothing by its contents.",
	},
	{
		ID: "DriftFound", Metric: metric.DriftFound, Threshold: 1, Period: time.Hour, Periods: 1, OfLast: 2,
		Description: "Keys, messages, payments and the provider's objects don't agree. The log lines of this name say about what; the drift function, or the command, reports all of it.",
	},
	{
		ID: "DriftFailed", Metric: metric.DriftFailed, Threshold: 1, Period: time.Hour, Periods: 1, OfLast: 2,
		Description: "Not all could be compared: a table or the provider did not answer, or there was no time. What was not compared is not known to be clean.",
	},
	{
		ID: "DriftLate", Metric: metric.DriftLate, Threshold: 1, Period: time.Hour, Periods: 1, OfLast: 2,
		Description: "An hour is not compared two hours after it could have been: its pieces fail, or there are more rows than the drift job compares in an hour.",
	},
}

// webhookCounts are those on what the webhook function counts, by its own calls: among those of the gateway too few fail to be seen.
var webhookCounts = []idemconstruct.Count{
	{
		ID: "WebhookFailed", Metric: metric.WebhookFailed, Threshold: 3, Percent: 1, Period: 5 * time.Minute, Periods: 1, OfLast: 2,
		Description: "At least 1 % of the calls of the webhook function in five minutes, and at least 3, are signed webhooks that were answered with 503, or with 400 because their bodies can't be read. Nothing of them was acknowledged; the provider sends them again.",
	},
}

func newMonitor(scope constructs.Construct, config Config) *idemconstruct.Monitor {
	return idemconstruct.NewMonitor(scope, "Alarms", idemconstruct.MonitorProps{
		Topic: config.AlarmTopic, Service: config.Stack, Runbooks: "docs/operator.md", Plain: config.Local,
	})
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
