package payments_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// lose loses every table. Records are lost up to now.
func (w *world) lose() {
	w.Helper()
	w.clock.Advance(time.Second)
	w.backend = w.anew()
	_, err := w.backend.store.SetRefuseBefore(w.Context(), w.clock.Now())
	w.ok(err)
	w.clock.Advance(3 * time.Second)
	w.serve(options{})
}

// shown are the provider's objects of an operation.
func (w *world) shown(operation idem.OperationID) (all []payments.Shown) {
	w.Helper()
	for _, objects := range [][]provider.Object{w.charges(), w.refunds(), w.screenings(), w.payouts(), w.releases()} {
		for _, o := range objects {
			if strings.HasPrefix(o.Key, string(operation)+".") {
				all = append(all, shownAs(o))
			}
		}
	}
	return all
}

func shownAs(o provider.Object) (s payments.Shown) {
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		panic(err)
	}
	return s
}

func (w *world) restorer() payments.Restorer {
	return payments.Restorer{
		Store: w.store, Messages: w.store, Ledger: w.backend.ledger, Mint: storage.IDGenerator{Random: rand.Reader}, Retention: 24 * time.Hour,
		Now: w.clock.Now, Pause: w.clock.Pause,
		Charge: func(_ context.Context, id string) (payments.Shown, error) {
			for _, o := range w.charges() {
				if o.ID == id {
					return shownAs(o), nil
				}
			}
			return payments.Shown{}, errors.New("no such charge")
		},
	}
}

// told is what a person says of every operation here.
var told = payments.Told{Tenant: tenantA, Account: "acct_1"}

// restores makes an operation again and lets everything come to its end.
func (w *world) restores(operation idem.OperationID, want string) {
	w.Helper()
	got, err := w.restorer().Restore(w.Context(), operation, w.shown(operation), told)
	if err != nil || got != want {
		w.Fatalf("%q, %v; want %q", got, err, want)
	}
	w.finishes()
}

// recordOf is an operation's record as an earlier instant of the table holds it.
func (w *world) recordOf(operation idem.OperationID) storage.Record {
	w.Helper()
	key, err := operation.RecordKey()
	w.ok(err)
	stored, err := w.store.Get(w.Context(), key)
	w.ok(err)
	return *stored
}

// tears loses everything but a record.
func (w *world) tears(torn storage.Record) {
	w.Helper()
	w.lose()
	w.faults()
	w.ok(w.store.Insert(w.Context(), torn, w.clock.Now()))
	w.store.Clear()
}

// finishes lets everything come to its end: each message is asked about once it can be proven that nothing is under way.
func (w *world) finishes() {
	w.Helper()
	for range 4 {
		w.clock.Advance(time.Minute)
		w.swept()
		w.clock.Advance(time.Hour)
		w.reconciled()
	}
}

// screened is the operation of the last screening: payouts are delivered within their requests.
func (w *world) screened() idem.OperationID {
	w.Helper()
	operation, _, err := idem.MessageID(w.screenings()[0].Key).Operation()
	w.ok(err)
	return operation
}

// byHand demands the code of a refusal, by Judge and by Restore.
func (w *world) byHand(objects []payments.Shown, told payments.Told, code string) {
	w.Helper()
	var operation idem.OperationID
	if len(objects) > 0 {
		operation, _, _ = objects[0].Key.Operation()
	}
	w.leftTo(operation, objects, told, code)
}

// leftTo is byHand for an operation of which the provider may have nothing.
func (w *world) leftTo(operation idem.OperationID, objects []payments.Shown, told payments.Told, code string) {
	w.Helper()
	_, judged := w.restorer().Judge(w.Context(), operation, objects, told)
	_, restored := w.restorer().Restore(w.Context(), operation, objects, told)
	for _, err := range []error{judged, restored} {
		var refused *payments.ByHandError
		if !errors.As(err, &refused) || refused.Code != code || refused.Rule == "" {
			w.Errorf("%v; want %s", err, code)
		}
	}
}

// recovery.md "What is missing": a payment that only the provider knows of is made again, once, and its client's old key gets the
// answer. The provider is asked for nothing new.
func TestALostPaymentIsMadeAgain(t *testing.T) {
	for _, source := range []string{"card_ok", "legacy_card"} {
		t.Run(source, func(t *testing.T) {
			onBoth(t, func(w *world) {
				a := w.pay("k", source)
				w.deliver(a.Operation)
				w.again("k", source).want(201)
				w.lose()
				w.again("k", source).problem(503, "idempotency_refused_before")
				w.restores(a.Operation, "restored")
				w.restores(a.Operation, "there already")
				var p payment
				w.again("k", source).want(201, "Idempotent-Replayed: true").decode(&p)
				if made := w.charges()[0]; p.ID != a.Payment.ID || *p.ProviderReference != made.ID || p.Amount != 1999 {
					w.Errorf("%+v of %+v", p, made)
				}
				w.post(tenantA, "/v1/payments", "k", strings.Replace(order(source), "1999", "2999", 1)).problem(422, "idempotency_key_reused_with_different_payload")
				w.charged(1)
			})
		})
	}
}

