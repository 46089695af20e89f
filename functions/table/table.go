// Package table has the shapes of the application's own tables, and nothing else: the functions, the CDK app and the tests
// share them, so a table that is deployed is the table that is read. The package belongs to this repository's application
// and has no compatibility promise.
package table

import "github.com/idem-go/idem-aws/idem/dynamo/schema"

// Attributes that the keys of the table of payments are made of.
const (
	// Key is the table's partition key: "<kind>#<tenant>/<id>".
	Key = "pk"
	// Hour is the partition key of the ledger index: "<UTC hour>#<shard>". Payments, refunds and payouts have it from their
	// first write on. A collecting account has [Collecting] instead, and a transfer to one "to#<tenant>/<account>#<partition>"
	// until it is folded into the account's balance.
	Hour = "lh"
	// CreatedAt is its sort key, in epoch ms.
	CreatedAt = "ca"
)

// Payments is the table of payments, refunds, payouts, transfers and accounts. Its index shows what was made
// when, for the drift job: keys only, which never change, so that it costs one write of 1 KB for each row and none
// for what becomes of it. It also shows what is to be folded into the balances of collecting accounts.
func Payments() schema.Table {
	return schema.Table{Key: Key, Index: schema.Index{Name: "ledger", Partition: Hour, Sort: CreatedAt}}
}

// Collecting is the partition of the ledger index that lists the collecting accounts.
const Collecting = "collecting"

// LedgerShards is how many partitions an hour of the ledger index has by default: each takes 1,000 rows a second.
const LedgerShards = 4

// LedgerShardsMax is the most: a job that lists an hour asks each of them.
const LedgerShardsMax = 256

// ShardsKey is the key of the row that keeps the highest number of shards, and Shards its attribute.
const (
	ShardsKey = ".ledger-shards"
	Shards    = schema.Shards
)

// Attributes of the table of API keys.
const (
	// KeyID is its partition key: the id of a key, which is its hash.
	KeyID = "id"
	// KeyTenant is whose the key is, and KeyName what the tenant knows it by.
	KeyTenant = "tn"
	KeyName   = "nm"
	// KeyScopes are what it may be used for.
	KeyScopes = "sc"
	// KeyCreatedAt, KeyExpiresAt, KeyRevokedAt and KeyLastUsed are in epoch ms; the last three are not there where it does not
	// expire, is not revoked, or was never used.
	KeyCreatedAt = "ca"
	KeyExpiresAt = "ea"
	KeyRevokedAt = "ra"
	KeyLastUsed  = "lu"
	// KeyCreatedBy and KeyRevokedBy are the operators.
	KeyCreatedBy = "cb"
	KeyRevokedBy = "rb"
	// KeyLimits are the tenant's own limits, on each of its keys; not there where it has the deployment's.
	KeyLimits = "lm"
	// KeyGone is the TTL, in epoch seconds: only of keys that expire, and long after that.
	KeyGone = "ttl"
)

// APIKeys is the table of API keys, one item each. It is apart from the payments, so that what authenticates reads nothing
// else, and what moves money can't make a key.
func APIKeys() schema.Table { return schema.Table{Key: KeyID, TTL: KeyGone} }

// Attributes of the table of the drift job's progress.
const (
	// DriftKey is its partition key: "pass/…", "piece/…", or "begin".
	DriftKey = "id"
	// DriftGone is the TTL, in epoch seconds.
	DriftGone = "ttl"
)

// Drift is the table of what the drift job has compared: an item for each pass over an hour, and for each piece of it. Nothing in
// it can't be compared anew.
func Drift() schema.Table { return schema.Table{Key: DriftKey, TTL: DriftGone} }
