package drift_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// plant puts a payment into the table that was made at the time, with neither record nor message, as TTL leaves it after
// its retention, and its charge at the provider.
func (w *world) plant(at time.Time, status payments.Status) {
	w.Helper()
	w.waitUntil(at)
	w.keys++
	key := idem.Scope{Tenant: tenantA, Operation: "payments.create", Key: fmt.Sprint("planted-", w.keys)}.RecordKey()
	operation, err := storage.IDGenerator{Random: rand.NewChaCha8([32]byte{byte(w.keys), byte(w.keys >> 8)})}.OperationID(key)
	w.ok(err)
	p := payments.Payment{
		Tenant: tenantA, Status: status, Amount: 1999, Currency: "EUR", Source: "card_ok", Reference: "order-17",
		CreatedAt: at, Message: operation.Message(1),
	}
	pk, _ := payments.EntryOf(payments.EntryPayment, tenantA, operation)
	p.ID = pk[len("payment#"+tenantA+"/"):]
	if status == payments.StatusSucceeded {
		p.ProviderReference = w.charge("/charges", string(p.Message), payment("card_ok"))
	}
	put, err := payments.Items(w.payments, table.LedgerShards)(payments.InsertPayment{Payment: p})
	w.ok(err)
	_, err = w.client.PutItem(w.Context(), &dynamodb.PutItemInput{TableName: &w.payments, Item: put.Put.Item})
	w.ok(err)
}

// Every row of a window is compared exactly once, whatever hour, day, shard or page it falls on, and so is every object.
func TestWindowsAreCutExactly(t *testing.T) {
	w := newWorld(t)
	midnight := time.Date(2101, 2, 4, 0, 0, 0, 0, time.UTC)
	var times []time.Time
	for i := range 230 { // more than two pages before midnight, and more than one of every shard
		times = append(times, midnight.Add(-5*time.Minute).Add(time.Duration(i)*time.Second))
	}
	times = append(times, midnight.Add(-time.Millisecond), midnight, midnight.Add(time.Millisecond), midnight.Add(time.Hour-time.Millisecond), midnight.Add(time.Hour))
	for i := range 500 {
		times = append(times, midnight.Add(time.Hour+time.Duration(i)*10*time.Millisecond+time.Millisecond))
	}
	for _, at := range times {
		w.plant(at, payments.StatusSucceeded)
	}
	w.waitUntil(midnight.Add(60 * time.Hour))
	for _, window := range []drift.Window{
		{From: begin, To: midnight.Add(2 * time.Hour)},
		{From: begin, To: midnight},
		{From: midnight, To: midnight.Add(time.Hour)},
		{From: midnight.Add(time.Millisecond), To: midnight.Add(time.Hour)},
		{From: midnight.Add(time.Hour), To: midnight.Add(time.Hour + time.Millisecond)},
		{From: midnight.Add(-time.Second), To: midnight.Add(time.Hour + 3*time.Second)},
		{From: midnight.Add(10 * time.Hour), To: midnight.Add(12 * time.Hour)},
	} {
		want := 0
		for _, at := range times {
			if !at.Before(window.From) && at.Before(window.To) {
				want++
			}
		}
		report, err := w.job().Check(t.Context(), window)
		w.ok(err)
		w.drifts(report)
		if report.Compared.Rows != want || report.Compared.Objects != want || report.Removed != want || report.Window != window || !report.Reached.Equal(window.From) {
			t.Errorf("%s to %s: %+v, want %d rows", window.From, window.To, report, want)
		}
	}
}

