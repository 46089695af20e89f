//go:build e2e

package e2e

import (
	"net/http"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// troubles are what the provider does to the first calls for a charge, and how many requests with its key it has seen when
// the charge is settled.
var troubles = map[string]struct {
	source   string
	attempts int
}{
	"500 for a while":         {troubled("card_500", provider.Rule{On: provider.Charge, Fault: provider.ErrorBefore, Times: 2}), 3},
	"charged, then 500":       {troubled("card_500_after", provider.Rule{On: provider.Charge, Fault: provider.ErrorAfter, Times: 1}), 2},
	"dropped before":          {troubled("card_drop_before", provider.Rule{On: provider.Charge, Fault: provider.DropBefore, Times: 1}), 2},
	"charged, then dropped":   {troubled("card_drop_after", provider.Rule{On: provider.Charge, Fault: provider.DropAfter, Times: 1}), 2},
	"charged, then hung":      {troubled("card_hang_after", provider.Rule{On: provider.Charge, Fault: provider.HangAfter, Times: 1}), 2},
	"hung before":             {troubled("card_hang_before", provider.Rule{On: provider.Charge, Fault: provider.HangBefore, Times: 1}), 2},
	"charged after we left":   {troubled("card_zombie", provider.Rule{On: provider.Charge, Fault: provider.Delay, Times: 1, DelayMillis: 5500}), 2},
	"too many requests":       {troubled("card_429", provider.Rule{On: provider.Charge, Fault: provider.RateLimit, Times: 2}), 3},
	"dropped, then throttled": {troubled("card_drop_429", provider.Rule{On: provider.Charge, Fault: provider.DropAfter, Times: 1}, provider.Rule{On: provider.Charge, Fault: provider.RateLimit, Times: 1}), 3},
}

func TestProviderTroubleIsDeliveredLaterAndOnce(t *testing.T) { // design.md "One message, step by step": outcomes of a call; I2
	t.Parallel()
	for name, trouble := range troubles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, charge := settledOnce(t, pay("trouble-"+trouble.source, trouble.source)); charge.Attempts != trouble.attempts {
				t.Errorf("the provider saw %d requests, want %d", charge.Attempts, trouble.attempts)
			}
		})
	}
}

// keyless is charged at the endpoint that ignores keys: each request there is another charge.
var keyless = troubled("legacy_drop_after", provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter})

func TestKeylessChargeWithoutAnswerIsProbedAndNeverChargedAgain(t *testing.T) { // promise 2
	t.Parallel()
	r := pay("keyless", keyless)
	first, body := accept(t, r)
	eventually(t, delivered, func() string {
		if state := deployed.tenantA.readOperation(t, body.Operation).State; state != "unknown" {
			return "the operation is " + state + ", not unknown"
		}
		return ""
	})
	if now := deployed.tenantA.readPayment(t, body.Payment.ID); now.Status != "unknown" {
		t.Errorf("GET shows %+v, want it unknown", now)
	}
	same(t, deployed.tenantA.do(t, r).says(t, "replayed").comesBack(t), first) // the 202, also while its message is unknown
	sweep(t)
	wake(t, body)
	if _, charge := settledOnce(t, r); charge.Attempts != 1 {
		t.Errorf("the provider saw %d requests, want one", charge.Attempts)
	}
}

func TestKeylessChargeWithAnAnswerSettles(t *testing.T) { // payments-api.md: sources that begin with legacy_
	t.Parallel()
	_, charge := settledOnce(t, pay("keyless-ok", "legacy_ok_"+run))
	if charge.Kind != provider.LegacyCharge {
		t.Errorf("charged as %+v, want a legacy charge", charge)
	}
}

// reused are charges whose connection drops when it is a reused one: behind a charge that went well.
var reused = []string{
	troubled("card_reused_after", provider.Rule{On: provider.Charge, Fault: provider.DropAfter, Times: 1}),
	troubled("card_reused_before", provider.Rule{On: provider.Charge, Fault: provider.DropBefore, Times: 1}),
}

func TestADroppedReusedConnectionIsOneCall(t *testing.T) {
	t.Parallel()
	for _, source := range reused {
		settledOnce(t, pay("warm-"+source, card("warm"))) // leaves an idle connection to the provider
		r := pay("reused-"+source, source)
		_, body := accept(t, r)
		_, charge := settledOnce(t, r)
		if claims := number(messageRow(t, body), schema.Epoch); charge.Attempts != 2 || claims < 2 {
			t.Errorf("%d claims of %s sent %d requests, want two, each by a claim of its own", claims, source, charge.Attempts)
		}
	}
}

// exhausted charges, loses the answer, and then has no time for anybody.
var exhausted = troubled("card_exhausted",
	provider.Rule{On: provider.Charge, Fault: provider.DropAfter, Times: 1}, provider.Rule{On: provider.Charge, Fault: provider.RateLimit})

func TestAttemptsOverAfterALostAnswerIsNotAFailure(t *testing.T) {
	t.Parallel()
	r := pay("exhausted", exhausted)
	first, body := accept(t, r)
	eventually(t, delivered, func() string {
		if providerMet(t, exhausted) < 2 {
			return "the provider has not been asked twice"
		}
		return ""
	})
	// Ten attempts take minutes. The row is made to have had all but one.
	eventually(t, delivered, func() string { return exhaust(t, body.Operation.Message(1)) })
	eventually(t, delivered, func() string {
		wake(t, body)
		if state := text(messageRow(t, body), schema.State); state != "unknown" {
			return "the message is " + state + ", not unknown"
		}
		return ""
	})
	if m := messageRow(t, body); number(m, schema.OpenSince) == 0 {
		t.Errorf("the 429 closed the call whose answer was lost: %v", m)
	}
	if now := deployed.tenantA.readPayment(t, body.Payment.ID); now.Status != "unknown" {
		t.Errorf("GET shows %+v, want it unknown: the card was charged", now)
	}
	same(t, deployed.tenantA.do(t, r).says(t, "replayed").comesBack(t), first)
	if state := text(record(t, operationPayments, "exhausted"), schema.State); state != "pending" {
		t.Errorf("the record is %s, want it pending", state)
	}
	settledOnce(t, r) // a probe finds the charge (ADR 0015)
}

var refusedCard = troubled("card_refused", provider.Rule{On: provider.Charge, Fault: provider.Refuse})

func TestProviderThatRefusesFailsThePayment(t *testing.T) { // design.md "One message, step by step": refused (other 4xx) → dead at once
	t.Parallel()
	r := pay("refused", refusedCard)
	_, body := accept(t, r)
	final := deployed.tenantA.settle(t, r)
	final.isProblem(t, http.StatusBadGateway, "provider_refused")
	same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
	if now := deployed.tenantA.readPayment(t, body.Payment.ID); now.Status != "failed" {
		t.Errorf("GET shows %+v, want it failed", now)
	}
	if op := deployed.tenantA.readOperation(t, body.Operation); op.State != "failed" || op.Response == nil || op.Response.Status != http.StatusBadGateway {
		t.Errorf("operation %+v, want it failed by its 502", op)
	}
	if made := chargesOf(t, r.key); len(made) != 0 {
		t.Errorf("the provider made %+v, want nothing", made)
	}
}
