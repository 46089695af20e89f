package payments_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// send is the body of a payout from acct_1.
func send(destination string, amount int64) string {
	return fmt.Sprintf(`{"from":"acct_1","amount":%d,"currency":"EUR","destination":%q}`, amount, destination)
}

// payOut asks for a payout of 500 by tenant-a.
func (w *world) payOut(key, destination string) answer {
	w.Helper()
	return w.post(tenantA, "/v1/payouts", key, send(destination, 500))
}

func (w *world) payout(id string) payout {
	w.Helper()
	var p payout
	w.get(tenantA, "/v1/payouts/"+id).want(200).decode(&p)
	return p
}

// made demands how many screenings and payouts the provider ever made, and what acct_1 of tenant-a holds less than its
// seed (docs/design.md I2, I6).
func (w *world) made(screenings, payouts int, left int64) {
	w.Helper()
	if s, p := w.screenings(), w.payouts(); len(s) != screenings || len(p) != payouts {
		w.Errorf("%d screenings and %d payouts at the provider, want %d and %d: %+v %+v", len(s), len(p), screenings, payouts, s, p)
	}
	if got := seedBalance - w.balance(tenantA, "acct_1"); got != left {
		w.Errorf("%d left the account, want %d", got, left)
	}
}

// held demands for how many payouts a hold stands at the screening service: for all that are made, or may be. Each other
// one was released once.
func (w *world) held(standing int) {
	w.Helper()
	stand, released := 0, 0
	for _, s := range w.screenings() {
		switch s.Hold {
		case provider.Standing:
			stand++
		case provider.Released:
			released++
		}
	}
	succeeded := 0
	for _, r := range w.releases() {
		if r.Status == provider.Succeeded {
			succeeded++
		}
	}
	if stand != standing || succeeded != released {
		w.Errorf("%d holds stand, want %d; %d were released by %+v", stand, standing, released, w.releases())
	}
}

// docs/payments-api.md "Endpoints": 201 in one request when all goes well, and then for ever. Each phase has its key,
// so that no step of the flow goes without one.
func TestPayoutIsDoneInOneRequest(t *testing.T) {
	onBoth(t, func(w *world) {
		first := w.payOut("k", "iban_ok").want(201, "Content-Type: application/json", "Idempotency-Status: executed", "Idempotency-Expires: 2101-02-04T12:00:00.789Z",
			"-Idempotent-Replayed", "-Retry-After", "-Location")
		for range 3 {
			w.payOut("k", "iban_ok").want(201, "Idempotent-Replayed: true", "Idempotency-Expires").same(first)
		}
		w.made(1, 1, 500)
		w.held(1)
		var p payout
		first.decode(&p)
		screened, paid := w.screenings()[0], w.payouts()[0]
		want := payout{p.ID, "succeeded", "acct_1", 500, "EUR", "iban_ok", &paid.ID, "2101-02-03T12:00:00.789Z"}
		if !strings.HasPrefix(p.ID, "po_") || p.ProviderReference == nil || *p.ProviderReference != paid.ID {
			w.Errorf("body %s", first.body)
		}
		if p.ProviderReference = want.ProviderReference; p != want {
			w.Errorf("body %s, want %+v", first.body, want)
		}
		for n, o := range []provider.Object{screened, paid} {
			if !strings.HasSuffix(o.Key, fmt.Sprintf(".%d", n+1)) || o.Amount != 500 || o.Currency != "EUR" || o.Destination != "iban_ok" || o.Reference != p.ID || o.Attempts != 1 {
				w.Errorf("phase %d made %+v", n+1, o)
			}
		}
		if got := w.get(tenantA, "/v1/payouts/"+p.ID).want(200); got.body != first.body {
			w.Errorf("GET %s, want what the final answer said: %s", got.body, first.body)
		}
		operation, _, _ := idem.MessageID(paid.Key).Operation()
		if got := w.operation(operation); got.State != "completed" || got.Response.Body != first.body {
			w.Errorf("operation %+v", got)
		}
		w.drain(time.Hour)
		if report := w.swept(); report.Offered != 0 {
			w.Errorf("swept %+v", report)
		}
		w.made(1, 1, 500)
	})
}

