package lambdatest

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// Mapping is a queue of wake-ups on an emulator, and calls a handler with batches of it as Lambda's mapping from SQS does: events of at
// most ten messages, no more than so many at once, and what the report names comes again. It is no fair queue: the emulator knows message
// groups, and hands messages out in the order in which they came.
type Mapping struct {
	client *sqs.Client
	url    string
}

// Mapping makes a queue, and makes it the queue of wake-ups of functions that start from now on.
func (s *Stage) Mapping(t *testing.T) *Mapping {
	t.Helper()
	endpoint := dynamotest.Endpoint(t, dynamotest.Ministack)
	m := &Mapping{client: sqs.New(sqs.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1", HTTPClient: sdkhttp.BufferedBody(nil),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})}
	made, err := m.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName:  aws.String(s.Outbox + "-wake-ups"),
		Attributes: map[string]string{"VisibilityTimeout": "900"}, // longer than an invocation takes
	})
	if err != nil {
		t.Fatal(err)
	}
	m.url = aws.ToString(made.QueueUrl)
	t.Setenv("AWS_ENDPOINT_URL_SQS", endpoint)
	t.Setenv("WAKE_UP_QUEUE_URL", m.url)
	return m
}

// Send puts wake-ups into the queue, in their order.
func (m *Mapping) Send(t *testing.T, wakeUps ...sqsqueue.WakeUp) {
	t.Helper()
	for batch := range slices.Chunk(wakeUps, environment.BatchRecordsMax) {
		for _, err := range sqsqueue.Send(t.Context(), m.client, m.url, batch) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Run has up to so many invocations of the handler at once, each for timeout at the most, until ctx ends and the last one has returned.
// An invocation that fails is an error of the test. A queue that can't be reached is asked again, as the mapping does.
func (m *Mapping) Run(ctx context.Context, t *testing.T, h awslambda.Handler, atOnce int, timeout time.Duration) {
	t.Helper()
	var pollers sync.WaitGroup
	for range atOnce {
		pollers.Go(func() {
			for ctx.Err() == nil {
				if err := m.once(ctx, t, h, timeout); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	pollers.Wait()
}

// pollEvery is the pause after a poll that found nothing. A poll that waits at the queue would outlast ctx.
const pollEvery = 10 * time.Millisecond

// once receives a batch and invokes the handler with it. A batch that was received is handled, also when ctx ends. What the report names is
// visible again at once: a test does not wait as long as an invocation may take.
func (m *Mapping) once(ctx context.Context, t *testing.T, h awslambda.Handler, timeout time.Duration) error {
	t.Helper()
	// A poll whose caller has gone may take messages all the same, and then nobody has them until they are visible again.
	out, err := m.client.ReceiveMessage(context.WithoutCancel(ctx), &sqs.ReceiveMessageInput{
		QueueUrl: &m.url, MaxNumberOfMessages: environment.BatchRecordsMax,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil || len(out.Messages) == 0 {
		if err != nil {
			t.Logf("a poll of the queue failed, and is made again: %v", err)
		}
		time.Sleep(pollEvery)
		return nil
	}
	event, err := json.Marshal(m.event(out.Messages))
	if err != nil {
		return err
	}
	invocation, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	raw, err := h.Invoke(invocation, event)
	if err != nil {
		return fmt.Errorf("an invocation with %d messages: %w", len(out.Messages), err)
	}
	var report events.SQSEventResponse
	if err := json.Unmarshal(raw, &report); err != nil {
		return fmt.Errorf("the report is no JSON: %w", err)
	}
	for _, message := range out.Messages {
		err := m.end(invocation, message, slices.ContainsFunc(report.BatchItemFailures, func(f events.SQSBatchItemFailure) bool {
			return f.ItemIdentifier == aws.ToString(message.MessageId)
		}))
		if err != nil {
			t.Logf("a message of the queue was not ended, and comes again: %v", err)
		}
	}
	return nil
}

// end deletes a message, or makes it visible where it failed.
func (m *Mapping) end(ctx context.Context, message types.Message, failed bool) error {
	if failed {
		_, err := m.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &m.url, ReceiptHandle: message.ReceiptHandle})
		return err
	}
	_, err := m.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &m.url, ReceiptHandle: message.ReceiptHandle})
	return err
}

// event is what Lambda makes of messages: see events/worker-queue.json.
func (m *Mapping) event(messages []types.Message) (event events.SQSEvent) {
	for _, message := range messages {
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: aws.ToString(message.MessageId), ReceiptHandle: aws.ToString(message.ReceiptHandle), Body: aws.ToString(message.Body),
			Attributes: message.Attributes, MessageAttributes: map[string]events.SQSMessageAttribute{}, Md5OfBody: aws.ToString(message.MD5OfBody),
			EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:000000000000:" + path.Base(m.url), AWSRegion: "us-east-1",
		})
	}
	return event
}
