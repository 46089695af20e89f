package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/stack"
)

// variants are the stacks that the tests look at: every kind of API with every place of authentication, in production
// and for an emulator, on both architectures; with encryption, limits and for pages of other origins, and without.
var variants = map[string]map[string]any{
	"http-gateway": {"account": "111122223333", "region": "eu-central-1", "alarmTopic": "none"},
	"rest-gateway": {
		"account": "111122223333", "region": "eu-central-1", "api": "rest", "alarmTopic": alarmTopic, "insights": "false",
		"providerSecret": "payments/provider",
		"encryption":     "on", "corsOrigins": origins, "quotaNewKeys": "50", "quotaActiveKeys": 100000, "webhookSecret": "payments/webhook",
		"quotaLookUps": "0", "quotaWaits": "0", "concurrency": `{"worker": 60, "relay": 20, "sweep": 0}`, "streamBatches": 5, "waitMax": "7", "apiThrottle": "200/100", "paymentThrottle": "90/80",
		"outbox": "sqs", "workerConcurrency": "20", "workerBatch": 20, "fingerprintSecret": "payments/fingerprints",
		"scopeSecret": "payments/scopes", "outboxShards": "20", "probesMax": "50", "wakeUpsMax": 50000, "otlpEndpoint": "http://localhost:4318", "tracesPercent": "5", "backup": "on", "backupCopy": copyVault, "trail": "all", "customerKeys": "on", "warmThroughput": "20000/10000", "maxThroughput": "30000/15000", "stage": "prod", "owner": "payments team",
		"deployment": "linear", "privateNetwork": "on", "testKeys": "refuse",
	},
	"http-origins-gateway": {
		"account": "111122223333", "region": "eu-central-1", "insights": "false", "corsOrigins": origins, "encryption": "open", "webhookSecret": secretARN,
		"alarmTopic": "none", "concurrency": "none", "apiThrottle": "off", "paymentThrottle": "off", "rollback": true,
		"quotaNewKeys": "0", "quotaActiveKeys": 0, "quotaLookUps": 0, "quotaWaits": 0,
	},
	"http-function": {"local": true, "arch": "amd64", "auth": "function", "localWebhookSecret": localSecret, "alarmTopic": "none"},
	"rest-function": {
		"local": "true", "arch": "amd64", "api": "rest", "auth": "function", "stack": "idem-e2e",
		"dynamodbEndpoint": "http://127.0.0.1:8100", "encryption": "on", "corsOrigins": origins, "localWebhookSecret": localSecret,
		"outbox": "sqs", "alarmTopic": "none", "testKeys": "refuse",
	},
}

// The secret of the provider's webhooks, where it is and as it is; one of them has none.
const (
	secretARN   = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:webhook-AbCdEf"
	localSecret = "whsec_of_a_local_stack"
)

// webhooks tells whether a variant takes the provider's webhooks.
func webhooks(variant string) bool { return contexts(variants[variant]).webhooks() }

// relayed tells whether a function puts the wake-ups of new messages into the queue in a variant.
func relayed(variant string) bool { return contexts(variants[variant]).relayed() }

// origins are whose pages may call, in some of them.
const origins = "https://shop.example,http://localhost:3000"

// chosen tells whether a variant has something that is off by default.
func chosen(variant, key string) bool { return has(key)(variants[variant]) }

// limits are what the api function is told of every tenant's limits: by default, chosen, or nil where there are none.
func limits(variant string) map[string]any {
	told := func(newKeys, activeKeys, lookUps, waits string) map[string]any {
		return map[string]any{
			"QUOTA_TABLE": "Quota", "QUOTA_NEW_KEYS_PER_SECOND": newKeys, "QUOTA_ACTIVE_KEYS": activeKeys, "QUOTA_LOOK_UPS_PER_SECOND": lookUps, "QUOTA_WAITS_PER_SECOND": waits,
		}
	}
	return map[string]map[string]any{"http-gateway": told("50", "1000000", "100", "20"), "rest-gateway": told("50", "100000", "0", "0")}[variant]
}

// alarmTopic is where one of them sends its alarms.
const alarmTopic = "arn:aws:sns:eu-central-1:111122223333:oncall"

// resource is one resource of a CloudFormation template.
type resource struct {
	Type                                string
	DeletionPolicy, UpdateReplacePolicy string
	Properties                          map[string]any
}

// synthesized is a variant's template: for CDK's assertions, and for walking.
type synthesized struct {
	assertions.Template
	document  map[string]any
	stack     awscdk.Stack
	Resources map[string]resource
	Outputs   map[string]struct{ Value any }
}

// cache lets all tests share one synthesis of a variant or of a combination, because each takes a second of a Node process.
var cache = map[string]*synthesized{}

func synthesize(t *testing.T, variant string) *synthesized {
	t.Helper()
	return synthesizeOnce(t, variant, variants[variant])
}

// synthesizeOnce synthesizes the stack of this name by its contexts, unless a test has before.
func synthesizeOnce(t *testing.T, name string, has contexts) *synthesized {
	t.Helper()
	if cache[name] == nil {
		cache[name] = synthesizeContext(t, has, buildFolder(t))
	}
	return cache[name]
}

