// Package idemconstruct holds the CDK constructs that an application of idem needs: the tables, the queues that wake
// the worker, the functions, and the alarms. Use [NewApplication] to deploy a binary of package lambdaapp in one
// step. Use [NewTables], [NewQueues] and [NewDelivery] where the application defines its functions itself.
// Applications that deploy with AWS SAM or Terraform use infra/sam or infra/terraform instead.
//
// Constructs return the IAM statements that each role of an application needs, and never widen a role by themselves.
// The role of a function therefore has exactly the statements that its author wrote down.
package idemconstruct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/infra/spec"
)

// TablesProps are the choices for Tables. The zero value is for production.
type TablesProps struct {
	// Disposable tables go with their stack: no deletion protection, no point-in-time recovery.
	Disposable bool
	// Key is the KMS key that DynamoDB encrypts with. Its policy must let the account's principals use it through DynamoDB, because
	// no statement that this package hands out does. Default: a key of DynamoDB's own.
	Key awskms.IKey
	// Warm is the throughput that a table and its index serve at once, without growing first. Default: AWS's, 12,000 reads and 4,000
	// writes a second.
	Warm Throughput
	// Max is the throughput beyond which a table and its index throttle: a bound on what a fault can cost. Default: the account's
	// quota of a table, 40,000 of each.
	Max Throughput
	// Provisioned has the table and its index paid by the hour instead of by the request. Not together with Max. Default: on demand.
	Provisioned Provisioned
	// Units are what one operation consumes of the table, for Provisioned. NewTables knows its own. Default: two writes and a read,
	// one of each of the index.
	Units spec.Units
	// Unrecoverable tables have no point-in-time recovery, so that what is erased is gone.
	Unrecoverable bool
	// Import names tables that are there already, for NewTables. Default: none, and new ones are made.
	Import *ImportedTables
}

// ImportedTables are tables of idem that are there already: restored, copied, or left by a stack that was deleted. The stack
// reads and writes their items, and changes and deletes nothing of the tables themselves. That they have the shape of package
// schema can't be seen before they are deployed: see dynamo.CheckTable.
type ImportedTables struct {
	// Idempotency and Outbox are names, and OutboxStream the ARN of the outbox table's stream. All are required.
	Idempotency, Outbox, OutboxStream string
}

// ImportTable refers to a table that is there already, by its name. The stream's ARN may be empty where nobody reads one.
func ImportTable(scope constructs.Construct, id, name, stream string) awsdynamodb.ITableV2 {
	attributes := &awsdynamodb.TableAttributesV2{TableName: jsii.String(name)}
	if stream != "" {
		attributes.TableStreamArn = jsii.String(stream)
	}
	return awsdynamodb.TableV2_FromTableAttributes(scope, jsii.String(id), attributes)
}

// Throughput is in request units a second: a read of 4 KB, a write of 1 KB, twice that in a transaction. The zero value is none.
type Throughput struct {
	// Read and Write are request units a second.
	Read, Write int
}

func (t Throughput) warm() *awsdynamodb.WarmThroughput {
	if t == (Throughput{}) {
		return nil
	}
	return &awsdynamodb.WarmThroughput{ReadUnitsPerSecond: jsii.Number(t.Read), WriteUnitsPerSecond: jsii.Number(t.Write)}
}

// Tables are the two tables of idem, in the shape that package schema gives them.
type Tables struct {
	constructs.Construct
	// Idempotency is the table of records.
	Idempotency awsdynamodb.ITableV2
	// Outbox is the table of messages; it has a stream with NEW_IMAGE.
	Outbox awsdynamodb.ITableV2
}

// NewTables adds both tables to scope under id.
func NewTables(scope constructs.Construct, id string, props TablesProps) *Tables {
	self := constructs.NewConstruct(scope, jsii.String(id))
	if there := props.Import; there != nil {
		return &Tables{
			Construct:   self,
			Idempotency: ImportTable(self, "Idempotency", there.Idempotency, ""),
			Outbox:      ImportTable(self, "Outbox", there.Outbox, there.OutboxStream),
		}
	}
	records, messages := props, props
	records.Units, messages.Units = spec.RecordUnits, spec.MessageUnits
	return &Tables{
		Construct:   self,
		Idempotency: NewTable(self, "Idempotency", schema.Idempotency(), records),
		Outbox:      NewTable(self, "Outbox", schema.Outbox(), messages),
	}
}

