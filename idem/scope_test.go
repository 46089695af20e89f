package idem_test

import (
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
)

// No part of a scope can pass for another by a delimiter in it, and keys spread over all partitions.
func TestRecordKeyLeavesNoDelimiterToInject(t *testing.T) {
	seen := map[storage.RecordKey]idem.Scope{}
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

// A record is found again by later releases only if its key is made of the same bytes for ever.
func TestRecordKeysAreFrozen(t *testing.T) {
	scope := idem.Scope{Tenant: "tenant", Operation: "payments.create", Key: "key-1"}
	bound := scope
	bound.Principal = "session"
	for want, made := range map[storage.RecordKey]storage.RecordKey{
		"lU0z-Tj-QA7b6_d2AGtyMb6JtsSc8jKux1aF1QkH_AA": scope.RecordKey(),
		"2LL1vdGy_HJ8gF1jsDGXH2pgp7qKLJyT9o5ErzfkxfI": bound.RecordKey(),
		"u5wRirrkep61gzkeGY5rwWEkB-9hsue-EKGvhtsYI-U": idem.Scope{Tenant: "tenant", Key: strings.Repeat("k", 1024)}.RecordKey(),
		"PTbPRI8WtJjM_QSsWKVhYqSYzAtlrqfHowt38Qtboeo": keyedRecordKey(t, make([]byte, 32)),
	} {
		if made != want {
			t.Errorf("made %q, want %q", made, want)
		}
	}
}

// keyedRecordKey is the key of the same scope under a secret.
func keyedRecordKey(t *testing.T, secret []byte) storage.RecordKey {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{ScopeSecret: secret})
	if err != nil {
		t.Fatal(err)
	}
	registered, err := engine.Register(idem.Operation{Name: "payments.create", Kind: idem.KindAtomic, Policy: idem.IETF()})
	if err != nil {
		t.Fatal(err)
	}
	return registered.RecordKey(idem.Request{Tenant: "tenant", Key: "key-1"})
}
