package export_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// terraformFile is the file's content, and what of it encoding/json reads.
func terraformFile(t *testing.T) ([]byte, map[string]any) {
	t.Helper()
	content, err := os.ReadFile("../terraform/main.tf.json")
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	return content, document
}

// HashiCorp's parser reads the file, and every expression in it is about a resource or a variable that the file has. Terraform
// itself, and its provider, have not seen it.
func TestTerraformExpressionsResolve(t *testing.T) {
	content, document := terraformFile(t)
	file, diagnostics := hcljson.Parse(content, "main.tf.json")
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
	attributes, diagnostics := file.Body.JustAttributes()
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
	references := 0
	for _, section := range []string{"resource", "output"} {
		for _, traversal := range attributes[section].Expr.Variables() {
			references++
			root, next := traversal.RootName(), traversal[1].(hcl.TraverseAttr).Name
			if root == "var" && at(document, "variable."+next) == nil || root != "var" && at(document, "resource."+root+"."+next) == nil {
				t.Errorf("%v: there is no %s.%s", traversal.SourceRange(), root, next)
			}
		}
	}
	if references < 50 {
		t.Errorf("%d references found: the parser does not see the expressions", references)
	}
}

// terraform is the module.
type terraform struct {
	t        *testing.T
	document map[string]any
}

// choosing is the count of a resource that a variable adds.
var choosing = regexp.MustCompile(`^\$\{var\.(\w+) \? 1 : 0\}$`)

func terraformFacts(t *testing.T) facts {
	t.Helper()
	_, document := terraformFile(t)
	m := terraform{t, document}
	f := facts{tables: map[string]tableFacts{}, settings: map[string]string{}, functions: map[string]string{}, alarms: map[string]alarmFacts{}, wider: map[string][]string{}}
	for name, p := range m.all("aws_dynamodb_table") {
		f.tables[name] = m.table(p)
	}
	m.queues(f)
	m.mappings(f)
	m.alarms(f)
	m.schedules(f)
	for name, p := range m.all("aws_iam_role_policy") {
		role := owner(at(p, "role"))
		permissions := permissionsOf(t, role, m.json(at(p, "policy"))["Statement"].([]any), plainARN)
		switch chosen := choosing.FindStringSubmatch(str(at(p, "count"))); {
		case chosen != nil:
			f.wider[chosen[1]] = append(f.wider[chosen[1]], permissions...)
		case at(p, "count") != nil || role != name:
			t.Errorf("the policy %s is of %v, with %v", name, at(p, "role"), at(p, "count"))
		default:
			f.permissions = append(f.permissions, permissions...)
		}
	}
	m.functions(f)
	return f
}

// all are the resources of a kind, by name.
func (m terraform) all(kind string) map[string]any {
	found, ok := at(m.document, "resource."+kind).(map[string]any)
	if !ok || len(found) == 0 {
		m.t.Fatalf("there is no %s", kind)
	}
	return found
}

// json reads a document within a string.
func (m terraform) json(text any) map[string]any {
	var document map[string]any
	if err := json.Unmarshal([]byte(str(text)), &document); err != nil {
		m.t.Fatalf("%v: %v", text, err)
	}
	return document
}

var reference = regexp.MustCompile(`\$\{aws_\w+\.(\w+)\.(\w+)\}`)

// plainARN is an ARN with the resource's name in words, as in a CloudFormation template: "outbox.Arn/stream/*".
func plainARN(value any) string {
	text := reference.ReplaceAllStringFunc(str(value), func(part string) string {
		found := reference.FindStringSubmatch(part)
		of := map[string]string{"arn": "Arn", "stream_arn": "StreamArn"}[found[2]]
		return strings.ReplaceAll(found[1], "_", " ") + "." + of
	})
	return strings.TrimSuffix(text, ":*") // of a log group
}

// owner is the name in words of the resource that a reference is to.
func owner(value any) string {
	found := reference.FindStringSubmatch(str(value))
	if found == nil {
		return "not understood: " + str(value)
	}
	return strings.ReplaceAll(found[1], "_", " ")
}

