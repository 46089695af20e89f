package meter

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// Shapes are those of all tables of an endpoint, by name, as far as prices need them.
func Shapes(ctx context.Context, client *dynamodb.Client) (map[string]schema.Table, error) {
	shapes := map[string]schema.Table{}
	for pages := dynamodb.NewListTablesPaginator(client, &dynamodb.ListTablesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range page.TableNames {
			out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
			if err != nil {
				return nil, err
			}
			shape := schema.Table{Key: keyOf(out.Table.KeySchema, types.KeyTypeHash)}
			for _, index := range out.Table.GlobalSecondaryIndexes { // one at the most
				shape.Index = schema.Index{
					Name: aws.ToString(index.IndexName), Projected: index.Projection.NonKeyAttributes,
					Partition: keyOf(index.KeySchema, types.KeyTypeHash), Sort: keyOf(index.KeySchema, types.KeyTypeRange),
				}
			}
			shapes[name] = shape
		}
	}
	return shapes, nil
}

func keyOf(elements []types.KeySchemaElement, kind types.KeyType) string {
	for _, e := range elements {
		if e.KeyType == kind {
			return aws.ToString(e.AttributeName)
		}
	}
	return ""
}
