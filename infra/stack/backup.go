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

// A job begins within hours of its time, 03:00 of UTC, and has ended within others, which count from that time too: AWS's own bound is a
// week. So a night's jobs are those of one day.
const (
	backupStartHours = 8
	backupHours      = 12
)

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

// addBackup backs tables up every night. The vault stays when the stack goes: it has the backups in it. One of a deployment that fails
// has none, and goes: its name would be in the way of the next try. The role is AWS Backup's alone and has AWS's own policy for it, because what
// a backup needs is AWS's to know. Each backup is copied to the vault of the ARN copies, where there is one.
//
// Its name is made of the stack's, so that a stack that is deployed again must be told of the one that is there.
func addBackup(stack awscdk.Stack, there, copies string, tables ...awsdynamodb.ITableV2) awsbackup.IBackupVault {
	var vault awsbackup.IBackupVault
	if there != "" {
		vault = awsbackup.BackupVault_FromBackupVaultName(stack, jsii.String("BackupVault"), jsii.String(there))
	} else {
		vault = awsbackup.NewBackupVault(stack, jsii.String("BackupVault"), &awsbackup.BackupVaultProps{
			RemovalPolicy: awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE,
		})
	}
	plan := awsbackup.NewBackupPlan(stack, jsii.String("BackupPlan"), &awsbackup.BackupPlanProps{
		BackupVault: vault,
		BackupPlanRules: &[]awsbackup.BackupPlanRule{awsbackup.NewBackupPlanRule(&awsbackup.BackupPlanRuleProps{
			RuleName:           jsii.String("Daily"),
			ScheduleExpression: awsevents.Schedule_Cron(&awsevents.CronOptions{Hour: jsii.String("3"), Minute: jsii.String("0")}),
			StartWindow:        awscdk.Duration_Hours(jsii.Number(backupStartHours)),
			CompletionWindow:   awscdk.Duration_Hours(jsii.Number(backupHours)),
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

// What failed is told within two hours of it. What is missing is known when the day is over.
const failedPeriod, missingPeriod = time.Hour, 24 * time.Hour

// watchBackup rings where a job has failed, and where a day had fewer than one of each table that ended well; of the copies to the vault of
// the ARN copies too, where there is one.
func watchBackup(m *idemconstruct.Monitor, vault awsbackup.IBackupVault, copies string, tables int) {
	here := jobs{vault.BackupVaultName()}
	everyDay(m, idemconstruct.Watch{
		ID: "BackupSilent", Metric: here.sum(missingPeriod, "NumberOfBackupJobsCompleted"), Threshold: float64(tables),
		Description: "Yesterday, by UTC, not all tables had a backup that ended well. Point-in-time recovery goes on; a table that is deleted would be lost.",
	})
	m.Add(idemconstruct.Watch{
		ID: "BackupFailed", Metric: here.sum(failedPeriod, "NumberOfBackupJobsFailed", "NumberOfBackupJobsAborted", "NumberOfBackupJobsExpired"), Threshold: 1, Periods: 1, OfLast: 2,
		Description: "A backup of a table has failed, was ended, or did not begin in time. The next one is tried the next night.",
	})
	if copies == "" {
		return
	}
	// AWS does not say whether a copy counts for the vault that it is of or for the one that it is in.
	either := jobs{vault.BackupVaultName(), jsii.String(copies[strings.LastIndex(copies, ":")+1:])}
	everyDay(m, idemconstruct.Watch{
		ID: "BackupCopySilent", Metric: either.most(missingPeriod, "NumberOfCopyJobsCompleted"), Threshold: float64(tables),
		Description: "Yesterday, by UTC, not all tables had a backup that was copied to the other vault. Backups go on here; a fail-over would lack the last day.",
	})
	m.Add(idemconstruct.Watch{
		ID: "BackupCopyFailed", Metric: either.sum(failedPeriod, "NumberOfCopyJobsFailed"), Threshold: 1, Periods: 1, OfLast: 2,
		Description: "A backup could not be copied to the other vault. The next one is tried the next night.",
	})
}

// everyDay adds an alarm that rings after a day of UTC with less. A day that slides along, which is CloudWatch's default, has no job in it
// where one night's are later than those of the night before.
func everyDay(m *idemconstruct.Monitor, w idemconstruct.Watch) {
	w.Periods, w.OfLast, w.Heartbeat = 1, 1, true
	m.Add(w)
	alarm := m.Alarms()[w.ID].Node().DefaultChild().(awscloudwatch.CfnAlarm)
	alarm.SetEvaluationWindow(&awscloudwatch.CfnAlarm_EvaluationWindowProperty{
		WallClockWindow: &awscloudwatch.CfnAlarm_WallClockWindowProperty{Timezone: jsii.String("UTC")},
	})
}

// jobs are those of vaults.
type jobs []*string

// sum counts jobs of some kinds, of all vaults together.
func (j jobs) sum(period time.Duration, kinds ...string) awscloudwatch.IMetric {
	metrics, terms := j.counted(period, kinds...)
	return counting(strings.Join(terms, " + "), period, metrics)
}

// most counts jobs of a kind in that of two vaults that has more of them.
func (j jobs) most(period time.Duration, kind string) awscloudwatch.IMetric {
	metrics, terms := j.counted(period, kind)
	return counting(fmt.Sprintf("IF(%[1]s >= %[2]s, %[1]s, %[2]s)", terms[0], terms[1]), period, metrics)
}

// counted are the metrics of some kinds of jobs, and what each is in an expression: no jobs are 0.
func (j jobs) counted(period time.Duration, kinds ...string) (map[string]awscloudwatch.IMetric, []string) {
	metrics, terms := map[string]awscloudwatch.IMetric{}, []string{}
	for _, kind := range kinds {
		for _, vault := range j {
			id := fmt.Sprintf("m%d", len(terms))
			metrics[id] = awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
				Namespace: jsii.String("AWS/Backup"), MetricName: jsii.String(kind), Statistic: jsii.String("Sum"),
				Period: awscdk.Duration_Hours(jsii.Number(period.Hours())), DimensionsMap: &map[string]*string{"BackupVaultName": vault},
			})
			terms = append(terms, "FILL("+id+", 0)")
		}
	}
	return metrics, terms
}

func counting(expression string, period time.Duration, metrics map[string]awscloudwatch.IMetric) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(expression), UsingMetrics: &metrics, Period: awscdk.Duration_Hours(jsii.Number(period.Hours())),
	})
}
