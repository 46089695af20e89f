package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A service's Makefile, and a shell that deploys a module of its own, switch Go's workspaces off. The checkout that they start the
// emulator of is a workspace all the same.
func TestMakeBuildsTheCheckoutWhereWorkspacesAreOff(t *testing.T) {
	program := filepath.Join(t.TempDir(), "stack")
	command := exec.CommandContext(t.Context(), "make", "-C", filepath.Join("..", ".."), "stack", "STACK="+program)
	command.Env = append(os.Environ(), "GOWORK=off")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("GOWORK=off make stack: %v\n%s", err, said)
	}
	if _, err := os.Stat(program); err != nil {
		t.Error(err)
	}
}

// recipe is what make would run for a target with a variable of the environment, and with those of the command line. The error says that
// make refuses.
func recipe(t *testing.T, environment string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", append([]string{"-n", "-C", filepath.Join("..", "..")}, arguments...)...)
	command.Env = append(os.Environ(), "MAKEFLAGS=", "STAGE=", "WRITE=", "NOW=", environment)
	said, err := command.CombinedOutput()
	return string(said), err
}

// A stage that a shell's environment is left with does not turn a command for the running stack into one for AWS.
func TestAStageIsSaidWithTheCommand(t *testing.T) {
	const local, inAWS = "go run ./functions/cmd/idemctl --env-file .local/run.env", "stack idemctl --stage prod -- "
	for _, target := range []string{"idemctl", "console", "drift"} {
		if said, err := recipe(t, "OTHER=", target); err != nil || !strings.Contains(said, local) {
			t.Errorf("make %s: %v\n%s", target, err, said)
		}
		if said, err := recipe(t, "OTHER=", target, "STAGE=prod"); err != nil || !strings.Contains(said, inAWS) {
			t.Errorf("make %s STAGE=prod: %v\n%s", target, err, said)
		}
		want := "STAGE is set in the environment: write make " + target + " STAGE=prod, or unset STAGE for the running stack"
		if said, err := recipe(t, "STAGE=prod", target); err == nil || !strings.Contains(said, want) || strings.Contains(said, "idemctl --") {
			t.Errorf("STAGE=prod make %s: %v\n%s", target, err, said)
		}
		if said, err := recipe(t, "STAGE=dev", target, "STAGE=prod"); err != nil || !strings.Contains(said, inAWS) {
			t.Errorf("STAGE=dev make %s STAGE=prod: %v\n%s", target, err, said)
		}
	}
}

// So are permission to change something, and a deployment that no alarm ends.
func TestWhatIsDangerousIsSaidWithTheCommand(t *testing.T) {
	for variable, c := range map[string]struct {
		target, flag string
		in           []string
	}{
		"WRITE": {"console", " --write", []string{".", "docs/examples/ownstack"}},
		"NOW":   {"deploy", " --now", []string{"."}},
	} {
		for _, folder := range c.in {
			// ownstack asks for what its last deployment wrote, which -n does not run.
			arguments := []string{"-C", filepath.FromSlash(folder), c.target, "STAGE=prod"}
			for said, want := range map[string]bool{"": false, "0": false, "1": true} {
				text, err := recipe(t, "OTHER=", append(arguments, variable+"="+said)...)
				if err != nil || strings.Contains(text, c.flag) != want {
					t.Errorf("make %s %s=%s in %s: %v\n%s", c.target, variable, said, folder, err, text)
				}
			}
			if text, err := recipe(t, variable+"=1", arguments...); err != nil || strings.Contains(text, c.flag) {
				t.Errorf("%s=1 make %s in %s: %v\n%s", variable, c.target, folder, err, text)
			}
		}
	}
}