// The same by a worker alone: one message for each phase, and the 202 until the last of them is settled.
func TestPayoutByTheWorker(t *testing.T) {
	onBoth(t, func(w *world) {
		first := w.payOut("k", "iban_ok").want(202, "Retry-After", "Idempotency-Status: executed")
		var a accepted
		first.decode(&a)
		first.want(202, "Location: /v1/operations/"+string(a.Operation))
		if a.State != "pending" || a.Payout.Status != "pending" || a.Payout.ProviderReference != nil || a.Payment.ID != "" {
			w.Errorf("accepted: %s", first.body)
		}
		w.made(0, 0, 500)
		w.deliver(a.Operation)
		w.made(1, 0, 500)
		w.payOut("k", "iban_ok").want(202, "Idempotent-Replayed: true").same(first)
		if p, o := w.payout(a.Payout.ID).Status, w.operation(a.Operation).State; p != "pending" || o != "pending" {
			w.Errorf("between the phases the payout is %s and the operation %s", p, o)
		}
		w.deliver(a.Operation) // a wake-up that comes again
		w.deliverMessage(a.Operation, 2)
		final := w.payOut("k", "iban_ok").want(201, "Idempotent-Replayed: true", "-Location")
		w.payOut("k", "iban_ok").same(final)
		w.deliverMessage(a.Operation, 2)
		w.made(1, 1, 500)
		if p, o := w.payout(a.Payout.ID).Status, w.operation(a.Operation).State; p != "succeeded" || o != "completed" {
			w.Errorf("at the end the payout is %s and the operation %s", p, o)
		}
	}, options{workerOnly: true})
}

// A decline in either phase is a completed result. The funds are back and no hold stands, once.
func TestPayoutThatIsDeclined(t *testing.T) {
	for phase, payouts := range map[provider.Kind]int{provider.Screening: 0, provider.Payout: 1} {
		t.Run(string(phase), func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.faults(provider.Rule{On: phase, Destination: "iban_bad", Fault: provider.Decline})
				first := w.payOut("k", "iban_bad").problem(402, "payout_declined").want(402, "Idempotency-Status: executed", "Idempotency-Expires")
				w.payOut("k", "iban_bad").want(402, "Idempotent-Replayed: true").same(first)
				w.made(1, payouts, 0)
				w.held(0)
				operation, _, _ := idem.MessageID(w.screenings()[0].Key).Operation()
				w.deliver(operation)
				w.drain(time.Hour)
				w.swept()
				w.made(1, payouts, 0)
				if got := len(w.releases()); got != payouts {
					w.Errorf("%d releases, want %d", got, payouts)
				}
				p := w.payout(w.screenings()[0].Reference)
				if p.Status != "declined" || (p.ProviderReference != nil) != (payouts == 1) {
					w.Errorf("payout %+v", p)
				}
			})
		})
	}
}

// Business answers at once, stored; as with transfers.
func TestPayoutThatIsNotPossible(t *testing.T) {
	onBoth(t, func(w *world) {
		w.open(payments.Account{Tenant: tenantA, ID: "acct_usd", Currency: "USD", Balance: 1000})
		w.open(payments.Account{Tenant: tenantB, ID: "acct_b", Currency: "EUR", Balance: 1000})
		from := func(account string) string { return strings.Replace(send("iban_ok", 500), "acct_1", account, 1) }
		first := w.post(tenantA, "/v1/payouts", "poor", from("acct_2")).problem(402, "insufficient_funds").want(402, "Idempotency-Expires")
		w.post(tenantA, "/v1/transfers", "in", transfer("acct_1", "acct_2", 500)).want(201)
		w.post(tenantA, "/v1/payouts", "poor", from("acct_2")).want(402, "Idempotent-Replayed: true").same(first)
		w.post(tenantA, "/v1/payouts", "rich", from("acct_2")).want(201) // to the last cent
		w.post(tenantA, "/v1/payouts", "none", from("acct_9")).problem(404, "account_not_found").want(404, "Idempotency-Expires")
		w.post(tenantA, "/v1/payouts", "other", from("acct_b")).problem(404, "account_not_found")
		w.post(tenantA, "/v1/payouts", "usd", from("acct_usd")).problem(400, "currency_mismatch")
		w.post(tenantA, "/v1/payouts", "bad", `{"from":"a/b","amount":1.5,"currency":"EU","destination":"","note":1}`).pointers("/amount", "/currency", "/destination", "/from", "/note")
		w.post(tenantA, "/v1/payouts", "rich", from("acct_1")).problem(422, "idempotency_key_reused_with_different_payload")
		w.post(tenantA, "/v1/payouts", "", from("acct_1")).problem(400, "idempotency_key_missing")
		w.balances(tenantA, seedBalance-500, 0)
		id := w.payouts()[0].Reference
		w.get(tenantA, "/v1/payouts/"+id).want(200)
		w.get(tenantB, "/v1/payouts/"+id).problem(404, "payout_not_found")
		w.get(tenantA, "/v1/payouts/po_none").problem(404, "payout_not_found")
		w.get(tenantA, "/v1/payouts/..%2Ftenant-a%2F"+id).problem(404, "payout_not_found")
		w.get("", "/v1/payouts/"+id).problem(401, "unauthorized")
	})
}

