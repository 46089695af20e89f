package memstore_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest"
)

var start = time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)

func newStore(t *testing.T, cfg memstore.Config) *memstore.Store {
	t.Helper()
	store, err := memstore.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestContract(t *testing.T) {
	for name, cfg := range map[string]memstore.Config{"defaults": {}, "one shard, all inline": {Shards: 1, InlineBytesMax: 1 << 30}} {
		t.Run(name, func(t *testing.T) {
			newHarness := func(t *testing.T) storetest.Harness { return harness(newStore(t, cfg)) }
			storetest.Run(t, newHarness)
			t.Run("removal", func(t *testing.T) { storetest.RunRemoval(t, newHarness) })
			t.Run("sealed", func(t *testing.T) { storetest.RunSealed(t, newHarness) })
		})
	}
}

func harness(store *memstore.Store) storetest.Harness {
	return storetest.Harness{
		Store: store,
		InsertRow: func(key string, failure storage.Failure) storage.Write {
			return memstore.Write{Key: key, Condition: absent, Apply: add(1), Failure: failure}
		},
		AddRow: func(key string) storage.Write { return memstore.Write{Key: key, Apply: add(1)} },
		CountRow: func(_ context.Context, key string) (int, error) {
			return count(store.Row(key))
		},
		Remove: func(_ context.Context, now time.Time) error {
			store.Expire(now)
			return nil
		},
	}
}

func absent(row []byte) bool { return row == nil }

func count(row []byte) (int, error) {
	if row == nil {
		return 0, nil
	}
	return strconv.Atoi(string(row))
}

func add(n int) func([]byte) []byte {
	return func(row []byte) []byte {
		was, _ := count(row) // rows are written here only
		return []byte(strconv.Itoa(was + n))
	}
}

// record is a completed record of its own scope.
func record(key string) storage.Record {
	pk := idem.Scope{Tenant: "tenant", Operation: "orders.create", Key: key}.RecordKey()
	return storage.Record{
		Key: pk, State: storage.StateCompleted, OperationID: storage.OperationID("op_" + key), Epoch: 1, Owner: "owner",
		Kind: storage.KindOptimistic, Response: storage.Response{Status: 201, Body: []byte("{}")}, CreatedAt: start,
		DoneAt: start, ExpiresAt: start.Add(time.Hour), Retention: time.Hour, SchemaVersion: storage.SchemaVersion,
	}
}

func message(r storage.Record, n int) storage.Message {
	return storage.Message{
		ID: r.OperationID.Message(n), Index: n, OperationID: r.OperationID, RecordKey: r.Key, State: storage.MessagePending,
		CreatedAt: start, SweepAt: start, Retention: time.Hour, SchemaVersion: storage.SchemaVersion,
	}
}

func commit(t *testing.T, store *memstore.Store, c storage.Commit) error {
	t.Helper()
	send, err := store.Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	return send(t.Context())
}

func TestNewRefusesNegativeNumbers(t *testing.T) {
	for _, cfg := range []memstore.Config{{Shards: -1}, {InlineBytesMax: -1}, {ResponseBytesMax: -1}} {
		if _, err := memstore.New(cfg); err == nil {
			t.Errorf("New(%+v) succeeded", cfg)
		}
	}
}

// A token covers ten minutes and no more: then the condition decides again.
func TestTokenIsRememberedForTenMinutes(t *testing.T) {
	now := start
	store := newStore(t, memstore.Config{Now: func() time.Time { return now }})
	r := record("k")
	send, err := store.Prepare(storage.Commit{Record: r, Now: start, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context()); err != nil {
		t.Fatal(err)
	}
	now = start.Add(10*time.Minute - time.Nanosecond)
	if err := send(t.Context()); err != nil {
		t.Errorf("within the window: %v", err)
	}
	now = start.Add(10 * time.Minute)
	var conflict *storage.RecordConflictError
	if err := send(t.Context()); !errors.As(err, &conflict) {
		t.Errorf("after the window: got error %v, want a RecordConflictError", err)
	}
}

// All conditions are judged on the state before the transaction, whatever its other writes do.
func TestConditionsSeeTheStateBefore(t *testing.T) {
	store := newStore(t, memstore.Config{})
	store.PutRow("from", []byte("5"))
	enough := func(row []byte) bool { n, _ := count(row); return n >= 5 }
	transfer := func(key string) error {
		return commit(t, store, storage.Commit{Record: record(key), Now: start, Token: key, Writes: []storage.Write{
			memstore.Write{Key: "from", Condition: enough, Apply: add(-5), Failure: idem.Retry()},
			memstore.Write{Key: "to", Apply: add(5)},
			memstore.Write{Key: "other", Condition: absent},
		}})
	}
	if err := transfer("first"); err != nil {
		t.Fatal(err)
	}
	var failed *storage.WriteFailedError
	if err := transfer("second"); !errors.As(err, &failed) || len(failed.Indexes) != 1 || failed.Indexes[0] != 0 {
		t.Errorf("got error %v, want write 0 to fail", err)
	}
	rows := store.Rows()
	if string(rows["from"]) != "0" || string(rows["to"]) != "5" || len(rows) != 2 {
		t.Errorf("rows are %q", rows)
	}
}

func TestRowsAreCopiedAndRemoved(t *testing.T) {
	store := newStore(t, memstore.Config{})
	row := []byte("mine")
	store.PutRow("a", row)
	store.PutRow("b", []byte{})
	row[0] = '!'
	store.Row("a")[0] = '!'
	store.Rows()["a"][0] = '!'
	if got := string(store.Row("a")); got != "mine" {
		t.Errorf("the row is %q", got)
	}
	if store.Row("b") == nil {
		t.Error("an empty row reads as none")
	}
	remove := func([]byte) []byte { return nil }
	err := commit(t, store, storage.Commit{Record: record("k"), Now: start, Token: "t", Writes: []storage.Write{memstore.Write{Key: "a", Apply: remove}}})
	if err != nil {
		t.Fatal(err)
	}
	store.PutRow("b", nil)
	if rows := store.Rows(); len(rows) != 0 {
		t.Errorf("rows are %q, want none", rows)
	}
}

// domainWrite is an application's own write, as Config.Translate meets it.
type domainWrite struct{ account string }

func (domainWrite) IfConditionFails() storage.Failure { return storage.Failure{} }

func TestTranslate(t *testing.T) {
	store := newStore(t, memstore.Config{Translate: func(w storage.Write) (memstore.Write, error) {
		domain, ok := w.(domainWrite)
		if !ok {
			return memstore.Write{}, errors.New("not of this domain")
		}
		return memstore.Write{Key: domain.account, Apply: add(1)}, nil
	}})
	if err := commit(t, store, storage.Commit{Record: record("k"), Now: start, Token: "t", Writes: []storage.Write{domainWrite{"a"}}}); err != nil {
		t.Fatal(err)
	}
	if got := string(store.Row("a")); got != "1" {
		t.Errorf("the row is %q", got)
	}
	for name, w := range map[string]storage.Write{"a foreign write": memstore.Write{Key: "a"}, "a write without a key": domainWrite{}} {
		if _, err := store.Prepare(storage.Commit{Record: record("l"), Token: "u", Writes: []storage.Write{w}}); err == nil {
			t.Errorf("%s was prepared", name)
		}
	}
	if _, err := newStore(t, memstore.Config{}).Prepare(storage.Commit{Record: record("l"), Token: "u", Writes: []storage.Write{domainWrite{"a"}}}); err == nil {
		t.Error("a domain write was prepared without Translate")
	}
}

// Native TTL removes late: until Expire is called, what is past its time is there and judged by its reader.
func TestExpireRemovesWhatTTLMay(t *testing.T) {
	store := newStore(t, memstore.Config{})
	done, held, unknown, pending := record("done"), record("held"), record("unknown"), record("pending")
	held.State, held.Kind, held.LeaseUntil = storage.StateInProgress, storage.KindAtomic, start.Add(time.Minute)
	unknown.State, unknown.Kind, unknown.LeaseUntil = storage.StateUnknown, storage.KindWrapped, start
	pending.State, pending.Kind = storage.StatePending, storage.KindDeferred
	for i, r := range []storage.Record{done, held, unknown, pending} {
		m := message(r, 1)
		if i == 0 {
			m.State, m.DoneAt, m.RemoveAt = storage.MessageDelivered, start, m.RemovedAfter(r.ExpiresAt)
		}
		if err := commit(t, store, storage.Commit{Record: r, Now: start, Token: string(r.OperationID), Messages: []storage.Message{m}}); err != nil {
			t.Fatal(err)
		}
	}
	const late = 16 * time.Minute // a request may be that late on the wire
	for _, step := range []struct {
		at                time.Duration
		records, messages int
	}{
		{time.Hour + late - time.Millisecond, 0, 0},
		{time.Hour + late, 1, 0},               // done
		{time.Hour + late + time.Minute, 1, 0}, // held, a retention after its lease
		{25*time.Hour - time.Second, 0, 0},
		{25 * time.Hour, 0, 1}, // done's message outlives it by a day
		{24 * 365 * time.Hour, 0, 0},
	} {
		if records, messages := store.Expire(start.Add(step.at)); records != step.records || messages != step.messages {
			t.Errorf("after %v: %d records and %d messages went, want %d and %d", step.at, records, messages, step.records, step.messages)
		}
	}
	if records, messages := store.Records(), store.Messages(); len(records) != 2 || len(messages) != 3 {
		t.Errorf("%d records and %d messages are left, want 2 and 3", len(records), len(messages))
	}
}

// A large body is not in what a read of the record returns, as on DynamoDB: whoever forgets LoadResponse answers with
// nothing, here too.
func TestLargeBodiesNeedLoadResponse(t *testing.T) {
	store := newStore(t, memstore.Config{InlineBytesMax: 10, ResponseBytesMax: 1000})
	r := record("k")
	r.Response.Body = []byte(strings.Repeat("x", 11))
	if err := store.Insert(t.Context(), r, start); err != nil {
		t.Fatal(err)
	}
	got, err := store.Get(t.Context(), r.Key)
	if err != nil || got.Chunks != 1 || got.Response.Body != nil || got.Response.Status != 201 {
		t.Fatalf("got %+v, %v", got, err)
	}
	loaded, err := store.LoadResponse(t.Context(), *got)
	if err != nil || len(loaded.Response.Body) != 11 || loaded.Chunks != 0 {
		t.Errorf("loaded %+v, %v", loaded, err)
	}
	store.Expire(r.ExpiresAt.Add(time.Hour))
	if _, err := store.LoadResponse(t.Context(), *got); !errors.Is(err, storage.ErrChunksMissing) {
		t.Errorf("got error %v, want ErrChunksMissing", err)
	}
	r.Response.Body = make([]byte, 1001)
	if err := store.Insert(t.Context(), r, start); !errors.Is(err, storage.ErrResponseTooLarge) {
		t.Errorf("got error %v, want ErrResponseTooLarge", err)
	}
}

func TestTimesAreKeptInMilliseconds(t *testing.T) {
	store := newStore(t, memstore.Config{})
	r := record("k")
	r.CreatedAt = start.Add(1_999_999 * time.Nanosecond).In(time.FixedZone("east", 3600))
	if err := store.Insert(t.Context(), r, start); err != nil {
		t.Fatal(err)
	}
	if got := store.Records()[0].CreatedAt; got != start.Add(time.Millisecond) {
		t.Errorf("created at %v", got)
	}
}
