package main

import "github.com/idem-go/idem-aws/infra/spec"

// DynamoDB's limits of one partition, and what a new table on demand takes at once; none can be raised (Developer Guide,
// "Partitions and data distribution", "On-demand capacity mode").
const (
	partitionWrites = 1000
	partitionReads  = 3000
	newTableWrites  = 4000
	newTableReads   = 12000
)

// Lambda's and SQS's limits of a mapping from a queue: batches at once at most and in the beginning (Lambda, "Scaling behavior
// for SQS event sources").
const (
	queueBatchesMax   = 1000
	queueBatchesFirst = 5
)

// requestsPerExecution is how many requests a second Lambda takes for each execution of the account's concurrency.
const requestsPerExecution = 10

// Quota is one of the account's, per Region, that can be raised.
type Quota struct {
	Name    string  `json:"name"`
	Default float64 `json:"default"`
	Needed  float64 `json:"needed"`
	Raise   bool    `json:"raise"`
	Source  string  `json:"source"`
}

// The account's quotas, as docs/platform.md has them.
var (
	quotaConcurrency = Quota{
		Name: "Lambda concurrent executions", Default: 1000,
		Source: "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html",
	}
	quotaGateway = Quota{
		Name: "API Gateway requests/s", Default: 10000,
		Source: "https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html",
	}
	quotaTableWrites = Quota{
		Name: "DynamoDB table write units/s", Default: 40000,
		Source: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
	}
	quotaTableReads = Quota{
		Name: "DynamoDB table read units/s", Default: 40000,
		Source: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
	}
	quotaProvisionedWrites = Quota{
		Name: "DynamoDB account provisioned write units", Default: spec.AccountUnitsDefault,
		Source: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
	}
	quotaProvisionedReads = Quota{
		Name: "DynamoDB account provisioned read units", Default: spec.AccountUnitsDefault,
		Source: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
	}
	quotaProvisionedTable = Quota{
		Name: "DynamoDB table provisioned units, with its index", Default: spec.TableUnitsDefault,
		Source: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
	}
	quotaInFlight = Quota{
		Name: "SQS messages in flight", Default: 120000,
		Source: "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html",
	}
)

func (q Quota) of(what string, needed float64) Quota {
	if what != "" {
		q.Name += ", " + what
	}
	q.Needed = whole(needed)
	q.Raise = q.Needed > q.Default
	return q
}