// docs/design.md I6: whatever runs at once, what left the account is what the provider paid out.
func TestPayoutsAtOnceConserveMoney(t *testing.T) {
	onBoth(t, func(w *world) {
		w.open(payments.Account{Tenant: tenantA, ID: "acct_x", Currency: "EUR", Balance: 1000})
		body := strings.Replace(send("iban_ok", 300), "acct_1", "acct_x", 1)
		paid := 0
		for i, got := range w.simultaneously(12, func(i int) answer { return w.post(tenantA, "/v1/payouts", fmt.Sprintf("k-%d", i), body) }) {
			if got.status == 503 {
				got = w.post(tenantA, "/v1/payouts", fmt.Sprintf("k-%d", i), body)
			}
			if got.status == 201 {
				paid++
				continue
			}
			got.problem(402, "insufficient_funds")
		}
		if got := w.balance(tenantA, "acct_x"); paid != 3 || got != 100 || len(w.payouts()) != 3 {
			w.Errorf("%d payouts of 300 and %d left of 1000; %d at the provider", paid, got, len(w.payouts()))
		}
	})
}

// 20 simultaneous duplicates: one executes, and each phase happens once.
func TestPayoutSimultaneousDuplicates(t *testing.T) {
	onBoth(t, func(w *world) {
		answers := w.simultaneously(20, func(int) answer { return w.payOut("k", "iban_ok") })
		final := w.payOut("k", "iban_ok").want(201, "Idempotent-Replayed: true")
		var accepted *answer
		for i, got := range answers {
			switch {
			case got.status != 202:
				got.same(final)
			case accepted == nil:
				accepted = &answers[i]
			default:
				got.same(*accepted)
			}
		}
		w.made(1, 1, 500)
	})
}

// phases are the calls of a payout.
var phases = []provider.Kind{provider.Screening, provider.Payout}

// Whatever goes wrong with the provider in either phase, whoever goes on from the open message finishes: the worker with
// the client gone, or the client's retry with no worker about. One object in each phase.
func TestProviderFaultsEndInOnePayout(t *testing.T) {
	for _, phase := range phases {
		for _, fault := range []provider.Fault{
			provider.RateLimit, provider.ErrorBefore, provider.ErrorAfter, provider.DropBefore, provider.DropAfter, provider.HangBefore, provider.HangAfter,
		} {
			for by, finish := range map[string]func(w *world){
				"worker": func(w *world) { w.drain(time.Minute) },
				"client": func(w *world) { w.clock.Advance(time.Minute) },
			} {
				t.Run(fmt.Sprintf("%s %s, %s", phase, fault, by), func(t *testing.T) {
					onBoth(t, func(w *world) {
						w.faults(provider.Rule{On: phase, Fault: fault, Times: 1})
						first := w.payOut("k", "iban_ok").want(202, "Retry-After", "Location", "Idempotency-Status: executed")
						var a accepted
						first.decode(&a)
						w.payOut("k", "iban_ok").want(202, "Idempotent-Replayed: true").same(first) // not due yet
						if p, o := w.payout(a.Payout.ID).Status, w.operation(a.Operation).State; p != "pending" || o != "pending" {
							w.Errorf("payout is %s, operation %s", p, o)
						}
						finish(w)
						final := w.payOut("k", "iban_ok").want(201, "Idempotent-Replayed: true")
						w.payOut("k", "iban_ok").same(final)
						if p, o := w.payout(a.Payout.ID).Status, w.operation(a.Operation).State; p != "succeeded" || o != "completed" {
							w.Errorf("payout is %s, operation %s", p, o)
						}
						w.drain(time.Hour)
						w.swept()
						w.made(1, 1, 500)
					}, meeting(fault))
				})
			}
		}
	}
}

