package drift_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// everything makes one of each that the application can end: paid, declined, failed, refunded, paid out, by keys and
// without. It is 13 rows.
func (w *world) everything() (paid made) {
	w.Helper()
	w.faults(
		provider.Rule{On: provider.Charge, Source: "card_declined", Fault: provider.Decline},
		provider.Rule{On: provider.Charge, Source: "card_busy", Fault: provider.RateLimit},
		provider.Rule{On: provider.Charge, Source: "card_late", Fault: provider.ErrorAfter, Times: 1},
		provider.Rule{On: provider.LegacyCharge, Source: "legacy_lost", Fault: provider.ErrorAfter, Times: 1},
		provider.Rule{On: provider.Screening, Destination: "iban_suspect", Fault: provider.Decline},
		provider.Rule{On: provider.Payout, Destination: "iban_closed", Fault: provider.Decline},
	)
	paid = w.pay("card_ok")
	legacy := w.pay("legacy_ok")
	w.pay("card_declined")
	w.pay("card_late")
	w.pay("legacy_lost")
	w.pay("card_busy")
	w.refund(paid, 500)
	w.refund(paid, 1499)
	w.refund(legacy, 1)
	for _, destination := range []string{"iban_ok", "legacy_iban", "iban_suspect", "iban_closed"} {
		w.payOut(destination)
	}
	w.clock.Advance(time.Hour) // absence is proven, and everything due
	w.drain(0)
	_, err := w.runner.Reconcile(w.Context())
	w.ok(err)
	w.drain(time.Hour)
	return paid
}

func TestACleanWindowIsClean(t *testing.T) {
	w := newWorld(t)
	w.everything()
	w.post(tenantB, "/v1/payments", payment("card_ok")) // which no worker has met: open; what was given up is with the operator
	report := w.check()
	w.drifts(report)
	if report.Compared.Rows != 14 || report.Open != 1 || report.WithOperator != 1 || report.Removed != 0 || report.Late != 0 {
		t.Errorf("%+v", report)
	}
	if c := report.Compared; c.Messages != 18 || c.Records != 14 || c.Objects != 16 {
		t.Errorf("compared %+v", c)
	}
}

// Each kind of drift, made behind everybody's back, is found, and nothing else with it.
func TestEachDriftIsFound(t *testing.T) {
	const body = `{"amount":1999,"currency":"EUR","source":"card_ok","reference":"order-17"}`
	for name, c := range map[string]struct {
		inject func(w *world, paid made)
		want   []drift.Kind
	}{
		"a charge by nobody's key": {func(w *world, _ made) { w.charge("/charges", "somebody's", body) }, []drift.Kind{drift.MissingHere}},
		"a charge without a key":   {func(w *world, _ made) { w.charge("/charges", "", body) }, []drift.Kind{drift.MissingHere}},
		"a charge by a key that could be ours": {func(w *world, paid made) {
			stranger := paid.Operation[:len(paid.Operation)-4] + "AAAA"
			w.charge("/charges", string(stranger.Message(1)), body)
		}, []drift.Kind{drift.MissingHere}},
		"a payment that vanished": {func(w *world, paid made) { w.remove(w.payments, "pk", paid.row()) }, []drift.Kind{drift.MissingHere}},
		"a provider that forgot":  {func(w *world, _ made) { w.ok(w.provider.Reset(w.Context())) }, []drift.Kind{drift.MissingThere}},
		"another amount here":     {func(w *world, paid made) { w.setRow(paid, "amt", 1998) }, []drift.Kind{drift.AmountDiffers}},
		"another currency here":   {func(w *world, paid made) { w.setRow(paid, "cur", "USD") }, []drift.Kind{drift.AmountDiffers}},
		"failed here, paid there": {func(w *world, paid made) {
			w.setRow(paid, "st", "failed")
		}, []drift.Kind{drift.StateDiffers, drift.StateDiffers}}, // from its message, and from the charge
		"declined here, paid there": {func(w *world, paid made) {
			w.setRow(paid, "st", "declined")
			w.set(w.tables.Outbox, "id", string(paid.Operation.Message(1)), schema.State, "declined")
		}, []drift.Kind{drift.StateDiffers}},
		"pending here, settled message": {func(w *world, paid made) { w.setRow(paid, "st", "pending") }, []drift.Kind{drift.StateDiffers}},
		"another charge than ours":      {func(w *world, paid made) { w.setRow(paid, "prv", "ch_other") }, []drift.Kind{drift.StateDiffers}},
		"charged twice under one key": {func(w *world, paid made) {
			w.charge("/legacy/charges", string(paid.Operation.Message(1)), body)
		}, []drift.Kind{drift.Duplicate}},
		"charged twice for one intent": {func(w *world, paid made) {
			w.charge("/charges", string(paid.Operation.Message(2)), body)
		}, []drift.Kind{drift.Duplicate}},
		"more refunded than paid": {func(w *world, paid made) { w.setRow(paid, "rfd", 2000) }, []drift.Kind{drift.Duplicate}},
		"a record that was never completed": {func(w *world, paid made) {
			w.set(w.tables.Idempotency, "pk", paid.record(), schema.State, "pending")
		}, []drift.Kind{drift.RecordMessageDiffers}},
		"a record that failed, of a charge": {func(w *world, paid made) {
			w.set(w.tables.Idempotency, "pk", paid.record(), schema.State, "failed")
		}, []drift.Kind{drift.RecordMessageDiffers}},
		"a message that vanished": {func(w *world, paid made) { w.removeMessage(paid) }, []drift.Kind{drift.RecordMessageDiffers}},
		"a record that vanished":  {func(w *world, paid made) { w.removeRecord(paid) }, []drift.Kind{drift.RecordMessageDiffers}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			paid := w.pay("card_ok")
			w.drifts(w.check())
			c.inject(w, paid)
			w.drifts(w.check(), c.want...)
		})
	}
}

