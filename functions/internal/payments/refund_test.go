package payments_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// paid makes a payment of tenant-a that has succeeded.
func (w *world) paid(key, source string) payment {
	w.Helper()
	a := w.pay(key, source)
	w.deliver(a.Operation)
	p := w.payment(a.Payment.ID)
	if p.Status != "succeeded" {
		w.Fatalf("payment %+v", p)
	}
	return p
}

// giveBack asks for a refund by tenant-a.
func (w *world) giveBack(key, payment string, amount int64) answer {
	w.Helper()
	return w.post(tenantA, "/v1/payments/"+payment+"/refunds", key, fmt.Sprintf(`{"amount":%d}`, amount))
}

// refunded demands the sum of the payment's refunds that are pending or succeeded.
func (w *world) refunded(payment string, amount int64) {
	w.Helper()
	if got := w.payment(payment).Refunded; got != amount {
		w.Errorf("%d of the payment are refunded, want %d", got, amount)
	}
}

// docs/payments-api.md "Endpoints": 202, then the stored 201 for ever, from one refund at the provider, however the
// payment was charged.
func TestRefundIsAcceptedThenDelivered(t *testing.T) {
	for _, source := range []string{"card_ok", "legacy_card"} {
		t.Run(source, func(t *testing.T) {
			onBoth(t, func(w *world) {
				p := w.paid("pay", source)
				first := w.giveBack("k", p.ID, 500)
				var a accepted
				first.want(202, "Content-Type: application/json", "Retry-After", "Idempotency-Status: executed", "-Idempotent-Replayed").decode(&a)
				first.want(202, "Location: /v1/operations/"+string(a.Operation))
				want := refund{a.Refund.ID, p.ID, "pending", 500, "EUR", nil, "2101-02-03T12:00:00.789Z"}
				if a.State != "pending" || a.Refund != want || !strings.HasPrefix(want.ID, "re_") || a.Payment.ID != "" {
					w.Errorf("accepted: %s", first.body)
				}
				w.giveBack("k", p.ID, 500).want(202, "Idempotent-Replayed: true", "Retry-After").same(first)
				w.refunded(p.ID, 500)

				w.deliver(a.Operation)
				final := w.giveBack("k", p.ID, 500).want(201, "Idempotent-Replayed: true", "Idempotency-Expires", "-Retry-After")
				w.giveBack("k", p.ID, 500).want(201).same(final)
				made := w.refunds()
				if len(made) != 1 || made[0].Charge != *p.ProviderReference || made[0].Key != string(a.Operation.Message(1)) || made[0].Amount != 500 || made[0].Reference != a.Refund.ID {
					w.Fatalf("refunds %+v", made)
				}
				var done refund
				final.decode(&done)
				want.Status, want.ProviderReference = "succeeded", done.ProviderReference
				if done != want || done.ProviderReference == nil || *done.ProviderReference != made[0].ID {
					w.Errorf("final body %s", final.body)
				}
				w.refunded(p.ID, 500)
				if got := w.operation(a.Operation); got.State != "completed" || got.Response.Body != final.body {
					w.Errorf("operation %+v", got)
				}
				w.charged(1)
			})
		})
	}
}

// The sum of refunds never exceeds the payment, to the last cent; what was declined can be refunded again.
func TestRefundsStayWithinThePayment(t *testing.T) {
	onBoth(t, func(w *world) {
		p := w.paid("pay", "card_ok") // 1999
		w.giveBack("more", p.ID, 2000).problem(402, "refund_exceeds_payment").want(402, "Idempotency-Expires", "Idempotency-Status: executed")
		w.giveBack("part", p.ID, 1500).want(202)
		exceeds := w.giveBack("rest", p.ID, 500).problem(402, "refund_exceeds_payment")
		w.giveBack("last", p.ID, 499).want(202)
		w.giveBack("cent", p.ID, 1).problem(402, "refund_exceeds_payment")
		w.refunded(p.ID, 1999)

		w.faults(provider.Rule{On: provider.Refund, Fault: provider.Decline, Times: 1})
		var part accepted
		w.giveBack("part", p.ID, 1500).decode(&part)
		w.deliver(part.Operation)
		declined := w.giveBack("part", p.ID, 1500).problem(402, "refund_declined").want(402, "Idempotent-Replayed: true")
		w.deliver(part.Operation) // whoever comes late gives nothing back twice
		w.refunded(p.ID, 499)
		w.giveBack("part", p.ID, 1500).same(declined)
		w.giveBack("rest", p.ID, 500).want(402, "Idempotent-Replayed: true").same(exceeds) // a stored answer stays
		w.giveBack("again", p.ID, 1500).want(202)
		w.refunded(p.ID, 1999)
	})
}

