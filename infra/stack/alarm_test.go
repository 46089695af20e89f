package stack_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/telemetry"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// stackName is the name of a variant's stack.
func stackName(variant string) string {
	if name, ok := variants[variant]["stack"]; ok {
		return name.(string)
	}
	return "idem-payments"
}

// alarmOf is one alarm of a template.
type alarmOf struct {
	// id is the alarm's in the stack, and runbook the heading that its description names.
	id, runbook        string
	Namespace          string
	MetricName         string
	Statistic          string
	ExtendedStatistic  string
	Dimensions         []struct{ Name, Value any }
	Metrics            []mathTerm
	Threshold          float64
	Period             float64
	ComparisonOperator string
	DatapointsToAlarm  int
	EvaluationPeriods  int
	TreatMissingData   string
	EvaluationWindow   map[string]any
	AlarmDescription   string
	AlarmActions       any
}

// mathTerm is a metric of an expression, or the expression.
type mathTerm struct {
	ID         string `json:"Id"`
	Expression string
	MetricStat struct {
		Metric struct {
			Namespace, MetricName string
			Dimensions            []struct{ Name, Value any }
		}
		Period float64
		Stat   string
	}
	ReturnData *bool
}

var runbookForm = regexp.MustCompile(`Runbook: docs/operator\.md, ([A-Za-z]+)\.$`)

// alarms are all of a template, by their ids.
func (s *synthesized) alarms(t *testing.T) map[string]alarmOf {
	t.Helper()
	all := map[string]alarmOf{}
	for name, r := range s.Resources {
		if r.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		text, err := json.Marshal(r.Properties)
		if err != nil {
			t.Fatal(err)
		}
		a := alarmOf{id: strings.TrimPrefix(bare(name), "Alarms")}
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatal(err)
		}
		if named := runbookForm.FindStringSubmatch(a.AlarmDescription); named != nil {
			a.runbook = named[1]
		}
		all[a.id] = a.lifted()
	}
	return all
}

// lifted has what an expression on a single metric looks at where other alarms have it. ReleaseHarm is on those of other alarms.
func (a alarmOf) lifted() alarmOf {
	if a.id == "ReleaseHarm" {
		return a
	}
	for _, term := range a.Metrics { // of several, that of the functions' own
		if of := term.MetricStat; of.Metric.Namespace == metric.Namespace || len(a.Metrics) == 2 && of.Metric.MetricName != "" {
			a.Namespace, a.MetricName, a.Dimensions, a.Statistic, a.Period = of.Metric.Namespace, of.Metric.MetricName, of.Metric.Dimensions, of.Stat, of.Period
		}
	}
	return a
}

// counted are the alarms on events that are no alarm each: they ring at a number, or say what a run has found.
var counted = map[string]string{
	"KeyMisuse": "idempotency.reserve.key_misuse", "StoreError": "idempotency.store.error", "StoreRefused": "idempotency.store.refused", "OutboxUnauthorized": "outbox.unauthorized", "OutboxUnsent": "outbox.unsent", "WebhookFailed": "webhook.failed", "DriftFound": "drift.found", "DriftFailed": "drift.failed", "DriftLate": "drift.late",
	"SweepSilent": "sweep.run", "ReconcileSilent": "reconcile.run", "DriftSilent": "drift.run",
	"DueOld": "outbox.backlog.due_age", "UnknownOld": "outbox.backlog.unknown_age",
}

// A log line with alarm=true of which no alarm knows reaches nobody; an alarm on a line that nobody writes never rings.
func TestEveryAlarmLineHasAnAlarm(t *testing.T) {
	lines := alarmLines(t)
	if len(lines) < 10 {
		t.Errorf("only %d lines found: %v", len(lines), lines)
	}
	watched := map[string]string{}
	for id, a := range synthesize(t, "http-gateway").alarms(t) {
		if a.Namespace != metric.Namespace || counted[id] != "" {
			if counted[id] != "" && counted[id] != a.MetricName {
				t.Errorf("%s watches %s, want %s", id, a.MetricName, counted[id])
			}
			continue
		}
		if other := watched[a.MetricName]; other != "" {
			t.Errorf("%s and %s watch %s", id, other, a.MetricName)
		}
		watched[a.MetricName] = id
		if !slices.Contains(lines, a.MetricName) {
			t.Errorf("%s watches %s, which no line with alarm=true has", id, a.MetricName)
		}
		if a.Threshold != 1 || a.DatapointsToAlarm != 1 || a.EvaluationPeriods != 5 || a.Period != 60 || a.TreatMissingData != "notBreaching" || a.Statistic != "Sum" {
			t.Errorf("%s does not ring at the first line: %+v", id, a)
		}
	}
	for _, line := range lines {
		if watched[line] == "" {
			t.Errorf("%s has alarm=true, and no alarm", line)
		}
		if embedded(t, line)[line] != 1.0 {
			t.Errorf("%s has alarm=true, and package telemetry makes no metric of it", line)
		}
	}
}

// carriers are the lines that carry a metric of another name.
var carriers = map[string]string{"outbox.backlog.due_age": "outbox.backlog", "outbox.backlog.unknown_age": "idempotency.reconcile.scheduled"}

