package dynamo

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/codec"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

func offline(t testing.TB) *Store {
	t.Helper()
	compressor, err := codec.New(responseBytesBound)
	if err != nil {
		t.Fatal(err)
	}
	return &Store{cfg: Config{IdempotencyTable: "idempotency", OutboxTable: "outbox"}.withDefaults(), codec: compressor}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, int(500*time.Millisecond), time.UTC)

// everyField is a record that has every attribute.
func everyField() storage.Record {
	return storage.Record{
		Key: "key", State: storage.StateCompleted, OperationID: "op_1", Epoch: 2, Owner: "owner", Revision: "revision", LeaseUntil: noon,
		LookAt: noon.Add(time.Second), Tenant: "tenant", Operation: "orders.create", Kind: storage.KindWrapped, Principal: "session", SafeToRunAgain: true, Observed: true,
		Fingerprint: canonical.Fingerprint{Version: 1, KeyID: "k1", Sum: sha256.Sum256(nil)},
		Response:    storage.Response{Status: 201, Header: []storage.Field{{Name: "Location", Value: "/1"}}, Body: bytes.Repeat([]byte("idem"), 1<<10)},
		CreatedAt:   noon, DoneAt: noon, ExpiresAt: noon.Add(2 * time.Hour), FreeAt: noon.Add(3 * time.Hour), Retention: time.Hour, Expiry: everyExpiry, RecordOnly: true,
		Attempts: 3, LastError: "none", Trace: everyTrace.WithoutState(), SchemaVersion: storage.SchemaVersion,
	}
}

var everyTrace = trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1")

var everyExpiry = storage.Expiry{KeepFor: 2 * time.Hour, Gone: true, ResourceBacked: true}

func everyFieldOfMessage() storage.Message {
	return storage.Message{
		ID: "op_1.1", Index: 1, OperationID: "op_1", RecordKey: "key", Tenant: "tenant", Topic: "orders.charge", Payload: []byte("{}"),
		State: storage.MessageUnknown, Epoch: 2, Owner: "owner", Revision: "revision", LeaseUntil: noon, CreatedAt: noon, FirstClaimedAt: noon,
		NextAttemptAt: noon, SweepAt: noon, OpenSince: noon, DoneAt: noon, Attempts: 3, Retention: time.Hour, Expiry: everyExpiry, Detached: true,
		Reference: "ch_1", LastOutcome: "ambiguous", SettledBy: storage.SettledByWorker, KeptDelivered: &storage.Kept{Reference: "ch_1", Evidence: []byte("{}")}, KeptDeclined: &storage.Kept{},
		Undoes: true, Refused: true, Unfailed: true, Died: 2, ClearedAt: noon, RedrivenAt: noon, Trace: everyTrace, SchemaVersion: storage.SchemaVersion,
	}
}

var yes = &types.AttributeValueMemberBOOL{Value: true}

// Attribute names and units are what releases and other programs read: this list may grow and never changes.
func TestARecordsItem(t *testing.T) {
	it, chunks, err := offline(t).encodeRecord(everyField())
	if err != nil || len(chunks) != 0 {
		t.Fatal(err, len(chunks))
	}
	want := item{
		"pk": stringValue("key"), "st": stringValue("completed"), "op": stringValue("op_1"), "ep": numberValue(2),
		"ow": stringValue("owner"), "rv": stringValue("revision"), "lu": numberValue(noon.UnixMilli()),
		"qa": numberValue(noon.Add(time.Second).UnixMilli()), "tn": stringValue("tenant"), "on": stringValue("orders.create"),
		"kd": stringValue("wrapped"), "pr": stringValue("session"), "sf": yes, "ob": yes,
		"fv": numberValue(1), "fk": stringValue("k1"), "rs": numberValue(201),
		"rh": &types.AttributeValueMemberL{Value: []types.AttributeValue{stringValue("Location"), stringValue("/1")}},
		"re": stringValue("z"), "ca": numberValue(noon.UnixMilli()), "da": numberValue(noon.UnixMilli()),
		"ea": numberValue(noon.Add(3 * time.Hour).UnixMilli()), "au": numberValue(noon.Add(2 * time.Hour).UnixMilli()),
		"rt": numberValue(3600_000), "kf": numberValue(7200_000), "gn": yes, "rl": yes, "al": yes, "an": numberValue(3),
		"le": stringValue("none"), "tr": &types.AttributeValueMemberB{Value: everyTrace.WithoutState().Bytes()}, "sv": numberValue(1), "ttl": numberValue(noon.Unix() + 4*3600 + 16*60 + 1), // rounded up
	}
	delete(it, "rb")
	delete(it, "fp")
	if !reflect.DeepEqual(it, want) {
		t.Errorf("got\n%s\nwant\n%s", fingerprintOf(it), fingerprintOf(want))
	}
}

