package stack

import (
	"os"
	"path/filepath"
	"testing"
)

// writesAs puts a program ps before all others, which writes times in the language and the time zone that it was told.
func writesAs(t *testing.T, script string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "ps"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}

// A daemon that was started from one terminal is alive for another one, whose language or time zone is not the same: else make down
// would forget it, and leave it running.
func TestTheStartOfAProcessIsTheSameInEveryTerminal(t *testing.T) {
	writesAs(t, `echo "S+   Sat Nov 28 13:38:00 2026 of $2 in $LC_ALL, $TZ"`)
	const want = "Sat Nov 28 13:38:00 2026 of stat=,lstart= in C, UTC"
	for _, terminal := range []map[string]string{{"LC_ALL": "de_DE.UTF-8", "TZ": "Europe/Berlin"}, {"LC_ALL": "", "TZ": ""}, {"LC_ALL": "C", "TZ": "America/New_York"}} {
		for name, value := range terminal {
			t.Setenv(name, value)
		}
		if started, err := psStarted(1); err != nil || started != want {
			t.Errorf("in %v: %q, %v; want %q", terminal, started, err, want)
		}
	}
}

func TestAZombieHasEnded(t *testing.T) {
	writesAs(t, `echo "Z+   Sat Nov 28 13:38:00 2026"`)
	if started, err := psStarted(1); err == nil {
		t.Errorf("it was started %q", started)
	}
}

func TestProcessesAreRead(t *testing.T) {
	writesAs(t, `printf '    1     0 /sbin/launchd\n  512     1 /usr/libexec/x y\n'`)
	all, err := psProcesses()
	if want := (process{parent: 1, name: "/usr/libexec/x"}); err != nil || len(all) != 2 || all[512] != want {
		t.Errorf("read %v, %v", all, err)
	}
}