// Given up in its first phase while provably nothing of it happened, the operation fails with its business
// writes: the funds are back, once. Given up later it is compensated: release_test.go.
func TestPayoutThatIsGivenUp(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(provider.Rule{On: provider.Screening, Fault: provider.RateLimit})
		var a accepted
		w.payOut("k", "iban_ok").want(202).decode(&a)
		w.made(0, 0, 500)
		w.drain(time.Hour)
		final := w.payOut("k", "iban_ok").problem(502, "provider_unavailable").want(502, "Idempotent-Replayed: true", "Idempotency-Expires")
		w.faults()
		w.swept()
		w.deliver(a.Operation)
		w.payOut("k", "iban_ok").same(final)
		w.made(0, 0, 0)
		if p, o := w.payout(a.Payout.ID).Status, w.operation(a.Operation).State; p != "failed" || o != "failed" || !strings.Contains(final.body, "Nothing was executed.") {
			w.Errorf("payout is %s, operation %s: %s", p, o, final.body)
		}
		if letters := w.queue.Letters(); len(letters) != 1 || letters[0].Message != a.Operation.Message(1) || letters[0].Open {
			w.Errorf("dead letters %+v", letters)
		}
	})
}

// Given up while a call is open, nobody is told that it failed, and the funds stay reserved; a probe decides (ADR 0015).
func TestPayoutThatIsGivenUpAndMayHaveHappened(t *testing.T) {
	for n, phase := range phases {
		t.Run(string(phase), func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.faults(provider.Rule{On: phase, Fault: provider.ErrorAfter})
				first := w.payOut("k", "iban_ok").want(202)
				var a accepted
				first.decode(&a)
				w.drain(time.Hour)
				w.faults()
				w.swept()
				w.drain(time.Hour)
				w.payOut("k", "iban_ok").want(202, "Idempotent-Replayed: true").same(first)
				w.made(1, n, 500)
				if m := w.message(a.Operation); m.ID != a.Operation.Message(n+1) || m.State != storage.MessageUnknown || m.OpenSince.IsZero() {
					w.Errorf("message %s is %s, want that of phase %d unknown and open", m.ID, m.State, n+1)
				}
				if p, o := w.payout(a.Payout.ID).Status, w.operation(a.Operation).State; p != "unknown" || o != "unknown" {
					w.Errorf("payout is %s, operation %s", p, o)
				}
				w.reconciled()
				w.payOut("k", "iban_ok").want(201, "Idempotent-Replayed: true")
				w.made(1, 1, 500)
			})
		})
	}
}

// docs/payments-api.md: destinations that begin with legacy_ are paid out to where no key is honoured.
func TestLegacyPayout(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(
			provider.Rule{On: provider.LegacyPayout, Destination: "legacy_bad", Fault: provider.Decline},
			provider.Rule{On: provider.LegacyPayout, Destination: "legacy_busy", Fault: provider.RateLimit, Times: 1},
		)
		w.payOut("ok", "legacy_ok").want(201)
		w.payOut("bad", "legacy_bad").problem(402, "payout_declined")
		w.payOut("busy", "legacy_busy").want(202)
		w.drain(time.Minute)
		w.payOut("busy", "legacy_busy").want(201)
		w.made(3, 3, 1000)
		w.held(2)
		for _, o := range w.payouts() {
			if o.Kind != provider.LegacyPayout || o.Key == "" {
				w.Errorf("payout %+v, want a legacy one with its key recorded", o)
			}
		}
	})
}

// Without keys, what may have happened is unknown, and nothing executes it again: no retry of the client, no
// wake-up, no sweep. A screening before it is repeated, because keys are honoured there.
func TestLegacyPayoutWithoutAnAnswerIsUnknown(t *testing.T) {
	for fault, payouts := range map[provider.Fault]int{
		provider.ErrorBefore: 0, provider.ErrorAfter: 1, provider.DropBefore: 0, provider.DropAfter: 1, provider.HangBefore: 0, provider.HangAfter: 1,
	} {
		t.Run(string(fault), func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.faults(
					provider.Rule{On: provider.Screening, Fault: provider.DropAfter, Times: 1},
					provider.Rule{On: provider.LegacyPayout, Fault: fault, Times: 1},
				)
				first := w.payOut("k", "legacy_iban").want(202)
				var a accepted
				first.decode(&a)
				w.clock.Advance(time.Minute)
				w.payOut("k", "legacy_iban").want(202).same(first)
				for range 3 {
					w.clock.Advance(20 * time.Minute)
					w.deliver(a.Operation)
					w.deliverMessage(a.Operation, 2)
					w.swept()
					w.drain(time.Minute)
					w.payOut("k", "legacy_iban").want(202, "Idempotent-Replayed: true", "Retry-After").same(first)
				}
				if p, o := w.payout(a.Payout.ID).Status, w.operation(a.Operation).State; p != "unknown" || o != "unknown" {
					w.Errorf("payout is %s, operation %s", p, o)
				}
				w.made(1, payouts, 500)
			}, meeting(fault))
		})
	}
}
