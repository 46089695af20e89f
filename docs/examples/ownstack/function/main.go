// Command function is every Lambda function of the service: the API that takes orders, and what has the warehouse ship them.
package main

import (
	"context"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/outbox"
)

func main() {
	ctx := context.Background()
	orders := orders{table: needed("ORDERS_TABLE")}
	app := must(lambdaapp.New(lambdaapp.Config{
		AWS:    must(config.LoadDefaultConfig(ctx)),
		Topics: []outbox.Topic{must(shipments(orders, needed("WAREHOUSE_URL")))},
	}))
	orders.client = app.DynamoDB
	lambda.Start(must(app.Handler(ctx, must(routes(app.Engine, app.Logger, orders)))))
}

// needed is the value of a variable that must be set.
func needed(name string) string {
	value := os.Getenv(name)
	if value == "" {
		log.Fatalf("%s is not set", name)
	}
	return value
}

// must ends a function that can't start.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
