package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// Only a version that was downloaded can be required.
func TestReleasedVersions(t *testing.T) {
	module := func(version, sum string) debug.Module {
		return debug.Module{Path: libraryModule, Version: version, Sum: sum}
	}
	replaced := module("v1.2.3", "h1:x")
	replaced.Replace = &debug.Module{Path: "../idem"}
	released := module("v1.2.3", "h1:x")
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"go run of a release":       {debug.BuildInfo{Main: released}, "v1.2.3"},
		"a team's own idemctl":      {debug.BuildInfo{Main: debug.Module{Path: "example.com/a"}, Deps: []*debug.Module{&released}}, "v1.2.3"},
		"built from a checkout":     {debug.BuildInfo{Main: module("v0.0.0-20261123064614-a248b4b00000", "")}, ""},
		"a checkout with no commit": {debug.BuildInfo{Main: module("(devel)", "")}, ""},
		"a replaced library":        {debug.BuildInfo{Deps: []*debug.Module{&replaced}}, ""},
	} {
		if got := releasedIn(&c.info); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What was written before a failure is removed, and what was there stays.
func TestMadeIsRemoved(t *testing.T) {
	root := t.TempDir()
	there := filepath.Join(root, "there")
	if err := os.Mkdir(there, 0o755); err != nil {
		t.Fatal(err)
	}
	m := &made{}
	taken := filepath.Join(there, "a", "taken")
	err := errors.Join(m.file(filepath.Join(there, "a", "first"), "1"), os.WriteFile(taken, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.file(taken, "2"); !os.IsExist(err) {
		t.Errorf("a file that was there: %v", err)
	}
	if err := os.Remove(taken); err != nil {
		t.Fatal(err)
	}
	m.remove()
	if entries, err := os.ReadDir(there); err != nil || len(entries) != 0 {
		t.Errorf("left: %v (%v)", entries, err)
	}
}
