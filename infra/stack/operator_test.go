package stack_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// What an operator may do: nothing is deleted but dead letters, and reading changes nothing.
func TestOperatorsStatements(t *testing.T) {
	stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("desk"), nil)
	tables := idemconstruct.NewTables(stack, "Tables", idemconstruct.TablesProps{})
	queues := idemconstruct.NewQueues(stack, "Queues", idemconstruct.QueuesProps{WorkerTimeout: time.Minute})
	audit := idemconstruct.NewAudit(stack, "Audit", idemconstruct.TablesProps{})
	for name, c := range map[string]struct {
		statements []awsiam.PolicyStatement
		want       []string
	}{
		"read": {audit.OperatorReadStatements(tables), []string{"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"}},
		"write": {audit.OperatorWriteStatements(tables, queues), []string{
			"dynamodb:ConditionCheckItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem",
			"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sqs:SendMessage",
		}},
	} {
		var actions []string
		for _, statement := range c.statements {
			for _, action := range *statement.Actions() {
				actions = append(actions, *action)
			}
			for _, resource := range *statement.Resources() {
				if strings.HasSuffix(*resource, "*") {
					t.Errorf("%s: on %s", name, *resource)
				}
			}
		}
		slices.Sort(actions)
		if actions = slices.Compact(actions); !slices.Equal(actions, c.want) {
			t.Errorf("%s: %v, want %v", name, actions, c.want)
		}
	}
}
