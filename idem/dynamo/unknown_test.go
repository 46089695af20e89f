package dynamo_test

import (
	"context"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
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

// What a later release added to a row is there still when this one has written the whole of it anew.
func TestAttributesOfALaterReleaseAreCarriedThrough(t *testing.T) {
	store, client, tables := onDynoxide(t, dynamo.Config{})
	rowOf := func(key idem.RecordKey) attributes { return stored(t, client, tables.Idempotency, "pk", string(key)) }
	write := func(name string, r idem.Record, writes ...func(seen idem.Record) error) {
		t.Helper()
		must(t, store.Insert(t.Context(), r, base))
		later(t, client, tables.Idempotency, "pk", string(r.Key))
		for _, write := range writes {
			must(t, write(got(t, store, r.Key)))
			wantLater(t, rowOf(r.Key), name)
		}
	}
	wrapped := reserved(t)
	wrapped.Kind = idem.KindWrapped
	write("renewals", wrapped,
		func(r idem.Record) error { return store.Renew(t.Context(), renewed(r), idem.FenceOf(r)) },
		func(r idem.Record) error {
			next := r
			next.LookAt = base.Add(time.Hour)
			return store.Postpone(t.Context(), next, idem.FenceOf(r))
		})
	write("updates", reserved(t),
		func(r idem.Record) error { return store.Update(t.Context(), renewed(r), idem.FenceOf(r)) },
		func(r idem.Record) error {
			return store.Update(t.Context(), completed(r, random(10<<10)), idem.FenceOf(r))
		},
		func(r idem.Record) error { return store.Update(t.Context(), renewed(r), idem.FenceOf(r)) })
	write("a commit", reserved(t), func(r idem.Record) error {
		fence := idem.FenceOf(r)
		send, err := store.Prepare(idem.Commit{Record: completed(r, []byte("{}")), Fence: &fence, Now: base, Token: string(owner(t))})
		must(t, err)
		return send(t.Context())
	})
	var conflict *idem.RecordConflictError
	held := reserved(t)
	write("an update of what was in the way", held, func(idem.Record) error {
		conflict = firstKnown(store.Insert(t.Context(), held, base)).(*idem.RecordConflictError)
		return store.Update(t.Context(), completed(*conflict.Existing, []byte("{}")), idem.FenceOf(*conflict.Existing))
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
	for name, write := range map[string]func(r idem.Record, m idem.Message) error{
		"a claim": func(_ idem.Record, m idem.Message) error {
			claimed := m
			claimed.State, claimed.Owner, claimed.Epoch = idem.MessageClaimed, owner(t), 1
			return store.UpdateMessage(t.Context(), claimed, idem.FenceOfMessage(m))
		},
		"a claim of an image": func(_ idem.Record, m idem.Message) error {
			image, err := store.DecodeImage(stored(t, client, tables.Outbox, "id", string(m.ID)))
			must(t, err)
			claimed := *image
			claimed.State, claimed.Owner, claimed.Epoch = idem.MessageClaimed, owner(t), 1
			return store.UpdateMessage(t.Context(), claimed, idem.FenceOfMessage(m))
		},
		"a settlement": func(r idem.Record, m idem.Message) error {
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
