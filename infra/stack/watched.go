package stack

import (
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// watched is what alarms look at beside tables and queues.
type watched struct {
	front front
	// functions are all of the stack, by their constructs' names; reader is the one that reads the outbox stream.
	functions map[string]deployed
	reader    deployed
	rules     []awsevents.Rule
	compared  progress
}

// watch adds every alarm, and the dashboard. A local stack has no dashboard, and no alarm on an expression: emulators refuse
// those, and evaluate none.
func (p parts) watch(scope constructs.Construct, m *idemconstruct.Monitor, w watched) {
	m.Counts(w.functions[accepts].Function, append(idemconstruct.Counts(), counts...)...)
	if webhook, ok := w.functions["Webhook"]; ok {
		m.Counts(webhook.Function, webhookCounts...)
	}
	m.Queues(p.queues)
	w.compared.watch(m)
	m.Heartbeats(p.config.sweepShards())
	m.Add(idemconstruct.Watch{
		ID: "DriftSilent", Metric: m.Runs(metric.DriftRun, time.Hour), Threshold: 1, Periods: 3, OfLast: 3,
		Description: "The drift job has compared no hour to its end for three hours. A difference from the provider's books would not be seen.",
		Heartbeat:   true,
	})
	m.Backlog()
	m.Stream(w.reader.Function)
	if p.config.Local {
		return
	}
	m.Gateway(w.front.api)
	for _, id := range slices.Sorted(maps.Keys(w.functions)) {
		p := idemconstruct.Often
		if id == "Drift" {
			p = idemconstruct.Hourly // as its hours
		}
		m.Function(id, w.functions[id].Function, p)
	}
	m.Table("Idempotency", p.tables.Idempotency, schema.Idempotency().Index.Name)
	m.Table("Outbox", p.tables.Outbox, schema.Outbox().Index.Name)
	m.Table("Payments", p.payments, table.Payments().Index.Name)
	m.Table("ApiKeys", p.apiKeys, "")
	m.Table("DriftProgress", w.compared.table, "")
	if p.keys != nil {
		m.Table("Keys", p.keys.Table, "")
	}
	if p.quota != nil {
		m.Table("Quota", p.quota, "")
	}
	if p.vault != nil {
		watchBackup(m, p.vault, p.config.BackupCopy, p.backedUp)
	}
	m.Schedules(w.rules...)
	m.Dashboard(scope, "Dashboard", idemconstruct.DashboardProps{
		Name: p.config.Stack + "-" + p.config.Region, Front: w.front.api, Functions: w.named(), Reader: w.reader.Function, Queues: p.queues,
		Runs: []string{metric.DriftRun, metric.DriftFound, metric.DriftFailed, metric.DriftLate}, RunsTitle: "Runs and drift",
	})
}

// named are the functions themselves: what a dashboard shows is counted whatever version runs.
func (w watched) named() map[string]awslambda.IFunction {
	all := map[string]awslambda.IFunction{}
	for id, made := range w.functions {
		all[id] = made.Function
	}
	return all
}