// Days later the provider has forgotten the key: it is asked what there is, and called for nothing.
func TestALostOperationIsNotCalledUnderAForgottenKey(t *testing.T) {
	for _, later := range []time.Duration{23 * time.Hour, 25 * time.Hour, 20 * 24 * time.Hour} {
		t.Run(later.String(), func(t *testing.T) {
			onBoth(t, func(w *world) {
				a := w.pay("k", "card_ok")
				w.deliver(a.Operation)
				w.payOut("k2", "iban_ok").want(201)
				payout := w.screened()
				w.lose()
				w.clock.Advance(later)
				w.restores(a.Operation, "restored")
				w.restores(payout, "restored")
				w.again("k", "card_ok").want(201)
				w.payOut("k2", "iban_ok").want(201)
				w.charged(1)
				w.made(1, 1, 500)
			})
		})
	}
}

// What is written is what the client's own request had written, but for what names the write and for the provider's time.
func TestALostOperationsRowsAreTheOnesThatItHad(t *testing.T) {
	onBoth(t, func(w *world) {
		pay, pay2 := w.pay("k", "card_ok"), w.post(tenantA, "/v1/payments", "k2", `{"amount":1,"currency":"EUR","source":"card_ok"}`)
		var bare accepted
		pay2.want(202).decode(&bare)
		w.payOut("k3", "iban_ok").want(201)
		type rows struct {
			record  storage.Record
			message storage.Message
		}
		read := func(id idem.OperationID) (r rows) {
			key, err := id.RecordKey()
			w.ok(err)
			record, err := w.store.Get(w.Context(), key)
			w.ok(err)
			message, err := w.store.Message(w.Context(), id.Message(1))
			w.ok(err)
			record.Revision, record.Owner, record.CreatedAt, record.Unknown, record.DoneAt = "", "", time.Time{}, nil, time.Time{}
			record.Response, record.ExpiresAt, record.FreeAt, record.State = idem.Response{}, time.Time{}, time.Time{}, ""
			return rows{*record, storage.Message{
				ID: message.ID, Index: message.Index, OperationID: message.OperationID, RecordKey: message.RecordKey, Tenant: message.Tenant,
				Topic: message.Topic, Retention: message.Retention, Expiry: message.Expiry, SchemaVersion: message.SchemaVersion,
			}}
		}
		all := []idem.OperationID{pay.Operation, bare.Operation, w.screened()}
		var had []rows
		for _, id := range all {
			w.deliver(id)
			had = append(had, read(id))
		}
		w.lose()
		for i, id := range all {
			w.restores(id, "restored")
			if has := read(id); !reflect.DeepEqual(has, had[i]) {
				w.Errorf("made again\n%+v\nwas\n%+v", has, had[i])
			}
		}
	})
}

// A payout takes its money off the account again, and is paid once.
func TestALostPayoutIsMadeAgain(t *testing.T) {
	for _, destination := range []string{"iban_ok", "legacy_bank"} {
		t.Run(destination, func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.payOut("k", destination).want(201)
				payout := w.screened()
				w.lose()
				w.byHand(w.shown(payout), payments.Told{Tenant: tenantA}, payments.CodeAccountUnknown)
				_, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), payments.Told{Tenant: tenantA, Account: "acct_2"})
				var refused *payments.ByHandError
				if !errors.As(err, &refused) || refused.Code != payments.CodeFundsShort {
					w.Errorf("from an account without the money: %v", err)
				}
				w.restores(payout, "restored")
				w.payOut("k", destination).want(201, "Idempotent-Replayed: true")
				w.made(1, 1, 500)
			})
		})
	}
}

// A refund comes after its payment, and counts against it.
func TestALostRefundIsMadeAgain(t *testing.T) {
	onBoth(t, func(w *world) {
		p := w.paid("k", "card_ok")
		payment, _, err := idem.MessageID(w.charges()[0].Key).Operation()
		w.ok(err)
		var r accepted
		w.giveBack("r", p.ID, 500).want(202).decode(&r)
		w.deliver(r.Operation)
		w.lose()
		w.byHand(w.shown(r.Operation), told, payments.CodePaymentMissing)
		w.restores(payment, "restored")
		w.restores(r.Operation, "restored")
		w.refunded(p.ID, 500)
		w.giveBack("r", p.ID, 500).want(201, "Idempotent-Replayed: true")
		if n := len(w.refunds()); n != 1 {
			w.Errorf("%d refunds", n)
		}
	})
}

