package dynamo_test

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func TestStore(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		client := dynamotest.Client(url)
		tables := createTables(t, client)
		newHarness := func(t *testing.T) storetest.Harness {
			return harness(client, tables, newStore(t, client, tables, dynamo.Config{Shards: 3}))
		}
		storetest.Run(t, newHarness)
		t.Run("sealed", func(t *testing.T) { storetest.RunSealed(t, newHarness) })
	})
}

// tables are the store's, and one of business rows.
type tables struct {
	dynamotest.Tables
	rows string
}

var prefixes atomic.Int64

// createTables creates tables that no other test has.
func createTables(t *testing.T, client *dynamodb.Client) tables {
	t.Helper()
	prefix := "test-" + strconv.FormatInt(prefixes.Add(1), 10)
	created, err := dynamotest.CreateTables(t.Context(), client, prefix)
	if err != nil {
		t.Fatal(err)
	}
	rows := prefix + "-rows"
	if err := dynamotest.CreateTable(t.Context(), client, rows, schema.Table{Key: "pk"}); err != nil {
		t.Fatal(err)
	}
	return tables{created, rows}
}

func newStore(t *testing.T, client *dynamodb.Client, tables tables, cfg dynamo.Config) *dynamo.Store {
	t.Helper()
	cfg.IdempotencyTable, cfg.OutboxTable = tables.Idempotency, tables.Outbox
	store, err := dynamo.New(client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func harness(client *dynamodb.Client, tables tables, store *dynamo.Store) storetest.Harness {
	return storetest.Harness{
		Store: store,
		InsertRow: func(key string, failure storage.Failure) storage.Write {
			return insertRow(tables, key, failure)
		},
		AddRow: func(key string) storage.Write {
			return dynamo.Update(types.Update{
				TableName: &tables.rows, Key: rowKey(key), UpdateExpression: aws.String("ADD n :one"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":one": number("1")},
			})
		},
		CountRow: func(ctx context.Context, key string) (int, error) {
			out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &tables.rows, Key: rowKey(key), ConsistentRead: aws.Bool(true)})
			if err != nil || out.Item == nil {
				return 0, err
			}
			return strconv.Atoi(out.Item["n"].(*types.AttributeValueMemberN).Value)
		},
	}
}

// insertRow puts a row: only where it is absent, if a failure is given.
func insertRow(tables tables, key string, failure ...storage.Failure) storage.Write {
	put := types.Put{TableName: &tables.rows, Item: rowKey(key)}
	put.Item["n"] = number("1")
	if len(failure) > 0 {
		put.ConditionExpression = aws.String("attribute_not_exists(pk)")
	}
	return dynamo.Put(put, failure...)
}

func rowKey(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: key}}
}

func number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// Only the states that this release knows as final expire: what a later release keeps in another state is never
// overwritten, whatever its expiry says.
func TestAnUnknownStateDoesNotExpire(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		client := dynamotest.Client(url)
		store := newStore(t, client, createTables(t, client), dynamo.Config{})
		later := completed(reserved(t), nil)
		later.State = "archived"
		must(t, store.Insert(t.Context(), later, base))
		again := reserved(t)
		again.Key = later.Key
		if err := store.Insert(t.Context(), again, later.ExpiresAt.Add(time.Hour)); meaningOf(err) != conflict {
			t.Errorf("got %v, want a conflict", err)
		}
	})
}
