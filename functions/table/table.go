// Package table has the shape of the application's own table, and nothing else: the functions, the CDK app and the tests
// share it, so a table that is deployed is the table that is read.
package table

import "github.com/idem-go/idem-aws/idem/dynamo/schema"

// Attributes that the table's keys are made of.
const (
	// Key is the table's partition key: "<kind>#<tenant>/<id>".
	Key = "pk"
	// Hour is the partition key of the ledger index: "<UTC hour>#<shard>". Payments, refunds and payouts have it from their
	// first write on, and nothing else has.
	Hour = "lh"
	// CreatedAt is its sort key, in epoch ms.
	CreatedAt = "ca"
)

// Payments is the table of payments, refunds, payouts, transfers, accounts and API keys. Its index shows what was made
// when, for the drift job: keys only, which never change, so that it costs one write of 1 KB for each row and none
// for what becomes of it.
func Payments() schema.Table {
	return schema.Table{Key: Key, Index: schema.Index{Name: "ledger", Partition: Hour, Sort: CreatedAt}}
}

// LedgerShards is how many partitions an hour of the ledger index has: each takes 1,000 rows a second.
const LedgerShards = 4