// The rule of what TTL may have taken is by times alone: a final row's message after a retention and a day, its record
// after a retention, and nothing at all of what is pending.
func TestWhatTTLHasRemovedIsNoDrift(t *testing.T) {
	w := newWorld(t)
	at := w.clock.Now()
	paid := w.pay("card_ok")
	check := func(age time.Duration) drift.Report {
		t.Helper()
		w.waitUntil(at.Add(age))
		report, err := w.job().Check(t.Context(), drift.Window{From: begin, To: begin.Add(time.Hour)})
		w.ok(err)
		return report
	}
	w.removeRecord(paid)
	w.drifts(check(24*time.Hour-time.Second), drift.RecordMessageDiffers)
	report := check(24 * time.Hour)
	w.drifts(report)
	if report.Removed != 1 || report.Compared.Records != 0 || report.Compared.Messages != 1 {
		t.Errorf("%+v", report)
	}
	w.removeMessage(paid)
	w.drifts(check(48*time.Hour-time.Second), drift.RecordMessageDiffers)
	report = check(48 * time.Hour)
	w.drifts(report)
	if report.Removed != 1 || report.Compared.Messages != 0 || report.Compared.Objects != 1 {
		t.Errorf("%+v", report)
	}
	// What is left is compared all the same.
	w.setRow(paid, "amt", 1)
	w.drifts(check(72*time.Hour), drift.AmountDiffers)
	w.setRow(paid, "amt", 1999)
	// A charge whose row is gone, too, is nobody's, however old it is: rows have no time to live.
	w.remove(w.payments, "pk", paid.row())
	report = check(72 * time.Hour)
	w.drifts(report, drift.MissingHere)
	if report.Removed != 0 || report.Compared.Rows != 0 {
		t.Errorf("%+v", report)
	}
	w.plant(w.clock.Now(), payments.StatusPending)
	w.clock.Advance(30 * 24 * time.Hour)
	report, err := w.job().Check(t.Context(), drift.Window{From: at.Add(71 * time.Hour), To: at.Add(73 * time.Hour)})
	w.ok(err)
	w.drifts(report, drift.RecordMessageDiffers)
}

// docs/recovery.md "What keeps money from moving twice": an object whose traces TTL or a loss has removed is compared with its row however old
// it is, and is missing here without one. Where its window was compared before, with the traces, only one from before a known loss is.
func TestWhatALossHasTakenIsMissingHoweverOldItIs(t *testing.T) {
	w := newWorld(t)
	early, slow := w.post(tenantA, "/v1/payments", payment("card_ok")), w.post(tenantB, "/v1/payments", payment("card_ok"))
	w.clock.Advance(time.Minute)
	window := drift.Window{From: w.clock.Now(), To: begin.Add(48 * time.Hour)} // after their rows, and before their charges
	w.deliver(early)
	lost := w.pay("card_ok")
	w.waitUntil(begin.Add(20 * time.Hour))
	w.deliver(slow)
	for _, m := range []made{early, slow, lost} {
		w.removeRecord(m)
		w.removeMessage(m)
	}
	w.remove(w.payments, "pk", lost.row())
	cut := begin.Add(21 * time.Hour)
	w.waitUntil(begin.Add(22 * time.Hour))
	expired := w.pay("card_ok") // its row is deleted by hand
	w.removeRecord(expired)
	w.removeMessage(expired)
	w.remove(w.payments, "pk", expired.row())
	w.clock.Advance(30 * 24 * time.Hour)

	ways := map[string]func(*drift.Config){"at once": func(*drift.Config) {}, "one by one": func(c *drift.Config) { c.ObjectsMax = 2 }}
	for name, change := range ways {
		report, err := w.job(change).Check(t.Context(), window)
		w.ok(err)
		w.drifts(report, drift.MissingHere, drift.MissingHere)
		if report.Removed != 2 || report.Late != 2 { // the two that are late were compared without their traces
			t.Errorf("%s: %+v", name, report)
		}
	}
	all := func(int) bool { return false }
	again, err := w.job().CheckLast(t.Context(), window, nil, true, all)
	w.ok(err)
	w.drifts(again) // nothing was lost, as far as anybody has said
	if again.Removed != 4 || again.Late != 0 {
		t.Errorf("again, without a loss: %+v", again)
	}
	w.put(w.tables.Idempotency, map[string]any{schema.RecordKey: schema.LossKey, schema.RefuseBefore: int(cut.UnixMilli())})
	for name, change := range ways {
		report, err := w.job(change).CheckLast(t.Context(), window, nil, true, all)
		w.ok(err)
		w.drifts(report, drift.MissingHere)
		if report.Removed != 3 || report.Late != 2 {
			t.Errorf("again, %s: %+v", name, report)
		}
	}
	left, err := w.job().Check(t.Context(), drift.Window{From: window.From, To: window.To, Tenant: tenantA}) // objects that nobody owns are left out
	w.ok(err)
	w.drifts(left)
	w.put(w.tables.Idempotency, map[string]any{schema.RecordKey: schema.LossKey, schema.RefuseBefore: "noon"})
	if report, err := w.job().Check(t.Context(), window); err == nil || report.Clean() {
		t.Errorf("where nobody can read up to when data was lost: %+v, %v", report, err)
	}
}

