package service

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
)

// The states of an order.
const (
	statePlaced  = "placed"
	stateShipped = "shipped"
	stateRefused = "refused" // the warehouse will not ship it
)

type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Item     string `json:"item"`
	State    string `json:"state"`
	// Shipment is the warehouse's name for the shipment.
	Shipment string `json:"shipment,omitempty"`
}

// orders is the service's own table. The client is for reading; writes go through idem.
type orders struct {
	table  string
	client *dynamodb.Client
}

// insert is a write of the operation's transaction. The id is the operation's, so no other order has it.
func (o orders) insert(placed order) idem.Write {
	return dynamo.Put(types.Put{TableName: &o.table, Item: map[string]types.AttributeValue{
		"id": text(placed.ID), "customer": text(placed.Customer), "item": text(placed.Item), "state": text(placed.State),
	}})
}

// end is a write of a settlement's transaction.
func (o orders) end(id, state, shipment string) idem.Write {
	return dynamo.Update(types.Update{
		TableName: &o.table, Key: map[string]types.AttributeValue{"id": text(id)},
		UpdateExpression:         aws.String("SET #state = :state, shipment = :shipment"),
		ExpressionAttributeNames: map[string]string{"#state": "state"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":state": text(state), ":shipment": text(shipment),
		},
	})
}

// find returns a customer's order; nil where they have none of this id.
func (o orders) find(ctx context.Context, customer, id string) (*order, error) {
	out, err := o.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &o.table, Key: map[string]types.AttributeValue{"id": text(id)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil || value(out.Item, "customer") != customer {
		return nil, err
	}
	return &order{
		ID: id, Customer: customer, Item: value(out.Item, "item"), State: value(out.Item, "state"), Shipment: value(out.Item, "shipment"),
	}, nil
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func value(item map[string]types.AttributeValue, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
