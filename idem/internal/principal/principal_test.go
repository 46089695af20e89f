package principal_test

import (
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/internal/principal"
)

func TestOnlyAHashIsStored(t *testing.T) {
	stored := principal.Stored("tenant-a", "Bearer secret")
	if len(stored) != 43 || strings.Contains(stored, "secret") {
		t.Errorf("stored as %q, want a hash", stored)
	}
	for _, other := range [][2]string{{"tenant-b", "Bearer secret"}, {"tenant-a", "Bearer other"}, {"tenant-aB", "earer secret"}} {
		if principal.Stored(other[0], other[1]) == stored {
			t.Errorf("%q of %q is stored as another's", other[1], other[0])
		}
	}
	if principal.Stored("tenant-a", "") != "" {
		t.Error("no principal is stored as one")
	}
}