func TestDriftOfRefunds(t *testing.T) {
	w := newWorld(t)
	paid := w.pay("card_ok")
	back := w.refund(paid, 500)
	w.refund(paid, 1499)
	w.drifts(w.check())
	w.setRow(paid, "rfd", 1998)
	w.drifts(w.check(), drift.AmountDiffers)
	w.setRow(paid, "rfd", 1999)
	w.setRow(back, "amt", 501) // from the provider's, from the payment's sum, and more than was paid
	w.drifts(w.check(), drift.AmountDiffers, drift.AmountDiffers, drift.Duplicate)
	w.setRow(back, "amt", 500)
	w.remove(w.payments, "pk", back.row())
	w.drifts(w.check(), drift.MissingHere)
}

func TestDriftOfPayouts(t *testing.T) {
	w := newWorld(t)
	w.payOut("iban_ok")
	w.drifts(w.check())
	out, err := w.provider.Payouts(t.Context())
	w.ok(err)
	screened, err := w.provider.Screenings(t.Context())
	w.ok(err)
	w.charge("/payouts", "", `{"amount":500,"currency":"EUR","destination":"iban_ok","reference":"`+out[0].Reference+`"}`)
	w.drifts(w.check(), drift.Duplicate) // of one intent, under no key at all
	w.remove(w.tables.Outbox, "id", screened[0].Key)
	w.drifts(w.check(), drift.Duplicate, drift.RecordMessageDiffers)
}