func (m terraform) table(p any) tableFacts {
	stream := ""
	if at(p, "stream_enabled") == true {
		stream = str(at(p, "stream_view_type"))
	}
	types := map[string]string{}
	for _, a := range at(p, "attribute").([]any) {
		types[str(at(a, "name"))] = str(at(a, "type"))
	}
	index := schema.Index{
		Name: str(at(p, "global_secondary_index.0.name")), Partition: str(at(p, "global_secondary_index.0.hash_key")),
		Sort: str(at(p, "global_secondary_index.0.range_key")), Projected: strs(at(p, "global_secondary_index.0.non_key_attributes")),
	}
	if want := map[string]string{str(at(p, "hash_key")): "S", index.Partition: "S", index.Sort: "N"}; !maps.Equal(types, want) {
		m.t.Errorf("attributes %v, want %v", types, want)
	}
	if at(p, "lifecycle.prevent_destroy") != true || at(p, "billing_mode") != "PAY_PER_REQUEST" {
		m.t.Errorf("not protected, or not on demand: %v", p)
	}
	return tableFacts{
		Key: str(at(p, "hash_key")), TTL: str(at(p, "ttl.attribute_name")), Stream: stream,
		Protected: at(p, "deletion_protection_enabled") == true, Recoverable: at(p, "point_in_time_recovery.enabled") == true, Index: index,
	}
}

func (m terraform) queues(f facts) {
	for name, p := range m.all("aws_sqs_queue") {
		of := "queue " + strings.ReplaceAll(name, "_", " ") + ": "
		f.settings[of+"retention"], f.settings[of+"encrypted"] = str(at(p, "message_retention_seconds")), str(at(p, "sqs_managed_sse_enabled"))
		if policy := at(p, "redrive_policy"); policy != nil {
			document := m.json(policy)
			f.settings[of+"visibility"] = str(at(p, "visibility_timeout_seconds"))
			f.settings[of+"redrive"] = redrive(plainARN(document["deadLetterTargetArn"]), document["maxReceiveCount"])
		}
	}
	for _, p := range m.all("aws_sqs_queue_policy") {
		f.settings["queue "+owner(at(p, "queue_url"))+": denied"] = denied(at(m.json(at(p, "policy")), "Statement.0"))
	}
}

func (m terraform) mappings(f facts) {
	for name, p := range m.all("aws_lambda_event_source_mapping") {
		of := "mapping " + strings.ReplaceAll(name, "_", " ") + ": "
		f.settings[of+"function"], f.settings[of+"source"] = owner(at(p, "function_name")), plainARN(at(p, "event_source_arn"))
		f.settings[of+"enabled"], f.settings[of+"batch"] = str(at(p, "enabled")), str(at(p, "batch_size"))
		f.settings[of+"partial failures"] = str(slices.Contains(strs(at(p, "function_response_types")), "ReportBatchItemFailures"))
		if at(p, "starting_position") != nil {
			f.settings[of+"from"], f.settings[of+"bisect"] = str(at(p, "starting_position")), str(at(p, "bisect_batch_on_function_error"))
			f.settings[of+"at once"], f.settings[of+"age"] = str(at(p, "parallelization_factor")), str(at(p, "maximum_record_age_in_seconds"))
			f.settings[of+"filter"] = str(at(p, "filter_criteria.filter.0.pattern"))
			f.settings[of+"failures go to"] = owner(at(p, "destination_config.on_failure.destination_arn"))
		}
	}
}

