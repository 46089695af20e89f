package stack_test

import (
	"fmt"
	"maps"
	"os"
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
		"dynamodb:BatchGetItem dynamodb:ConditionCheckItem dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on Payments.Arn",
		"logs:CreateLogStream logs:PutLogEvents on ApiLogs.Arn",
	},
	"Authorizer": {
		authenticate[0], authenticate[1],
		"logs:CreateLogStream logs:PutLogEvents on AuthorizerLogs.Arn",
	},
	"Webhook": {
		"dynamodb:ConditionCheckItem dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on TablesIdempotency.Arn",
		"dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on TablesOutbox.Arn",
		"dynamodb:UpdateItem on Payments.Arn",
		"sqs:SendMessage on QueuesWakeUps.Arn", // for evidence that can't be settled at once
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
		"dynamodb:GetItem on AuditTable.Arn", // what people have changed
		"dynamodb:Query on AuditTable.Arn/index/days",
		"logs:CreateLogStream logs:PutLogEvents on SweepLogs.Arn",
	}, deliver...),
	"Reconcile": append([]string{
		"dynamodb:Query on TablesIdempotency.Arn/index/sweep",
		"dynamodb:Query on TablesOutbox.Arn/index/queue",
		"logs:CreateLogStream logs:PutLogEvents on ReconcileLogs.Arn",
	}, deliver...),
	"Drift": { // it reads, and writes nothing but its progress
		"dynamodb:BatchGetItem dynamodb:GetItem dynamodb:PutItem on DriftProgress.Arn",
		"sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage sqs:SendMessage on DriftPiecesQueue.Arn",
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

// providerMay is what the functions may that call the provider, where it wants a credential.
const providerMay = "secretsmanager:GetSecretValue on arn:AWS::Partition:secretsmanager:eu-central-1:111122223333:secret:payments/provider-??????"

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
	"dynamodb:ConditionCheckItem dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on TablesIdempotency.Arn",
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

// operatorMay is what the policies of people allow, in a stack on AWS.
var operatorMay = map[string][]string{
	"OperatorRead": { // it reads, and nothing else
		"dynamodb:Query on TablesIdempotency.Arn/index/sweep",
		"dynamodb:Query on TablesOutbox.Arn/index/queue",
		"dynamodb:BatchGetItem dynamodb:GetItem on TablesIdempotency.Arn",
		"dynamodb:BatchGetItem dynamodb:GetItem on TablesOutbox.Arn",
		"dynamodb:BatchGetItem dynamodb:GetItem on AuditTable.Arn",
		"dynamodb:Query on AuditTable.Arn/index/days",
		"dynamodb:BatchGetItem dynamodb:GetItem dynamodb:Scan on Payments.Arn",
		"dynamodb:Query on Payments.Arn/index/ledger",
		"dynamodb:Scan on ApiKeys.Arn",
		"dynamodb:Scan on TablesIdempotency.Arn",
	},
	"OperatorChange": append([]string{
		"dynamodb:PutItem dynamodb:UpdateItem on AuditTable.Arn",
		"sqs:ChangeMessageVisibility sqs:DeleteMessage sqs:ReceiveMessage on QueuesDeadLetter.Arn",
		"sqs:GetQueueAttributes on QueuesWakeUps.Arn",
	}, deliver...),
	"OperatorRecovery": slices.Concat( // the tables that are there are not changed
		onMoney("dynamodb:DescribeTable dynamodb:DescribeTimeToLive dynamodb:RestoreTableToPointInTime dynamodb:Scan on ", ""),
		onMoney("dynamodb:RestoreTableFromBackup on ", "/backup/*"),
		[]string{"dynamodb:ListBackups on *"},
		onMoney("dynamodb:RestoreTableFromBackup dynamodb:RestoreTableToPointInTime dynamodb:DescribeTable dynamodb:DescribeTimeToLive "+
			"dynamodb:UpdateTable dynamodb:UpdateTimeToLive dynamodb:UpdateContinuousBackups "+
			"dynamodb:GetItem dynamodb:BatchGetItem dynamodb:Query dynamodb:Scan dynamodb:PutItem dynamodb:UpdateItem dynamodb:DeleteItem dynamodb:BatchWriteItem on ", "-*"),
	),
	"OperatorKeys": {
		"dynamodb:GetItem dynamodb:PutItem dynamodb:Scan dynamodb:UpdateItem on ApiKeys.Arn",
		"dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on AuditTable.Arn",
	},
}

// onMoney are sentences about the three tables that are restored together.
func onMoney(may, suffix string) (sentences []string) {
	for _, table := range []string{"TablesIdempotency", "TablesOutbox", "Payments"} {
		sentences = append(sentences, may+table+".Arn"+suffix)
	}
	return sentences
}

// besides is what roles and policies may besides where a stack has something, and who of them. Roles that a stack does not have are left
// out.
var besides = []struct {
	when func(contexts) bool
	may  []string
	who  []string
}{
	{always, []string{"dynamodb:Query on Payments.Arn/index/ledger"}, []string{"Api", "Sweep"}}, // transfers that wait for a collecting account
	{always, []string{"dynamodb:BatchGetItem on Payments.Arn"}, []string{"Sweep"}},
	{func(c contexts) bool { return c["auth"] == "function" }, authenticate, []string{"Api"}},
	{contexts.relayed, []string{"sqs:GetQueueAttributes on QueuesWakeUps.Arn"}, []string{"Sweep"}},
	{func(c contexts) bool { return !c.relayed() }, streamed, []string{"Worker"}},
	{has("encryption"), seal, []string{"Api", "Webhook", "Worker", "Sweep", "Reconcile", "OperatorChange"}},
	{has("encryption"), []string{"dynamodb:GetItem dynamodb:PutItem dynamodb:Scan on KeysTable.Arn", "kms:Decrypt on KeysKey.Arn"}, []string{"OperatorRecovery"}},
	{has("privateNetwork"), []string{networkMay}, []string{"Api", "Worker", "Sweep", "Reconcile", "Drift"}},
	{contexts.limited, []string{"dynamodb:BatchGetItem dynamodb:UpdateItem on Quota.Arn"}, []string{"Api"}},
	{has("fingerprintSecret"), []string{fingerprintsMay}, []string{"Api"}},
	{has("scopeSecret"), []string{scopesMay}, []string{"Api", "Webhook", "OperatorRead"}},
	{has("providerSecret"), []string{providerMay}, []string{"Api", "Worker", "Sweep", "Reconcile", "Drift", "OperatorRead"}},
	{has("import"), []string{ // it looks at the shape of tables that the stack has not made
		"dynamodb:DescribeTable dynamodb:DescribeTimeToLive on TablesIdempotency.Arn",
		"dynamodb:DescribeTable dynamodb:DescribeTimeToLive on TablesOutbox.Arn",
		"dynamodb:DescribeTable dynamodb:DescribeTimeToLive on Payments.Arn",
	}, []string{"Sweep"}},
}

// missing are the roles and policies that a stack has none of.
var missing = []struct {
	when func(contexts) bool
	who  []string
}{
	{func(c contexts) bool { return c["auth"] == "function" }, []string{"Authorizer"}},
	{func(c contexts) bool { return !c.webhooks() }, []string{"Webhook"}},
	{func(c contexts) bool { return !c.relayed() }, []string{"Relay"}},
}

// allowed is what each role and policy of a stack may do, and no other role or policy is there.
func allowed(c contexts) map[string][]string {
	all := map[string][]string{}
	for name, may := range permissions {
		all[name] = slices.Clone(may)
	}
	for name, may := range operatorMay {
		all[name] = slices.Clone(may)
	}
	if c.shifts() {
		all["Release"] = releaseMay(c)
	}
	if c.ownNetwork() {
		all["NetworkRefused"] = []string{"logs:CreateLogStream logs:DescribeLogStreams logs:PutLogEvents on NetworkRefusedLogs.Arn"}
	}
	if secret, ok := c["webhookSecret"].(string); ok {
		all["Webhook"] = append(all["Webhook"], webhookMay[secret])
	}
	for _, one := range missing {
		if one.when(c) {
			for _, name := range one.who {
				delete(all, name)
			}
		}
	}
	for _, more := range besides {
		for _, name := range more.who {
			if all[name] != nil && more.when(c) {
				all[name] = append(all[name], more.may...)
			}
		}
	}
	return c.onImported(all)
}

// networkMay is what Lambda may in the role of a function that calls the provider, where that is in a network of the account's.
const networkMay = "ec2:AssignPrivateIpAddresses ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces " +
	"ec2:DescribeSubnets ec2:UnassignPrivateIpAddresses on * if map[Null:map[lambda:SourceFunctionArn:true]]"

// releaseMay is what CodeDeploy may: it moves the alias of each function that is not shifted at once, and looks at alarms.
func releaseMay(c contexts) []string {
	names := []string{"Api", "Worker", "Sweep", "Reconcile"}
	if c["auth"] != "function" {
		names = append(names, "Authorizer")
	}
	if c.webhooks() {
		names = append(names, "Webhook")
	}
	if c.relayed() {
		names = append(names, "Relay")
	}
	may := []string{"cloudwatch:DescribeAlarms on *"}
	for _, name := range names {
		const actions = "lambda:GetAlias lambda:GetProvisionedConcurrencyConfig lambda:UpdateAlias on "
		may = append(may, actions+name+"Function.Arn", actions+name+"Function.Arn:live")
	}
	return may
}

// granted is what a template's roles and policies allow. A role is by its function's name. AWS Backup's role is left out, which
// has AWS's policy (TestBackup).
func granted(t *testing.T, template *synthesized) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for name, r := range template.Resources {
		var documents []any
		id := strings.TrimSuffix(bare(name), "Role")
		switch {
		case r.Type == "AWS::IAM::Role" && id == "BackupPlanTables":
			continue
		case r.Type == "AWS::IAM::Role":
			for _, policy := range r.Properties["Policies"].([]any) {
				documents = append(documents, policy.(map[string]any)["PolicyDocument"])
			}
		case r.Type == "AWS::IAM::ManagedPolicy":
			for _, holder := range []string{"Roles", "Users", "Groups"} {
				if r.Properties[holder] != nil {
					t.Errorf("%s is attached to %v: the stack knows no people", name, r.Properties[holder])
				}
			}
			documents = []any{r.Properties["PolicyDocument"]}
		default:
			continue
		}
		for _, document := range documents {
			for _, statement := range document.(map[string]any)["Statement"].([]any) {
				all[id] = append(all[id], sentences(statement.(map[string]any))...)
			}
		}
	}
	return all
}