// A payout that is not made is three messages and a release. Whatever is behind that is drift.
func TestDriftOfReleases(t *testing.T) {
	for _, c := range []struct {
		fault provider.Fault
		end   string
	}{{provider.Decline, "declined"}, {provider.Refuse, "failed"}} {
		t.Run(c.end, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.faults(provider.Rule{On: provider.Payout, Fault: c.fault}, provider.Rule{On: provider.Release, Fault: provider.RateLimit, Times: 1})
			w.payOut("iban_ok")
			screened, err := w.provider.Screenings(t.Context())
			w.ok(err)
			operation, _, err := idem.MessageID(screened[0].Key).Operation()
			w.ok(err)
			w.ok(w.worker.Deliver(t.Context(), operation.Message(3)))
			report := w.check() // the release is under way
			if w.drifts(report); report.Open != 1 {
				t.Errorf("%+v", report)
			}
			w.drain(time.Hour)
			w.ok(w.worker.Deliver(t.Context(), operation.Message(3)))
			report = w.check()
			if w.drifts(report); report.Open != 0 || report.Compared.Messages != 3 {
				t.Errorf("%+v", report)
			}
			paidOut := made{ID: screened[0].Reference, Operation: operation}
			w.setRow(paidOut, "st", "pending") // from its message, and for what was given back
			w.drifts(w.check(), drift.StateDiffers, drift.StateDiffers)
			w.setRow(paidOut, "st", "succeeded") // from its message; from the provider's payouts; for what was released, and what was given back
			w.drifts(w.check(), drift.StateDiffers, drift.StateDiffers, map[string]drift.Kind{"declined": drift.StateDiffers, "failed": drift.MissingThere}[c.end])
			w.setRow(paidOut, "st", c.end)
			w.set(w.tables.Idempotency, schema.RecordKey, paidOut.record(), schema.State, "pending")
			w.drifts(w.check(), drift.RecordMessageDiffers)
			w.set(w.tables.Idempotency, schema.RecordKey, paidOut.record(), schema.State, "failed")
			w.set(w.tables.Outbox, schema.MessageID, string(operation.Message(3)), schema.State, "dead")
			w.drifts(w.check(), drift.StateDiffers, drift.RecordMessageDiffers)
			w.remove(w.tables.Outbox, schema.MessageID, string(operation.Message(3)))
			w.drifts(w.check(), drift.RecordMessageDiffers)
		})
	}
}

// What is parked or under way is no drift, however long ago it began; what is worked on for ever is.
func TestWhatIsUnderWayIsNoDrift(t *testing.T) {
	w := newWorld(t)
	w.faults(provider.Rule{On: provider.LegacyCharge, Fault: provider.ErrorAfter})
	unknown := w.pay("legacy_lost") // charged, nobody knows
	w.post(tenantA, "/v1/payments", payment("card_waits"))
	report := w.check()
	w.drifts(report)
	if report.Open != 1 || report.WithOperator != 1 || len(report.Parked) != 1 || report.Parked[0].Message != unknown.Operation.Message(1) || report.Parked[0].State != "unknown" {
		t.Errorf("%+v", report)
	}
	w.clock.Advance(25 * time.Hour)
	w.drifts(w.check(), drift.StateDiffers)
	// Twice charged is drift in any state.
	w.faults()
	w.charge("/legacy/charges", string(unknown.Operation.Message(1)), payment("legacy_lost"))
	w.drifts(w.check(), drift.StateDiffers, drift.Duplicate)
}

// An effect long after its row is compared in the window that it falls into.
func TestALateEffectIsCompared(t *testing.T) {
	w := newWorld(t)
	late := w.post(tenantA, "/v1/payments", payment("card_ok"))
	w.clock.Advance(5 * time.Hour)
	w.deliver(late)
	w.clock.Advance(time.Hour)
	check := func() drift.Report {
		t.Helper()
		report, err := w.job().Check(t.Context(), drift.Window{From: begin.Add(4 * time.Hour)})
		w.ok(err)
		return report
	}
	report := check()
	w.drifts(report)
	if report.Late != 1 || report.Compared.Rows != 0 || report.Compared.Objects != 1 {
		t.Errorf("%+v", report)
	}
	w.setRow(late, "amt", 1)
	w.drifts(check(), drift.AmountDiffers)
	w.setRow(late, "amt", 1999)
	w.drifts(w.check()) // from the row's side: looked up by key
}

// A tenant's report is about nobody else.
func TestOneTenantOnly(t *testing.T) {
	w := newWorld(t)
	paid := w.pay("card_ok")
	w.deliver(w.post(tenantB, "/v1/payments", payment("card_ok")))
	w.setRow(paid, "amt", 1)
	w.charge("/charges", "", payment("card_ok"))
	w.clock.Advance(time.Hour)
	for tenant, want := range map[string][]drift.Kind{tenantA: {drift.AmountDiffers}, tenantB: nil, "tenant": nil} {
		report, err := w.job().Check(t.Context(), drift.Window{From: begin, Tenant: tenant})
		w.ok(err)
		w.drifts(report, want...)
		if rows := 1; tenant != "tenant" && report.Compared.Rows != rows {
			t.Errorf("%s: %d rows", tenant, report.Compared.Rows)
		}
	}
}