// synthesizeFrom synthesizes a variant anew, from the binaries in a folder.
func synthesizeFrom(t *testing.T, variant, build string) *synthesized {
	t.Helper()
	return synthesizeContext(t, variants[variant], build)
}

// synthesizeContext synthesizes a stack by its contexts, from the binaries in a folder.
func synthesizeContext(t *testing.T, contexts map[string]any, build string) *synthesized {
	t.Helper()
	context := cdkContext(t)
	maps.Copy(context, contexts)
	context["providerUrl"] = "https://provider.example/"
	context["build"] = build

	app := awscdk.NewApp(&awscdk.AppProps{Context: &context, Outdir: jsii.String(t.TempDir())})
	config, err := stack.Read(
		func(key string) any { return app.Node().TryGetContext(jsii.String(key)) },
		func(string) string { return "" },
	)
	if err != nil {
		t.Fatal(err)
	}
	made, err := stack.New(app, config)
	if err != nil {
		t.Fatal(err)
	}
	result := &synthesized{Template: assertions.Template_FromStack(made, nil), stack: made}
	result.document = *result.ToJSON()
	text, err := json.Marshal(result.document)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, result); err != nil {
		t.Fatal(err)
	}
	return result
}

// cdkContext is what cdk.json says, so that the tests see the template that the command line deploys.
func cdkContext(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../cdk.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Context map[string]any }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if file.Context["@aws-cdk/core:validateAgainstDefaultRules"] != true {
		t.Error("cdk.json no longer fails a synthesis that breaks CDK's default rules")
	}
	return file.Context
}

// buildFolder holds a binary for each function and architecture; CDK asks only that they exist.
func buildFolder(t *testing.T) string {
	t.Helper()
	build := t.TempDir()
	for _, arch := range []string{"arm64", "amd64"} {
		for _, name := range []string{"api", "authorizer", "worker", "sweep", "reconcile", "drift", "webhook", "relay"} {
			folder := filepath.Join(build, arch, name)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "bootstrap"), []byte(arch+name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return build
}

// each runs a test on every variant.
func each(t *testing.T, test func(t *testing.T, variant string, template *synthesized)) {
	for variant := range variants {
		t.Run(variant, func(t *testing.T) { test(t, variant, synthesize(t, variant)) })
	}
}

// every runs a test on every variant and on every combination.
func every(t *testing.T, test func(t *testing.T, has contexts, template *synthesized)) {
	for name, has := range combined() {
		t.Run(name, func(t *testing.T) { test(t, has, synthesizeOnce(t, name, has)) })
	}
	each(t, func(t *testing.T, variant string, template *synthesized) { test(t, variants[variant], template) })
}

// holds reports a failed assertion of CDK, which is a panic, as the failure of this test alone.
func holds(t *testing.T, assertion func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if failure := recover(); failure != nil {
			t.Error(failure)
		}
	}()
	assertion()
}

// has demands a resource with at least these properties.
func (s *synthesized) has(t *testing.T, kind string, properties map[string]any) {
	t.Helper()
	holds(t, func() { s.HasResourceProperties(jsii.String(kind), properties) })
}

// counts demands so many resources of a kind.
func (s *synthesized) counts(t *testing.T, kind string, count int) {
	t.Helper()
	holds(t, func() { s.ResourceCountIs(jsii.String(kind), jsii.Number(count)) })
}

// only is the one resource of a kind whose name begins with prefix.
func (s *synthesized) only(t *testing.T, kind, prefix string) resource {
	t.Helper()
	var found []resource
	for name, r := range s.Resources {
		if r.Type == kind && strings.HasPrefix(name, prefix) {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d resources %s %s*, want 1", len(found), kind, prefix)
	}
	return found[0]
}

// logicalHash is what CDK appends to a construct's path to make a name unique.
var logicalHash = regexp.MustCompile(`^(.*[a-z])[0-9A-F]{8}$`)

// plain writes a value of a template as text: "Outbox.Arn" for an attribute, joined strings joined.
func plain(value any) string {
	switch v := value.(type) {
	case map[string]any:
		if name, ok := v["Ref"]; ok {
			return bare(name)
		}
		if pair, ok := v["Fn::GetAtt"].([]any); ok {
			return bare(pair[0]) + "." + fmt.Sprint(pair[1])
		}
		if selected, ok := v["Fn::Select"].([]any); ok { // the name within an ARN
			if split, ok := selected[1].(map[string]any)["Fn::Split"].([]any); ok {
				return plain(split[1])
			}
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			var text strings.Builder
			for _, part := range join[1].([]any) {
				text.WriteString(plain(part))
			}
			return text.String()
		}
	}
	return fmt.Sprint(value)
}

func bare(name any) string {
	return logicalHash.ReplaceAllString(fmt.Sprint(name), "$1")
}

// list is a value that CloudFormation writes as a list, or bare when there is one.
func list(value any) []any {
	if many, ok := value.([]any); ok {
		return many
	}
	return []any{value}
}
