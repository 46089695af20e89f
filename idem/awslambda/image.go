package awslambda

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Inserted makes a handler for [Stream] of one for new items: it skips every other record. The mapping's filter does that
// too; not everywhere.
func Inserted(handle func(ctx context.Context, item map[string]types.AttributeValue) error) func(context.Context, events.DynamoDBEventRecord) error {
	return func(ctx context.Context, record events.DynamoDBEventRecord) error {
		if record.EventName != string(events.DynamoDBOperationTypeInsert) {
			return nil
		}
		item, err := Image(record)
		if err != nil {
			return err
		}
		return handle(ctx, item)
	}
}

// ErrImage is returned for a record without an image, or with one that no item can have.
var ErrImage = errors.New("awslambda: invalid stream image")

// imageDepthMax is DynamoDB's bound on nesting.
const imageDepthMax = 32

// Image returns the item as it stands after the change, in the SDK's form; for a removal, as it stood before. It returns
// [ErrImage].
func Image(record events.DynamoDBEventRecord) (map[string]types.AttributeValue, error) {
	image := record.Change.NewImage
	if record.EventName == string(events.DynamoDBOperationTypeRemove) {
		image = record.Change.OldImage
	}
	if len(image) == 0 {
		return nil, fmt.Errorf("%w: the record has no image: the stream's view type must be NEW_IMAGE", ErrImage)
	}
	return item(image, 0)
}

func item(attributes map[string]events.DynamoDBAttributeValue, depth int) (map[string]types.AttributeValue, error) {
	converted := make(map[string]types.AttributeValue, len(attributes))
	for name, value := range attributes {
		v, err := attribute(value, depth)
		if err != nil {
			return nil, err
		}
		converted[name] = v
	}
	return converted, nil
}

func attribute(v events.DynamoDBAttributeValue, depth int) (types.AttributeValue, error) {
	if depth > imageDepthMax {
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrImage, imageDepthMax)
	}
	if v.DataType() == events.DataTypeNull {
		return &types.AttributeValueMemberNULL{Value: true}, nil
	}
	if v.IsNull() { // the zero value: an attribute without a type
		return nil, fmt.Errorf("%w: an attribute has no type", ErrImage)
	}
	switch v.DataType() {
	case events.DataTypeString:
		return &types.AttributeValueMemberS{Value: v.String()}, nil
	case events.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}, nil
	case events.DataTypeBinary:
		return &types.AttributeValueMemberB{Value: v.Binary()}, nil
	case events.DataTypeBoolean:
		return &types.AttributeValueMemberBOOL{Value: v.Boolean()}, nil
	case events.DataTypeStringSet:
		return &types.AttributeValueMemberSS{Value: v.StringSet()}, nil
	case events.DataTypeNumberSet:
		return &types.AttributeValueMemberNS{Value: v.NumberSet()}, nil
	case events.DataTypeBinarySet:
		return &types.AttributeValueMemberBS{Value: v.BinarySet()}, nil
	case events.DataTypeMap:
		m, err := item(v.Map(), depth+1)
		return &types.AttributeValueMemberM{Value: m}, err
	case events.DataTypeList:
		list := make([]types.AttributeValue, len(v.List()))
		for i, element := range v.List() {
			var err error
			if list[i], err = attribute(element, depth+1); err != nil {
				return nil, err
			}
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	case events.DataTypeNull: // above
	}
	return nil, fmt.Errorf("%w: an attribute's type is not known", ErrImage)
}
