package storage_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

func TestOperationIDFindsItsRecordAndNamesItsMessages(t *testing.T) {
	key := storage.RecordKey(strings.Repeat("A", 43))
	id, err := storage.IDGenerator{Random: bytes.NewReader(bytes.Repeat([]byte{0xfe}, 16))}.OperationID(key)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := id.RecordKey(); err != nil || found != key {
		t.Errorf("record key %q, %v; want %q", found, err, key)
	}
	if operation, n, err := id.Message(7).Operation(); err != nil || operation != id || n != 7 {
		t.Errorf("message of %q number %d, %v", operation, n, err)
	}
	for _, bad := range []storage.MessageID{"", "op_x.1", storage.MessageID(id), storage.MessageID(id + ".0"), storage.MessageID(id + ".01"), storage.MessageID(id + ".100"), storage.MessageID(id + ".1.1")} {
		if _, _, err := bad.Operation(); err == nil {
			t.Errorf("%q is taken for a message id", bad)
		}
	}
}

func TestARecordKeyTellsItsOwnIncarnationsFromAnothers(t *testing.T) {
	key, other := storage.RecordKey(strings.Repeat("A", 43)), storage.RecordKey(strings.Repeat("A", 42)+"E")
	id, err := key.Operation(protocol.ID{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	if incarnation, ok := key.Incarnation(id); !ok || incarnation != (protocol.ID{1, 2}) {
		t.Errorf("its own: %v, %v", incarnation, ok)
	}
	for of, id := range map[storage.RecordKey]storage.OperationID{other: id, "not a key": id, key: "op_x", key + "=": id, "": ""} {
		if _, ok := of.Incarnation(id); ok {
			t.Errorf("%q is taken for an incarnation of %q", id, of)
		}
	}
}

func TestNoIDIsMadeWithoutRandomness(t *testing.T) {
	empty := storage.IDGenerator{Random: strings.NewReader("short")}
	if owner, err := empty.Owner(); err == nil {
		t.Errorf("owner %q from too little randomness", owner)
	}
	if _, err := empty.OperationID("not a key"); err == nil {
		t.Error("an operation id for what is no record key")
	}
}
