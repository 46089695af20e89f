//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// sweep runs the sweep once, as its schedule does every minute.
func sweep(t *testing.T) {
	t.Helper()
	out, err := deployed.functions.Invoke(t.Context(), &lambda.InvokeInput{
		FunctionName: aws.String(deployed.variables["FUNCTION_SWEEP"]), Payload: []byte(`{}`),
	})
	must(t, err)
	if out.FunctionError != nil {
		t.Fatalf("sweep: %s %s", *out.FunctionError, out.Payload)
	}
}

// wake gives the worker a wake-up for a payment's message, as the queue of wake-ups does.
func wake(t *testing.T, a accepted) {
	t.Helper()
	must(t, wakeWorker(t.Context(), a.Operation.Message(1)))
}

// wakeWorker returns when the worker has ended, whatever became of it.
func wakeWorker(ctx context.Context, message idem.MessageID) error {
	body, err := json.Marshal(map[string]any{"message": message})
	if err != nil {
		return err
	}
	event, err := json.Marshal(map[string]any{"Records": []map[string]any{{
		"messageId": "wake-" + string(message), "receiptHandle": "none", "body": string(body), "eventSource": "aws:sqs",
		"eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:wake-ups", "awsRegion": "us-east-1", "attributes": map[string]string{},
	}}})
	if err != nil {
		return err
	}
	_, err = deployed.functions.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: aws.String(deployed.variables["FUNCTION_WORKER"]), Payload: event,
	})
	return err
}

// exhaust makes a message that waits for its next attempt have had all but one; it returns what is in the way.
func exhaust(t *testing.T, message idem.MessageID) (missing string) {
	t.Helper()
	_, err := deployed.tables.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:                aws.String(deployed.table("OUTBOX")),
		Key:                      item{schema.MessageID: &types.AttributeValueMemberS{Value: string(message)}},
		UpdateExpression:         aws.String("SET #attempts = :nine"),
		ConditionExpression:      aws.String("#state = :pending AND #attempts > :none"),
		ExpressionAttributeNames: map[string]string{"#attempts": schema.Attempts, "#state": schema.State},
		ExpressionAttributeValues: item{
			":nine": &types.AttributeValueMemberN{Value: "9"}, ":none": &types.AttributeValueMemberN{Value: "0"},
			":pending": &types.AttributeValueMemberS{Value: schema.MessageStatePending},
		},
	})
	if claimed := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &claimed) {
		return "the message is not waiting for its next attempt"
	}
	must(t, err)
	return ""
}

// buried waits for the copy of a dead message in the dead-letter queue.
func buried(t *testing.T, message idem.MessageID) {
	t.Helper()
	eventually(t, soon, func() string {
		out, err := deployed.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(deployed.variables["DEAD_LETTER_QUEUE_URL"]), MaxNumberOfMessages: 10, VisibilityTimeout: 1,
		})
		must(t, err)
		for _, letter := range out.Messages {
			if strings.Contains(aws.ToString(letter.Body), string(message)) {
				return ""
			}
		}
		return "no copy in the dead-letter queue"
	})
}

// mappings are what wakes the worker: that of the outbox's stream, which is the relay's where there is one, and that of the
// queue of wake-ups.
func mappings(t *testing.T) (stream, queue string) {
	t.Helper()
	for _, function := range []string{"FUNCTION_WORKER", "FUNCTION_RELAY"} {
		if deployed.variables[function] == "" {
			continue
		}
		out, err := deployed.functions.ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{
			FunctionName: aws.String(deployed.variables[function]),
		})
		must(t, err)
		for _, mapping := range out.EventSourceMappings {
			switch source := aws.ToString(mapping.EventSourceArn); {
			case strings.Contains(source, ":dynamodb:"):
				stream = aws.ToString(mapping.UUID)
			case strings.Contains(source, ":sqs:"):
				queue = aws.ToString(mapping.UUID)
			}
		}
	}
	if stream == "" || queue == "" {
		t.Fatalf("the worker is not woken by both stream and queue: %q and %q", stream, queue)
	}
	return stream, queue
}

// deafen keeps the worker, or its relay, from hearing of anything through the mapping until the test is over.
func deafen(t *testing.T, mapping string) {
	t.Helper()
	listen(t.Context(), t, mapping, false)
	t.Cleanup(func() { listen(context.WithoutCancel(t.Context()), t, mapping, true) })
}

