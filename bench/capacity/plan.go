package main

import (
	"math"
	"strconv"
	"time"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/infra/spec"
)

// What of bench/cost a payment is: its row is one business row, and its answers are below 1 KB.
const (
	operation  = "deferred, 300 B of JSON"
	pathFirst  = "first"
	pathReplay = "replay" // a look-up of the operation reads the same row
	pathStream = "delivery, by stream"
	pathQueue  = "delivery, by queue"
)

const (
	// keyRead is what a look-up of an API key consumes that the authorizer's process does not hold: a strong read of less than 4 KB.
	// keyAge is for how long a process holds one (API_KEY_CACHE_AGE).
	keyRead, keyAge = 1, time.Minute
	// ledgerWrites is what the ledger index of package table consumes of each payment: keys only, which never change.
	ledgerWrites = 1
	// sweepRunsMax is the most calls that share the shards in a minute.
	sweepRunsMax = 16
	// workerBatchMax is the most that a worker takes at once (context workerBatch), and receiveMax what SQS gives in one request.
	workerBatchMax, receiveMax = 40, 10
	// unreservedMin is what Lambda wants to stay unreserved.
	unreservedMin = 100
	// sweepMax is how many messages one call of the sweep reads (outbox.Config.SweepMax): where the worker reads the stream itself.
	sweepMax = 10_000
	// wakeUpsMax is how many wake-ups the sweep lets wait in the queue with outbox=sqs.
	wakeUpsMax = 200_000
	// relayReserved is what the stack reserves for the relay, and workerMargin what wake-ups leave of the worker's executions.
	relayReserved, workerMargin = 40, 10
	// wakeUpsMin is the least that a mapping from SQS may have at once.
	wakeUpsMin = 2
	// optionalMemoryMiB is that of webhook and relay, which the stack has only by context.
	optionalMemoryMiB = 256
)

// Plan is what a rate of payments needs.
type Plan struct {
	Traffic   Traffic    `json:"traffic"`
	Deployed  Deployed   `json:"deployed"`
	Paths     []Path     `json:"paths"`
	Tables    []Table    `json:"tables"`
	Indexes   []Index    `json:"indexes"`
	Mappings  []Mapping  `json:"mappings"`
	Functions []Function `json:"functions"`
	Quotas    []Quota    `json:"quotas"`
	// Costs are those of a month with tables on demand, which Dollars sums up.
	Costs   []Cost  `json:"costs"`
	Dollars float64 `json:"dollars_per_month"`
	// Provisioned are the lines that change where the tables of money are provisioned, and ProvisionedDollars sums up all of them.
	Provisioned        []Cost  `json:"provisioned_costs"`
	ProvisionedDollars float64 `json:"provisioned_dollars_per_month"`
	// ProvisionedContexts are what the stack is deployed with for provisioned tables, instead of Contexts' warmThroughput.
	ProvisionedContexts map[string]any `json:"provisioned_contexts"`
	// Limits are those of the stack as it is deployed by default, the tightest first.
	Limits []Limit `json:"limits"`
	// Contexts are what the stack is deployed with for the rate, beside Traffic.Outbox, and WithContexts the limits that it has then.
	Contexts     map[string]any `json:"contexts"`
	WithContexts []Limit        `json:"limits_with_contexts"`
}

// Path is one that requests and messages take.
type Path struct {
	Name      string  `json:"name"`
	PerSecond float64 `json:"per_second"`
	Units     Units   `json:"units"`
	// Ledger are write units of the ledger index, per pass.
	Ledger float64 `json:"ledger_units"`
	// Writes and Reads are units per second.
	Writes float64 `json:"writes_per_second"`
	Reads  float64 `json:"reads_per_second"`
}

// Table is a table without its indexes, which have partitions of their own.
type Table struct {
	Name   string  `json:"name"`
	Writes float64 `json:"writes_per_second"`
	Reads  float64 `json:"reads_per_second"`
	// ReadsAtOnce are those while the drift job compares, as fast as it can.
	ReadsAtOnce float64 `json:"reads_per_second_at_once"`
	Partitions  float64 `json:"partitions"`
	// perPayment are write units, and readsPerPayment the read units of requests and deliveries.
	perPayment, readsPerPayment float64
	// compared says that the drift job reads it.
	compared bool
}

