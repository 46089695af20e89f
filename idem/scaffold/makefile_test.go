package scaffold

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// makes runs a target of the example's Makefile where the CDK and Go only say how they were called. It returns what they said.
func makes(t *testing.T, environment []string, arguments ...string) (said string, err error) {
	t.Helper()
	programs := t.TempDir()
	for name, script := range map[string]string{
		"cdk": "#!/bin/sh\necho \"cdk $* EMULATED=[$EMULATED]\"\n",
		"go":  "#!/bin/sh\necho \"go $*\"\n",
	} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "-C", example, "CDK=" + filepath.Join(programs, "cdk")}, arguments...)...)
	command.Env = slices.Concat(localtool.WithoutAWS(os.Environ()), []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "MAKEFLAGS="}, environment)
	out, err := command.CombinedOutput()
	return string(out), err
}

// What step 3 of docs/start/ten-minutes.md exports is left in the reader's shell. There the stack in AWS would lose what protects
// its tables.
func TestWhatGoesToAWSIsNeverEmulated(t *testing.T) {
	for target, arguments := range map[string][]string{
		"deploy": {"deploy", "ALARM_TOPIC=none", "WAREHOUSE_URL=https://warehouse.example", "SCOPE_SECRET_ID=none"},
		"synth":  {"synth"},
	} {
		said, err := makes(t, []string{"EMULATED=true"}, arguments...)
		if err != nil || !strings.Contains(said, "\ncdk "+target+" ") || !strings.Contains(said, "EMULATED=[]\n") {
			t.Errorf("EMULATED=true make %s: %v\n%s", target, err, said)
		}
	}
}

// A variable that sends the CDK, or a part of it, to an emulator is refused before anything is built.
func TestAnEndpointIsNotDeployedTo(t *testing.T) {
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_CLOUDFORMATION"} {
		variable := name + "=http://127.0.0.1:4566"
		said, err := makes(t, []string{variable}, "deploy", "ALARM_TOPIC=none", "WAREHOUSE_URL=https://warehouse.example", "SCOPE_SECRET_ID=none")
		if err == nil || !strings.Contains(said, variable+"\nmake: ") || strings.Contains(said, "\ngo ") || strings.Contains(said, "\ncdk ") {
			t.Errorf("%s make deploy: %v\n%s", variable, err, said)
		}
	}
	if said, err := makes(t, []string{"AWS_ENDPOINT_URL="}, "deploy", "ALARM_TOPIC=none", "WAREHOUSE_URL=https://warehouse.example", "SCOPE_SECRET_ID=none"); err != nil {
		t.Errorf("with an empty AWS_ENDPOINT_URL: %v\n%s", err, said)
	}
}
