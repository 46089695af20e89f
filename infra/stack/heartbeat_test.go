package stack_test

import (
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/infra/spec"
)

// Whatever is scheduled has an alarm that rings where nothing is counted: a job that does not run writes no line about it.
func TestEverythingScheduledHasAHeartbeat(t *testing.T) {
	every(t, func(t *testing.T, _ contexts, template *synthesized) {
		alarms, scheduled := template.alarms(t), map[string]bool{}
		for name, r := range template.Resources {
			switch r.Type {
			case "AWS::Events::Rule":
				if r.Properties["ScheduleExpression"] == nil {
					continue // it waits for events
				}
				for _, target := range r.Properties["Targets"].([]any) {
					scheduled[strings.TrimSuffix(plain(target.(map[string]any)["Arn"]), "Live")] = true
				}
			case "AWS::Backup::BackupPlan":
				scheduled["Backup"] = true
			case "AWS::Scheduler::Schedule":
				t.Errorf("%s is scheduled, and this test does not know by what alarm it is watched", name)
			}
		}
		if len(scheduled) < 3 {
			t.Errorf("only %v are scheduled", scheduled)
		}
		for of := range scheduled {
			a, ok := alarms[of+"Silent"]
			zero := false
			for _, term := range a.Metrics {
				zero = zero || term.Expression == spec.RunsOrNone
			}
			if !ok || !zero && a.TreatMissingData != "breaching" || !strings.HasPrefix(a.ComparisonOperator, "LessThan") {
				t.Errorf("%s has no alarm that rings without data: %+v", of, a)
			}
		}
	})
}