// embedded are the metrics that become of a line, and their values.
func embedded(t *testing.T, event string) map[string]any {
	t.Helper()
	out := &bytes.Buffer{}
	handler, err := telemetry.NewHandler(slog.NewJSONHandler(out, nil), telemetry.Config{Service: "s"})
	if err != nil {
		t.Fatal(err)
	}
	slog.New(handler).Error(event, "due_age_ms", 1, "age_ms", 1)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line["_aws"] == nil {
		return nil
	}
	return line
}

// docs/semantics.md "Metrics". An alarm on a metric that nobody makes never rings: its coordinates must be the functions'.
func TestAlarmsWatchTheFunctionsMetrics(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		variables := environment(template.only(t, "AWS::Lambda::Function", "ApiFunction").Properties)
		for id, a := range template.alarms(t) {
			if a.Namespace != variables["METRICS_NAMESPACE"] {
				continue
			}
			line := cmp.Or(carriers[a.MetricName], a.MetricName)
			if len(a.Dimensions) != 1 || a.Dimensions[0].Name != "service" || a.Dimensions[0].Value != variables["METRICS_SERVICE"] || embedded(t, line)[a.MetricName] == nil {
				t.Errorf("%s: %+v", id, a)
			}
		}
	})
}

// Every alarm goes to the topic that the context names, and only alarms of a stack that was told none go nowhere. ReleaseHarm does
// nowhere: what it rings at has an alarm of its own.
func TestAlarmsGoToTheTopic(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		for id, a := range template.alarms(t) {
			topic := variants[variant]["alarmTopic"]
			if id == "ReleaseHarm" {
				topic = "none"
			}
			if topic == "none" && a.AlarmActions != nil || topic != "none" && fmt.Sprint(list(a.AlarmActions)) != fmt.Sprint([]any{topic}) {
				t.Errorf("%s: actions %v", id, a.AlarmActions)
			}
			if len(a.AlarmDescription) > 1024 || a.runbook == "" { // CloudWatch's bound
				t.Errorf("%s: a description of %d bytes, runbook %q", id, len(a.AlarmDescription), a.runbook)
			}
		}
	})
}

// Every function, queue and table of a stack is watched. Emulators refuse alarms on expressions.
func TestAlarmsWatchEveryResource(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		alarms, local := template.alarms(t), variants[variant]["local"] != nil
		watched := map[string]bool{}
		for _, a := range alarms {
			if local && len(a.Metrics) > 0 {
				t.Errorf("%s is on an expression, which emulators refuse", a.id)
			}
			for _, d := range a.Dimensions {
				watched[fmt.Sprint(d.Name, " ", plain(d.Value))] = true
			}
			for _, term := range a.Metrics {
				for _, d := range term.MetricStat.Metric.Dimensions {
					watched[fmt.Sprint(term.MetricStat.Metric.MetricName, " ", d.Name, " ", plain(d.Value))] = true
				}
			}
		}
		var want []string
		for name, r := range template.Resources {
			switch name = bare(name); r.Type {
			case "AWS::SQS::Queue":
				want = append(want, "QueueName "+name+".QueueName")
			case "AWS::Lambda::Function":
				if !local {
					want = append(want, "Errors FunctionName "+name, "Throttles FunctionName "+name, "Invocations FunctionName "+name)
				}
			case "AWS::DynamoDB::GlobalTable":
				if !local && name != "AuditTable" { // people write it
					want = append(want, "ReadThrottleEvents TableName "+name, "WriteThrottleEvents TableName "+name)
				}
			case "AWS::Events::Rule":
				if !local {
					want = append(want, "FailedInvocations RuleName "+name)
				}
			}
		}
		reader := "WorkerFunction"
		if relayed(variant) {
			reader = "RelayFunction"
		}
		for _, one := range append(want, "FunctionName "+reader) {
			if !watched[one] {
				t.Errorf("nothing watches %s: %v", one, slices.Sorted(maps.Keys(watched)))
			}
		}
		if front := alarms["GatewayErrors"]; !local && len(front.Metrics) != 3 {
			t.Errorf("the gateway's errors: %+v", front)
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

// CloudWatch takes ten metrics in an alarm; the schedules' grow with the shards, up to the most calls that share them.
func TestNoAlarmHasMoreMetricsThanCloudWatchTakes(t *testing.T) {
	for _, variant := range []string{"http-gateway", "rest-gateway"} {
		for id, a := range synthesize(t, variant).alarms(t) {
			metrics := 0
			for _, term := range a.Metrics {
				if term.Expression == "" {
					metrics++
				}
			}
			if metrics > 10 {
				t.Errorf("%s: %s has %d metrics", variant, id, metrics)
			}
		}
	}
}

// What CloudWatch bills is in the README.
func TestReadmeCountsTheAlarms(t *testing.T) {
	alarms, metrics := synthesize(t, "http-gateway").alarms(t), 0
	for _, a := range alarms {
		looksAt := 0
		for _, term := range a.Metrics {
			if term.MetricStat.Period > 0 {
				looksAt++
			}
		}
		metrics += max(looksAt, 1)
	}
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`has (\d+) alarms\*\*[^:]*: (\d+)\.`).FindStringSubmatch(strings.ReplaceAll(string(readme), "\n  ", " "))
	if want := []string{fmt.Sprint(len(alarms)), fmt.Sprint(metrics)}; said == nil || !slices.Equal(said[1:], want) {
		t.Errorf("README.md says %v, want %v", said, want)
	}
}
