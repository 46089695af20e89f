package main

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
)

// deployedFor fills in what the stack is deployed with for the rate: a context for each limit that is too low, and no other; and what of
// the stack is too low all the same.
func (p *Plan) deployedFor() {
	t, d := p.Traffic, p.Deployed
	low := func(limits ...string) bool {
		return slices.ContainsFunc(p.Limits, func(l Limit) bool { return !l.Enough && slices.Contains(limits, l.of) })
	}
	contexts := map[string]any{}
	if low("requests") {
		d.Requests = whole(t.requests() / t.Utilisation)
		contexts["apiThrottle"] = rateAndBurst(d.Requests)
	}
	if low("payments") {
		d.Payments = whole(t.Rate * (1 + t.Replays) / t.Utilisation)
		contexts["paymentThrottle"] = rateAndBurst(d.Payments)
	}
	shards := func(limit, context string, needed float64, into *int) {
		if low(limit) {
			*into = int(needed)
			contexts[context] = *into
		}
	}
	shards("outbox shards", "outboxShards", p.Indexes[outboxIndex].Shards, &d.OutboxShards)
	shards("ledger shards", "ledgerShards", p.Indexes[ledgerIndex].Shards, &d.LedgerShards)
	shards("drift", "driftParts", min(driftParts(t), driftPartsMax), &d.DriftParts)
	if low("throughput") {
		d.WarmReads, d.WarmWrites = warm(*p)
		contexts["warmThroughput"] = warmThroughput(*p)
	}
	if low("sweep") && t.Outbox == "sqs" {
		d.WakeUpsMax = whole(t.Rate / t.Utilisation * 60)
		contexts["wakeUpsMax"] = int(d.WakeUpsMax)
	}
	raiseTenantQuotas(t, &d, low, contexts)
	reserved := p.reserve(&d, low, contexts)
	if len(reserved) > 0 {
		contexts["concurrency"] = reserved
	}
	p.account(d, contexts)
	p.Contexts, p.WithContexts = contexts, limits(*p, d)
}

// reserve raises the executions of the functions that have too few.
func (p *Plan) reserve(d *Deployed, low func(...string) bool, contexts map[string]any) map[string]int {
	t := p.Traffic
	reserved := map[string]int{}
	d.Reserved = maps.Clone(d.Reserved)
	raise := func(name string, n float64) { d.Reserved[name], reserved[name] = n, int(n) }
	for _, of := range p.Functions[:2] { // api, authorizer
		if low("executions of " + of.Name) {
			raise(of.Name, of.Planned)
		}
	}
	stream := p.Mappings[0]
	if low("executions of worker") {
		if t.Outbox == "streams" {
			contexts["streamShards"] = int(stream.Sources)
			raise("worker", stream.Parallel+workerMargin+wakeUpsMin)
		} else {
			if batch := workerBatch(t, *d); batch > d.QueueBatch {
				d.QueueBatch = batch
				contexts["workerBatch"] = int(batch)
			}
			raise("worker", min(queueBatchesMax, whole(t.Rate*t.Worker.Seconds()/d.QueueBatch/t.Utilisation))+workerMargin)
		}
	}
	if low("executions of relay") {
		contexts["streamShards"] = int(stream.Sources)
		raise("relay", stream.Parallel)
	}
	return reserved
}

// account sets the account's quota to what is reserved, what must stay unreserved, and the runs of the drift job, which share that; and
// asks for it where it is more than the default, by the context that the stack checks the reservations by.
func (p *Plan) account(d Deployed, contexts map[string]any) {
	runs := min(max(float64(d.SweepRuns), float64(d.OutboxShards)), sweepRunsMax)
	sum := d.Reserved["api"] + d.Reserved["authorizer"] + d.Reserved["worker"] + 2*(runs+runsMargin)
	if p.Traffic.Outbox == "sqs" {
		sum += d.Reserved["relay"]
	}
	if p.Traffic.Webhooks > 0 {
		sum += webhookReserved
	}
	sum += max(unreservedMin, float64(d.DriftParts)+runsMargin)
	if sum <= quotaConcurrency.Default {
		return
	}
	p.Quotas[0] = quotaConcurrency.of("", max(p.Quotas[0].Needed, sum))
	contexts["accountConcurrency"] = int(p.Quotas[0].Needed)
}

const (
	// runsMargin is what sweep and reconciler have more than their runs, and the drift job more than its pieces.
	runsMargin = 2
	// webhookReserved is what the stack reserves for the webhook function.
	webhookReserved = 50
)

// warm are the read and write units that records, messages, payments and their indexes, and quota counters, are to serve at once, each.
func warm(p Plan) (reads, writes float64) {
	reads, writes = newTableReads, newTableWrites
	room := func(units float64) float64 { return whole(units / p.Traffic.Utilisation) }
	for _, of := range p.Tables[:keysTable] {
		reads, writes = max(reads, room(of.ReadsAtOnce)), max(writes, room(of.Writes))
	}
	if shards := p.Mappings[0].Sources; shards > math.Ceil(writes/partitionWrites) {
		writes = shards * partitionWrites
	}
	for _, of := range p.Indexes {
		writes = max(writes, room(of.Writes))
	}
	return reads, writes
}

func warmThroughput(p Plan) string {
	reads, writes := warm(p)
	return plain(reads) + "/" + plain(writes)
}

// contextsOf writes contexts as a stage's file has them, each on a line of its own.
func contextsOf(contexts map[string]any) ([]string, error) {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(contexts)) {
		value, err := json.Marshal(contexts[key])
		if err != nil {
			return nil, err
		}
		lines = append(lines, "\""+key+"\": "+string(value))
	}
	return lines, nil
}
