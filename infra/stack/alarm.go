package stack

import (
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
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

// alarms are those of docs/semantics.md "Metrics" that want a person. Every log line with alarm=true has one of its own, which
// rings at the first; a test compares them with the source.
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
		id: "SettleFailed", metric: metric.OutboxSettleFailed, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "What became of an effect is known, and could not be written. The message is dead and keeps the evidence; its client still waits.",
	},
	{
		id: "DeadLetterLost", metric: metric.OutboxDeadLetterLost, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "A message is dead, and no copy of it could be put into the dead-letter queue. The outbox table still has it, and it is reported again within a day.",
	},
	{
		id: "MessageGone", metric: metric.OutboxMessageGone, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "The provider answered about a message that is not in the outbox table: rows were lost, or the answer belongs to another deployment.",
	},
	{
		id: "EvidenceLate", metric: metric.OutboxEvidenceLate, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "The provider answered about a message after its operation had failed. The client was told that it failed; the effect may exist.",
	},
	{
		id: "EvidenceDiffers", metric: metric.OutboxEvidenceDiffers, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "Two answers about one message contradict each other, or name two objects of the provider: there may be two charges.",
	},
	{
		id: "EvidenceWeak", metric: metric.OutboxEvidenceWeak, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "The provider declined one attempt of several, and nobody knows which. The decline is kept and settles nothing, because another attempt may have been executed.",
	},
	{
		id: "OutboxRedriven", metric: metric.OutboxRedriven, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "A dead message was started again by hand. If nobody of you did it, find out who did.",
	},
	{
		id: "OutboxClosed", metric: metric.OutboxClosed, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "A message was closed by hand, and its operation failed. If nobody of you did it, find out who did.",
	},
	{
		id: "ReconcileFailed", metric: metric.ReconcileFailed, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "An operation's outcome is unknown, and nobody can be asked about it, or a day of questions has decided nothing. Only a person can end it.",
	},
	{
		id: "RunMax", metric: metric.RunMax, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "A wrapped handler has run for longer than its lease is renewed. Its outcome becomes unknown when the lease is over.",
	},
	{
		id: "SealNotAuthentic", metric: metric.SealNotAuthentic, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "Stored ciphertext can't be authenticated: it was changed, or stands in another row than it was written to. A security signal.",
	},
	{
		id: "TimeoutShort", metric: metric.TimeoutShort, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "A function's time-out is shorter than the stack declared. It executes nothing, and the API answers 503.",
	},
	{
		id: "WebhookContradicts", metric: metric.WebhookContradicts, threshold: 1, period: time.Minute, periods: 1, ofLast: 5,
		description: "A signed webhook contradicts an earlier one, itself, or what was asked for. It was acknowledged, and settled nothing by its contents.",
	},
	{
		id: "DriftFound", metric: metric.DriftFound, threshold: 1, period: time.Hour, periods: 1, ofLast: 2,
		description: "Keys, messages, payments and the provider's objects don't agree. The log lines of this name say about what; the drift function, or the command, reports all of it.",
	},
	{
		id: "DriftFailed", metric: metric.DriftFailed, threshold: 1, period: time.Hour, periods: 1, ofLast: 2,
		description: "Not all could be compared: a table or the provider did not answer, or there was no time. What was not compared is not known to be clean.",
	},
	{
		id: "DriftLate", metric: metric.DriftLate, threshold: 1, period: time.Hour, periods: 1, ofLast: 2,
		description: "An hour is not compared two hours after it could have been: its pieces fail, or there are more rows than the drift job compares in an hour.",
	},
}

// watch is an alarm on a metric of whoever's.
type watch struct {
	// id is the alarm's, and runbook is its heading in docs/operator.md where that is another.
	id, runbook, description string
	metric                   awscloudwatch.IMetric
	// threshold rings at this value and above, in so many of the last periods.
	threshold       float64
	periods, ofLast float64
	// heartbeat rings below the threshold instead, and where there is no data at all.
	heartbeat bool
}

// monitor adds alarms with the same place to send them to.
type monitor struct {
	config Config
	self   constructs.Construct
	topic  awscloudwatch.IAlarmAction // nil where none is wanted
}

func newMonitor(scope constructs.Construct, config Config) monitor {
	m := monitor{config: config, self: constructs.NewConstruct(scope, jsii.String("Alarms"))}
	if config.AlarmTopic != NoAlarmTopic {
		m.topic = awscloudwatchactions.NewSnsAction(awssns.Topic_FromTopicArn(m.self, jsii.String("Topic"), jsii.String(config.AlarmTopic)))
	}
	return m
}

// add makes one alarm. What is not counted is not wrong, but for a heartbeat.
func (m monitor) add(w watch) {
	comparison, missing := awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD, awscloudwatch.TreatMissingData_NOT_BREACHING
	if w.heartbeat {
		comparison, missing = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD, awscloudwatch.TreatMissingData_BREACHING
	}
	runbook := w.id
	if w.runbook != "" {
		runbook = w.runbook
	}
	made := awscloudwatch.NewAlarm(m.self, jsii.String(w.id), &awscloudwatch.AlarmProps{
		AlarmDescription:   jsii.String(strings.Join([]string{w.description, "Runbook: docs/operator.md, " + runbook + "."}, " ")),
		Metric:             w.metric,
		Threshold:          jsii.Number(w.threshold),
		ComparisonOperator: comparison,
		DatapointsToAlarm:  jsii.Number(w.periods),
		EvaluationPeriods:  jsii.Number(w.ofLast),
		TreatMissingData:   missing,
	})
	if m.topic != nil {
		made.AddAlarmAction(m.topic)
	}
}

// metric is one of the functions' own metrics.
func (m monitor) metric(name, statistic string, period time.Duration) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(metric.Namespace), MetricName: jsii.String(name),
		DimensionsMap: &map[string]*string{metric.Service: jsii.String(m.config.Stack)},
		Statistic:     jsii.String(statistic), Period: awscdk.Duration_Seconds(jsii.Number(period.Seconds())),
	})
}

// addCounts watches what the functions count.
func (m monitor) addCounts() {
	for _, a := range alarms {
		m.add(watch{
			id: a.id, description: a.description, metric: m.metric(a.metric, "Sum", a.period),
			threshold: a.threshold, periods: a.periods, ofLast: a.ofLast,
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
