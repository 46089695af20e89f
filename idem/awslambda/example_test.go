package awslambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/idem-go/idem-aws/idem/awslambda"
)

// An http.Handler serves a function URL's event. A function gives the adapter to lambda.Start; here the event is made by hand.
func ExampleHTTP() {
	handler := awslambda.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"))
	}), awslambda.Config{})

	event, err := json.Marshal(events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: "/orders", Headers: map[string]string{"idempotency-key": `"order-17"`},
		RequestContext: events.LambdaFunctionURLRequestContext{
			DomainName: "abc.lambda-url.eu-central-1.on.aws",
			HTTP:       events.LambdaFunctionURLRequestContextHTTPDescription{Method: "POST", Path: "/orders", SourceIP: "203.0.113.7"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	reply, err := handler.Invoke(context.Background(), event)
	if err != nil {
		log.Fatal(err)
	}
	var response events.LambdaFunctionURLResponse
	if err := json.Unmarshal(reply, &response); err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.StatusCode, response.Body)
	// Output: 201 POST /orders "order-17"
}

// Each message of a batch succeeds or fails by itself. SQS delivers those again that failed.
func ExampleSQS() {
	handler := awslambda.SQS(func(_ context.Context, message events.SQSMessage) error {
		if message.Body == "damaged" {
			return errors.New("not an order")
		}
		return nil
	}, awslambda.Config{})

	event, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "first", Body: "order-17", EventSource: awslambda.SourceSQS},
		{MessageId: "second", Body: "damaged", EventSource: awslambda.SourceSQS},
	}})
	if err != nil {
		log.Fatal(err)
	}
	reply, err := handler.Invoke(context.Background(), event)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(reply))
	// Output: {"batchItemFailures":[{"itemIdentifier":"second"}]}
}
