package stack_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// permissions is everything that each function may do: actions on one resource, in the words of its template.
var permissions = map[string][]string{
	"Api": {
		"dynamodb:BatchGetItem dynamodb:ConditionCheckItem dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on TablesIdempotency.Arn",
		"dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on TablesOutbox.Arn",
		"sqs:SendMessage on QueuesWakeUps.Arn",
		"sqs:SendMessage on QueuesDeadLetter.Arn",
		"dynamodb:ConditionCheckItem dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on Payments.Arn",
		"logs:CreateLogStream logs:PutLogEvents on ApiLogs.Arn",
	},
	"Authorizer": {
		authenticate[0], authenticate[1],
		"logs:CreateLogStream logs:PutLogEvents on AuthorizerLogs.Arn",
	},
	"Webhook": {
		"dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on TablesIdempotency.Arn",
		"dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on TablesOutbox.Arn",
		"dynamodb:UpdateItem on Payments.Arn",
		"sqs:SendMessage on QueuesDeadLetter.Arn",
		"logs:CreateLogStream logs:PutLogEvents on WebhookLogs.Arn",
	},
	"Worker": append([]string{
		"sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage on QueuesWakeUps.Arn",
		"logs:CreateLogStream logs:PutLogEvents on WorkerLogs.Arn",
	}, deliver...),
	"Relay": {
		"dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator on TablesOutbox.StreamArn",
		"dynamodb:ListStreams on TablesOutbox.Arn/stream/*",
		"sqs:SendMessage on QueuesWakeUps.Arn",
		"sqs:SendMessage on QueuesDeadLetter.Arn",
		"logs:CreateLogStream logs:PutLogEvents on RelayLogs.Arn",
	},
	"Sweep": append([]string{
		"dynamodb:Query on TablesIdempotency.Arn/index/sweep",
		"dynamodb:Query on TablesOutbox.Arn/index/queue",
		"logs:CreateLogStream logs:PutLogEvents on SweepLogs.Arn",
	}, deliver...),
	"Reconcile": append([]string{
		"dynamodb:Query on TablesIdempotency.Arn/index/sweep",
		"dynamodb:Query on TablesOutbox.Arn/index/queue",
		"logs:CreateLogStream logs:PutLogEvents on ReconcileLogs.Arn",
	}, deliver...),
	"Drift": { // it reads, and nothing else
		"dynamodb:BatchGetItem dynamodb:GetItem on TablesIdempotency.Arn",
		"dynamodb:BatchGetItem dynamodb:GetItem on TablesOutbox.Arn",
		"dynamodb:BatchGetItem dynamodb:GetItem on Payments.Arn",
		"dynamodb:Query on Payments.Arn/index/ledger",
		"logs:CreateLogStream logs:PutLogEvents on DriftLogs.Arn",
	},
}

// webhookMay is what the webhook function may by its secret.
var webhookMay = map[string]string{
	"payments/webhook": "secretsmanager:GetSecretValue on arn:AWS::Partition:secretsmanager:eu-central-1:111122223333:secret:payments/webhook-??????",
	secretARN:          "secretsmanager:GetSecretValue on " + secretARN,
}

// fingerprintsMay is what the api function may where fingerprints are keyed.
const fingerprintsMay = "secretsmanager:GetSecretValue on arn:AWS::Partition:secretsmanager:eu-central-1:111122223333:secret:payments/fingerprints-??????"

// scopesMay is what the functions may that execute for a key, where the names of records are keyed.
const scopesMay = "secretsmanager:GetSecretValue on arn:AWS::Partition:secretsmanager:eu-central-1:111122223333:secret:payments/scopes-??????"

// streamed is what the worker may besides where it is called with the stream's records.
var streamed = []string{
	"dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator on TablesOutbox.StreamArn",
	"dynamodb:ListStreams on TablesOutbox.Arn/stream/*",
}

