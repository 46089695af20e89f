package stack_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/stack"
)

func read(context map[string]any, environment map[string]string) (stack.Config, error) {
	return stack.Read(func(key string) any { return context[key] }, func(name string) string { return environment[name] })
}

func TestReadDefaults(t *testing.T) {
	got, err := read(
		map[string]any{"providerUrl": "https://provider.example/v1/", "alarmTopic": "none"},
		map[string]string{"CDK_DEFAULT_ACCOUNT": "111122223333", "CDK_DEFAULT_REGION": "us-gov-west-1"},
	)
	want := stack.Config{
		Stack: "idem-payments", API: stack.HTTP, Auth: stack.Gateway, TestKeys: stack.TestKeysAccept, Arch: stack.ARM64,
		ProviderURL: "https://provider.example/v1", Build: "../.local/build", Insights: true, AlarmTopic: stack.NoAlarmTopic, Encryption: stack.Off, Outbox: stack.Streams, TracesPercent: 100, OutboxShards: 8, LedgerShards: 4, DriftParts: 4, WorkerBatch: 10,
		Concurrency: stack.Concurrency{Authorizer: 100, API: 400, Webhook: 50, Worker: 200, Relay: 40, Sweep: 10, Reconcile: 10},
		Stream:      stack.Stream{Batches: 10, Shards: 4}, WorkerConcurrency: 150,
		APIThrottle: stack.Throttle{Rate: 1000, Burst: 1000}, PaymentThrottle: stack.Throttle{Rate: 500, Burst: 500},
		WaitMax: 5, Quota: stack.Quota{NewKeys: 50, ActiveKeys: 1_000_000, LookUps: 100, Waits: 20},
		WAFRate: 100_000, TerminationProtection: true, AccessLogs: true, Trail: stack.TrailOff, Lost: stack.LostNothing, Deployment: stack.Canary,
		Account: "111122223333", Region: "us-gov-west-1",
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

// A local stack names the emulators' account, so that it can't reach the account of the credentials at hand.
func TestReadLocalIsNeverARealAccount(t *testing.T) {
	got, err := read(
		map[string]any{
			"providerUrl": "http://127.0.0.1:9000", "local": true, "account": "111122223333", "region": "eu-west-1", "alarmTopic": "none",
		},
		map[string]string{"CDK_DEFAULT_ACCOUNT": "111122223333", "CDK_DEFAULT_REGION": "eu-west-1"},
	)
	if err != nil || got.Account != "000000000000" || got.Region != "us-east-1" || got.Insights || got.TerminationProtection {
		t.Errorf("got %+v, %v", got, err)
	}
	if got.Concurrency != (stack.Concurrency{}) || got.WorkerConcurrency != 0 || got.Quota != (stack.Quota{}) ||
		got.APIThrottle != (stack.Throttle{}) || got.PaymentThrottle != (stack.Throttle{}) {
		t.Errorf("limits that emulators may refuse: %+v", got)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct {
		key     string
		value   any
		allowed string
	}{
		{"stack", "1st", "a letter"},
		{"api", "soap", "http, rest"},
		{"api", "", "http, rest"},
		{"auth", "none", "gateway, function"},
		{"testKeys", "no", "accept, refuse"},
		{"arch", "x86_64", "arm64, amd64"},
		{"local", "yes", "false, true"},
		{"local", 1, "false, true"},
		{"providerUrl", nil, "http[s]://host"},
		{"providerUrl", "provider.example", "http[s]://host"},
		{"providerUrl", "ftp://provider.example", "http[s]://host"},
		{"providerUrl", "https://user:secret@provider.example", "http[s]://host"},
		{"dynamodbEndpoint", "127.0.0.1:8000", "http[s]://host"},
		{"dynamodbEndpoint", "http://127.0.0.1:8000", "unless local=true"},
		{"encryption", "yes", "off, open, on"},
		{"outbox", "kinesis", "streams, sqs"},
		{"workerConcurrency", "1", "2 to 1000"},
		{"workerConcurrency", 1001, "2 to 1000"},
		{"workerConcurrency", "many", "0 to"},
		{"workerBatch", "9", "10 to 40"},
		{"workerBatch", 41, "10 to 40"},
		{"outboxShards", "0", "1 to 256"},
		{"ledgerShards", "0", "1 to 256"},
		{"ledgerShards", 257, "1 to 256"},
		{"driftParts", "0", "1 to 240"},
		{"driftParts", 241, "1 to 240"},
		{"outboxShards", 257, "1 to 256"},
		{"outboxShards", "many", "1 to 256"},
		{"wakeUpsMax", "100000", "nothing, unless outbox=sqs"},
		{"quotaNewKeys", "-1", "0 to 1000000000"},
		{"quotaActiveKeys", "many", "0 to 1000000000"},
		{"quotaLookUps", "1.5", "0 to 1000000000"},
		{"quotaWaits", "-1", "0 to 1000000000"},
		{"apiThrottle", "0/10", "requests per second/burst"},
		{"apiThrottle", 100, "requests per second/burst"},
		{"paymentThrottle", "none", "off"},
		{"streamBatches", 11, "1 to 10"},
		{"waitMax", "26", "1 to 25"},
		{"streamShards", "0", "1 to 100000"},
		{"accountConcurrency", "many", "1 to"},
		{"otlpEndpoint", "collector:4318", "http[s]://host"},
		{"tracesPercent", "0", "1 to 100"},
		{"tracesPercent", 101, "1 to 100"},
		{"corsOrigins", "shop.example", "http[s]://host"},
		{"corsOrigins", "https://shop.example/", "http[s]://host"},
		{"corsOrigins", "https://shop.example, https://other.example", "http[s]://host"},
		{"corsOrigins", "*,https://shop.example", "* alone"},
		{"alarmTopic", nil, "an SNS topic's ARN, not a FIFO topic's; none where alarms shall only show"},
		{"alarmTopic", "", "ARN"},
		{"alarmTopic", "None", "ARN"},
		{"alarmTopic", "oncall", "ARN"},
		{"alarmTopic", "arn:aws:sns:eu-central-1:111122223333:oncall.fifo", "ARN"},
		{"webhookSecret", "whsec secret", "the name or the whole ARN"},
		{"webhookSecret", "arn:aws:secretsmanager:eu-central-1:111122223333:secret:webhook", "the name or the whole ARN"},
		{"webhookSecret", "arn:aws:ssm:eu-central-1:111122223333:parameter/webhook", "the name or the whole ARN"},
		{"providerUrl", "http://provider.example", "unless local=true"},
		{"providerSecret", "sk live", "the name or the whole ARN"},
		{"accessLogs", "true", "on, off"},
		{"trail", "on", "off, people, all"},
		{"waf", "on", "AWS WAF protects no HTTP API"},
		{"waf", "true", "off, on"},
		{"wafRate", 9, "10 to 2000000000"},
		{"domainName", "API.shop.example", "lower case"},
		{"domainName", "shop", "as api.shop.example"},
		{"certificate", "shop.example", "the ARN of a certificate"},
		{"certificate", certificate, "nothing without"},
		{"customerKeys", "true", "off, on"},
		{"warmThroughput", "many", "read units/write units"},
		{"provisioned", "many", "payments a second"},
		{"provisioned", "0-10", "payments a second"},
		{"provisioned", "10/20", "payments a second"},
		{"provisioned", "200-100", "the smaller number first"},
		{"provisioned", "1-2000000", "1000000 at the most"},
		{"provisionedTarget", "70", "nothing, unless provisioned has a range"},
		{"provisionedTarget", "95", "20 to 90"},
		{"warmThroughput", "12000/3999", "12000/4000 or more"},
		{"maxThroughput", "0/10", "read units/write units"},
		{"scopeSecret", "c2VjcmV0 ", "the name or the whole ARN"},
		{"fingerprintSecret", "2026:c2VjcmV0", "the name or the whole ARN"},
		{"localWebhookSecret", "short", "16 to 128"},
		{"localWebhookSecret", "whsec_0123456789,whsec_9876543210", "16 to 128"},
		{"localWebhookSecret", "whsec_0123456789", "unless local=true"},
		{"insights", "yes", "true, false"},
		{"terminationProtection", "off", "true, false"},
		{"backup", "daily", "off, on"},
		{"backupCopy", "payments", "the ARN of a vault"},
		{"backupCopy", copyVault, "nothing, unless backup=on"},
		{"deployment", "off", "canary, linear, now"},
		{"rollback", "yes", "false, true"},
		{"stage", "Prod", "lower-case"},
		{"owner", "payments;drop", "up to 128"},
		{"account", "12345", "twelve digits"},
		{"region", "Frankfurt", "eu-central-1"},
	} {
		context := map[string]any{
			"providerUrl": "https://provider.example", "account": "111122223333", "region": "eu-central-1", "alarmTopic": "none",
		}
		context[c.key] = c.value
		_, err := read(context, nil)
		if err == nil || !strings.Contains(err.Error(), "context "+c.key+"=") || !strings.Contains(err.Error(), c.allowed) {
			t.Errorf("%s=%v: %v; want the key and %q", c.key, c.value, err, c.allowed)
		}
	}
}

// A number of cdk.json is a float64, which fmt writes with an exponent from a million on.
func TestReadTakesNumbersOfAMillion(t *testing.T) {
	config, err := read(onAWS(map[string]any{
		"providerUrl": "https://provider.example", "quotaActiveKeys": 1285715.0, "outbox": "sqs", "wakeUpsMax": 1e6, "accountConcurrency": 1e7,
	}), nil)
	if err != nil || config.Quota.ActiveKeys != 1_285_715 || config.WakeUpsMax != 1_000_000 {
		t.Errorf("%+v, %v", config, err)
	}
}

func TestReadNamesEveryRefusal(t *testing.T) {
	_, err := read(map[string]any{"api": "soap", "auth": "none", "arch": "mips"}, nil)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`context api="soap" is refused; allowed: http, rest`, `auth="none"`, `arch="mips"`, "providerUrl", `alarmTopic=""`, "account", "region",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}

// In a Region of China services have other names in policies and endpoints: what would be deployed there and not work is refused.
func TestReadRefusesInChinaWhatCannotWorkThere(t *testing.T) {
	const subnets = `{"subnets": "subnet-0123456789abcdef0,subnet-0123456789abcdef1", "securityGroups": "sg-0123456789abcdef0"}`
	for _, c := range []struct {
		key, value string
		refused    bool
	}{
		{"customerKeys", "on", true}, {"customerKeys", "off", false},
		{"privateNetwork", "on", true}, {"privateNetwork", `{"addresses": "eipalloc-0123456789abcdef0,eipalloc-0123456789abcdef1"}`, true},
		{"privateNetwork", subnets, false}, {"privateNetwork", "off", false},
	} {
		for _, region := range []string{"cn-north-1", "eu-central-1"} {
			_, err := read(map[string]any{
				"providerUrl": "https://provider.example", "account": "111122223333", "region": region, "alarmTopic": "none", c.key: c.value,
			}, nil)
			if want := c.refused && region == "cn-north-1"; (err != nil) != want || want && !strings.Contains(err.Error(), "context "+c.key+"=") {
				t.Errorf("%s in %s: %s: %v", c.key, region, c.value, err)
			}
		}
	}
}

// A secret of webhooks stands in one place, and no error shows it.
func TestReadWebhookSecrets(t *testing.T) {
	const secret = "whsec_0123456789"
	local := map[string]any{"providerUrl": "http://127.0.0.1:9000", "local": true, "alarmTopic": "none", "localWebhookSecret": secret}
	if got, err := read(local, nil); err != nil || got.LocalWebhookSecret != secret || got.WebhookSecret != "" {
		t.Errorf("got %+v, %v", got, err)
	}
	for key, value := range map[string]any{"webhookSecret": "payments/webhook", "local": false, "localWebhookSecret": secret + "!"} {
		context := maps.Clone(local)
		context[key] = value
		_, err := read(context, nil)
		if err == nil || !strings.Contains(err.Error(), "localWebhookSecret") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s=%v: %v", key, value, err)
		}
	}
}

func TestNewNeedsTheBinaries(t *testing.T) {
	config, err := read(map[string]any{"providerUrl": "https://provider.example", "local": true, "alarmTopic": "none", "build": t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir())})
	if _, err := stack.New(app, config); err == nil || !strings.Contains(err.Error(), "function api is not built for arm64") {
		t.Errorf("got %v", err)
	}
}
