package dynamo

import (
	"fmt"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/codec"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Limits of DynamoDB.
const (
	itemBytesMax         = 400 << 10
	transactionItemsMax  = 100
	transactionBytesMax  = 4 << 20
	tokenCharactersMax   = 36
	chunksMax            = transactionItemsMax - 1
	batchGetItemsMax     = 100
	shardsBound          = 256
	inlineBytesBound     = 64 << 10
	chunkBytesBound      = 300 << 10
	responseBytesBound   = 3584 << 10 // with a record and business writes still within transactionBytesMax
	chunksForResponseMax = 19         // beside a record and the 80 writes and messages that an execution may have
)

// Defaults of Config.
const (
	ShardsDefault           = 1
	InlineBytesMaxDefault   = 4 << 10
	ChunkBytesDefault       = chunkBytesBound
	ResponseBytesMaxDefault = 3<<20 + 64<<10 // the engine's default, and what it grows by where it is sealed
)

// Config is what New takes besides the client. The zero value of each field but the tables means its default.
type Config struct {
	// IdempotencyTable and OutboxTable are names of tables as package schema has them, or their ARNs. Both are
	// required, and are two tables.
	IdempotencyTable string
	OutboxTable      string
	// Shards is the number of partitions that each queue of the sparse indexes is spread over, 1 to 256; default 1. An
	// index partition takes 1,000 writes per second, and one that is full throttles the table itself. A message enters the
	// index and leaves it, so have one shard for each 500 messages per second at peak, and some more. It may be raised at any
	// time. To lower it again frees nothing: the tables keep the highest number, and what lists looks into as many ([Store.CheckShards]).
	Shards int
	// InlineBytesMax is the largest body, after compression, that is stored in the record itself, 1 to 65,536 bytes;
	// default 4 KiB. Every write of a record, also one whose condition fails, is billed by the size of the stored item.
	// Larger bodies of final responses are stored in chunk items, which only a replay reads.
	InlineBytesMax int
	// ChunkBytes is the size of a chunk item's share of a body, InlineBytesMax to 307,200 bytes; default 300 KiB.
	ChunkBytes int
	// ResponseBytesMax is the largest response that is stored, headers included and before compression, at most 3.5 MiB
	// and at most 19 chunks; default 3 MiB and 64 KiB. A larger one is [storage.ErrResponseTooLarge], before anything is sent.
	ResponseBytesMax int
	// Translate turns an application's own business write into an item of the transaction. It is asked for every write
	// that is not one of [Put], [Update], [Delete] or [ConditionCheck]; without it such a write is an error.
	Translate func(storage.Write) (types.TransactWriteItem, error)
	// Now is the clock that a call's deadline is compared with before the call is sent. Default time.Now.
	Now func() time.Time
	// Meter, where set, is called after each call to DynamoDB, on the caller's goroutine, and makes the store ask for the
	// consumed capacity. Default: nobody is called.
	Meter func(Usage)
}

var (
	tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)
	tableARN  = regexp.MustCompile(`^arn:[a-z0-9-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table/[a-zA-Z0-9_.-]{3,255}$`)
)

// New makes a store. It returns an [*idem.ConfigError] that names the field, its value and the rule.
func New(client *dynamodb.Client, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if client == nil {
		return nil, &idem.ConfigError{Field: "client", Value: nil, Rule: "must be a DynamoDB client"}
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	compressor, err := codec.New(responseBytesBound)
	if err != nil {
		return nil, err
	}
	return &Store{client: client, protocol: client.Options().Protocol, cfg: cfg, codec: compressor, kept: new(atomic.Int64)}, nil
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	for _, field := range []struct {
		value        *int
		defaultValue int
	}{
		{&c.Shards, ShardsDefault},
		{&c.InlineBytesMax, InlineBytesMaxDefault},
		{&c.ChunkBytes, ChunkBytesDefault},
		{&c.ResponseBytesMax, ResponseBytesMaxDefault},
	} {
		if *field.value == 0 {
			*field.value = field.defaultValue
		}
	}
	return c
}

func (c Config) validate() error {
	for _, table := range []struct{ field, value string }{{"IdempotencyTable", c.IdempotencyTable}, {"OutboxTable", c.OutboxTable}} {
		if !tableName.MatchString(table.value) && !tableARN.MatchString(table.value) {
			return &idem.ConfigError{Field: "Config." + table.field, Value: fmt.Sprintf("%q", table.value), Rule: "must be a table's name (" + tableName.String() + ") or ARN"}
		}
	}
	if nameOf(c.IdempotencyTable) == nameOf(c.OutboxTable) {
		return &idem.ConfigError{Field: "Config.OutboxTable", Value: fmt.Sprintf("%q", c.OutboxTable), Rule: "must be another table than Config.IdempotencyTable"}
	}
	for _, bound := range []struct {
		field            string
		value, low, high int
		rule             string
	}{
		{"Shards", c.Shards, 1, shardsBound, fmt.Sprintf("must be 1 to %d", shardsBound)},
		{"InlineBytesMax", c.InlineBytesMax, 1, inlineBytesBound, fmt.Sprintf("must be 1 to %d", inlineBytesBound)},
		{"ChunkBytes", c.ChunkBytes, c.InlineBytesMax, chunkBytesBound, fmt.Sprintf("must be Config.InlineBytesMax (%d) to %d", c.InlineBytesMax, chunkBytesBound)},
		{"ResponseBytesMax", c.ResponseBytesMax, 1, responseBytesBound, fmt.Sprintf("must be 1 to %d", responseBytesBound)},
		{
			"ResponseBytesMax", c.ResponseBytesMax, 1, chunksForResponseMax * c.ChunkBytes,
			fmt.Sprintf("must be at most %d times Config.ChunkBytes (%d)", chunksForResponseMax, c.ChunkBytes),
		},
	} {
		if bound.value < bound.low || bound.value > bound.high {
			return &idem.ConfigError{Field: "Config." + bound.field, Value: bound.value, Rule: bound.rule}
		}
	}
	return nil
}
