package storage_test

import (
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// An id has one spelling: base64 has others, with line breaks or with bits that nobody reads, and what is too long is no id.
func TestAnIDHasOneSpelling(t *testing.T) {
	for _, key := range []storage.RecordKey{
		"", storage.RecordKey(strings.Repeat("A", 68)), storage.RecordKey(strings.Repeat("A", 42) + "\n"),
		storage.RecordKey(strings.Repeat("A", 43) + "\n"), storage.RecordKey(strings.Repeat("A", 42) + "B"),
	} {
		if id, err := key.Operation(protocol.ID{1}); err == nil {
			t.Errorf("%q is taken for a record's key: %s", key, id)
		}
	}
	for _, name := range []storage.Owner{
		storage.Owner(strings.Repeat("A", 18) + "\n\n\n\n"), storage.Owner(strings.Repeat("A", 21) + "B"), storage.Owner(strings.Repeat("A", 24)),
	} {
		if id, ok := storage.Bits(name); ok {
			t.Errorf("%q is taken for the name of %v", name, id)
		}
	}
}