// Whatever runs at once, the condition of the commit holds.
func TestRefundsAtOnceStayWithinThePayment(t *testing.T) {
	onBoth(t, func(w *world) {
		p := w.paid("pay", "card_ok") // 1999
		answers := w.simultaneously(20, func(i int) answer { return w.giveBack(fmt.Sprintf("k-%d", i), p.ID, 300) })
		var taken int64
		for i, got := range answers {
			if got.status == 503 { // contention: provably nothing happened, and the same key works afterwards
				got = w.giveBack(fmt.Sprintf("k-%d", i), p.ID, 300)
			}
			switch got.status {
			case 202:
				taken += 300
				var a accepted
				got.decode(&a)
				w.deliver(a.Operation)
			default:
				got.problem(402, "refund_exceeds_payment")
			}
		}
		var made int64
		for _, r := range w.refunds() {
			made += r.Amount
		}
		if taken != 1800 || made != 1800 {
			w.Errorf("%d accepted, %d refunded at the provider, want 6 refunds of 300", taken, made)
		}
		w.refunded(p.ID, 1800)
	})
}

// Business answers at once, stored; of payments that are not the tenant's nothing can be learnt (docs/design.md I5).
func TestRefundThatIsNotPossible(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(provider.Rule{On: provider.Charge, Source: "card_poor", Fault: provider.Decline})
		p := w.paid("pay", "card_ok")
		pending := w.pay("pending", "card_ok")
		declined := w.pay("declined", "card_poor")
		w.deliver(declined.Operation)

		first := w.giveBack("k1", pending.Payment.ID, 1).problem(402, "payment_not_refundable").want(402, "Idempotency-Expires")
		w.deliver(pending.Operation)
		w.giveBack("k1", pending.Payment.ID, 1).want(402, "Idempotent-Replayed: true").same(first)
		w.giveBack("k2", pending.Payment.ID, 1).want(202)
		w.giveBack("k3", declined.Payment.ID, 1).problem(402, "payment_not_refundable")

		body := `{"amount":1}`
		w.post(tenantB, "/v1/payments/"+p.ID+"/refunds", "k", body).problem(404, "payment_not_found")
		w.post(tenantA, "/v1/payments/pay_none/refunds", "none", body).problem(404, "payment_not_found").want(404, "Idempotency-Expires")
		w.post(tenantA, "/v1/payments/..%2Ftenant-b%2Fpay_1/refunds", "odd", body).problem(404, "payment_not_found")
		w.post(tenantA, "/v1/payments/"+p.ID+"/refunds", "bad", `{"amount":0,"currency":"EUR"}`).pointers("/amount", "/currency")
		w.post(tenantA, "/v1/payments/"+p.ID+"/refunds", "bad", `[]`).pointers("")
		w.post(tenantA, "/v1/payments/"+p.ID+"/refunds", "", body).problem(400, "idempotency_key_missing")
		w.refunded(p.ID, 0)
		if made := w.refunds(); len(made) > 0 {
			w.Errorf("refunds %+v", made)
		}
	})
}

// docs/semantics.md "Fingerprint": which payment is refunded stands in the path, and is part of what was asked for.
func TestRefundOfAnotherPaymentUnderTheKey(t *testing.T) {
	onBoth(t, func(w *world) {
		one, other := w.paid("pay-1", "card_ok"), w.paid("pay-2", "card_ok")
		w.giveBack("k", one.ID, 500).want(202)
		w.giveBack("k", other.ID, 500).problem(422, "idempotency_key_reused_with_different_payload")
		w.giveBack("k", one.ID, 501).problem(422, "idempotency_key_reused_with_different_payload")
		w.refunded(one.ID, 500)
		w.refunded(other.ID, 0)
	})
}

