package dynamo_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// wantKept holds that the tables keep a number of shards, once a store was checked.
func wantKept(t *testing.T, store *dynamo.Store, want int) {
	t.Helper()
	if kept, err := store.CheckShards(t.Context()); err != nil || kept != want {
		t.Errorf("checked with %d shards: %d, %v, want %d", store.Shards(), kept, err, want)
	}
}

// A release with fewer shards, such as one that was gone back to, is told of the number that rows were written with, and lowers it not.
func TestTheHighestNumberOfShardsIsKept(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		client := dynamotest.Client(url)
		tables := createTables(t, client)
		of := func(shards int) *dynamo.Store { return newStore(t, client, tables, dynamo.Config{Shards: shards}) }
		wantKept(t, of(2), 2)
		wantKept(t, of(2), 2)
		wantKept(t, of(1), 2)
		later(t, client, tables.Idempotency, "pk", schema.ShardsKey)
		wantKept(t, of(8), 8)
		wantKept(t, of(2), 8)
		wantKept(t, of(7), 8)
		wantKept(t, of(8), 8)
		wantLater(t, stored(t, client, tables.Idempotency, "pk", schema.ShardsKey), "two numbers")
	})
}

// An operator's process has the number of the functions, and changes it never: with fewer shards it would miss rows, and what it wrote with
// more the functions would.
func TestAnOperatorsNumberOfShardsIsNotWritten(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		client := dynamotest.Client(url)
		tables := createTables(t, client)
		of := func(shards int) *dynamo.Store {
			return newStore(t, client, tables, dynamo.Config{Shards: shards})
		}
		must(t, of(8).SameShards(t.Context())) // nobody has written with another
		must(t, of(1).SameShards(t.Context()))
		wantKept(t, of(8), 8)
		must(t, of(8).SameShards(t.Context()))
		for _, shards := range []int{1, 7, 9, 256} {
			err := of(shards).SameShards(t.Context())
			if config, ok := errors.AsType[*idem.ConfigError](err); !ok || config.Field != "Config.Shards" || config.Value != shards ||
				config.Rule != "must be 8, the number that rows are written with" {
				t.Errorf("%d shards: %v", shards, err)
			}
		}
		wantKept(t, of(8), 8)
	})
}

func TestTheNumberOfShardsIsReadForOneUnit(t *testing.T) {
	var b bill
	store, _, _ := onDynoxide(t, dynamo.Config{Meter: b.meter})
	wantKept(t, store, 1)
	b.take()
	wantKept(t, store, 1)
	if cost := b.take(); cost != "GetItem 1R" {
		t.Errorf("it costs %s", cost)
	}
}

// Whoever comes first, the highest number stays.
func TestOfNumbersOfShardsThatComeAtOnceTheHighestStays(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		client := dynamotest.Client(url)
		tables := createTables(t, client)
		const most = 12
		var group sync.WaitGroup
		for shards := 1; shards <= most; shards++ {
			store := newStore(t, client, tables, dynamo.Config{Shards: shards})
			group.Go(func() {
				if kept, err := store.CheckShards(t.Context()); err != nil || kept < store.Shards() {
					t.Errorf("%d of %d, %v", kept, store.Shards(), err)
				}
			})
		}
		group.Wait()
		wantKept(t, newStore(t, client, tables, dynamo.Config{Shards: most}), most)
		wantKept(t, newStore(t, client, tables, dynamo.Config{Shards: most - 1}), most)
	})
}

// A reply that was lost is no refusal, and the number is there for the next call.
func TestALostReplyLeavesTheNumberOfShards(t *testing.T) {
	client, faults := faultyClient(dynamotest.Endpoint(t, dynamotest.Names()[0]), 1)
	tables := createTables(t, client)
	store := newStore(t, client, tables, dynamo.Config{Shards: 4})
	faults.Inject("UpdateItem", wirefault.LoseReply)
	if _, err := store.CheckShards(t.Context()); meaningOf(err) != unknown {
		t.Errorf("the error means %q: %v", meaningOf(err), err)
	}
	wantKept(t, newStore(t, client, tables, dynamo.Config{Shards: 3}), 4)
	wantKept(t, store, 4)
}

