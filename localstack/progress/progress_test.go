package progress

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestAFileIsNoTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, p := range map[string]*Printer{"a buffer": New(&bytes.Buffer{}), "a file": New(file)} {
		if p.Terminal() {
			t.Errorf("%s is taken for a terminal", name)
		}
	}
}

// A character device stands for a terminal here: a test has none.
func TestNoColorIsHonoured(t *testing.T) {
	device, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	for _, row := range []struct {
		noColor, term string
		want          bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}} {
		t.Setenv("NO_COLOR", row.noColor)
		t.Setenv("TERM", row.term)
		if got := New(device).Terminal(); got != row.want {
			t.Errorf("NO_COLOR=%q TERM=%q: %v", row.noColor, row.term, got)
		}
	}
}
