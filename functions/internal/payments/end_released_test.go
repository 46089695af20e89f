package payments_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// endReleased is what a person says who ends payouts whose hold was released.
var endReleased = payments.Told{Tenant: tenantA, Account: "acct_1", EndReleased: true}

// tornReleased is a payout that was not made and whose hold was released, of which only the pending record is left. final is the answer
// that its client got before.
func (w *world) tornReleased(destination string) (payout idem.OperationID, final answer) {
	w.Helper()
	w.faults(
		provider.Rule{On: provider.Screening, Fault: provider.ErrorAfter, Times: 1},
		provider.Rule{On: provider.Payout, Fault: provider.Refuse, Times: 1}, provider.Rule{On: provider.LegacyPayout, Fault: provider.Refuse, Times: 1},
	)
	w.payOut("k", destination).want(202)
	payout = w.screened()
	torn := w.recordOf(payout)
	w.finishes()
	final = w.payOut("k", destination).want(502)
	w.tears(torn)
	return payout, final
}

// ends restores the payout, and demands what came of it.
func (w *world) ends(payout idem.OperationID, want string) {
	w.Helper()
	if got, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), endReleased); err != nil || got != want {
		w.Fatalf("%q, %v; want %q", got, err, want)
	}
}

// ended demands that the payout has ended as not made: its client has the answer of before, the funds are on the account, and the provider
// has one screening, one release and no payout.
func (w *world) ended(payout idem.OperationID, destination string, final answer) {
	w.Helper()
	w.finishes()
	w.payOut("k", destination).problem(502, "provider_unavailable").same(final)
	w.made(1, 0, 0)
	w.held(0)
	if n := len(w.releases()); n != 1 {
		w.Errorf("%d releases", n)
	}
	if o := w.operation(payout); o.State != "failed" {
		w.Errorf("operation %+v", o)
	}
	for n := 1; n <= 3; n++ {
		if m, err := w.store.Message(w.Context(), payout.Message(n)); err != nil || m == nil || !m.State.Final() || m.RemoveAt.IsZero() {
			w.Errorf("message %d is %+v, %v; want it final, and removed later", n, m, err)
		}
	}
	if row := w.payout(w.screenings()[0].Reference); row.Status != "failed" || row.ProviderReference != nil {
		w.Errorf("row %+v", row)
	}
}

// appears inserts the n-th message of the payout, as something else that writes would.
func (w *world) appears(payout idem.OperationID, n int) {
	w.Helper()
	revision, err := storage.IDGenerator{Random: rand.Reader}.Revision()
	w.ok(err)
	torn := w.recordOf(payout)
	other := torn
	other.Key = storage.RecordKey(strings.Repeat("A", len(torn.Key)))
	other.OperationID = idem.OperationID(strings.Replace(string(payout), string(torn.Key), string(other.Key), 1))
	send, err := w.backend.store.Prepare(storage.Commit{
		Record: other, Now: w.clock.Now(), Token: string(revision),
		Messages: []storage.Message{{
			ID: payout.Message(n), Index: n, OperationID: payout, RecordKey: torn.Key, Tenant: tenantA, Topic: payments.TopicScreenings, Payload: []byte("{}"),
			State: storage.MessagePending, Revision: revision, CreatedAt: w.clock.Now(), NextAttemptAt: w.clock.Now(), SweepAt: w.clock.Now(),
			SchemaVersion: storage.SchemaVersion,
		}},
	})
	w.ok(err)
	w.ok(send(w.Context()))
}

// recovery.md "Torn transactions": a torn payout whose hold was released ends as it had ended, whatever its record and endpoint. Nothing is
// paid out, and who repeats it changes nothing.
func TestATornPayoutWhoseHoldWasReleasedEnds(t *testing.T) {
	for _, destination := range []string{"iban_ok", "legacy_iban"} {
		t.Run(destination, func(t *testing.T) {
			onBoth(t, func(w *world) {
				payout, final := w.tornReleased(destination)
				w.payOut("k", destination).want(202)
				w.leftTo(payout, w.shown(payout), payments.Told{Finish: true}, payments.CodeHoldReleased)
				w.ends(payout, "restored")
				w.ends(payout, "there already")
				w.ended(payout, destination, final)
				w.ends(payout, "there already")
				w.ended(payout, destination, final)
			})
		})
	}
}

// Where the record is lost, too, the client's old key gets the answer again.
func TestALostPayoutWhoseHoldWasReleasedEnds(t *testing.T) {
	onBoth(t, func(w *world) {
		payout, final := w.tornReleased("iban_ok")
		w.lose()
		w.payOut("k", "iban_ok").problem(503, "idempotency_refused_before")
		w.byHand(w.shown(payout), payments.Told{EndReleased: true}, payments.CodeTenantUnknown)
		w.byHand(w.shown(payout), told, payments.CodeHoldReleased)
		w.ends(payout, "restored")
		w.ends(payout, "there already")
		w.ended(payout, "iban_ok", final)
	})
}

