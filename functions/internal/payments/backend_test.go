package payments_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	shape "github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// backend is a store with the translator of the application's writes, and the ledger that reads what they wrote.
type backend struct {
	store  faulty.Inner
	ledger payments.Ledger
	// collections is what is folded.
	collections payments.Collections
	// open puts an account there, as a seed does.
	open func(context.Context, payments.Account) error
}

// backends are what the application runs on: the reference store, and DynamoDB in each emulator that tests run on.
func backends() map[string]func(*testing.T, *idemtest.Clock) backend {
	all := map[string]func(*testing.T, *idemtest.Clock) backend{"memstore": onMemstore}
	for _, name := range dynamotest.Names() {
		all[name] = func(t *testing.T, _ *idemtest.Clock) backend { return onDynamoDB(t, name) }
	}
	return all
}

func onMemstore(t *testing.T, clock *idemtest.Clock) backend {
	t.Helper()
	store, err := memstore.New(memstore.Config{Translate: payments.TranslateRow, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	rows := payments.Rows{Store: store}
	return backend{store: store, ledger: rows, collections: rows, open: func(_ context.Context, a payments.Account) error {
		if a.Collects() {
			a.ComparedTo = noon
		}
		rows.Open(a)
		return nil
	}}
}

var prefixes atomic.Int64

func onDynamoDB(t testing.TB, emulator string) backend {
	t.Helper()
	client := dynamotest.Client(dynamotest.Endpoint(t, emulator))
	if t, ok := t.(*testing.T); ok { // a benchmark has nothing between it and the emulator
		client = dynamotest.Client(dynamotest.Endpoint(t, emulator), lambdatest.Wire(t, &wirefault.Transport{OneAPage: true, Next: wirefault.Patient{}}))
	}
	prefix := "payments-" + strconv.FormatInt(prefixes.Add(1), 10)
	tables, err := dynamotest.CreateTables(t.Context(), client, prefix)
	if err != nil {
		t.Fatal(err)
	}
	table := prefix + "-payments"
	if err := dynamotest.CreateTable(t.Context(), client, table, shape.Payments()); err != nil {
		t.Fatal(err)
	}
	store, err := dynamo.New(client, dynamo.Config{
		IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox, Translate: payments.Items(table, shape.LedgerShards),
	})
	if err != nil {
		t.Fatal(err)
	}
	ledger := payments.Table{Client: client, Name: table}
	return backend{store: store, ledger: ledger, collections: ledger, open: func(ctx context.Context, a payments.Account) error {
		_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: accountItem(a)})
		if err != nil || !a.Collects() {
			return err
		}
		return ledger.Collect(ctx, a.Tenant, a.ID, a.Partitions, noon)
	}}
}

// accountItem is an account as the seed of the local stack writes it.
func accountItem(a payments.Account) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk":  &types.AttributeValueMemberS{Value: "account#" + a.Tenant + "/" + a.ID},
		"tn":  &types.AttributeValueMemberS{Value: a.Tenant},
		"id":  &types.AttributeValueMemberS{Value: a.ID},
		"cur": &types.AttributeValueMemberS{Value: a.Currency},
		"bal": &types.AttributeValueMemberN{Value: strconv.FormatInt(a.Balance, 10)},
	}
}
