package main

import (
	"github.com/idem-go/idem-aws/bench/price"
	"github.com/idem-go/idem-aws/infra/spec"
)

// Places in Plan.Costs.
const (
	writesCost = iota
	readsCost
)

// Cost is one line of a month's bill.
type Cost struct {
	What string `json:"what"`
	// Quantity is in the unit that What names.
	Quantity float64 `json:"quantity"`
	Dollars  float64 `json:"dollars"`
}

func costs(p Plan) []Cost {
	month := func(perSecond float64) float64 { return perSecond * price.MonthSeconds }
	var writes, reads, invocations, seconds float64
	for _, of := range p.Paths {
		writes, reads = writes+month(of.Writes), reads+month(of.Reads)
	}
	for _, of := range p.Functions {
		invocations += month(of.PerSecond)
		seconds += month(of.Concurrency) * of.MemoryMiB / 1024
	}
	requests := month(p.Traffic.requests() + p.Traffic.webhooks())
	logged := month(p.Traffic.Rate) * p.Traffic.LogBytes / 1e9
	first := min(requests, price.HTTPRequestsTier)
	all := []Cost{
		{"DynamoDB write units", writes, writes / price.Million * price.Writes},
		{"DynamoDB read units", reads, reads / price.Million * price.Reads},
		{"Lambda requests", invocations, invocations / price.Million * price.Invocations},
		{"Lambda GB-seconds, arm64", seconds, seconds * price.GBSecondsARM},
		{"API Gateway requests, HTTP API", requests, (first*price.HTTPRequests + (requests-first)*price.HTTPRequestsAfterTier) / price.Million},
		{"CloudWatch Logs, GB taken in", logged, logged * price.LogGB},
	}
	if p.Traffic.Outbox == "sqs" {
		sent := 0.0 // a batch to send, one to receive, one to delete
		for _, of := range p.Mappings {
			sent += month(of.PerSecond / min(of.Batch, receiveMax))
		}
		sent += month(p.Mappings[1].PerSecond / min(p.Mappings[1].Batch, receiveMax))
		all = append(all, Cost{"SQS requests", sent, sent / price.Million * price.QueueRequests})
	}
	return all
}

// provisioned are the lines of the tables of money and their indexes, with the capacity that the stack gives them. API keys and quota
// counters are on demand all the same.
func provisioned(p Plan) []Cost {
	writes, reads := provisionedFor(p).All(spec.PaymentTables()...)
	writeHours, readHours := float64(writes)*price.MonthHours, float64(reads)*price.MonthHours
	counted := p.Tables[countersTable].Writes * price.MonthSeconds
	onDemand := (p.Tables[countersTable].Reads + p.Tables[keysTable].Reads) * price.MonthSeconds
	return []Cost{
		{"DynamoDB provisioned, write unit hours", writeHours, writeHours * price.WriteHours},
		{"DynamoDB provisioned, read unit hours", readHours, readHours * price.ReadHours},
		{"DynamoDB write units, of quota counters", counted, counted / price.Million * price.Writes},
		{"DynamoDB read units, of API keys and counters", onDemand, onDemand / price.Million * price.Reads},
	}
}
