package payments_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// docs/payments-api.md "Endpoints": 202, then the stored 201 for ever, byte for byte, from one charge.
func TestPaymentIsAcceptedThenDelivered(t *testing.T) {
	onBoth(t, func(w *world) {
		first := w.post(tenantA, "/v1/payments", "order-17", order("card_ok"))
		var a accepted
		first.want(202, "Content-Type: application/json", "Retry-After", "Idempotency-Status: executed", "-Idempotent-Replayed", "-Idempotency-Expires").decode(&a)
		if a.State != "pending" || a.Payment.Status != "pending" || a.Payment.ProviderReference != nil || !strings.HasPrefix(a.Payment.ID, "pay_") {
			w.Errorf("accepted: %s", first.body)
		}
		first.want(202, "Location: /v1/operations/"+string(a.Operation))
		w.again("order-17", "card_ok").want(202, "Idempotent-Replayed: true", "Idempotency-Status: replayed", "Retry-After", "Location: /v1/operations/"+string(a.Operation)).same(first)
		w.status(a, "pending", "pending")
		w.charged(0)

		w.deliver(a.Operation)
		final := w.again("order-17", "card_ok").want(201, "Idempotent-Replayed: true", "Idempotency-Status: replayed", "Content-Type: application/json",
			"Idempotency-Expires: 2101-02-04T12:00:00.789Z", "-Retry-After")
		for range 3 {
			w.again("order-17", "card_ok").want(201).same(final)
		}
		w.status(a, "succeeded", "completed")
		charges := w.charges()
		w.charged(1)
		charge := charges[0]
		if charge.Key != string(a.Operation.Message(1)) || charge.Amount != 1999 || charge.Currency != "EUR" || charge.Source != "card_ok" || charge.Reference != "order-17" || charge.Attempts != 1 {
			w.Errorf("charge %+v", charge)
		}
		var paid payment
		final.decode(&paid)
		want := payment{a.Payment.ID, "succeeded", 1999, "EUR", "card_ok", "order-17", paid.ProviderReference, 0, "2101-02-03T12:00:00.789Z"}
		if paid != want || paid.ProviderReference == nil || *paid.ProviderReference != charge.ID {
			w.Errorf("final body %s", final.body)
		}
		if got := w.get(tenantA, "/v1/payments/"+a.Payment.ID).want(200); got.body != final.body {
			w.Errorf("GET %s, want what the final answer said: %s", got.body, final.body)
		}
	})
}

// What validates is delivered: the bounds are in characters, here and at the provider.
func TestPaymentWithTheLongestReferenceIsDelivered(t *testing.T) {
	onBoth(t, func(w *world) {
		body := `{"amount":1999,"currency":"EUR","source":"card_ok","reference":"` + strings.Repeat("界", 140) + `"}`
		var a accepted
		w.post(tenantA, "/v1/payments", "k", body).want(202).decode(&a)
		w.deliver(a.Operation)
		w.status(a, "succeeded", "completed")
	})
}

// docs/semantics.md: a decline is a completed result too.
func TestPaymentThatIsDeclined(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(provider.Rule{On: provider.Charge, Source: "card_poor", Fault: provider.Decline})
		a := w.pay("k", "card_poor")
		w.deliver(a.Operation)
		final := w.again("k", "card_poor").problem(402, "payment_declined").want(402, "Idempotent-Replayed: true", "Idempotency-Expires")
		w.again("k", "card_poor").same(final)
		w.status(a, "declined", "completed")
		w.charged(1)
		if p, c := w.payment(a.Payment.ID), w.charges()[0]; p.ProviderReference == nil || *p.ProviderReference != c.ID || c.Status != provider.Declined {
			w.Errorf("payment %+v, charge %+v", p, c)
		}
	})
}