// A decline is an end, too.
func TestALostDeclineIsMadeAgain(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(provider.Rule{On: provider.Charge, Fault: provider.Decline})
		a := w.pay("k", "card_ok")
		w.deliver(a.Operation)
		w.lose()
		w.restores(a.Operation, "restored")
		w.again("k", "card_ok").want(402)
		w.charged(1)
	})
}

// A payout that was declined, and whose hold stands, goes on with the release of that hold, however old it is. An operator has started its
// chain anew: given up for its age, the release would be dead, the hold would stand, and the client would get its 202 for ever.
func TestALostPayoutThatWasDeclinedIsReleasedHoweverOldItIs(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(provider.Rule{On: provider.Payout, Fault: provider.Decline})
		payout := w.paysOut(2)
		w.lose()
		w.clock.Advance(25 * time.Hour)
		w.restores(payout, "restored")
		w.payOut("k", "iban_ok").want(402, "Idempotent-Replayed: true")
		w.made(1, 1, 0)
		w.held(0)
		if n := len(w.releases()); n != 1 {
			w.Errorf("%d releases", n)
		}
	}, options{workerOnly: true})
}

// Two operators, a reply that is lost, and a throttle after it: the operation is made again once, and whoever repeats it learns so.
func TestALostOperationIsMadeAgainOnceWhateverTheReplies(t *testing.T) {
	throttled := func() faulty.Fault { return faulty.Refuse(&storage.ContentionError{Throttled: true}) }
	for name, faults := range map[string][]faulty.Fault{
		"lost reply":                        {faulty.LoseReply()},
		"lost reply, then throttled":        {faulty.LoseReply(), throttled(), throttled(), throttled()},
		"lost request, then throttled once": {faulty.LoseRequest(), throttled()},
		"throttled":                         {throttled(), throttled()},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				a := w.pay("k", "card_ok")
				w.deliver(a.Operation)
				w.lose()
				for i, fault := range faults {
					w.store.On(faulty.Commit, 1+i, fault)
				}
				if got, err := w.restorer().Restore(w.Context(), a.Operation, w.shown(a.Operation), told); err != nil || got != "restored" && got != "there already" {
					w.Fatalf("%q, %v", got, err)
				}
				w.restores(a.Operation, "there already")
				w.again("k", "card_ok").want(201)
				w.charged(1)
			})
		})
	}
}

// Where nobody knows whether it has happened, that is the error; and the next one finds out.
func TestALostOperationOfWhichNobodyKnows(t *testing.T) {
	onBoth(t, func(w *world) {
		a := w.pay("k", "card_ok")
		w.deliver(a.Operation)
		w.lose()
		w.store.On(faulty.Commit, 1, faulty.LoseRequest())
		for n := 2; n <= 4; n++ {
			w.store.On(faulty.Commit, n, faulty.Refuse(&storage.ContentionError{Throttled: true}))
		}
		var unknown *storage.OutcomeUnknownError
		if got, err := w.restorer().Restore(w.Context(), a.Operation, w.shown(a.Operation), told); !errors.As(err, &unknown) {
			w.Fatalf("%q, %v", got, err)
		}
		w.store.Clear()
		w.restores(a.Operation, "restored")
		w.again("k", "card_ok").want(201)
	})
}

// What was lost stays open whatever becomes of RefuseBefore: the administrator may delete the row between the command and the worker. A key
// that the provider has forgotten is asked about.
func TestALostOperationCountsAsCalledWithoutRefuseBefore(t *testing.T) {
	for _, source := range []string{"card_ok", "legacy_card"} {
		t.Run(source, func(t *testing.T) {
			onBoth(t, func(w *world) {
				a := w.pay("k", source)
				w.deliver(a.Operation)
				objects := w.shown(a.Operation)
				w.clock.Advance(time.Second)
				w.backend = w.anew() // which has no row of the loss
				r := w.restorer()
				at := w.clock.Now()
				w.clock.Advance(25 * time.Hour)
				w.serve(options{})
				r.Store = lostUpTo{w.store, at}
				r.Messages = w.store
				if got, err := r.Restore(w.Context(), a.Operation, objects, told); err != nil || got != "restored" {
					w.Fatalf("%q, %v", got, err)
				}
				w.finishes()
				w.charged(1)
				w.again("k", source).want(201)
			})
		})
	}
}

// lostUpTo is a store whose row of the loss is there while the command looks.
type lostUpTo struct {
	storage.Store
	at time.Time
}

