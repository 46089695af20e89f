package awslambda

import "github.com/aws/aws-lambda-go/events"

// Body returns the body of a queue message: the input that function.Each and function.EachRaw take in a handler for [SQS]. It never
// fails.
func Body(message events.SQSMessage) ([]byte, error) { return []byte(message.Body), nil }
