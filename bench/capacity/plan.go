package main

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/idem-go/idem-aws/functions/table"
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
	// driftRows is how many rows a second one piece of the drift job compares, and driftPasses how often each row is: four calls to
	// DynamoDB and one or two to the provider for a hundred rows, one after the other. Assumed. Each step lists the provider's objects
	// for driftLag beyond what it compares, and ends after driftStep.
	driftRows, driftPasses = 400, 3
	driftLag, driftStep    = 10 * time.Second, 4 * time.Minute
	// driftCalls are those of a hundred rows, and driftListings those of them that list.
	driftCalls, driftListings = 5.5, 1.5
	// driftSlower is by how many rows a second a piece compares less for each payment a second: a step of driftStep lists rate × driftLag
	// objects more, a hundred a call.
	driftSlower = driftListings / driftCalls * float64(driftLag) / float64(driftStep)
	// driftPartsMax is the most pieces that the stack takes (context driftParts).
	driftPartsMax = 240
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
	Name       string  `json:"name"`
	Writes     float64 `json:"writes_per_second"`
	Reads      float64 `json:"reads_per_second"`
	Partitions float64 `json:"partitions"`
	// perPayment are write units.
	perPayment float64
}

// Index is a global secondary index that has one partition key for each of its shards.
type Index struct {
	Name   string  `json:"name"`
	Writes float64 `json:"writes_per_second"`
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

func newPlan(t Traffic, f facts) Plan {
	p := Plan{Traffic: t, Deployed: f.deployed, Paths: paths(t, f)}
	p.Tables, p.Indexes = tables(t, p.Paths), indexes(t, f, p.Paths)
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
	p.Limits = limits(p, p.Deployed)
	p.deployedFor()
	return p
}

// Places in Plan.Paths and Plan.Tables.
const (
	createPath = iota
	deliveryPath
	replayPath
	pollPath
	webhookPath
	authorizerPath
)

const (
	recordsTable = iota
	outboxTable
	paymentsTable
	keysTable
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
	}
	for i, p := range all {
		all[i].Writes, all[i].Reads = p.PerSecond*(p.Units.Writes()+p.Ledger), p.PerSecond*p.Units.Reads
	}
	return all
}

// tables counts reads where they are made: of records, but for a message that a queue named, and for API keys.
func tables(t Traffic, all []Path) []Table {
	var found [4]Table
	for i, p := range all {
		found[recordsTable].Writes += p.PerSecond * p.Units.Records
		found[outboxTable].Writes += p.PerSecond * p.Units.Messages
		found[paymentsTable].Writes += p.PerSecond * p.Units.Business
		reads := map[int]int{deliveryPath: outboxTable, authorizerPath: keysTable}[i]
		found[reads].Reads += p.Reads
	}
	for i, name := range []string{recordsTable: "idempotency", outboxTable: "outbox", paymentsTable: "payments", keysTable: "API keys"} {
		found[i].Name, found[i].perPayment = name, found[i].Writes/t.Rate
		found[i].Partitions = atLeastOne(max(found[i].Writes/partitionWrites, found[i].Reads/partitionReads) / t.Utilisation)
	}
	return found[:]
}

func indexes(t Traffic, f facts, all []Path) []Index {
	outbox, ledger := Index{Name: "outbox/queue", Has: f.deployed.OutboxShards}, Index{Name: "payments/ledger", Has: f.deployed.LedgerShards}
	for _, p := range all {
		outbox.Writes += p.PerSecond * p.Units.Indexes
		ledger.Writes += p.PerSecond * p.Ledger
	}
	both := []Index{outbox, ledger}
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
	return all
}

// scheduled is how many executions sweep, reconciler and drift job have at once, with as many shards as are needed.
func scheduled(p Plan) float64 {
	return 2*min(max(float64(p.Deployed.SweepRuns), p.Indexes[0].Shards), sweepRunsMax) + float64(p.Deployed.DriftParts)
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
		all = append(all, quotaTableWrites.of(of.Name, of.Writes/t.Utilisation), quotaTableReads.of(of.Name, of.Reads/t.Utilisation))
	}
	for _, of := range p.Indexes {
		all = append(all, quotaTableWrites.of(of.Name, of.Writes/t.Utilisation))
	}
	units := capacityUnits(p)
	all = append(all, quotaProvisionedWrites.of("", units.writes), quotaProvisionedReads.of("", units.reads))
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

// driftParts are the pieces at once that compare the rate at the utilisation, and driftRate the rate that so many carry, before it is
// multiplied by the utilisation.
func driftParts(t Traffic) float64 {
	rows := driftRows - driftSlower*t.Rate
	if rows <= 0 {
		return math.Inf(1)
	}
	return atLeastOne(t.Rate * driftPasses / rows / t.Utilisation)
}

func driftRate(t Traffic, parts float64) float64 {
	return parts * driftRows / (driftPasses + t.Utilisation*parts*driftSlower)
}

// driftRemedy says how many pieces compare the rate, or that the drift job doesn't carry it: more pieces than the stack takes are no remedy.
func driftRemedy(t Traffic) string {
	if parts := driftParts(t); parts <= driftPartsMax {
		return "deploy with driftParts=" + plain(parts)
	}
	most := math.Floor(driftRate(t, driftPartsMax) * t.Utilisation)
	return "none: it carries " + figure(most) + " at most, with driftParts=" + plain(driftPartsMax) + "; above, hours are compared late"
}

// limits are of what the stack sets itself, and of tables that are new: DynamoDB splits them as they are used, but not before.
func limits(p Plan, d Deployed) []Limit {
	t := p.Traffic
	perPayment := func(of Index) float64 { return of.Writes / t.Rate }
	outbox, ledger := p.Indexes[0], p.Indexes[1]
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
			of: kind, What: "new table " + of.Name, Carries: min(writes/of.perPayment, reads/(max(of.Reads, 1)/t.Rate)),
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
	all = append(all, recovery(t, d))
	for i := range all {
		all[i].Carries *= t.Utilisation
		all[i].Enough = all[i].Carries >= t.Rate*(1-1e-9) // but not what only binary fractions make less
	}
	slices.SortStableFunc(all, func(a, b Limit) int { return cmp.Compare(a.Carries, b.Carries) })
	return all
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

// rateAndBurst are those of a throttle.
func rateAndBurst(perSecond float64) string {
	return plain(whole(perSecond)) + "/" + plain(whole(perSecond))
}

// plain is a whole number as a context takes it, without commas.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }

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

// whole rounds up what is not negative, but not what only binary fractions make more than whole.
func whole(n float64) float64 { return max(0, math.Ceil(n-1e-6)) } // of 0 the last part alone is -0

func atLeastOne(n float64) float64 { return max(1, whole(n)) }
