package main

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func TestAnOrderThatIsSentTwiceIsPlacedOnce(t *testing.T) {
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]), wirefault.Patiently)
	tables, err := dynamotest.CreateTables(t.Context(), client, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if err := dynamotest.CreateTable(t.Context(), client, "shop-orders", schema.Table{Key: "id"}); err != nil {
		t.Fatal(err)
	}
	store := must(dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox}))
	service := must(routes(store))

	first := check.Send(t, service, "POST", "/orders", "order-17", `{"item":"book"}`).Want(t, 201, "executed")
	again := check.Send(t, service, "POST", "/orders", "order-17", `{"item": "book"}`).Want(t, 201, "replayed")
	if again.Body != first.Body {
		t.Errorf("the retry got %s, the first request %s", again.Body, first.Body)
	}
	check.Send(t, service, "POST", "/orders", "order-17", `{"item":"pen"}`).Want(t, 422, "mismatch")
	placed, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("shop-orders")})
	if err != nil || placed.Count != 1 {
		t.Errorf("%d orders were placed, want 1 (%v)", placed.Count, err)
	}
}
