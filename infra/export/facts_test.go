package export_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/infra/spec"
)

// facts are what a deployment consists of, in words of no tool. Numbers are float64, as JSON has them.
type facts struct {
	// tables, by name: idempotency, outbox.
	tables map[string]tableFacts
	// settings are of queues, mappings and schedules, by name and property.
	settings map[string]string
	// permissions are "role: action on resource", one each.
	permissions []string
	// wider are the permissions that are added by what is chosen, such as "Inline=true".
	wider map[string][]string
	// functions, by role: time-out, memory and the names of their variables.
	functions map[string]string
	// alarms, by id: all that an alarm says.
	alarms map[string]alarmFacts
}

// alarmFacts are an alarm's. Metrics are by their ids in the expression, "" where there is none.
type alarmFacts struct {
	Description, Comparison, Missing, Expression string
	Threshold, Periods, OfLast                   string
	Metrics                                      map[string]string
	// Tells are its actions.
	Tells string
}

// tellsTopic are the actions of an alarm that tells the topic of the deployment, unless it is none.
const tellsTopic = "the topic, unless it is none"

// rule is the name of one of the schedule's rules: the CDK's first one has no number.
func rule(name string) string {
	if name == "schedule" {
		return "schedule1"
	}
	return strings.ReplaceAll(name, "schedule ", "schedule")
}

// measured is a metric in words.
func measured(namespace, name, statistic, period any, dimensions map[string]string) string {
	return fmt.Sprint(namespace, " ", name, " ", statistic, " of ", period, " s, ", dimensions)
}

type tableFacts struct {
	Key, TTL, Stream string
	Protected        bool // from deletion
	Recoverable      bool // to a point in time
	Index            schema.Index
}

// wanted is a table as its schema says, for production.
func wanted(shape schema.Table) tableFacts {
	stream := ""
	if shape.StreamNewImage {
		stream = "NEW_IMAGE"
	}
	return tableFacts{Key: shape.Key, TTL: shape.TTL, Stream: stream, Protected: true, Recoverable: true, Index: shape.Index}
}

// docs/own-stack.md says how many of the alarms an emulator can't have: those on an expression.
func TestAlarmsAreCountedInTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/own-stack.md")
	if err != nil {
		t.Fatal(err)
	}
	alarms, expressions := samFacts(t).alarms, 0
	for _, alarm := range alarms {
		if alarm.Expression != "" {
			expressions++
		}
	}
	prose := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{fmt.Sprintf("the %d of %d alarms that look at an expression", expressions, len(alarms)), fmt.Sprintf("its %d alarms too", len(alarms))} {
		if !strings.Contains(prose, want) {
			t.Errorf("docs/own-stack.md does not say %q", want)
		}
	}
}

// What the CDK, SAM and Terraform deploy is the same, and that of schema and spec.
func TestToolsAgree(t *testing.T) {
	all := map[string]facts{"CDK": cdkFacts(t), "SAM": samFacts(t), "Terraform": terraformFacts(t)}
	for name, holds := range map[string]func(*testing.T, map[string]facts){
		"tables are those of the schema": tablesAreThoseOfTheSchema, "queues, mappings and schedules": queuesMappingsAndSchedulesAgree,
		"roles may do what the spec says": rolesMayDoWhatTheSpecSays, "inline": inlineWidensTheAPIAsTheSpecSays, "functions": functionsAgree, "alarms": alarmsAgree,
	} {
		t.Run(name, func(t *testing.T) { holds(t, all) })
	}
}

// Tables, indexes, projections, TTL and streams are those of the schema, with the CDK, SAM and Terraform.
func tablesAreThoseOfTheSchema(t *testing.T, all map[string]facts) {
	for tool, f := range all {
		if len(f.tables) != 2 {
			t.Errorf("%s has tables %v", tool, slices.Sorted(maps.Keys(f.tables)))
		}
		for name, shape := range map[string]schema.Table{"idempotency": schema.Idempotency(), "outbox": schema.Outbox()} {
			if got, want := fmt.Sprintf("%+v", f.tables[name]), fmt.Sprintf("%+v", wanted(shape)); got != want {
				t.Errorf("%s: table %s is\n%s\nwant\n%s", tool, name, got, want)
			}
		}
	}
}

// Redrive, visibility, retention and encryption of the queues, all of the mappings, and the shards of every run are the same
// everywhere.
func queuesMappingsAndSchedulesAgree(t *testing.T, all map[string]facts) {
	for name, want := range map[string]string{ // in numbers, so that all of them can't be wrong alike
		"queue wake ups: redrive":    "dead letter after 11",
		"queue wake ups: visibility": "360", "queue wake ups: retention": "3600", "queue dead letter: retention": "1209600",
		"queue wake ups: encrypted": "true", "queue dead letter: encrypted": "true",
		"queue wake ups: denied": "sqs:* unless aws:SecureTransport", "queue dead letter: denied": "sqs:* unless aws:SecureTransport",
		"mapping stream: batch": "10", "mapping stream: at once": "10", "mapping stream: age": "7200", "mapping stream: bisect": "true",
		"mapping stream: partial failures": "true", "mapping stream: from": "TRIM_HORIZON", "mapping stream: failures go to": "dead letter",
		"mapping stream: filter":   `{"dynamodb":{"NewImage":{"st":{"S":["pending"]}}},"eventName":["INSERT"]}`,
		"mapping stream: function": "worker", "mapping wake ups: function": "worker",
		"mapping wake ups: batch": "10", "mapping wake ups: partial failures": "true",
		"runs of reconcile": "[[0] [1] [2] [3] [4] [5] [6] [7]] once, within 60 s, rate(1 minute)",
		"runs of sweep":     "[[0] [1] [2] [3] [4] [5] [6] [7]] once, within 60 s, rate(1 minute)",
		"calls of sweep":    "60 s, 0 more", "calls of reconcile": "60 s, 0 more",
	} {
		for tool, f := range all {
			if f.settings[name] != want {
				t.Errorf("%s: %s is %q, want %q", tool, name, f.settings[name], want)
			}
		}
	}
	for tool, f := range all {
		if len(f.settings) != len(all["CDK"].settings) {
			t.Errorf("%s has %d settings, CDK %d: %v", tool, len(f.settings), len(all["CDK"].settings), slices.Sorted(maps.Keys(f.settings)))
		}
	}
}

// Each role may do what package spec says, and write its own log: nothing more, with any tool.
func rolesMayDoWhatTheSpecSays(t *testing.T, all map[string]facts) {
	own := spec.Permission{Actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"}, On: []spec.Resource{"own log"}}
	want := permitted(spec.Functions(spec.Choices{}), own)
	for tool, f := range all {
		slices.Sort(f.permissions)
		if !slices.Equal(f.permissions, want) {
			t.Errorf("%s allows\n%s\nwant\n%s", tool, strings.Join(f.permissions, "\n"), strings.Join(want, "\n"))
		}
	}
}

// An API function that settles messages, inline or as a webhook does, may do with SAM and Terraform what it may with
// ApplicationProps.Inline, where that is chosen; nothing else widens a role.
func inlineWidensTheAPIAsTheSpecSays(t *testing.T, all map[string]facts) {
	without := permitted(spec.Functions(spec.Choices{}))
	want := slices.DeleteFunc(permitted(spec.Functions(spec.Choices{Inline: true})), func(p string) bool { return slices.Contains(without, p) })
	for tool, chosen := range map[string]string{"SAM": "Inline=true", "Terraform": "inline"} {
		got := slices.Clone(all[tool].wider[chosen])
		slices.Sort(got)
		if !slices.Equal(got, want) || len(want) == 0 || len(all[tool].wider) != 1 {
			t.Errorf("%s adds\n%v\nwant\n%s", tool, all[tool].wider, strings.Join(want, "\n"))
		}
	}
	if cdk := all["CDK"].wider; len(cdk) != 0 {
		t.Errorf("the CDK widens roles: %v", cdk)
	}
}

// permitted are the permissions of functions, and more of each, sorted.
func permitted(functions []spec.Function, more ...spec.Permission) (all []string) {
	for _, f := range functions {
		for _, p := range slices.Concat(f.Permissions, more) {
			for _, action := range p.Actions {
				for _, on := range p.On {
					all = append(all, f.Role+": "+action+" on "+string(on))
				}
			}
		}
	}
	return sorted(all)
}

func functionsAgree(t *testing.T, all map[string]facts) {
	for tool, f := range all {
		if !maps.Equal(f.functions, all["CDK"].functions) || len(f.functions) != 4 {
			t.Errorf("%s has functions\n%v\nCDK\n%v", tool, f.functions, all["CDK"].functions)
		}
	}
}

// Alarms look at the same metrics in the same way everywhere, and tell the topic that a deployment names. The CDK's stack here was
// told of none.
func alarmsAgree(t *testing.T, all map[string]facts) {
	want := all["CDK"].alarms
	if len(want) != 41 {
		t.Errorf("%d alarms of the CDK's are found, want 41", len(want))
	}
	for tool, f := range all {
		if !slices.Equal(slices.Sorted(maps.Keys(f.alarms)), slices.Sorted(maps.Keys(want))) {
			t.Errorf("%s has alarms %v, CDK %v", tool, slices.Sorted(maps.Keys(f.alarms)), slices.Sorted(maps.Keys(want)))
		}
		for id, alarm := range f.alarms {
			if tells := map[bool]string{false: tellsTopic}[tool == "CDK"]; alarm.Tells != tells {
				t.Errorf("%s: %s tells %q, want %q", tool, id, alarm.Tells, tells)
			}
			alarm.Tells = ""
			if got, want := fmt.Sprintf("%+v", alarm), fmt.Sprintf("%+v", want[id]); got != want {
				t.Errorf("%s: %s is\n%s\nCDK\n%s", tool, id, got, want)
			}
		}
	}
	// In numbers, so that all of them can't be wrong alike.
	silent := want["SweepSilent"]
	if silent.Threshold != "113" || silent.Missing != "breaching" || silent.Expression != "FILL(runs, 0)" ||
		silent.Metrics["runs"] != "idem sweep.run Sum of 900 s, map[service:service]" {
		t.Errorf("%+v", silent)
	}
}

// at is a value deep in a document: "a.0.b". It is nil where there is none.
func at(value any, path string) any {
	for step := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

func str(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

func strs(value any) (all []string) {
	list, _ := value.([]any)
	for _, each := range list {
		all = append(all, str(each))
	}
	return all
}

// listed is a value that may stand bare where there is one.
func listed(value any) []any {
	if many, ok := value.([]any); ok {
		return many
	}
	return []any{value}
}

// normal is a document as encoding/json reads it.
func normal(t *testing.T, document any) map[string]any {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}
