package payments_test

import (
	"crypto/rand"
	"reflect"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// rowOf is the row of what an operation made.
func (w *world) rowOf(kind payments.EntryKind, operation idem.OperationID) (row any) {
	w.Helper()
	id, ledger, err := payments.EntryID(kind, operation), w.backend.ledger, error(nil)
	switch kind {
	case payments.EntryPayment:
		row, err = ledger.Payment(w.Context(), tenantA, id)
	case payments.EntryRefund:
		row, err = ledger.Refund(w.Context(), tenantA, id)
	case payments.EntryPayout:
		row, err = ledger.Payout(w.Context(), tenantA, id)
	}
	w.ok(err)
	if reflect.ValueOf(row).IsNil() {
		w.Fatalf("there is no row %s", id)
	}
	return row
}

// keeps loses everything but records and messages.
func (w *world) keeps(record storage.Record, messages ...storage.Message) {
	w.Helper()
	w.lose()
	w.faults()
	send, err := w.store.Prepare(storage.Commit{Record: record, Now: w.clock.Now(), Messages: messages, Token: rand.Text()})
	w.ok(err)
	w.ok(send(w.Context()))
}

// recovery.md "Torn transactions": what was made, and whose row alone a loss has torn from it, gets its row back as it was, by the 201 of its
// record. No account is debited and no amount is taken: the comparison of the balances does that.
func TestALostRowOfWhatWasMadeIsPutBack(t *testing.T) {
	onBoth(t, func(w *world) {
		p := w.paid("k", "card_ok")
		payment, _, err := idem.MessageID(w.charges()[0].Key).Operation()
		w.ok(err)
		var r accepted
		w.giveBack("r", p.ID, 500).want(202).decode(&r)
		w.deliver(r.Operation)
		w.payOut("o", "iban_ok").want(201)
		payout := w.screened()
		all := []struct {
			kind      payments.EntryKind
			operation idem.OperationID
		}{{payments.EntryPayment, payment}, {payments.EntryRefund, r.Operation}, {payments.EntryPayout, payout}}
		var records []storage.Record
		var rows []any
		for _, made := range all {
			records, rows = append(records, w.recordOf(made.operation)), append(rows, w.rowOf(made.kind, made.operation))
		}
		rows[0].(*payments.Payment).Refunded = 0 // which its refunds say, to the comparison
		w.lose()
		for i, made := range all {
			w.ok(w.store.Insert(w.Context(), records[i], w.clock.Now()))
			for _, want := range []string{"restored", "there already"} {
				if got, err := w.restorer().Restore(w.Context(), made.operation, w.shown(made.operation), told); err != nil || got != want {
					w.Fatalf("%s: %q, %v; want %q", made.kind, got, err, want)
				}
			}
			if got := w.rowOf(made.kind, made.operation); !reflect.DeepEqual(got, rows[i]) {
				w.Errorf("put back\n%+v\nwas\n%+v", got, rows[i])
			}
		}
		w.refunded(p.ID, 0)
		w.made(1, 1, 0)
		w.payOut("o", "iban_ok").want(201, "Idempotent-Replayed: true")
	})
}

// What is under way gets its row back beside its record and its message, which then ends all three. Before the row is there the message
// could not be settled.
func TestALostRowOfWhatIsUnderWayIsPutBack(t *testing.T) {
	t.Run("payment", func(t *testing.T) {
		onBoth(t, func(w *world) {
			a := w.pay("k", "card_ok")
			row := w.rowOf(payments.EntryPayment, a.Operation)
			w.keeps(w.recordOf(a.Operation), w.message(a.Operation))
			if got, err := w.restorer().Restore(w.Context(), a.Operation, nil, told); err != nil || got != "restored" {
				w.Fatalf("%q, %v", got, err)
			}
			if got := w.rowOf(payments.EntryPayment, a.Operation); !reflect.DeepEqual(got, row) {
				w.Errorf("put back\n%+v\nwas\n%+v", got, row)
			}
			w.finishes()
			w.again("k", "card_ok").want(201)
			w.charged(1)
		})
	})
	t.Run("payout", func(t *testing.T) {
		onBoth(t, func(w *world) {
			w.faults(provider.Rule{On: provider.Screening, Fault: provider.ErrorBefore})
			var made accepted
			w.payOut("k", "iban_ok").want(202).decode(&made)
			payout := made.Operation
			row := w.rowOf(payments.EntryPayout, payout)
			w.keeps(w.recordOf(payout), w.message(payout))
			balance := w.balance(tenantA, "acct_1")
			w.leftTo(payout, nil, payments.Told{Account: "acct_2"}, payments.CodeAccountDiffers)
			w.leftTo(payout, nil, payments.Told{Tenant: tenantB}, payments.CodeTenantDiffers)
			if got, err := w.restorer().Restore(w.Context(), payout, nil, payments.Told{}); err != nil || got != "restored" {
				w.Fatalf("%q, %v", got, err)
			}
			if got := w.rowOf(payments.EntryPayout, payout); !reflect.DeepEqual(got, row) {
				w.Errorf("put back\n%+v\nwas\n%+v", got, row)
			}
			w.finishes()
			w.payOut("k", "iban_ok").want(201)
			if got := w.balance(tenantA, "acct_1"); got != balance {
				w.Errorf("the account holds %d, it held %d", got, balance)
			}
		})
	})
}

// A record that does not say what its row was is left to a person: of what was declined nothing is to be made again. So is what is not lost,
// and what the provider shows otherwise than the record says.
func TestALostRowIsLeftToAPersonWhereItsRecordDoesNotSayWhatItWas(t *testing.T) {
	t.Run("declined", func(t *testing.T) {
		onBoth(t, func(w *world) {
			w.faults(provider.Rule{On: provider.Charge, Fault: provider.Decline})
			a := w.pay("k", "card_ok")
			w.deliver(a.Operation)
			declined := w.recordOf(a.Operation)
			w.lose()
			w.ok(w.store.Insert(w.Context(), declined, w.clock.Now()))
			w.leftTo(a.Operation, w.shown(a.Operation), told, payments.CodePartlyThere)
		})
	})
	t.Run("not lost, or another", func(t *testing.T) {
		onBoth(t, func(w *world) {
			w.payOut("o", "iban_ok").want(201)
			payout := w.screened()
			record := w.recordOf(payout)
			w.lose()
			late := record
			late.CreatedAt = w.clock.Now()
			w.ok(w.store.Insert(w.Context(), late, w.clock.Now()))
			w.leftTo(payout, w.shown(payout), told, payments.CodeNotLost)
			w.lose()
			w.ok(w.store.Insert(w.Context(), record, w.clock.Now()))
			dearer := changedTo(func(o *payments.Shown) { o.Amount++ })
			w.leftTo(payout, dearer(w.shown(payout)), told, payments.CodeDiffersFromSelf)
		})
	})
}
