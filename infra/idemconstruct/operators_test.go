package idemconstruct_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// operated is an application with operators, and a table of its own.
func operated(t *testing.T, props idemconstruct.ApplicationProps) template {
	t.Helper()
	props.Operators, props.Environment = true, map[string]string{"WAREHOUSE_URL": "https://warehouse.example"}
	return synthesizeWith(t, props, func(a *idemconstruct.Application) { a.NewTable("Orders", schema.Table{Key: "id"}, "ORDERS_TABLE") })
}

// What operators may do, written by hand: reading changes nothing, nobody deletes but a dead letter, and a settlement may write, and
// delete in, the application's own table.
func TestOperatorsMayDoWhatTheyNeedAndNoMore(t *testing.T) {
	got := map[string][]string{}
	for id, r := range operated(t, idemconstruct.ApplicationProps{}).resources {
		if r.Type != "AWS::IAM::ManagedPolicy" {
			continue
		}
		name := plain(map[string]any{"Ref": id})
		for _, statement := range list(r.Properties["PolicyDocument"].(map[string]any)["Statement"]) {
			s := statement.(map[string]any)
			var actions []string
			for _, action := range list(s["Action"]) {
				actions = append(actions, strings.TrimPrefix(fmt.Sprint(action), "dynamodb:"))
			}
			slices.Sort(actions)
			for _, on := range list(s["Resource"]) {
				got[name] = append(got[name], fmt.Sprint(s["Effect"], " ", strings.Join(actions, " "), " on ", plain(on)))
			}
		}
		slices.Sort(got[name])
	}
	for name, want := range map[string][]string{
		"OperatorsRead": {
			"Allow BatchGetItem GetItem on OperatorsAuditTable.Arn", "Allow BatchGetItem GetItem on TablesIdempotency.Arn", "Allow BatchGetItem GetItem on TablesOutbox.Arn",
			"Allow GetItem on Orders.Arn",
			"Allow Query on OperatorsAuditTable.Arn/index/days", "Allow Query on TablesIdempotency.Arn/index/sweep", "Allow Query on TablesOutbox.Arn/index/queue",
		},
		"OperatorsChange": {
			"Allow ConditionCheckItem DeleteItem PutItem UpdateItem on Orders.Arn", "Allow ConditionCheckItem GetItem PutItem UpdateItem on TablesIdempotency.Arn",
			"Allow GetItem PutItem UpdateItem on TablesOutbox.Arn", "Allow PutItem UpdateItem on OperatorsAuditTable.Arn",
			"Allow sqs:ChangeMessageVisibility sqs:DeleteMessage sqs:ReceiveMessage on QueuesDeadLetter.Arn",
			"Allow sqs:GetQueueAttributes on QueuesWakeUps.Arn", "Allow sqs:SendMessage on QueuesDeadLetter.Arn", "Allow sqs:SendMessage on QueuesWakeUps.Arn",
		},
	} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got[name], "\n"), strings.Join(want, "\n"))
		}
	}
	if len(got) != 2 {
		t.Errorf("%d policies", len(got))
	}
}

// The outputs have the values of idemctl's variables, under names that it reads the variables' from. What exists for operators is only
// there where it is asked for, and an emulator has no policies.
func TestOperatorsOutputs(t *testing.T) {
	variables := []string{
		"AuditTable = OperatorsAuditTable", "DeadLetterQueueUrl = QueuesDeadLetter", "IdempotencyTable = TablesIdempotency",
		"OrdersTable = Orders", "OutboxShards = 8", "OutboxTable = TablesOutbox", "WakeUpQueueUrl = QueuesWakeUps", "WarehouseUrl = https://warehouse.example",
	}
	policies := []string{"OperatorChangePolicyArn = OperatorsChange", "OperatorReadPolicyArn = OperatorsRead"}
	for name, c := range map[string]struct {
		made template
		want []string
	}{
		"production": {operated(t, idemconstruct.ApplicationProps{}), append(slices.Clone(variables), policies...)},
		"emulated":   {operated(t, idemconstruct.ApplicationProps{Emulated: true}), variables},
		"without":    {synthesize(t, idemconstruct.ApplicationProps{}), nil},
	} {
		var got []string
		outputs, _ := c.made.document["Outputs"].(map[string]any)
		for id, output := range outputs {
			got = append(got, id+" = "+plain(output.(map[string]any)["Value"]))
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		for id, r := range c.made.resources {
			if audit := plain(map[string]any{"Ref": id}) == "OperatorsAuditTable"; audit && (name == "without" || (r.DeletionPolicy == "Retain") != (name == "production")) {
				t.Errorf("%s: the audit table has the deletion policy %q", name, r.DeletionPolicy)
			}
		}
	}
}

// A secret is named, and never an output or a variable itself: the API and those who look may read it, nobody else.
func TestAScopeSecretIsNamedAndNotShown(t *testing.T) {
	const arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:shop/scopes-AbCdEf"
	for named, read := range map[string]string{arn: "Allow secretsmanager:GetSecretValue on " + arn, "shop/scopes": readsScopeSecret} {
		made := operated(t, idemconstruct.ApplicationProps{ScopeSecret: named})
		outputs := made.document["Outputs"].(map[string]any)
		if got := plain(outputs["ScopeSecretId"].(map[string]any)["Value"]); got != named {
			t.Errorf("the output ScopeSecretId is %s, want %s", got, named)
		}
		told, may := map[string]any{}, map[string]string{}
		for id, r := range made.resources {
			name := plain(map[string]any{"Ref": id})
			switch r.Type {
			case "AWS::Lambda::Function":
				if value, ok := r.Properties["Environment"].(map[string]any)["Variables"].(map[string]any)["SCOPE_SECRET_ID"]; ok {
					told[name] = value
				}
			case "AWS::IAM::ManagedPolicy":
				for _, statement := range list(r.Properties["PolicyDocument"].(map[string]any)["Statement"]) {
					if s := statement.(map[string]any); strings.HasPrefix(fmt.Sprint(s["Action"]), "secretsmanager:") {
						may[name] = fmt.Sprint(s["Effect"], " ", s["Action"], " on ", plain(s["Resource"]))
					}
				}
			}
		}
		if len(told) != 1 || told["ApiFunction"] != named {
			t.Errorf("%s: told %v", named, told)
		}
		if len(may) != 1 || may["OperatorsRead"] != read {
			t.Errorf("%s: %v", named, may)
		}
	}
}

// A variable whose name its output can't tell is refused before anything is made.
func TestOperatorsRefuseVariablesThatNoOutputNames(t *testing.T) {
	stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("shop"), nil)
	said := func(do func()) (said string) {
		defer func() { said = fmt.Sprint(recover()) }()
		do()
		return ""
	}
	props := idemconstruct.ApplicationProps{
		Operators: true, AlarmTopic: idemconstruct.NoTopic, Code: awslambda.Code_FromAsset(jsii.String(t.TempDir()), nil),
		Environment: map[string]string{"A_1": "x", "warehouse": "y"},
	}
	refused := said(func() { idemconstruct.NewApplication(stack, "Idem", props) })
	if !strings.Contains(refused, "ApplicationProps.Environment[A_1] = x: must be words") || !strings.Contains(refused, "Environment[warehouse]") || len(*stack.Node().Children()) > 0 {
		t.Error(refused)
	}
	props.Environment = nil
	application := idemconstruct.NewApplication(stack, "Idem", props)
	if refused := said(func() { application.NewTable("Orders", schema.Table{Key: "id"}, "ordersTable") }); !strings.Contains(refused, `the variable "ordersTable": must be words`) {
		t.Error(refused)
	}
}