// The fingerprint is of the canonical body: order and space don't matter, values do; a key belongs to one tenant and one
// operation (docs/semantics.md "Fingerprint", "Policies"). A key that ignored the payment method would answer
// for another one.
func TestPaymentKeys(t *testing.T) {
	onBoth(t, func(w *world) {
		a := w.pay("k", "card_ok")
		var same accepted
		w.post(tenantA, "/v1/payments", "k", `{ "reference" : "order-17", "source":"card_ok",  "currency":"EUR", "amount":1999 }`).want(202, "Idempotent-Replayed: true").decode(&same)
		if same != a {
			w.Errorf("another order of members made another payment: %+v", same)
		}
		w.post(tenantA, "/v1/payments", "k", strings.Replace(order("card_ok"), "1999", "2000", 1)).problem(422, "idempotency_key_reused_with_different_payload")
		w.post(tenantA, "/v1/payments", "k", order("card_poor")).problem(422, "idempotency_key_reused_with_different_payload")
		var other accepted
		w.post(tenantB, "/v1/payments", "k", order("card_ok")).want(202, "Idempotency-Status: executed").decode(&other)
		if other.Operation == a.Operation || other.Payment.ID == a.Payment.ID {
			w.Errorf("two tenants share %+v", other)
		}
		w.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_2", 5)).want(201, "Idempotency-Status: executed")
		w.post(tenantA, "/v1/payments", "", order("card_ok")).problem(400, "idempotency_key_missing")
		w.send(http.MethodPost, tenantA, "/v1/payments", order("card_ok"), "Content-Type: application/json", "Idempotency-Key: a, b").problem(400, "idempotency_key_invalid")
		w.deliver(a.Operation)
		w.deliver(other.Operation)
		w.charged(2)
	})
}

// docs/payments-api.md "Conventions": all errors at once; semantics.md "On the wire": nothing of a 400 is stored, and an
// invalid body is judged after its key's stored twin.
func TestPaymentThatIsInvalidIsNotStored(t *testing.T) {
	onBoth(t, func(w *world) {
		w.post(tenantA, "/v1/payments", "k", `{"amount":0,"currency":"eur","source":"","refrence":"x"}`).pointers("/amount", "/currency", "/refrence", "/source")
		w.post(tenantA, "/v1/payments", "k", `[]`).pointers("")
		w.post(tenantA, "/v1/payments", "k", `{"amount":1,"amount":2,"currency":"EUR","source":"c"}`).problem(400, "request_invalid")
		w.post(tenantA, "/v1/payments", "k", `{"amount":`).problem(400, "request_invalid")
		a := w.pay("k", "card_ok")
		w.post(tenantA, "/v1/payments", "k", `{"amount":0}`).problem(422, "idempotency_key_reused_with_different_payload")
		w.deliver(a.Operation)
		w.again("k", "card_ok").want(201)
		w.charged(1)
	})
}

func TestRequestsThatReachNothing(t *testing.T) {
	onBoth(t, func(w *world) {
		w.post("", "/v1/payments", "k", order("card_ok")).problem(401, "unauthorized")
		w.get("", "/v1/accounts/acct_1").problem(401, "unauthorized")
		w.get(tenantA, "/v1/nothing").problem(404, "not_found")
		w.send(http.MethodDelete, tenantA, "/v1/payments", "").problem(405, "method_not_allowed")
		w.send(http.MethodPost, tenantA, "/v1/payments", order("card_ok"), `Idempotency-Key: "k"`, "Content-Type: text/plain").problem(415, "unsupported_media_type")
		w.post(tenantA, "/v1/payments", "k", `{"reference":"`+strings.Repeat("x", 256<<10)+`"}`).problem(413, "request_too_large")
		w.pay("k", "card_ok")
	})
}

// RFC 7240: the 202 is held until the final answer is there, or the wait is over.
func TestPaymentPreferWait(t *testing.T) {
	onBoth(t, func(w *world) {
		first := w.post(tenantA, "/v1/payments", "slow", order("card_ok"), "Prefer: wait=5").want(202, "Retry-After", "Location")
		if waited := w.clock.Now().Sub(noon); waited < 3*time.Second || waited > 5*time.Second+time.Millisecond {
			w.Errorf("waited %v", waited)
		}
		var slow accepted
		first.decode(&slow)
		w.during(func() { w.deliver(slow.Operation) })
		final := w.post(tenantA, "/v1/payments", "slow", order("card_ok"), "Prefer: wait=5").want(201, "Idempotent-Replayed: true", "Idempotency-Expires", "-Retry-After", "-Location")
		w.again("slow", "card_ok").want(201).same(final)
		w.charged(1)
	})
}

