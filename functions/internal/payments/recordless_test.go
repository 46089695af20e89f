package payments_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// losesRecord loses everything, and brings back the operation's first message and rows as they were.
func (w *world) losesRecord(m storage.Message, rows ...idem.Write) {
	w.Helper()
	w.lose()
	w.faults()
	mint := storage.IDGenerator{Random: rand.Reader}
	owner, err := mint.Owner()
	w.ok(err)
	key := idem.Scope{Tenant: tenantB, Operation: "other", Key: string(owner)}.RecordKey()
	id, err := mint.OperationID(key)
	w.ok(err)
	now := w.clock.Now()
	send, err := w.store.Prepare(storage.Commit{
		Record: storage.Record{ // no transaction is without one
			Key: key, State: storage.StateCompleted, OperationID: id, Epoch: 1, Owner: owner, Revision: storage.Revision(owner), Tenant: tenantB, Operation: "other",
			Kind: storage.KindAtomic, Response: idem.Response{Status: 201}, CreatedAt: now, DoneAt: now, Retention: time.Hour, ExpiresAt: now.Add(time.Hour),
			FreeAt: now.Add(time.Hour), SchemaVersion: storage.SchemaVersion,
		},
		Now: now, Messages: []storage.Message{m}, Writes: rows, Token: string(owner),
	})
	w.ok(err)
	w.ok(send(w.Context()))
}

// recovery.md "Torn transactions": a message and its row whose record was lost get it back, and what the message keeps is settled by a
// redrive then. Nobody has to say whose it is. The provider is asked for nothing new.
func TestAMessageGetsItsLostRecordBack(t *testing.T) {
	onBoth(t, func(w *world) {
		a := w.pay("k", "card_ok")
		m := w.message(a.Operation)
		row, err := w.backend.ledger.Payment(w.Context(), tenantA, a.Payment.ID)
		w.ok(err)
		w.deliver(a.Operation)
		w.losesRecord(m, payments.InsertPayment{Payment: *row})
		w.deliver(a.Operation)
		w.finishes()
		id := a.Operation.Message(1)
		dead, err := w.store.Message(w.Context(), id)
		w.ok(err)
		if dead.State != storage.MessageDead || dead.KeptDelivered == nil {
			w.Fatalf("%s, keeps %v", dead.State, dead.KeptDelivered)
		}
		w.leftTo(a.Operation, w.shown(a.Operation), payments.Told{Tenant: tenantB}, payments.CodeTenantDiffers)
		w.leftTo(a.Operation, changedTo(func(o *payments.Shown) { o.Amount-- })(w.shown(a.Operation)), payments.Told{}, payments.CodeDiffersFromSelf)
		if got, err := w.restorer().Restore(w.Context(), a.Operation, w.shown(a.Operation), payments.Told{}); err != nil || got != "restored" {
			w.Fatalf("%q, %v", got, err)
		}
		if got := w.recordOf(a.Operation); !got.CreatedAt.Equal(m.CreatedAt) || got.Retention != m.Retention || got.Tenant != tenantA {
			w.Errorf("%+v", got)
		}
		w.again("k", "card_ok").want(202)
		_, err = w.operator.Redrive(w.Context(), id, w.seen(*dead))
		w.ok(err)
		w.again("k", "card_ok").want(201)
		if got, err := w.restorer().Restore(w.Context(), a.Operation, w.shown(a.Operation), payments.Told{}); err != nil || got != "there already" {
			w.Errorf("again: %q, %v", got, err)
		}
		w.charged(1)
	})
}

// A refund and a payout get their record back, too, by their rows: no amount is reserved and no account is debited a second time.
func TestALostRecordComesBackWithoutItsWrites(t *testing.T) {
	t.Run("refund", func(t *testing.T) {
		onBoth(t, func(w *world) {
			p := w.paid("k", "card_ok")
			var r accepted
			w.giveBack("r", p.ID, 500).want(202).decode(&r)
			m := w.message(r.Operation)
			refund, err := w.backend.ledger.Refund(w.Context(), tenantA, payments.EntryID(payments.EntryRefund, r.Operation))
			w.ok(err)
			paid, err := w.backend.ledger.Payment(w.Context(), tenantA, p.ID)
			w.ok(err)
			w.losesRecord(m, payments.InsertRefund{Refund: *refund})
			w.leftTo(r.Operation, nil, payments.Told{}, payments.CodePaymentMissing)
			w.losesRecord(m, payments.InsertRefund{Refund: *refund}, payments.InsertPayment{Payment: *paid})
			w.restores(r.Operation, "restored")
			w.giveBack("r", p.ID, 500).want(201)
			if n := len(w.refunds()); n != 1 {
				w.Errorf("%d refunds at the provider", n)
			}
		})
	})
	t.Run("payout", func(t *testing.T) {
		onBoth(t, func(w *world) {
			w.faults(provider.Rule{On: provider.Screening, Fault: provider.ErrorBefore})
			var made accepted
			w.payOut("k", "iban_ok").want(202).decode(&made)
			payout := made.Operation
			m := w.message(payout)
			row, err := w.backend.ledger.Payout(w.Context(), tenantA, payments.EntryID(payments.EntryPayout, payout))
			w.ok(err)
			w.losesRecord(m, payments.InsertPayout{Payout: *row})
			balance := w.balance(tenantA, "acct_1")
			w.leftTo(payout, nil, payments.Told{Account: "acct_2"}, payments.CodeAccountDiffers)
			if got, err := w.restorer().Restore(w.Context(), payout, nil, payments.Told{}); err != nil || got != "restored" {
				w.Fatalf("%q, %v", got, err)
			}
			w.finishes()
			w.payOut("k", "iban_ok").want(201)
			if got := w.balance(tenantA, "acct_1"); got != balance {
				w.Errorf("the account holds %d, it held %d", got, balance)
			}
		})
	})
}

