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
	} {
		made := awsiam.NewManagedPolicy(stack, jsii.String(policy.id), &awsiam.ManagedPolicyProps{
			Description: jsii.String(policy.description), Statements: &policy.statements,
		})
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

// operatorMakesKeys is apart: who settles payments need not be who lets tenants in.
func (p parts) operatorMakesKeys(audit *idemconstruct.Audit) []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{
		idemconstruct.Allow([]string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Scan"}, p.apiKeys.TableArn()),
		idemconstruct.Allow([]string{"dynamodb:PutItem", "dynamodb:UpdateItem"}, audit.Table.TableArn()),
	}
}