// authenticate is what whoever looks API keys up may: of a key, only the time of its last use is written.
var authenticate = []string{
	"dynamodb:GetItem on ApiKeys.Arn",
	"dynamodb:UpdateItem on ApiKeys.Arn if map[ForAllValues:StringEquals:map[dynamodb:Attributes:[id lu]]]",
}

var deliver = []string{
	"dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on TablesIdempotency.Arn",
	"dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on TablesOutbox.Arn",
	"dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on Payments.Arn",
	"sqs:SendMessage on QueuesWakeUps.Arn",
	"sqs:SendMessage on QueuesDeadLetter.Arn",
}

// seal is what each of them may besides, but for the authorizer, where tenants' data is encrypted.
var seal = []string{
	"dynamodb:GetItem dynamodb:PutItem on KeysTable.Arn",
	"kms:Decrypt kms:Encrypt on KeysKey.Arn",
}

func TestEachFunctionMayDoExactlyThis(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		for name, want := range permissions {
			if name == "Authorizer" && strings.HasSuffix(variant, "-function") {
				continue
			}
			if name == "Webhook" && !webhooks(variant) {
				continue
			}
			if secret, ok := variants[variant]["webhookSecret"].(string); ok && name == "Webhook" {
				want = slices.Concat(want, []string{webhookMay[secret]})
			}
			if name == "Relay" && !relayed(variant) {
				continue
			}
			if name == "Sweep" && relayed(variant) {
				want = slices.Concat(want, []string{"sqs:GetQueueAttributes on QueuesWakeUps.Arn"})
			}
			if name == "Worker" && !relayed(variant) {
				want = slices.Concat(want, streamed)
			}
			if name != "Authorizer" && name != "Relay" && name != "Drift" && chosen(variant, "encryption") {
				want = slices.Concat(want, seal)
			}
			if name == "Api" && strings.HasSuffix(variant, "-function") {
				want = slices.Concat(want, authenticate)
			}
			if name == "Api" && limits(variant) != nil {
				want = slices.Concat(want, []string{"dynamodb:BatchGetItem dynamodb:UpdateItem on Quota.Arn"})
			}
			if name == "Api" && chosen(variant, "fingerprintSecret") {
				want = slices.Concat(want, []string{fingerprintsMay})
			}
			if (name == "Api" || name == "Webhook") && chosen(variant, "scopeSecret") {
				want = slices.Concat(want, []string{scopesMay})
			}
			role := template.only(t, "AWS::IAM::Role", name+"Role").Properties
			var got []string
			for _, policy := range role["Policies"].([]any) {
				document := policy.(map[string]any)["PolicyDocument"].(map[string]any)
				for _, statement := range document["Statement"].([]any) {
					got = append(got, sentences(statement.(map[string]any))...)
				}
			}
			slices.Sort(got)
			if want := slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
				t.Errorf("%s may\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			function := template.only(t, "AWS::Lambda::Function", name+"Function").Properties
			if plain(function["Role"]) != name+"Role.Arn" {
				t.Errorf("%s has the role %s", name, plain(function["Role"]))
			}
		}
	})
}

// sentences writes an Allow statement as one line for each resource.
func sentences(statement map[string]any) []string {
	var actions, lines []string
	for _, action := range list(statement["Action"]) {
		actions = append(actions, action.(string))
	}
	slices.Sort(actions)
	for _, on := range list(statement["Resource"]) {
		line := strings.Join(actions, " ") + " on " + plain(on)
		if condition := statement["Condition"]; condition != nil {
			line += fmt.Sprint(" if ", condition)
		}
		lines = append(lines, line)
	}
	return lines
}

