package payments_test

import (
	"crypto/rand"
	"errors"
	"reflect"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// rowPutBack is the outcome where nothing but a row was written, and rowOfTornPutBack where what follows its last message is gone, too.
const (
	rowPutBack       = "row put back, and no money moved: compare the balances"
	rowOfTornPutBack = "row put back, and no money moved: what follows its last message is not there"
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
			for _, want := range []string{rowPutBack, "there already"} {
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
			if got, err := w.restorer().Restore(w.Context(), a.Operation, nil, told); err != nil || got != rowPutBack {
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
			if got, err := w.restorer().Restore(w.Context(), payout, nil, payments.Told{}); err != nil || got != rowPutBack {
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

// recovery.md "Compare the balances": the row of a refund that was made is put back also while its payment's row is pending, or is not there:
// nothing is reserved on the payment, and no command could put the refund's row back otherwise.
func TestALostRowOfARefundIsPutBackWhateverItsPaymentSays(t *testing.T) {
	onBoth(t, func(w *world) {
		a := w.pay("k", "card_ok")
		pending, sent := w.recordOf(a.Operation), w.message(a.Operation)
		w.deliver(a.Operation)
		var r accepted
		w.giveBack("r", a.Payment.ID, 500).want(202).decode(&r)
		w.deliver(r.Operation)
		made, row := w.recordOf(r.Operation), w.rowOf(payments.EntryRefund, r.Operation)
		puts := func(operation idem.OperationID) {
			w.Helper()
			if got, err := w.restorer().Restore(w.Context(), operation, w.shown(operation), told); err != nil || got != rowPutBack {
				w.Fatalf("%q, %v; want %q", got, err, rowPutBack)
			}
		}
		for _, paymentsRow := range []bool{true, false} {
			w.keeps(pending, sent)
			if paymentsRow {
				puts(a.Operation)
			}
			w.ok(w.store.Insert(w.Context(), made, w.clock.Now()))
			dearer := changedTo(func(o *payments.Shown) { o.Amount++ })
			w.leftTo(r.Operation, dearer(w.shown(r.Operation)), told, payments.CodeDiffersFromSelf)
			puts(r.Operation)
			if got := w.rowOf(payments.EntryRefund, r.Operation); !reflect.DeepEqual(got, row) {
				w.Errorf("put back\n%+v\nwas\n%+v", got, row)
			}
		}
	})
}

// keepsOfAPayout delivers so many of a payout's messages, and then loses everything but its record as it was accepted and the first of them.
func (w *world) keepsOfAPayout(delivered, left int) idem.OperationID {
	w.Helper()
	payout := w.paysOut(0)
	record, err := w.store.LoadResponse(w.Context(), w.recordOf(payout))
	w.ok(err)
	var messages []storage.Message
	for n := 1; n <= delivered; n++ {
		w.deliverMessage(payout, n)
	}
	for n := 1; n <= left; n++ {
		m, err := w.store.Message(w.Context(), payout.Message(n))
		w.ok(err)
		messages = append(messages, *m)
	}
	w.keeps(record, messages...)
	return payout
}

// recovery.md "Torn transactions": where what follows an ended message is gone with the row, the row is put back first, and the next try makes
// what follows, by the rules that hold beside a record. The payout is made once, and the account has what it had but for that.
func TestALostRowIsPutBackBeforeWhatFollowsItsMessage(t *testing.T) {
	declined := []provider.Rule{{On: provider.Payout, Fault: provider.Decline}}
	for name, c := range map[string]struct {
		faults          []provider.Rule
		delivered, left int
		without         string // the code of the second try without told
		told            payments.Told
		status, payouts int
		balance         int64 // after all, where the debit was there
	}{
		"only screened": {nil, 1, 1, payments.CodeOnlyScreened, payments.Told{Finish: true}, 201, 1, seedBalance},
		"paid out":      {nil, 2, 1, "", payments.Told{}, 201, 1, seedBalance},
		"declined":      {declined, 2, 2, "", payments.Told{}, 402, 1, seedBalance + 500}, // gives back what was taken before
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.faults(c.faults...)
				payout := w.keepsOfAPayout(c.delivered, c.left)
				w.leftTo(payout, w.shown(payout), payments.Told{Account: "acct_2"}, payments.CodeAccountDiffers)
				restore := func(want string) {
					w.Helper()
					if got, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), c.told); err != nil || got != want {
						w.Fatalf("%q, %v; want %q", got, err, want)
					}
				}
				restore(rowOfTornPutBack)
				if c.without != "" {
					w.leftTo(payout, w.shown(payout), payments.Told{}, c.without)
				}
				restore("restored")
				restore("there already")
				w.finishes()
				w.payOut("k", "iban_ok").want(c.status, "Idempotent-Replayed: true")
				if n := len(w.payouts()); n != c.payouts {
					w.Errorf("%d payouts", n)
				}
				if got := w.balance(tenantA, "acct_1"); got != c.balance {
					w.Errorf("the account holds %d, want %d", got, c.balance)
				}
			}, options{workerOnly: true})
		})
	}
	t.Run("ended", func(t *testing.T) { // nothing follows, and nothing would end the row
		onBoth(t, func(w *world) {
			payout := w.keepsOfAPayout(2, 2)
			w.leftTo(payout, w.shown(payout), payments.Told{Finish: true}, payments.CodePartlyThere)
		}, options{workerOnly: true})
	})
}

