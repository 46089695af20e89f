// Package schema names the tables, indexes and attributes of idem on DynamoDB. The store, the CDK constructs and the
// tests share these names, so that a table is read as it was deployed.
//
// Use it to create the tables with a tool of your own, or to read them. Applications that deploy by
// infra/idemconstruct, infra/sam or infra/terraform do not need it. Do not write the tables by these names: every
// write of a record or message has conditions, which package dynamo makes.
//
// The package imports no AWS package. Attribute names are short because a lost conditional write is billed by the
// size of the stored item.
package schema

// Table is the shape of one DynamoDB table: a string partition key, no sort key, native TTL.
type Table struct {
	// Key is the name of the partition key, of type S.
	Key string
	// TTL is the attribute that native TTL reads: epoch seconds, present only on items that may go.
	TTL string
	// StreamNewImage says that the table has a stream with NEW_IMAGE.
	StreamNewImage bool
	// Index is the table's one sparse index.
	Index Index
}

// Index is a sparse global secondary index: items without its partition key are not in it and cost nothing.
type Index struct {
	// Name of the index.
	Name string
	// Partition is its partition key, of type S: "<queue>#<shard>".
	Partition string
	// Sort is its sort key, of type N: the epoch millisecond from which somebody should look at the item.
	Sort string
	// Projected lists the attributes that the index carries beside the keys: only such as never change, because each
	// change of a projected attribute is a write of the index too. Empty: the keys only.
	Projected []string
}

// Attributes that both tables have, with the same meaning.
const (
	State         = "st"
	OperationID   = "op" // of a record: the 16 random bytes of the id; of a message: absent where the message's id tells it
	Epoch         = "ep"
	Owner         = "ow"
	Revision      = "rv"  // the write that made the row, 16 bytes
	LeaseUntil    = "lu"  // epoch ms
	Tenant        = "tn"  //
	Attempts      = "an"  //
	CreatedAt     = "ca"  // epoch ms
	SchemaVersion = "sv"  //
	TTL           = "ttl" // epoch s
	Queue         = "q"   // partition key of the sparse index
	QueueAt       = "qa"  // sort key of the sparse index, epoch ms

	// The record's expiry, which its messages carry too.
	KeepFor        = "kf" // ms
	Gone           = "gn"
	ResourceBacked = "rl"

	// Sealed says that the record's response, or the message's payload, is encrypted.
	Sealed = "sl"

	// Trace is where in a trace the row was made: 16 bytes of the trace's id, 8 of the span's, 1 of flags, and of a message the
	// tracestate. It is absent where nobody traced.
	Trace = "tr"
)

// Attributes of the idempotency table.
const (
	RecordKey          = "pk"
	OperationName      = "on"
	Kind               = "kd"
	Principal          = "pr"
	Fingerprint        = "fp"
	FingerprintVersion = "fv"
	FingerprintKeyID   = "fk"
	Selection          = "fs" // what the fingerprint was taken of; absent where that is everything
	FingerprintParts   = "fd" // the beginnings of the hashes of its parts
	ResponseStatus     = "rs"
	ResponseHeaders    = "rh"
	ResponseBody       = "rb"
	ResponseEncoding   = "re"
	ResponseChunks     = "rc" // also on each chunk: how many there are
	ChunkDigest        = "rx" // also on each chunk: SHA-256 of all of them, joined
	DoneAt             = "da" // epoch ms
	FreeAt             = "ea" // epoch ms, from when a new request may replace the record
	AnswersUntil       = "au" // epoch ms, until when a final record answers, where that is not told by DoneAt and Retention
	RecordOnly         = "al"
	Retention          = "rt" // ms
	LastError          = "le"
	SafeToRunAgain     = "sf"
	Observed           = "ob"
	RefuseBefore       = "rfb" // epoch ms; of the row LossKey only
)

// LossKey is the key of the row of the idempotency table that says when data may have been lost. A record's key is base64url, and
// a chunk's begins with an operation id, so neither ever begins with a dot.
const LossKey = ".refuse-before"

// ScopeMarkKey is the key of another row of the idempotency table that is of no record: it keeps the mark of the secret that
// the records are named under, in ScopeMark, and is never removed.
const (
	ScopeMarkKey = ".scope-mark"
	ScopeMark    = "mk"
)

// ShardsKey is the key of a third such row: it keeps the highest number of shards that the queues of both tables were written
// with, in Shards, and is never removed.
const (
	ShardsKey = ".shards"
	Shards    = "sh"
)

// PlacePrefix begins the keys of further such rows, one for each shard of a queue that was too long for one run: each keeps in Place
// where the next run goes on. They may be removed: the next run then begins with what is due for longest.
const (
	PlacePrefix = ".place."
	Place       = "pl"
)

// Attributes of the outbox table.
const (
	MessageID         = "id"
	MessageRecord     = "pk" // the record's key; absent where the message's id tells it
	MessageIndex      = "n"  // position in the operation's chain, from 1
	Topic             = "tp"
	Payload           = "pl"
	FirstClaimedAt    = "fc" // epoch ms
	NextAttemptAt     = "na" // epoch ms
	OpenSince         = "os" // epoch ms
	RedrivenAt        = "rd" // epoch ms
	ProviderReference = "ref"
	LastOutcome       = "lo"
	SettledBy         = "by" // one letter
	KeptDelivered     = "kv" // map of ProviderReference and Evidence
	KeptDeclined      = "kx" // as KeptDelivered
	Evidence          = "ev" // of what is kept
	Undoes            = "ud"
	Refused           = "rf"
	Unfailed          = "uf"
	Died              = "di"
	ClearedAt         = "cl" // epoch ms
	Detached          = "dt"
)

// CounterName is the key of the table of quota counters, whose other attributes are TTL and a counter's fields.
const CounterName = "pk"

// Quota is the table of counters that quotas are enforced by.
func Quota() Table { return Table{Key: CounterName, TTL: TTL} }

// MessageStatePending is the value of State that the stream mapping filters for.
const MessageStatePending = "pending"

// Idempotency is the table of records and of the chunks of their large responses.
func Idempotency() Table {
	return Table{
		Key: RecordKey,
		TTL: TTL,
		Index: Index{
			Name: "sweep", Partition: Queue, Sort: QueueAt,
			Projected: []string{OperationID, Tenant},
		},
	}
}

// Outbox is the table of messages.
func Outbox() Table {
	return Table{
		Key:            MessageID,
		TTL:            TTL,
		StreamNewImage: true,
		Index: Index{
			Name: "queue", Partition: Queue, Sort: QueueAt,
			Projected: []string{Tenant, Topic},
		},
	}
}

// Attributes of the audit log of operators' changes, which package operator/auditlog has.
const (
	EntryID   = "id"
	EntryDay  = "dy" // "2026-11-21", UTC
	EntryAt   = "at" // epoch ms
	Actor     = "ac"
	Action    = "an"
	Subject   = "sj"
	Reason    = "rs"
	Seen      = "sn"
	Outcome   = "oc"
	EntryDone = "da" // epoch ms
)

// Audit is the table of operators' changes. Its index shows them by day, and what each is about, so that the story of one
// operation reads no entry of another's. Nothing in it expires.
func Audit() Table {
	return Table{Key: EntryID, Index: Index{Name: "days", Partition: EntryDay, Sort: EntryAt, Projected: []string{Subject}}}
}
