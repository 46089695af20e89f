package lambdaapp_test

import (
	"context"
	"log"
	"net/http"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// The main function of every Lambda function of an application. The Example is compiled only: the variables, the tables
// and Lambda's runtime are there in a deployment alone.
func Example() {
	app, err := lambdaapp.New(lambdaapp.Config{
		AWS: aws.Config{Region: "eu-central-1"}, // from LoadDefaultConfig of the SDK's package config
	})
	if err != nil {
		log.Fatal(err)
	}
	mw, err := middleware.New(app.Engine, middleware.Config{
		Logger:   app.Logger,
		Identify: func(*http.Request) (middleware.Identity, error) { return middleware.Identity{Tenant: "shop"}, nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	operation := idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	create, err := mw.Handle(operation, middleware.Route{}, func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
		return idem.JSON(http.StatusCreated, map[string]string{"id": string(tx.OperationID())})
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", create)

	handler, err := app.Handler(context.Background(), mux)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(handler)
}
