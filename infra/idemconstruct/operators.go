package idemconstruct

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
)

// Operators is what the people need who use the application's idemctl. Nobody may do anything before an administrator attaches the
// policies to a role.
type Operators struct {
	constructs.Construct
	// Audit is the log of what they change.
	Audit *Audit
	// Read is for the commands that change nothing, and Change for --write, beside Read. Both are nil where Emulated: emulators ask
	// nobody what they may.
	Read, Change awsiam.ManagedPolicy
}

// operate adds the log, the policies and the outputs.
func (a *Application) operate(scope constructs.Construct) {
	self := constructs.NewConstruct(scope, jsii.String("Operators"))
	log := NewAudit(self, "Audit", TablesProps{
		Disposable: a.props.Tables.Disposable, Key: a.props.Tables.Key, Unrecoverable: a.props.Tables.Unrecoverable,
	})
	a.Operators = &Operators{Construct: self, Audit: log}
	if !a.props.Emulated {
		reads := log.OperatorReadStatements(a.Tables)
		if a.props.ScopeSecret != "" {
			reads = append(reads, a.props.readScopeSecret())
		}
		a.Operators.Read = a.policy("Read", "idemctl: inspect, list, audit, console. Changes nothing.", reads)
		a.Operators.Change = a.policy("Change", "idemctl --write, beside the policy for reading.", log.OperatorWriteStatements(a.Tables, a.Queues))
	}
	for _, of := range []struct {
		variable string
		value    *string
	}{
		{environment.IdempotencyTable, a.Tables.Idempotency.TableName()},
		{environment.OutboxTable, a.Tables.Outbox.TableName()},
		{environment.OutboxShards, jsii.String(strconv.Itoa(a.props.Shards))},
		{environment.WakeUpQueueURL, a.Queues.WakeUps.QueueUrl()},
		{environment.DeadLetterQueueURL, a.Queues.DeadLetter.QueueUrl()},
		{environment.AuditTable, log.Table.TableName()},
	} {
		a.output(outputOf(of.variable), of.value)
	}
	if a.props.ScopeSecret != "" {
		a.output(outputOf(environment.ScopeSecretID), jsii.String(a.props.ScopeSecret))
	}
	for _, variable := range slices.Sorted(maps.Keys(a.props.Environment)) {
		a.output(outputOf(variable), jsii.String(a.props.Environment[variable]))
	}
}

func (a *Application) policy(id, description string, statements []awsiam.PolicyStatement) awsiam.ManagedPolicy {
	made := awsiam.NewManagedPolicy(a.Operators.Construct, jsii.String(id), &awsiam.ManagedPolicyProps{Description: jsii.String(description), Statements: &statements})
	a.output("Operator"+id+"PolicyArn", made.ManagedPolicyArn())
	return made
}

// operates lets operators do with a table of the application's own what a settlement does, and tells them its name.
func (a *Application) operates(table awsdynamodb.ITableV2, variable string) {
	a.names(table, variable)
	if !a.props.Emulated {
		a.Operators.Read.AddStatements(Allow([]string{"dynamodb:GetItem"}, table.TableArn()))
		a.Operators.Change.AddStatements(Allow(written[1:], table.TableArn()))
	}
}

// names has idemctl find a table's name, by the output of its variable.
func (a *Application) names(table awsdynamodb.ITableV2, variable string) {
	if !outputForm.MatchString(variable) {
		panic(fmt.Sprintf("idemconstruct: the variable %q: must be %s", variable, outputRule))
	}
	a.output(outputOf(variable), table.TableName())
}

// output adds an output of the stack under exactly this name.
func (a *Application) output(name string, value *string) {
	made := awscdk.NewCfnOutput(a.Construct, jsii.String("Output"+name), &awscdk.CfnOutputProps{Value: value})
	made.OverrideLogicalId(jsii.String(name))
}

// outputForm are the variables whose outputs idemctl --env-file finds by their names: an output's name has letters and digits only.
var outputForm = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z][A-Z0-9]*)*$`)

const outputRule = "words of capital letters and digits that begin with a letter, with _ between them, because idemctl reads it from an output of that name"

// outputOf is the name of a variable's output: ORDERS_TABLE is OrdersTable.
func outputOf(variable string) string {
	var name strings.Builder
	for word := range strings.SplitSeq(variable, "_") {
		name.WriteString(word[:1] + strings.ToLower(word[1:]))
	}
	return name.String()
}
