package rehearsal

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// destroyed deletes the stack: functions, queues and schedules are gone, and the tables stay.
func (r *run) destroyed(ctx context.Context) error { return r.Stack.Destroy(ctx) }

// deployAgain is the runbook "Destroyed and deployed again".
func (r *run) deployAgain(ctx context.Context) error {
	if _, err := r.must(ctx, nil, "tables", "prepare", "--reason", reason, "--write"); err != nil {
		return err
	}
	names, err := r.imports(ctx, nil)
	if err != nil {
		return err
	}
	if err := r.deploy(ctx, map[string]string{"import": names, "lost": "nothing"}); err != nil {
		return err
	}
	_, err = r.must(ctx, nil, "sweep", "--reason", reason, "--write")
	return err
}

// wiped deletes every table beneath the stack, which stands.
func (r *run) wiped(ctx context.Context) error {
	tables := []string{"IDEMPOTENCY_TABLE", "OUTBOX_TABLE", "PAYMENTS_TABLE", "AUDIT_TABLE", "API_KEYS_TABLE"}
	if r.encrypts() {
		tables = append(tables, "KEYS_TABLE")
	}
	for _, table := range tables {
		name := r.variables[table]
		_, err := r.tables.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: aws.Bool(false)})
		if err == nil {
			_, err = r.tables.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		}
		if err != nil {
			return fmt.Errorf("delete %s: %w", name, err)
		}
	}
	return nil
}

// beginAnew is the runbook "Tables made anew". A stack that stands is removed first: CloudFormation takes its tables for unchanged, and
// would make none. The local stack's seed makes the API keys anew.
func (r *run) beginAnew(ctx context.Context) error {
	if err := r.Stack.Destroy(ctx); err != nil {
		return err
	}
	for _, contexts := range []map[string]string{{"lost": "records", "stopped": "true"}, {"lost": "records"}} {
		if err := r.deploy(ctx, contexts); err != nil {
			return err
		}
	}
	if err := r.executesNothing(ctx); err != nil {
		return err
	}
	return r.refuseBefore(ctx, nil)
}

// executesNothing demands that nothing executes before anybody has said what was lost: who forgets to is not charged twice.
func (r *run) executesNothing(ctx context.Context) error {
	s := *r.stories[0]
	if told := r.send(ctx, &s); told.status != 503 || told.code != "idempotency_store_unavailable" {
		return fmt.Errorf("before refuse-before is set, a retry is answered %d %s", told.status, told.code)
	}
	return nil
}

// damaged deletes items of all three tables, as a mistake of a person or of a release would.
func (r *run) damaged(ctx context.Context) error {
	for variable, key := range map[string]string{"IDEMPOTENCY_TABLE": "pk", "OUTBOX_TABLE": "id", "PAYMENTS_TABLE": "pk"} {
		name, n := r.variables[variable], 0
		err := scan(ctx, r.tables, name, func(it item) error {
			if n++; n%2 == 0 || text(it, key)[0] == '.' {
				return nil
			}
			_, err := r.tables.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &name, Key: item{key: it[key]}})
			return err
		})
		if err != nil {
			return fmt.Errorf("damage %s: %w", name, err)
		}
	}
	return nil
}

// restore is the runbook "Restored to a point in time".
func (r *run) restore(ctx context.Context) error {
	stopped := r.standing()
	stopped["stopped"] = "true"
	if err := r.deploy(ctx, stopped); err != nil {
		return err
	}
	suffix := "-" + r.id
	if _, err := r.must(ctx, nil, "tables", "restore", "--backup", r.snapped, "--suffix="+suffix, "--reason", reason, "--write"); err != nil {
		return err
	}
	return r.goOnWith(ctx, r.tablesOf(suffix))
}

