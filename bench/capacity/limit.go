package main

import (
	"cmp"
	"math"
	"slices"
)

// Limit is what the stack as deployed carries of one thing.
type Limit struct {
	What string `json:"what"`
	// Carries is payments per second.
	Carries float64 `json:"payments_per_second"`
	Enough  bool    `json:"enough"`
	Remedy  string  `json:"remedy"`
	// of is what is limited, by which a context is chosen.
	of string
}

// limits are of what the stack sets itself, and of tables that are new: DynamoDB splits them as they are used, but not before.
func limits(p Plan, d Deployed) []Limit {
	t := p.Traffic
	perPayment := func(of Index) float64 { return of.Writes / t.Rate }
	outbox, ledger := p.Indexes[outboxIndex], p.Indexes[ledgerIndex]
	all := []Limit{
		{
			of: "outbox shards", What: "index of the outbox, shards " + figure(float64(d.OutboxShards)), Carries: float64(d.OutboxShards) * partitionWrites / perPayment(outbox),
			Remedy: "deploy with outboxShards=" + plain(outbox.Shards),
		},
		{
			of: "ledger shards", What: "index of the ledger, shards " + figure(float64(d.LedgerShards)), Carries: float64(d.LedgerShards) * partitionWrites / perPayment(ledger),
			Remedy: "deploy with ledgerShards=" + plain(ledger.Shards),
		},
		{
			of: "drift", What: "drift job, pieces at once " + figure(float64(d.DriftParts)), Carries: driftRate(t, float64(d.DriftParts)),
			Remedy: driftRemedy(t),
		},
	}
	newPartitions := math.Ceil(d.WarmWrites / partitionWrites)
	latency, function := t.Worker.Seconds(), "worker"
	if t.Outbox == "sqs" {
		latency, function = t.Relay.Seconds(), "relay"
	}
	all = append(all, Limit{
		of: "throughput", What: "stream of a new outbox table to " + function + ", shards " + figure(newPartitions),
		Carries: newPartitions * d.StreamParallel * d.StreamBatch / latency,
		Remedy:  "deploy with warmThroughput=" + warmThroughput(p),
	})
	for i, of := range p.Tables {
		remedy := "deploy with warmThroughput=" + warmThroughput(p)
		reads, writes, kind := d.WarmReads, d.WarmWrites, "throughput"
		if i == keysTable {
			reads, writes, kind = newTableReads, newTableWrites, ""
			remedy = "none by a context: begin with less, and the table grows with what it serves"
		}
		all = append(all, Limit{
			of: kind, What: "new table " + of.Name, Carries: min(writes/of.perPayment, readsCarry(t, of, reads, d)),
			Remedy: remedy,
		})
	}
	for _, of := range p.Indexes {
		all = append(all, Limit{
			of: "throughput", What: "new index " + of.Name, Carries: d.WarmWrites / perPayment(of),
			Remedy: "deploy with warmThroughput=" + warmThroughput(p),
		})
	}
	all = append(all, front(p, d)...)
	all = append(append(all, tenantQuotas(t, d)...), recovery(t, d))
	for i := range all {
		all[i].Carries *= t.Utilisation
		all[i].Enough = all[i].Carries >= t.Rate*(1-1e-9) // but not what only binary fractions make less
	}
	slices.SortStableFunc(all, func(a, b Limit) int { return cmp.Compare(a.Carries, b.Carries) })
	return all
}

// readsCarry is the rate that so many read units of a table carry, before it is multiplied by the utilisation: what the drift job reads
// while it compares, no request can.
func readsCarry(t Traffic, of Table, units float64, d Deployed) float64 {
	if of.compared {
		units = max(0, units-compareBurst(float64(d.DriftParts))/t.Utilisation)
	}
	if of.readsPerPayment > 0 {
		return units / of.readsPerPayment
	}
	if units > 0 || !of.compared {
		return math.MaxFloat64
	}
	return 0
}

// front are the limits of what the API lets through and of the executions that each function has.
func front(p Plan, d Deployed) []Limit {
	t := p.Traffic
	requests, made := t.requests()/t.Rate, 1+t.Replays
	all := []Limit{
		{
			of: "requests", What: "API, requests/s " + figure(d.Requests), Carries: d.Requests / requests,
			Remedy: "deploy with apiThrottle=" + rateAndBurst(t.requests()/t.Utilisation),
		},
		{
			of: "payments", What: "API, payments and replays/s " + figure(d.Payments), Carries: d.Payments / made,
			Remedy: "deploy with paymentThrottle=" + rateAndBurst(t.Rate*made/t.Utilisation),
		},
	}
	executions := func(name string, has, perExecution, margin float64, remedy string) {
		all = append(all, Limit{
			of: "executions of " + name, What: "executions of " + name + ", " + figure(has), Carries: (has - margin) * perExecution,
			Remedy: "deploy with " + remedy,
		})
	}
	planned := func(perExecution float64) float64 { return whole(t.Rate / perExecution / t.Utilisation) }
	reserve := func(name string, n float64) string { return "concurrency." + name + "=" + plain(n) }
	perAPI, perAuthorizer := 1/t.API.Seconds()/requests, 1/t.Authorizer.Seconds()/requests
	executions("api", d.Reserved["api"], perAPI, 0, reserve("api", planned(perAPI)))
	executions("authorizer", d.Reserved["authorizer"], perAuthorizer, 0, reserve("authorizer", planned(perAuthorizer)))
	// Who reads the stream has an execution for each batch that it may have at once, or the stack is refused.
	stream := p.Mappings[0]
	shards := "streamShards=" + plain(stream.Sources) + " and "
	if t.Outbox == "streams" {
		executions("worker", d.Reserved["worker"], d.StreamBatch/t.Worker.Seconds(), workerMargin, shards+reserve("worker", stream.Parallel+workerMargin+wakeUpsMin))
		return all
	}
	perWorker, batch := d.QueueBatch/t.Worker.Seconds(), workerBatch(t, d)
	needed := planned(batch / t.Worker.Seconds())
	remedy := reserve("worker", needed+workerMargin)
	if batch > d.QueueBatch {
		remedy += " and workerBatch=" + plain(batch)
	}
	if needed > queueBatchesMax {
		remedy = "none: one queue carries " + figure(math.Floor(queueBatchesMax*workerBatchMax/t.Worker.Seconds()*t.Utilisation)) + " at most, with workerBatch=" + plain(workerBatchMax)
	}
	executions("worker", min(d.Reserved["worker"], queueBatchesMax+workerMargin), perWorker, workerMargin, remedy)
	executions("relay", d.Reserved["relay"], d.StreamBatch/t.Relay.Seconds(), 0, shards+reserve("relay", stream.Parallel))
	return all
}

// recovery is what the sweep offers each second of messages that are due after an outage: as long as it lasts, they are as many as
// there are payments.
func recovery(t Traffic, d Deployed) Limit {
	if t.Outbox == "sqs" {
		return Limit{
			of: "sweep", What: "sweep after an outage, wake-ups " + figure(d.WakeUpsMax),
			Carries: d.WakeUpsMax / 60,
			Remedy:  "deploy with wakeUpsMax=" + plain(whole(t.Rate/t.Utilisation*60)),
		}
	}
	return Limit{
		of: "sweep", What: "sweep after an outage, calls a minute " + figure(float64(d.SweepRuns)),
		Carries: float64(d.SweepRuns) * sweepMax / 60,
		Remedy:  "deploy with outbox=sqs: the sweep then offers from the index",
	}
}
