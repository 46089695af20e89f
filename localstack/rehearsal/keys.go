package rehearsal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/idem-go/idem-aws/localstack/stack"
)

// elsewhere is the Region that is failed over to, before anything is deployed there.
type elsewhere struct {
	stack *stack.Stack
	// kmsKey is the id of the KMS key there, and exported the file with the data keys, wrapped under it.
	kmsKey, exported string
}

// encrypts says that what the stack stores is encrypted.
func (r *run) encrypts() bool { return r.variables["KEYS_TABLE"] != "" }

// exportKeys is the runbook's "Data keys for another Region". The Regions are emulators that share nothing, so that there is no
// multi-Region key: the keys are wrapped anew.
func (r *run) exportKeys(ctx context.Context) (err error) {
	if r.other.stack, err = r.Other(r.variables["PROVIDER_URL"]); err != nil || !r.encrypts() {
		return err
	}
	endpoint, err := r.other.stack.Start(ctx)
	if err != nil {
		return err
	}
	made, err := kms.NewFromConfig(localConfig(map[string]string{"AWS_REGION": r.variables["AWS_REGION"], "AWS_ENDPOINT_URL": endpoint})).CreateKey(ctx, &kms.CreateKeyInput{})
	if err != nil {
		return fmt.Errorf("make a KMS key in the other Region: %w", err)
	}
	r.other.kmsKey = aws.ToString(made.KeyMetadata.KeyId)
	r.other.exported = filepath.Join(filepath.Dir(r.other.stack.EnvFile()), "keys-"+r.id+".json")
	_, err = r.must(ctx, nil, "keys", "export", r.other.exported, "--under", aws.ToString(made.KeyMetadata.Arn), "--endpoint", endpoint, "--reason", reason, "--write")
	return err
}

// importKeys gives the copied tables their keys. Before that nothing of them can be read, and the check has to say so.
func (r *run) importKeys(ctx context.Context, copies map[string]string) error {
	if !r.encrypts() {
		return nil
	}
	without, err := r.unreadable(ctx, copies)
	if err != nil {
		return err
	}
	if without == 0 {
		return errors.New("without keys everything can be read")
	}
	r.Out.Line("           without keys %d rows can't be read", without)
	if _, err := r.must(ctx, nil, "keys", "import", r.other.exported, "--reason", reason, "--write"); err != nil {
		return err
	}
	left, err := r.unreadable(ctx, copies)
	if err == nil && left > 0 {
		err = fmt.Errorf("%d rows can't be read with the keys that were imported", left)
	}
	return err
}

// unreadable is how many encrypted records and messages nobody can open. It is an error that none is encrypted.
func (r *run) unreadable(ctx context.Context, tables map[string]string) (rows int, err error) {
	out, errs, code := r.idemctl(ctx, tables, "--output", "json", "--within", "5m", "keys", "check")
	var found struct {
		Records, Messages int
		Unreadable        []struct{ Rows int }
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil || code > 1 {
		return 0, fmt.Errorf("idemctl keys check exits with %d: %s%s", code, out, errs)
	}
	if found.Records == 0 || found.Messages == 0 {
		return 0, fmt.Errorf("nothing is encrypted: %s", out)
	}
	for _, u := range found.Unreadable {
		rows += u.Rows
	}
	if (code != 0) != (rows > 0) {
		return 0, fmt.Errorf("idemctl keys check exits with %d: %s", code, out)
	}
	return rows, nil
}

// countUnreadable counts what can't be opened where the stack encrypts, and demands that there is nothing.
func (r *run) countUnreadable(ctx context.Context) (err error) {
	if !r.encrypts() {
		return nil
	}
	if r.money.Unreadable, err = r.unreadable(ctx, nil); err == nil && r.money.Unreadable > 0 {
		err = fmt.Errorf("%d rows can't be read", r.money.Unreadable)
	}
	return err
}
