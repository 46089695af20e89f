package idemconstruct

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// Audit is the log of what operators change.
type Audit struct {
	constructs.Construct
	// Table of entries, in the shape that package schema gives it.
	Table awsdynamodb.ITableV2
}

// ImportAudit refers to a log that is there already, by its table's name.
func ImportAudit(scope constructs.Construct, id, table string) *Audit {
	self := constructs.NewConstruct(scope, jsii.String(id))
	return &Audit{Construct: self, Table: ImportTable(self, "Table", table, "")}
}

// NewAudit adds the table to scope under id.
func NewAudit(scope constructs.Construct, id string, props TablesProps) *Audit {
	self := constructs.NewConstruct(scope, jsii.String(id))
	return &Audit{Construct: self, Table: NewTable(self, "Table", schema.Audit(), props)}
}

// WatchStatements is what a function needs that reads the newest entries, to write the log lines of what people have changed.
func (a *Audit) WatchStatements() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{
		Allow([]string{"dynamodb:GetItem"}, a.Table.TableArn()),
		Allow([]string{"dynamodb:Query"}, Within(a.Table.TableArn(), "/index/"+schema.Audit().Index.Name)),
	}
}

// OperatorReadStatements is what an operator needs who inspects, lists and reads the log. Where tenants' data is encrypted they
// see that there is some, and none of it.
func (a *Audit) OperatorReadStatements(tables *Tables) []awsiam.PolicyStatement {
	return append(tables.SweepStatements(),
		Allow([]string{"dynamodb:GetItem", "dynamodb:BatchGetItem"}, tables.Idempotency.TableArn(), tables.Outbox.TableArn(), a.Table.TableArn()),
		Allow([]string{"dynamodb:Query"}, Within(a.Table.TableArn(), "/index/"+schema.Audit().Index.Name)),
	)
}

// OperatorWriteStatements is what an operator needs beside OperatorReadStatements who changes what is stuck: settlements write
// the application's own tables too, which its author grants, and wake-ups, how many wait, and dead letters are the queues'. Nobody may delete
// an entry.
func (a *Audit) OperatorWriteStatements(tables *Tables, queues *Queues) []awsiam.PolicyStatement {
	statements := slices.Concat(tables.DeliverStatements(), queues.SendStatements(), queues.OfferStatements())
	return append(statements,
		Allow([]string{"dynamodb:PutItem", "dynamodb:UpdateItem"}, a.Table.TableArn()),
		Allow([]string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"}, queues.DeadLetter.QueueArn()),
	)
}
