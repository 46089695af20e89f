package idem_test

import (
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// peers.md P14, seen elsewhere: "delimiter injection in composed keys".
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
