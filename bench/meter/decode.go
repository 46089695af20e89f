package meter

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// wireInput is of a call's input what the rules need, as it is sent.
type wireInput struct {
	wireWrite
	ConsistentRead *bool
	TransactItems  []struct{ Put, Update, Delete, ConditionCheck *wireWrite }
	RequestItems   map[string]struct {
		Keys           []wireItem
		ConsistentRead *bool
	}
}

type wireWrite struct {
	TableName *string
	Key, Item wireItem
}

// decode returns the SDK's input of a call, with what the rules need of it.
func decode(operation string, body []byte) (any, error) {
	var in wireInput
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	switch operation {
	case "GetItem":
		return &dynamodb.GetItemInput{TableName: in.TableName, Key: in.Key, ConsistentRead: in.ConsistentRead}, nil
	case "BatchGetItem":
		batch := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{}}
		for table, asked := range in.RequestItems {
			keys := types.KeysAndAttributes{ConsistentRead: asked.ConsistentRead}
			for _, key := range asked.Keys {
				keys.Keys = append(keys.Keys, key)
			}
			batch.RequestItems[table] = keys
		}
		return batch, nil
	case "PutItem":
		return &dynamodb.PutItemInput{TableName: in.TableName, Item: in.Item}, nil
	case "UpdateItem":
		return &dynamodb.UpdateItemInput{TableName: in.TableName, Key: in.Key}, nil
	case "TransactWriteItems":
		transaction := &dynamodb.TransactWriteItemsInput{}
		for _, w := range in.TransactItems {
			var item types.TransactWriteItem // neither put nor update: the meter says so
			switch {
			case w.Put != nil:
				item.Put = &types.Put{TableName: w.Put.TableName, Item: w.Put.Item}
			case w.Update != nil:
				item.Update = &types.Update{TableName: w.Update.TableName, Key: w.Update.Key}
			}
			transaction.TransactItems = append(transaction.TransactItems, item)
		}
		return transaction, nil
	}
	return nil, fmt.Errorf("%w for %q", errNoRule, operation)
}

// errNoRule is about an operation that has no price here.
var errNoRule = errors.New("no rule")

// wireItem is an item as it is sent.
type wireItem Item

// UnmarshalJSON reads DynamoDB's JSON.
func (it *wireItem) UnmarshalJSON(data []byte) error {
	var raw map[string]wireValue
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*it = wireItem{}
	for name, v := range raw {
		(*it)[name] = v.AttributeValue
	}
	return nil
}

type wireValue struct{ types.AttributeValue }

// UnmarshalJSON reads {"S": "text"} and its like; sets are not written here.
func (v *wireValue) UnmarshalJSON(data []byte) error {
	var raw struct {
		S, N *string
		B    []byte
		BOOL *bool
		NULL *bool
		L    []wireValue
		M    wireItem
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	switch {
	case raw.S != nil:
		v.AttributeValue = &types.AttributeValueMemberS{Value: *raw.S}
	case raw.N != nil:
		v.AttributeValue = &types.AttributeValueMemberN{Value: *raw.N}
	case raw.B != nil:
		v.AttributeValue = &types.AttributeValueMemberB{Value: raw.B}
	case raw.BOOL != nil:
		v.AttributeValue = &types.AttributeValueMemberBOOL{Value: *raw.BOOL}
	case raw.NULL != nil:
		v.AttributeValue = &types.AttributeValueMemberNULL{Value: *raw.NULL}
	case raw.M != nil:
		v.AttributeValue = &types.AttributeValueMemberM{Value: raw.M}
	case raw.L != nil:
		list := &types.AttributeValueMemberL{}
		for _, element := range raw.L {
			list.Value = append(list.Value, element.AttributeValue)
		}
		v.AttributeValue = list
	default:
		return fmt.Errorf("no rule for the value %s", data)
	}
	return nil
}
