package payments_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/storage"
	"pgregory.net/rapid"
)

// Whatever transactions are made of the application's writes, the reference store and DynamoDB judge each alike and are
// left with the same rows: what a simulation on the one proves holds for the other.
func TestTranslatorsAreEqual(t *testing.T) {
	clock := idemtest.NewClock(noon)
	all := []backend{onMemstore(t, clock), onDynamoDB(t, dynamotest.Names()[0])}
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		tenant := fmt.Sprintf("tenant-%d", prefixes.Add(1)) // whose rows and tokens nobody has used
		for _, a := range []payments.Account{
			{Tenant: tenant, ID: "acct_1", Currency: "EUR", Balance: 100}, {Tenant: tenant, ID: "acct_2", Currency: "EUR"},
			{Tenant: tenant, ID: "acct_3", Currency: "USD", Balance: 50},
		} {
			for _, b := range all {
				if err := b.open(ctx, a); err != nil {
					t.Fatal(err)
				}
			}
		}
		paid := payments.InsertPayment{Payment: payments.Payment{
			Tenant: tenant, ID: "pay_4", Status: drawnStatus.Draw(t, "status"), Amount: 120, Currency: "EUR", Source: "card_ok", CreatedAt: noon, Message: "op_1.1",
		}}
		for _, b := range all {
			commit(ctx, t, b, tenant, []idem.Write{paid})
		}
		for step := range rapid.IntRange(1, 10).Draw(t, "transactions") {
			writes := drawWrites(t, tenant)
			failed := make([][]int, len(all))
			for i, b := range all {
				failed[i] = commit(ctx, t, b, fmt.Sprintf("%s-%d", tenant, step), writes)
			}
			if !reflect.DeepEqual(failed[0], failed[1]) {
				t.Fatalf("%+v: writes %v failed on one, %v on the other", writes, failed[0], failed[1])
			}
			if one, other := rows(ctx, t, all[0], tenant), rows(ctx, t, all[1], tenant); !reflect.DeepEqual(one, other) {
				t.Fatalf("after %+v:\n%+v\n%+v", writes, one, other)
			}
		}
	})
}

// docs/payments-api.md: a payment is refunded up to its amount, an account is debited down to zero, and what has ended does not end
// again, in the table as in the reference store. What draws transactions comes upon these bounds by chance only.
func TestNothingIsRefundedSpentOrEndedBeyondWhatThereIs(t *testing.T) {
	clock := idemtest.NewClock(noon)
	for name, b := range map[string]backend{"memstore": onMemstore(t, clock), "table": onDynamoDB(t, dynamotest.Names()[0])} {
		t.Run(name, func(t *testing.T) {
			if err := b.open(t.Context(), payments.Account{Tenant: tenantA, ID: "acct_1", Currency: "EUR", Balance: 100}); err != nil {
				t.Fatal(err)
			}
			refund := func(amount int64) idem.Write {
				return payments.ReserveRefund{Tenant: tenantA, Payment: "pay_1", Amount: amount, Paid: 120}
			}
			debit := func(amount int64) idem.Write {
				return payments.Debit{Tenant: tenantA, Account: "acct_1", Amount: amount, Currency: "EUR"}
			}
			ends := payments.FinishPayment{Tenant: tenantA, ID: "pay_1", Status: payments.StatusSucceeded}
			for i, c := range []struct {
				write idem.Write
				taken bool
			}{
				{payments.InsertPayment{Payment: payments.Payment{
					Tenant: tenantA, ID: "pay_1", Status: payments.StatusPending, Amount: 120, Currency: "EUR", Source: "card_ok", CreatedAt: noon, Message: "op_1.1",
				}}, true},
				{refund(1), false}, {ends, true}, {ends, false},
				{refund(121), false}, {refund(80), true}, {refund(80), false}, {refund(41), false}, {refund(40), true}, {refund(1), false},
				{debit(101), false}, {debit(60), true}, {debit(41), false}, {debit(40), true}, {debit(1), false},
			} {
				if failed := commit(t.Context(), t, b, fmt.Sprintf("%s-%d", name, i), []idem.Write{c.write}); (len(failed) == 0) != c.taken {
					t.Errorf("%d: %+v: taken %t, want %t", i, c.write, len(failed) == 0, c.taken)
				}
			}
		})
	}
}

