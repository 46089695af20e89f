package idemconstruct

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
	"github.com/idem-go/idem-aws/infra/spec"
)

// Count is an alarm on what log lines count, and Counts are those of the library: see package spec.
type Count = spec.Count

// Counts are the alarms on what the library's log lines count.
func Counts() []Count { return spec.Counts() }

// Watch is an alarm on any metric of CloudWatch, such as one of your own.
type Watch struct {
	// ID is the alarm's, and Runbook is its heading among the runbooks where that is another.
	ID, Runbook, Description string
	// Metric is what the alarm watches.
	Metric awscloudwatch.IMetric
	// Threshold rings at this value and above, in so many (Periods) of the last (OfLast) periods.
	Threshold       float64
	Periods, OfLast float64
	// Heartbeat rings below the threshold instead, and where there is no data at all.
	Heartbeat bool
	// Quiet has it tell nobody, whatever the topic: others ring at the same, and this one is read by machines.
	Quiet bool
}

// NoTopic is the value of MonitorProps.Topic for alarms that only show.
const NoTopic = "none"

// MonitorProps are what all alarms of an application have in common.
type MonitorProps struct {
	// Topic is the ARN of the SNS topic that alarms go to, or [NoTopic]. Required.
	Topic string
	// Service is the value of the metrics' one dimension: the functions' variable METRICS_SERVICE. Required.
	Service string
	// Runbooks says where the runbooks are, in each alarm's description. Default: spec.Runbooks.
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
	props.Runbooks = cmp.Or(props.Runbooks, spec.Runbooks)
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
		AlarmDescription:   jsii.String(spec.Described(w.Description, m.props.Runbooks, cmp.Or(w.Runbook, w.ID))),
		Metric:             w.Metric,
		Threshold:          jsii.Number(w.Threshold),
		ComparisonOperator: comparison,
		DatapointsToAlarm:  jsii.Number(w.Periods),
		EvaluationPeriods:  jsii.Number(w.OfLast),
		TreatMissingData:   missing,
	})
	if m.topic != nil && !w.Quiet {
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

// names are what the dimensions of alarms stand for, by the resource.
type names map[spec.Resource]*string

// described adds alarms of package spec. A plain monitor looks at the one metric of a heartbeat, without its expression.
func (m *Monitor) described(of names, alarms ...spec.Alarm) {
	for _, a := range alarms {
		metrics := map[string]awscloudwatch.IMetric{}
		for _, each := range a.Metrics {
			metrics[each.ID] = m.measured(each, of)
		}
		looked := metrics[a.Metrics[0].ID]
		if a.Expression != "" && !m.props.Plain {
			looked = formula(a.Expression, a.Metrics[0].Period, metrics)
		}
		if m.props.Plain && a.Least > 0 {
			a.Threshold = a.Least
		}
		m.Add(Watch{
			ID: a.ID, Runbook: a.Runbook, Description: a.Description, Metric: looked,
			Threshold: a.Threshold, Periods: float64(a.Periods), OfLast: float64(a.OfLast), Heartbeat: a.Heartbeat, Quiet: a.Quiet,
		})
	}
}

// measured is a metric of package spec. A resource without a name is a mistake of this package.
func (m *Monitor) measured(one spec.Metric, of names) awscloudwatch.IMetric {
	dimensions := map[string]*string{}
	for _, d := range one.Dimensions {
		name := of[d.Of]
		switch {
		case d.Of == spec.Service:
			name = jsii.String(m.props.Service)
		case d.Of == "":
			name = jsii.String(d.Value)
		}
		if name == nil {
			panic("idemconstruct: there is no " + string(d.Of))
		}
		dimensions[d.Name] = name
	}
	props := &awscloudwatch.MetricProps{
		Namespace: jsii.String(one.Namespace), MetricName: jsii.String(one.Name), Statistic: jsii.String(one.Statistic), Period: seconds(one.Period),
	}
	if len(dimensions) > 0 {
		props.DimensionsMap = &dimensions
	}
	return awscloudwatch.NewMetric(props)
}

// Counts watches what the functions count. The invocations of api are the requests that some alarms are shares of; nil says that
// containers count, and then those alarms ring at their threshold alone.
func (m *Monitor) Counts(api awslambda.IFunction, alarms ...Count) {
	const one = spec.Resource("function")
	for _, a := range alarms {
		if api == nil {
			a.Percent = 0
			m.described(nil, a.Alarm(one))
			continue
		}
		m.described(names{one: api.FunctionName()}, a.Alarm(one))
	}
}

// AnyOf watches several counts in one alarm that tells nobody: see spec.AnyOf.
func (m *Monitor) AnyOf(id, description string, some ...Count) {
	m.described(nil, spec.AnyOf(id, description, some...))
}

// Version watches the version of a function that its alias moves to, while it has a part of the calls only: p is how often that is called
// then.
func (m *Monitor) Version(id string, f awslambda.IFunction, alias awslambda.Alias, p Pace) {
	const function, live, version = spec.Resource("function"), spec.Resource("alias"), spec.Resource("version")
	m.described(names{
		function: f.FunctionName(), live: awscdk.Fn_Join(jsii.String(":"), &[]*string{f.FunctionName(), alias.AliasName()}), version: alias.Version().Version(),
	}, spec.VersionErrors(id, function, live, version, p))
}
