// Package transaction is the program of docs/guides/one-transaction.md: a handler whose writes, message and answer are committed
// together, on DynamoDB.
package transaction

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/docs/examples/internal/protection"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// order is what a customer buys.
type order struct {
	ID     string `json:"id"`
	Item   string `json:"item"`
	Amount int    `json:"amount"`
}

// NewService protects POST /orders.
func NewService(engine *idem.Engine) (http.Handler, error) {
	mw, err := middleware.New(engine, middleware.Config{Identify: protection.Identify})
	if err != nil {
		return nil, err
	}
	operation := idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	create, err := mw.Handle(operation, middleware.Route{}, create)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", create)
	return mux, nil
}

func create(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
	var placed order
	if err := json.Unmarshal(r.Body, &placed); err != nil || placed.Item == "" || placed.Amount <= 0 {
		return idem.JSON(http.StatusBadRequest, map[string]string{"error": "an order has an item and an amount"})
	}
	placed.ID = string(tx.OperationID()) // never what the body says

	tx.Write(debit(tx.Tenant(), placed.Amount), insert(placed)) // two business writes,
	tx.Send("orders.ship", []byte(placed.ID))                   // a message that asks for the shipment,
	return idem.JSON(http.StatusCreated, placed)                // and the answer: all of them, or none
}

// debit takes the amount from the customer's account, if the account has it.
func debit(customer string, amount int) idem.Write {
	return dynamo.Update(types.Update{
		TableName:                 aws.String("shop-accounts"),
		Key:                       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: customer}},
		UpdateExpression:          aws.String("SET balance = balance - :amount"),
		ConditionExpression:       aws.String("balance >= :amount"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":amount": number(amount)},
	}, idem.Reject(idem.NewProblem(http.StatusPaymentRequired, "insufficient_funds", "Insufficient funds",
		"The account does not hold the amount.")))
}

// insert is the row of an order.
func insert(placed order) idem.Write {
	return dynamo.Put(types.Put{
		TableName: aws.String("shop-orders"),
		Item: map[string]types.AttributeValue{
			"id":     &types.AttributeValueMemberS{Value: placed.ID},
			"item":   &types.AttributeValueMemberS{Value: placed.Item},
			"amount": number(placed.Amount),
		},
	})
}

func number(n int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}
