package bounded_test

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/idem-go/idem-aws/internal/bounded"
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		bytesMax int64
		read     string
		longer   bool
	}{
		{0, "1", true}, {3, "1234", true}, {4, "12345", true}, {5, "12345", false}, {6, "12345", false},
		{math.MaxInt64 - 1, "12345", false}, {math.MaxInt64, "12345", false},
	} {
		body, longer, err := bounded.Read(strings.NewReader("12345"), c.bytesMax)
		if err != nil || string(body) != c.read || longer != c.longer {
			t.Errorf("of at most %d bytes: %q, longer %v, %v", c.bytesMax, body, longer, err)
		}
	}
	gone := errors.New("the connection is gone")
	body, longer, err := bounded.Read(io.MultiReader(strings.NewReader("12"), iotest.ErrReader(gone)), 5)
	if !errors.Is(err, gone) || string(body) != "12" || longer {
		t.Errorf("broken off: %q, longer %v, %v", body, longer, err)
	}
}
