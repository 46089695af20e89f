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

// The number of ledger shards may be raised at any time: rows of both numbers are compared. So they are by a release with a lower number
// than rows were written with: the one with the higher number was gone back from.
func TestRowsOfEveryNumberOfLedgerShardsAreCompared(t *testing.T) {
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
	for _, number := range []int{table.LedgerShards, 32, 40} {
		report, err := w.job(func(c *drift.Config) { c.LedgerShards = number }).Check(t.Context(), drift.Window{From: begin})
		w.ok(err)
		w.drifts(report)
		if report.Compared.Rows != 40 {
			t.Errorf("with %d shards: %d rows, want 40", number, report.Compared.Rows)
		}
	}
	var refused *idem.ConfigError
	for _, number := range []int{-1, 257} {
		if _, err := drift.New(drift.Config{
			Client: w.client, IdempotencyTable: "i", OutboxTable: "o", PaymentsTable: "p", ProviderURL: "http://localhost", LedgerShards: number,
		}); !errors.As(err, &refused) {
			t.Errorf("%d shards: %v", number, err)
		}
	}
}