// Index is a global secondary index that has one partition key for each of its shards.
type Index struct {
	Name   string  `json:"name"`
	Writes float64 `json:"writes_per_second"`
	Reads  float64 `json:"reads_per_second"`
	Shards float64 `json:"shards"`
	Has    int     `json:"shards_deployed"`
}

// Mapping is one from the outbox's stream or the queue of wake-ups to a function.
type Mapping struct {
	Name      string  `json:"name"`
	PerSecond float64 `json:"records_per_second"`
	// Sources are a stream's shards; 0 for a queue.
	Sources float64 `json:"shards"`
	// Parallel is how many batches run at once at most.
	Parallel float64 `json:"batches_at_once"`
	// Batch is the average size that batches have at the rate.
	Batch float64 `json:"batch"`
	// Carries is records per second with full batches.
	Carries float64 `json:"carries_per_second"`
}

// Function is one of the stack's.
type Function struct {
	Name      string  `json:"name"`
	PerSecond float64 `json:"invocations_per_second"`
	Latency   float64 `json:"latency_seconds"`
	// Concurrency is the average number of executions; Planned is with room for lumps.
	Concurrency float64 `json:"concurrency"`
	Planned     float64 `json:"concurrency_planned"`
	MemoryMiB   float64 `json:"memory_mib"`
}

func newPlan(t Traffic, f facts) Plan {
	p := Plan{Traffic: t, Deployed: f.deployed, Paths: paths(t, f)}
	p.Tables, p.Indexes = tables(t, f, p.Paths), indexes(t, f, p.Paths)
	p.Mappings = mappings(t, f, &p.Tables[outboxTable])
	p.Functions = functions(t, f, p.Mappings)
	p.Quotas = quotas(p)
	p.Costs, p.Provisioned = costs(p), provisioned(p)
	for _, c := range p.Costs {
		p.Dollars += c.Dollars
	}
	p.ProvisionedDollars = p.Dollars - p.Costs[writesCost].Dollars - p.Costs[readsCost].Dollars
	for _, c := range p.Provisioned {
		p.ProvisionedDollars += c.Dollars
	}
	p.Limits, p.ProvisionedContexts = limits(p, p.Deployed), provisionedContexts(p)
	p.deployedFor()
	return p
}

// Places in Plan.Paths, Plan.Tables and Plan.Indexes. The tables that can be provisioned come first, as spec.PaymentTables has them.
const (
	createPath = iota
	deliveryPath
	replayPath
	pollPath
	webhookPath
	authorizerPath
	newKeyPath
	lookUpPath
	comparePath
)

const (
	recordsTable = iota
	outboxTable
	paymentsTable
	countersTable
	keysTable
)

const (
	outboxIndex = iota
	ledgerIndex
)

func (t Traffic) requests() float64 { return t.Rate * (1 + t.Replays + t.Polls) }

func (t Traffic) webhooks() float64 { return t.Rate * t.Webhooks }

// keyReads is how often a request's API key is read, on average: once for each time that a process has held it, and the request that
// finds it gone. A process takes as many requests a second as its latency lets it at the utilisation, and they are spread over
// the keys at random.
func (t Traffic) keyReads() float64 {
	ofKey := t.Utilisation / t.Authorizer.Seconds() / t.Keys // requests a second, of one key at one process
	return keyRead / (1 + ofKey*keyAge.Seconds())
}