// Every statement anywhere in a template: on roles, queues, and whatever a later construct brings along.
func TestNoStatementIsWiderThanItMustBe(t *testing.T) {
	each(t, func(t *testing.T, _ string, template *synthesized) {
		template.counts(t, "AWS::IAM::Policy", 0)
		template.counts(t, "AWS::IAM::ManagedPolicy", 0)
		seen := 0
		for name, r := range template.Resources {
			if strings.HasPrefix(name, "BackupPlanTablesRole") {
				continue // AWS Backup's own: TestBackup
			}
			if managed, ok := r.Properties["ManagedPolicyArns"]; ok {
				t.Errorf("%s has managed policies: %v", name, managed)
			}
			if r.Type == "AWS::Lambda::Permission" {
				checkInvoke(t, name, r.Properties)
			}
			walk(r.Properties, func(statement map[string]any) {
				seen++
				checkStatement(t, name, statement)
			})
		}
		if seen < 15 {
			t.Errorf("only %d statements seen: the walk is broken", seen)
		}
	})
}

// walk visits everything that looks like an IAM statement.
func walk(value any, visit func(statement map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v["Effect"]; ok {
			visit(v)
		}
		for child := range maps.Values(v) {
			walk(child, visit)
		}
	case []any:
		for _, child := range v {
			walk(child, visit)
		}
	}
}

func checkStatement(t *testing.T, name string, statement map[string]any) {
	t.Helper()
	if isKeyPolicy(name, statement) {
		return
	}
	for _, negative := range []string{"NotAction", "NotResource", "NotPrincipal"} {
		if statement[negative] != nil {
			t.Errorf("%s: %s in %v", name, negative, statement)
		}
	}
	if statement["Effect"] == "Deny" {
		return // can only narrow
	}
	for _, action := range list(statement["Action"]) {
		if strings.Contains(action.(string), "*") {
			t.Errorf("%s: action %s", name, action)
		}
	}
	if principal := statement["Principal"]; principal != nil {
		if fmt.Sprint(principal) != "map[Service:lambda.amazonaws.com]" || statement["Action"] != "sts:AssumeRole" {
			t.Errorf("%s: %v may %v", name, principal, statement["Action"])
		}
		return // a trust policy has no resource
	}
	for _, on := range list(statement["Resource"]) {
		text := plain(on)
		// ListStreams names no one stream; one table's streams are the narrowest there is.
		allowed := strings.HasSuffix(text, ".Arn/stream/*") && statement["Action"] == "dynamodb:ListStreams"
		if strings.Contains(text, "*") && !allowed {
			t.Errorf("%s: %v on %s", name, statement["Action"], text)
		}
	}
}

// isKeyPolicy says that this is the statement by which a KMS key leaves it to IAM who may do what with it; "*" is the key
// itself there. AWS adds it to a key without a policy, and a key without it can't be managed any more.
func isKeyPolicy(name string, statement map[string]any) bool {
	account := regexp.MustCompile(`^map\[AWS:arn:aws:iam::[0-9]{12}:root\]$`)
	return strings.HasPrefix(name, "KeysKey") && statement["Action"] == "kms:*" && statement["Resource"] == "*" &&
		account.MatchString(fmt.Sprint(statement["Principal"]))
}

// checkInvoke demands that a service may call a function on behalf of one source only.
func checkInvoke(t *testing.T, name string, permission map[string]any) {
	t.Helper()
	services := []any{"apigateway.amazonaws.com", "events.amazonaws.com"}
	if permission["Action"] != "lambda:InvokeFunction" || !slices.Contains(services, permission["Principal"]) ||
		permission["SourceArn"] == nil {
		t.Errorf("%s: %v", name, permission)
	}
}

func TestQueuesRefusePlainHTTP(t *testing.T) {
	each(t, func(t *testing.T, _ string, template *synthesized) {
		for _, queue := range []string{"QueuesWakeUps", "QueuesDeadLetter"} {
			policy := template.only(t, "AWS::SQS::QueuePolicy", queue+"Policy").Properties
			statement := policy["PolicyDocument"].(map[string]any)["Statement"].([]any)[0].(map[string]any)
			if statement["Effect"] != "Deny" ||
				fmt.Sprint(statement["Condition"]) != "map[Bool:map[aws:SecureTransport:false]]" {
				t.Errorf("%s: %v", queue, statement)
			}
		}
	})
}
