package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

func TestTablesHaveTheShapeOfSchema(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		production := strings.HasSuffix(variant, "gateway")
		shapes := map[string]schema.Table{
			"TablesIdempotency": schema.Idempotency(),
			"TablesOutbox":      schema.Outbox(),
			"Payments":          table.Payments(),
			"ApiKeys":           table.APIKeys(),
			"AuditTable":        schema.Audit(),
			"DriftProgress":     table.Drift(),
		}
		if chosen(variant, "encryption") {
			shapes["KeysTable"] = schema.Keys()
		}
		if limits(variant) != nil {
			shapes["Quota"] = schema.Quota()
		}
		template.counts(t, "AWS::DynamoDB::GlobalTable", len(shapes))
		for prefix, shape := range shapes {
			// Erased keys must not come back by a recovery.
			kept := production && prefix != "Quota" // counters are gone within hours
			template.has(t, "AWS::DynamoDB::GlobalTable", tableProperties(shape, kept, kept && prefix != "KeysTable"))
			table := template.only(t, "AWS::DynamoDB::GlobalTable", prefix)
			if policy := retained(kept); table.DeletionPolicy != policy || table.UpdateReplacePolicy != policy {
				t.Errorf("%s is %s, %s; want %s", prefix, table.DeletionPolicy, table.UpdateReplacePolicy, policy)
			}
		}
	})
}

// retained is the deletion policy of what holds data.
func retained(production bool) string {
	if production {
		return "Retain"
	}
	return "Delete"
}

// tableProperties is what a table of this shape must be, present and absent.
func tableProperties(shape schema.Table, protected, recoverable bool) map[string]any {
	want := map[string]any{
		"BillingMode": "PAY_PER_REQUEST",
		"KeySchema":   []any{map[string]any{"AttributeName": shape.Key, "KeyType": "HASH"}},
		"Replicas": []any{map[string]any{
			"DeletionProtectionEnabled":        protected,
			"PointInTimeRecoverySpecification": map[string]any{"PointInTimeRecoveryEnabled": recoverable},
		}},
		"StreamSpecification":     assertions.Match_Absent(),
		"TimeToLiveSpecification": assertions.Match_Absent(),
		"GlobalSecondaryIndexes":  assertions.Match_Absent(),
	}
	if shape.StreamNewImage {
		want["StreamSpecification"] = map[string]any{"StreamViewType": "NEW_IMAGE"}
	}
	if shape.TTL != "" {
		want["TimeToLiveSpecification"] = map[string]any{"AttributeName": shape.TTL, "Enabled": true}
	}
	if shape.Index.Name != "" {
		want["GlobalSecondaryIndexes"] = []any{map[string]any{
			"IndexName": shape.Index.Name,
			"KeySchema": []any{
				map[string]any{"AttributeName": shape.Index.Partition, "KeyType": "HASH"},
				map[string]any{"AttributeName": shape.Index.Sort, "KeyType": "RANGE"},
			},
			"Projection": projection(shape.Index),
		}}
		want["AttributeDefinitions"] = []any{
			map[string]any{"AttributeName": shape.Key, "AttributeType": "S"},
			map[string]any{"AttributeName": shape.Index.Partition, "AttributeType": "S"},
			map[string]any{"AttributeName": shape.Index.Sort, "AttributeType": "N"},
		}
	}
	return want
}

func projection(index schema.Index) map[string]any {
	if len(index.Projected) == 0 {
		return map[string]any{"ProjectionType": "KEYS_ONLY", "NonKeyAttributes": assertions.Match_Absent()}
	}
	return map[string]any{"ProjectionType": "INCLUDE", "NonKeyAttributes": index.Projected}
}

