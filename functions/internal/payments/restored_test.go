package payments_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// calledBefore makes what a lost call has made at the provider, of which the restored tables tell nothing.
func (w *world) calledBefore(path string, key idem.MessageID, destination, reference string) {
	w.Helper()
	body := fmt.Sprintf(`{"amount":500,"currency":"EUR","destination":%q,"reference":%q}`, destination, reference)
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.provider.URL+path, strings.NewReader(body))
	w.ok(err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", string(key))
	answered, err := client.Do(r)
	w.ok(err)
	answered.Body.Close()
	if answered.StatusCode != http.StatusCreated {
		w.Fatalf("POST %s: %s", path, answered.Status)
	}
}

// A payout is restored to before its screening was settled, and had been paid since. Its second message is made anew, under the id
// that it had: where the provider ignores keys, or has forgotten this one, calling it again pays twice.
func TestARestoredPayoutIsPaidOnce(t *testing.T) {
	for name, of := range map[string]struct {
		destination, path string
		restoredAfter     time.Duration
	}{
		"keyless":                        {"legacy_bank", "/legacy/payouts", time.Minute},
		"the provider forgot its key":    {"iban_ok", "/payouts", 25 * time.Hour},
		"the provider remembers its key": {"iban_ok", "/payouts", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				var a accepted
				w.payOut("k", of.destination).want(202).decode(&a)
				w.calledBefore("/screenings", a.Operation.Message(1), of.destination, a.Payout.ID)
				w.calledBefore(of.path, a.Operation.Message(2), of.destination, a.Payout.ID)
				w.clock.Advance(of.restoredAfter)
				_, err := w.store.SetRefuseBefore(w.Context(), w.clock.Now())
				w.ok(err)
				w.clock.Advance(time.Second)
				for range 4 { // each message is asked about once it can be proven that nothing is under way
					w.swept()
					w.clock.Advance(time.Hour)
					w.reconciled()
				}
				if m := w.message(a.Operation); m.State != storage.MessageDelivered || m.Index != 2 {
					w.Errorf("message %d is %s", m.Index, m.State)
				}
				w.payOut("k", of.destination).want(201, "Idempotent-Replayed: true")
				w.made(1, 1, 500)
			}, options{workerOnly: true})
		})
	}
}
