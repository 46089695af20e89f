package localstackhost

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/localstack/emulator"
)

func TestLauncherNamesEveryLibrary(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a.jar", "b.jar", "native.so"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(folder, "launcher")
	if err := writeLauncher(folder, path); err != nil {
		t.Fatal(err)
	}
	jar, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer jar.Close()
	file, err := jar.Open("META-INF/MANIFEST.MF")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Class-Path: \n  DynamoDBLocal_lib/a.jar \n  DynamoDBLocal_lib/b.jar\n"; !strings.HasSuffix(string(manifest), want) {
		t.Errorf("manifest:\n%s\nwant it to end with:\n%s", manifest, want)
	}
}

func TestCommandListensOnThisMachineOnly(t *testing.T) {
	t.Setenv("AWS_PROFILE", "production")
	command, err := Command(t.TempDir(), t.TempDir(), t.TempDir(), 4566)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(command.Env, "GATEWAY_LISTEN=127.0.0.1:4566") {
		t.Errorf("environment %q has no address of this machine", command.Env)
	}
	if slices.Contains(command.Env, "AWS_PROFILE=production") {
		t.Error("the caller's profile is passed on")
	}
}

// killedWhileIdle invokes a function ten times and kills its idle process after each. The function is a Python program
// that speaks the Runtime API as Go's does.
const killedWhileIdle = `
import os, signal, sys, time
from processexec.core import Env
folder = sys.argv[1]
with open(os.path.join(folder, "bootstrap"), "w") as f:
    f.write("#!" + sys.executable + "\n" + """
import os, urllib.request
api = "http://" + os.environ["AWS_LAMBDA_RUNTIME_API"] + "/2018-06-01/runtime/invocation/"
while True:
    with urllib.request.urlopen(api + "next") as event:
        rid = event.headers["Lambda-Runtime-Aws-Request-Id"]
    urllib.request.urlopen(api + rid + "/response", data=b"done").close()
""")
env = Env(folder, {"AWS_LAMBDA_FUNCTION_TIMEOUT": "5"})
for n in range(10):
    failed, body, logs = env.invoke({"invoke-id": str(n), "payload": "{}", "invoked-function-arn": "arn", "trace-id": "trace"})
    assert (failed, body) == (False, b"done"), (n, failed, body)
    os.kill(env.proc.pid, signal.SIGKILL)
    env.proc.wait()
env.stop()
`

func TestProcessKilledWhileIdleTakesNoInvocationAlong(t *testing.T) {
	python, err := emulator.Python(t.Context(), 9)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), python, "-c", killedWhileIdle, t.TempDir())
	command.Dir = "processexec"
	command.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
