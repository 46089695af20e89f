package drift_test

import (
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
)

// The number of ledger shards may be raised at any time: rows of both numbers are compared. With a lower one than rows were written
// with nothing is compared, because the upper shards would be missed.
func TestLedgerShardsMayBeRaisedAndNeverLowered(t *testing.T) {
	w := newWorld(t)
	record := func(number int) {
		t.Helper()
		w.ok(payments.LedgerShards{Client: w.client, Table: w.payments, Number: number}.Record(t.Context()))
	}
	record(table.LedgerShards)
	for range 10 {
		w.pay("card_ok")
	}
	record(32)
	w.shards = 32
	w.start()
	for range 30 {
		w.pay("card_ok")
	}
	record(table.LedgerShards) // an instance of the release before starts still
	w.clock.Advance(time.Hour)
	report, err := w.job(func(c *drift.Config) { c.LedgerShards = 32 }).Check(t.Context(), drift.Window{From: begin})
	w.ok(err)
	w.drifts(report)
	if report.Compared.Rows != 40 {
		t.Errorf("%d rows, want 40", report.Compared.Rows)
	}
	var refused *idem.ConfigError
	report, err = w.job(func(c *drift.Config) { c.LedgerShards = 31 }).Check(t.Context(), drift.Window{From: begin})
	if !errors.As(err, &refused) || refused.Field != "LEDGER_SHARDS" || refused.Value != 31 || !report.Unfinished || report.Compared.Rows != 0 {
		t.Errorf("%v, %+v", err, report)
	}
	for _, number := range []int{-1, 257} {
		if _, err := drift.New(drift.Config{
			Client: w.client, IdempotencyTable: "i", OutboxTable: "o", PaymentsTable: "p", ProviderURL: "http://localhost", LedgerShards: number,
		}); !errors.As(err, &refused) {
			t.Errorf("%d shards: %v", number, err)
		}
	}
}
