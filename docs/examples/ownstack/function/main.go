// Command function is every Lambda function of the service: the API that takes orders, and what has the warehouse ship them.
package main

import (
	"context"
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/idem-go/idem-aws/idem/lambdaapp"

	"example.com/shop/service"
)

func main() {
	ctx := context.Background()
	app := must(lambdaapp.New(must(service.Configure(ctx))))
	lambda.Start(must(app.Handler(ctx, must(service.API(app)))))
}

// must ends a function that can't start.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
