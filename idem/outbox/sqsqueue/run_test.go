package sqsqueue_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Two containers share a queue of wake-ups and the tables, on emulators: each message is called for once, in whichever it comes
// to, and nothing is left in the queue, though every wake-up came twice.
func TestTwoContainersServeOneQueue(t *testing.T) {
	p := newPair(t)
	store := newStore(t)
	var mu sync.Mutex
	calls := map[idem.MessageID]int{}
	topics, err := outbox.NewTopics(outbox.Config{}, outbox.Topic{
		Name: "orders.ship",
		Call: func(_ context.Context, m storage.Message) outbox.Outcome {
			mu.Lock()
			defer mu.Unlock()
			calls[m.ID]++
			return outbox.Delivered{}
		},
		Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
			return outbox.Settlement{Response: idem.Response{Status: 201}}, nil
		},
	})
	ok(t, err)
	worker, err := outbox.NewWorker(store, topics, p, p)
	ok(t, err)
	engine, err := idem.New(store, idem.Config{})
	ok(t, err)
	ids := accepted(t, engine, 12)
	for range 2 {
		var wakeUps []sqsqueue.WakeUp
		for _, id := range ids {
			wakeUps = append(wakeUps, sqsqueue.WakeUp{Tenant: "t", Message: id})
		}
		for _, err := range sqsqueue.Send(t.Context(), p.client, p.wakeUps, wakeUps) {
			ok(t, err)
		}
	}

	ctx, stop := context.WithCancel(t.Context())
	var containers sync.WaitGroup
	for range 2 {
		runner, err := outbox.NewRunner(worker, engine, nil)
		ok(t, err)
		consumer, err := p.Consumer(sqsqueue.ConsumerConfig{})
		ok(t, err)
		containers.Go(func() {
			if err := runner.Run(ctx, outbox.RunConfig{Queue: consumer, Workers: 3, Period: time.Hour}); err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
	for began := time.Now(); p.held(t) > 0; ok(t, idem.Pause(t.Context(), 50*time.Millisecond)) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d wake-ups are still there", p.held(t))
		}
	}
	stop()
	containers.Wait()
	for _, id := range ids {
		m, err := store.Message(t.Context(), id)
		ok(t, err)
		if calls[id] != 1 || m.State != storage.MessageDelivered {
			t.Errorf("%s is %s, and was called for %d times", id, m.State, calls[id])
		}
	}
}

// held is how many wake-ups there are, those that somebody has received included.
func (p *pair) held(t *testing.T) (n int) {
	t.Helper()
	names := []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible}
	out, err := p.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &p.wakeUps, AttributeNames: names})
	ok(t, err)
	for _, name := range names {
		count, err := strconv.Atoi(out.Attributes[string(name)])
		ok(t, err)
		n += count
	}
	return n
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newStore(t *testing.T) *dynamo.Store {
	t.Helper()
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]), wirefault.Patiently)
	tables, err := dynamotest.CreateTables(t.Context(), client, "run")
	ok(t, err)
	store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox})
	ok(t, err)
	return store
}

// accepted commits so many deferred operations, and returns their messages.
func accepted(t *testing.T, engine *idem.Engine, n int) (ids []idem.MessageID) {
	t.Helper()
	orders, err := engine.Register(idem.Operation{Name: "orders.create", Kind: idem.KindDeferred, Policy: idem.IETF()})
	ok(t, err)
	for i := range n {
		request := idem.Request{Tenant: "t", Key: fmt.Sprint(i), Input: canonical.Input{MediaType: "application/json", Body: []byte("{}")}}
		result, err := orders.Do(t.Context(), request, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Send("orders.ship", nil)
			return idem.Response{Status: 202}, nil
		})
		ok(t, err)
		ids = append(ids, result.OperationID.Message(1))
	}
	return ids
}
