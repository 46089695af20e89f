package idemctl_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// Variables come from lines, or from the outputs of a stack, whose names have no underscores. What is set already stays.
func TestVariablesOfAFile(t *testing.T) {
	all := []string{"IDEMPOTENCY_TABLE", "WAKE_UP_QUEUE_URL", "ORDERS_TABLE", "OUTBOX_SHARDS"}
	for name, text := range map[string]string{
		"plain":   "IDEMPOTENCY_TABLE=records\nWAKE_UP_QUEUE_URL=http://127.0.0.1/q?a=b\nORDERS_TABLE=other\nOUTBOX_SHARDS=8",
		"lines":   "# names\nIDEMPOTENCY_TABLE=records\nWAKE_UP_QUEUE_URL='http://127.0.0.1/q?a=b'\r\nIDEMPOTENCY_TABLE=later\nORDERS_TABLE=other\n\nOUTBOX_SHARDS=8",
		"outputs": ` {"shop": {"IdempotencyTable": "records", "WakeUpQueueUrl": "http://127.0.0.1/q?a=b", "OrdersTable": "other", "OutboxShards": "8"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, variable := range all {
				t.Setenv(variable, "orders")
				if variable != "ORDERS_TABLE" {
					if err := os.Unsetenv(variable); err != nil {
						t.Fatal(err)
					}
				}
			}
			build, got := w.app.Build, map[string]string{}
			w.app.Build = func(ctx context.Context) (*operator.Desk, error) {
				for _, variable := range all {
					got[variable] = os.Getenv(variable)
				}
				return build(ctx)
			}
			w.types(idemctl.ExitOK, "--env-file", file(t, text), "list", "dead")
			for variable, want := range map[string]string{"IDEMPOTENCY_TABLE": "records", "WAKE_UP_QUEUE_URL": "http://127.0.0.1/q?a=b", "ORDERS_TABLE": "orders", "OUTBOX_SHARDS": "8"} {
				if got[variable] != want {
					t.Errorf("%s is %q, want %q", variable, got[variable], want)
				}
			}
		})
	}
}

// A file that names no one stack is refused before a desk is made: the tables of another one would be changed.
func TestOutputsThatCantBeUsed(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                                     "can't be read as the outputs of a stack",
		`{}`:                                    "it must have one stack, and has 0",
		`{"a": {"X": "1"}, "b": {}}`:            "it must have one stack, and has 2",
		`{"a": {"X": 1}}`:                       "can't be read as the outputs of a stack",
		`{"orders_table": {"value": "one"}} {}`: "can't be read as the outputs of a stack",
	} {
		w := newWorld(t)
		w.app.Build = func(context.Context) (*operator.Desk, error) {
			t.Errorf("%s: a desk is made", text)
			return nil, os.ErrInvalid
		}
		if _, errs := w.types(idemctl.ExitUsage, "--env-file", file(t, text), "list", "dead"); !strings.Contains(errs, want) || !strings.Contains(errs, "--outputs-file") {
			t.Errorf("%s: %s", text, errs)
		}
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "variables")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