// docs/adr/0072: a message that an operator has started anew is worked on longer after its row than any other. Its row is found all the
// same, so that an honest charge is never taken for one that nobody has asked for.
func TestAChargeOfARedrivenMessageIsComparedWithItsRowHoweverOldThatIs(t *testing.T) {
	w := newWorld(t)
	w.faults(provider.Rule{On: provider.Charge, Fault: provider.ErrorBefore}, provider.Rule{On: provider.List, Fault: provider.ErrorBefore})
	redriven := w.pay("card_ok")
	w.drain(72 * time.Hour)
	w.reconcile(redriven) // the provider does not say what became of it: it is dead
	w.faults()
	w.redrive(redriven)
	w.removeRecord(redriven)
	w.removeMessage(redriven)
	window := drift.Window{From: begin.Add(71 * time.Hour), To: begin.Add(74 * time.Hour)}
	w.put(w.tables.Idempotency, map[string]any{schema.RecordKey: schema.LossKey, schema.RefuseBefore: int(window.To.UnixMilli())})
	w.clock.Advance(5 * 24 * time.Hour)

	report, err := w.job().Check(t.Context(), window)
	w.ok(err)
	w.drifts(report)
	if report.Late != 1 || report.Compared.Objects != 1 {
		t.Errorf("%+v", report)
	}
	all := func(int) bool { return false }
	for name, c := range map[string]struct {
		reads int
		want  []drift.Kind
	}{"all that it may read": {0, nil}, "not far enough": {100, []drift.Kind{drift.MissingHere}}} {
		step, err := w.job(func(cfg *drift.Config) { cfg.OlderReadsMax = c.reads }).CheckLast(t.Context(), window, nil, false, all)
		w.ok(err)
		w.drifts(step, c.want...)
		if most := 2*table.LedgerShards*27 + c.reads + 20; c.reads > 0 && step.Cost.DynamoDBCalls > most {
			t.Errorf("%s: %d calls, of at most %d", name, step.Cost.DynamoDBCalls, most)
		}
	}
	w.setRow(redriven, "amt", 1)
	report, err = w.job().Check(t.Context(), window)
	w.ok(err)
	w.drifts(report, drift.AmountDiffers)
}

// An end so young that the provider need not list it is open, by the grace.
func TestWhatIsNotListedYetIsOpen(t *testing.T) {
	w := newWorld(t)
	delay := (10 * time.Minute).Milliseconds()
	w.ok(w.provider.Settings(t.Context(), provider.SettingsPatch{ListDelayMillis: &delay}))
	slow := w.post(tenantA, "/v1/payments", payment("card_ok"))
	w.clock.Advance(30 * time.Minute)
	w.deliver(slow)
	w.clock.Advance(5 * time.Minute)
	graceful := func(c *drift.Config) { c.Grace, c.ListingDelay = 12*time.Minute, 10*time.Minute }
	check := func() drift.Report {
		t.Helper()
		report, err := w.job(graceful).Check(t.Context(), drift.Window{From: begin, To: begin.Add(10 * time.Minute)})
		w.ok(err)
		return report
	}
	report := check()
	w.drifts(report)
	if report.Open != 1 {
		t.Errorf("%+v", report)
	}
	w.clock.Advance(10 * time.Minute)
	report = check()
	w.drifts(report)
	if report.Open != 0 {
		t.Errorf("%+v", report)
	}
	w.ok(w.provider.Reset(t.Context()))
	w.drifts(check(), drift.MissingThere)
}