// single is what sentences allow, each action on each resource by itself: CDK writes as one statement what is on the same resource.
func single(sentences []string) map[string]bool {
	all := map[string]bool{}
	for _, sentence := range sentences {
		actions, on, _ := strings.Cut(sentence, " on ")
		for action := range strings.FieldsSeq(actions) {
			all[action+" on "+on] = true
		}
	}
	return all
}

// Every role and every policy of every template, and every statement of each: of the variants, and of all combinations of contexts.
func TestEachRoleMayDoExactlyThis(t *testing.T) {
	every(t, func(t *testing.T, has contexts, template *synthesized) {
		want, got := allowed(has), granted(t, template)
		for name := range maps.Keys(got) {
			if want[name] == nil {
				t.Errorf("nobody expects a role or policy %s, which may\n%s", name, strings.Join(got[name], "\n"))
			}
		}
		for name, may := range want {
			expected, found := single(may), single(got[name])
			for sentence := range expected {
				if !found[sentence] {
					t.Errorf("%s may not: %s", name, sentence)
				}
			}
			for sentence := range found {
				if !expected[sentence] {
					t.Errorf("nobody expects that %s may: %s", name, sentence)
				}
			}
			if operatorMay[name] != nil || name == "Release" || name == "NetworkRefused" {
				continue
			}
			function := template.only(t, "AWS::Lambda::Function", name+"Function").Properties
			if plain(function["Role"]) != name+"Role.Arn" {
				t.Errorf("%s has the role %s", name, plain(function["Role"]))
			}
		}
	})
}

