package payments_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// paysOut asks for a payout and delivers so many of its messages.
func (w *world) paysOut(messages int) idem.OperationID {
	w.Helper()
	var made accepted
	w.payOut("k", "iban_ok").want(202).decode(&made)
	for n := 1; n <= messages; n++ {
		w.deliverMessage(made.Operation, n)
	}
	return made.Operation
}

// tearsBut loses everything but an operation's pending record, its row, and these of its messages.
func (w *world) tearsBut(operation idem.OperationID, messages ...int) {
	w.Helper()
	w.tearsAndDamages(operation, func(*storage.Message) {}, messages...)
}

// tearsAndDamages is tearsBut where the messages that are left are not as they were.
func (w *world) tearsAndDamages(operation idem.OperationID, damage func(*storage.Message), messages ...int) {
	w.Helper()
	record := w.recordOf(operation)
	loaded, err := w.store.LoadResponse(w.Context(), record)
	w.ok(err)
	row, err := w.backend.ledger.Payout(w.Context(), tenantA, payments.EntryID(payments.EntryPayout, operation))
	w.ok(err)
	row.Status, row.ProviderReference, row.GivenBack, loaded.State = payments.StatusPending, "", false, storage.StatePending
	var left []storage.Message
	for _, n := range messages {
		m, err := w.store.Message(w.Context(), operation.Message(n))
		w.ok(err)
		damage(m)
		left = append(left, *m)
	}
	w.lose()
	w.faults()
	send, err := w.store.Prepare(storage.Commit{
		Record: loaded, Now: w.clock.Now(), Messages: left, Token: string(loaded.Revision),
		Writes: []idem.Write{payments.InsertPayout{Payout: *row}, payments.Debit{Tenant: tenantA, Account: row.From, Amount: row.Amount, Currency: row.Currency}},
	})
	w.ok(err)
	w.ok(send(w.Context()))
}

// recovery.md "Torn transactions": a settlement that goes on writes two messages, and a restore may hold the first of them alone. The next
// one is made again from it, and counts as called. No money moves that had not moved, unless that is said.
func TestAChainThatIsTornInItsMiddleGoesOn(t *testing.T) {
	declined := []provider.Rule{{On: provider.Payout, Fault: provider.Decline}}
	refused := []provider.Rule{{On: provider.Payout, Fault: provider.Refuse}}
	for name, c := range map[string]struct {
		destination string
		faults      []provider.Rule
		// delivered is how many messages were delivered before the loss, and left how many of them are there after it.
		delivered, left int
		without         string // the code without told
		told            payments.Told
		status          int
		payouts         int
		balance         int64
	}{
		"only screened":          {"iban_ok", nil, 1, 1, payments.CodeOnlyScreened, payments.Told{Finish: true}, 201, 1, seedBalance - 500},
		"paid out":               {"iban_ok", nil, 2, 1, "", payments.Told{}, 201, 1, seedBalance - 500},
		"paid out, keyless":      {"legacy_bank", nil, 2, 1, "", payments.Told{}, 201, 1, seedBalance - 500},
		"only screened, keyless": {"legacy_bank", nil, 1, 1, payments.CodeOnlyScreened, payments.Told{Finish: true}, 201, 1, seedBalance - 500},
		"declined":               {"iban_ok", declined, 2, 2, "", payments.Told{}, 402, 1, seedBalance},
		"declined and released":  {"iban_ok", declined, 3, 2, "", payments.Told{}, 402, 1, seedBalance},
		"refused and released":   {"iban_ok", refused, 3, 1, payments.CodeHoldReleased, payments.Told{EndReleased: true}, 502, 0, seedBalance},
		"refused":                {"iban_ok", refused, 2, 2, "", payments.Told{}, 502, 0, seedBalance},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.faults(c.faults...)
				var made accepted
				w.payOut("k", c.destination).want(202).decode(&made)
				payout := made.Operation
				for n := 1; n <= c.delivered; n++ {
					for range 10 { // what is refused is given up after some tries
						w.deliverMessage(payout, n)
						m, err := w.store.Message(w.Context(), payout.Message(n))
						w.ok(err)
						if m.State.Final() {
							break
						}
						w.clock.Advance(time.Hour)
						w.swept()
					}
				}
				w.tearsBut(payout, []int{1, 2}[:c.left]...)
				w.clock.Advance(2 * time.Minute)
				w.get(tenantA, "/v1/operations/"+string(payout)).want(500)
				if c.without != "" {
					w.leftTo(payout, w.shown(payout), payments.Told{}, c.without)
				}
				w.leftTo(payout, w.shown(payout), payments.Told{Account: "acct_2", Finish: true, EndReleased: true}, payments.CodeAccountDiffers)
				for _, want := range []string{"restored", "there already"} {
					if got, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), c.told); err != nil || got != want {
						w.Fatalf("%q, %v; want %q", got, err, want)
					}
				}
				w.finishes()
				w.payOut("k", c.destination).want(c.status, "Idempotent-Replayed: true")
				if n := len(w.payouts()); n != c.payouts {
					w.Errorf("%d payouts", n)
				}
				if got := w.balance(tenantA, "acct_1"); got != c.balance {
					w.Errorf("the account holds %d, want %d", got, c.balance)
				}
			}, options{workerOnly: true})
		})
	}
}

