package sqsqueue_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
)

// A container receives wake-ups with a Consumer, which outbox.Runner.Run takes. Nothing is received here: that needs the
// queues.
func ExampleNew() {
	client := sqs.NewFromConfig(aws.Config{Region: "eu-central-1"}) // from LoadDefaultConfig of the SDK's package config
	queue, err := sqsqueue.New(client,
		"https://sqs.eu-central-1.amazonaws.com/111122223333/wake-ups",
		"https://sqs.eu-central-1.amazonaws.com/111122223333/dead-letters")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := queue.Consumer(sqsqueue.ConsumerConfig{}); err != nil {
		log.Fatal(err)
	}
}

// A Lambda function reads which message a queue's record is about. Another body is not to be delivered.
func ExampleRead() {
	id, err := sqsqueue.Read(`{"message":"op_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.1"}`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id)
	_, err = sqsqueue.Read(`{"order":17}`)
	fmt.Println("not a wake-up:", errors.Is(err, sqsqueue.ErrBody))
	// Output:
	// op_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.1
	// not a wake-up: true
}