// listen switches a mapping on or off, and waits until it is.
func listen(ctx context.Context, t *testing.T, mapping string, on bool) {
	t.Helper()
	_, err := deployed.functions.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: aws.String(mapping), Enabled: aws.Bool(on)})
	must(t, err)
	wanted := map[bool]string{true: "Enabled", false: "Disabled"}[on]
	eventually(t, soon, func() string {
		out, err := deployed.functions.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: aws.String(mapping)})
		must(t, err)
		if state := aws.ToString(out.State); state != wanted {
			return fmt.Sprintf("the mapping is %s, not %s", state, wanted)
		}
		return ""
	})
}

// abandoned is claimed by a worker that dies before the provider has done anything.
var abandoned = troubled("card_abandoned", provider.Rule{On: provider.Charge, Fault: provider.HangBefore, Times: 1, DelayMillis: 60_000})

// TestLostWakeUps runs alone, with the worker, or the relay, deaf to the stream: nothing that is accepted meanwhile is ever delivered by
// it. What must be seen before a worker comes is seen here, while the worker is deaf to the queue too; then the sweep alone brings everything
// to its end.
func TestLostWakeUps(t *testing.T) { // I9; design.md "One message, step by step": the row is the truth
	stream, queue := mappings(t)
	deafen(t, stream)
	deafen(t, queue) // the sweep runs by its schedule too

	claimed := pay("abandoned", abandoned)
	_, body := accept(t, claimed)
	claimAndDie(t, body)

	lost := pay("lost", card("lost"))
	first, lostBody := accept(t, lost)
	beforeTheWorker(t, lost, first, lostBody)
	storming := pay("lost-storm", card("lost"))
	duplicates := copies(t, storming, duplicateCount)
	for i, got := range burst(t, duplicates) {
		if got.starved() { // the emulator stalled
			got = deployed.tenantA.do(t, duplicates[i])
		}
		same(t, got.is(t, http.StatusAccepted), deployed.tenantA.do(t, storming))
	}
	listen(t.Context(), t, queue, true)

	for _, r := range []request{lost, storming, claimed} {
		eventually(t, delivered, func() string {
			if got := deployed.tenantA.do(t, r); got.status != http.StatusCreated {
				sweep(t)
				return fmt.Sprintf("the sweep has not delivered %s: %v", r.key, got)
			}
			return ""
		})
		settledOnce(t, r)
	}
	if m := messageRow(t, body); number(m, schema.Epoch) < 2 {
		t.Errorf("the message of the dead worker was claimed %d times, want twice: %v", number(m, schema.Epoch), m)
	}
}

// claimAndDie wakes the worker by hand and kills it while it waits for the provider: its claim outlives it, and no other
// wake-up is under way.
func claimAndDie(t *testing.T, a accepted) {
	t.Helper()
	done, ctx := make(chan error, 1), t.Context()
	go func() { done <- wakeWorker(ctx, a.Operation.Message(1)) }()
	eventually(t, soon, func() string {
		if providerMet(t, abandoned) == 0 {
			return "the worker has not called the provider"
		}
		return ""
	})
	kill(t, deployed.variables["FUNCTION_WORKER"])
	must(t, <-done)
	if state := text(messageRow(t, a), schema.State); state != "claimed" {
		t.Fatalf("the message of the dead worker is %s, want it claimed", state)
	}
	if op := deployed.tenantA.readOperation(t, a.Operation); op.State != "in_progress" {
		t.Errorf("operation %+v, want it in_progress while its message is claimed", op)
	}
}

// beforeTheWorker is what clients see of an operation that no worker has met.
func beforeTheWorker(t *testing.T, r request, first reply, a accepted) {
	t.Helper()
	for range 3 {
		same(t, deployed.tenantA.do(t, r).says(t, "replayed").comesBack(t), first)
	}
	op := deployed.tenantA.get(t, "/v1/operations/"+string(a.Operation)).is(t, http.StatusOK).comesBack(t)
	if shown := decode[operation](t, op); shown.State != "pending" || shown.Response != nil || shown.CompletedAt != nil {
		t.Errorf("operation %s, want it pending, without an answer", op.body)
	}
	if now := deployed.tenantA.readPayment(t, a.Payment.ID); now != a.Payment {
		t.Errorf("GET shows %+v, want the payment of the 202, %+v", now, a.Payment)
	}
	waiting := r
	waiting.header = http.Header{"Prefer": {"wait=1"}}
	same(t, deployed.tenantA.do(t, waiting).says(t, "replayed").comesBack(t), first)
	other := r
	other.body = paymentBody(1, card("lost"), r.key)
	deployed.tenantA.do(t, other).says(t, "mismatch").
		isProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused_with_different_payload")
	if made := chargesOf(t, r.key); len(made) != 0 {
		t.Errorf("charged before a worker was there: %+v", made)
	}
}
