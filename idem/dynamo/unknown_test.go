package dynamo_test

import (
	"context"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ofALaterRelease are attributes that this release does not know, of every type.
func ofALaterRelease() attributes {
	word := &types.AttributeValueMemberS{Value: "later"}
	return attributes{
		"zs": word, "zn": &types.AttributeValueMemberN{Value: "3.14159265358979323846264338327950288"},
		"zb": &types.AttributeValueMemberB{Value: []byte{0, 255}}, "zf": &types.AttributeValueMemberBOOL{Value: true},
		"z0": &types.AttributeValueMemberNULL{Value: true}, "zl": &types.AttributeValueMemberL{Value: []types.AttributeValue{word}},
		"zm": &types.AttributeValueMemberM{Value: attributes{"inner": word}}, "zz": &types.AttributeValueMemberSS{Value: []string{"one"}},
	}
}

// later makes a row what a later release might have made of it.
func later(t *testing.T, client *dynamodb.Client, table, key, value string) {
	t.Helper()
	it := stored(t, client, table, key, value)
	maps.Copy(it, ofALaterRelease())
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it})
	must(t, err)
}

func wantLater(t *testing.T, it attributes, after string) {
	t.Helper()
	for attribute, value := range ofALaterRelease() {
		if !reflect.DeepEqual(it[attribute], value) {
			t.Errorf("after %s attribute %s is %#v", after, attribute, it[attribute])
		}
	}
}

// What a later release added to a row is there still when this one has written the whole of it anew (peers.md H17).
func TestAttributesOfALaterReleaseAreCarriedThrough(t *testing.T) {
	store, client, tables := onDynoxide(t, dynamo.Config{})
	rowOf := func(key storage.RecordKey) attributes {
		return stored(t, client, tables.Idempotency, "pk", string(key))
	}
	write := func(name string, r storage.Record, writes ...func(seen storage.Record) error) {
		t.Helper()
		must(t, store.Insert(t.Context(), r, base))
		later(t, client, tables.Idempotency, "pk", string(r.Key))
		for _, write := range writes {
			must(t, write(got(t, store, r.Key)))
			wantLater(t, rowOf(r.Key), name)
		}
	}
	wrapped := reserved(t)
	wrapped.Kind = storage.KindWrapped
	write("renewals", wrapped,
		func(r storage.Record) error { return store.Renew(t.Context(), renewed(r), storage.FenceOf(r)) },
		func(r storage.Record) error {
			next := r
			next.LookAt = base.Add(time.Hour)
			return store.Postpone(t.Context(), next, storage.FenceOf(r))
		})
	write("updates", reserved(t),
		func(r storage.Record) error { return store.Update(t.Context(), renewed(r), storage.FenceOf(r)) },
		func(r storage.Record) error {
			return store.Update(t.Context(), completed(r, random(10<<10)), storage.FenceOf(r))
		},
		func(r storage.Record) error { return store.Update(t.Context(), renewed(r), storage.FenceOf(r)) })
	write("a commit", reserved(t), func(r storage.Record) error {
		fence := storage.FenceOf(r)
		send, err := store.Prepare(storage.Commit{Record: completed(r, []byte("{}")), Fence: &fence, Now: base, Token: string(owner(t))})
		must(t, err)
		return send(t.Context())
	})
	var conflict *storage.RecordConflictError
	held := reserved(t)
	write("an update of what was in the way", held, func(storage.Record) error {
		conflict = firstKnown(store.Insert(t.Context(), held, base)).(*storage.RecordConflictError)
		return store.Update(t.Context(), completed(*conflict.Existing, []byte("{}")), storage.FenceOf(*conflict.Existing))
	})

	// Nothing of an incarnation that has expired is left in the next.
	next := reserved(t)
	next.Key = held.Key
	must(t, store.Insert(t.Context(), next, base.Add(24*time.Hour)))
	if it := rowOf(held.Key); it["zs"] != nil {
		t.Errorf("another incarnation has %v", it["zs"])
	}
}

func TestAttributesOfALaterReleaseAreCarriedThroughInMessages(t *testing.T) {
	store, client, tables := onDynoxide(t, dynamo.Config{})
	for name, write := range map[string]func(r storage.Record, m storage.Message) error{
		"a claim": func(_ storage.Record, m storage.Message) error {
			claimed := m
			claimed.State, claimed.Owner, claimed.Epoch = storage.MessageClaimed, owner(t), 1
			return store.UpdateMessage(t.Context(), claimed, storage.FenceOfMessage(m))
		},
		"a claim of an image": func(_ storage.Record, m storage.Message) error {
			image, err := store.DecodeImage(stored(t, client, tables.Outbox, "id", string(m.ID)))
			must(t, err)
			claimed := *image
			claimed.State, claimed.Owner, claimed.Epoch = storage.MessageClaimed, owner(t), 1
			return store.UpdateMessage(t.Context(), claimed, storage.FenceOfMessage(m))
		},
		"a settlement": func(r storage.Record, m storage.Message) error {
			send, err := store.PrepareSettle(settlement(t, r, m, []byte("{}")))
			must(t, err)
			err = send(t.Context())
			wantLater(t, stored(t, client, tables.Idempotency, "pk", string(r.Key)), "a settlement")
			return err
		},
	} {
		r, m := deferred(t, store)
		later(t, client, tables.Idempotency, "pk", string(r.Key))
		later(t, client, tables.Outbox, "id", string(m.ID))
		seen, err := store.Message(context.Background(), m.ID)
		must(t, err)
		must(t, write(r, *seen))
		wantLater(t, stored(t, client, tables.Outbox, "id", string(m.ID)), name)
	}
}

// What this release writes it knows: else it would carry through what it means to remove.
func TestNothingThatIsWrittenIsUnknown(t *testing.T) {
	store, _, _ := onDynoxide(t, dynamo.Config{})
	for name, r := range releaseRecords(t) {
		for _, sealed := range []bool{false, true} {
			r.Sealed = sealed
			must(t, store.Insert(t.Context(), r, released))
			back, err := store.Get(t.Context(), r.Key)
			if must(t, err); back.Unknown != nil {
				t.Errorf("%s, sealed %v: %v", name, sealed, back.Unknown)
			}
			r.Key += "s"
		}
	}
}