func paths(t Traffic, f facts) []Path {
	of := f.costs[operation]
	delivery := of[pathStream]
	if t.Outbox == "sqs" {
		delivery = of[pathQueue]
	}
	ledger := 0.0
	if table.Payments().Index.Name != "" {
		ledger = ledgerWrites
	}
	all := []Path{
		createPath:     {Name: "create a payment", PerSecond: t.Rate, Units: of[pathFirst], Ledger: ledger},
		deliveryPath:   {Name: "deliver its message", PerSecond: t.Rate, Units: delivery},
		replayPath:     {Name: "replay", PerSecond: t.Rate * t.Replays, Units: of[pathReplay]},
		pollPath:       {Name: "look-up", PerSecond: t.Rate * t.Polls, Units: of[pathReplay]},
		webhookPath:    {Name: "webhook", PerSecond: t.webhooks(), Units: f.webhook},
		authorizerPath: {Name: "authorize", PerSecond: t.requests(), Units: Units{Reads: t.keyReads()}},
		newKeyPath:     {Name: "quotas of a tenant: count a new key", PerSecond: t.Rate, Units: ofNewKey(t, f.deployed)},
		lookUpPath:     {Name: "quotas of a tenant: count a look-up", PerSecond: t.Rate * t.Polls, Units: ofLookUp()},
		comparePath:    {Name: "drift job: compare a row", PerSecond: t.compared(), Units: Units{Reads: compareTables*compareReads + compareIndexReads}},
	}
	for i, p := range all {
		all[i].Writes, all[i].Reads = p.PerSecond*(p.Units.Writes()+p.Ledger), p.PerSecond*p.Units.Reads
	}
	return all
}

// tables counts reads where they are made: of records, but for a message that a queue named, for API keys and counters, and for the
// drift job, which reads three tables and an index.
func tables(t Traffic, f facts, all []Path) []Table {
	var found [5]Table
	for i, p := range all {
		found[recordsTable].Writes += p.PerSecond * p.Units.Records
		found[outboxTable].Writes += p.PerSecond * p.Units.Messages
		found[paymentsTable].Writes += p.PerSecond * p.Units.Business
		found[countersTable].Writes += p.PerSecond * p.Units.Counters
		if i != comparePath {
			reads := map[int]int{deliveryPath: outboxTable, authorizerPath: keysTable, newKeyPath: countersTable}[i]
			found[reads].Reads += p.Reads
		}
	}
	for i, name := range []string{
		recordsTable: "idempotency", outboxTable: "outbox", paymentsTable: "payments", countersTable: "quota counters", keysTable: "API keys",
	} {
		of := &found[i]
		of.Name, of.perPayment, of.readsPerPayment, of.ReadsAtOnce = name, of.Writes/t.Rate, of.Reads/t.Rate, of.Reads
		if i < compareTables {
			of.compared = true
			of.ReadsAtOnce += compareBurst(pieces(t, f.deployed))
			of.Reads += t.compared() * compareReads
		}
		of.Partitions = atLeastOne(max(of.Writes/partitionWrites, of.ReadsAtOnce/partitionReads) / t.Utilisation)
	}
	return found[:]
}

func indexes(t Traffic, f facts, all []Path) []Index {
	outbox, ledger := Index{Name: "outbox/queue", Has: f.deployed.OutboxShards}, Index{Name: "payments/ledger", Has: f.deployed.LedgerShards}
	for _, p := range all {
		outbox.Writes += p.PerSecond * p.Units.Indexes
		ledger.Writes += p.PerSecond * p.Ledger
	}
	ledger.Reads = t.compared() * compareIndexReads
	both := []Index{outboxIndex: outbox, ledgerIndex: ledger}
	for i := range both {
		both[i].Shards = atLeastOne(both[i].Writes / partitionWrites / t.Utilisation)
	}
	return both
}

// mappings raises the outbox table's partitions to what its stream needs: each has one open shard.
func mappings(t Traffic, f facts, outbox *Table) []Mapping {
	d := f.deployed
	name, latency := "stream → worker", t.Worker.Seconds()
	if t.Outbox == "sqs" {
		name, latency = "stream → relay", t.Relay.Seconds()
	}
	shardCarries := d.StreamParallel * d.StreamBatch / latency
	outbox.Partitions = max(outbox.Partitions, atLeastOne(t.Rate/shardCarries/t.Utilisation))
	stream := Mapping{Name: name, PerSecond: t.Rate, Sources: outbox.Partitions, Parallel: outbox.Partitions * d.StreamParallel}
	stream.Batch = min(d.StreamBatch, max(1, t.Rate/stream.Parallel*latency))
	stream.Carries = stream.Sources * shardCarries
	if t.Outbox == "streams" {
		return []Mapping{stream}
	}
	batch := workerBatch(t, d)
	queue := Mapping{Name: "queue → worker", PerSecond: t.Rate, Parallel: queueBatchesMax, Carries: queueBatchesMax * batch / t.Worker.Seconds()}
	queue.Batch = min(batch, max(1, t.Rate/queueBatchesFirst*t.Worker.Seconds()))
	return []Mapping{stream, queue}
}