func TestKeyOfTheKeys(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		if !chosen(variant, "encryption") {
			template.counts(t, "AWS::KMS::Key", 0)
			return
		}
		template.counts(t, "AWS::KMS::Key", map[bool]int{false: 1, true: 4}[chosen(variant, "customerKeys")])
		template.has(t, "AWS::KMS::Key", map[string]any{"EnableKeyRotation": true, "KeySpec": assertions.Match_Absent()})
		key, policy := template.only(t, "AWS::KMS::Key", "KeysKey"), retained(strings.HasSuffix(variant, "gateway"))
		if key.DeletionPolicy != policy || key.UpdateReplacePolicy != policy {
			t.Errorf("the key is %s, %s; want %s", key.DeletionPolicy, key.UpdateReplacePolicy, policy)
		}
	})
}

// functionSettings is what a function must be.
type functionSettings struct {
	timeout, memory float64
	environment     map[string]any
}

// functions is what each function must be in every variant.
func functions() map[string]functionSettings {
	deliver := map[string]any{
		"IDEMPOTENCY_TABLE": "TablesIdempotency", "OUTBOX_TABLE": "TablesOutbox", "PAYMENTS_TABLE": "Payments",
		"PROVIDER_URL": "https://provider.example", "RETENTION": "24h",
		"WAKE_UP_QUEUE_URL": "QueuesWakeUps", "DEAD_LETTER_QUEUE_URL": "QueuesDeadLetter", "PROVIDER_TIMEOUT": "5s",
		"CLAIM_LEASE": "10s", "BACKOFF_MIN": "1s", "BACKOFF_MAX": "30s", "ATTEMPTS_MAX": "10", "LONGEST_REQUEST": "1m", "FREEZE_ALLOWANCE": "1m",
		"OUTBOX_SHARDS": "8", "LEDGER_SHARDS": "4",
	}
	api := map[string]any{"BODY_BYTES_MAX": "262144", "RESPONSE_BYTES_MAX": "3145728"}
	maps.Copy(api, deliver)
	sweep := maps.Clone(deliver)
	sweep["AUDIT_TABLE"] = "AuditTable"
	return map[string]functionSettings{
		"Api":        {28, 512, api},
		"Authorizer": {5, 256, map[string]any{"API_KEYS_TABLE": "ApiKeys"}},
		"Worker":     {60, 512, deliver},
		"Sweep":      {55, 256, sweep},
		"Reconcile":  {55, 256, maps.Clone(deliver)},
		"Drift": {600, 512, map[string]any{
			"IDEMPOTENCY_TABLE": "TablesIdempotency", "OUTBOX_TABLE": "TablesOutbox", "PAYMENTS_TABLE": "Payments",
			"PROVIDER_URL": "https://provider.example", "PROVIDER_TIMEOUT": "5s", "RETENTION": "24h",
			"DRIFT_WINDOW": "2h", "DRIFT_GRACE": "15m", "LEDGER_SHARDS": "4",
			"DRIFT_TABLE": "DriftProgress", "DRIFT_QUEUE_URL": "DriftPiecesQueue", "DRIFT_PARTS": "4",
		}},
		"Webhook": {15, 256, maps.Clone(deliver)},
		"Relay":   {30, 256, map[string]any{"WAKE_UP_QUEUE_URL": "QueuesWakeUps"}},
	}
}

func TestFunctions(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		auth := variant[strings.LastIndex(variant, "-")+1:]
		wanted := functions()
		wanted["Api"].environment["AUTH"] = auth
		if chosen(variant, "corsOrigins") {
			wanted["Api"].environment["CORS_ORIGINS"] = origins
		}
		maps.Copy(wanted["Api"].environment, limits(variant))
		wanted["Api"].environment["WAIT_MAX"] = map[string]string{"http-function": "20s", "rest-function": "20s", "rest-gateway": "7s"}[variant]
		if wanted["Api"].environment["WAIT_MAX"] == "" {
			wanted["Api"].environment["WAIT_MAX"] = "5s"
		}
		if chosen(variant, "encryption") {
			for _, name := range []string{"Api", "Worker", "Sweep", "Reconcile", "Webhook"} {
				wanted[name].environment["KEYS_TABLE"], wanted[name].environment["KMS_KEY_ID"] = "KeysTable", "KeysKey"
				if variants[variant]["encryption"] == "open" {
					wanted[name].environment["SEAL_OPEN_ONLY"] = "true"
				}
				if auth == "function" {
					wanted[name].environment["KEY_AGE_MAX"], wanted[name].environment["KEY_TIMEOUT"] = "1m", "4s"
				}
			}
		}
		arch, days := "arm64", 90.0
		if auth == "function" {
			delete(wanted, "Authorizer")
			wanted["Api"].environment["API_KEYS_TABLE"] = "ApiKeys"
			arch, days = "x86_64", 1
		}
		if chosen(variant, "testKeys") {
			authenticates := map[string]string{"gateway": "Authorizer", "function": "Api"}[auth]
			wanted[authenticates].environment["TEST_KEYS"] = "refuse"
		}
		if chosen(variant, "otlpEndpoint") {
			for _, name := range []string{"Api", "Worker", "Sweep", "Reconcile", "Webhook"} {
				wanted[name].environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = variants[variant]["otlpEndpoint"]
				wanted[name].environment["OTEL_TRACES_SAMPLER"], wanted[name].environment["OTEL_TRACES_SAMPLER_ARG"] = "traceidratio", "0.05"
			}
		}
		if chosen(variant, "outboxShards") {
			wanted["Api"].environment["FINGERPRINT_SECRET_ID"] = variants[variant]["fingerprintSecret"]
		}
		if chosen(variant, "scopeSecret") {
			for _, name := range []string{"Api", "Webhook"} {
				wanted[name].environment["SCOPE_SECRET_ID"] = variants[variant]["scopeSecret"]
			}
		}
		if chosen(variant, "providerSecret") { // the webhook function calls nobody
			for _, name := range []string{"Api", "Worker", "Sweep", "Reconcile", "Drift"} {
				wanted[name].environment["PROVIDER_CREDENTIAL_ID"] = variants[variant]["providerSecret"]
			}
		}
		if chosen(variant, "outboxShards") {
			for _, name := range []string{"Api", "Worker", "Sweep", "Reconcile", "Webhook"} {
				wanted[name].environment["OUTBOX_SHARDS"] = variants[variant]["outboxShards"]
			}
		}
		if chosen(variant, "probesMax") { // 16 runs, each with its share
			wanted["Reconcile"].environment["PROBES_MAX"] = "3"
		}
		if relayed(variant) {
			for _, name := range []string{"Api", "Worker", "Sweep", "Reconcile", "Webhook"} {
				wanted[name].environment["WAKE_UPS_MAX"] = map[string]any{"rest-gateway": "50000", "rest-function": "600000"}[variant]
			}
		}
		// The secret is not in a template that goes to AWS, only where it is; without one nothing is deployed that needs it.
		for key, name := range map[string]string{"webhookSecret": "WEBHOOK_SECRET_ID", "localWebhookSecret": "WEBHOOK_SECRET"} {
			if chosen(variant, key) {
				wanted["Webhook"].environment[name] = variants[variant][key]
			}
		}
		if !webhooks(variant) {
			delete(wanted, "Webhook")
		}
		if !relayed(variant) {
			delete(wanted, "Relay")
		}
		template.counts(t, "AWS::Lambda::Function", len(wanted))
		for name, want := range wanted {
			if variant == "rest-function" {
				want.environment["AWS_ENDPOINT_URL_DYNAMODB"] = "http://127.0.0.1:8100"
				want.environment["BREAKER_FAILURES_MAX"] = "1000"
				want.environment["INLINE_PAUSE"] = "1ms"
			}
			if _, delivers := want.environment["LONGEST_REQUEST"]; delivers && auth == "function" {
				want.environment["LONGEST_REQUEST"], want.environment["FREEZE_ALLOWANCE"] = "15s", "100ms"
			}
			if name == "Drift" && auth == "function" {
				want.environment["DRIFT_GRACE"], want.environment["DRIFT_PARTS"] = "5s", "1"
			}
			want.environment["FUNCTION_TIMEOUT"] = (time.Duration(want.timeout) * time.Second).String()
			want.environment["METRICS_NAMESPACE"], want.environment["METRICS_SERVICE"] = "idem", stackName(variant)
			got := template.only(t, "AWS::Lambda::Function", name+"Function").Properties
			if fmt.Sprint(got["Architectures"]) != "["+arch+"]" || got["Runtime"] != "provided.al2023" ||
				got["Handler"] != "bootstrap" || got["Timeout"] != want.timeout || got["MemorySize"] != want.memory {
				t.Errorf("%s: %v %v %v, %v s, %v MiB", name, got["Architectures"], got["Runtime"], got["Handler"],
					got["Timeout"], got["MemorySize"])
			}
			if variables := environment(got); !maps.Equal(variables, want.environment) {
				t.Errorf("%s: environment\n%v\nwant\n%v", name, variables, want.environment)
			}
			if log := plain(got["LoggingConfig"].(map[string]any)["LogGroup"]); log != name+"Logs" {
				t.Errorf("%s logs to %s", name, log)
			}
			if kept := template.only(t, "AWS::Logs::LogGroup", name+"Logs").Properties["RetentionInDays"]; kept != days {
				t.Errorf("%s: logs are kept for %v days, want %v", name, kept, days)
			}
		}
	})
}

// environment is the variables of a function, as plain text.
func environment(function map[string]any) map[string]any {
	variables := map[string]any{}
	for name, value := range function["Environment"].(map[string]any)["Variables"].(map[string]any) {
		variables[name] = plain(value)
	}
	return variables
}

// A time-out at one layer must fall inside the one around it, or work goes on that nobody waits for.
func TestTimesFit(t *testing.T) {
	template := synthesize(t, "http-gateway")
	worker := template.only(t, "AWS::Lambda::Function", "WorkerFunction").Properties
	variables := environment(worker)
	span := func(name string) time.Duration {
		t.Helper()
		value, err := time.ParseDuration(variables[name].(string))
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	timeout := time.Duration(worker["Timeout"].(float64)) * time.Second
	stream := template.only(t, "AWS::Lambda::EventSourceMapping", "DeliveryStream").Properties
	if batch := time.Duration(stream["BatchSize"].(float64)) * span("PROVIDER_TIMEOUT"); batch >= timeout {
		t.Errorf("a batch of slow calls takes %v, the worker has %v", batch, timeout)
	}
	if span("CLAIM_LEASE") <= span("PROVIDER_TIMEOUT") {
		t.Error("a claim ends before the call that it covers")
	}
	wakeUps := template.only(t, "AWS::SQS::Queue", "QueuesWakeUps").Properties
	if visible := time.Duration(wakeUps["VisibilityTimeout"].(float64)) * time.Second; visible < 6*timeout {
		t.Errorf("visibility %v is less than six time-outs of %v", visible, timeout)
	}
}

// Each minute both are called for every shard, once, in few calls and few rules; in a local stack once for all.
func TestSweepAndReconcileRunEveryMinuteForEveryShard(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		runs := map[string][]string{}
		for id, rule := range template.Resources {
			if rule.Type != "AWS::Events::Rule" || !strings.HasPrefix(id, "DeliverySchedule") {
				continue
			}
			targets := rule.Properties["Targets"].([]any)
			if rule.Properties["ScheduleExpression"] != "rate(1 minute)" || len(targets) > 5 { // EventBridge's most
				t.Errorf("%s: %v, %d targets", id, rule.Properties["ScheduleExpression"], len(targets))
			}
			for _, target := range targets {
				target := target.(map[string]any)
				input, _ := target["Input"].(string)
				function := plain(target["Arn"])
				runs[function] = append(runs[function], input)
			}
		}
		shards, want := 8, 8
		if chosen(variant, "outboxShards") {
			shards, want = 20, 16 // the most calls
		}
		for _, function := range []string{"SweepLive", "ReconcileLive"} {
			if chosen(variant, "local") {
				if !slices.Equal(runs[function], []string{""}) {
					t.Errorf("%s is called with %q", function, runs[function])
				}
				continue
			}
			var all []int
			for _, input := range runs[function] {
				var event struct{ Shards []int }
				if err := json.Unmarshal([]byte(input), &event); err != nil || len(event.Shards) == 0 {
					t.Errorf("%s is called with %q", function, input)
				}
				all = append(all, event.Shards...)
			}
			slices.Sort(all)
			if len(runs[function]) != want || len(all) != shards || all[0] != 0 || all[shards-1] != shards-1 || len(slices.Compact(all)) != shards {
				t.Errorf("%s is called with %q", function, runs[function])
			}
		}
		// Of the alias, which the rules call: Lambda keeps these settings for each qualifier.
		once := template.of("AWS::Lambda::EventInvokeConfig")
		for name, r := range once {
			if r.Properties["MaximumRetryAttempts"] != 0.0 || r.Properties["MaximumEventAgeInSeconds"] != 60.0 || !strings.HasSuffix(plain(r.Properties["Qualifier"]), "Live") {
				t.Errorf("%s: %v", name, r.Properties)
			}
		}
		if len(once) != 3 {
			t.Errorf("%d functions are not called again, want sweep, reconciler and drift job", len(once))
		}
	})
}