// A run that can't go on says so, and how far it came; it is never clean.
func TestAnUnfinishedRunIsNotClean(t *testing.T) {
	w := newWorld(t)
	for i := range 150 {
		w.plant(begin.Add(time.Duration(i)*time.Second), payments.StatusSucceeded)
	}
	w.clock.Advance(50 * time.Hour)
	whole := drift.Window{From: begin, To: begin.Add(time.Hour)}
	unfinished := func(why string, report drift.Report, err error) {
		t.Helper()
		if err == nil || !report.Unfinished || report.Clean() {
			t.Errorf("%s: %+v, %v", why, report, err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	report, err := w.job().Check(over, whole)
	if !errors.Is(err, context.Canceled) || report.Compared.Rows != 0 {
		t.Errorf("out of time: %+v, %v", report, err)
	}
	unfinished("out of time", report, err)

	w.faults(provider.Rule{On: provider.List, Fault: provider.ErrorBefore})
	report, err = w.job().Check(t.Context(), whole)
	unfinished("a provider that does not list", report, err)
	w.faults()

	report, err = w.job(func(c *drift.Config) { c.OutboxTable = "nowhere" }).Check(t.Context(), whole)
	unfinished("no table of messages", report, err)

	report, err = w.job().Check(t.Context(), drift.Window{From: begin.Add(time.Hour), To: begin})
	unfinished("a window that ends before it begins", report, err)
	if configuration := (*idem.ConfigError)(nil); !errors.As(err, &configuration) {
		t.Errorf("%v", err)
	}
	w.drifts(w.check())
}

// Rows of releases that this one doesn't know are not guessed at, and the run fails.
func TestWhatCantBeReadFailsTheRun(t *testing.T) {
	for name, spoil := range map[string]func(*world, made){
		"a message of another schema": func(w *world, m made) { w.set(w.tables.Outbox, "id", string(m.Operation.Message(1)), "sv", 7) },
		"a message without a meaning": func(w *world, m made) { w.set(w.tables.Outbox, "id", string(m.Operation.Message(1)), "ep", "x") },
		"a record of another schema":  func(w *world, m made) { w.set(w.tables.Idempotency, "pk", m.record(), "sv", 7) },
		"a state nobody knows":        func(w *world, m made) { w.set(w.tables.Idempotency, "pk", m.record(), "st", "paused") },
		"a row without an amount":     func(w *world, m made) { w.setRow(m, "amt", "much") },
		"a row of another message":    func(w *world, m made) { w.setRow(m, "msg", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			spoil(w, w.pay("card_ok"))
			w.pay("card_ok")
			w.clock.Advance(time.Hour)
			report, err := w.job().Check(t.Context(), drift.Window{From: begin})
			if err == nil || report.Unreadable == 0 || report.Clean() || !report.Unfinished || report.Compared.Rows == 0 {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}

// A status that is none is a person's slip. It is named as long as the row is there, whatever is left of its operation, and fails no run.
func TestWhatHasAStatusThatIsNoneIsNamed(t *testing.T) {
	w := newWorld(t)
	w.pay("card_ok")
	paid := w.pay("card_ok")
	w.waitUntil(begin.Add(60 * time.Hour))
	w.removeMessage(paid)
	w.removeRecord(paid)
	for _, status := range []string{"succeded", "unknown", ""} {
		w.setRow(paid, "st", status)
		report, err := w.job().Check(w.Context(), drift.Window{From: begin, To: begin.Add(50 * time.Hour)})
		w.ok(err)
		if w.drifts(report, drift.StateDiffers); report.Compared.Rows != 2 || len(report.Drifts) != 1 || report.Drifts[0].Entry != paid.ID {
			t.Errorf("%q: %+v", status, report)
		}
	}
}

// Without the attribute of the index, rows of older releases are not seen, and not guessed at; their objects are looked up
// from the other side.
func TestRowsOfOlderReleasesAreNotInTheIndex(t *testing.T) {
	w := newWorld(t)
	paid := w.pay("card_ok")
	_, err := w.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &w.payments, Key: item{"pk": attributeValue(paid.row())}, UpdateExpression: new("REMOVE " + table.Hour),
	})
	w.ok(err)
	report := w.check()
	w.drifts(report)
	if report.Compared.Rows != 0 || report.Late != 1 {
		t.Errorf("%+v", report)
	}
}

// One look-up that keeps failing hides no other drift: its row is left out, and said to be.
func TestARowThatTheProviderDoesNotAnswerAboutIsLeftOut(t *testing.T) {
	w := newWorld(t)
	early := w.post(tenantA, "/v1/payments", payment("card_failing")) // before the window, and its charge within
	w.clock.Advance(time.Minute)
	window := drift.Window{From: w.clock.Now()}
	w.deliver(early)
	w.clock.Advance(time.Hour)
	late := w.pay("card_ok")
	w.setRow(late, "amt", 1)
	w.faults(provider.Rule{On: provider.List, Source: "card_failing", Fault: provider.ErrorBefore})
	w.clock.Advance(time.Hour)
	report, err := w.job().Check(t.Context(), window)
	w.ok(err)
	w.drifts(report, drift.AmountDiffers)
	if report.Unanswered != 1 || report.Late != 0 || report.Clean() {
		t.Errorf("%+v", report)
	}
	w.faults()
	w.setRow(late, "amt", 1999)
	report, err = w.job().Check(t.Context(), window)
	w.ok(err)
	w.drifts(report)
	if report.Unanswered != 0 || report.Late != 1 || !report.Clean() {
		t.Errorf("%+v", report)
	}
}
