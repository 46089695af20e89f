package stack

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/internal/token"
)

func TestAddOutputs(t *testing.T) {
	result := outputs{
		"ApiUrl": "https://abc.execute-api.us-east-1.amazonaws.com/", "IdempotencyTable": "i", "OutboxTable": "o", "PaymentsTable": "p",
		"WakeUpQueueUrl": "r", "DeadLetterQueueUrl": "d", "AuditTable": "a", "ApiKeysTable": "ak", "ClaimLease": "10s", "LongestRequest": "15s", "DriftGrace": "5s", "OutboxShards": "8", "LedgerShards": "4", "FunctionApi": "f-api", "FunctionWorker": "f-worker",
	}
	variables := Variables{}
	if err := variables.addOutputs("http://127.0.0.1:4566", result); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"API_URL": "http://127.0.0.1:4566/_aws/execute-api/abc/%24default", "PAYMENTS_TABLE": "p", "AUDIT_TABLE": "a", "API_KEYS_TABLE": "ak", "FUNCTION_WORKER": "f-worker",
		"CLAIM_LEASE": "10s", "LONGEST_REQUEST": "15s", "DRIFT_GRACE": "5s", "OUTBOX_SHARDS": "8", "LEDGER_SHARDS": "4",
	} {
		if variables[name] != want {
			t.Errorf("%s = %q, want %q", name, variables[name], want)
		}
	}
	if _, encrypted := variables["KEYS_TABLE"]; encrypted {
		t.Error("a stack without encryption has KEYS_TABLE")
	}
	result["KeysTable"], result["KmsKeyId"], result["FreezeAllowance"] = "k", "key", "1s"
	if err := variables.addOutputs("http://127.0.0.1:4566", result); err != nil || variables["KEYS_TABLE"] != "k" || variables["KMS_KEY_ID"] != "key" || variables["FREEZE_ALLOWANCE"] != "1s" {
		t.Errorf("with encryption: %v, %v", variables, err)
	}
	delete(result, "OutboxTable")
	if err := (Variables{}).addOutputs("http://127.0.0.1:4566", result); err == nil || !strings.Contains(err.Error(), "OutboxTable") {
		t.Errorf("error without an output = %v, want one that names it", err)
	}
}

// An API that does not answer the first request, because its emulator stalls, is asked again.
func TestARequestThatHangsIsNotTheLastOne(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(api.Close)
	if err := firstAnswer(t.Context(), Variables{variableAPI: api.URL}); err != nil || asked.Load() != 2 {
		t.Errorf("after %d requests: %v", asked.Load(), err)
	}
}

// A checkout may be in a folder with a space. A shell has all variables as they were, and so has a program
// that reads the file.
func TestAShellReadsTheVariables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.env")
	written := Variables{variableCode: "/home/a b/it's/$HOME/tmp", variableAPI: "http://127.0.0.1:4566/_aws/execute-api/a/%24default"}
	if err := written.Write(path); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), "sh", "-eu", "-c", `. "$1"; printf '%s\n' "$CODE_DIRECTORY" "$API_URL"`, "sh", path).CombinedOutput()
	if want := written[variableCode] + "\n" + written[variableAPI] + "\n"; err != nil || string(said) != want {
		t.Errorf("a shell has %q, want %q: %v", said, want, err)
	}
	if read, err := ReadVariables(path); err != nil || !maps.Equal(read, written) {
		t.Errorf("read %v, want %v: %v", read, written, err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "API_URL="+written[variableAPI]+"\n") {
		t.Errorf("what means itself to a shell is not as it was: %v\n%s", err, text)
	}
	if err := (Variables{variableCode: "a\nb"}).Write(path); err == nil {
		t.Error("a value of two lines is written, which nobody reads back")
	}
}

func TestVariablesSurviveTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.env")
	if none, err := ReadVariables(path); err != nil || len(none) != 0 {
		t.Fatalf("a file that is not there: %v, %v; want nothing", none, err)
	}
	written := Variables{"API_URL": "http://127.0.0.1:1/x", "TENANT_A_TOKEN": "a=b"}
	if err := written.Write(path); err != nil {
		t.Fatal(err)
	}
	read, err := ReadVariables(path)
	if err != nil || read["TENANT_A_TOKEN"] != "a=b" || read["API_URL"] != "http://127.0.0.1:1/x" {
		t.Errorf("read %v, %v; want %v", read, err, written)
	}
	if again := read.secret("TENANT_A_TOKEN", "sk_"); again != "a=b" {
		t.Errorf("a secret that others know changed to %q", again)
	}
	if fresh := read.secret("TENANT_B_TOKEN", "sk_"); !strings.HasPrefix(fresh, "sk_") || len(fresh) < 20 {
		t.Errorf("new secret %q is not long and random", fresh)
	}
	key := read.apiKey("TENANT_A_TOKEN") // "a=b" is no key: one of an earlier form makes room
	if !token.WellFormed(key) || !strings.HasPrefix(key, token.Test) {
		t.Errorf("new key %q", key)
	}
	if again := (Variables{"TENANT_A_TOKEN": key}).apiKey("TENANT_A_TOKEN"); again != key {
		t.Errorf("a key that clients know changed to %q", again)
	}
}