// Nobody knows how many shards to list where the row does not say so.
func TestAMalformedNumberOfShardsIsAnError(t *testing.T) {
	store, client, tables := onDynoxide(t, dynamo.Config{Shards: 4})
	for _, value := range []types.AttributeValue{nil, number("0"), number("-1"), &types.AttributeValueMemberS{Value: "4"}} {
		it := attributes{"pk": &types.AttributeValueMemberS{Value: schema.ShardsKey}, "other": number("1")}
		if value != nil {
			it[schema.Shards] = value
		}
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(tables.Idempotency), Item: it})
		must(t, err)
		raise := func(ctx context.Context) error { _, err := store.CheckShards(ctx); return err }
		for _, check := range []func(context.Context) error{raise, store.SameShards} {
			if err := check(t.Context()); err == nil || errors.As(err, new(*idem.ConfigError)) {
				t.Errorf("%v: %v", value, err)
			}
		}
	}
}

// Raised at any time: rows of before and of after are listed once each, and one of before moves when it is written again. A store with the
// number of before lists its own shards, and the others once it has read that there are any.
func TestAHigherNumberOfShardsListsRowsOfBefore(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		client := dynamotest.Client(url)
		tables := createTables(t, client)
		before := newStore(t, client, tables, dynamo.Config{Shards: 2})
		after := newStore(t, client, tables, dynamo.Config{Shards: 16})
		var ids []storage.MessageID
		var first storage.Message
		for i := range 40 {
			store := before
			if i >= 20 {
				store = after
			}
			r := pending(reserved(t))
			m := message(r, 1)
			send, err := store.Prepare(storage.Commit{Record: r, Messages: []storage.Message{m}, Now: base, Token: string(owner(t))})
			must(t, err)
			must(t, send(t.Context()))
			if ids = append(ids, m.ID); i == 0 {
				first = m
			}
		}
		slices.Sort(ids)
		if got := queuedOffers(t, after); !slices.Equal(got, ids) {
			t.Errorf("16 shards list %d of %d", len(got), len(ids))
		}
		if got := queuedOffers(t, before); len(got) >= len(ids) || len(got) < 20 {
			t.Errorf("2 shards list %d of %d", len(got), len(ids))
		}
		if _, _, err := before.QueuedMessages(t.Context(), storage.QueueOffer, 15, base, 1, ""); err == nil {
			t.Error("a shard is listed that nobody has said to exist")
		}
		wantKept(t, after, 16)
		wantKept(t, before, 16)
		if got := queuedOffersOf(t, before, 16); !slices.Equal(got, ids) {
			t.Errorf("2 shards, once checked, list %d of %d", len(got), len(ids))
		}
		if _, _, err := before.QueuedRecords(t.Context(), storage.QueueUnknown, 16, base, 1, ""); err == nil {
			t.Error("a shard is listed that does not exist")
		}
		again := first
		again.Revision, again.Attempts = "again", 1
		must(t, after.UpdateMessage(t.Context(), again, storage.FenceOfMessage(first)))
		if got := queuedOffers(t, after); !slices.Equal(got, ids) {
			t.Errorf("16 shards list %d of %d after an update", len(got), len(ids))
		}
	})
}

// queuedOffers lists every shard, in order of ids.
func queuedOffers(t *testing.T, store *dynamo.Store) []storage.MessageID {
	t.Helper()
	return queuedOffersOf(t, store, store.Shards())
}

func queuedOffersOf(t *testing.T, store *dynamo.Store, shards int) []storage.MessageID {
	t.Helper()
	var ids []storage.MessageID
	for shard := range shards {
		refs, next, err := store.QueuedMessages(t.Context(), storage.QueueOffer, shard, base.Add(time.Hour), 100, "")
		must(t, err)
		if next != "" {
			t.Fatal("there is another page")
		}
		for _, ref := range refs {
			ids = append(ids, ref.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
