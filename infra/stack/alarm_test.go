package stack_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// stackName is the name of a variant's stack.
func stackName(variant string) string {
	if name, ok := variants[variant]["stack"]; ok {
		return name.(string)
	}
	return "idem-payments"
}

// docs/semantics.md "Metrics". An alarm on a metric that nobody makes never rings: its coordinates must be the functions'.
func TestAlarmsWatchTheFunctionsMetrics(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		template.counts(t, "AWS::CloudWatch::Alarm", 11)
		variables := environment(template.only(t, "AWS::Lambda::Function", "ApiFunction").Properties)
		for id, metric := range map[string]string{
			"KeyMisuse": "idempotency.reserve.key_misuse", "StoreError": "idempotency.store.error",
			"OutboxDead": "outbox.dead", "OutboxUnknown": "outbox.unknown", "OutboxAbandoned": "outbox.abandoned",
			"UnknownTopic": "outbox.unknown_topic", "RecordUnreadable": "idempotency.record_unreadable",
			"DriftFound": "drift.found", "DriftFailed": "drift.failed",
		} {
			got := template.only(t, "AWS::CloudWatch::Alarm", "Alarms"+id).Properties
			dimension := map[string]any{"Name": "service", "Value": variables["METRICS_SERVICE"]}
			if got["MetricName"] != metric || got["Namespace"] != variables["METRICS_NAMESPACE"] || fmt.Sprint(got["Dimensions"]) != fmt.Sprint([]any{dimension}) ||
				got["Statistic"] != "Sum" || got["TreatMissingData"] != "notBreaching" || got["ComparisonOperator"] != "GreaterThanOrEqualToThreshold" {
				t.Errorf("%s: %v", id, got)
			}
			actions := fmt.Sprint(list(got["AlarmActions"]))
			if want := variant == "rest-gateway"; want != (actions == "["+alarmTopic+"]") || !want && got["AlarmActions"] != nil {
				t.Errorf("%s: actions %v", id, got["AlarmActions"])
			}
			if description := got["AlarmDescription"].(string); len(description) > 1024 { // CloudWatch's bound
				t.Errorf("%s: a description of %d bytes", id, len(description))
			}
		}
	})
}

// What one person must look at rings at the first.
func TestWhatWantsAPersonRingsAtOnce(t *testing.T) {
	template := synthesize(t, "http-gateway")
	for _, id := range []string{"OutboxDead", "OutboxUnknown", "OutboxAbandoned", "UnknownTopic", "RecordUnreadable"} {
		got := template.only(t, "AWS::CloudWatch::Alarm", "Alarms"+id).Properties
		if got["Threshold"] != 1.0 || got["DatapointsToAlarm"] != 1.0 || got["EvaluationPeriods"] != 5.0 || got["Period"] != 60.0 {
			t.Errorf("%s: %v", id, got)
		}
	}
}

// A run an hour tells once: the alarm stays until one finds nothing.
func TestDriftRingsFromRunToRun(t *testing.T) {
	template := synthesize(t, "http-gateway")
	for _, id := range []string{"DriftFound", "DriftFailed"} {
		got := template.only(t, "AWS::CloudWatch::Alarm", "Alarms"+id).Properties
		if got["Threshold"] != 1.0 || got["DatapointsToAlarm"] != 1.0 || got["EvaluationPeriods"] != 2.0 || got["Period"] != 3600.0 {
			t.Errorf("%s: %v", id, got)
		}
	}
}

// A letter wants somebody, and a wake-up that is older than any that only waits.
func TestAlarmsWatchTheQueues(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		visible := template.only(t, "AWS::SQS::Queue", "QueuesWakeUps").Properties["VisibilityTimeout"].(float64)
		for id, want := range map[string]struct {
			metric, queue string
			threshold     float64
		}{
			"DeadLetters": {"ApproximateNumberOfMessagesVisible", "QueuesDeadLetter.QueueName", 1},
			"WakeUpsLate": {"ApproximateAgeOfOldestMessage", "QueuesWakeUps.QueueName", 15*60 + visible},
		} {
			got := template.only(t, "AWS::CloudWatch::Alarm", "QueueAlarms"+id).Properties
			dimension := got["Dimensions"].([]any)[0].(map[string]any)
			if got["Namespace"] != "AWS/SQS" || got["MetricName"] != want.metric || dimension["Name"] != "QueueName" || plain(dimension["Value"]) != want.queue ||
				got["Statistic"] != "Maximum" || got["Threshold"] != want.threshold || got["ComparisonOperator"] != "GreaterThanOrEqualToThreshold" ||
				got["TreatMissingData"] != "notBreaching" || got["DatapointsToAlarm"] != 2.0 || got["EvaluationPeriods"] != 3.0 || got["Period"] != 60.0 {
				t.Errorf("%s: %v", id, got)
			}
			if rings := got["AlarmActions"] != nil; rings != chosen(variant, "alarmTopic") {
				t.Errorf("%s: actions %v", id, got["AlarmActions"])
			}
		}
	})
}

// docs/semantics.md "Metrics": duplicates by tenant come from the log. Emulators refuse the rule.
func TestDuplicatesAreCountedByTenant(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		if variant != "http-gateway" {
			template.counts(t, "AWS::CloudWatch::InsightRule", 0)
			return
		}
		got := template.only(t, "AWS::CloudWatch::InsightRule", "DuplicatesByTenant").Properties
		var rule struct {
			Schema        struct{ Name string }
			LogGroupNames []string
			LogFormat     string
			Contribution  struct {
				Keys    []string
				Filters []struct {
					Match string
					In    []string
				}
			}
			AggregateOn string
		}
		body := plain(got["RuleBody"])
		if err := json.Unmarshal([]byte(body), &rule); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		if rule.Schema.Name != "CloudWatchLogRule" || rule.LogFormat != "JSON" || rule.AggregateOn != "Count" || fmt.Sprint(rule.LogGroupNames) != "[ApiLogs]" ||
			fmt.Sprint(rule.Contribution) != "{[$.tenant] [{$.msg [idempotency.reserve.replay]}]}" {
			t.Errorf("%s", body)
		}
		if name := got["RuleName"].(string); !strings.HasPrefix(name, stackName(variant)) || got["RuleState"] != "ENABLED" {
			t.Errorf("%s is %v", name, got["RuleState"])
		}
	})
}