// A lost reply, then throttling: nobody is told a refusal while a try may be applied, and the repeated command finds one end.
func TestAPayoutWhoseHoldWasReleasedEndsOnceWhateverTheReplies(t *testing.T) {
	throttled := faulty.Refuse(&storage.ContentionError{Throttled: true})
	for name, c := range map[string]struct {
		first faulty.Fault
		made  bool
	}{"throttled": {throttled, false}, "request lost": {faulty.LoseRequest(), false}, "reply lost": {faulty.LoseReply(), true}} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				payout, final := w.tornReleased("iban_ok")
				w.store.On(faulty.Commit, 1, c.first)
				for n := 2; n <= 4; n++ {
					w.store.On(faulty.Commit, n, throttled)
				}
				got, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), endReleased)
				switch {
				case c.made && (err != nil || got != "restored"):
					w.Errorf("%q, %v; want restored", got, err)
				case !c.made && (got != "" || err == nil || errors.As(err, new(*payments.ByHandError))):
					w.Errorf("%q, %v", got, err)
				}
				w.store.Clear()
				w.ends(payout, map[bool]string{true: "there already", false: "restored"}[c.made])
				w.ended(payout, "iban_ok", final)
			})
		})
	}
}

// The write is fenced by the record that was read and by the absence of each message of the chain: what appears between look and write is
// left alone, and so are balance and row.
func TestAPayoutIsNotEndedOverWhatAppearsMeanwhile(t *testing.T) {
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprintf("message %d", n), func(t *testing.T) {
			onBoth(t, func(w *world) {
				payout, _ := w.tornReleased("iban_ok")
				torn := w.recordOf(payout)
				w.store.On(faulty.Commit, 1, faulty.Before(func() { w.appears(payout, n) }))
				_, err := w.restorer().Restore(w.Context(), payout, w.shown(payout), endReleased)
				var refused *payments.ByHandError
				if !errors.As(err, &refused) || refused.Code != payments.CodePartlyThere {
					w.Errorf("%v; want %s", err, payments.CodePartlyThere)
				}
				if now := w.recordOf(payout); now.Revision != torn.Revision || now.State != storage.StatePending {
					w.Errorf("the record is %+v", now)
				}
				w.made(1, 0, 0)
			})
		})
	}
}

// Two operators at once: one writes, and the other is told that it is there.
func TestTwoOperatorsEndAPayoutAtOnce(t *testing.T) {
	onBoth(t, func(w *world) {
		payout, final := w.tornReleased("iban_ok")
		w.store.On(faulty.Commit, 1, faulty.Before(func() { w.ends(payout, "restored") }))
		w.ends(payout, "there already")
		w.ended(payout, "iban_ok", final)
	})
}

// A hold of which the provider declined the release stands: the operation does not end, and an operator decides.
func TestAPayoutWhoseReleaseWasDeclinedDoesNotEnd(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(
			provider.Rule{On: provider.Screening, Fault: provider.ErrorAfter, Times: 1}, provider.Rule{On: provider.Payout, Fault: provider.Refuse, Times: 1},
			provider.Rule{On: provider.Release, Fault: provider.Decline, Times: 1},
		)
		w.payOut("k", "iban_ok").want(202)
		payout := w.screened()
		torn := w.recordOf(payout)
		w.finishes()
		w.tears(torn)
		w.ends(payout, "restored")
		w.finishes()
		w.payOut("k", "iban_ok").want(202)
		w.held(1)
		w.made(1, 0, 500)
		if m, err := w.store.Message(w.Context(), payout.Message(3)); err != nil || m == nil || m.State.Final() {
			w.Errorf("the release is %+v, %v", m, err)
		}
	})
}

// releasedByHand releases the hold of the one payout of 500 that was screened, as a person does: under no key.
func (w *world) releasedByHand() {
	w.Helper()
	url := w.provider.URL + "/screenings/" + w.screenings()[0].ID + "/releases"
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, url, strings.NewReader(`{"amount":500,"currency":"EUR","reference":"by hand"}`))
	w.ok(err)
	r.Header.Set("Content-Type", "application/json")
	answered, err := client.Do(r)
	w.ok(err)
	answered.Body.Close()
	if answered.StatusCode != http.StatusCreated {
		w.Fatalf("POST %s: %s", url, answered.Status)
	}
}

// recovery.md "What is missing": a hold that was released by hand left no object under the payout's keys. Such a payout is paid out by
// nothing, whatever is left of it. --end-released has the provider asked once more, which refuses, and a person's word ends the payout.
func TestAPayoutWhoseHoldWasReleasedByHandEnds(t *testing.T) {
	for name, loses := range map[string]func(*world, idem.OperationID, storage.Record){
		"only its record is left":    func(w *world, _ idem.OperationID, torn storage.Record) { w.tears(torn) },
		"nothing is left":            func(w *world, _ idem.OperationID, _ storage.Record) { w.lose(); w.faults() },
		"its second message is gone": func(w *world, payout idem.OperationID, _ storage.Record) { w.tearsBut(payout, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				payout := w.paysOut(1)
				torn := w.recordOf(payout)
				w.releasedByHand()
				loses(w, payout, torn)
				w.leftTo(payout, w.shown(payout), payments.Told{Tenant: tenantA, Account: "acct_1", Finish: true}, payments.CodeHoldReleased)
				w.ends(payout, "restored")
				w.finishes()
				w.payOut("k", "iban_ok").want(202)
				w.made(1, 0, 500)
				release, err := w.store.Message(w.Context(), payout.Message(3))
				w.ok(err)
				if release == nil || release.State != storage.MessageDead {
					w.Fatalf("the release is %+v; want it dead", release)
				}
				_, err = w.operator.Settle(w.Context(), release.ID, w.seen(*release), outbox.Delivered{Reference: "rel_by_hand"})
				w.ok(err)
				w.ended(payout, "iban_ok", w.payOut("k", "iban_ok").want(502))
				w.ends(payout, "there already")
			}, options{workerOnly: true})
		})
	}
}