// clockSkew is the engine's default: until so long after its expiry a key is held, because another instance's clock may be behind.
const clockSkew = 2 * time.Second

// docs/semantics.md "States": after expiry the key is free, and the operation is gone.
func TestPaymentKeyExpires(t *testing.T) {
	onBoth(t, func(w *world) {
		a := w.pay("k", "card_ok")
		w.clock.Advance(25 * time.Hour)
		w.again("k", "card_ok").want(202, "Idempotent-Replayed: true") // what is pending never expires
		b := w.pay("k2", "card_ok")
		w.deliver(b.Operation)
		w.clock.Advance(24*time.Hour - time.Millisecond)
		w.again("k2", "card_ok").want(201, "Idempotent-Replayed: true")
		w.clock.Advance(time.Millisecond)
		w.get(tenantA, "/v1/operations/"+string(b.Operation)).problem(404, "operation_not_found")
		w.clock.Advance(clockSkew)
		c := w.pay("k2", "card_ok")
		if c.Operation == b.Operation || c.Payment.ID == b.Payment.ID || a.Operation == b.Operation {
			w.Errorf("an expired key leads to the same incarnation: %+v, %+v", b, c)
		}
		if w.payment(b.Payment.ID).Status != "succeeded" {
			w.Error("a payment goes with its key")
		}
	})
}

// docs/design.md promise 1: of 20 simultaneous duplicates one executes.
func TestPaymentSimultaneousDuplicates(t *testing.T) {
	onBoth(t, func(w *world) {
		answers := w.simultaneously(20, func(i int) answer {
			body := order("card_ok")
			if i%2 == 1 {
				body = `{"source":"card_ok", "reference":"order-17", "currency":"EUR", "amount":1999}`
			}
			return w.post(tenantA, "/v1/payments", "k", body)
		})
		var a accepted
		answers[0].want(202).decode(&a)
		executed := 0
		for _, got := range answers {
			got.same(answers[0])
			if got.header.Get("Idempotency-Status") == "executed" {
				executed++
			}
		}
		if executed != 1 {
			w.Errorf("%d requests say that they executed", executed)
		}
		w.deliver(a.Operation)
		w.again("k", "card_ok").want(201)
		w.charged(1)
	})
}

// simultaneously sends n requests at once and returns their answers.
func (w *world) simultaneously(n int, send func(i int) answer) []answer {
	answers := make([]answer, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { answers[i] = send(i) })
	}
	wait.Wait()
	return answers
}

// docs/semantics.md: store trouble fails closed, before anything ran, and the same key works afterwards.
func TestPaymentWhileTheStoreIsDown(t *testing.T) {
	onBoth(t, func(w *world) {
		w.store.All(faulty.LoseRequest())
		w.again("k", "card_ok").problem(503, "idempotency_store_unavailable").want(503, "Retry-After")
		w.post(tenantA, "/v1/transfers", "t", transfer("acct_1", "acct_2", 500)).problem(503, "idempotency_store_unavailable").want(503, "Retry-After")
		w.get(tenantA, "/v1/operations/"+unusedOperation).problem(503, "idempotency_store_unavailable")
		w.store.Clear()
		a := w.pay("k", "card_ok")
		w.store.All(faulty.LoseRequest())
		w.get(tenantA, "/v1/payments/"+a.Payment.ID).problem(503, "idempotency_store_unavailable").want(503, "Retry-After")
		w.store.Clear()
		for n := range 2 { // the record can be read, its message can't
			w.store.On(faulty.Message, n+1, faulty.LoseRequest())
		}
		w.get(tenantA, "/v1/payments/"+a.Payment.ID).problem(503, "idempotency_store_unavailable")
		w.get(tenantA, "/v1/operations/"+string(a.Operation)).problem(503, "idempotency_store_unavailable").want(503, "Retry-After")
		w.deliver(a.Operation)
		w.status(a, "succeeded", "completed")
		w.post(tenantA, "/v1/transfers", "t", transfer("acct_1", "acct_2", 500)).want(201, "Idempotency-Status: executed")
		w.charged(1)
	})
}

// unusedOperation is a well-formed id of no operation.
var unusedOperation = "op_" + strings.Repeat("A", 64)