func (m terraform) alarms(f facts) {
	for name, p := range m.all("aws_cloudwatch_metric_alarm") {
		alarm := alarmFacts{
			Description: str(at(p, "alarm_description")), Comparison: str(at(p, "comparison_operator")), Missing: str(at(p, "treat_missing_data")),
			Threshold: str(at(p, "threshold")), Periods: str(at(p, "datapoints_to_alarm")), OfLast: str(at(p, "evaluation_periods")), Metrics: map[string]string{},
		}
		if alarm.Tells = str(at(p, "alarm_actions")); alarm.Tells == `${var.alarm_topic == "none" ? [] : [var.alarm_topic]}` {
			alarm.Tells = tellsTopic
		}
		if at(p, "metric_query") == nil {
			alarm.Metrics[""] = measured(at(p, "namespace"), at(p, "metric_name"), at(p, "statistic"), at(p, "period"), m.dimensions(at(p, "dimensions")))
		}
		for _, query := range listedOrNone(at(p, "metric_query")) {
			if expression := at(query, "expression"); expression != nil {
				alarm.Expression = str(expression)
				continue
			}
			if at(query, "return_data") != false {
				m.t.Errorf("%s: %v is returned beside the expression", name, query)
			}
			alarm.Metrics[str(at(query, "id"))] = measured(at(query, "metric.namespace"), at(query, "metric.metric_name"),
				at(query, "metric.stat"), at(query, "metric.period"), m.dimensions(at(query, "metric.dimensions")))
		}
		id := strings.TrimPrefix(str(at(p, "alarm_name")), "${var.name}-")
		if strings.ReplaceAll(name, "_", "") != strings.ToLower(id) {
			m.t.Errorf("%s is the alarm %s", name, id)
		}
		f.alarms[id] = alarm
	}
}

func (m terraform) dimensions(values any) map[string]string {
	found := map[string]string{}
	for name, value := range values.(map[string]any) {
		switch text := str(value); {
		case text == "${var.name}":
			found[name] = "service"
		case strings.HasPrefix(text, "${"):
			found[name] = rule(owner(value))
		default:
			found[name] = text
		}
	}
	return found
}

func (m terraform) schedules(f facts) {
	rules, inputs, how := m.all("aws_cloudwatch_event_rule"), map[string][]string{}, map[string]string{}
	allowed := map[string]bool{}
	for _, p := range m.all("aws_lambda_permission") {
		allowed[owner(at(p, "function_name"))+" "+owner(at(p, "source_arn"))] = at(p, "principal") == "events.amazonaws.com" && at(p, "action") == "lambda:InvokeFunction"
	}
	perRule := map[string]int{}
	for name, p := range m.all("aws_cloudwatch_event_target") {
		role, rule := owner(at(p, "arn")), owner(at(p, "rule"))
		if perRule[rule]++; perRule[rule] > 5 || !allowed[role+" "+rule] {
			m.t.Errorf("%s: %s may not call %s, or has more than EventBridge's 5 targets", name, rule, role)
		}
		schedule := at(rules, strings.ReplaceAll(rule, " ", "_")+".schedule_expression")
		inputs[role] = append(inputs[role], shardsIn(m.value(at(p, "input"), byDefault()).AsString()))
		how[role] = runsOf(at(p, "retry_policy.maximum_retry_attempts"), at(p, "retry_policy.maximum_event_age_in_seconds"), schedule)
	}
	for role, shards := range inputs {
		f.settings["runs of "+role] = fmt.Sprint(sorted(shards), " ", how[role])
	}
	for role, p := range m.all("aws_lambda_function_event_invoke_config") {
		f.settings["calls of "+role] = fmt.Sprint(at(p, "maximum_event_age_in_seconds"), " s, ", at(p, "maximum_retry_attempts"), " more")
	}
}

func (m terraform) functions(f facts) {
	for role, p := range m.all("aws_lambda_function") {
		own := strings.TrimSuffix(strings.TrimPrefix(str(at(p, "environment.variables")), "${merge(var.environment, "), ")}")
		variables := m.json(own)
		if variables["IDEM_FUNCTION"] != role || at(p, "role") != "${aws_iam_role."+role+".arn}" {
			m.t.Errorf("%s runs as %v, with %v", role, variables["IDEM_FUNCTION"], at(p, "role"))
		}
		f.functions[role] = fmt.Sprint(at(p, "timeout"), " s, ", at(p, "memory_size"), " MiB, FUNCTION_TIMEOUT=", variables["FUNCTION_TIMEOUT"],
			", OUTBOX_SHARDS=", m.value(variables["OUTBOX_SHARDS"], byDefault()).AsString(), ", ", slices.Sorted(maps.Keys(variables)))
	}
}
