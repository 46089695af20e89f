//go:build e2e

package e2e

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
	"github.com/idem-go/idem-aws/localstack/stack"
)

// command is the operator's, as a person has it, against the stack.
type command struct {
	*testing.T
	path string
	// keys are those of a person who has some of the operators' policies.
	keys aws.Credentials
}

// The variables that have the ARNs of the operators' policies.
const (
	mayRead     = "OPERATOR_READ_POLICY"
	mayChange   = "OPERATOR_CHANGE_POLICY"
	mayMakeKeys = "OPERATOR_KEYS_POLICY"
)

// builtCommand is the command of a person who has these policies, and no others.
func builtCommand(t *testing.T, policies ...string) command {
	t.Helper()
	path := filepath.Join(t.TempDir(), "idemctl")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/idem-go/idem-aws/functions/cmd/idemctl").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	c := command{t, path, aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}}
	if deployed.variables["IAM"] == "on" { // who holds everybody against policies
		person := newUser(t, "operator-"+rand.Text())
		for _, policy := range policies {
			person.iam("AttachUserPolicy", url.Values{"PolicyArn": {deployed.variables[policy]}})
		}
		c.keys = person.keys
	}
	return c
}

// exits runs a command line as a shell does, and demands its exit code.
func (c command) exits(want int, args ...string) (stdout, stderr string) {
	c.Helper()
	run := exec.CommandContext(c.Context(), c.path, append([]string{"--env-file", os.Getenv("IDEM_E2E_ENV"), "--output", "json"}, args...)...)
	environment, err := stack.LocalEnvironment(os.Environ(), deployed.variables["AWS_ENDPOINT_URL"])
	must(c.T, err)
	run.Env = append(environment, "IDEMCTL_ACTOR=ada", "AWS_ACCESS_KEY_ID="+c.keys.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+c.keys.SecretAccessKey)
	var out, errs bytes.Buffer
	run.Stdout, run.Stderr = &out, &errs
	err = run.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.Fatal(err)
	}
	if got := run.ProcessState.ExitCode(); got != want {
		c.Fatalf("idemctl %q exits with %d, want %d\n%s%s", args, got, want, &out, &errs)
	}
	return out.String(), errs.String()
}

// said is the answer to a command line that succeeds.
func said[T any](c command, args ...string) (answer T) {
	c.Helper()
	out, _ := c.exits(idemctl.ExitOK, args...)
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		c.Fatalf("%v: %s", err, out)
	}
	return answer
}

// unproven is charged without a key, its answer is lost, and no look-up finds it: a person has to look into the provider's
// books.
var unproven = troubled("legacy_operator", provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter}, provider.Rule{On: provider.List, Fault: provider.ErrorBefore})

// The story of one command line after the other: what is unknown is found, inspected, resolved with evidence by the same
// settlement as the worker's, and whoever decides about what they saw before is refused; the audit log tells of all of it.
func TestOperatorResolvesWhatIsUnknown(t *testing.T) {
	t.Parallel()
	c, r := builtCommand(t, mayRead, mayChange), pay("operator", unproven)
	_, body := accept(t, r)
	eventually(t, delivered, func() string {
		if state := deployed.tenantA.readOperation(t, body.Operation).State; state != "unknown" {
			return "the operation is " + state + ", not unknown"
		}
		return ""
	})
	message := body.Operation.Message(1)
	listed := said[operator.List](c, "list", "unknown", "--tenant", "tenant-a", "--limit", "1000")
	if !slices.ContainsFunc(listed.Rows, func(row operator.Listed) bool { return row.Message != nil && row.Message.ID == message }) {
		t.Errorf("not in the list of what is unknown: %+v", listed)
	}
	story := said[operator.Story](c, "inspect", "--tenant", "tenant-a", "--operation", operationPayments, "--key", r.key)
	if len(story.Messages) != 1 || story.Messages[0].State != storage.MessageUnknown || !strings.Contains(strings.Join(story.Next, "\n"), "resolve: with evidence") {
		t.Fatalf("story %+v", story)
	}

	charge := chargeOf(t, r)
	resolve := func(seen operator.Seen, more ...string) []string {
		return append([]string{"resolve", string(message), "--seen", string(seen), "--delivered", charge.ID, "--reason", "ticket 17"}, more...)
	}
	seen := story.Messages[0].Seen
	if would := said[operator.Result](c, resolve(seen)...); !would.DryRun || would.Entry != "" {
		t.Errorf("without --write: %+v", would)
	}
	if _, errs := c.exits(idemctl.ExitRefused, resolve("unknown.99.00000000", "--write")...); !strings.Contains(errs, "is "+string(seen)+" now") {
		t.Errorf("the refusal of what nobody saw says: %s", errs)
	}
	if state := deployed.tenantA.readOperation(t, body.Operation).State; state != "unknown" {
		t.Fatalf("the operation is %s, and nothing was resolved yet", state)
	}
	if done := said[operator.Result](c, resolve(seen, "--write")...); done.State != operator.EntryDone {
		t.Errorf("resolved: %+v", done)
	}
	settledOnce(t, r)
	if _, errs := c.exits(idemctl.ExitRefused, resolve(seen, "--write")...); !strings.Contains(errs, "is delivered.") {
		t.Errorf("the refusal of what was seen before says: %s", errs)
	}

	eventually(t, soon, func() string { // the log's index is stale by moments
		var states []operator.EntryState
		for _, e := range said[[]operator.Entry](c, "audit", "--subject", string(body.Operation)) {
			if e.Actor != "ada" || e.Reason != "ticket 17" || e.Tenant != "tenant-a" || e.Subject != string(message) {
				t.Errorf("entry %+v", e)
			}
			states = append(states, e.State)
		}
		if !slices.Equal(states, []operator.EntryState{operator.EntryRefused, operator.EntryDone, operator.EntryRefused}) {
			return fmt.Sprintf("the log, newest first, says %v", states)
		}
		return ""
	})
}
