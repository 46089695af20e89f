package payments_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	shape "github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/idemtest"
)

// Whatever the application writes that money at the provider stands behind is found by its hour, and can be traced to the
// operation that made it, and back; nothing else is in the index.
func TestEntriesAreInTheirHour(t *testing.T) {
	w := &world{T: t, clock: idemtest.NewClock(noon)}
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]))
	w.backend = onDynamoDB(t, dynamotest.Names()[0])
	table := w.backend.ledger.(payments.Table).Name
	w.start(options{})
	paid := w.pay("k1", "card_ok")
	w.deliver(paid.Operation)
	w.post(tenantA, "/v1/payments/"+paid.Payment.ID+"/refunds", "k2", `{"amount":500}`).want(202)
	w.post(tenantA, "/v1/payouts", "k3", `{"from":"acct_1","amount":500,"currency":"EUR","destination":"iban_ok"}`).want(201)
	w.post(tenantA, "/v1/transfers", "k4", `{"from":"acct_1","to":"acct_2","amount":500,"currency":"EUR"}`).want(201)

	found := map[payments.EntryKind]payments.Entry{}
	for shard := range shape.LedgerShards {
		out, err := client.Query(t.Context(), &dynamodb.QueryInput{
			TableName: &table, IndexName: aws.String(shape.Payments().Index.Name), KeyConditionExpression: aws.String(shape.Hour + " = :h"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":h": &types.AttributeValueMemberS{Value: payments.LedgerPartition(noon, shard)}},
		})
		w.ok(err)
		for _, keys := range out.Items {
			if len(keys) != 3 {
				t.Errorf("the index shows %v, want keys only", keys)
			}
			row, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: map[string]types.AttributeValue{"pk": keys["pk"]}})
			w.ok(err)
			e, err := payments.DecodeEntry(row.Item)
			w.ok(err)
			pk := keys["pk"].(*types.AttributeValueMemberS).Value
			operation, n, err := e.Message.Operation()
			w.ok(err)
			traced, ok := payments.EntryOf(e.Kind, tenantA, operation)
			if !ok || traced != pk || n != 1 || payments.EntryTenant(pk) != tenantA || e.Tenant != tenantA || e.Amount == 0 || e.Currency != "EUR" || e.CreatedAt.Truncate(time.Hour) != noon.Truncate(time.Hour) {
				t.Errorf("%+v of %s is traced to %s", e, pk, traced)
			}
			found[e.Kind] = e
		}
	}
	if len(found) != 3 || found[payments.EntryRefund].Payment != paid.Payment.ID || found[payments.EntryPayment].Refunded != 500 ||
		found[payments.EntryPayment].Status != payments.StatusSucceeded || found[payments.EntryPayout].ProviderReference == "" {
		t.Errorf("%+v", found)
	}
}

func TestWhatIsNoEntry(t *testing.T) {
	for name, item := range map[string]map[string]types.AttributeValue{
		"nothing":        {},
		"an account":     {"pk": s("account#t/acct_1"), "tn": s("t"), "id": s("acct_1"), "amt": n("1"), "ca": n("1")},
		"another's row":  {"pk": s("payment#t/pay_1"), "tn": s("u"), "id": s("pay_1"), "amt": n("1"), "ca": n("1")},
		"without a time": {"pk": s("payment#t/pay_1"), "tn": s("t"), "id": s("pay_1"), "amt": n("1")},
		"half an amount": {"pk": s("payment#t/pay_1"), "tn": s("t"), "id": s("pay_1"), "amt": n("1.5"), "ca": n("1")},
	} {
		if e, err := payments.DecodeEntry(item); err == nil {
			t.Errorf("%s is %+v", name, e)
		}
	}
	for _, operation := range []idem.OperationID{"", "op_", "pay_1"} {
		if pk, ok := payments.EntryOf(payments.EntryPayment, "t", operation); ok {
			t.Errorf("%q made %s", operation, pk)
		}
	}
	if _, ok := payments.EntryKey("transfer", "t", "tr_1"); ok {
		t.Error("a transfer is an entry")
	}
	for pk, want := range map[string]string{"payment#a/b/pay_1": "a/b", "apikey#1": "", "": ""} {
		if got := payments.EntryTenant(pk); got != want {
			t.Errorf("%q is %q's", pk, got)
		}
	}
}

// An hour of the index is UTC's, wherever the function runs, and its shards are told apart.
func TestPartitionsOfAnHour(t *testing.T) {
	east := time.Date(2026, 11, 21, 0, 59, 59, 0, time.FixedZone("east", 2*60*60))
	for shard := range shape.LedgerShards {
		if got, want := payments.LedgerPartition(east, shard), fmt.Sprint("2026-11-20T22#", shard); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