// A row is worth more than its trace: a position that can't be read is none, and the row is read.
func TestMalformedTraceIsDropped(t *testing.T) {
	for name, value := range map[string]types.AttributeValue{
		"a text": stringValue("00-0af7"), "too short": &types.AttributeValueMemberB{Value: []byte{1}}, "no id": &types.AttributeValueMemberB{Value: make([]byte, 25)},
	} {
		it, err := offline(t).encodeMessage(everyFieldOfMessage())
		if err != nil {
			t.Fatal(err)
		}
		it["tr"] = value
		if m, err := offline(t).decodeMessage(it); err != nil || m.Trace != "" || m.Topic != "orders.charge" {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func TestAMessagesItem(t *testing.T) {
	it, err := offline(t).encodeMessage(everyFieldOfMessage())
	if err != nil {
		t.Fatal(err)
	}
	ms := numberValue(noon.UnixMilli())
	want := item{
		"id": stringValue("op_1.1"), "n": numberValue(1), "op": stringValue("op_1"), "pk": stringValue("key"), "tn": stringValue("tenant"),
		"tp": stringValue("orders.charge"), "pl": &types.AttributeValueMemberB{Value: []byte("{}")}, "st": stringValue("unknown"),
		"ep": numberValue(2), "ow": stringValue("owner"), "rv": stringValue("revision"), "lu": ms, "ca": ms, "fc": ms, "na": ms, "os": ms, "da": ms,
		"an": numberValue(3), "rt": numberValue(3600_000), "dt": yes, "ref": stringValue("ch_1"),
		"kv": &types.AttributeValueMemberM{Value: item{"ref": stringValue("ch_1"), "ev": &types.AttributeValueMemberB{Value: []byte("{}")}}},
		"kx": &types.AttributeValueMemberM{Value: item{}}, "ud": yes, "rf": yes, "uf": yes, "di": numberValue(2), "cl": ms, "rd": ms,
		"lo": stringValue("ambiguous"), "by": stringValue("w"), "tr": &types.AttributeValueMemberB{Value: everyTrace.Bytes()}, "sv": numberValue(1),
		"q": stringValue("unknown#0"), "qa": ms, "kf": numberValue(7200_000), "gn": yes, "rl": yes,
	}
	if !reflect.DeepEqual(it, want) {
		t.Errorf("got\n%s\nwant\n%s", fingerprintOf(it), fingerprintOf(want))
	}
}

// An operation's id is not stored beside the key that it is made of: every write of a row, and every lost reserve, is billed
// by its size. What is not made of that key is stored whole.
func TestAnOperationIDIsStoredOnce(t *testing.T) {
	s := offline(t)
	key := idem.Scope{Tenant: "tenant", Operation: "orders.create", Key: "1"}.RecordKey()
	other := idem.Scope{Tenant: "tenant", Operation: "orders.create", Key: "2"}.RecordKey()
	incarnation := protocol.ID{1, 1 << 63}
	raw := storage.Raw(incarnation)
	id, err := key.Operation(incarnation)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Operation(incarnation)
	if err != nil {
		t.Fatal(err)
	}
	for own, want := range map[storage.OperationID]types.AttributeValue{
		id: &types.AttributeValueMemberB{Value: raw[:]}, foreign: stringValue(string(foreign)), "op_1": stringValue("op_1"),
	} {
		r := everyField()
		r.Key, r.OperationID = key, own
		it, _, err := s.encodeRecord(r)
		if err != nil || !reflect.DeepEqual(it[schema.OperationID], want) {
			t.Errorf("the id %s is stored as %v, %v", own, it[schema.OperationID], err)
		}
		if back, err := s.decodeRecord(it); err != nil || back.OperationID != own {
			t.Errorf("the id %s reads back as %+v, %v", own, back, err)
		}
		if read, err := OperationOf(only(it, item{schema.RecordKey: nil, schema.OperationID: nil})); err != nil || read != own {
			t.Errorf("the id %s is read from two attributes as %s, %v", own, read, err)
		}
	}
	for name, m := range map[string]storage.Message{
		"its own":         {ID: id.Message(2), OperationID: id, RecordKey: key},
		"another's":       {ID: id.Message(2), OperationID: foreign, RecordKey: other},
		"not made of any": {ID: "m1", OperationID: id, RecordKey: key},
	} {
		m.State, m.SchemaVersion = storage.MessagePending, storage.SchemaVersion
		it, err := s.encodeMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		if (it[schema.OperationID] == nil) != (name == "its own") || (it[schema.MessageRecord] == nil) != (name == "its own") {
			t.Errorf("%s: stored are %v and %v", name, it[schema.OperationID], it[schema.MessageRecord])
		}
		if back, err := s.decodeMessage(it); err != nil || back.OperationID != m.OperationID || back.RecordKey != m.RecordKey {
			t.Errorf("%s: it reads back as %+v, %v", name, back, err)
		}
	}
}

// A fence and a check compare the whole id: one of another record's key fits no row, though the random part be the same.
func TestAFenceComparesTheWholeOperationID(t *testing.T) {
	key := idem.Scope{Tenant: "tenant", Operation: "orders.create", Key: "1"}.RecordKey()
	foreign, err := idem.Scope{Tenant: "tenant", Operation: "orders.create", Key: "2"}.RecordKey().Operation(protocol.ID{1})
	if err != nil {
		t.Fatal(err)
	}
	for name, made := range map[string]func() (condition, error){
		"seen": func() (condition, error) { return fenced(key, storage.Fence{OperationID: foreign, Revision: "r"}) },
		"held": func() (condition, error) {
			return fenced(key, storage.Fence{OperationID: foreign, States: []storage.State{storage.StateInProgress}})
		},
		"checked": func() (condition, error) { return checked(storage.RecordCheck{Key: key, OperationID: foreign}) },
	} {
		c, err := made()
		if err != nil || !slices.ContainsFunc(slices.Collect(maps.Values(c.values)), func(v types.AttributeValue) bool {
			return reflect.DeepEqual(v, stringValue(string(foreign)))
		}) {
			t.Errorf("%s: compares with %v, %v", name, c.values, err)
		}
	}
	if _, err := checked(storage.RecordCheck{Key: key}); err == nil {
		t.Error("a check of no operation was taken")
	}
}

// Where the mark can't be read, nothing is known of the secret: that is no empty table.
func TestAMarkThatIsDamagedIsNotTakenForNone(t *testing.T) {
	for _, it := range []item{{}, {schema.ScopeMark: stringValue("")}, {schema.ScopeMark: numberValue(1)}} {
		if mark, err := markIn(it); err == nil {
			t.Errorf("%s: %q, want an error", fingerprintOf(it), mark)
		}
	}
	if mark, err := markIn(nil); err != nil || mark != "" {
		t.Errorf("no row: %q, %v", mark, err)
	}
}

// Until when a record answers is mostly told by what stands there anyway; whatever it is, it reads back as it was written.
func TestEveryLifeRoundTrips(t *testing.T) {
	s := offline(t)
	instants := []time.Time{{}, noon.UTC(), noon.Add(time.Hour).UTC(), noon.Add(time.Hour + 2*time.Second).UTC(), noon.Add(48 * time.Hour).UTC()}
	written := 0
	for _, state := range []storage.State{storage.StateCompleted, storage.StateFailed, storage.StateFailedRetryable, storage.StatePending} {
		for _, done := range instants[:2] {
			for _, retention := range []time.Duration{0, time.Hour} {
				for _, expires := range instants {
					for _, free := range instants {
						r := storage.Record{
							Key: "key", State: state, OperationID: "op_1", DoneAt: done, Retention: retention, ExpiresAt: expires, FreeAt: free,
							SchemaVersion: storage.SchemaVersion,
						}
						it, _, err := s.encodeRecord(r)
						if err != nil {
							t.Fatal(err)
						}
						if back, err := s.decodeRecord(it); err != nil || !back.ExpiresAt.Equal(expires) || !back.FreeAt.Equal(free) {
							t.Errorf("%+v reads back as %+v, %v", r, back, err)
						}
						if it[schema.AnswersUntil] != nil {
							written++
						}
					}
				}
			}
		}
	}
	if written == 0 {
		t.Error("no life is told outright")
	}
	plain := storage.Record{
		Key: "key", State: storage.StateCompleted, OperationID: "op_1", DoneAt: noon, Retention: time.Hour, ExpiresAt: noon.Add(time.Hour),
		FreeAt: noon.Add(time.Hour + 2*time.Second),
	}
	if it, _, err := s.encodeRecord(plain); err != nil || it[schema.AnswersUntil] != nil {
		t.Errorf("a plain life costs an attribute: %v, %v", it[schema.AnswersUntil], err)
	}
}

// A zero value has no attribute: a lost conditional write is billed by the stored size, and an index by its key.
func TestZeroValuesHaveNoAttribute(t *testing.T) {
	it, _, err := offline(t).encodeRecord(storage.Record{Key: "key", OperationID: "op_1", State: storage.StateUnknown})
	if names := slices.Sorted(maps.Keys(it)); err != nil || !slices.Equal(names, []string{"op", "pk", "st"}) {
		t.Errorf("a record has %v, %v", names, err)
	}
	it, err = offline(t).encodeMessage(storage.Message{ID: "op_1.1", State: storage.MessageCancelled})
	if names := slices.Sorted(maps.Keys(it)); err != nil || !slices.Equal(names, []string{"id", "st"}) {
		t.Errorf("a message has %v, %v", names, err)
	}
}

// TTL stands only on what may go (semantics.md "States"): never on pending, unknown or wrapped records, nor on messages
// that are not final, whatever they say.
func TestOnlyWhatMayGoHasATTL(t *testing.T) {
	store := offline(t)
	for _, row := range []struct {
		state storage.State
		kind  storage.Kind
		want  bool
	}{
		{storage.StateCompleted, storage.KindWrapped, true}, {storage.StateFailed, storage.KindDeferred, true},
		{storage.StateInProgress, storage.KindAtomic, true}, {storage.StateFailedRetryable, storage.KindAtomic, true},
		{storage.StateFailedRetryable, storage.KindWrapped, true},
		{storage.StateInProgress, storage.KindWrapped, false}, {storage.StateUnknown, storage.KindWrapped, false},
		{storage.StatePending, storage.KindDeferred, false},
	} {
		r := everyField()
		r.State, r.Kind, r.SafeToRunAgain = row.state, row.kind, false
		it, _, err := store.encodeRecord(r)
		if _, has := it[schema.TTL]; err != nil || has != row.want {
			t.Errorf("a %s %s record: ttl is %v, want %v, %v", row.state, row.kind, has, row.want, err)
		}
	}
	for state, want := range map[storage.MessageState]bool{
		storage.MessagePending: false, storage.MessageClaimed: false, storage.MessageUnknown: false, storage.MessageEvidenced: false, storage.MessageDead: false,
		storage.MessageDelivered: true, storage.MessageDeclined: true, storage.MessageCancelled: true,
	} {
		m := everyFieldOfMessage()
		m.State, m.RemoveAt = state, noon
		it, err := store.encodeMessage(m)
		if _, has := it[schema.TTL]; err != nil || has != want {
			t.Errorf("a %s message: ttl is %v, want %v, %v", state, has, want, err)
		}
	}
}

// A message that should be looked at "at once" is in the index all the same.
func TestAMessageWithoutATimeIsInItsQueue(t *testing.T) {
	store := offline(t)
	it, err := store.encodeMessage(storage.Message{ID: "op_1.1", State: storage.MessageDead, SchemaVersion: storage.SchemaVersion})
	if err != nil || !reflect.DeepEqual(it["qa"], numberValue(0)) || !reflect.DeepEqual(it["q"], stringValue("dead#0")) {
		t.Errorf("got %s, %v", fingerprintOf(it), err)
	}
	m, err := store.decodeMessage(it)
	if err != nil || !m.SweepAt.IsZero() {
		t.Errorf("got %v, %v, want no time", m, err)
	}
}

// A record of another release is returned whatever its attributes have become, and says that it can't be read;
// one that says it is of this release must be well-formed.
func TestOnlyTheOwnSchemaIsStrict(t *testing.T) {
	store := offline(t)
	whole, _, err := store.encodeRecord(everyField())
	if err != nil {
		t.Fatal(err)
	}
	wrong := &types.AttributeValueMemberNULL{Value: true}
	for attribute := range whole {
		if slices.Contains([]string{schema.SchemaVersion, schema.TTL, schema.Trace}, attribute) { // TestMalformedTraceIsDropped
			continue
		}
		damaged := maps.Clone(whole)
		damaged[attribute] = wrong
		var malformed *storage.MalformedRecordError
		if r, err := store.decodeRecord(damaged); !errors.As(err, &malformed) || !strings.Contains(err.Error(), attribute) && attribute != schema.ResponseEncoding {
			t.Errorf("attribute %s of a wrong type: got %v, %v", attribute, r, err)
		}
		damaged[schema.SchemaVersion] = numberValue(storage.SchemaVersion + 1)
		if r, err := store.decodeRecord(damaged); err != nil || r.Readable() {
			t.Errorf("attribute %s of another schema: got %v, %v, want an unreadable record", attribute, r, err)
		}
	}
	for attribute, value := range map[string]types.AttributeValue{
		schema.State: stringValue("suspended"), schema.Kind: stringValue("durable"), schema.SchemaVersion: numberValue(0),
	} {
		odd := maps.Clone(whole)
		odd[attribute] = value
		if r, err := store.decodeRecord(odd); err != nil || r.Readable() {
			t.Errorf("%s of a later day: got %v, %v, want an unreadable record", attribute, r, err)
		}
	}
}

func TestNumbersBeyondTheirRangeAreMalformed(t *testing.T) {
	store := offline(t)
	for attribute, value := range map[string]types.AttributeValue{
		schema.Epoch: &types.AttributeValueMemberN{Value: "1.5"}, schema.Attempts: numberValue(-1), schema.ResponseStatus: numberValue(1000),
		schema.ResponseChunks: numberValue(100), schema.Retention: numberValue(1 << 62), schema.Fingerprint: &types.AttributeValueMemberB{Value: []byte("short")},
		schema.CreatedAt: &types.AttributeValueMemberN{Value: "99999999999999999999"}, schema.ResponseEncoding: stringValue("lz4"),
		schema.ResponseHeaders: &types.AttributeValueMemberL{Value: []types.AttributeValue{stringValue("odd")}},
		schema.OperationID:     stringValue(""),
	} {
		it, _, err := store.encodeRecord(everyField())
		if err != nil {
			t.Fatal(err)
		}
		it[attribute] = value
		if r, err := store.decodeRecord(it); err == nil {
			t.Errorf("attribute %s: got %v, want an error", attribute, r)
		}
	}
}

// What identifies something is stored as it is or not at all; what only describes is stored as far as it goes.
func TestTextThatIsNotUTF8(t *testing.T) {
	store := offline(t)
	r := everyField()
	r.Tenant = "\xff"
	if _, _, err := store.encodeRecord(r); err == nil {
		t.Error("a tenant that is not UTF-8 was taken")
	}
	r = everyField()
	r.LastError, r.Response.Header = "bad \xff", []storage.Field{{Name: "X-Latin", Value: "caf\xe9"}}
	it, _, err := store.encodeRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := store.decodeRecord(it)
	if err != nil || back.LastError != "bad \uFFFD" || back.Response.Header[0].Value != "caf\xe9" {
		t.Errorf("got %+v, %v", back, err)
	}
}

func TestShardsAreUsedEvenly(t *testing.T) {
	store := offline(t)
	store.cfg.Shards = 4
	count := map[string]int{}
	for n := range 4000 {
		count[store.queueKey("offer", string(storage.OperationID("op_x").Message(n+1)))]++
	}
	for shard := range 4 {
		if n := count[shardKey("offer", shard)]; n < 800 || n > 1200 {
			t.Errorf("shard %d has %d of 4000 messages", shard, n)
		}
	}
}