// recovery.md "Torn transactions": a chain goes on without its record, so a payout whose record is lost is paid out, once. Its last message
// can't be settled, and is what is redriven once the record is there again.
func TestAPayoutWithoutItsRecordIsPaidOut(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(provider.Rule{On: provider.Screening, Fault: provider.ErrorBefore})
		var made accepted
		w.payOut("k", "iban_ok").want(202).decode(&made)
		payout := made.Operation
		m := w.message(payout)
		row, err := w.backend.ledger.Payout(w.Context(), tenantA, payments.EntryID(payments.EntryPayout, payout))
		w.ok(err)
		w.losesRecord(m, payments.InsertPayout{Payout: *row}, payments.Debit{Tenant: tenantA, Account: row.From, Amount: row.Amount, Currency: row.Currency})
		w.finishes()
		w.made(1, 1, 500)
		dead := w.message(payout)
		if dead.State != storage.MessageDead || dead.Index != 2 || dead.KeptDelivered == nil {
			w.Fatalf("message %d is %s, keeps %v", dead.Index, dead.State, dead.KeptDelivered)
		}
		if got, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), payments.Told{}); err != nil || got != "restored" {
			w.Fatalf("%q, %v", got, err)
		}
		_, err = w.operator.Redrive(w.Context(), dead.ID, w.seen(dead))
		w.ok(err)
		w.payOut("k", "iban_ok").want(201)
		w.made(1, 1, 500)
	})
}

// recovery.md "Torn transactions": a payout of which the message that screened it and the row are left, and neither its record nor what
// follows, gets both back: by the same rules as beside a record, and paid out once.
func TestAPayoutWithoutItsRecordAndItsNextMessageGoesOn(t *testing.T) {
	onBoth(t, func(w *world) {
		payout := w.paysOut(1)
		m, err := w.store.Message(w.Context(), payout.Message(1))
		w.ok(err)
		row, err := w.backend.ledger.Payout(w.Context(), tenantA, payments.EntryID(payments.EntryPayout, payout))
		w.ok(err)
		w.losesRecord(*m, payments.InsertPayout{Payout: *row}, payments.Debit{Tenant: tenantA, Account: row.From, Amount: row.Amount, Currency: row.Currency})
		w.leftTo(payout, w.shown(payout), payments.Told{}, payments.CodeOnlyScreened)
		w.leftTo(payout, w.shown(payout), payments.Told{Tenant: tenantB, Finish: true}, payments.CodeTenantDiffers)
		w.leftTo(payout, w.shown(payout), payments.Told{Account: "acct_2", Finish: true}, payments.CodeAccountDiffers)
		for _, want := range []string{"restored", "there already"} {
			if got, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), payments.Told{Finish: true}); err != nil || got != want {
				w.Fatalf("%q, %v; want %q", got, err, want)
			}
		}
		if got := w.recordOf(payout); !got.CreatedAt.Equal(m.CreatedAt) || got.Retention != m.Retention || got.Tenant != tenantA {
			w.Errorf("%+v", got)
		}
		w.finishes()
		w.payOut("k", "iban_ok").want(201)
		w.made(1, 1, 500)
	}, options{workerOnly: true})
}

// A record is not made for what nothing waits in, what is not there, or what is not lost: it would be pending for ever.
func TestALostRecordIsLeftToAPersonWhereNothingWaitsForIt(t *testing.T) {
	for name, c := range map[string]struct {
		message func(*storage.Message)
		row     func(*payments.Payment)
		code    string
	}{
		"its message has ended": {func(m *storage.Message) { m.State = storage.MessageDelivered }, func(*payments.Payment) {}, payments.CodePartlyThere},
		"its row has ended":     {func(*storage.Message) {}, func(p *payments.Payment) { p.Status = payments.StatusSucceeded }, payments.CodePartlyThere},
		"its row is not there":  {func(*storage.Message) {}, func(p *payments.Payment) { p.ID = "pay_another" }, payments.CodePartlyThere},
		"it is not lost":        {func(m *storage.Message) { m.CreatedAt = m.CreatedAt.Add(time.Hour) }, func(*payments.Payment) {}, payments.CodeNotLost},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				a := w.pay("k", "card_ok")
				m := w.message(a.Operation)
				row, err := w.backend.ledger.Payment(w.Context(), tenantA, a.Payment.ID)
				w.ok(err)
				c.message(&m)
				c.row(row)
				w.losesRecord(m, payments.InsertPayment{Payment: *row})
				w.leftTo(a.Operation, nil, payments.Told{}, c.code)
			})
		})
	}
}
