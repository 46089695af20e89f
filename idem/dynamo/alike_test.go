package dynamo_test

import (
	"context"
	"flag"
	"strconv"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest"
)

var (
	alikeFrom    = flag.Uint64("alike.from", 0, "seed of the first story that DynamoDB and the reference store are compared in")
	alikeStories = flag.Int("alike.stories", 25, "how many stories; 10 at most with -short")
)

// Whatever commands come, DynamoDB and the reference store answer alike and are left with the same rows: what the simulator and the tests
// of an application show on the one holds for the other.
func TestAnswersAsTheReferenceStoreDoes(t *testing.T) {
	stories, commands := *alikeStories, 60
	if testing.Short() {
		stories = min(stories, 10)
	}
	dynamotest.Each(t, func(t *testing.T, url string) {
		client := dynamotest.Client(url)
		tables := createTables(t, client)
		reference, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		storetest.RunAlike(t, harness(client, tables, newStore(t, client, tables, dynamo.Config{Shards: 3})), referenceHarness(reference), *alikeFrom, stories, commands)
	})
}

// referenceHarness has business rows that count as those of DynamoDB do.
func referenceHarness(store *memstore.Store) storetest.Harness {
	count := func(row []byte) int {
		n, _ := strconv.Atoi(string(row)) // no row counts 0
		return n
	}
	add := func(row []byte) []byte { return []byte(strconv.Itoa(count(row) + 1)) }
	return storetest.Harness{
		Store: store,
		InsertRow: func(key string, failure storage.Failure) storage.Write {
			return memstore.Write{Key: key, Condition: func(row []byte) bool { return row == nil }, Apply: add, Failure: failure}
		},
		AddRow:   func(key string) storage.Write { return memstore.Write{Key: key, Apply: add} },
		CountRow: func(_ context.Context, key string) (int, error) { return count(store.Row(key)), nil },
	}
}
