package dynamotest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// Tables are the names of a store's two tables.
type Tables struct {
	// Idempotency is the table of records, and Outbox that of messages.
	Idempotency, Outbox string
}

// CreateTables creates the store's tables as package schema has them, named "<prefix>-idempotency" and "<prefix>-outbox",
// and waits until they can be used. It returns the SDK's errors, with the table's name.
func CreateTables(ctx context.Context, client *dynamodb.Client, prefix string) (Tables, error) {
	tables := Tables{Idempotency: prefix + "-idempotency", Outbox: prefix + "-outbox"}
	if err := CreateTable(ctx, client, tables.Idempotency, schema.Idempotency()); err != nil {
		return tables, err
	}
	return tables, CreateTable(ctx, client, tables.Outbox, schema.Outbox())
}

// tableWithin bounds the wait for a new table.
const tableWithin = time.Minute

// CreateTable creates one on-demand table of the shape and waits until it can be used. A business table is a shape with
// a Key, and perhaps an Index. A table of that name is deleted first: an endpoint that outlives the tests still has those
// of the run before. So packages whose tests share an endpoint need names of their own, or go test -p 1.
func CreateTable(ctx context.Context, client *dynamodb.Client, name string, shape schema.Table) error {
	input := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: &shape.Key, KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &shape.Key, AttributeType: types.ScalarAttributeTypeS}},
	}
	if index := shape.Index; index.Name != "" {
		input.AttributeDefinitions = append(input.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: &index.Partition, AttributeType: types.ScalarAttributeTypeS},
			types.AttributeDefinition{AttributeName: &index.Sort, AttributeType: types.ScalarAttributeTypeN},
		)
		input.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName: &index.Name,
			KeySchema: []types.KeySchemaElement{
				{AttributeName: &index.Partition, KeyType: types.KeyTypeHash},
				{AttributeName: &index.Sort, KeyType: types.KeyTypeRange},
			},
			Projection: projection(index),
		}}
	}
	if shape.StreamNewImage {
		input.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage}
	}
	_, err := client.CreateTable(ctx, input)
	if _, exists := errors.AsType[*types.ResourceInUseException](err); exists {
		if err = deleteTable(ctx, client, name); err == nil {
			_, err = client.CreateTable(ctx, input)
		}
	}
	if err != nil {
		return fmt.Errorf("create table %s: %w", name, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 50 * time.Millisecond })
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, tableWithin); err != nil {
		return fmt.Errorf("wait for table %s: %w", name, err)
	}
	if shape.TTL == "" {
		return nil
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &shape.TTL, Enabled: aws.Bool(true)},
	})
	if err != nil {
		return fmt.Errorf("switch on the TTL of table %s: %w", name, err)
	}
	return nil
}

func deleteTable(ctx context.Context, client *dynamodb.Client, name string) error {
	if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
		return err
	}
	waiter := dynamodb.NewTableNotExistsWaiter(client, func(o *dynamodb.TableNotExistsWaiterOptions) { o.MinDelay = 50 * time.Millisecond })
	return waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, tableWithin)
}

func projection(index schema.Index) *types.Projection {
	if len(index.Projected) == 0 {
		return &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
	}
	return &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: index.Projected}
}
