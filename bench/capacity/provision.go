package main

import (
	"fmt"
	"math"

	"github.com/idem-go/idem-aws/infra/spec"
)

// provisionedFor is the capacity that the stack gives the tables of money and their indexes with context provisioned, by the stack's own
// computation: for so many payments of its own mix as have at least the units that this traffic takes.
func provisionedFor(p Plan) spec.Provisioned {
	t, burst := p.Traffic, compareBurst(pieces(p.Traffic, p.Deployed))
	target := min(max(math.Floor(t.Utilisation*100+1e-9), 20), 90) // what the stack takes
	payments := 1.0
	need := func(perSecond float64, units int) { payments = max(payments, whole(perSecond/float64(units))) }
	for i, of := range spec.PaymentTables() {
		table := p.Tables[i]
		need(table.Writes, of.Units.Writes)
		need(table.Reads, of.Units.Reads)
		if table.ReadsAtOnce > burst/target*100 { // while the drift job compares, requests read too
			need(table.ReadsAtOnce*target/100, of.Units.Reads)
		}
	}
	need(p.Indexes[outboxIndex].Writes, spec.MessageUnits.IndexWrites)
	need(p.Indexes[ledgerIndex].Writes, spec.PaymentUnits.IndexWrites)
	need(p.Indexes[ledgerIndex].Reads, spec.PaymentUnits.IndexReads)
	return spec.Provisioned{
		Operations: spec.Range{Min: int(payments), Max: int(payments)}, ReadBurst: int(burst), TargetPercent: int(target),
	}
}

// largestTable are the units of the kind that is more, of the table that has most of it: what the quota of a table must be.
func largestTable(of spec.Provisioned) (units int) {
	for _, table := range spec.PaymentTables() {
		writes, reads := of.Whole(table.Units)
		units = max(units, writes, reads)
	}
	return units
}

// provisionedContexts are what to deploy with, instead of the warmThroughput of tables on demand; none where the stack takes no such
// range. The counters of quotas stay on demand. Where they need a warmThroughput, it is no less than what the other tables have by
// their capacity, or the stack refuses it.
func provisionedContexts(p Plan) map[string]any {
	of := provisionedFor(p)
	if of.Operations.Max > spec.OperationsMax {
		return nil
	}
	contexts := map[string]any{"provisioned": fmt.Sprintf("%d-%d", of.Operations.Min, of.Operations.Max)}
	if of.TargetPercent != spec.TargetPercentDefault {
		contexts["provisionedTarget"] = of.TargetPercent
	}
	writes, reads := of.All(spec.PaymentTables()...)
	if account, table := max(writes, reads), largestTable(of); account > spec.AccountUnitsDefault || table > spec.TableUnitsDefault {
		contexts["accountUnits"] = fmt.Sprintf("%d/%d", max(account, spec.AccountUnitsDefault), max(table, spec.TableUnitsDefault))
	}
	if counters := p.Tables[countersTable]; counters.Writes/p.Traffic.Utilisation > newTableWrites || counters.Reads/p.Traffic.Utilisation > newTableReads {
		warmReads, warmWrites := warm(p)
		mostWrites, mostReads := of.Most(spec.PaymentTables()...)
		contexts["warmThroughput"] = plain(max(warmReads, float64(mostReads))) + "/" + plain(max(warmWrites, float64(mostWrites)))
	}
	return contexts
}
