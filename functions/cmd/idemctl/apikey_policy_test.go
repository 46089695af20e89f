package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// policyOf is what docs/permissions.md, which is made of the stack, says that a policy allows: actions by the table's name in the stack.
func policyOf(t *testing.T, policy string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	may := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) == 5 && strings.TrimSpace(cells[1]) == policy {
			table := strings.TrimSuffix(strings.Trim(cells[3], " `"), ".Arn")
			may[table] = append(may[table], strings.Split(strings.TrimSpace(cells[2]), ", ")...)
		}
	}
	if len(may) == 0 {
		t.Fatalf("%s is not in docs/permissions.md", policy)
	}
	return may
}

// heldTo puts a person who has the policy alone before the stage: AWS denies everything that it does not name, of every service.
func (d *desk) heldTo(policy string) {
	d.Helper()
	target, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"))
	d.ok(err)
	tables := map[string]string{d.APIKeys: "ApiKeys", os.Getenv("AUDIT_TABLE"): "AuditTable", d.Idempotency: "TablesIdempotency", d.Outbox: "TablesOutbox", d.Payments: "Payments"}
	may, behind := policyOf(d.T, policy), httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var of struct{ TableName string }
		_ = json.Unmarshal(body, &of)
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_") && slices.Contains(may[tables[of.TableName]], "dynamodb:"+operation) {
			behind.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"__type":"AccessDeniedException","message":"not authorized to perform %s on %s"}`, operation, tables[of.TableName])
	}))
	d.Cleanup(front.Close)
	d.Setenv("AWS_ENDPOINT_URL", front.URL)
	d.Setenv("AWS_ENDPOINT_URL_DYNAMODB", front.URL)
	d.Setenv("AWS_ENDPOINT_URL_SQS", front.URL)
}

// A person who lets tenants in needs OperatorKeys alone, with the variables of a stage: its secrets are named, and are not theirs to read.
func TestAPIKeysAreMadeAndRevokedUnderOperatorKeysAlone(t *testing.T) {
	d := newDesk(t)
	t.Setenv("PROVIDER_CREDENTIAL_ID", "payments/provider")
	t.Setenv("SCOPE_SECRET_ID", "payments/scopes")
	d.heldTo("OperatorKeys")
	create := []string{"apikey", "create", "--tenant", "tenant-b", "--name", "shop", "--reason", "ticket 1"}
	d.exits(idemctl.ExitOK, create...)
	made := answered[created](d, append(create, "--write")...)
	limit := []string{"apikey", "limit", "tenant-b", "--new-keys", "5", "--reason", "ticket 2"}
	revoke := []string{"apikey", "revoke", made.Subject, "--reason", "ticket 3"}
	for _, args := range [][]string{limit, revoke} {
		d.exits(idemctl.ExitOK, args...)
		if done := answered[operator.Result](d, append(args, "--write")...); done.State != operator.EntryDone {
			t.Errorf("%q: %+v", args, done)
		}
	}
	key, err := d.KeyTable().Key(t.Context(), made.Subject) // not through the front
	if err != nil || key == nil || key.RevokedAt.IsZero() || key.Limits.NewKeysPerSecond != 5 {
		t.Errorf("%+v, %v", key, err)
	}
	if listed := answered[[]apikey.Key](d, "apikey", "list", "--tenant", "tenant-b"); len(listed) != 1 {
		t.Errorf("%+v", listed)
	}
	d.exits(idemctl.ExitTrouble, "list", "dead") // the rest is not theirs
}