// What the webhook function, which anybody on the internet can call, has nothing to do with.
func TestTheWebhookFunctionTouchesNothingElse(t *testing.T) {
	for variant := range variants {
		for _, sentence := range granted(t, synthesize(t, variant))["Webhook"] {
			for _, other := range []string{"ApiKeys", "AuditTable", "Quota", "ReceiveMessage", "Query", "Scan", "DeleteItem", "StreamArn", "payments/provider"} {
				if strings.Contains(sentence, other) {
					t.Errorf("%s: %s", variant, sentence)
				}
			}
		}
	}
}

// docs/permissions.md is the table of a production stage: go test ./stack -run TestPermissionsAreDocumented -update
func TestPermissionsAreDocumented(t *testing.T) {
	const path = "../../docs/permissions.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- generated: infra/stack/permission_test.go -->\n", "<!-- end -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place between %q and %q", path, begin, end)
	}
	want := before + begin + permissionTable(granted(t, synthesize(t, "rest-gateway"))) + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s is not what the roles may: go test ./stack -run TestPermissionsAreDocumented -update", path)
	}
}

func permissionTable(all map[string][]string) string {
	var out strings.Builder
	out.WriteString("| role or policy | may | on |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, sentence := range slices.Sorted(slices.Values(all[name])) {
			actions, on, _ := strings.Cut(sentence, " on ")
			fmt.Fprintf(&out, "| %s | %s | `%s` |\n", name, strings.ReplaceAll(actions, " ", ", "), on)
		}
	}
	return out.String()
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
	every(t, func(t *testing.T, _ contexts, template *synthesized) {
		template.counts(t, "AWS::IAM::Policy", 0)
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

// tableARN is that of a table that the stack makes, or imports.
const tableARN = `([A-Za-z]+\.Arn|arn:aws:dynamodb:[a-z0-9-]+:[0-9]{12}:table/[A-Za-z0-9_.-]+)`

// streamsOfOne are the streams of one table, and restoredOfOne its backups or the tables that are restored from it.
var (
	streamsOfOne  = regexp.MustCompile(`^` + tableARN + `/stream/\*$`)
	restoredOfOne = regexp.MustCompile(`^` + tableARN + `(-|/backup/)\*$`)
)

func checkStatement(t *testing.T, name string, statement map[string]any) {
	t.Helper()
	if strings.HasPrefix(name, "CustomerKeys") && statement["Condition"] != nil {
		return // TestCustomerKeys has each word of it
	}
	if isKeyPolicy(name, statement) || isTrailBucket(name, statement) || isEndpointPolicy(name, statement) || isInterfaces(name, statement) {
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
		service := "lambda"
		switch {
		case strings.HasPrefix(name, "ReleaseRole"):
			service = "codedeploy"
		case strings.HasPrefix(name, "NetworkRefusedRole"):
			service = "vpc-flow-logs"
		}
		if fmt.Sprint(principal) != "map[Service:"+service+".amazonaws.com]" || statement["Action"] != "sts:AssumeRole" {
			t.Errorf("%s: %v may %v", name, principal, statement["Action"])
		}
		return // a trust policy has no resource
	}
	for _, on := range list(statement["Resource"]) {
		text := plain(on)
		// ListStreams names no one stream; one table's streams are the narrowest there is.
		allowed := streamsOfOne.MatchString(text) && statement["Action"] == "dynamodb:ListStreams" ||
			strings.HasPrefix(name, "OperatorRecovery") && (restoredOfOne.MatchString(text) || statement["Action"] == "dynamodb:ListBackups") ||
			strings.HasPrefix(name, "ReleaseRole") && statement["Action"] == "cloudwatch:DescribeAlarms"
		if strings.Contains(text, "*") && !allowed {
			t.Errorf("%s: %v on %s", name, statement["Action"], text)
		}
	}
}

// isKeyPolicy says that this is the statement by which a KMS key leaves it to IAM who may do what with it; "*" is the key
// itself there. AWS adds it to a key without a policy, and a key without it can't be managed any more.
func isKeyPolicy(name string, statement map[string]any) bool {
	account := regexp.MustCompile(`^map\[AWS:arn:aws:iam::[0-9]{12}:root\]$`)
	return (strings.HasPrefix(name, "KeysKey") || strings.HasPrefix(name, "CustomerKeys")) && statement["Action"] == "kms:*" && statement["Resource"] == "*" &&
		account.MatchString(fmt.Sprint(statement["Principal"]))
}

// isEndpointPolicy says that this is what a VPC endpoint lets through: TestEndpointsPassWhatTheRolesMay has each word of it.
func isEndpointPolicy(name string, statement map[string]any) bool {
	return strings.HasPrefix(name, "Network") && strings.Contains(fmt.Sprint(statement["Condition"]), "aws:PrincipalAccount:111122223333")
}

// isInterfaces says that this is what Lambda, and no function's code, may do with network interfaces: networkMay has each word of it.
func isInterfaces(name string, statement map[string]any) bool {
	lines := sentences(statement)
	return strings.Contains(name, "Role") && len(lines) == 1 && lines[0] == networkMay
}

// isTrailBucket says that this is how CloudTrail writes its log: AWS's own two statements, for the one trail.
func isTrailBucket(name string, statement map[string]any) bool {
	if !strings.HasPrefix(name, "TrailBucketPolicy") || fmt.Sprint(statement["Principal"]) != "map[Service:cloudtrail.amazonaws.com]" {
		return false
	}
	source := plain(statement["Condition"].(map[string]any)["StringEquals"].(map[string]any)["aws:SourceArn"])
	action, on := statement["Action"], plain(statement["Resource"])
	return strings.Contains(source, ":trail/") &&
		(action == "s3:GetBucketAcl" && on == "TrailBucket.Arn" ||
			action == "s3:PutObject" && strings.HasPrefix(on, "TrailBucket.Arn/AWSLogs/") && strings.HasSuffix(on, "/*"))
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
		refuses := map[string]bool{}
		for _, policy := range template.of("AWS::SQS::QueuePolicy") {
			statements := policy.Properties["PolicyDocument"].(map[string]any)["Statement"].([]any)
			if !slices.ContainsFunc(statements, refusesPlainHTTP) {
				continue
			}
			for _, queue := range list(policy.Properties["Queues"]) {
				refuses[plain(queue)] = true
			}
		}
		queues := template.of("AWS::SQS::Queue")
		for name := range queues {
			if !refuses[name] {
				t.Errorf("%s takes plain HTTP: only %v refuse it", name, refuses)
			}
		}
		if len(queues) < 4 {
			t.Errorf("only %d queues were looked at", len(queues))
		}
	})
}

// refusesPlainHTTP says whether a statement of a queue's policy denies everybody everything that does not come over TLS.
func refusesPlainHTTP(statement any) bool {
	s := statement.(map[string]any)
	return s["Effect"] == "Deny" && s["Action"] == "sqs:*" && fmt.Sprint(s["Principal"]) == "map[AWS:*]" &&
		fmt.Sprint(s["Condition"]) == "map[Bool:map[aws:SecureTransport:false]]"
}