func (l lostUpTo) RefuseBefore(context.Context) (time.Time, error) { return l.at, nil }

// A payout that is finished counts as called whatever becomes of RefuseBefore: the provider may list late that it was made.
func TestAFinishedPayoutCountsAsCalledWithoutRefuseBefore(t *testing.T) {
	for _, destination := range []string{"iban_ok", "legacy_bank"} {
		t.Run(destination, func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.payOut("k", destination).want(201)
				payout := w.screened()
				var listed []payments.Shown
				for _, o := range w.shown(payout) {
					if o.Kind == "screening" {
						listed = append(listed, o)
					}
				}
				w.clock.Advance(time.Second)
				w.backend = w.anew() // which has no row of the loss
				at := w.clock.Now()
				w.clock.Advance(25 * time.Hour)
				w.serve(options{})
				r := w.restorer()
				r.Store = lostUpTo{w.store, at}
				finish := payments.Told{Tenant: tenantA, Account: "acct_1", Finish: true}
				if got, err := r.Restore(w.Context(), payout, listed, finish); err != nil || got != "restored" {
					w.Fatalf("%q, %v", got, err)
				}
				w.finishes()
				w.payOut("k", destination).want(201)
				w.made(1, 1, 500)
			})
		})
	}
}

// Whoever says another tenant, or another account, than the operation was made again with is told so, and not "there already".
func TestALostOperationThatIsThereOfAnother(t *testing.T) {
	onBoth(t, func(w *world) {
		w.payOut("k", "iban_ok").want(201)
		payout := w.screened()
		w.lose()
		w.restores(payout, "restored")
		w.byHand(w.shown(payout), payments.Told{Tenant: tenantB, Account: "acct_1"}, payments.CodeTenantDiffers)
		w.byHand(w.shown(payout), payments.Told{Tenant: tenantA, Account: "acct_2"}, payments.CodeAccountDiffers)
		w.restores(payout, "there already")
	})
}

// A row that is there without its record says so, although its account was debited before and holds too little for a second time.
func TestALostRecordWhoseRowIsThereDoesNotAskForFunds(t *testing.T) {
	onBoth(t, func(w *world) {
		w.payOut("k", "iban_ok").want(201)
		payout, objects := w.screened(), w.shown(w.screened())
		other := w.recordOf(w.pay("k2", "card_ok").Operation)
		made, err := payments.Made(objects)
		w.ok(err)
		row, err := w.backend.ledger.Payout(w.Context(), tenantA, made.ID)
		w.ok(err)
		w.lose()
		w.open(payments.Account{Tenant: tenantA, ID: "acct_1", Currency: "EUR", Balance: 100})
		token, err := storage.IDGenerator{Random: rand.Reader}.Revision()
		w.ok(err)
		send, err := w.store.Prepare(storage.Commit{
			Record: other, Now: w.clock.Now(), Writes: []idem.Write{payments.InsertPayout{Payout: *row}}, Token: string(token),
		})
		w.ok(err)
		w.ok(send(w.Context()))
		_, err = w.restorer().Restore(w.Context(), payout, objects, told)
		var refused *payments.ByHandError
		if !errors.As(err, &refused) || refused.Code != payments.CodePartlyThere {
			w.Errorf("%v; want %s", err, payments.CodePartlyThere)
		}
	})
}

// A client whose key claims to be younger than it is executes again: what was lost is left to a person.
func TestALostOperationWhoseKeyWasUsedAgain(t *testing.T) {
	onBoth(t, func(w *world) {
		a := w.pay("k", "card_ok")
		w.deliver(a.Operation)
		w.lose()
		w.clock.Advance(idem.FirstSentSkew)
		w.post(tenantA, "/v1/payments", "k", order("card_ok"), "Idempotency-First-Sent: "+w.clock.Now().Format(time.RFC3339)).want(202)
		w.byHand(w.shown(a.Operation), told, payments.CodeKeyUsedAgain)
	})
}

