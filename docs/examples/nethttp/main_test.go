package main

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func TestProtectionTakesFifteenLines(t *testing.T) { check.Lines(t, "main.go", 15) }

func TestAnOrderThatIsSentTwiceIsPlacedOnce(t *testing.T) {
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]), wirefault.Patiently)
	if _, err := dynamotest.CreateTables(t.Context(), client, "shop"); err != nil {
		t.Fatal(err)
	}
	if err := dynamotest.CreateTable(t.Context(), client, ordersTable, schema.Table{Key: "pk"}); err != nil {
		t.Fatal(err)
	}
	service := newService(client)

	first := check.Send(t, service, "POST", "/orders", "order-17", `{"item":"book"}`).Want(t, 201, "executed")
	again := check.Send(t, service, "POST", "/orders", "order-17", `{"item": "book"}`).Want(t, 201, "replayed")
	if again.Body != first.Body || again.Header.Get("Location") != first.Header.Get("Location") {
		t.Errorf("the retry got %+v, the first request %+v", again, first)
	}
	check.Send(t, service, "POST", "/orders", "order-17", `{"item":"pen"}`).Want(t, 422, "mismatch")
	check.Send(t, service, "POST", "/orders", "", `{"item":"book"}`).Want(t, 400, "")
	check.Send(t, service, "GET", first.Header.Get("Location"), "", "").Want(t, 200, "")

	placed, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(ordersTable)})
	if err != nil || placed.Count != 1 {
		t.Errorf("%d orders were placed, want 1 (%v)", placed.Count, err)
	}

	chosen := check.Send(t, service, "POST", "/orders", "order-18", `{"id":"chosen","item":"book"}`).Want(t, 201, "executed")
	if chosen.Header.Get("Location") == "/orders/chosen" {
		t.Error("the client has chosen the order's id, and could write over an earlier order")
	}
}
