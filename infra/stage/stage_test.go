package stage_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/infra/stack"
	"github.com/idem-go/idem-aws/infra/stage"
	"github.com/idem-go/idem-aws/internal/stageplan"
)

// values are those of a stage's file, as a test changes them.
type values map[string]any

func (v values) context() map[string]any { return v["context"].(map[string]any) }

// production is a file that everything is right with.
func production() values {
	return values{
		"account": "111122223333", "region": "eu-central-1", "stack": "idem-payments", "owner": "payments", "production": true,
		"context": map[string]any{
			"providerUrl": "https://provider.example", "alarmTopic": "arn:aws:sns:eu-central-1:111122223333:oncall",
			"providerSecret": "payments/provider",
			"encryption":     "on", "scopeSecret": "payments/scopes", "fingerprintSecret": "payments/fingerprints",
			"webhookSecret": "payments/webhook", "quotaNewKeys": 50, "quotaActiveKeys": 1000000, "quotaLookUps": "200", "backup": "on", "trail": "people",
		},
	}
}

func read(t *testing.T, v values) (stageplan.Plan, error) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return readText(t, "prod", string(text))
}

func readText(t *testing.T, name, text string) (stageplan.Plan, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".json")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return stage.Read(path)
}

func TestReadMakesTheWholeContext(t *testing.T) {
	got, err := read(t, production())
	if err != nil {
		t.Fatal(err)
	}
	want := stageplan.Plan{
		Stage: "prod", Account: "111122223333", Region: "eu-central-1", Stack: "idem-payments", Arch: "arm64", Protected: true,
	}
	want.Context = map[string]string{
		"account": "111122223333", "region": "eu-central-1", "stack": "idem-payments", "owner": "payments", "stage": "prod",
		"providerUrl": "https://provider.example", "alarmTopic": "arn:aws:sns:eu-central-1:111122223333:oncall",
		"encryption": "on", "scopeSecret": "payments/scopes", "providerSecret": "payments/provider", "outbox": "sqs", "testKeys": "refuse", "fingerprintSecret": "payments/fingerprints",
		"webhookSecret": "payments/webhook", "quotaNewKeys": "50", "quotaActiveKeys": "1000000", "quotaLookUps": "200", "trail": "people", "backup": "on",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestReadNamesFieldValueAndRule(t *testing.T) {
	for _, c := range []struct {
		field string
		value any
		want  string
	}{
		{"account", "12345", `account="12345" is refused; allowed: twelve digits`},
		{"account", "", `account="" is refused; allowed: a value`},
		{"region", "Frankfurt", `region="Frankfurt" is refused; allowed: as eu-central-1`},
		{"stack", "1st", `stack="1st" is refused; allowed: a letter`},
		{"owner", "", `owner="" is refused; allowed: a value`},
		{"owner", "a;b", `owner="a;b" is refused; allowed: up to 128`},
		{"stage", "prod", `unknown object member name "stage"`},
		{"account", 111122223333, "unmarshal JSON number"},
		{"context.alarmTopic", nil, `context.alarmTopic="null" is refused; allowed: a string`},
		{"context.alarmTopic", "oncall", `context alarmTopic="oncall" is refused; allowed: an SNS topic's ARN`},
		{"context.alarmTopic", "arn:aws:sns:eu-west-1:111122223333:oncall", `allowed: a topic in eu-central-1`},
		{"context.alarmTopc", "none", `context="alarmTopc" is refused; allowed: accessLogs, accountConcurrency, accountUnits, alarmTopic, api, apiThrottle, arch, auth, backup,`},
		{"context.account", "111122223333", `context.account="\"111122223333\"" is refused; allowed: nothing: account is a field`},
		{"context.stage", "prod", "the stage's name is the file's"},
		{"context.local", true, "context.local is refused: it is for a local stack only"},
		{"context.localWebhookSecret", "whsec_0123456789", "context.localWebhookSecret is refused: it is for a local stack only"},
		{"context.api", []string{"http"}, `context.api="[\"http\"]" is refused; allowed: a string, a number, true, false or a map`},
		{"context.outboxShards", 1e6, `context outboxShards="1000000" is refused; allowed: 1 to 256`},
	} {
		file := production()
		if key, ok := strings.CutPrefix(c.field, "context."); ok {
			file.context()[key] = c.value
		} else {
			file[c.field] = c.value
		}
		_, err := read(t, file)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "prod.json") {
			t.Errorf("%s=%v: %v; want %q", c.field, c.value, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "whsec_") {
			t.Errorf("%s: the error shows a secret: %v", c.field, err)
		}
	}
}

// A map in the file is the command line's JSON: what a stack is deployed onto.
func TestReadTakesAMap(t *testing.T) {
	names := map[string]any{
		"idempotency": "records-r1", "outbox": "outbox-r1", "payments": "payments-r1", "keys": "data-keys", "kmsKey": "mrk-0123456789abcdef0123456789abcdef",
		"outboxStream": "arn:aws:dynamodb:eu-central-1:111122223333:table/outbox-r1/stream/2026-11-21T11:30:02.123",
	}
	file := production()
	file.context()["import"], file.context()["lost"] = names, "records"
	plan, err := read(t, file)
	if err != nil || !strings.Contains(plan.Context["import"], `"payments":"payments-r1"`) || plan.Context["lost"] != "records" {
		t.Errorf("%v, %v", plan.Context["import"], err)
	}
	delete(names, "payments")
	if _, err := read(t, file); err == nil || !strings.Contains(err.Error(), "together, or none of them") {
		t.Errorf("a part of the tables: %v", err)
	}
}

func TestReadNamesEveryRefusal(t *testing.T) {
	_, err := readText(t, "dev", `{"account": "1", "region": "x", "stack": "s", "owner": "o", "context": {"apy": "http", "auth": "none"}}`)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`account="1"`, `region="x"`, `context="apy"`, `auth="none"`, `alarmTopic=""`, `providerUrl=""`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}

// With a name that appears twice nobody could tell which value holds.
func TestReadRefusesANameTwice(t *testing.T) {
	_, err := readText(t, "dev", `{"account": "111122223333", "region": "eu-central-1", "stack": "s", "owner": "o",
		"context": {"providerUrl": "https://p.example", "alarmTopic": "none", "alarmTopic": "none"}}`)
	if err == nil || !strings.Contains(err.Error(), "duplicate") {
		t.Errorf("got %v", err)
	}
}

func TestReadOfAFileThatIsNotThere(t *testing.T) {
	_, err := stage.Read(filepath.Join(t.TempDir(), "prod.json"))
	if err == nil || !strings.Contains(err.Error(), "stage prod") || !strings.Contains(err.Error(), "example.json") {
		t.Errorf("got %v", err)
	}
	if _, err := stage.Read("run.json"); err == nil || !strings.Contains(err.Error(), ".local/run.env") {
		t.Errorf("stage run: %v", err)
	}
}

// A stack that is stopped, or that goes back while alarms ring, is deployed at once in production too.
func TestProductionMayStopAndGoBack(t *testing.T) {
	for _, key := range []string{"stopped", "rollback"} {
		file := production()
		file.context()[key] = true
		if _, err := read(t, file); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestProductionDemands(t *testing.T) {
	for _, c := range []struct {
		key   string
		value any
	}{
		{"providerSecret", ""}, {"alarmTopic", "none"}, {"encryption", "open"}, {"encryption", "off"},
		{"scopeSecret", ""}, {"fingerprintSecret", ""}, {"webhookSecret", ""}, {"quotaNewKeys", 0}, {"quotaActiveKeys", 0},
		{"quotaLookUps", 0}, {"quotaWaits", 0}, {"backup", "off"}, {"trail", "off"}, {"deployment", "now"}, {"terminationProtection", false},
	} {
		file := production()
		file.context()[c.key] = c.value
		if _, err := read(t, file); err == nil || strings.Count(err.Error(), "\n  ") != 1 || !strings.Contains(err.Error(), "\n  context."+c.key) {
			t.Errorf("%s=%v: %v", c.key, c.value, err)
		}
		file["production"] = false
		if _, err := read(t, file); err != nil {
			t.Errorf("%s=%v without production: %v", c.key, c.value, err)
		}
	}
}

// A production stage takes messages by the queue unless it says otherwise, and its plan says so; other stages keep the stack's default.
func TestProductionGoesThroughTheQueue(t *testing.T) {
	for _, c := range []struct {
		production bool
		outbox     any
		want       string
	}{{true, nil, "sqs"}, {true, "sqs", "sqs"}, {true, "streams", "streams"}, {false, nil, ""}, {false, "sqs", "sqs"}} {
		file := production()
		if file["production"] = c.production; c.outbox != nil {
			file.context()["outbox"] = c.outbox
		}
		if plan, err := read(t, file); err != nil || plan.Context["outbox"] != c.want {
			t.Errorf("production %v, outbox %v: %q, %v, want %q", c.production, c.outbox, plan.Context["outbox"], err, c.want)
		}
	}
}

// A production stage refuses test keys unless it says otherwise; other stages take them.
func TestProductionRefusesTestKeys(t *testing.T) {
	for _, c := range []struct {
		production bool
		testKeys   any
		want       string
	}{{true, nil, "refuse"}, {true, "accept", "accept"}, {false, nil, ""}, {false, "refuse", "refuse"}} {
		file := production()
		if file["production"] = c.production; c.testKeys != nil {
			file.context()["testKeys"] = c.testKeys
		}
		if plan, err := read(t, file); err != nil || plan.Context["testKeys"] != c.want {
			t.Errorf("production %v, testKeys %v: %q, %v, want %q", c.production, c.testKeys, plan.Context["testKeys"], err, c.want)
		}
	}
}

// A release that ends an alarm is deployed at once (make deploy NOW=1). Nothing else of the stage changes by that.
func TestProductionThatIsDeployedAtOnceStaysProduction(t *testing.T) {
	plan, err := read(t, production())
	if err != nil {
		t.Fatal(err)
	}
	plan.Context["deployment"] = "now"
	config, err := stack.Read(func(key string) any {
		if value, ok := plan.Context[key]; ok {
			return value
		}
		return nil
	}, func(string) string { return "" })
	if err != nil || config.Deployment != stack.Now || config.Outbox != stack.SQS || config.TestKeys != stack.TestKeysRefuse {
		t.Errorf("%v, outbox %v, test keys %v, %v", config.Deployment, config.Outbox, config.TestKeys, err)
	}
}

// Whatever brings messages to the worker, a provider that hangs must not have all of the account's executions.
func TestProductionBoundsTheWorker(t *testing.T) {
	for _, c := range []struct {
		context map[string]any
		missing int
	}{
		{map[string]any{"concurrency": "none"}, 1},
		{map[string]any{"concurrency": "none", "workerConcurrency": 20}, 0},
		{map[string]any{"outbox": "streams"}, 0},
		{map[string]any{"outbox": "streams", "concurrency": "none", "workerConcurrency": 20}, 1},
		{map[string]any{"outbox": "streams", "concurrency": "none"}, 2},
	} {
		file := production()
		for key, value := range c.context {
			file.context()[key] = value
		}
		_, err := read(t, file)
		if c.missing == 0 && err != nil || c.missing > 0 && (err == nil || strings.Count(err.Error(), "\n  context.") != c.missing) {
			t.Errorf("%v: %v, want %d missing", c.context, err, c.missing)
		}
	}
}

func TestProductionListsAllThatIsMissing(t *testing.T) {
	file := production()
	file["context"] = map[string]any{"providerUrl": "https://provider.example", "alarmTopic": "none"}
	_, err := read(t, file)
	if err == nil || strings.Count(err.Error(), "\n  context.") != 8 {
		t.Errorf("got %v", err)
	}
}

// The example is refused as it is, under any name, and right once its placeholders are replaced.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../stages/example.json")
	if err != nil {
		t.Fatal(err)
	}
	var file values
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	_, err = readText(t, "prod", string(text))
	filled := production()
	replaced := fill(file, filled) + fill(file.context(), filled.context())
	if err == nil || strings.Count(err.Error(), "is a placeholder") != replaced || !strings.Contains(err.Error(), `account="<`) {
		t.Errorf("%d placeholders: %v", replaced, err)
	}
	if _, err := read(t, file); err != nil {
		t.Errorf("with its placeholders replaced: %v", err)
	}
}

// fill replaces placeholders and counts them.
func fill(file, by map[string]any) (replaced int) {
	for key, value := range file {
		if text, ok := value.(string); ok && strings.HasPrefix(text, "<") {
			file[key] = by[key]
			replaced++
		}
	}
	return replaced
}

func TestCommittedStagesAreRight(t *testing.T) {
	paths, err := filepath.Glob("../stages/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		if filepath.Base(path) == "example.json" {
			continue
		}
		if _, err := stage.Read(path); err != nil {
			t.Error(err)
		}
	}
}
