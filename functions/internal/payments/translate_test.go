package payments_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

// Whatever transactions are made of the application's writes, the reference store and DynamoDB judge each alike and are
// left with the same rows: what a simulation on the one proves holds for the other.
func TestTranslatorsAreEqual(t *testing.T) {
	clock := &clock{now: noon}
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
		for step := range rapid.IntRange(1, 6).Draw(t, "transactions") {
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

// drawWrites draws a transaction of the application's writes, no row twice.
func drawWrites(t *rapid.T, tenant string) []idem.Write {
	kinds := rapid.SliceOfNDistinct(rapid.IntRange(0, 7), 1, 4, rapid.ID).Draw(t, "kinds")
	status := rapid.SampledFrom([]payments.Status{payments.StatusSucceeded, payments.StatusDeclined, payments.StatusFailed})
	currency := rapid.SampledFrom([]string{"EUR", "EUR", "EUR", "USD"})
	text := rapid.SampledFrom([]string{"", "order-17", "naïve \u2028 \"x\""})
	amount := rapid.Int64Range(1, 120)
	var writes []idem.Write
	for _, kind := range kinds {
		switch kind {
		case 0, 1, 2, 3: // acct_4 is not there
			account := fmt.Sprintf("acct_%d", kind+1)
			if rapid.Bool().Draw(t, "debit") {
				writes = append(writes, payments.Debit{Tenant: tenant, Account: account, Amount: amount.Draw(t, "amount"), Currency: currency.Draw(t, "currency")})
			} else {
				writes = append(writes, payments.Credit{Tenant: tenant, Account: account, Amount: amount.Draw(t, "amount"), Currency: currency.Draw(t, "currency")})
			}
		case 4, 5:
			id := fmt.Sprintf("pay_%d", kind)
			if rapid.Bool().Draw(t, "insert") {
				writes = append(writes, payments.InsertPayment{Payment: payments.Payment{
					Tenant: tenant, ID: id, Status: payments.StatusPending, Amount: amount.Draw(t, "amount"), Currency: currency.Draw(t, "currency"),
					Source: "card_ok", Reference: text.Draw(t, "reference"), CreatedAt: noon.Add(time.Duration(kind) * time.Millisecond), Message: "op_1.1",
				}})
			} else {
				writes = append(writes, payments.FinishPayment{Tenant: tenant, ID: id, Status: status.Draw(t, "status"), ProviderReference: text.Draw(t, "provider")})
			}
		case 6, 7:
			writes = append(writes, payments.InsertTransfer{Transfer: payments.Transfer{
				Tenant: tenant, ID: fmt.Sprintf("tr_%d", kind), From: "acct_1", To: "acct_2", Amount: amount.Draw(t, "amount"), Currency: "EUR", CreatedAt: noon,
			}})
		}
	}
	return writes
}

// commit makes the transaction beside a new record, and returns which writes failed.
func commit(ctx context.Context, t *rapid.T, b backend, key string, writes []idem.Write) []int {
	scope := idem.Scope{Tenant: tenantA, Operation: "test.write", Key: key}
	id, err := idem.Mint{Random: zeros{}}.OperationID(scope.RecordKey())
	if err != nil {
		t.Fatal(err)
	}
	send, err := b.store.Prepare(idem.Commit{
		Record: idem.Record{
			Key: scope.RecordKey(), State: idem.StateCompleted, OperationID: id, Epoch: 1, Owner: "AAAAAAAAAAAAAAAAAAAAAA", Tenant: tenantA,
			Operation: scope.Operation, Kind: idem.KindExpress, Response: idem.Response{Status: 201}, CreatedAt: noon, DoneAt: noon,
			ExpiresAt: noon.Add(time.Hour), Retention: time.Hour, Attempts: 1, SchemaVersion: idem.SchemaVersion,
		},
		Now: noon, Writes: writes, Token: key,
	})
	if err != nil {
		t.Fatal(err)
	}
	err = send(ctx)
	var failed *idem.WriteFailedError
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
	for _, id := range []string{"pay_4", "pay_5"} {
		p, err := b.ledger.Payment(ctx, tenant, id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
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
	if _, err := payments.Items("table")(foreign{}); err == nil {
		t.Error("an item of a write that is not the application's")
	}
}