func functions(t Traffic, f facts, from []Mapping) []Function {
	all := []Function{
		{Name: "api", PerSecond: t.requests(), Latency: t.API.Seconds()},
		{Name: "authorizer", PerSecond: t.requests(), Latency: t.Authorizer.Seconds()},
		{Name: "worker", PerSecond: t.Rate / from[len(from)-1].Batch, Latency: t.Worker.Seconds()},
	}
	if t.Outbox == "sqs" {
		all = append(all, Function{Name: "relay", PerSecond: t.Rate / from[0].Batch, Latency: t.Relay.Seconds()})
	}
	if t.Webhooks > 0 {
		all = append(all, Function{Name: "webhook", PerSecond: t.webhooks(), Latency: t.Webhook.Seconds()})
	}
	for i := range all {
		one := &all[i]
		one.Concurrency = one.PerSecond * one.Latency
		one.Planned = atLeastOne(one.Concurrency / t.Utilisation)
		if one.Name == "worker" {
			one.Planned = min(one.Planned, from[len(from)-1].Parallel) // Lambda runs no more
		}
		if one.MemoryMiB = f.deployed.MemoryMiB[one.Name]; one.MemoryMiB == 0 {
			one.MemoryMiB = optionalMemoryMiB
		}
	}
	return append(all, driftFunction(t, f.deployed))
}

// scheduled is how many executions sweep and reconciler have at once, with as many shards as are needed.
func scheduled(p Plan) float64 {
	return 2 * min(max(float64(p.Deployed.SweepRuns), p.Indexes[outboxIndex].Shards), sweepRunsMax)
}

// quotas are planned with the same room as the rest.
func quotas(p Plan) []Quota {
	t := p.Traffic
	executions, fastest := scheduled(p), 0.0
	for _, one := range p.Functions {
		executions += one.Planned
		fastest = max(fastest, one.PerSecond)
	}
	all := []Quota{
		quotaConcurrency.of("", max(executions, fastest/requestsPerExecution/t.Utilisation)),
		quotaGateway.of("", (t.requests()+t.webhooks())/t.Utilisation),
	}
	for _, of := range p.Tables {
		all = append(all, quotaTableWrites.of(of.Name, of.Writes/t.Utilisation), quotaTableReads.of(of.Name, of.ReadsAtOnce/t.Utilisation))
	}
	for _, of := range p.Indexes {
		all = append(all, quotaTableWrites.of(of.Name, of.Writes/t.Utilisation))
	}
	units := provisionedFor(p)
	writes, reads := units.All(spec.PaymentTables()...)
	all = append(all, quotaProvisionedWrites.of("", float64(writes)), quotaProvisionedReads.of("", float64(reads)),
		quotaProvisionedTable.of("", float64(largestTable(units))))
	if t.Outbox == "sqs" {
		all = append(all, quotaInFlight.of("", t.Rate*t.Worker.Seconds()/t.Utilisation))
	}
	return all
}

// workerBatch is how many wake-ups a worker takes at once: as deployed, or where Lambda runs no more batches, in tens as many more as
// carry the rate.
func workerBatch(t Traffic, d Deployed) float64 {
	needed := t.Rate * t.Worker.Seconds() / t.Utilisation / (queueBatchesMax - workerMargin)
	return min(max(d.QueueBatch, 10*whole(needed/10)), workerBatchMax)
}

// whole rounds up what is not negative, but not what only binary fractions make more than whole.
func whole(n float64) float64 { return max(0, math.Ceil(n-1e-6)) } // of 0 the last part alone is -0

func atLeastOne(n float64) float64 { return max(1, whole(n)) }

// rateAndBurst are those of a throttle.
func rateAndBurst(perSecond float64) string {
	return plain(whole(perSecond)) + "/" + plain(whole(perSecond))
}

// plain is a whole number as a context takes it, without commas.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }
