package payments_test

import (
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// docs/payments-api.md "The provider simulator", docs/design.md "One message, step by step": whatever goes wrong with the
// provider for a while, the payment is delivered later, and charged once.
func TestProviderFaultsEndInOneCharge(t *testing.T) {
	for name, c := range map[string]struct {
		rules    []provider.Rule
		attempts int // that reached the provider; 0 where real time decides
	}{
		"rate_limit":             {[]provider.Rule{{Fault: provider.RateLimit, Times: 2, DelayMillis: 7000}}, 1},
		"error_before":           {[]provider.Rule{{Fault: provider.ErrorBefore, Times: 2}}, 3},
		"error_after":            {[]provider.Rule{{Fault: provider.ErrorAfter, Times: 2}}, 3},
		"drop_before":            {[]provider.Rule{{Fault: provider.DropBefore, Times: 2}}, 3},
		"drop_after":             {[]provider.Rule{{Fault: provider.DropAfter, Times: 2}}, 3},
		"hang_before":            {[]provider.Rule{{Fault: provider.HangBefore, Times: 1}}, 0},
		"hang_after":             {[]provider.Rule{{Fault: provider.HangAfter, Times: 1}}, 0},
		"lost, then rate_limit":  {[]provider.Rule{{Fault: provider.DropAfter, Times: 1}, {Fault: provider.RateLimit, Times: 1}}, 3},
		"lost, then error_after": {[]provider.Rule{{Fault: provider.DropAfter, Times: 1}, {Fault: provider.ErrorAfter, Times: 1}}, 3},
	} {
		for i := range c.rules {
			c.rules[i].On = provider.Charge
		}
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.faults(c.rules...)
				a := w.pay("k", "card_ok")
				w.deliver(a.Operation)
				if w.message(a.Operation).State != storage.MessagePending {
					w.Fatalf("the first attempt left %+v", w.message(a.Operation))
				}
				w.status(a, "pending", "pending")
				w.again("k", "card_ok").want(202, "Idempotent-Replayed: true")
				w.drain(time.Minute)
				final := w.again("k", "card_ok").want(201)
				w.again("k", "card_ok").same(final)
				w.status(a, "succeeded", "completed")
				w.charged(1)
				if got := w.charges()[0].Attempts; c.attempts > 1 && got != c.attempts {
					w.Errorf("the provider saw %d attempts, want %d", got, c.attempts)
				}
			}, meeting(c.rules[0].Fault))
		})
	}
}

// docs/design.md "One message, step by step": given up while provably nothing happened, the operation fails with its
// business writes.
func TestProviderThatNeverAnswersNothingIsOpen(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(provider.Rule{On: provider.Charge, Fault: provider.RateLimit})
		a := w.pay("k", "card_ok")
		w.deliver(a.Operation)
		w.drain(time.Hour)
		final := w.again("k", "card_ok").problem(502, "provider_unavailable").want(502, "Idempotent-Replayed: true", "Idempotency-Expires", "-Retry-After")
		w.faults()
		w.swept()
		w.again("k", "card_ok").same(final)
		w.status(a, "failed", "failed")
		w.charged(0)
		if letters := w.queue.Letters(); len(letters) != 1 || letters[0].Message != a.Operation.Message(1) || letters[0].Open || letters[0].Attempts != attemptsMax {
			w.Errorf("dead letters %+v", letters)
		}
	})
}

// Any tenant can send what the provider refuses. It was a dead message, whose alarm rolls deployments back, and the client was told
// that the provider could not be reached.
func TestProviderThatRefusesTheClientsDataDeclines(t *testing.T) {
	onBoth(t, func(w *world) {
		for _, source := range []string{"card_ok", "legacy_ok"} {
			on := provider.Charge
			if source == "legacy_ok" {
				on = provider.LegacyCharge
			}
			w.faults(provider.Rule{On: on, Fault: provider.RefuseData})
			a := w.pay(source, source)
			w.deliver(a.Operation)
			final := w.again(source, source).problem(402, "payment_declined")
			if !strings.Contains(final.body, "The provider refused the payment's data. Nothing was charged.") {
				w.Errorf("%s", final.body)
			}
			w.status(a, "declined", "completed")
		}
		w.faults(provider.Rule{On: provider.Screening, Fault: provider.RefuseData})
		w.payOut("payout", "iban_ok").problem(402, "payout_declined")
		w.faults(provider.Rule{On: provider.Payout, Fault: provider.RefuseData})
		w.payOut("payout 2", "iban_ok").problem(402, "payout_declined")
		w.charged(0)
		if letters := w.queue.Letters(); len(letters) != 0 {
			w.Errorf("dead letters %+v", letters)
		}
	})
}

// What is wrong with a request and not the client's is a person's: the answer says that it was refused.
func TestProviderThatRefusesAnythingElse(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(provider.Rule{On: provider.Charge, Fault: provider.Refuse})
		a := w.pay("k", "card_ok")
		w.deliver(a.Operation)
		w.again("k", "card_ok").problem(502, "provider_refused")
		w.status(a, "failed", "failed")
		if letters := w.queue.Letters(); len(letters) != 1 || letters[0].Open {
			w.Errorf("dead letters %+v", letters)
		}
	})
}

// Given up while a call is open, nobody is told that it failed; a probe decides (ADR 0015).
func TestProviderThatNeverAnswersAndMayHaveCharged(t *testing.T) {
	for name, c := range map[string]struct {
		fault   provider.Fault
		status  int
		message storage.MessageState
	}{
		"charged":     {provider.ErrorAfter, 201, storage.MessageDelivered},
		"not charged": {provider.ErrorBefore, 502, storage.MessageDead},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.faults(provider.Rule{On: provider.Charge, Fault: c.fault})
				a := w.pay("k", "card_ok")
				first := w.again("k", "card_ok")
				w.deliver(a.Operation)
				w.drain(time.Hour)
				w.faults()
				w.swept()
				w.drain(time.Hour)
				if m := w.message(a.Operation); m.State != storage.MessageUnknown || m.OpenSince.IsZero() {
					w.Errorf("message is %s, open since %v, want it unknown and open", m.State, m.OpenSince)
				}
				w.again("k", "card_ok").want(202, "Idempotent-Replayed: true", "Retry-After").same(first)
				w.status(a, "unknown", "unknown")
				charged := len(w.charges())
				w.reconciled()
				w.again("k", "card_ok").want(c.status, "Idempotent-Replayed: true")
				if m, charges := w.message(a.Operation), w.charges(); m.State != c.message || len(charges) != charged || charged > 1 {
					w.Errorf("message is %s, charges %+v", m.State, charges)
				}
			})
		})
	}
}

// docs/payments-api.md: legacy_ sources are charged where no key is honoured, so that an open call is never followed by
// another.
func TestLegacyCharge(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(
			provider.Rule{On: provider.LegacyCharge, Source: "legacy_poor", Fault: provider.Decline},
			provider.Rule{On: provider.LegacyCharge, Source: "legacy_busy", Fault: provider.RateLimit, Times: 2},
		)
		for source, want := range map[string]int{"legacy_ok": 201, "legacy_poor": 402, "legacy_busy": 201} {
			a := w.pay(source, source)
			w.deliver(a.Operation)
			w.drain(time.Minute)
			final := w.again(source, source).want(want)
			w.again(source, source).same(final)
		}
		w.charged(3)
		for _, c := range w.charges() {
			if c.Kind != provider.LegacyCharge || c.Key == "" {
				w.Errorf("charge %+v, want a legacy one with its key recorded", c)
			}
		}
	})
}

func TestLegacyChargeWithoutAnAnswerIsUnknown(t *testing.T) {
	for fault, charges := range map[provider.Fault]int{
		provider.ErrorBefore: 0, provider.ErrorAfter: 1, provider.DropBefore: 0, provider.DropAfter: 1, provider.HangBefore: 0, provider.HangAfter: 1,
	} {
		t.Run(string(fault), func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.faults(provider.Rule{On: provider.LegacyCharge, Fault: fault, Times: 1})
				a := w.pay("k", "legacy_card")
				first := w.again("k", "legacy_card")
				w.deliver(a.Operation)
				w.status(a, "unknown", "unknown")
				for range 3 { // whoever wakes it, and whenever
					w.clock.Advance(20 * time.Minute)
					w.deliver(a.Operation)
					w.swept()
					w.drain(time.Minute)
					w.again("k", "legacy_card").want(202, "Idempotent-Replayed: true", "Retry-After").same(first)
				}
				w.status(a, "unknown", "unknown")
				w.charged(charges)
			}, meeting(fault))
		})
	}
}

// A wake-up that never came, and a worker that died after the charge: the sweep finds both, and the key makes one charge
// of two calls.
func TestSweepFinishesWhatNobodyWoke(t *testing.T) {
	onBoth(t, func(w *world) {
		lost := w.pay("lost", "card_ok")
		w.clock.Advance(time.Minute)
		if report := w.swept(); report.Offered != 1 {
			w.Errorf("swept %+v", report)
		}
		w.status(lost, "succeeded", "completed")

		died := w.pay("died", "card_ok")
		for n := range 2000 { // nor can the evidence be kept
			w.store.On(faulty.Settle, n+1, faulty.LoseRequest())
			w.store.On(faulty.PatchMessage, n+1, faulty.LoseRequest())
		}
		if err := w.worker.Deliver(w.Context(), died.Operation.Message(1)); err == nil {
			w.Error("a settlement that never happened is no error")
		}
		w.store.Clear()
		w.charged(2)
		w.status(died, "pending", "in_progress")
		w.again("died", "card_ok").want(202)
		w.clock.Advance(time.Minute)
		w.swept()
		w.status(died, "succeeded", "completed")
		w.again("died", "card_ok").want(201)
		w.charged(2)
		if c := w.charges()[0]; c.Attempts != 2 {
			w.Errorf("charge %+v, want two attempts", c)
		}
	})
}

// The same without keys: nobody calls again after a worker that died with a call.
func TestSweepParksWhatALegacyWorkerLeft(t *testing.T) {
	onBoth(t, func(w *world) {
		a := w.pay("k", "legacy_card")
		for n := range 2000 { // nor can the evidence be kept
			w.store.On(faulty.Settle, n+1, faulty.LoseRequest())
			w.store.On(faulty.PatchMessage, n+1, faulty.LoseRequest())
		}
		if err := w.worker.Deliver(w.Context(), a.Operation.Message(1)); err == nil {
			w.Error("a settlement that never happened is no error")
		}
		w.store.Clear()
		w.clock.Advance(time.Minute)
		if report := w.swept(); report.Parked != 1 {
			w.Errorf("swept %+v", report)
		}
		w.status(a, "unknown", "unknown")
		w.charged(1)
	})
}
