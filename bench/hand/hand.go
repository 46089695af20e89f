// Package hand makes the calls of the AWS SDK that idem made for a request once more, for other keys, as a service without
// idem could make them.
package hand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

type item = map[string]types.AttributeValue

// Recorder keeps the calls that a client makes. It is for one goroutine.
type Recorder struct{ calls []Call }

// Call is one call, and whether it ended with an error.
type Call struct {
	Input  any
	Failed bool
}

// Name is the API's.
func (c Call) Name() string {
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", c.Input), "*dynamodb."), "Input")
}

// Option makes a client be recorded.
func (r *Recorder) Option(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Recorder",
			func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				out, metadata, err := next.HandleInitialize(ctx, in)
				r.calls = append(r.calls, Call{in.Parameters, err != nil})
				return out, metadata, err
			}), middleware.After)
	})
}

// Take returns the calls since the last take.
func (r *Recorder) Take() []Call {
	calls := r.calls
	r.calls = nil
	return calls
}

// Template is a request's calls as idem made them once, with places for what differs from request to request.
type Template struct {
	calls []Call
	// key and operation are the record's key and the operation id that stand in the calls, client is the client's key.
	key, operation, client string
}

// NewTemplate finds the places in the calls, in which the client's key may stand too. It returns an error for calls without a
// record.
func NewTemplate(calls []Call, client string) (Template, error) {
	t := Template{calls: calls, client: client}
	for _, c := range calls {
		var items []item
		switch in := c.Input.(type) {
		case *dynamodb.GetItemInput:
			items = append(items, in.Key)
		case *dynamodb.PutItemInput:
			items = append(items, in.Item)
		case *dynamodb.UpdateItemInput:
			items = append(items, in.Key)
		case *dynamodb.TransactWriteItemsInput:
			for _, w := range in.TransactItems {
				if w.Put != nil {
					items = append(items, w.Put.Item)
				}
			}
		default:
			return t, fmt.Errorf("a call with a %T has no counterpart by hand", c.Input)
		}
		for _, it := range items {
			if id, err := dynamo.OperationOf(it); err == nil && t.operation == "" {
				t.operation = string(id)
			}
			if key, ok := it[schema.RecordKey].(*types.AttributeValueMemberS); ok && t.key == "" {
				t.key = key.Value
			}
		}
	}
	if t.key == "" {
		return t, fmt.Errorf("there is no record in %d calls", len(calls))
	}
	return t, nil
}

// Hand makes the calls itself, as it could be written without idem: it builds each item, and sends it.
type Hand struct {
	Client   *dynamodb.Client
	Template Template
}

// Send makes the calls for a key, of as many bytes as the record's key. Where idem's call met a condition that failed, its
// own must: that is how a replay is found.
func (h Hand) Send(ctx context.Context, key string) error {
	for _, c := range h.Template.calls {
		var err error
		switch in := c.Input.(type) {
		case *dynamodb.GetItemInput:
			made := *in
			made.Key = h.fill(in.Key, key)
			_, err = h.Client.GetItem(ctx, &made)
		case *dynamodb.PutItemInput:
			made := *in
			made.Item, made.ExpressionAttributeValues = h.fill(in.Item, key), h.fill(in.ExpressionAttributeValues, key)
			_, err = h.Client.PutItem(ctx, &made)
		case *dynamodb.UpdateItemInput:
			made := *in
			made.Key, made.ExpressionAttributeValues = h.fill(in.Key, key), h.fill(in.ExpressionAttributeValues, key)
			_, err = h.Client.UpdateItem(ctx, &made)
		case *dynamodb.TransactWriteItemsInput:
			_, err = h.Client.TransactWriteItems(ctx, h.transaction(in, key))
		}
		if _, lost := errors.AsType[*types.ConditionalCheckFailedException](err); lost != c.Failed || err != nil && !lost {
			return fmt.Errorf("%s: %v, of idem's own it is %v that it fails", c.Name(), err, c.Failed)
		}
	}
	return nil
}

func (h Hand) transaction(in *dynamodb.TransactWriteItemsInput, key string) *dynamodb.TransactWriteItemsInput {
	made := *in
	made.TransactItems = make([]types.TransactWriteItem, len(in.TransactItems))
	for i, w := range in.TransactItems {
		if w.Put != nil {
			put := *w.Put
			put.Item, put.ExpressionAttributeValues = h.fill(put.Item, key), h.fill(put.ExpressionAttributeValues, key)
			made.TransactItems[i].Put = &put
		}
		if w.Update != nil {
			update := *w.Update
			update.Key, update.ExpressionAttributeValues = h.fill(update.Key, key), h.fill(update.ExpressionAttributeValues, key)
			made.TransactItems[i].Update = &update
		}
	}
	if token := aws.ToString(in.ClientRequestToken); token != "" {
		made.ClientRequestToken = aws.String(key[len(key)-len(token):])
	}
	return &made
}

func (h Hand) fill(it item, key string) item { return h.Template.Fill(it, key) }

// Fill builds an item for the key. It makes every map and every value anew, as code that builds an item does: the text of a
// number is formatted for each request, random bytes and hashes are made for each. What a request need not make anew, such
// as the texts of conditions, is not.
func (t Template) Fill(it item, key string) item {
	if it == nil {
		return nil
	}
	filled := make(item, len(it))
	for name, value := range it {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			text := v.Value
			switch text {
			case t.key, t.client:
				text = key
			case t.operation:
				text = "op_" + key + t.operation[len("op_")+len(key):]
			}
			filled[name] = &types.AttributeValueMemberS{Value: text}
		case *types.AttributeValueMemberN:
			filled[name] = &types.AttributeValueMemberN{Value: strings.Clone(v.Value)}
		case *types.AttributeValueMemberB:
			filled[name] = &types.AttributeValueMemberB{Value: bytes.Clone(v.Value)}
		default:
			filled[name] = value
		}
	}
	return filled
}
