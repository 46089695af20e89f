package idemconstruct

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// The dashboard's grid is 24 columns wide.
const (
	graphWidth  = 8
	graphHeight = 6
)

// DashboardProps are what a dashboard shows beside the functions' own metrics.
type DashboardProps struct {
	// Name of the dashboard. Default: CloudFormation's choice.
	Name string
	// Front is the API Gateway that clients call. Default: none is shown.
	Front Measured
	// Functions are shown by these names, and Reader is the one that reads the outbox stream. Required, as Queues are.
	Functions map[string]awslambda.IFunction
	Reader    awslambda.IFunction
	Queues    *Queues
	// Runs are counts shown beside those of sweep and reconciler. Default: none.
	Runs []string
	// RunsTitle is the title of their graph. Default "Runs".
	RunsTitle string
}

// Dashboard adds to scope, under id, what shows on one page what the alarms look at: clients, operations, messages, what waits,
// functions, queues and tables.
func (m *Monitor) Dashboard(scope constructs.Construct, id string, props DashboardProps) awscloudwatch.Dashboard {
	count := func(names ...string) *[]awscloudwatch.IMetric { return m.graphed("Sum", names...) }
	every := func(statistic string) *awscloudwatch.MetricOptions { return Options(statistic, watchPeriod) }
	var errors, throttles []awscloudwatch.IMetric
	for _, name := range slices.Sorted(maps.Keys(props.Functions)) {
		failed, throttled := every("Sum"), every("Sum")
		failed.Label, throttled.Label = jsii.String(name), jsii.String(name)
		errors = append(errors, props.Functions[name].MetricErrors(failed))
		throttles = append(throttles, props.Functions[name].MetricThrottles(throttled))
	}
	clients := []awscloudwatch.IWidget{
		graph("Keys", count(metric.ReserveCreated, metric.ReserveReplay, metric.ReserveInProgress, metric.ReserveUnknown, metric.ReserveKeyMisuse, metric.StoreError)),
	}
	if front := props.Front; front != nil {
		clients = append([]awscloudwatch.IWidget{
			graph("Requests and 5xx", &[]awscloudwatch.IMetric{front.MetricCount(every("SampleCount")), front.MetricServerError(every("Sum"))}),
			graph("Latency, p50 and p99", &[]awscloudwatch.IMetric{front.MetricLatency(every("p50")), front.MetricLatency(every("p99"))}),
		}, clients...)
	}
	dashboard := &awscloudwatch.DashboardProps{
		DefaultInterval: awscdk.Duration_Hours(jsii.Number(6)),
		Widgets: &[]*[]awscloudwatch.IWidget{
			&clients,
			{
				graph("Messages", count(metric.OutboxDelivered, metric.OutboxDeclined, metric.OutboxRetried, metric.OutboxUnknown, metric.OutboxDead)),
				graph("What waits, up to 100 a shard and queue", m.graphed("Maximum", metric.OutboxDue, metric.OutboxUnknownNow, metric.OutboxDeadNow)),
				graph("Oldest, ms", m.graphed("Maximum", metric.OutboxDueAge, metric.OutboxUnknownAge, metric.OutboxDeadAge, metric.OutboxAge)),
			},
			{
				graph("Function errors", &errors),
				graph("Function throttles", &throttles),
				graph(cmp.Or(props.RunsTitle, "Runs"), count(append([]string{metric.SweepRun, metric.ReconcileRun}, props.Runs...)...)),
			},
			{
				graph("Wake-ups, oldest in s", &[]awscloudwatch.IMetric{props.Queues.WakeUps.MetricApproximateAgeOfOldestMessage(every("Maximum"))}),
				graph("Dead letters", &[]awscloudwatch.IMetric{props.Queues.DeadLetter.MetricApproximateNumberOfMessagesVisible(every("Maximum"))}),
				graph("Stream, oldest in ms", &[]awscloudwatch.IMetric{IteratorAge(props.Reader)}),
			},
		},
	}
	if props.Name != "" {
		dashboard.DashboardName = jsii.String(props.Name)
	}
	return awscloudwatch.NewDashboard(scope, jsii.String(id), dashboard)
}

func graph(title string, metrics *[]awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(title), Left: metrics, Width: jsii.Number(graphWidth), Height: jsii.Number(graphHeight),
	})
}

// graphed are some of the functions' own metrics.
func (m *Monitor) graphed(statistic string, names ...string) *[]awscloudwatch.IMetric {
	var metrics []awscloudwatch.IMetric
	for _, name := range names {
		metrics = append(metrics, m.Metric(name, statistic, 5*time.Minute))
	}
	return &metrics
}
