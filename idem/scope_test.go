package idem_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
)

// No part of a scope can pass for another by a delimiter in it, and keys spread over all partitions.
func TestRecordKeyLeavesNoDelimiterToInject(t *testing.T) {
	seen := map[idem.RecordKey]idem.Scope{}
	for _, s := range []idem.Scope{
		{Tenant: "a", Operation: "b.c", Key: "d"}, {Tenant: "ab", Operation: ".c", Key: "d"}, {Tenant: "a", Operation: "b.cd", Key: ""},
		{Tenant: "a", Key: "b.cd"}, {Tenant: "a", Operation: "b.c", Principal: "d"}, {Tenant: "a", Operation: "b.c", Key: "d", Principal: "e"},
		{Tenant: "a#b", Key: "c"}, {Tenant: "a", Key: "b#c"},
	} {
		key := s.RecordKey()
		if other, ok := seen[key]; ok {
			t.Errorf("%+v and %+v share a key", s, other)
		}
		if len(key) != 43 || strings.Contains(string(key), s.Tenant+"#") {
			t.Errorf("key %q is no hash", key)
		}
		seen[key] = s
	}
}

func TestOperationIDFindsItsRecordAndNamesItsMessages(t *testing.T) {
	key := idem.Scope{Tenant: "t", Key: "k"}.RecordKey()
	id, err := idem.Mint{Random: bytes.NewReader(bytes.Repeat([]byte{0xfe}, 16))}.OperationID(key)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := id.RecordKey(); err != nil || found != key {
		t.Errorf("record key %q, %v; want %q", found, err, key)
	}
	if operation, n, err := id.Message(7).Operation(); err != nil || operation != id || n != 7 {
		t.Errorf("message of %q number %d, %v", operation, n, err)
	}
	for _, bad := range []idem.MessageID{"", "op_x.1", idem.MessageID(id), idem.MessageID(id + ".0"), idem.MessageID(id + ".01"), idem.MessageID(id + ".100"), idem.MessageID(id + ".1.1")} {
		if _, _, err := bad.Operation(); err == nil {
			t.Errorf("%q is taken for a message id", bad)
		}
	}
}

func TestMintFailsWithoutRandomness(t *testing.T) {
	empty := idem.Mint{Random: strings.NewReader("short")}
	if owner, err := empty.Owner(); err == nil {
		t.Errorf("owner %q from too little randomness", owner)
	}
	if _, err := empty.OperationID("not a key"); err == nil {
		t.Error("an operation id for what is no record key")
	}
}
