package stack

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/localstack/progress"
)

// What the stack was brought up without is not missing; what it was brought up with is, for as long as it is down.
func TestAStackIsUpWhenWhatItWasBroughtUpWithIs(t *testing.T) {
	const traces, faults = "COLLECTOR_URL", "FAULT_PROXY_URL"
	for name, c := range map[string]struct {
		running   []string
		variables Variables
		up        bool
		down      []string
	}{
		"nothing":                         {nil, Variables{}, false, []string{daemonEmulator, daemonProvider}},
		"without traces and faults":       {[]string{daemonEmulator, daemonProvider}, Variables{}, true, nil},
		"no emulator":                     {[]string{daemonProvider}, Variables{}, false, []string{daemonEmulator}},
		"no provider":                     {[]string{daemonEmulator}, Variables{}, false, []string{daemonProvider}},
		"with traces":                     {[]string{daemonEmulator, daemonProvider, daemonCollector}, Variables{traces: "x"}, true, nil},
		"with traces, and no collector":   {[]string{daemonEmulator, daemonProvider}, Variables{traces: "x"}, false, []string{daemonCollector}},
		"with faults, and no fault proxy": {[]string{daemonEmulator, daemonProvider}, Variables{faults: "x"}, false, []string{daemonFaultProxy}},
	} {
		t.Run(name, func(t *testing.T) {
			var told bytes.Buffer
			stack, err := New(Options{Root: t.TempDir(), State: "state", EnvFile: "run.env"}, progress.New(&told))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.variables.Write(stack.EnvFile()); err != nil {
				t.Fatal(err)
			}
			for _, name := range c.running {
				started, err := startDaemon(stack.options.State, name, 1, "", exec.Command("sleep", "600"))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = started.stop(stack.options.State) })
			}
			for range 2 { // a record of a dead daemon is gone after the first
				told.Reset()
				up, err := stack.Status()
				if err != nil || up != c.up {
					t.Errorf("Status = %t, %v, want %t\n%s", up, err, c.up, told.String())
				}
				var down []string
				for line := range strings.Lines(told.String()) {
					if fields := strings.Fields(line); fields[1] == "down" {
						down = append(down, fields[0])
					}
				}
				if strings.Join(down, " ") != strings.Join(c.down, " ") {
					t.Errorf("down are %q, want %q", down, c.down)
				}
			}
		})
	}
}
