package dynamo_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/klauspost/compress/zstd"
)

// Two releases run side by side for as long as a deployment takes, and the older one comes back when it is rolled back:
// each reads what the other wrote, or says that it can't.

type attributes = map[string]types.AttributeValue

// fixture reads the items of a file of testdata/release-1.
func fixture(t *testing.T, path string) (items []attributes) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "release-1", path+".json"))
	must(t, err)
	var stored []map[string]json.RawMessage
	must(t, json.Unmarshal(raw, &stored))
	for _, wire := range stored {
		it := attributes{}
		for name, value := range wire {
			it[name] = attribute(t, value)
		}
		items = append(items, it)
	}
	return items
}

func attribute(t *testing.T, raw json.RawMessage) types.AttributeValue {
	t.Helper()
	var v struct {
		S, N *string
		B    []byte
		BOOL *bool
		L    []json.RawMessage
		M    map[string]json.RawMessage
	}
	must(t, json.Unmarshal(raw, &v))
	switch {
	case v.S != nil:
		return &types.AttributeValueMemberS{Value: *v.S}
	case v.N != nil:
		return &types.AttributeValueMemberN{Value: *v.N}
	case v.BOOL != nil:
		return &types.AttributeValueMemberBOOL{Value: *v.BOOL}
	case v.L != nil:
		list := &types.AttributeValueMemberL{}
		for _, element := range v.L {
			list.Value = append(list.Value, attribute(t, element))
		}
		return list
	case v.M != nil:
		of := attributes{}
		for name, value := range v.M {
			of[name] = attribute(t, value)
		}
		return &types.AttributeValueMemberM{Value: of}
	}
	return &types.AttributeValueMemberB{Value: v.B}
}

// beside is a store on tables that hold the rows of release 1.
type beside struct {
	*dynamo.Store
	client *dynamodb.Client
	tables tables
}

func besideRelease1(t *testing.T) beside {
	store, client, tables := onDynoxide(t, releaseConfig)
	return beside{store, client, tables}
}

func (b beside) put(t *testing.T, table string, items []attributes) {
	t.Helper()
	for _, it := range items {
		_, err := b.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it})
		must(t, err)
	}
}

func (b beside) items(t *testing.T, table string) []attributes {
	t.Helper()
	out, err := b.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	must(t, err)
	return out.Items
}

// settledRecord and settledMessage are what the fixtures "settled" hold.
func settledRecord(t *testing.T) (storage.Record, storage.Message, storage.Settlement) {
	t.Helper()
	r, m := releaseRecords(t)["pending"], releaseMessages(t)["claimed"]
	r.Revision, m.Revision = releaseRevision(t, "settled"), releaseRevision(t, "delivered")
	m.ID, m.OperationID, m.RecordKey = r.OperationID.Message(1), r.OperationID, r.Key
	end := storage.Settlement{
		Message: storage.MessageEnd{ID: m.ID, State: storage.MessageDelivered, Revision: m.Revision, DoneAt: released.Add(5 * time.Second), Reference: "ch_1", LastOutcome: "delivered", RemoveAt: m.RemovedAfter(released.Add(24*time.Hour + 5*time.Second))},
		Fence:   storage.MessageFence{Open: true},
		Record: &storage.RecordEnd{
			Key: r.Key, OperationID: r.OperationID, State: storage.StateCompleted, Revision: r.Revision, DoneAt: released.Add(5 * time.Second),
			ExpiresAt: released.Add(24*time.Hour + 5*time.Second), FreeAt: released.Add(24*time.Hour + 7*time.Second),
			Response: storage.Response{Status: 201, Body: noise(9 << 10)},
		},
		Token: string(owner(t)),
	}
	r.State, r.Response, r.DoneAt, r.ExpiresAt, r.FreeAt = end.Record.State, end.Record.Response, end.Record.DoneAt, end.Record.ExpiresAt, end.Record.FreeAt
	m.State, m.DoneAt, m.Reference, m.LastOutcome, m.SweepAt = end.Message.State, end.Message.DoneAt, "ch_1", "delivered", time.Time{}
	m.RemoveAt = end.Message.RemoveAt
	return r, m, end
}