// drawWrites draws a transaction of the application's writes, no row twice.
func drawWrites(t *rapid.T, tenant string) []idem.Write {
	var writes []idem.Write
	if rapid.Bool().Draw(t, "refunds") { // alone, so that nothing else fails the transaction
		return append(writes, drawPaymentWrite(t, tenant, "pay_4"))
	}
	kinds := rapid.SliceOfNDistinct(rapid.IntRange(0, 11), 1, 4, rapid.ID).Draw(t, "kinds")
	for _, kind := range kinds {
		switch kind {
		case 0, 1, 2, 3: // acct_4 is not there
			writes = append(writes, drawBooking(t, tenant, fmt.Sprintf("acct_%d", kind+1)))
		case 4, 5:
			writes = append(writes, drawPaymentWrite(t, tenant, fmt.Sprintf("pay_%d", kind)))
		case 6, 7:
			writes = append(writes, payments.InsertTransfer{Transfer: payments.Transfer{
				Tenant: tenant, ID: fmt.Sprintf("tr_%d", kind), From: "acct_1", To: "acct_2", Amount: drawnAmount.Draw(t, "amount"), Currency: "EUR", CreatedAt: noon,
				Partition: rapid.IntRange(0, 1).Draw(t, "partition"),
			}})
		case 8, 9:
			writes = append(writes, drawPayoutWrite(t, tenant, fmt.Sprintf("po_%d", kind)))
		case 10, 11:
			writes = append(writes, drawRefundWrite(t, tenant, fmt.Sprintf("re_%d", kind)))
		}
	}
	return writes
}

var (
	drawnStatus   = rapid.SampledFrom([]payments.Status{payments.StatusSucceeded, payments.StatusSucceeded, payments.StatusDeclined, payments.StatusFailed})
	drawnCurrency = rapid.SampledFrom([]string{"EUR", "EUR", "EUR", "USD"})
	drawnText     = rapid.SampledFrom([]string{"", "order-17", "naïve \u2028 \"x\""})
	drawnAmount   = rapid.Int64Range(1, 120)
	// drawnSum is what payments and their refunds are about: few values, so that some fit exactly.
	drawnSum = rapid.SampledFrom([]int64{120, 80, 40})
)

func drawBooking(t *rapid.T, tenant, account string) idem.Write {
	amount, currency := drawnAmount.Draw(t, "amount"), drawnCurrency.Draw(t, "currency")
	if rapid.Bool().Draw(t, "debit") {
		return payments.Debit{Tenant: tenant, Account: account, Amount: amount, Currency: currency}
	}
	return payments.Credit{Tenant: tenant, Account: account, Amount: amount, Currency: currency}
}

func drawPaymentWrite(t *rapid.T, tenant, id string) idem.Write {
	switch rapid.IntRange(0, 5).Draw(t, "write") {
	case 0:
		return payments.InsertPayment{Payment: payments.Payment{
			Tenant: tenant, ID: id, Status: payments.StatusPending, Amount: drawnSum.Draw(t, "sum"), Currency: drawnCurrency.Draw(t, "currency"),
			Source: "card_ok", Reference: drawnText.Draw(t, "reference"), CreatedAt: noon.Add(time.Millisecond), Message: "op_1.1",
		}}
	case 1:
		return payments.FinishPayment{Tenant: tenant, ID: id, Status: drawnStatus.Draw(t, "status"), ProviderReference: drawnText.Draw(t, "provider")}
	case 2, 3:
		return payments.ReserveRefund{Tenant: tenant, Payment: id, Amount: drawnSum.Draw(t, "amount"), Paid: rapid.SampledFrom([]int64{120, 120, 120, 80}).Draw(t, "paid")}
	}
	return payments.ReleaseRefund{Tenant: tenant, Payment: id, Amount: drawnSum.Draw(t, "amount")}
}

