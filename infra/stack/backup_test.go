package stack_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// copyVault is a vault that outlives the Region.
const copyVault = "arn:aws:backup:eu-west-1:111122223333:backup-vault:payments"

// Every table that holds more than counters and tenants' keys is backed up each day for 35 days; erased keys must not come back.
func TestBackup(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		if !chosen(variant, "backup") {
			for _, kind := range []string{"BackupVault", "BackupPlan", "BackupSelection"} {
				template.counts(t, "AWS::Backup::"+kind, 0)
			}
			for id := range template.alarms(t) {
				if strings.HasPrefix(id, "Backup") {
					t.Errorf("the alarm %s, and no backups", id)
				}
			}
			return
		}
		vault := template.only(t, "AWS::Backup::BackupVault", "BackupVault")
		// It has its name from the stack's: one that stayed behind a first deployment that failed would be in the way of the second.
		if vault.DeletionPolicy != "RetainExceptOnCreate" || vault.UpdateReplacePolicy != "Retain" {
			t.Errorf("the vault is %s, %s; want RetainExceptOnCreate, Retain", vault.DeletionPolicy, vault.UpdateReplacePolicy)
		}
		// Each alarm counts jobs of this vault.
		counted := map[string]int{}
		for _, id := range []string{"BackupSilent", "BackupFailed"} {
			a := template.alarms(t)[id]
			for _, term := range a.Metrics {
				of := term.MetricStat.Metric
				if of.MetricName == "" {
					continue
				}
				if counted[of.MetricName]++; of.Namespace != "AWS/Backup" || len(of.Dimensions) != 1 || of.Dimensions[0].Name != "BackupVaultName" || plain(of.Dimensions[0].Value) != "BackupVault.BackupVaultName" {
					t.Errorf("%s looks at %+v", id, of)
				}
			}
		}
		eachDay(t, template.alarms(t)["BackupSilent"])
		if len(counted) != 4 {
			t.Errorf("jobs are counted by %v", counted)
		}
		copiesAreWatched(t, template.alarms(t), chosen(variant, "backupCopy"))
		template.has(t, "AWS::Backup::BackupPlan", map[string]any{"BackupPlan": map[string]any{"BackupPlanRule": []any{map[string]any{
			"RuleName": "Daily", "ScheduleExpression": "cron(0 3 * * ? *)", "StartWindowMinutes": 480, "CompletionWindowMinutes": 720, "Lifecycle": map[string]any{"DeleteAfterDays": 35},
		}}}})
		copied := template.only(t, "AWS::Backup::BackupPlan", "BackupPlan").Properties["BackupPlan"].(map[string]any)["BackupPlanRule"].([]any)[0].(map[string]any)["CopyActions"]
		var want any
		if chosen(variant, "backupCopy") {
			want = []any{map[string]any{"DestinationBackupVaultArn": copyVault, "Lifecycle": map[string]any{"DeleteAfterDays": 35.0}}}
		}
		if !reflect.DeepEqual(copied, want) {
			t.Errorf("each backup is copied to %v, want %v", copied, want)
		}
		selection := template.only(t, "AWS::Backup::BackupSelection", "BackupPlanTables").Properties["BackupSelection"].(map[string]any)
		var tables []string
		for _, arn := range selection["Resources"].([]any) {
			tables = append(tables, plain(arn))
		}
		slices.Sort(tables)
		if want := []string{"AuditTable.Arn", "Payments.Arn", "TablesIdempotency.Arn", "TablesOutbox.Arn"}; !slices.Equal(tables, want) {
			t.Errorf("backed up are %v, want %v", tables, want)
		}
		if got := plain(selection["IamRoleArn"]); got != "BackupPlanTablesRole.Arn" {
			t.Errorf("the role is %s", got)
		}
		role := template.only(t, "AWS::IAM::Role", "BackupPlanTablesRole").Properties
		trust := role["AssumeRolePolicyDocument"].(map[string]any)["Statement"].([]any)
		if len(trust) != 1 || fmt.Sprint(trust[0].(map[string]any)["Principal"]) != "map[Service:backup.amazonaws.com]" {
			t.Errorf("the role trusts %v", trust)
		}
		managed := role["ManagedPolicyArns"].([]any)
		if want := "arn:AWS::Partition:iam::aws:policy/service-role/AWSBackupServiceRolePolicyForBackup"; len(managed) != 1 || plain(managed[0]) != want || role["Policies"] != nil {
			t.Errorf("the role may %v, %v", managed, role["Policies"])
		}
	})
}

// eachDay demands that an alarm looks at one day of UTC, in which a night's jobs begin and end, and has a job of each table: a window
// that slides would have those of no night in it, or of two, where one night's are later than another's.
func eachDay(t *testing.T, a alarmOf) {
	t.Helper()
	for _, term := range a.Metrics {
		if term.MetricStat.Period != 0 && term.MetricStat.Period != 24*3600 {
			t.Errorf("%s counts %v seconds", a.id, term.MetricStat.Period)
		}
	}
	if a.Threshold != 4 || a.EvaluationPeriods != 1 || a.DatapointsToAlarm != 1 || fmt.Sprint(a.EvaluationWindow) != "map[WallClockWindow:map[Timezone:UTC]]" {
		t.Errorf("%s rings below %v in %d of %d days of %v", a.id, a.Threshold, a.DatapointsToAlarm, a.EvaluationPeriods, a.EvaluationWindow)
	}
}

// A copy that fails each night is no failed backup: without alarms of its own it would be found when the Region is gone.
func copiesAreWatched(t *testing.T, alarms map[string]alarmOf, copied bool) {
	t.Helper()
	for id, name := range map[string]string{"BackupCopySilent": "NumberOfCopyJobsCompleted", "BackupCopyFailed": "NumberOfCopyJobsFailed"} {
		a, made := alarms[id]
		if made != copied {
			t.Errorf("%s is there: %v, and copies are made: %v", id, made, copied)
		}
		vaults := map[string]bool{}
		for _, term := range a.Metrics {
			if of := term.MetricStat.Metric; of.MetricName == name && of.Namespace == "AWS/Backup" && len(of.Dimensions) == 1 && of.Dimensions[0].Name == "BackupVaultName" {
				vaults[plain(of.Dimensions[0].Value)] = true
			}
		}
		if id == "BackupCopySilent" && copied {
			eachDay(t, a)
		}
		if copied && (!vaults["BackupVault.BackupVaultName"] || !vaults["payments"] || len(a.Metrics) != 3) {
			t.Errorf("%s looks at %s of %v in %+v", id, name, vaults, a.Metrics)
		}
	}
}