// recovery.md "Torn transactions": who loses the race to put a row back of a torn chain is told to repeat the command, and that finds out: it
// makes what follows. Nothing is to be inspected. Where nothing is torn the row is there, which is all that was asked for.
func TestWhoComesSecondToPutARowBackRepeatsTheCommand(t *testing.T) {
	for name, c := range map[string]struct {
		begins func(*world) idem.OperationID
		first  string
		// second is empty where the second one is told to repeat the command.
		second, repeated string
	}{
		"a torn chain": {func(w *world) idem.OperationID { return w.keepsOfAPayout(2, 1) }, rowOfTornPutBack, "", "restored"},
		"a row alone": {func(w *world) idem.OperationID {
			a := w.pay("k", "card_ok")
			w.keeps(w.recordOf(a.Operation), w.message(a.Operation))
			return a.Operation
		}, rowPutBack, "there already", "there already"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				operation := c.begins(w)
				w.store.On(faulty.Commit, 1, faulty.Before(func() {
					if got, err := w.restorer().Restore(w.Context(), operation, w.shown(operation), told); err != nil || got != c.first {
						w.Errorf("the first: %q, %v; want %q", got, err, c.first)
					}
				}))
				got, err := w.restorer().Restore(w.Context(), operation, w.shown(operation), told)
				if got != c.second || (err == nil) != (c.second != "") || errors.As(err, new(*payments.ByHandError)) {
					w.Errorf("the second: %q, %v; want %q", got, err, c.second)
				}
				if got, err := w.restorer().Restore(w.Context(), operation, w.shown(operation), told); err != nil || got != c.repeated {
					w.Errorf("repeated: %q, %v; want %q", got, err, c.repeated)
				}
			}, options{workerOnly: true})
		})
	}
}

// So is who finds a record where there was none: of the same operation that is somebody else's write, and is not to be inspected either.
func TestWhoFindsARecordWhereThereWasNoneRepeatsTheCommand(t *testing.T) {
	onBoth(t, func(w *world) {
		a := w.pay("k", "card_ok")
		record := w.recordOf(a.Operation)
		w.deliver(a.Operation)
		w.lose()
		w.store.On(faulty.Commit, 1, faulty.Before(func() { w.ok(w.store.Insert(w.Context(), record, w.clock.Now())) }))
		if got, err := w.restorer().Restore(w.Context(), a.Operation, w.shown(a.Operation), told); err == nil || errors.As(err, new(*payments.ByHandError)) {
			w.Errorf("%q, %v; want to be told to repeat the command", got, err)
		}
		if got, err := w.restorer().Restore(w.Context(), a.Operation, w.shown(a.Operation), told); err != nil || got != "restored" {
			w.Errorf("repeated: %q, %v", got, err)
		}
	})
}

// recovery.md "Torn transactions": beside a later message nothing is made again of a first one that is gone, also where the row is gone: the
// account would be debited twice, and the provider called twice.
func TestALostFirstMessageIsLeftToAPersonBesideALaterOne(t *testing.T) {
	onBoth(t, func(w *world) {
		payout := w.paysOut(1)
		loaded, err := w.store.LoadResponse(w.Context(), w.recordOf(payout))
		w.ok(err)
		second, err := w.store.Message(w.Context(), payout.Message(2))
		w.ok(err)
		w.keeps(loaded, *second)
		w.leftTo(payout, w.shown(payout), payments.Told{Finish: true}, payments.CodePartlyThere)
	}, options{workerOnly: true})
}
