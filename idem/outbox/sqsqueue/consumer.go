package sqsqueue

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

const (
	// receiveSeconds is SQS's longest poll.
	receiveSeconds = 20
	// removeTimeout bounds the removal of a wake-up that was served; one that stays comes again, which is harmless.
	removeTimeout = 5 * time.Second
)

// ConsumerConfig is the configuration of a [Consumer]. The zero value of each field means its default.
type ConsumerConfig struct {
	// Visibility is how long others don't see a wake-up after it was received, and after each extension: past it a consumer that
	// has died is replaced. Default 1 min, whole seconds, 2 s..12 h.
	Visibility time.Duration
	// Max is how long a wake-up is held at most. Default 15 min; at most 12 h, which is SQS's bound.
	Max time.Duration
	// Pause waits, or returns the context's error. Default [idem.Pause].
	Pause func(context.Context, time.Duration) error
}

// Consumer hands out the wake-ups of a queue: an [outbox.Consumer]. It is safe for concurrent use.
type Consumer struct {
	queue *Queue
	cfg   ConsumerConfig
}

// Consumer returns what hands out the queue's wake-ups, or an [*idem.ConfigError].
func (q *Queue) Consumer(cfg ConsumerConfig) (*Consumer, error) {
	cfg.Visibility, cfg.Max = cmp.Or(cfg.Visibility, time.Minute), cmp.Or(cfg.Max, 15*time.Minute)
	if cfg.Pause == nil {
		cfg.Pause = idem.Pause
	}
	switch {
	case cfg.Visibility < 2*time.Second || cfg.Visibility > visibilityBound || cfg.Visibility%time.Second != 0:
		return nil, &idem.ConfigError{Field: "ConsumerConfig.Visibility", Value: cfg.Visibility, Rule: fmt.Sprintf("must be whole seconds, 2 s..%v", visibilityBound)}
	case cfg.Max < cfg.Visibility || cfg.Max > visibilityBound:
		return nil, &idem.ConfigError{Field: "ConsumerConfig.Max", Value: cfg.Max, Rule: fmt.Sprintf("must be ConsumerConfig.Visibility..%v", visibilityBound)}
	}
	return &Consumer{q, cfg}, nil
}

// Receive implements [outbox.Consumer]: one poll of at most 20 s, for at most 10. What is no wake-up is left to the queue's
// redrive policy, which makes a dead letter of it.
func (c *Consumer) Receive(ctx context.Context, most int) ([]outbox.Received, error) {
	out, err := c.queue.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &c.queue.wakeUpURL, MaxNumberOfMessages: int32(min(most, batchEntriesMax)), WaitTimeSeconds: receiveSeconds,
		VisibilityTimeout: int32(c.cfg.Visibility / time.Second),
	})
	switch {
	case ctx.Err() != nil:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("sqsqueue: receive: %w", err)
	}
	var received []outbox.Received
	for _, m := range out.Messages {
		if id, err := Read(aws.ToString(m.Body)); err == nil {
			received = append(received, outbox.Received{Message: id, Hold: c.hold(m)})
		}
	}
	return received, nil
}

// hold keeps a received wake-up invisible to other consumers for as long as it is served, and deletes it where that succeeds. A
// queue counts each time it hands a wake-up out; without this a delivery that takes longer than the visibility is handed out
// again while it lives, and ends among the dead letters. What can't be extended is handed out again, which is harmless: the
// fences decide.
func (c *Consumer) hold(m types.Message) func(context.Context, func(context.Context) error) error {
	return func(ctx context.Context, deliver func(context.Context) error) error {
		holding, stop := context.WithCancel(ctx)
		held := make(chan struct{})
		go func() {
			defer close(held)
			c.extend(holding, m)
		}()
		err := deliver(ctx)
		stop()
		if <-held; err != nil {
			return err
		}
		removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		if _, err := c.queue.client.DeleteMessage(removing, &sqs.DeleteMessageInput{QueueUrl: &c.queue.wakeUpURL, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return fmt.Errorf("sqsqueue: the message is delivered, but its wake-up could not be deleted: %w", err)
		}
		return nil
	}
}

// extend hides the wake-up anew each time that half of its visibility is over, until ctx ends, or Max would be exceeded.
func (c *Consumer) extend(ctx context.Context, m types.Message) {
	for since := c.cfg.Visibility / 2; since+c.cfg.Visibility <= c.cfg.Max; since += c.cfg.Visibility / 2 {
		if c.cfg.Pause(ctx, c.cfg.Visibility/2) != nil {
			return
		}
		_, err := c.queue.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
			QueueUrl: &c.queue.wakeUpURL, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: int32(c.cfg.Visibility / time.Second),
		})
		if err != nil {
			return
		}
	}
}
