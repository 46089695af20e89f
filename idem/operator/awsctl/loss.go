package awsctl

import (
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// lossOf takes away the instant of an earlier loss of data ([undate]), and says what a person has to do then: nothing executes on the
// tables before.
func lossOf(ctx context.Context, deployment Deployment, suffix string, restored bool) (todo string, err error) {
	open, err := undate(ctx, deployment.dynamoDB(), deployment.name(Idempotency)+suffix, restored)
	if open {
		todo = "; nothing executes on them before refuse-before is set in them"
	}
	return todo, err
}

// undate has nobody say up to when data was lost, where the instant that the table holds is from before the table was made: it was copied
// with everything else, and speaks of an earlier loss. Keys that this loss has taken would execute again. With restored a table that says
// nothing has nobody say it either, because a restore always loses something. An instant that was set in the table stays, so that this
// may be repeated. The result is whether nobody has said it.
func undate(ctx context.Context, client *dynamodb.Client, name string, restored bool) (bool, error) {
	there, err := settled(ctx, client, name)
	if err != nil {
		return false, err
	}
	undated := "attribute_not_exists(#at) OR #at < :made"
	if !restored {
		undated = "attribute_exists(" + schema.RecordKey + ") AND (" + undated + ")"
	}
	_, err = client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &name, Key: map[string]types.AttributeValue{schema.RecordKey: &types.AttributeValueMemberS{Value: schema.LossKey}},
		UpdateExpression: aws.String("REMOVE #at"), ConditionExpression: &undated,
		ExpressionAttributeNames: map[string]string{"#at": schema.RefuseBefore},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":made": &types.AttributeValueMemberN{Value: strconv.FormatInt(aws.ToTime(there.CreationDateTime).UnixMilli(), 10)},
		},
	})
	if isA[*types.ConditionalCheckFailedException](err) {
		return false, nil
	}
	return err == nil, about(name, err)
}