// What became of the operation that has the key now is said as it is: only one that has an answer may have executed anything.
func TestALostOperationsKeyIsUsedAgainInAnyState(t *testing.T) {
	for state, says := range map[storage.State]string{
		storage.StatePending: "is pending: come back", storage.StateInProgress: "is in_progress: come back", storage.StateUnknown: "is unknown: come back",
		storage.StateCompleted: "was executed or declined", storage.StateFailed: "has failed: inspect it. The key is free at 2101-",
		storage.StateFailedRetryable: "did nothing. The key is free at 2101-",
	} {
		t.Run(string(state), func(t *testing.T) {
			onBoth(t, func(w *world) {
				a := w.pay("k", "card_ok")
				w.deliver(a.Operation)
				other, objects := w.recordOf(a.Operation), w.shown(a.Operation)
				w.lose()
				now := w.clock.Now()
				other.State, other.OperationID = state, a.Operation[:len(a.Operation)-22]+"AAAAAAAAAAAAAAAAAAAAAA"
				other.FreeAt, other.ExpiresAt, other.DoneAt, other.LeaseUntil = time.Time{}, time.Time{}, time.Time{}, now.Add(time.Minute)
				if state.Final() || state == storage.StateFailedRetryable {
					other.DoneAt, other.FreeAt, other.ExpiresAt = now, now.Add(24*time.Hour), now.Add(24*time.Hour)
				}
				w.ok(w.store.Insert(w.Context(), other, now))
				_, err := w.restorer().Restore(w.Context(), a.Operation, objects, told)
				var refused *payments.ByHandError
				if !errors.As(err, &refused) || refused.Code != payments.CodeKeyUsedAgain || !strings.Contains(refused.Rule, says) {
					w.Errorf("%v; want %q", err, says)
				}
			})
		})
	}
}

// What can't be made again says why, and nothing is written.
func TestWhatIsLeftToAPerson(t *testing.T) {
	onBoth(t, func(w *world) {
		a := w.pay("k", "card_ok")
		w.deliver(a.Operation)
		w.payOut("k2", "iban_ok").want(201)
		w.lose()
		one, payout := w.shown(a.Operation), w.screened()
		changed := func(objects []payments.Shown, change func(*payments.Shown)) []payments.Shown {
			other := append([]payments.Shown(nil), objects...)
			change(&other[len(other)-1])
			return other
		}
		var screening, paidOut payments.Shown
		for _, o := range w.shown(payout) {
			if o.Kind == "screening" {
				screening = o
			} else {
				paidOut = o
			}
		}
		released := changed([]payments.Shown{screening}, func(o *payments.Shown) { o.Kind, o.Key = "release", payout.Message(3) })
		for i, c := range []struct {
			objects []payments.Shown
			told    payments.Told
			code    string
		}{
			{nil, told, payments.CodeNotOurs},
			{changed(one, func(o *payments.Shown) { o.Key = "" }), told, payments.CodeNotOurs},
			{changed(one, func(o *payments.Shown) { o.Kind = "loan" }), told, payments.CodeNotOurs},
			{one, payments.Told{}, payments.CodeTenantUnknown},
			{append(one, one...), told, payments.CodeMadeTwice},
			{changed(one, func(o *payments.Shown) { o.CreatedAt = w.clock.Now() }), told, payments.CodeNotLost},
			{[]payments.Shown{paidOut}, told, payments.CodeNoScreening},
			{[]payments.Shown{screening}, told, payments.CodeOnlyScreened},
			{append([]payments.Shown{screening}, released...), told, payments.CodeHoldReleased},
			{[]payments.Shown{screening, changed([]payments.Shown{paidOut}, func(o *payments.Shown) { o.Amount++ })[0]}, told, payments.CodeDiffersFromSelf},
			{changed([]payments.Shown{screening}, func(o *payments.Shown) { o.Reference = "po_1" }), told, payments.CodeNotOurs},
		} {
			w.Run(fmt.Sprint(i), func(*testing.T) { w.byHand(c.objects, c.told, c.code) })
		}
		if got := w.balance(tenantA, "acct_1"); got != seedBalance {
			w.Errorf("the balance is %d", got)
		}
	})
}

// A pending record whose message and row a loss has torn away gets them back from its own 202, and its client the answer. What the provider
// has nothing of is executed only where that is asked for; a key that the provider ignores is asked about before.
func TestATornOperationIsMadeWhole(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		called bool
	}{
		"called": {"card_ok", true}, "keyless, called": {"legacy_card", true}, "not called": {"card_ok", false}, "keyless, not called": {"legacy_card", false},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				a := w.pay("k", c.source)
				key, err := a.Operation.RecordKey()
				w.ok(err)
				torn, err := w.store.Get(w.Context(), key)
				w.ok(err)
				if c.called {
					w.deliver(a.Operation)
				}
				w.lose()
				w.ok(w.store.Insert(w.Context(), *torn, w.clock.Now()))
				w.again("k", c.source).want(202)
				finish := payments.Told{}
				if !c.called {
					w.leftTo(a.Operation, nil, payments.Told{}, payments.CodeNothingMade)
					finish.Finish = true
				}
				w.leftTo(a.Operation, w.shown(a.Operation), payments.Told{Tenant: tenantB}, payments.CodeTenantDiffers)
				for _, want := range []string{"restored", "there already"} {
					if got, err := w.restorer().Restore(w.Context(), a.Operation, w.shown(a.Operation), payments.Told{Tenant: tenantA, Finish: finish.Finish}); err != nil || got != want {
						w.Fatalf("%q, %v; want %q", got, err, want)
					}
					if want == "restored" {
						w.finishes()
					}
				}
				var p payment
				w.again("k", c.source).want(201, "Idempotent-Replayed: true").decode(&p)
				if p.ID != a.Payment.ID || p.CreatedAt != a.Payment.CreatedAt {
					w.Errorf("%+v, was %+v", p, a.Payment)
				}
				w.charged(1)
			})
		})
	}
}