// Every record of release 1 is read as what it was, and can be written on.
func TestRecordsOfRelease1AreReadAndContinued(t *testing.T) {
	records := releaseRecords(t)
	records["settled"], _, _ = settledRecord(t)
	for name, want := range records {
		t.Run(name, func(t *testing.T) {
			b := besideRelease1(t)
			b.put(t, b.tables.Idempotency, fixture(t, "records/"+name))
			r := got(t, b.Store, want.Key)
			want.Chunks, want.ChunksDigest = r.Chunks, r.ChunksDigest
			if !reflect.DeepEqual(r, want) {
				t.Fatalf("read\n%+v\nwant\n%+v", r, want)
			}
			next := r
			next.State, next.Epoch, next.Revision = storage.StateInProgress, r.Epoch+1, releaseRevision(t, "next")
			must(t, b.Update(t.Context(), next, storage.FenceOf(r)))
			if back := got(t, b.Store, want.Key); back.State != next.State || back.Epoch != next.Epoch || !bytes.Equal(back.Response.Body, want.Response.Body) {
				t.Errorf("written on it is %+v", back)
			}
		})
	}
}

// Every message of release 1 is read as what it was, and can be written on and settled.
func TestMessagesOfRelease1AreReadAndContinued(t *testing.T) {
	messages := releaseMessages(t)
	_, messages["settled"], _ = settledRecord(t)
	for name, want := range messages {
		t.Run(name, func(t *testing.T) {
			b := besideRelease1(t)
			items := fixture(t, "messages/"+name)
			b.put(t, b.tables.Outbox, items)
			m, err := b.Message(t.Context(), want.ID)
			must(t, err)
			if !reflect.DeepEqual(*m, want) {
				t.Fatalf("read\n%+v\nwant\n%+v", *m, want)
			}
			seen, err := b.DecodeImage(items[0])
			if must(t, err); !reflect.DeepEqual(*seen, want) {
				t.Fatalf("its image reads\n%+v\nwant\n%+v", *seen, want)
			}
			end := storage.MessageEnd{ID: m.ID, State: storage.MessageDelivered, DoneAt: released}
			send, err := b.PrepareSettle(storage.Settlement{Message: end, Fence: storage.MessageFence{Open: true}, Token: string(owner(t))})
			must(t, err)
			if err := send(t.Context()); (err != nil) != want.State.Final() {
				t.Errorf("evidence for a message that is %s: %v", want.State, err)
			}
		})
	}
}

// addedSinceRelease1 are the attributes that release 1 does not know, each with the reason why it is no wrong answer that
// release 1 carries it through without looking at it. There are none yet.
var addedSinceRelease1 = map[string]string{}

