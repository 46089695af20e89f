package stack

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsbackup"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/lint"
)

// backupDays is how long a backup is kept: as long as point-in-time recovery reaches back, for which it also stands in when a
// table was deleted.
const backupDays = 35

// copyActions are what is done with each backup besides: nil where it stays where it is.
func copyActions(stack awscdk.Stack, vault string) *[]*awsbackup.BackupPlanCopyActionProps {
	if vault == "" {
		return nil
	}
	return &[]*awsbackup.BackupPlanCopyActionProps{{
		DestinationBackupVault: awsbackup.BackupVault_FromBackupVaultArn(stack, jsii.String("BackupCopyVault"), jsii.String(vault)),
		DeleteAfter:            awscdk.Duration_Days(jsii.Number(backupDays)),
	}}
}

// addBackup backs tables up every night. The vault stays when the stack goes: it has the backups in it. The role is AWS
// Backup's alone and has AWS's own policy for it, because what a backup needs is AWS's to know.
// Each backup is copied to the vault of the ARN copies, where there is one.
//
// Its name is made of the stack's, so that a stack that is deployed again must be told of the one that is there.
func addBackup(stack awscdk.Stack, there, copies string, tables ...awsdynamodb.ITableV2) awsbackup.IBackupVault {
	var vault awsbackup.IBackupVault
	if there != "" {
		vault = awsbackup.BackupVault_FromBackupVaultName(stack, jsii.String("BackupVault"), jsii.String(there))
	} else {
		vault = awsbackup.NewBackupVault(stack, jsii.String("BackupVault"), &awsbackup.BackupVaultProps{
			RemovalPolicy: awscdk.RemovalPolicy_RETAIN,
		})
	}
	plan := awsbackup.NewBackupPlan(stack, jsii.String("BackupPlan"), &awsbackup.BackupPlanProps{
		BackupVault: vault,
		BackupPlanRules: &[]awsbackup.BackupPlanRule{awsbackup.NewBackupPlanRule(&awsbackup.BackupPlanRuleProps{
			RuleName:           jsii.String("Daily"),
			ScheduleExpression: awsevents.Schedule_Cron(&awsevents.CronOptions{Hour: jsii.String("3"), Minute: jsii.String("0")}),
			DeleteAfter:        awscdk.Duration_Days(jsii.Number(backupDays)),
			CopyActions:        copyActions(stack, copies),
		})},
	})
	resources := make([]awsbackup.BackupResource, len(tables))
	for i, table := range tables {
		resources[i] = awsbackup.BackupResource_FromArn(table.TableArn())
	}
	plan.AddSelection(jsii.String("Tables"), &awsbackup.BackupSelectionOptions{Resources: &resources})
	lint.Accept(plan.Node().FindChild(jsii.String("Tables")).Node().FindChild(jsii.String("Role")), map[string]string{
		"AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSBackupServiceRolePolicyForBackup]": "The role is " +
			"AWS Backup's alone, and what a backup needs is AWS's to know.",
	})
	output(stack, "BackupVaultName", vault.BackupVaultName())
	return vault
}

// The alarms on backups. AWS Backup starts a job within eight hours of its time, so a day and a bit: the last job of a day ends at
// any time of these. A copy begins when its backup has ended.
const (
	backupPeriod  = time.Hour
	backupPeriods = 34
	copyPeriods   = 40
)

// watchBackup rings where a job has failed, and where none has ended well for longer than from one night's to the next one's; of the
// copies to the vault of the ARN copies too, where there is one.
func watchBackup(m *idemconstruct.Monitor, vault awsbackup.IBackupVault, copies string) {
	here := []*string{vault.BackupVaultName()}
	m.Add(idemconstruct.Watch{
		ID: "BackupSilent", Metric: jobs(here, "NumberOfBackupJobsCompleted"), Threshold: 1, Periods: backupPeriods, OfLast: backupPeriods, Heartbeat: true,
		Description: "No backup of a table has ended well since the night before the last. Point-in-time recovery goes on; a table that is deleted would be lost.",
	})
	m.Add(idemconstruct.Watch{
		ID: "BackupFailed", Metric: jobs(here, "NumberOfBackupJobsFailed", "NumberOfBackupJobsAborted", "NumberOfBackupJobsExpired"), Threshold: 1, Periods: 1, OfLast: 2,
		Description: "A backup of a table has failed, was ended, or did not begin in time. The next one is tried the next night.",
	})
	if copies == "" {
		return
	}
	// AWS does not say whether a copy counts for the vault that it is of or for the one that it is in.
	either := []*string{vault.BackupVaultName(), jsii.String(copies[strings.LastIndex(copies, ":")+1:])}
	m.Add(idemconstruct.Watch{
		ID: "BackupCopySilent", Metric: jobs(either, "NumberOfCopyJobsCompleted"), Threshold: 1, Periods: copyPeriods, OfLast: copyPeriods, Heartbeat: true,
		Description: "No backup has been copied to the other vault since the night before the last. Backups go on here; a fail-over would have none of the last day.",
	})
	m.Add(idemconstruct.Watch{
		ID: "BackupCopyFailed", Metric: jobs(either, "NumberOfCopyJobsFailed"), Threshold: 1, Periods: 1, OfLast: 2,
		Description: "A backup could not be copied to the other vault. The next one is tried the next night.",
	})
}

// jobs are those of some kinds and vaults, counted together.
func jobs(vaults []*string, names ...string) awscloudwatch.IMetric {
	metrics, terms := map[string]awscloudwatch.IMetric{}, []string{}
	for _, name := range names {
		for _, vault := range vaults {
			id := fmt.Sprintf("m%d", len(terms))
			metrics[id] = awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
				Namespace: jsii.String("AWS/Backup"), MetricName: jsii.String(name), Statistic: jsii.String("Sum"),
				Period: awscdk.Duration_Hours(jsii.Number(backupPeriod.Hours())), DimensionsMap: &map[string]*string{"BackupVaultName": vault},
			})
			terms = append(terms, "FILL("+id+", 0)")
		}
	}
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(strings.Join(terms, " + ")), UsingMetrics: &metrics, Period: awscdk.Duration_Hours(jsii.Number(backupPeriod.Hours())),
	})
}
