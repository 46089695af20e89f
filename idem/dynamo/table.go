package dynamo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// TableError says in what a table differs from the shape that it must have.
type TableError struct {
	// Table is the table's name.
	Table string
	// Differences says of each difference what was found and what is wanted. It is never empty.
	Differences []string
}

// Error implements error.
func (e *TableError) Error() string {
	return fmt.Sprintf("dynamo: table %s: %s", e.Table, strings.Join(e.Differences, "; "))
}

// CheckTable compares a table with its shape: status, keys, index, time to live and stream. It is for tables that something else
// has made: restored ones, which come without time to live and stream, copies, and those of another tool. It makes two calls,
// DescribeTable and DescribeTimeToLive, and returns what the first one says.
//
// Errors: a [*TableError] that lists every difference, and the SDK's. What is in the table is not looked at.
func CheckTable(ctx context.Context, client *dynamodb.Client, name string, shape schema.Table) (*types.TableDescription, error) {
	table, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		return nil, fmt.Errorf("dynamo: table %s: %w", name, err)
	}
	ttl, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		return nil, fmt.Errorf("dynamo: table %s: %w", name, err)
	}
	if found := differences(table.Table, ttl.TimeToLiveDescription, shape); len(found) > 0 {
		return table.Table, &TableError{name, found}
	}
	return table.Table, nil
}

// differences is pure.
func differences(table *types.TableDescription, ttl *types.TimeToLiveDescription, shape schema.Table) (found []string) {
	demand := func(what string, got, want any) {
		if got != want {
			found = append(found, fmt.Sprintf("%s is %v, must be %v", what, got, want))
		}
	}
	demand("its status", table.TableStatus, types.TableStatusActive)
	demand("its key", keysOf(table.KeySchema, table.AttributeDefinitions), shape.Key+" S")
	live := ""
	if ttl != nil && (ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabled || ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		live = aws.ToString(ttl.AttributeName)
	}
	demand("its time to live", orNone(live), orNone(shape.TTL))
	if shape.StreamNewImage {
		demand("its stream", streamOf(table), types.StreamViewTypeNewImage)
	}
	if shape.Index.Name != "" {
		found = append(found, indexDifferences(table, shape.Index)...)
	}
	return found
}

// streamOf is the view of a table's stream; that of both images has the new one.
func streamOf(table *types.TableDescription) types.StreamViewType {
	switch s := table.StreamSpecification; {
	case s == nil || !aws.ToBool(s.StreamEnabled):
		return "off"
	case s.StreamViewType == types.StreamViewTypeNewAndOldImages:
		return types.StreamViewTypeNewImage
	default:
		return s.StreamViewType
	}
}

func indexDifferences(table *types.TableDescription, shape schema.Index) (found []string) {
	n := slices.IndexFunc(table.GlobalSecondaryIndexes, func(i types.GlobalSecondaryIndexDescription) bool { return aws.ToString(i.IndexName) == shape.Name })
	if n < 0 {
		return []string{"it has no index " + shape.Name}
	}
	index := table.GlobalSecondaryIndexes[n]
	if index.IndexStatus != types.IndexStatusActive && index.IndexStatus != "" { // an emulator says nothing
		found = append(found, fmt.Sprintf("the status of its index %s is %s, must be ACTIVE", shape.Name, index.IndexStatus))
	}
	if got, want := keysOf(index.KeySchema, table.AttributeDefinitions), shape.Partition+" S, "+shape.Sort+" N"; got != want {
		found = append(found, fmt.Sprintf("the key of its index %s is %s, must be %s", shape.Name, got, want))
	}
	for _, attribute := range shape.Projected {
		if p := index.Projection; p == nil || p.ProjectionType != types.ProjectionTypeAll && !slices.Contains(p.NonKeyAttributes, attribute) {
			found = append(found, fmt.Sprintf("its index %s does not project %s", shape.Name, attribute))
		}
	}
	return found
}

// keysOf writes a key with its types: "q S, qa N".
func keysOf(keys []types.KeySchemaElement, attributes []types.AttributeDefinition) string {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b types.KeySchemaElement) int { return strings.Compare(string(a.KeyType), string(b.KeyType)) })
	var parts []string
	for _, k := range keys {
		kind := types.ScalarAttributeType("?")
		for _, a := range attributes {
			if aws.ToString(a.AttributeName) == aws.ToString(k.AttributeName) {
				kind = a.AttributeType
			}
		}
		parts = append(parts, aws.ToString(k.AttributeName)+" "+string(kind))
	}
	return strings.Join(parts, ", ")
}

func orNone(attribute string) string {
	if attribute == "" {
		return "off"
	}
	return "on " + attribute
}