// The function plans every few minutes, also in a stopped stack, and takes the pieces from a queue that holds each for six time-outs:
// as many at once as an hour has.
func TestTheDriftJobPlansAndTakesPieces(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		rule := template.only(t, "AWS::Events::Rule", "DriftSchedulePlan").Properties
		target := rule["Targets"].([]any)[0].(map[string]any)
		if rule["ScheduleExpression"] != "rate(5 minutes)" || target["Input"] != `{"plan":true}` || plain(target["Arn"]) != "DriftLive" {
			t.Errorf("%v calls %v", rule["ScheduleExpression"], target)
		}
		mapping := template.only(t, "AWS::Lambda::EventSourceMapping", "DriftSchedulePieces").Properties
		most := map[bool]float64{true: 4, false: 2}[strings.HasSuffix(variant, "gateway")]
		if plain(mapping["EventSourceArn"]) != "DriftPiecesQueue.Arn" || plain(mapping["FunctionName"]) != "DriftLive:live" || mapping["BatchSize"] != 1.0 ||
			fmt.Sprint(mapping["FunctionResponseTypes"]) != "[ReportBatchItemFailures]" || mapping["ScalingConfig"].(map[string]any)["MaximumConcurrency"] != most {
			t.Errorf("mapping %v", mapping)
		}
		queue := template.only(t, "AWS::SQS::Queue", "DriftPiecesQueue").Properties
		redrive := queue["RedrivePolicy"].(map[string]any)
		if plain(redrive["deadLetterTargetArn"]) != "DriftPiecesDeadLetter.Arn" || redrive["maxReceiveCount"] != 3.0 ||
			queue["VisibilityTimeout"] != 3600.0 || queue["MessageRetentionPeriod"] != 14400.0 {
			t.Errorf("queue %v", queue)
		}
	})
}