// What ended with its last message, and has no answer, is nothing that can be made again. Nor is what the provider contradicts: a payout
// that was given up here, and made there. Neither is "there already".
func TestATornEndIsLeftToAPerson(t *testing.T) {
	onBoth(t, func(w *world) {
		payout := w.paysOut(2)
		w.tearsBut(payout, 1, 2)
		w.leftTo(payout, w.shown(payout), payments.Told{Finish: true}, payments.CodePartlyThere)
	}, options{workerOnly: true})
}

// Tables of different instants may hold what comes after a message that is gone: nobody knows then what is missing.
func TestAChainWithAGapIsLeftToAPerson(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(provider.Rule{On: provider.Payout, Fault: provider.Decline})
		payout := w.paysOut(3)
		w.tearsBut(payout, 1, 3)
		w.leftTo(payout, w.shown(payout), payments.Told{Finish: true}, payments.CodePartlyThere)
	}, options{workerOnly: true})
}

func TestAGivenUpPayoutThatTheProviderMadeIsLeftToAPerson(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(provider.Rule{On: provider.Payout, Fault: provider.Decline})
		payout := w.paysOut(2)
		w.tearsBut(payout, 1, 2)
		succeeded := changedTo(func(o *payments.Shown) { o.Status = payments.StatusSucceeded })
		w.leftTo(payout, succeeded(w.shown(payout)), payments.Told{}, payments.CodeDiffersFromSelf)
	}, options{workerOnly: true})
}

// A destination that passed by its message, and did not by the provider, is paid out to by nobody: whatever is asked for.
func TestAScreeningThatTheProviderShowsAsDeclinedIsLeftToAPerson(t *testing.T) {
	onBoth(t, func(w *world) {
		payout := w.paysOut(1)
		w.tearsBut(payout, 1)
		declined := changedTo(func(o *payments.Shown) { o.Status = payments.StatusDeclined })(w.shown(payout))
		for _, finish := range []bool{false, true} {
			w.leftTo(payout, declined, payments.Told{Finish: finish}, payments.CodeDiffersFromSelf)
		}
		w.finishes()
		w.made(1, 0, 500)
	}, options{workerOnly: true})
}

// A message that this release can't read, or that does not name what it made, does not say what followed it.
func TestWhatFollowsAMessageThatSaysTooLittleIsLeftToAPerson(t *testing.T) {
	for name, damage := range map[string]func(*storage.Message){
		"its payload can't be read":        func(m *storage.Message) { m.Payload = []byte("{") },
		"its payload is a later release's": func(m *storage.Message) { m.Payload = []byte(`{"version":99}`) },
		"it has no screening":              func(m *storage.Message) { m.Reference = "" },
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				payout := w.paysOut(1)
				w.tearsAndDamages(payout, damage, 1)
				_, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), payments.Told{Finish: true})
				var refused *payments.ByHandError
				if !errors.As(err, &refused) || refused.Code != payments.CodePartlyThere || !strings.Contains(refused.Rule, "can't be made again") {
					w.Errorf("%v; want %s", err, payments.CodePartlyThere)
				}
				w.finishes()
				w.made(1, 0, 500)
			}, options{workerOnly: true})
		})
	}
}

// A store that does not answer leaves nothing to a person: the command is repeated.
func TestAChainThatIsTornInItsMiddleGoesOnOnceItsRecordCanBeRead(t *testing.T) {
	onBoth(t, func(w *world) {
		payout := w.paysOut(1)
		w.tearsBut(payout, 1)
		w.store.On(faulty.LoadResponse, 1, faulty.Refuse(storage.ErrThrottled))
		finish := payments.Told{Finish: true}
		if got, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), finish); !errors.Is(err, storage.ErrThrottled) || errors.As(err, new(*payments.ByHandError)) {
			w.Errorf("%q, %v; want the store's error", got, err)
		}
		if got, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), finish); err != nil || got != "restored" {
			w.Errorf("%q, %v; want restored", got, err)
		}
		w.finishes()
		w.payOut("k", "iban_ok").want(201)
		w.made(1, 1, 500)
	}, options{workerOnly: true})
}
