package drift_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
)

// The index costs one write for each new payment, refund and payout, none for what becomes of them, and none for what is
// not in it.
func TestTheIndexCostsOneWritePerRow(t *testing.T) {
	w := newWorld(t)
	at := w.clock.Now()
	for _, c := range []struct {
		what         string
		write        idem.Write
		table, index float64
	}{
		{"a payment", payments.InsertPayment{Payment: payments.Payment{Tenant: tenantA, ID: "pay_1", Status: payments.StatusPending, Amount: 1, Currency: "EUR", Source: "card", CreatedAt: at}}, 1, 1},
		{"its end", payments.FinishPayment{Tenant: tenantA, ID: "pay_1", Status: payments.StatusSucceeded, ProviderReference: "ch_1"}, 1, 0},
		{"a reserved refund", payments.ReserveRefund{Tenant: tenantA, Payment: "pay_1", Amount: 1, Paid: 1}, 1, 0},
		{"a refund", payments.InsertRefund{Refund: payments.Refund{Tenant: tenantA, ID: "re_1", Payment: "pay_1", Status: payments.StatusPending, Amount: 1, Currency: "EUR", CreatedAt: at}}, 1, 1},
		{"its end", payments.FinishRefund{Tenant: tenantA, ID: "re_1", Status: payments.StatusSucceeded, ProviderReference: "re_x"}, 1, 0},
		{"a payout", payments.InsertPayout{Payout: payments.Payout{Tenant: tenantA, ID: "po_1", Status: payments.StatusPending, From: "acct_1", Amount: 1, Currency: "EUR", Destination: "iban", CreatedAt: at}}, 1, 1},
		{"its end", payments.FinishPayout{Tenant: tenantA, ID: "po_1", Status: payments.StatusSucceeded, ProviderReference: "po_x"}, 1, 0},
		{"a transfer", payments.InsertTransfer{Transfer: payments.Transfer{Tenant: tenantA, ID: "tr_1", From: "acct_1", To: "acct_2", Amount: 1, Currency: "EUR", CreatedAt: at}}, 1, 0},
		{"a transfer to a collecting account", payments.InsertTransfer{Transfer: payments.Transfer{Tenant: tenantA, ID: "tr_2", From: "acct_1", To: "acct_2", Amount: 1, Currency: "EUR", CreatedAt: at, Partition: 1}}, 1, 1},
		{"a debit", payments.Debit{Tenant: tenantA, Account: "acct_1", Amount: 1, Currency: "EUR"}, 1, 0},
	} {
		translated, err := payments.Items(w.payments, table.LedgerShards)(c.write)
		w.ok(err)
		consumed := w.write(translated)
		index := 0.0
		if units := consumed.GlobalSecondaryIndexes[table.Payments().Index.Name].CapacityUnits; units != nil {
			index = *units
		}
		if got := *consumed.Table.CapacityUnits; got != c.table || index != c.index {
			t.Errorf("%s: %g units of the table and %g of the index, want %g and %g", c.what, got, index, c.table, c.index)
		}
	}
}

// write does the write alone, and returns what it cost.
func (w *world) write(item types.TransactWriteItem) *types.ConsumedCapacity {
	w.Helper()
	if put := item.Put; put != nil {
		out, err := w.client.PutItem(w.Context(), &dynamodb.PutItemInput{
			TableName: put.TableName, Item: put.Item, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
		})
		w.ok(err)
		return out.ConsumedCapacity
	}
	u := item.Update
	out, err := w.client.UpdateItem(w.Context(), &dynamodb.UpdateItemInput{
		TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
		ExpressionAttributeValues: u.ExpressionAttributeValues, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
	})
	w.ok(err)
	return out.ConsumedCapacity
}

// A run reads each row, each message and each record once, a hundred in a call, and the provider's objects by the hundred;
// what drifts costs a transaction and look-ups besides. A window with nothing in it costs its hours.
func TestWhatARunCosts(t *testing.T) {
	w := newWorld(t)
	window := drift.Window{From: begin.Truncate(time.Hour), To: begin.Truncate(time.Hour).Add(time.Hour)}
	check := func(what string, want drift.Cost) {
		t.Helper()
		report, err := w.job().Check(t.Context(), window)
		w.ok(err)
		if report.Cost != want {
			t.Errorf("%s costs %+v, want %+v", what, report.Cost, want)
		}
	}
	var paid made
	for range 100 {
		paid = w.pay("card_ok")
		w.clock.Advance(time.Second)
	}
	w.clock.Advance(time.Hour)
	// Four shards of the index, less than 4 KB each; three batches of 100 strong reads.
	check("100 payments", drift.Cost{DynamoDBCalls: 4 + 3, ReadUnits: 2 + 300, ProviderCalls: 7 + 1})
	w.setRow(paid, "amt", 1)
	// A transaction of three reads, at two units each, and a look-up at either endpoint of charges.
	check("one that drifts", drift.Cost{DynamoDBCalls: 4 + 3 + 1, ReadUnits: 2 + 300 + 6, ProviderCalls: 7 + 1 + 2})
	w.clock.Advance(10 * time.Hour)
	window = drift.Window{From: begin.Add(5 * time.Hour), To: begin.Add(6 * time.Hour)} // of two hours of the clock
	check("nothing", drift.Cost{DynamoDBCalls: 8, ReadUnits: 4, ProviderCalls: 7})
}