// SQS counts a message's life from when it was sent, and makes a letter at the receive after the last one that is admitted: one that is
// gone by then is never a letter, and its alarm never rings. Wake-ups expire on purpose (ADR 0064).
func TestMessagesLiveUntilTheyAreDeadLetters(t *testing.T) {
	each(t, func(t *testing.T, _ string, template *synthesized) {
		redriven := 0
		for id, queue := range template.of("AWS::SQS::Queue") {
			redrive, ok := queue.Properties["RedrivePolicy"].(map[string]any)
			if !ok || strings.HasPrefix(id, "QueuesWakeUps") {
				continue
			}
			redriven++
			life, until := queue.Properties["MessageRetentionPeriod"].(float64), redrive["maxReceiveCount"].(float64)*queue.Properties["VisibilityTimeout"].(float64)
			if life <= until {
				t.Errorf("%s: a message lives for %v s, and would be a letter after %v s", id, life, until)
			}
		}
		if redriven != 1 {
			t.Errorf("%d queues, want the drift job's", redriven)
		}
	})
}

func TestOutputs(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		want := map[string]string{
			"IdempotencyTable": "TablesIdempotency", "OutboxTable": "TablesOutbox", "PaymentsTable": "Payments", "AuditTable": "AuditTable",
			"ApiKeysTable":   "ApiKeys",
			"WakeUpQueueUrl": "QueuesWakeUps", "DeadLetterQueueUrl": "QueuesDeadLetter",
			"FunctionApi": "ApiFunction", "FunctionWorker": "WorkerFunction", "FunctionSweep": "SweepFunction", "FunctionReconcile": "ReconcileFunction",
			"FunctionDrift": "DriftFunction",
			"ApiUrl":        "HttpApi.ApiEndpoint",
			"ClaimLease":    "10s", "LongestRequest": "1m", "FreezeAllowance": "1m", "DriftGrace": "15m", "OutboxShards": "8", "LedgerShards": "4",
		}
		if chosen(variant, "outboxShards") {
			want["OutboxShards"] = "20"
		}
		if strings.HasSuffix(variant, "function") { // the local ones
			want["LongestRequest"], want["FreezeAllowance"], want["DriftGrace"] = "15s", "100ms", "5s"
		}
		if strings.HasSuffix(variant, "gateway") {
			want["FunctionAuthorizer"] = "AuthorizerFunction"
		}
		if strings.HasPrefix(variant, "rest") {
			want["ApiUrl"] = "https://RestApi.execute-api.AWS::Region.AWS::URLSuffix/prod"
		}
		if chosen(variant, "encryption") {
			want["KeysTable"], want["KmsKeyId"] = "KeysTable", "KeysKey"
		}
		if relayed(variant) {
			want["FunctionRelay"] = "RelayFunction"
		}
		if webhooks(variant) {
			want["FunctionWebhook"] = "WebhookFunction"
		}
		if chosen(variant, "backup") {
			want["BackupVaultName"] = "BackupVault.BackupVaultName"
		}
		if chosen(variant, "privateNetwork") {
			want["EgressAddresses"] = "NetworkAddressFirstNetworkAddressSecond"
		}
		if chosen(variant, "trail") {
			want["TrailBucketName"] = "TrailBucket"
		}
		for policy := range operatorMay {
			want[policy+"PolicyArn"] = policy
		}
		got := map[string]string{}
		for name, output := range template.Outputs {
			got[name] = plain(output.Value)
		}
		if !maps.Equal(got, want) {
			t.Errorf("outputs\n%v\nwant\n%v", got, want)
		}
	})
}

func TestLogicalNamesOfWhatHoldsDataStay(t *testing.T) {
	// A new name is a new, empty table beside a retained one.
	stable := []string{"QueuesDeadLetterA4947A69", "TablesIdempotency498FF680", "TablesOutboxD51CD487", "Payments130453D3", "ApiKeys3BB3983D"}
	each(t, func(t *testing.T, variant string, template *synthesized) {
		stable := stable
		if chosen(variant, "encryption") {
			stable = append(slices.Clone(stable), "KeysTableF42AC009", "KeysKeyFE944A9C")
		}
		names := slices.Collect(maps.Keys(template.Resources))
		for _, name := range stable {
			if !slices.Contains(names, name) {
				t.Errorf("%s is gone", name)
			}
		}
	})
}
