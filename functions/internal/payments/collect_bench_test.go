package payments_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// BenchmarkTransferToOneAccount is how fast transfers from many accounts to one go, and its folding:
//
//	go test -run '^$' -bench TransferToOneAccount -benchtime 4000x ./functions/internal/payments
//
// The emulator makes one transaction after the other and knows no bound of a partition, so that it shows what the work costs, and
// not what AWS lets through.
func BenchmarkTransferToOneAccount(b *testing.B) {
	for _, c := range []struct {
		name       string
		partitions int
	}{{"its row", 0}, {"collecting", 8}} {
		b.Run(c.name, func(b *testing.B) { transferTo(b, c.partitions) })
	}
}

func transferTo(b *testing.B, partitions int) {
	const payers = 64
	clock := idemtest.NewClock(noon)
	on := onDynamoDB(b, dynamotest.Names()[0])
	accounts := []payments.Account{{Tenant: tenantA, ID: "acct_c", Currency: "EUR", Partitions: partitions}}
	for n := range payers {
		accounts = append(accounts, payments.Account{Tenant: tenantA, ID: fmt.Sprint("acct_", n), Currency: "EUR", Balance: seedBalance})
	}
	for _, a := range accounts {
		if err := on.open(b.Context(), a); err != nil {
			b.Fatal(err)
		}
	}
	app, err := newApp(faulty.New(on.store), on.ledger, nil, idem.Config{Now: clock.Now, Pause: clock.Pause, Logger: silent})
	if err != nil {
		b.Fatal(err)
	}
	var sent atomic.Int64
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(each *testing.PB) {
		for each.Next() {
			n := sent.Add(1)
			r := httptest.NewRequest(http.MethodPost, "/v1/transfers", strings.NewReader(transfer(fmt.Sprint("acct_", n%payers), "acct_c", 1)))
			r.Header.Set("Authorization", "Bearer "+tenantA)
			r.Header.Set("Idempotency-Key", fmt.Sprintf("%q", fmt.Sprint("k", n)))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			if app.ServeHTTP(w, r); w.Code != http.StatusCreated {
				b.Errorf("%d %s", w.Code, w.Body)
			}
		}
	})
	transferred := b.Elapsed()
	b.ReportMetric(float64(b.N)/transferred.Seconds(), "transfers/s")
	if partitions > 0 {
		if did, err := (payments.Folder{Collections: on.collections, RefuseBefore: on.store.RefuseBefore, Now: clock.Now, Pause: clock.Pause}).Run(b.Context()); err != nil || did.Transfers != b.N {
			b.Errorf("%+v, %v, want %d folded", did, err, b.N)
		}
		b.ReportMetric(float64(b.N)/(b.Elapsed()-transferred).Seconds(), "folded/s")
	}
	if a, err := on.ledger.Account(b.Context(), tenantA, "acct_c"); err != nil || a.Balance != int64(b.N) {
		b.Errorf("%+v, %v, want a balance of %d", a, err, b.N)
	}
}