// NewTable adds one table of the given shape to scope, on demand unless props say otherwise. Business tables that take part in the same
// transactions can be made with it too, so that they are protected like the records that speak about them; an empty TTL
// or Index leaves that part out.
//
// It is a TableV2, so that a replica for disaster recovery can be added in place later. Two Regions must not serve the
// same tenant: conditions see only their own Region.
func NewTable(scope constructs.Construct, id string, shape schema.Table, props TablesProps) awsdynamodb.TableV2 {
	table := &awsdynamodb.TablePropsV2{
		PartitionKey:       attribute(shape.Key, awsdynamodb.AttributeType_STRING),
		Billing:            props.billing(),
		WarmThroughput:     props.Warm.warm(),
		DeletionProtection: jsii.Bool(!props.Disposable),
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(!props.Disposable && !props.Unrecoverable),
		},
		RemovalPolicy: awscdk.RemovalPolicy_RETAIN,
	}
	if props.Disposable {
		table.RemovalPolicy = awscdk.RemovalPolicy_DESTROY
	}
	if props.Key != nil {
		table.Encryption = awsdynamodb.TableEncryptionV2_CustomerManagedKey(props.Key, nil)
	}
	if shape.TTL != "" {
		table.TimeToLiveAttribute = jsii.String(shape.TTL)
	}
	if shape.StreamNewImage {
		table.DynamoStream = awsdynamodb.StreamViewType_NEW_IMAGE
	}
	if shape.Index.Name != "" {
		table.GlobalSecondaryIndexes = &[]*awsdynamodb.GlobalSecondaryIndexPropsV2{index(shape.Index, props)}
	}
	return awsdynamodb.NewTableV2(scope, jsii.String(id), table)
}

func index(shape schema.Index, props TablesProps) *awsdynamodb.GlobalSecondaryIndexPropsV2 {
	index := &awsdynamodb.GlobalSecondaryIndexPropsV2{
		IndexName:      jsii.String(shape.Name),
		PartitionKey:   attribute(shape.Partition, awsdynamodb.AttributeType_STRING),
		SortKey:        attribute(shape.Sort, awsdynamodb.AttributeType_NUMBER),
		ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY,
		WarmThroughput: props.Warm.warm(),
	}
	props.billIndex(index)
	if len(shape.Projected) > 0 {
		index.ProjectionType, index.NonKeyAttributes = awsdynamodb.ProjectionType_INCLUDE, jsii.Strings(shape.Projected...)
	}
	return index
}

func attribute(name string, kind awsdynamodb.AttributeType) *awsdynamodb.Attribute {
	return &awsdynamodb.Attribute{Name: jsii.String(name), Type: kind}
}

// ExecuteStatements is what a function needs that executes operations: reserve, commit, complete, release and replay,
// and the messages of its commits. No Query, no Scan, no DeleteItem.
func (t *Tables) ExecuteStatements() []awsiam.PolicyStatement { return allow(spec.Execute(), t.arn) }

// InlineStatements is what a function needs beside ExecuteStatements that delivers its own messages first.
func (t *Tables) InlineStatements() []awsiam.PolicyStatement { return allow(spec.Inline(), t.arn) }

// DeliverStatements is what a function needs that claims and settles messages: worker and sweep.
func (t *Tables) DeliverStatements() []awsiam.PolicyStatement { return allow(spec.Deliver(), t.arn) }

// SweepStatements is what a sweep needs beside DeliverStatements: the two sparse indexes.
func (t *Tables) SweepStatements() []awsiam.PolicyStatement { return allow(spec.List(), t.arn) }

// StreamStatements is what the function behind the outbox stream needs for Lambda to poll it.
func (t *Tables) StreamStatements() []awsiam.PolicyStatement { return allow(spec.ReadStream(), t.arn) }

// arn is that of what belongs to the tables.
func (t *Tables) arn(of spec.Resource) *string {
	switch of {
	case spec.IdempotencyTable:
		return t.Idempotency.TableArn()
	case spec.OutboxTable:
		return t.Outbox.TableArn()
	case spec.IdempotencyIndex:
		return Within(t.Idempotency.TableArn(), "/index/"+schema.Idempotency().Index.Name)
	case spec.OutboxIndex:
		return Within(t.Outbox.TableArn(), "/index/"+schema.Outbox().Index.Name)
	case spec.OutboxStream:
		return t.Outbox.TableStreamArn()
	case spec.OutboxStreams:
		return Within(t.Outbox.TableArn(), "/stream/*")
	case spec.Service, spec.WakeUps, spec.DeadLetter: // not of the tables
	}
	return nil
}

// allow writes permissions as statements. A resource of which arn knows nothing is a mistake of this package.
func allow(permissions []spec.Permission, arn func(spec.Resource) *string) []awsiam.PolicyStatement {
	var statements []awsiam.PolicyStatement
	for _, p := range permissions {
		var on []*string
		for _, resource := range p.On {
			name := arn(resource)
			if name == nil {
				panic("idemconstruct: there is no " + string(resource))
			}
			on = append(on, name)
		}
		statements = append(statements, Allow(p.Actions, on...))
	}
	return statements
}

// Allow is an IAM statement that allows the actions on the resources, nothing else.
func Allow(actions []string, resources ...*string) awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Effect:    awsiam.Effect_ALLOW,
		Actions:   jsii.Strings(actions...),
		Resources: &resources,
	})
}

// Within names something inside of a resource whose ARN is known at deploy time only.
func Within(arn *string, suffix string) *string {
	return awscdk.Fn_Join(jsii.String(""), &[]*string{arn, jsii.String(suffix)})
}
