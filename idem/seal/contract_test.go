package seal_test

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// What every store is, a sealing one is too: over the reference store, sealing or only opening, and over DynamoDB.
func TestContractInMemory(t *testing.T) {
	for name, cfg := range map[string]seal.Config{"sealing": {}, "open only": {OpenOnly: true}, "sealed only": {SealedOnly: true}} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Harness {
				v := newVault(t, cfg)
				return storetest.Harness{
					Store: v,
					InsertRow: func(key string, failure storage.Failure) storage.Write {
						return memstore.Write{Key: key, Condition: func(row []byte) bool { return row == nil }, Apply: increment, Failure: failure}
					},
					AddRow:   func(key string) storage.Write { return memstore.Write{Key: key, Apply: increment} },
					CountRow: func(_ context.Context, key string) (int, error) { return len(v.inner.Row(key)), nil },
				}
			})
		})
	}
}

// increment counts by length.
func increment(row []byte) []byte { return append(row, 1) }

func TestContractOnDynamoDB(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		b := newBank(t, url)
		storetest.Run(t, func(t *testing.T) storetest.Harness {
			return storetest.Harness{
				Store: b.store(t, seal.Config{}),
				InsertRow: func(key string, failure storage.Failure) storage.Write {
					row := rowKey(key)
					row["n"] = &types.AttributeValueMemberN{Value: "1"}
					return dynamo.Put(types.Put{TableName: &b.rows, Item: row, ConditionExpression: aws.String("attribute_not_exists(pk)")}, failure)
				},
				AddRow: func(key string) storage.Write {
					return dynamo.Update(types.Update{
						TableName: &b.rows, Key: rowKey(key), UpdateExpression: aws.String("ADD n :one"),
						ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
					})
				},
				CountRow: func(ctx context.Context, key string) (int, error) {
					out, err := b.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &b.rows, Key: rowKey(key), ConsistentRead: aws.Bool(true)})
					if err != nil || out.Item == nil {
						return 0, err
					}
					return strconv.Atoi(out.Item["n"].(*types.AttributeValueMemberN).Value)
				},
			}
		})
	})
}

func rowKey(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: key}}
}

// bank is a set of tables on an emulator: the store's, one of business rows, one of keys.
type bank struct {
	client *dynamodb.Client
	tables dynamotest.Tables
	rows   string
	keys   *tablekeys.Keys
	table  string
}

var prefixes atomic.Int64

func newBank(t *testing.T, url string) *bank {
	t.Helper()
	b := &bank{client: dynamotest.Client(url)}
	prefix := "seal-" + strconv.FormatInt(prefixes.Add(1), 10)
	b.tables = must(dynamotest.CreateTables(t.Context(), b.client, prefix))(t)
	b.rows, b.table = prefix+"-rows", prefix+"-keys"
	ok(t, dynamotest.CreateTable(t.Context(), b.client, b.rows, schema.Table{Key: "pk"}))
	ok(t, dynamotest.CreateTable(t.Context(), b.client, b.table, schema.Keys()))
	wrapper := must(seal.NewStatic([]byte("0123456789abcdef0123456789abcdef")))(t)
	b.keys = must(tablekeys.New(b.client, tablekeys.Config{Table: b.table, Wrapper: wrapper}))(t)
	return b
}

func (b *bank) plain(t *testing.T, cfg dynamo.Config) *dynamo.Store {
	t.Helper()
	cfg.IdempotencyTable, cfg.OutboxTable = b.tables.Idempotency, b.tables.Outbox
	return must(dynamo.New(b.client, cfg))(t)
}

// store is a sealing store with a key cache of its own, as another process has it.
func (b *bank) store(t *testing.T, cfg seal.Config) *seal.Store {
	t.Helper()
	cfg.Keys = b.keys
	return must(seal.New(b.plain(t, dynamo.Config{Shards: 3}), cfg))(t)
}
