package stack

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// fakeCDK logs each call into the file calls of the folder infra that it runs in, and ends with an error where the file fail is there. Else
// it writes outputs, as the CDK does.
const fakeCDK = `#!/bin/sh
echo "$1" >> calls
test ! -e fail || exit 1
while test "$1" != --outputs-file; do shift; done
echo '{"idem-payments":{"ApiUrl":"https://a.execute-api.us-east-1.amazonaws.com"}}' > "$2"
`

// checkoutOf is a checkout's folder with the files that a deployment reads, and a stack of it.
func checkoutOf(t *testing.T) (*Stack, string) {
	t.Helper()
	root := t.TempDir()
	stack, err := New(Options{Root: root, State: ".local/stack", EnvFile: ".local/run.env", Emulator: Ministack}, progress.New(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(stack.infraProgram(), "app")
	for _, name := range []string{"cdk.json", "package.json", "package-lock.json"} {
		put(filepath.Join(root, "infra", name), "{}")
	}
	cdk, err := emulator.CDKProgram(root)
	if err != nil {
		t.Fatal(err)
	}
	put(cdk, fakeCDK)
	return stack, filepath.Join(root, "infra")
}

// A deployment that ended half-way has changed what the one before made, so that one is not there any more.
func TestWhatAFailedDeploymentLeavesIsDeployedOver(t *testing.T) {
	stack, infra := checkoutOf(t)
	running := daemon{Name: daemonEmulator, PID: 1, Started: "once"}
	deploy := func(auth string) error {
		_, err := stack.deploy(t.Context(), running, os.Environ(), map[string]string{"auth": auth})
		return err
	}
	calls := func() int {
		text, err := os.ReadFile(filepath.Join(infra, "calls"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "deploy\n")
	}
	for range 2 {
		if err := deploy("gateway"); err != nil || calls() != 1 {
			t.Fatalf("the first deployment, which is made once: %v after %d calls", err, calls())
		}
	}
	fail := filepath.Join(infra, "fail")
	if err := os.WriteFile(fail, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := deploy("function"); err == nil || calls() != 2 {
		t.Fatalf("the second deployment, which fails: %v after %d calls", err, calls())
	}
	if err := os.Remove(fail); err != nil {
		t.Fatal(err)
	}
	if err := deploy("gateway"); err != nil || calls() != 3 {
		t.Errorf("the first deployment again: %v after %d calls, want 3", err, calls())
	}
}
