package stack

import (
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// The dashboard's grid is 24 columns wide.
const (
	graphWidth  = 8
	graphHeight = 6
)

// dashboard shows on one page what the alarms look at: clients, operations, messages, what waits, functions, queues and tables.
func (p parts) dashboard(scope constructs.Construct, m monitor, w watched) {
	count := func(names ...string) *[]awscloudwatch.IMetric { return m.graphed("Sum", names...) }
	every := func(statistic string) *awscloudwatch.MetricOptions { return options(statistic, watchPeriod) }
	var errors, throttles []awscloudwatch.IMetric
	for _, id := range slices.Sorted(maps.Keys(w.functions)) {
		failed, throttled := every("Sum"), every("Sum")
		failed.Label, throttled.Label = jsii.String(id), jsii.String(id)
		errors = append(errors, w.functions[id].MetricErrors(failed))
		throttles = append(throttles, w.functions[id].MetricThrottles(throttled))
	}
	awscloudwatch.NewDashboard(scope, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName:   jsii.String(p.config.Stack + "-" + p.config.Region),
		DefaultInterval: awscdk.Duration_Hours(jsii.Number(6)),
		Widgets: &[]*[]awscloudwatch.IWidget{
			{
				graph("Requests and 5xx", &[]awscloudwatch.IMetric{w.front.api.MetricCount(every("SampleCount")), w.front.api.MetricServerError(every("Sum"))}),
				graph("Latency, p50 and p99", &[]awscloudwatch.IMetric{w.front.api.MetricLatency(every("p50")), w.front.api.MetricLatency(every("p99"))}),
				graph("Keys", count(metric.ReserveCreated, metric.ReserveReplay, metric.ReserveInProgress, metric.ReserveUnknown, metric.ReserveKeyMisuse, metric.StoreError)),
			},
			{
				graph("Messages", count(metric.OutboxDelivered, metric.OutboxDeclined, metric.OutboxRetried, metric.OutboxUnknown, metric.OutboxDead)),
				graph("What waits", m.graphed("Maximum", metric.OutboxDue, metric.OutboxUnknownNow, metric.OutboxDeadNow)),
				graph("Oldest, ms", m.graphed("Maximum", metric.OutboxDueAge, metric.OutboxUnknownAge, metric.OutboxDeadAge, metric.OutboxAge)),
			},
			{
				graph("Function errors", &errors),
				graph("Function throttles", &throttles),
				graph("Runs and drift", count(metric.SweepRun, metric.ReconcileRun, metric.DriftRun, metric.DriftFound, metric.DriftFailed, metric.DriftLate)),
			},
			{
				graph("Wake-ups, oldest in s", &[]awscloudwatch.IMetric{p.queues.WakeUps.MetricApproximateAgeOfOldestMessage(every("Maximum"))}),
				graph("Dead letters", &[]awscloudwatch.IMetric{p.queues.DeadLetter.MetricApproximateNumberOfMessagesVisible(every("Maximum"))}),
				graph("Stream, oldest in ms", &[]awscloudwatch.IMetric{iteratorAge(w.reader)}),
			},
		},
	})
}

func graph(title string, metrics *[]awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(title), Left: metrics, Width: jsii.Number(graphWidth), Height: jsii.Number(graphHeight),
	})
}

// graphed are some of the functions' own metrics.
func (m monitor) graphed(statistic string, names ...string) *[]awscloudwatch.IMetric {
	var metrics []awscloudwatch.IMetric
	for _, name := range names {
		metrics = append(metrics, m.metric(name, statistic, 5*time.Minute))
	}
	return &metrics
}