// putsBack inserts a record and rows as they were, and no message.
func (w *world) putsBack(record storage.Record, rows ...idem.Write) {
	w.Helper()
	send, err := w.store.Prepare(storage.Commit{Record: record, Now: w.clock.Now(), Writes: rows, Token: rand.Text()})
	w.ok(err)
	w.ok(send(w.Context()))
}

// recovery.md "Torn transactions": a restore may tear the message alone from its record and its row. It is made again beside both, and no
// amount is reserved and no account debited a second time. A row that says something else than the 202 is left to a person.
func TestATornMessageIsMadeAgainBesideItsRow(t *testing.T) {
	t.Run("payment", func(t *testing.T) {
		onBoth(t, func(w *world) {
			a := w.pay("k", "card_ok")
			record := w.recordOf(a.Operation)
			row, err := w.backend.ledger.Payment(w.Context(), tenantA, a.Payment.ID)
			w.ok(err)
			w.deliver(a.Operation)
			other := *row
			other.Amount++
			w.lose()
			w.putsBack(record, payments.InsertPayment{Payment: other})
			w.leftTo(a.Operation, w.shown(a.Operation), told, payments.CodeDiffersFromSelf)
			w.lose()
			w.putsBack(record, payments.InsertPayment{Payment: *row})
			w.restores(a.Operation, "restored")
			w.restores(a.Operation, "there already")
			w.again("k", "card_ok").want(201)
			w.charged(1)
		})
	})
	t.Run("refund", func(t *testing.T) {
		onBoth(t, func(w *world) {
			p := w.paid("k", "card_ok")
			payment, _, err := idem.MessageID(w.charges()[0].Key).Operation()
			w.ok(err)
			var r accepted
			w.giveBack("r", p.ID, 500).want(202).decode(&r)
			record := w.recordOf(r.Operation)
			refund, err := w.backend.ledger.Refund(w.Context(), tenantA, payments.EntryID(payments.EntryRefund, r.Operation))
			w.ok(err)
			w.deliver(r.Operation)
			w.lose()
			w.restores(payment, "restored")
			w.putsBack(record, payments.ReserveRefund{Tenant: tenantA, Payment: p.ID, Amount: 500, Paid: p.Amount}, payments.InsertRefund{Refund: *refund})
			w.restores(r.Operation, "restored")
			w.refunded(p.ID, 500)
			w.giveBack("r", p.ID, 500).want(201)
			if n := len(w.refunds()); n != 1 {
				w.Errorf("%d refunds at the provider", n)
			}
		})
	})
	t.Run("payout", func(t *testing.T) {
		onBoth(t, func(w *world) {
			payout := w.paysOut(1)
			w.tearsBut(payout)
			w.leftTo(payout, w.shown(payout), payments.Told{}, payments.CodeOnlyScreened)
			if got, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), payments.Told{Finish: true}); err != nil || got != "restored" {
				w.Fatalf("%q, %v", got, err)
			}
			w.finishes()
			w.payOut("k", "iban_ok").want(201)
			w.made(1, 1, 500)
		}, options{workerOnly: true})
	})
}

