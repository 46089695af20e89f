package transaction

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/docs/examples/internal/protection"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/middleware"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func TestThePageShowsWhatIsCommitted(t *testing.T) {
	page := check.NewPage(t, "one-transaction.md")
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]), wirefault.Patiently)
	tables, err := dynamotest.CreateTables(t.Context(), client, "shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shop-accounts", "shop-orders"} {
		if err := dynamotest.CreateTable(t.Context(), client, name, schema.Table{Key: "id"}); err != nil {
			t.Fatal(err)
		}
	}
	account := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "customer-1"}, "balance": number(700)}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("shop-accounts"), Item: account}); err != nil {
		t.Fatal(err)
	}
	clock := idemtest.NewClock(time.Date(2100, 1, 2, 12, 0, 0, 0, time.UTC))
	store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{Now: clock.Now, Pause: clock.Pause})
	if err != nil {
		t.Fatal(err)
	}
	service, err := NewService(engine)
	if err != nil {
		t.Fatal(err)
	}
	count := func(table string) int32 {
		t.Helper()
		found, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
		if err != nil {
			t.Fatal(err)
		}
		return found.Count
	}
	balance := func() string {
		t.Helper()
		found, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: aws.String("shop-accounts"), Key: map[string]types.AttributeValue{"id": account["id"]},
		})
		if err != nil {
			t.Fatal(err)
		}
		return found.Item["balance"].(*types.AttributeValueMemberN).Value
	}
	rows := func() string {
		return fmt.Sprintf("balance %s, orders %d, messages %d", balance(), count("shop-orders"), count(tables.Outbox))
	}

	const book = `{"item":"book","amount":500}`
	page.Send("first", service, "POST", "/orders", "order-17", book).Want(t, 201, "executed")
	check.Send(t, service, "POST", "/orders", "order-17", book).Want(t, 201, "replayed")
	page.Text("after", rows())

	page.Send("rejected", service, "POST", "/orders", "order-18", book).Want(t, 402, "executed")
	check.Send(t, service, "POST", "/orders", "order-18", book).Want(t, 402, "replayed")
	page.Text("after the rejection", rows())
}

// The unit test that the page shows: no store, no emulator.
func TestAnOrderAsksForItsShipment(t *testing.T) {
	result := idemtest.Run(t, handler(`{"item":"book","amount":500}`), idemtest.Tenant("customer-1"))
	if len(result.Writes) != 2 || len(result.Messages) != 1 || result.Response.Status != 201 {
		t.Fatalf("writes %d, messages %d, answer %d", len(result.Writes), len(result.Messages), result.Response.Status)
	}
	if got := string(result.Messages[0].Payload); got != string(result.OperationID) {
		t.Errorf("the message is about %q, the order is %q", got, result.OperationID)
	}
}

// Who could choose the id would write over another customer's order, and have it shipped again.
func TestTheClientDoesNotChooseTheOrdersID(t *testing.T) {
	result := idemtest.Run(t, handler(`{"id":"another","item":"book","amount":500}`), idemtest.Tenant("customer-1"))
	if got := string(result.Messages[0].Payload); got != string(result.OperationID) || strings.Contains(string(result.Response.Body), "another") {
		t.Errorf("the message is about %q, the answer is %s", got, result.Response.Body)
	}
}

// handler is create for a request with the body.
func handler(body string) idem.Handler {
	return func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
		return create(ctx, tx, &middleware.Request{Body: []byte(body)})
	}
}

// An operation that is converted keeps its keys: what the wrapped release answered is replayed by the atomic one.
func TestTheKeysOfTheWrappedReleaseAreReplayed(t *testing.T) {
	w := check.NewWorld(t)
	mw := check.Get(middleware.New(w.Engine, middleware.Config{Identify: protection.Identify}))(t)
	before := check.Get(mw.Wrap(idem.Operation{Name: "orders.create", Policy: idem.IETF(), UnknownToOperator: true}, middleware.Route{},
		http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusCreated) })))(t)
	check.Send(t, before, "POST", "/orders", "order-17", `{"item":"book","amount":500}`).Want(t, 201, "executed")

	converted := check.Get(idem.New(w.Store, idem.Config{Now: w.Clock.Now, Pause: w.Clock.Pause}))(t)
	after := check.Get(NewService(converted))(t)
	check.Send(t, after, "POST", "/orders", "order-17", `{"item":"book","amount":500}`).Want(t, 201, "replayed")
}
