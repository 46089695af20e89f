package rehearsal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/stack"
)

// deploy deploys the stack with more contexts, as a stage's file would have them, and reads where everything is.
func (r *run) deploy(ctx context.Context, more map[string]string) error {
	contexts := map[string]string{"retainTables": "true"}
	for name, value := range more {
		contexts[name] = value
	}
	r.Out.Line("           $ make deploy    # with the contexts %v", contexts)
	r.Stack = r.Stack.With(contexts)
	r.Rehearsals.Stack = r.Stack
	if err := r.Stack.Up(ctx); err != nil {
		return err
	}
	return r.open()
}

// idemctl runs the operator's command, with other variables than the env file's where they are given.
func (r *run) idemctl(ctx context.Context, variables map[string]string, arguments ...string) (stdout, stderr string, code int) {
	r.Out.Line("           $ idemctl %s", strings.Join(arguments, " "))
	environment, err := stack.LocalEnvironment(os.Environ(), r.variables["AWS_ENDPOINT_URL"])
	if err != nil {
		return "", err.Error(), -1
	}
	run := exec.CommandContext(ctx, filepath.Join(r.Root, ".local", "build", "bin", "idemctl"), append([]string{"--env-file", r.Stack.EnvFile()}, arguments...)...)
	run.Env = append(environment, "IDEMCTL_ACTOR=rehearsal")
	for name, value := range variables {
		run.Env = append(run.Env, name+"="+value)
	}
	var out, errs bytes.Buffer
	run.Stdout, run.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := run.Run(); err != nil && !errors.As(err, &exit) {
		return "", err.Error(), -1
	}
	return out.String(), errs.String(), run.ProcessState.ExitCode()
}

// must is idemctl where anything but success ends the rehearsal.
func (r *run) must(ctx context.Context, variables map[string]string, arguments ...string) (string, error) {
	out, errs, code := r.idemctl(ctx, variables, arguments...)
	if code != 0 {
		return out, fmt.Errorf("idemctl %s exits with %d: %s%s", strings.Join(arguments, " "), code, out, errs)
	}
	return out, nil
}

const reason = "a rehearsal"

// refuseBefore says up to when records may be missing: until now, and the clocks' difference.
func (r *run) refuseBefore(ctx context.Context, variables map[string]string) error {
	r.cutOver = time.Now().Add(2 * time.Second).UTC().Truncate(time.Second)
	_, err := r.must(ctx, variables, "refuse-before", "set", r.cutOver.Format(time.RFC3339), "--reason", reason, "--write")
	return err
}

// tablesOf names the tables that a restore has made.
func (r *run) tablesOf(suffix string) map[string]string {
	return map[string]string{
		"IDEMPOTENCY_TABLE": r.variables["IDEMPOTENCY_TABLE"] + suffix, "OUTBOX_TABLE": r.variables["OUTBOX_TABLE"] + suffix,
		"PAYMENTS_TABLE": r.variables["PAYMENTS_TABLE"] + suffix,
	}
}

// imports is the context import for the tables, as idemctl tables check prints it.
func (r *run) imports(ctx context.Context, variables map[string]string) (string, error) {
	out, err := r.must(ctx, variables, "--output", "json", "tables", "check")
	if err != nil {
		return "", err
	}
	var answer struct{ Import map[string]string }
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		return "", err
	}
	text, err := json.Marshal(answer.Import)
	return string(text), err
}

// snapshot keeps what the tables hold now, at one moment: every request of the functions is held meanwhile.
func (r *run) snapshot(ctx context.Context) (err error) {
	r.snapped = "rehearsal-" + r.id
	if err := r.proxy.Faults(ctx, faultproxy.Rule{Fault: faultproxy.Pause}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.proxy.Faults(ctx), r.proxy.Release(ctx)) }()
	if err := pause(ctx, 300*time.Millisecond); err != nil { // what was let through is over
		return err
	}
	for _, table := range []string{"IDEMPOTENCY_TABLE", "OUTBOX_TABLE", "PAYMENTS_TABLE"} {
		name := r.variables[table]
		if _, err := r.tables.CreateBackup(ctx, &dynamodb.CreateBackupInput{TableName: &name, BackupName: &r.snapped}); err != nil {
			return fmt.Errorf("back up %s: %w", name, err)
		}
	}
	return nil
}

// revoke makes an API key and revokes it: after the moment that data is restored to.
func (r *run) revoke(ctx context.Context) error {
	out, err := r.must(ctx, nil, "--output", "json", "apikey", "create", "--tenant", "tenant-a", "--name", "rehearsal", "--test", "--reason", reason, "--write")
	if err != nil {
		return err
	}
	var made struct{ Subject, Key string }
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		return err
	}
	r.revoked = made.Key
	_, err = r.must(ctx, nil, "apikey", "revoke", made.Subject, "--reason", reason, "--write")
	return err
}

// held is a request of a wrapped operation that is in progress.
type held struct {
	key       string
	firstSent time.Time
}

// hold begins a wrapped operation and returns once it has charged. The channel tells how its request ends.
func (r *run) hold(ctx context.Context, name string) (<-chan error, error) {
	h := &held{key: fmt.Sprintf("wrapped_%s_%s", r.id, name), firstSent: r.now()}
	r.others = append(r.others, h)
	over, process := make(chan error, 1), r.process
	go func() {
		_, err := process.do(ctx, h.key, h.firstSent, true)
		over <- err
	}()
	select {
	case <-process.charged:
		return over, nil
	case err := <-over:
		return nil, fmt.Errorf("wrapped operation %s ended before it charged: %w", h.key, err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
