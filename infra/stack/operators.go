package stack

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// addOperators makes the policies of the people who use idemctl. Nobody has them but whom an administrator attaches them to: the
// stack knows no people. A policy is for a role, and a role for one kind of work.
func (p parts) addOperators(stack awscdk.Stack, audit *idemconstruct.Audit) {
	for _, policy := range []struct {
		id, description string
		statements      []awsiam.PolicyStatement
	}{
		{"OperatorRead", "idemctl: inspect, list, audit, drift and apikey list. Changes nothing.", p.operatorReads(audit)},
		{"OperatorChange", "idemctl --write, beside OperatorRead: resolve, close, release, redrive, reconcile, sweep, refuse-before set, account collect and compare.", p.operatorChanges(audit)},
		{"OperatorKeys", "idemctl apikey create, limit and revoke.", p.operatorMakesKeys(audit)},
		{recovery, "idemctl tables restore and prepare, keys check, export and import, and the other commands on restored tables, beside OperatorRead and OperatorChange. Attach it for a recovery only.", p.operatorRecovers()},
	} {
		made := awsiam.NewManagedPolicy(stack, jsii.String(policy.id), &awsiam.ManagedPolicyProps{
			Description: jsii.String(policy.description), Statements: &policy.statements,
		})
		if policy.id == recovery {
			p.acceptRecovery(made)
		}
		output(stack, policy.id+"PolicyArn", made.ManagedPolicyArn())
	}
}

// operatorReads is what the commands need that change nothing. What is encrypted they don't see.
func (p parts) operatorReads(audit *idemconstruct.Audit) []awsiam.PolicyStatement {
	index := idemconstruct.Within(p.payments.TableArn(), "/index/"+table.Payments().Index.Name)
	return slices.Concat(audit.OperatorReadStatements(p.tables), []awsiam.PolicyStatement{
		// Scan is for account compare, which adds up transfers and payouts that no index lists any more, and looks at what was answered.
		idemconstruct.Allow([]string{"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Scan"}, p.payments.TableArn()),
		idemconstruct.Allow([]string{"dynamodb:Scan"}, p.tables.Idempotency.TableArn()),
		idemconstruct.Allow([]string{"dynamodb:Query"}, index),
		idemconstruct.Allow([]string{"dynamodb:Scan"}, p.apiKeys.TableArn()),
	}, p.operatorSecrets())
}

// operatorSecrets are those that idemctl asks the provider with, and looks a client's key up by.
func (p parts) operatorSecrets() []awsiam.PolicyStatement {
	var statements []awsiam.PolicyStatement
	for _, id := range []string{p.config.ProviderSecret, p.config.ScopeSecret} {
		if id != "" {
			statements = append(statements, p.config.readSecret(id))
		}
	}
	return statements
}

// operatorChanges is what they need besides to change something: what a settlement writes, and it is sealed.
func (p parts) operatorChanges(audit *idemconstruct.Audit) []awsiam.PolicyStatement {
	return slices.Concat(audit.OperatorWriteStatements(p.tables, p.queues), p.seal(), []awsiam.PolicyStatement{
		idemconstruct.Allow([]string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, p.payments.TableArn()),
	})
}

// operatorMakesKeys is apart: who settles payments need not be who lets tenants in. GetItem on the log is for the clock that the command
// compares, and for an entry whose reply was lost.
func (p parts) operatorMakesKeys(audit *idemconstruct.Audit) []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{
		idemconstruct.Allow([]string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Scan"}, p.apiKeys.TableArn()),
		idemconstruct.Allow([]string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, audit.Table.TableArn()),
	}
}

// recovery is the policy of those who recover lost data.
const recovery = "OperatorRecovery"

// What restored tables and backups are called, after the table that they are of: the runbooks' suffixes begin with a dash.
const (
	ofRestored = "-*"
	ofBackups  = "/backup/*"
)

// money are the tables that are restored together.
func (p parts) money() []*string {
	return []*string{p.tables.Idempotency.TableArn(), p.tables.Outbox.TableArn(), p.payments.TableArn()}
}

// operatorRecovers is what the runbooks of docs/recovery.md need besides. The tables that are there are not changed. DynamoDB writes a
// restored table on behalf of who restores it.
func (p parts) operatorRecovers() []awsiam.PolicyStatement {
	var restored, backups []*string
	for _, arn := range p.money() {
		restored, backups = append(restored, idemconstruct.Within(arn, ofRestored)), append(backups, idemconstruct.Within(arn, ofBackups))
	}
	statements := []awsiam.PolicyStatement{
		idemconstruct.Allow([]string{"dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:RestoreTableToPointInTime", "dynamodb:Scan"}, p.money()...),
		idemconstruct.Allow([]string{"dynamodb:RestoreTableFromBackup"}, backups...),
		idemconstruct.Allow([]string{"dynamodb:ListBackups"}, jsii.String("*")),
		idemconstruct.Allow([]string{
			"dynamodb:RestoreTableToPointInTime", "dynamodb:RestoreTableFromBackup", "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive",
			"dynamodb:UpdateTable", "dynamodb:UpdateTimeToLive", "dynamodb:UpdateContinuousBackups",
			"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem",
		}, restored...),
	}
	if p.keys != nil { // to wrap keys under another Region's KMS key, its administrator allows it there
		statements = append(statements,
			idemconstruct.Allow([]string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Scan"}, p.keys.Table.TableArn()),
			idemconstruct.Allow([]string{"kms:Decrypt"}, p.keys.Key.KeyArn()),
		)
	}
	return statements
}
