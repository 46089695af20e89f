package storage_test

import (
	"bytes"
	"strings"
	"testing"

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

func TestNoIDIsMadeWithoutRandomness(t *testing.T) {
	empty := storage.IDGenerator{Random: strings.NewReader("short")}
	if owner, err := empty.Owner(); err == nil {
		t.Errorf("owner %q from too little randomness", owner)
	}
	if _, err := empty.OperationID("not a key"); err == nil {
		t.Error("an operation id for what is no record key")
	}
}
