package stack

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// A machine without a browser, and without apt, is told in one line what was left out; a strict check fails for such a line.
func TestWithoutABrowserItsTestsAreLeftOut(t *testing.T) {
	for _, strict := range []bool{false, true} {
		t.Setenv("PATH", t.TempDir())
		t.Setenv("CHROMIUM", "")
		c := Check{Strict: strict}
		if err := c.browser(t.Context()); err != nil || len(c.leftOut) != 1 || !strings.Contains(c.leftOut[0], "a Chromium is needed") || strings.Contains(c.leftOut[0], "\n") {
			t.Errorf("strict %t: %v, left out %q", strict, err, c.leftOut)
		}
	}
}

// CHROMIUM names a browser before all others.
func TestChromiumIsNamed(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	for _, name := range []string{"chromium", "mine"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("CHROMIUM", "mine")
	if path, err := localtool.Chromium(); err != nil || filepath.Base(path) != "mine" {
		t.Errorf("%s, %v", path, err)
	}
	t.Setenv("CHROMIUM", "")
	if path, err := localtool.Chromium(); err != nil || filepath.Base(path) != "chromium" {
		t.Errorf("%s, %v", path, err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := localtool.Chromium(); !errors.Is(err, localtool.ErrNoChromium) {
		t.Error(err)
	}
}