// Made whole again a torn payout moves no money that had not moved: its hold was released and its client told so, or only its screening
// was made and nobody said --finish. What the provider shows must be what the 202 says, once.
func TestATornPayoutIsJudgedAsALostOne(t *testing.T) {
	screeningOnly := provider.Rule{On: provider.Screening, Fault: provider.ErrorAfter, Times: 1}
	for name, c := range map[string]struct {
		end    bool // the payout is refused, and its hold is released
		byHand bool // the hold is released by hand: under none of the payout's keys
		change func([]payments.Shown) []payments.Shown
		told   payments.Told
		code   string
	}{
		"released":               {end: true, code: payments.CodeHoldReleased},
		"released, with finish":  {end: true, told: payments.Told{Finish: true}, code: payments.CodeHoldReleased},
		"only screened":          {code: payments.CodeOnlyScreened},
		"released by hand":       {byHand: true, told: payments.Told{Finish: true}, code: payments.CodeHoldReleased},
		"made twice":             {change: func(o []payments.Shown) []payments.Shown { return append(o, o[0]) }, code: payments.CodeMadeTwice},
		"another amount":         {change: changedTo(func(o *payments.Shown) { o.Amount++ }), code: payments.CodeDiffersFromSelf},
		"another currency":       {change: changedTo(func(o *payments.Shown) { o.Currency = "USD" }), code: payments.CodeDiffersFromSelf},
		"another destination":    {change: changedTo(func(o *payments.Shown) { o.Destination = "iban_2" }), code: payments.CodeDiffersFromSelf},
		"only a second position": {change: changedTo(func(o *payments.Shown) { o.Key = o.Key[:len(o.Key)-1] + "2" }), code: payments.CodeNoScreening},
		"another account":        {told: payments.Told{Account: "acct_2"}, code: payments.CodeAccountDiffers},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.faults(screeningOnly, provider.Rule{On: provider.Payout, Fault: provider.Refuse, Times: 1})
				w.payOut("k", "iban_ok").want(202)
				payout := w.screened()
				torn := w.recordOf(payout)
				if c.end {
					w.finishes()
					w.payOut("k", "iban_ok").want(502)
				}
				if c.byHand {
					w.releasedByHand()
				}
				w.tears(torn)
				objects := w.shown(payout)
				if c.change != nil {
					objects = c.change(objects)
				}
				w.leftTo(payout, objects, c.told, c.code)
				w.finishes()
				if n := len(w.payouts()); n != 0 {
					w.Errorf("%d payouts", n)
				}
			})
		})
	}
}

func changedTo(change func(*payments.Shown)) func([]payments.Shown) []payments.Shown {
	return func(objects []payments.Shown) []payments.Shown {
		for i := range objects {
			change(&objects[i])
		}
		return objects
	}
}

// --finish pays a payout out of which only the screening was made, once: however old it is, whether its record is left or not.
func TestATornPayoutIsFinishedWhereThatIsSaid(t *testing.T) {
	for _, destination := range []string{"iban_ok", "legacy_bank"} {
		for name, loses := range map[string]func(*world, storage.Record){
			"its record is left": func(w *world, torn storage.Record) { w.tears(torn) },
			"nothing is left":    func(w *world, _ storage.Record) { w.lose(); w.faults() },
		} {
			for _, later := range []time.Duration{0, 25 * time.Hour} {
				t.Run(fmt.Sprintf("%s, %s, %s later", destination, name, later), func(t *testing.T) {
					onBoth(t, func(w *world) {
						w.faults(provider.Rule{On: provider.Screening, Fault: provider.ErrorAfter, Times: 1})
						w.payOut("k", destination).want(202)
						payout := w.screened()
						loses(w, w.recordOf(payout))
						w.clock.Advance(later)
						finish := payments.Told{Tenant: tenantA, Account: "acct_1", Finish: true}
						if got, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), finish); err != nil || got != "restored" {
							w.Fatalf("%q, %v", got, err)
						}
						w.finishes()
						w.payOut("k", destination).want(201)
						w.made(1, 1, 500)
					})
				})
			}
		}
	}
}

// After the refusal has ended no row says that what is made anew may have been called. What the provider shows of a payout is asked about all
// the same, and nothing is paid out beside it: at a provider that ignores keys, or has forgotten this one, it would be paid twice.
func TestATornPayoutThatWasPaidIsPaidOnceAfterTheRefusal(t *testing.T) {
	for destination, path := range map[string]string{"iban_ok": "/payouts", "legacy_bank": "/legacy/payouts"} {
		for _, left := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, its record is left: %t", destination, left), func(t *testing.T) {
				onBoth(t, func(w *world) {
					var a accepted
					w.payOut("k", destination).want(202).decode(&a)
					w.calledBefore("/screenings", a.Operation.Message(1), destination, a.Payout.ID)
					w.calledBefore(path, a.Operation.Message(2), destination, a.Payout.ID)
					torn := w.recordOf(a.Operation)
					w.clock.Advance(time.Second)
					w.backend = w.anew() // without a cut-over
					w.serve(options{})
					if left {
						w.ok(w.store.Insert(w.Context(), torn, w.clock.Now()))
					}
					w.clock.Advance(25 * time.Hour)
					restorer := w.restorer()
					restorer.LostBefore = w.clock.Now().Add(-time.Hour)
					if got, err := restorer.Restore(w.Context(), a.Operation, w.shown(a.Operation), payments.Told{Tenant: tenantA, Account: "acct_1"}); err != nil || got != "restored" {
						w.Fatalf("%q, %v", got, err)
					}
					w.finishes()
					w.payOut("k", destination).want(201)
					w.made(1, 1, 500)
				}, options{workerOnly: true})
			})
		}
	}
}