// Rows that hold the same values as those of release 1 have its attributes, each with the same type and value; what is
// compressed may be compressed otherwise, as long as release 1 decompresses it.
func TestRelease1ReadsTodaysRows(t *testing.T) {
	t.Run("records", func(t *testing.T) {
		for name, r := range releaseRecords(t) {
			b := besideRelease1(t)
			must(t, b.Insert(t.Context(), r, released))
			likeRelease1(t, name, "pk", b.items(t, b.tables.Idempotency), fixture(t, "records/"+name))
			bodyLikeRelease1(t, name, r, b.items(t, b.tables.Idempotency))
		}
	})
	t.Run("messages", func(t *testing.T) {
		for name, m := range releaseMessages(t) {
			b := besideRelease1(t)
			r := releaseRecord(t, "message-"+name, storage.KindDeferred)
			r.State = storage.StatePending
			send, err := b.Prepare(storage.Commit{Record: r, Now: released, Token: string(owner(t)), Messages: []storage.Message{m}})
			must(t, err)
			must(t, send(t.Context()))
			likeRelease1(t, name, "id", b.items(t, b.tables.Outbox), fixture(t, "messages/"+name))
		}
	})
	t.Run("settled", func(t *testing.T) { // what release 1 committed, ended by this one
		b := besideRelease1(t)
		r, m, end := settledRecord(t)
		b.put(t, b.tables.Idempotency, fixture(t, "records/pending"))
		claimed := fixture(t, "messages/claimed")
		claimed[0]["id"] = &types.AttributeValueMemberS{Value: string(m.ID)}
		b.put(t, b.tables.Outbox, claimed)
		send, err := b.PrepareSettle(end)
		must(t, err)
		must(t, send(t.Context()))
		likeRelease1(t, "record", "pk", b.items(t, b.tables.Idempotency), fixture(t, "records/settled"))
		bodyLikeRelease1(t, "record", r, b.items(t, b.tables.Idempotency))
		likeRelease1(t, "message", "id", b.items(t, b.tables.Outbox), fixture(t, "messages/settled"))
	})
}

// likeRelease1 wants today's items to be those of release 1, but for what was added since.
func likeRelease1(t *testing.T, name, key string, today, then []attributes) {
	t.Helper()
	if len(today) != len(then) {
		t.Errorf("%s: %d items, release 1 has %d", name, len(today), len(then))
	}
	byKey := map[string]attributes{}
	for _, it := range today {
		byKey[text(it[key])] = it
	}
	for _, old := range then {
		it := byKey[text(old[key])]
		for attribute, value := range old {
			if _, compressed := old["re"]; compressed && (attribute == "rb" || attribute == "rx") {
				continue
			}
			if attribute == "ttl" && key == "pk" { // today a record is kept for as long as a request may be late on the wire besides
				value = &types.AttributeValueMemberN{Value: strconv.Itoa(numberOf(t, value) + int(late/time.Second))}
			}
			if !reflect.DeepEqual(it[attribute], value) {
				t.Errorf("%s: attribute %s is %v, release 1 has %v", name, attribute, it[attribute], value)
			}
		}
		for attribute := range it {
			if _, known := old[attribute]; !known && addedSinceRelease1[attribute] == "" {
				t.Errorf("%s: attribute %s: what does release 1 make of it?", name, attribute)
			}
		}
	}
}