func TestRefundSimultaneousDuplicates(t *testing.T) {
	onBoth(t, func(w *world) {
		p := w.paid("pay", "card_ok")
		answers := w.simultaneously(20, func(int) answer { return w.giveBack("k", p.ID, 500) })
		var a accepted
		answers[0].want(202).decode(&a)
		for _, got := range answers {
			got.same(answers[0])
		}
		w.deliver(a.Operation)
		w.giveBack("k", p.ID, 500).want(201)
		w.refunded(p.ID, 500)
		if made := w.refunds(); len(made) != 1 {
			w.Errorf("refunds %+v", made)
		}
	})
}

func TestProviderFaultsEndInOneRefund(t *testing.T) {
	for _, fault := range []provider.Fault{
		provider.RateLimit, provider.ErrorBefore, provider.ErrorAfter, provider.DropBefore, provider.DropAfter, provider.HangBefore, provider.HangAfter,
	} {
		t.Run(string(fault), func(t *testing.T) {
			onBoth(t, func(w *world) {
				p := w.paid("pay", "card_ok")
				w.faults(provider.Rule{On: provider.Refund, Fault: fault, Times: 1})
				var a accepted
				first := w.giveBack("k", p.ID, 500).want(202)
				first.decode(&a)
				w.deliver(a.Operation)
				w.giveBack("k", p.ID, 500).want(202).same(first)
				w.drain(time.Minute)
				w.giveBack("k", p.ID, 500).want(201)
				w.refunded(p.ID, 500)
				if made := w.refunds(); len(made) != 1 {
					w.Errorf("refunds %+v", made)
				}
			}, meeting(fault))
		})
	}
}

// Given up while nothing is open, the refund fails and the payment has its amount back; while a call is open, neither.
func TestRefundThatIsGivenUp(t *testing.T) {
	for fault, c := range map[provider.Fault]struct {
		refunded  int64
		operation string
	}{provider.RateLimit: {0, "failed"}, provider.ErrorAfter: {500, "unknown"}} {
		t.Run(string(fault), func(t *testing.T) {
			onBoth(t, func(w *world) {
				p := w.paid("pay", "card_ok")
				w.faults(provider.Rule{On: provider.Refund, Fault: fault})
				var a accepted
				first := w.giveBack("k", p.ID, 500).want(202)
				first.decode(&a)
				w.deliver(a.Operation)
				w.drain(time.Hour)
				w.faults()
				w.swept()
				w.deliver(a.Operation)
				w.refunded(p.ID, c.refunded)
				if got := w.operation(a.Operation).State; got != c.operation {
					w.Errorf("operation is %s, want %s", got, c.operation)
				}
				if c.operation == "unknown" {
					w.giveBack("k", p.ID, 500).want(202).same(first)
					return
				}
				w.giveBack("k", p.ID, 500).problem(502, "provider_unavailable")
				w.giveBack("k2", p.ID, 1999).want(202)
			})
		})
	}
}

// A provider that knows better than our ledger refuses the amount: that is an answer to the client, and nobody's alarm.
func TestRefundThatTheProviderRefuses(t *testing.T) {
	onBoth(t, func(w *world) {
		p := w.paid("pay", "card_ok")
		outside, err := w.api.Client().Post(w.provider.URL+"/charges/"+*p.ProviderReference+"/refunds", "application/json", strings.NewReader(`{"amount":1900}`))
		w.ok(err)
		w.ok(outside.Body.Close())
		var a accepted
		w.giveBack("k", p.ID, 500).want(202).decode(&a)
		w.deliver(a.Operation)
		w.giveBack("k", p.ID, 500).problem(402, "refund_declined")
		if m := w.message(a.Operation); m.State != storage.MessageDeclined {
			w.Errorf("message %+v", m)
		}
		if letters := w.queue.Letters(); len(letters) != 0 {
			w.Errorf("dead letters %+v", letters)
		}
		w.refunded(p.ID, 0)
	})
}
