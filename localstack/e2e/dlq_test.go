//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
)

// letters is the queue of wake-ups with its dead letters, as an operator has it.
func letters(t *testing.T) *sqsqueue.Queue {
	t.Helper()
	queue, err := sqsqueue.New(deployed.queues, deployed.variables["WAKE_UP_QUEUE_URL"], deployed.variables["DEAD_LETTER_QUEUE_URL"])
	must(t, err)
	return queue
}

// redriven redrives everything but dead messages, which are other tests', and returns what became of the letters wanted.
func redriven(t *testing.T, opts sqsqueue.RedriveOptions, wanted func(sqsqueue.Redriven) bool) []sqsqueue.Redriven {
	t.Helper()
	opts.Max = 1000
	report, err := letters(t).Redrive(t.Context(), opts, func(context.Context, outbox.DeadLetter, bool) error {
		return errors.New("not this test's")
	})
	must(t, err)
	var found []sqsqueue.Redriven
	for _, letter := range report.Letters {
		if wanted(letter) {
			found = append(found, letter)
		}
	}
	return found
}

// visibility sets how long the queue of wake-ups hides what a worker has received.
func visibility(ctx context.Context, seconds string) error {
	_, err := deployed.queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
		QueueUrl: aws.String(deployed.variables["WAKE_UP_QUEUE_URL"]), Attributes: map[string]string{"VisibilityTimeout": seconds},
	})
	return err
}

// hurry makes what fails in the queue of wake-ups come again after a second instead of minutes, until the test is over.
func hurry(t *testing.T) {
	t.Helper()
	out, err := deployed.queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(deployed.variables["WAKE_UP_QUEUE_URL"]), AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameVisibilityTimeout},
	})
	must(t, err)
	ctx := context.WithoutCancel(t.Context())
	must(t, visibility(ctx, "1"))
	t.Cleanup(func() { must(t, visibility(ctx, out.Attributes["VisibilityTimeout"])) })
}

// TestWakeUpThatAlwaysFails runs alone, with short visibility: a wake-up that every worker fails at ends among the dead
// letters, where it does no harm; redriven after the reason is gone, it delivers, and a second redrive finds nothing.
func TestWakeUpThatAlwaysFails(t *testing.T) {
	stream, _ := mappings(t)
	deafen(t, stream)
	hurry(t)
	r := pay("poison", card("poison"))
	_, body := accept(t, r)
	message := body.Operation.Message(1)
	calm := disturb(t, faultproxy.Rule{Operation: "GetItem", Contains: string(message), Fault: faultproxy.Refuse503})
	must(t, sqsqueue.Send(t.Context(), deployed.queues, deployed.variables["WAKE_UP_QUEUE_URL"], []sqsqueue.WakeUp{{Tenant: "tenant-a", Message: message}})[0])

	ours := func(l sqsqueue.Redriven) bool { return l.Message == message }
	eventually(t, delivered, func() string {
		if found := redriven(t, sqsqueue.RedriveOptions{DryRun: true}, ours); len(found) == 0 || found[0].Kind != sqsqueue.LetterWakeUp {
			return fmt.Sprintf("the wake-up is not among the dead letters: %+v", found)
		}
		return ""
	})
	if made := chargesOf(t, r.key); len(made) != 0 { // once it can be read, the sweep may have it delivered
		t.Errorf("charged by a worker that could not read the message: %+v", made)
	}
	calm()
	c := builtCommand(t, mayRead, mayChange)
	redrive := func(want sqsqueue.LetterAction, more ...string) {
		t.Helper()
		args := append([]string{"redrive", "--dead-letters", "--max", "1000", "--reason", "ticket 18"}, more...)
		letters := said[sqsqueue.RedriveReport](c, args...).Letters
		if i := slices.IndexFunc(letters, ours); i < 0 || letters[i].Action != want {
			t.Errorf("idemctl %q: %+v", args, letters)
		}
	}
	redrive(sqsqueue.LetterLeft) // it only looks
	redrive(sqsqueue.LetterRedriven, "--write")
	eventually(t, delivered, func() string {
		if got := deployed.tenantA.do(t, r); got.status != http.StatusCreated {
			return fmt.Sprintf("redriven and not delivered: %v", got)
		}
		return ""
	})
	settledOnce(t, r)
	if again := redriven(t, sqsqueue.RedriveOptions{}, ours); len(again) != 0 {
		t.Errorf("redriven twice: %+v", again)
	}
}

// TestPoisonRecord runs alone: a stream record that this release can't read is left to the release that can. It is
// acknowledged, so that what is behind it is delivered, and the stream gives nothing up.
func TestPoisonRecord(t *testing.T) {
	key := item{schema.MessageID: &types.AttributeValueMemberS{Value: "not-a-message"}}
	malformed := item{
		schema.MessageID: key[schema.MessageID], schema.State: &types.AttributeValueMemberS{Value: schema.MessageStatePending},
		schema.Tenant: &types.AttributeValueMemberS{Value: "tenant-a"},
	}
	_, err := deployed.tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(deployed.table("OUTBOX")), Item: malformed})
	must(t, err)
	t.Cleanup(func() {
		_, err := deployed.tables.DeleteItem(context.WithoutCancel(t.Context()), &dynamodb.DeleteItemInput{TableName: aws.String(deployed.table("OUTBOX")), Key: key})
		must(t, err)
	})
	settledOnce(t, pay("behind-poison", card("poison")))
	givenUp := func(l sqsqueue.Redriven) bool { return l.Kind == sqsqueue.LetterStreamFailure }
	if found := redriven(t, sqsqueue.RedriveOptions{DryRun: true}, givenUp); len(found) != 0 {
		t.Errorf("the stream has given up: %+v", found)
	}
}
