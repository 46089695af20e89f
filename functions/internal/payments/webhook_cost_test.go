package payments_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/idemtest"
)

// webhookCost is what each kind of webhook costs, "<kind>: <call> <units>R <units>W, …" a line. make capacity reads it too.
//
//go:embed testdata/webhook-cost.txt
var webhookCost string

// What a webhook costs in calls to DynamoDB and in units of capacity, as dynoxide counts them: as AWS documents it. DynamoDB Local
// counts a transaction twice over (bench/README.md).
func TestWhatAWebhookCosts(t *testing.T) {
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Dynoxide), wirefault.Patiently)
	tables, err := dynamotest.CreateTables(t.Context(), client, "webhook-cost")
	if err != nil {
		t.Fatal(err)
	}
	const table = "webhook-cost-payments"
	if err := dynamotest.CreateTable(t.Context(), client, table, schema.Table{Key: "pk"}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var used []string
	store, err := dynamo.New(client, dynamo.Config{
		IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox, Translate: payments.Items(table, 4),
		Meter: func(u dynamo.Usage) {
			mu.Lock()
			defer mu.Unlock()
			read, write := u.Units()
			used = append(used, fmt.Sprintf("%s %gR %gW", u.Operation, read, write))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, clock: idemtest.NewClock(noon), backend: onMemstore(t, idemtest.NewClock(noon))}
	w.backend.store = store
	w.start(options{})
	l := w.listen()
	var told strings.Builder
	costs := func(what string, deliver func()) {
		used = nil
		deliver()
		fmt.Fprintf(&told, "%s: %s\n", what, strings.Join(used, ", "))
	}
	a := w.pay("k", "card_ok")
	w.called(a.Operation)
	charge := w.charges()[0]
	unknown := charge
	unknown.Key = unusedOperation + ".1"
	raw, err := json.Marshal(about("evt_3", unknown))
	w.ok(err)
	missed := func() { l.signed(string(raw)).problem(404, "message_unknown") }
	costs("a process's first, which asks for the mark of the secret", missed)
	costs("an event that settles", func() { l.tell(about("evt_1", charge)) })
	costs("the same again", func() { l.tell(about("evt_1", charge)) })
	costs("what is no news", func() { l.tell(about("evt_2", charge)) })
	costs("an unknown id, which is not remembered", missed)
	costs("a forged one", func() { l.post(`{"id":"evt_4"}`, "t=1,v1=2").want(401) })
	if told.String() != webhookCost {
		t.Errorf("got\n%s\nwant\n%s", &told, webhookCost)
	}
}
