package sqsqueue

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/idem"
)

// HoldOptions are how a received wake-up is held. The zero value of each field means its default.
type HoldOptions struct {
	// Visibility is how long others don't see it after each extension: past it a consumer that has died is replaced. Default
	// 1 min, whole seconds, 2 s..12 h.
	Visibility time.Duration
	// Max is how long it is held at most. Default 15 min; at most 12 h, which is SQS's bound.
	Max time.Duration
	// Pause waits, or returns the context's error. Default [idem.Pause].
	Pause func(context.Context, time.Duration) error
}

// Hold runs what a received wake-up asks for, and keeps it invisible to other consumers for as long as that goes on. A queue
// counts each time it hands a wake-up out; without this a delivery that takes longer than the queue's visibility time-out is
// handed out again while it lives, and ends among the dead letters. The caller deletes the wake-up afterwards.
//
// It returns the error of run, or an [*idem.ConfigError]. What can't be extended is handed out again, which is harmless: the
// fences decide.
func Hold(ctx context.Context, client *sqs.Client, queueURL, receipt string, opts HoldOptions, run func(context.Context) error) error {
	opts.Visibility, opts.Max = cmp.Or(opts.Visibility, time.Minute), cmp.Or(opts.Max, 15*time.Minute)
	if opts.Pause == nil {
		opts.Pause = idem.Pause
	}
	switch {
	case opts.Visibility < 2*time.Second || opts.Visibility > visibilityBound || opts.Visibility%time.Second != 0:
		return &idem.ConfigError{Field: "HoldOptions.Visibility", Value: opts.Visibility, Rule: fmt.Sprintf("must be whole seconds, 2 s..%v", visibilityBound)}
	case opts.Max < opts.Visibility || opts.Max > visibilityBound:
		return &idem.ConfigError{Field: "HoldOptions.Max", Value: opts.Max, Rule: fmt.Sprintf("must be HoldOptions.Visibility..%v", visibilityBound)}
	}
	holding, stop := context.WithCancel(ctx)
	held := make(chan struct{})
	go func() {
		defer close(held)
		for since := time.Duration(0); since+opts.Visibility <= opts.Max; since += opts.Visibility / 2 {
			if extend(holding, client, queueURL, receipt, opts.Visibility) != nil || opts.Pause(holding, opts.Visibility/2) != nil {
				return
			}
		}
	}()
	defer func() { stop(); <-held }()
	return run(ctx)
}

// extend hides the wake-up from now on.
func extend(ctx context.Context, client *sqs.Client, queueURL, receipt string, visibility time.Duration) error {
	_, err := client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &queueURL, ReceiptHandle: aws.String(receipt), VisibilityTimeout: int32(visibility / time.Second),
	})
	return err
}
