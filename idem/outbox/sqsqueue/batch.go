package sqsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/idem-go/idem-aws/idem/outbox"
)

// batchEntriesMax is SQS's bound on the entries of one batch request.
const batchEntriesMax = outbox.OfferBatchMax

// WakeUp asks for a look at a tenant's message.
type WakeUp = outbox.WakeUp

// Offer implements [outbox.BatchWakeUps]: one SendMessageBatch.
func (q *Queue) Offer(ctx context.Context, wakeUps []WakeUp) []error {
	return Send(ctx, q.client, q.wakeUpURL, wakeUps)
}

// Waiting implements [outbox.BatchWakeUps]: one GetQueueAttributes. SQS says that its number may be a minute old.
func (q *Queue) Waiting(ctx context.Context) (int, error) {
	const name = types.QueueAttributeNameApproximateNumberOfMessages
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &q.wakeUpURL, AttributeNames: []types.QueueAttributeName{name}})
	if err != nil {
		return 0, fmt.Errorf("sqsqueue: waiting: %w", err)
	}
	waiting, err := strconv.Atoi(out.Attributes[string(name)])
	if err != nil {
		return 0, fmt.Errorf("sqsqueue: waiting: %s: %w", name, err)
	}
	return waiting, nil
}

// Send puts wake-ups into the queue without a delay, ten in a request: what a relay between the outbox table's stream and
// the queue needs. It returns an error for each wake-up, in their order, nil for those that are in the queue; one that is
// reported as failed may be there all the same.
func Send(ctx context.Context, client *sqs.Client, queueURL string, wakeUps []WakeUp) []error {
	failed := make([]error, 0, len(wakeUps))
	for chunk := range slices.Chunk(wakeUps, batchEntriesMax) {
		failed = append(failed, sendChunk(ctx, client, queueURL, chunk)...)
	}
	return failed
}

var errNotSent = errors.New("sqsqueue: send: not acknowledged")

func sendChunk(ctx context.Context, client *sqs.Client, queueURL string, chunk []WakeUp) []error {
	entries := make([]types.SendMessageBatchRequestEntry, len(chunk))
	for i, w := range chunk {
		body, err := json.Marshal(wakeUp{w.Message})
		if err != nil {
			return slices.Repeat([]error{fmt.Errorf("sqsqueue: encode: %w", err)}, len(chunk))
		}
		entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body)), MessageGroupId: aws.String(Group(w.Tenant)),
		}
	}
	out, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &queueURL, Entries: entries})
	if err != nil {
		return slices.Repeat([]error{fmt.Errorf("sqsqueue: send: %w", err)}, len(chunk))
	}
	failed := slices.Repeat([]error{errNotSent}, len(chunk))
	for _, entry := range out.Successful {
		if i, known := place(entry.Id, len(chunk)); known {
			failed[i] = nil
		}
	}
	for _, entry := range out.Failed {
		if i, known := place(entry.Id, len(chunk)); known {
			failed[i] = fmt.Errorf("sqsqueue: send: %s: %s", aws.ToString(entry.Code), aws.ToString(entry.Message))
		}
	}
	return failed
}

// place is the position of an entry by its id.
func place(id *string, count int) (int, bool) {
	i, err := strconv.Atoi(aws.ToString(id))
	return i, err == nil && i >= 0 && i < count
}