func text(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

func bytesOf(v types.AttributeValue) []byte {
	b, _ := v.(*types.AttributeValueMemberB)
	if b == nil {
		return nil
	}
	return b.Value
}

// bodyLikeRelease1 reads the body as release 1 does: inline or chunk by chunk, by the digest, raw or zstd.
func bodyLikeRelease1(t *testing.T, name string, r storage.Record, items []attributes) {
	t.Helper()
	slices.SortFunc(items, func(a, b attributes) int { return strings.Compare(text(a["pk"]), text(b["pk"])) })
	var body []byte
	var encoding string
	var digest []byte
	for _, it := range items {
		if _, chunk := it["rx"]; chunk || len(items) == 1 {
			body, encoding, digest = append(body, bytesOf(it["rb"])...), text(it["re"]), bytesOf(it["rx"])
		}
	}
	if sum := sha256.Sum256(body); digest != nil && !bytes.Equal(sum[:], digest) {
		t.Errorf("%s: the digest is another", name)
	}
	switch encoding {
	case "":
	case "z":
		decoder, err := zstd.NewReader(nil)
		must(t, err)
		defer decoder.Close()
		body, err = decoder.DecodeAll(body, nil)
		must(t, err)
	default:
		t.Errorf("%s: encoding %q", name, encoding)
	}
	if !bytes.Equal(body, r.Response.Body) {
		t.Errorf("%s: release 1 reads %q", name, body)
	}
}

// What is sealed release 1 can't open: it reads neither the record, whole or in chunks, by an encoding that it doesn't know,
// nor the message, by its schema. Where it ends a record whose 202 was sealed, what it stores is not.
func TestRelease1LeavesWhatIsSealedAlone(t *testing.T) {
	for name, size := range map[string]int{"inline": 100, "chunked": 9 << 10} {
		b := besideRelease1(t)
		r := releaseRecords(t)["completed"]
		r.Sealed, r.Response = true, storage.Response{Status: 201, Body: noise(size)}
		must(t, b.Insert(t.Context(), r, released))
		for _, it := range b.items(t, b.tables.Idempotency) {
			if encoding := text(it["re"]); encoding == "" || encoding == "z" {
				t.Errorf("%s: %v has the encoding %q", name, it["pk"], encoding)
			}
		}
		stored, err := b.Get(t.Context(), r.Key)
		if must(t, err); !stored.Sealed {
			t.Errorf("%s: it is not sealed any more", name)
		}
		stored.Sealed = false // as package seal reads it
		if whole, err := b.LoadResponse(t.Context(), *stored); err != nil || !bytes.Equal(whole.Response.Body, r.Response.Body) {
			t.Errorf("%s: %d bytes, %v", name, len(whole.Response.Body), err)
		}
	}
	b := besideRelease1(t)
	r, m := releaseRecords(t)["pending"], releaseMessages(t)["pending"]
	r.Sealed, m.Sealed = true, true
	send, err := b.Prepare(storage.Commit{Record: r, Now: released, Token: string(owner(t)), Messages: []storage.Message{m}})
	must(t, err)
	must(t, send(t.Context()))
	if version := b.items(t, b.tables.Outbox)[0]["sv"]; numberOf(t, version) == 1 {
		t.Errorf("a sealed message is of schema %v", version)
	}
	if back, err := b.Message(t.Context(), m.ID); err != nil || !back.Sealed || !back.Readable() {
		t.Errorf("a sealed message reads %+v, %v", back, err)
	}
	ended := b.items(t, b.tables.Idempotency)[0]
	for _, attribute := range []string{"st", "da", "ea", "le", "ttl", "rs", "rh", "rb", "re", "rc", "rx"} { // what release 1 settles
		delete(ended, attribute)
		if value, ok := fixture(t, "records/completed")[0][attribute]; ok {
			ended[attribute] = value
		}
	}
	b.put(t, b.tables.Idempotency, []attributes{ended})
	if back := got(t, b.Store, r.Key); back.Sealed || string(back.Response.Body) != `{"id":"ord_1"}` {
		t.Errorf("ended by release 1 it reads %+v", back)
	}
}

// A row of a later release, whatever of it has changed, is never guessed at.
func TestRowsOfALaterReleaseAreUnreadable(t *testing.T) {
	number := func(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
	word := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	for name, change := range map[string]attributes{
		"schema": {"sv": number("2")}, "schema, other types": {"sv": number("2"), "st": number("3"), "rh": word("x"), "ep": word("one")},
		"state": {"st": word("suspended")}, "kind": {"kd": word("durable")}, "no schema": {"sv": number("0")},
	} {
		b := besideRelease1(t)
		want := releaseRecords(t)["completed"]
		it := maps.Clone(fixture(t, "records/completed")[0])
		maps.Copy(it, change)
		b.put(t, b.tables.Idempotency, []attributes{it})
		r, err := b.Get(t.Context(), want.Key)
		must(t, err)
		if r.Readable() {
			t.Errorf("%s: a record reads %+v", name, *r)
		}
		if name == "kind" {
			continue // a message has none
		}
		b.put(t, b.tables.Outbox, []attributes{merged(fixture(t, "messages/claimed")[0], change)})
		m, err := b.Message(t.Context(), releaseMessages(t)["claimed"].ID)
		if must(t, err); m.Readable() {
			t.Errorf("%s: a message reads %+v", name, m)
		}
	}
}

func merged(it, change attributes) attributes {
	it = maps.Clone(it)
	maps.Copy(it, change)
	return it
}
