package payments_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/localstack/provider"
)

const (
	hanging      = 20 // requests or messages of tenant-a that hang at the provider
	hangs        = 2 * time.Second
	roundsMin    = 3
	roundsMax    = 9
	perRound     = 10
	slowerAtMost = 2.0
	// noise is what a busy machine adds to a median by itself; who queues behind what hangs waits for seconds.
	noise = 150 * time.Millisecond
)

// apart demands that tenant-b's median beside tenant-a's hanging ones is at most twice the one without. Where one tenant waits for
// another, it does so in every round and for seconds; what else the machine does slows some rounds only. So the fastest round counts,
// and there are more while none was fast enough.
func (w *world) apart(what string, one func(i int), hang func(i int)) {
	w.Helper()
	var alone, beside []time.Duration
	n := 0
	median := func() time.Duration {
		took, base := make([]time.Duration, perRound), n
		var all sync.WaitGroup
		for i := range took { // at once: one after the other, only the first would queue behind what hangs
			all.Go(func() {
				began := time.Now()
				one(base + i)
				took[i] = time.Since(began)
			})
		}
		all.Wait()
		n += perRound
		slices.Sort(took)
		return took[perRound/2]
	}
	median() // connections are made
	ratio := func() float64 { return float64(slices.Min(beside)) / float64(max(slices.Min(alone), noise)) }
	for round := 0; round < roundsMin || round < roundsMax && ratio() > slowerAtMost; round++ {
		alone = append(alone, median())
		before := w.underway()
		var hung sync.WaitGroup
		for i := range hanging {
			hung.Go(func() { hang(round*hanging + i) })
		}
		for w.underway() < before+hanging {
			time.Sleep(time.Millisecond)
		}
		beside = append(beside, median())
		hung.Wait()
		w.Logf("%s: median %v alone, %v beside %d that hang", what, alone[round], beside[round], hanging)
	}
	if ratio := ratio(); ratio > slowerAtMost {
		w.Errorf("%s: %.2f times slower beside another tenant's that hang, want at most %v: alone %v, beside %v", what, ratio, slowerAtMost, alone, beside)
	}
}

// underway is how many requests have met the rule that hangs so far.
func (w *world) underway() int {
	w.Helper()
	rules, err := w.provider.Rules(w.Context())
	w.ok(err)
	return rules[0].Applied
}

// Payouts of one tenant that hang within their requests move nobody else's.
func TestInlineDeliveriesThatHangAreTheirTenantsAlone(t *testing.T) {
	onBoth(t, func(w *world) {
		w.ok(w.provider.Faults(w.Context(), provider.Rule{On: provider.Screening, Destination: "bank_hang", Fault: provider.HangBefore}))
		w.apart("inline", func(i int) {
			w.post(tenantB, "/v1/payouts", fmt.Sprintf("b-%d", i), send("bank_ok", 1)).want(201)
		}, func(i int) {
			w.post(tenantA, "/v1/payouts", fmt.Sprintf("a-%d", i), send("bank_hang", 1)).want(202)
		})
	}, options{callTimeout: hangs})
}

// Messages of one tenant that hang in the worker, which runs a whole batch at once, move nobody else's.
func TestMessagesThatHangAreTheirTenantsAlone(t *testing.T) {
	onBoth(t, func(w *world) {
		w.ok(w.provider.Faults(w.Context(), provider.Rule{On: provider.Charge, Source: "card_hang", Fault: provider.HangBefore}))
		w.apart("worker", func(i int) {
			w.ok(w.worker.Deliver(w.Context(), w.accepted(tenantB, fmt.Sprintf("b-%d", i), "card_ok")))
		}, func(i int) {
			if err := w.worker.Deliver(w.Context(), w.accepted(tenantA, fmt.Sprintf("a-%d", i), "card_hang")); err != nil {
				w.Error(err)
			}
		})
	}, options{callTimeout: hangs})
}

// accepted asks for a payment and returns its message.
func (w *world) accepted(tenant, key, source string) idem.MessageID {
	w.Helper()
	got := w.post(tenant, "/v1/payments", key, order(source)).want(202)
	return idem.OperationID(strings.TrimPrefix(got.header.Get("Location"), "/v1/operations/")).Message(1)
}
