package stack

import (
	"os"
	"os/exec"
	"path/filepath"
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
