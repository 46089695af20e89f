// Package sqsqueue keeps the wake-ups and dead letters of package outbox in two SQS queues. A [Queue] sends both, a
// [Consumer] receives wake-ups for outbox.Runner.Run in containers, and [Read] reads the wake-up in a message that
// Lambda was given.
//
// Use it where several processes deliver messages. A service of one process can use package memqueue. A queue message
// carries no payload, only the id of an outbox message, so losing or doubling one changes nothing.
// idemconstruct.NewQueues, of the module infra, creates the queues.
package sqsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// Queue implements [outbox.BatchWakeUps] and [outbox.DeadLetters] on two SQS standard queues, whose wake-ups are grouped by tenant
// (see [Group]). It is safe for concurrent use.
type Queue struct {
	client             *sqs.Client
	wakeUpURL, deadURL string
}

// New returns a queue that sends wake-ups to wakeUpURL and dead letters to deadURL.
func New(client *sqs.Client, wakeUpURL, deadURL string) (*Queue, error) {
	if client == nil || wakeUpURL == "" || deadURL == "" {
		return nil, &idem.ConfigError{Field: "client, wakeUpURL, deadURL", Value: fmt.Sprintf("%q, %q", wakeUpURL, deadURL), Rule: "must be given"}
	}
	return &Queue{client: client, wakeUpURL: wakeUpURL, deadURL: deadURL}, nil
}

// wakeUp is the body of a wake-up, and the part of a dead letter that makes it one again when it is redriven.
type wakeUp struct {
	Message idem.MessageID `json:"message"`
}

// Schedule implements [outbox.WakeUps]. SQS delays end at 15 minutes, so a longer one wakes the message early; fractions
// of a second are rounded up, so that none comes before its time.
func (q *Queue) Schedule(ctx context.Context, tenant string, id idem.MessageID, delay time.Duration) error {
	delay = min(max(delay, 0), outbox.WakeUpDelayMax)
	seconds := int32((delay + time.Second - 1) / time.Second)
	return q.send(ctx, q.wakeUpURL, Group(tenant), wakeUp{id}, seconds)
}

// Bury implements [outbox.DeadLetters].
func (q *Queue) Bury(ctx context.Context, letter outbox.DeadLetter) error {
	return q.send(ctx, q.deadURL, "", letter, 0)
}

func (q *Queue) send(ctx context.Context, url, group string, body any, delaySeconds int32) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("sqsqueue: encode: %w", err)
	}
	input := &sqs.SendMessageInput{QueueUrl: aws.String(url), MessageBody: aws.String(string(raw)), DelaySeconds: delaySeconds}
	if group != "" {
		input.MessageGroupId = aws.String(group)
	}
	if _, err := q.client.SendMessage(ctx, input); err != nil {
		return fmt.Errorf("sqsqueue: send: %w", err)
	}
	return nil
}

// ErrBody is returned for a queue message that is no wake-up.
var ErrBody = errors.New("sqsqueue: not a wake-up")

// Read returns the message that a queue message's body wakes, or [ErrBody]. Members that it does not know are ignored:
// a dead letter that is redriven is a wake-up too.
func Read(body string) (idem.MessageID, error) {
	var w wakeUp
	if err := json.Unmarshal([]byte(body), &w); err != nil {
		return "", fmt.Errorf("%w: %w", ErrBody, err)
	}
	if _, _, err := w.Message.Operation(); err != nil {
		return "", fmt.Errorf("%w: %w", ErrBody, err)
	}
	return w.Message, nil
}
