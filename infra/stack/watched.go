package stack

import (
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// watched is what alarms look at beside tables and queues.
type watched struct {
	front front
	// functions are all of the stack, by their constructs' names; reader is the one that reads the outbox stream.
	functions map[string]awslambda.IFunction
	reader    awslambda.IFunction
	rules     []awsevents.Rule
	compared  progress
}

// watch adds every alarm, and the dashboard. A local stack has no dashboard, and no alarm on an expression: emulators refuse
// those, and evaluate none.
func (p parts) watch(scope constructs.Construct, m monitor, w watched) {
	m.addCounts()
	m.addQueues(p.queues, w.compared)
	m.addHeartbeats()
	m.addBacklog()
	m.addStream(w.reader)
	m.addUserErrors()
	if p.config.Local {
		return
	}
	m.addGateway(w.front.api)
	for _, id := range slices.Sorted(maps.Keys(w.functions)) {
		p := often
		if id == "Drift" {
			p = hourly // as its hours
		}
		m.addFunction(id, w.functions[id], p)
	}
	m.addTable("Idempotency", p.tables.Idempotency, schema.Idempotency().Index.Name)
	m.addTable("Outbox", p.tables.Outbox, schema.Outbox().Index.Name)
	m.addTable("Payments", p.payments, table.Payments().Index.Name)
	m.addTable("ApiKeys", p.apiKeys, "")
	m.addTable("DriftProgress", w.compared.table, "")
	if p.keys != nil {
		m.addTable("Keys", p.keys.Table, "")
	}
	if p.quota != nil {
		m.addTable("Quota", p.quota, "")
	}
	m.addSchedules(w.rules...)
	p.dashboard(scope, m, w)
}