func drawPayoutWrite(t *rapid.T, tenant, id string) idem.Write {
	if rapid.Bool().Draw(t, "insert") {
		return payments.InsertPayout{Payout: payments.Payout{
			Tenant: tenant, ID: id, Status: payments.StatusPending, From: "acct_1", Amount: drawnAmount.Draw(t, "amount"),
			Currency: drawnCurrency.Draw(t, "currency"), Destination: "iban_ok", CreatedAt: noon, Message: "op_1.1",
		}}
	}
	return payments.FinishPayout{Tenant: tenant, ID: id, Status: drawnStatus.Draw(t, "status"), ProviderReference: drawnText.Draw(t, "provider")}
}

func drawRefundWrite(t *rapid.T, tenant, id string) idem.Write {
	if rapid.Bool().Draw(t, "insert") {
		return payments.InsertRefund{Refund: payments.Refund{
			Tenant: tenant, ID: id, Payment: "pay_4", Status: payments.StatusPending, Amount: drawnAmount.Draw(t, "amount"), Currency: "EUR", CreatedAt: noon,
		}}
	}
	return payments.FinishRefund{Tenant: tenant, ID: id, Status: drawnStatus.Draw(t, "status"), ProviderReference: drawnText.Draw(t, "provider")}
}

// commit makes the transaction beside a new record, and returns which writes failed.
func commit(ctx context.Context, t rapid.TB, b backend, key string, writes []idem.Write) []int {
	scope := idem.Scope{Tenant: tenantA, Operation: "test.write", Key: key}
	id, err := storage.IDGenerator{Random: zeros{}}.OperationID(scope.RecordKey())
	if err != nil {
		t.Fatal(err)
	}
	send, err := b.store.Prepare(storage.Commit{
		Record: storage.Record{
			Key: scope.RecordKey(), State: storage.StateCompleted, OperationID: id, Epoch: 1, Owner: "AAAAAAAAAAAAAAAAAAAAAA", Revision: "BBBBBBBBBBBBBBBBBBBBBA", Tenant: tenantA,
			Operation: scope.Operation, Kind: idem.KindOptimistic, Response: idem.Response{Status: 201}, CreatedAt: noon, DoneAt: noon,
			ExpiresAt: noon.Add(time.Hour), Retention: time.Hour, Attempts: 1, SchemaVersion: storage.SchemaVersion,
		},
		Now: noon, Writes: writes, Token: key,
	})
	if err != nil {
		t.Fatal(err)
	}
	err = send(ctx)
	var failed *storage.WriteFailedError
	if err != nil && !errors.As(err, &failed) {
		t.Fatalf("%+v: %v", writes, err)
	}
	if failed == nil {
		return nil
	}
	return failed.Indexes
}

// rows is everything of the tenant that the application can read.
func rows(ctx context.Context, t *rapid.T, b backend, tenant string) []any {
	var all []any
	for _, id := range []string{"acct_1", "acct_2", "acct_3", "acct_4"} {
		a, err := b.ledger.Account(ctx, tenant, id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	waits, err := b.ledger.Incoming(ctx, payments.Account{Tenant: tenant, ID: "acct_2", Currency: "EUR"}, 1, 100)
	if err != nil && !errors.Is(err, payments.ErrUnfoldable) {
		t.Fatal(err)
	}
	slices.SortFunc(waits, func(a, b payments.Transfer) int { return cmp.Compare(a.ID, b.ID) }) // all are of one moment
	all = append(all, len(waits), waits)
	for _, id := range []string{"pay_4", "pay_5"} {
		p, err := b.ledger.Payment(ctx, tenant, id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for _, id := range []string{"po_8", "po_9"} {
		p, err := b.ledger.Payout(ctx, tenant, id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for _, id := range []string{"re_10", "re_11"} {
		r, err := b.ledger.Refund(ctx, tenant, id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// foreign is a write of another application.
type foreign struct{}

func (foreign) IfConditionFails() idem.Failure { return idem.Failure{} }

func TestTranslatorsRefuseOtherWrites(t *testing.T) {
	if _, err := payments.TranslateRow(foreign{}); err == nil {
		t.Error("a row of a write that is not the application's")
	}
	if _, err := payments.Items("table", 4)(foreign{}); err == nil {
		t.Error("an item of a write that is not the application's")
	}
}
