package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsbackup"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/jsii-runtime-go"

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
func addBackup(stack awscdk.Stack, there, copies string, tables ...awsdynamodb.ITableV2) {
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
}
