package idemconstruct

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// Count is an alarm that rings when a metric was counted so often within a period, in as many of the last periods as it says. It looks at
// more than the very last one, because a log line can reach CloudWatch late.
type Count struct {
	// ID is the alarm's, and its runbook's heading.
	ID, Metric, Description string
	Threshold               float64
	Period                  time.Duration
	Periods, OfLast         float64
}

// Counts are the alarms on what the library's log lines count, those of docs/semantics.md "Metrics" that want a person. Every log line
// with alarm=true has one of its own, which rings at the first; a test compares them with the source.
func Counts() []Count { return slices.Clone(counts) }

var counts = []Count{
	{
		ID: "KeyMisuse", Metric: metric.ReserveKeyMisuse, Threshold: 5, Period: 5 * time.Minute, Periods: 1, OfLast: 2,
		Description: "Idempotency keys come with other requests than they were made for: a client's bug, or somebody who tries keys. The log lines of this name say which tenant.",
	},
	{
		ID: "StoreError", Metric: metric.StoreError, Threshold: 5, Period: time.Minute, Periods: 2, OfLast: 3,
		Description: "Requests are answered with 503, because the idempotency table can't be asked or does not answer in time. Nothing is lost; clients send again.",
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
		Description: "The provider answered about a message that is not in the outbox table: rows were lost, or the answer belongs to another deployment.",
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

// Watch is an alarm on a metric of whoever's.
type Watch struct {
	// ID is the alarm's, and Runbook is its heading among the runbooks where that is another.
	ID, Runbook, Description string
	Metric                   awscloudwatch.IMetric
	// Threshold rings at this value and above, in so many (Periods) of the last (OfLast) periods.
	Threshold       float64
	Periods, OfLast float64
	// Heartbeat rings below the threshold instead, and where there is no data at all.
	Heartbeat bool
}

// runbooks is where the sections are that alarms name, unless a Monitor says otherwise.
const runbooks = "https://github.com/idem-go/idem-aws/blob/main/docs/operator.md"

// NoTopic is the value of MonitorProps.Topic for alarms that only show.
const NoTopic = "none"

// MonitorProps are what all alarms of an application have in common.
type MonitorProps struct {
	// Topic is the ARN of the SNS topic that alarms go to, or [NoTopic]. Required.
	Topic string
	// Service is the value of the metrics' one dimension: the functions' variable METRICS_SERVICE. Required.
	Service string
	// Runbooks says where the runbooks are, in each alarm's description. Default: docs/operator.md of this project.
	Runbooks string
	// Plain leaves the expression out of the heartbeats, which emulators refuse. Other alarms on expressions must not be added then.
	Plain bool
}

// Monitor adds alarms with the same place to send them to.
type Monitor struct {
	constructs.Construct
	props MonitorProps
	topic awscloudwatch.IAlarmAction // nil where none is wanted
	made  map[string]awscloudwatch.IAlarm
}

// NewMonitor returns a monitor that adds its alarms below id. It panics without a topic, which must be chosen.
func NewMonitor(scope constructs.Construct, id string, props MonitorProps) *Monitor {
	if props.Topic == "" || props.Service == "" {
		panic(fmt.Sprintf("idemconstruct: MonitorProps.Topic = %q, MonitorProps.Service = %q: must be the ARN of an SNS topic or %q, and a name", props.Topic, props.Service, NoTopic))
	}
	props.Runbooks = cmp.Or(props.Runbooks, runbooks)
	m := &Monitor{Construct: constructs.NewConstruct(scope, jsii.String(id)), props: props, made: map[string]awscloudwatch.IAlarm{}}
	if props.Topic != NoTopic {
		m.topic = awscloudwatchactions.NewSnsAction(awssns.Topic_FromTopicArn(m.Construct, jsii.String("Topic"), jsii.String(props.Topic)))
	}
	return m
}

// Add makes one alarm. What is not counted is not wrong, but for a heartbeat.
func (m *Monitor) Add(w Watch) {
	comparison, missing := awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD, awscloudwatch.TreatMissingData_NOT_BREACHING
	if w.Heartbeat {
		comparison, missing = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD, awscloudwatch.TreatMissingData_BREACHING
	}
	made := awscloudwatch.NewAlarm(m.Construct, jsii.String(w.ID), &awscloudwatch.AlarmProps{
		AlarmDescription:   jsii.String(strings.Join([]string{w.Description, "Runbook: " + m.props.Runbooks + ", " + cmp.Or(w.Runbook, w.ID) + "."}, " ")),
		Metric:             w.Metric,
		Threshold:          jsii.Number(w.Threshold),
		ComparisonOperator: comparison,
		DatapointsToAlarm:  jsii.Number(w.Periods),
		EvaluationPeriods:  jsii.Number(w.OfLast),
		TreatMissingData:   missing,
	})
	if m.topic != nil {
		made.AddAlarmAction(m.topic)
	}
	m.made[w.ID] = made
}

// Alarms are those that were made, by their ids.
func (m *Monitor) Alarms() map[string]awscloudwatch.IAlarm { return maps.Clone(m.made) }

// Metric is one of the functions' own metrics.
func (m *Monitor) Metric(name, statistic string, period time.Duration) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(metric.Namespace), MetricName: jsii.String(name),
		DimensionsMap: &map[string]*string{metric.Service: jsii.String(m.props.Service)},
		Statistic:     jsii.String(statistic), Period: awscdk.Duration_Seconds(jsii.Number(period.Seconds())),
	})
}

// Counts watches what the functions count.
func (m *Monitor) Counts(alarms ...Count) {
	for _, a := range alarms {
		m.Add(Watch{
			ID: a.ID, Description: a.Description, Metric: m.Metric(a.Metric, "Sum", a.Period),
			Threshold: a.Threshold, Periods: a.Periods, OfLast: a.OfLast,
		})
	}
}