// A payment and a refund are compared with their 202, too.
func TestATornOperationDiffersFromWhatWasMade(t *testing.T) {
	onBoth(t, func(w *world) {
		p := w.paid("k", "card_ok")
		payment, _, err := idem.MessageID(w.charges()[0].Key).Operation()
		w.ok(err)
		paid := w.pay("k2", "card_ok")
		var r accepted
		w.giveBack("r", p.ID, 500).want(202).decode(&r)
		tornPayment, tornRefund := w.recordOf(paid.Operation), w.recordOf(r.Operation)
		w.deliver(paid.Operation)
		w.deliver(r.Operation)
		w.lose()
		w.restores(payment, "restored")
		w.ok(w.store.Insert(w.Context(), tornPayment, w.clock.Now()))
		w.ok(w.store.Insert(w.Context(), tornRefund, w.clock.Now()))
		for _, change := range []func(*payments.Shown){
			func(o *payments.Shown) { o.Amount-- }, func(o *payments.Shown) { o.Source = "card_2" }, func(o *payments.Shown) { o.Reference = "another" },
		} {
			w.leftTo(paid.Operation, changedTo(change)(w.shown(paid.Operation)), told, payments.CodeDiffersFromSelf)
		}
		for _, change := range []func(*payments.Shown){func(o *payments.Shown) { o.Amount-- }, func(o *payments.Shown) { o.Charge = "ch_2" }} {
			w.leftTo(r.Operation, changedTo(change)(w.shown(r.Operation)), told, payments.CodeDiffersFromSelf)
		}
		w.restores(paid.Operation, "restored")
		w.restores(r.Operation, "restored")
		w.refunded(p.ID, 500)
	})
}

// A torn operation's record was there before, so it proves nothing of the transaction: throttled it is trouble, and where a reply was lost
// nobody knows. Neither is a refusal, because what was lost may still be applied; and neither is "there already". The revision that the
// transaction gives the record proves that it was applied.
func TestATornOperationWhateverTheReplies(t *testing.T) {
	throttled := faulty.Refuse(&storage.ContentionError{Throttled: true})
	isContention := func(err error) bool { return errors.Is(err, storage.ErrContention) }
	isUnknown := func(err error) bool { return errors.As(err, new(*storage.OutcomeUnknownError)) }
	for name, c := range map[string]struct {
		first faulty.Fault
		want  func(error) bool
		made  bool
	}{
		"throttled": {throttled, isContention, false}, "request lost": {faulty.LoseRequest(), isUnknown, false}, "reply lost": {faulty.LoseReply(), nil, true},
	} {
		for _, kind := range []string{"payment", "refund", "payout"} {
			t.Run(kind+", "+name, func(t *testing.T) {
				onBoth(t, func(w *world) {
					operation := w.torn(kind)
					w.store.On(faulty.Commit, 1, c.first)
					for n := 2; n <= 4; n++ {
						w.store.On(faulty.Commit, n, throttled)
					}
					got, err := w.restorer().Restore(w.Context(), operation, w.shown(operation), told)
					switch {
					case c.made && (err != nil || got != "restored"):
						w.Errorf("%q, %v; want restored", got, err)
					case !c.made && (got != "" || !c.want(err) || errors.As(err, new(*payments.ByHandError))):
						w.Errorf("%q, %v", got, err)
					}
					w.store.Clear()
					want := map[bool]string{true: "there already", false: "restored"}
					w.restores(operation, want[c.made])
					w.restores(operation, "there already")
				})
			})
		}
	}
}

// torn is an operation of a kind of which only the record is left here, and which the provider has executed.
func (w *world) torn(kind string) idem.OperationID {
	w.Helper()
	switch kind {
	case "payout":
		w.faults(provider.Rule{On: provider.Payout, Fault: provider.ErrorAfter, Times: 1})
		w.payOut("k", "iban_ok").want(202)
		w.tears(w.recordOf(w.screened()))
		return w.screened()
	case "refund":
		p := w.paid("k", "card_ok")
		payment, _, err := idem.MessageID(w.charges()[0].Key).Operation()
		w.ok(err)
		var r accepted
		w.giveBack("r", p.ID, 500).want(202).decode(&r)
		torn := w.recordOf(r.Operation)
		w.deliver(r.Operation)
		w.lose()
		w.restores(payment, "restored")
		w.ok(w.store.Insert(w.Context(), torn, w.clock.Now()))
		w.store.Clear()
		return r.Operation
	}
	a := w.pay("k", "card_ok")
	torn := w.recordOf(a.Operation)
	w.deliver(a.Operation)
	w.tears(torn)
	return a.Operation
}