// goOnWith is the end of both runbooks: the stack goes on with other tables, which may lack what was written last.
func (r *run) goOnWith(ctx context.Context, tables map[string]string) error {
	if err := r.refuseBefore(ctx, tables); err != nil {
		return err
	}
	if err := r.compareAccounts(ctx, tables); err != nil {
		return err
	}
	// Only now, because native TTL may remove what the balances are compared by.
	if _, err := r.must(ctx, tables, "tables", "prepare", "--reason", reason, "--write"); err != nil {
		return err
	}
	names, err := r.imports(ctx, tables)
	if err != nil {
		return err
	}
	// Still stopped: a version of the functions that has the old tables must not run again.
	if err := r.deploy(ctx, map[string]string{"import": names, "lost": "records", "stopped": "true"}); err != nil {
		return err
	}
	if err := r.deploy(ctx, map[string]string{"import": names, "lost": "records"}); err != nil {
		return err
	}
	if err := r.transfersAnswerTheSame(ctx); err != nil {
		return err
	}
	_, err = r.must(ctx, nil, "sweep", "--reason", reason, "--write")
	return err
}

// standing are the contexts that the stack was deployed with, but for what a runbook changes.
func (r *run) standing() map[string]string {
	contexts := map[string]string{}
	for name, value := range r.Stack.Contexts() {
		contexts[name] = value
	}
	return contexts
}

// regionLost keeps what AWS Backup has copied to the other Region, and ends the Region with everything in it.
func (r *run) regionLost(ctx context.Context) error {
	var err error
	if r.copied, err = r.copies(ctx); err != nil {
		return err
	}
	return r.Stack.Lose()
}

// copies are the items of the backups, by the names of the tables: what was copied away, and not what the Region held at its end.
func (r *run) copies(ctx context.Context) (map[string][]item, error) {
	all := map[string][]item{}
	for variable, name := range r.tablesOf("") {
		copied := name + "-copy-" + r.id
		backups, err := r.tables.ListBackups(ctx, &dynamodb.ListBackupsInput{TableName: &name})
		if err != nil {
			return nil, err
		}
		for _, b := range backups.BackupSummaries {
			if aws.ToString(b.BackupName) != r.snapped {
				continue
			}
			if _, err := r.tables.RestoreTableFromBackup(ctx, &dynamodb.RestoreTableFromBackupInput{BackupArn: b.BackupArn, TargetTableName: &copied}); err != nil {
				return nil, err
			}
			err := scan(ctx, r.tables, copied, func(it item) error {
				all[variable] = append(all[variable], it)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	if len(all) != 3 {
		return nil, errors.New("a table has no backup")
	}
	return all, nil
}

// failOver is the runbook "Fail-over to another Region".
func (r *run) failOver(ctx context.Context) error {
	before := r.variables
	r.Stack = r.other.stack
	contexts := map[string]string{"lost": "records", "stopped": "true"}
	if r.encrypts() {
		contexts["import"] = `{"kmsKey":"` + r.other.kmsKey + `"}`
	}
	if err := r.deploy(ctx, contexts); err != nil {
		return err
	}
	suffix := "-" + r.id
	for variable, items := range r.copied {
		if err := r.land(ctx, before[variable], r.variables[variable], r.variables[variable]+suffix, items); err != nil {
			return err
		}
	}
	copies := r.tablesOf(suffix)
	if err := r.importKeys(ctx, copies); err != nil {
		return err
	}
	return r.goOnWith(ctx, copies)
}

// land makes a table of the shape of another one, as a restore of AWS Backup does, without time to live and stream, and puts the
// items there that were copied.
func (r *run) land(ctx context.Context, from, like, name string, items []item) error {
	shape, err := r.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &like})
	if err != nil {
		return err
	}
	input := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: shape.Table.KeySchema, AttributeDefinitions: shape.Table.AttributeDefinitions,
	}
	for _, i := range shape.Table.GlobalSecondaryIndexes {
		input.GlobalSecondaryIndexes = append(input.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{IndexName: i.IndexName, KeySchema: i.KeySchema, Projection: i.Projection})
	}
	if _, err := r.tables.CreateTable(ctx, input); err != nil {
		return fmt.Errorf("restore the copy of %s: %w", from, err)
	}
	for _, it := range items {
		if _, err := r.tables.PutItem(ctx, &dynamodb.PutItemInput{TableName: &name, Item: it}); err != nil {
			return fmt.Errorf("restore the copy of %s: %w", from, err)
		}
	}
	return nil
}
