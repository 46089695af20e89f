package awsctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/operator"
)

// unbegun are the tables whose restore is still to be begun. A target that is there must be of the same source: tables of two instants
// are torn, and look whole.
func (r *restoreTables) unbegun(ctx context.Context, client *dynamodb.Client, tables []Table) (sources []string, err error) {
	for _, t := range tables {
		target := t.Name + r.Suffix
		there, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &target})
		if isA[*types.ResourceNotFoundException](err) {
			sources = append(sources, t.Name)
			continue
		}
		if err != nil {
			return nil, about(target, err)
		}
		same, err := r.made(ctx, client, t.Name, there.Table.RestoreSummary)
		if err != nil {
			return nil, err
		}
		if !same {
			return nil, fmt.Errorf("%w: table %s is there already, and %s, not of %s: take another --suffix", operator.ErrRefused, target, madeOf(there.Table.RestoreSummary), r.source())
		}
	}
	return sources, nil
}

// made says whether a table that is there was made by a restore of the same source as this one.
func (r *restoreTables) made(ctx context.Context, client *dynamodb.Client, source string, was *types.RestoreSummary) (bool, error) {
	if was == nil {
		return false, nil
	}
	if r.Backup != "" {
		backup, err := backupOf(ctx, client, source, r.Backup)
		return aws.ToString(was.SourceBackupArn) == backup, err
	}
	return was.SourceBackupArn == nil && strings.HasSuffix(aws.ToString(was.SourceTableArn), ":table/"+source) &&
		aws.ToTime(was.RestoreDateTime).Equal(r.instant()), nil
}

// madeOf says what a table was restored from.
func madeOf(was *types.RestoreSummary) string {
	switch {
	case was == nil:
		return "nothing says that it was restored"
	case was.SourceBackupArn != nil:
		return "was restored from " + *was.SourceBackupArn
	}
	return fmt.Sprintf("was restored from %s of %s", aws.ToString(was.SourceTableArn), aws.ToTime(was.RestoreDateTime).UTC().Format(time.RFC3339))
}

// instant is what is restored to: point-in-time recovery knows whole seconds.
func (r *restoreTables) instant() time.Time { return r.To.UTC().Truncate(time.Second) }

// source says what is restored from.
func (r *restoreTables) source() string {
	if r.Backup != "" {
		return "backup " + r.Backup
	}
	return r.instant().Format(time.RFC3339)
}

// begin starts the restore of one table.
func (r *restoreTables) begin(ctx context.Context, client *dynamodb.Client, source string) error {
	target := source + r.Suffix
	if r.Backup == "" {
		_, err := client.RestoreTableToPointInTime(ctx, &dynamodb.RestoreTableToPointInTimeInput{
			SourceTableName: &source, TargetTableName: &target, RestoreDateTime: aws.Time(r.instant()),
		})
		return about(target, err)
	}
	backup, err := backupOf(ctx, client, source, r.Backup)
	if err != nil {
		return err
	}
	_, err = client.RestoreTableFromBackup(ctx, &dynamodb.RestoreTableFromBackupInput{BackupArn: &backup, TargetTableName: &target})
	return about(target, err)
}

// backupOf is the ARN of the one backup of a table that has the name. Two of a name can't be told apart.
func backupOf(ctx context.Context, client *dynamodb.Client, source, name string) (found string, err error) {
	input := &dynamodb.ListBackupsInput{TableName: &source}
	for {
		page, err := client.ListBackups(ctx, input)
		if err != nil {
			return "", about(source, err)
		}
		for _, b := range page.BackupSummaries {
			switch {
			case aws.ToString(b.BackupName) != name:
			case found != "":
				return "", fmt.Errorf("table %s has two backups %q", source, name)
			default:
				found = aws.ToString(b.BackupArn)
			}
		}
		if page.LastEvaluatedBackupArn == nil {
			break
		}
		input.ExclusiveStartBackupArn = page.LastEvaluatedBackupArn
	}
	if found == "" {
		return "", fmt.Errorf("table %s has no backup %q", source, name)
	}
	return found, nil
}

// prepareAll gives the tables what a restore leaves out, and compares them with their shapes. Without expiry their time to live stays as it
// is, off after a restore: what their contents are compared by may have expired since the instant that was restored (docs/recovery.md).
func prepareAll(ctx context.Context, deployment Deployment, suffix string, expiry bool) error {
	client := deployment.dynamoDB()
	for _, t := range deployment.Tables {
		if err := prepare(ctx, client, t.Name+suffix, t.Shape); err != nil {
			return err
		}
		if !expiry {
			continue
		}
		if err := prepareExpiry(ctx, client, t.Name+suffix, t.Shape.TTL); err != nil {
			return err
		}
	}
	for _, t := range deployment.Tables {
		shape, name := t.Shape, t.Name+suffix
		if !expiry {
			on, err := expires(ctx, client, name)
			if err != nil {
				return err
			}
			if !on {
				shape.TTL = ""
			}
		}
		if _, err := dynamo.CheckTable(ctx, client, name, shape); err != nil {
			return err
		}
	}
	return nil
}

// prepare switches on what is off. A table takes one change at a time, so that each is waited for.
func prepare(ctx context.Context, client *dynamodb.Client, name string, shape schema.Table) error {
	there, err := settled(ctx, client, name)
	if err != nil {
		return err
	}
	if shape.StreamNewImage && (there.StreamSpecification == nil || !aws.ToBool(there.StreamSpecification.StreamEnabled)) {
		_, err := client.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &name, StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage,
		}})
		if err != nil {
			return about(name, err)
		}
		if there, err = settled(ctx, client, name); err != nil {
			return err
		}
	}
	if !aws.ToBool(there.DeletionProtectionEnabled) {
		_, err := client.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: aws.Bool(true)})
		if err != nil {
			return about(name, err)
		}
		if _, err = settled(ctx, client, name); err != nil {
			return err
		}
	}
	_, err = client.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: &name, PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	return about(name, err)
}

func prepareExpiry(ctx context.Context, client *dynamodb.Client, name, attribute string) error {
	if attribute == "" {
		return nil
	}
	if on, err := expires(ctx, client, name); on || err != nil {
		return err
	}
	_, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{
		AttributeName: &attribute, Enabled: aws.Bool(true),
	}})
	return about(name, err)
}

// expires says whether time to live is on, or is being switched on.
func expires(ctx context.Context, client *dynamodb.Client, name string) (bool, error) {
	there, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		return false, about(name, err)
	}
	d := there.TimeToLiveDescription
	return d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling), nil
}

// settledPoll is how often a table is asked whether it can be used: a restore takes minutes to hours.
const settledPoll = 2 * time.Second

// settled waits until a table and its indexes can be used, for as long as the context lets it.
func settled(ctx context.Context, client *dynamodb.Client, name string) (*types.TableDescription, error) {
	for {
		out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			return nil, about(name, err)
		}
		ready := out.Table.TableStatus == types.TableStatusActive
		for _, index := range out.Table.GlobalSecondaryIndexes {
			ready = ready && (index.IndexStatus == types.IndexStatusActive || index.IndexStatus == "")
		}
		if ready {
			return out.Table, nil
		}
		if err := idem.Pause(ctx, settledPoll); err != nil {
			return nil, fmt.Errorf("table %s is %s; repeat the command to go on waiting (--within): %w", name, out.Table.TableStatus, err)
		}
	}
}

func about(name string, err error) error {
	if err != nil {
		return fmt.Errorf("table %s: %w", name, err)
	}
	return nil
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
