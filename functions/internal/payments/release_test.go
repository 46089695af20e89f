package payments_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// failing is why a payout is not made although its screening was, and how its operation ends once the hold is released.
type failing struct {
	fault provider.Fault
	// payouts are what the provider made: one that it declines is an object.
	payouts        int
	status         int
	code, detail   string
	row, operation string
}

var failings = map[string]failing{
	"declined": {provider.Decline, 1, 402, "payout_declined", "The provider declined the payout. The funds are back on the account.", "declined", "failed"},
	"refused":  notMade(provider.Refuse),
	"given up": notMade(provider.RateLimit),
}

func notMade(fault provider.Fault) failing {
	return failing{fault, 0, 502, "provider_unavailable", "The screening was executed and its hold released; the payout was not executed.", "failed", "failed"}
}

// onEachFailing runs a scenario for each way in which a payout is not made.
func onEachFailing(t *testing.T, scenario func(w *world, f failing), o ...options) {
	t.Helper()
	for name, f := range failings {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) { scenario(w, f) }, o...)
		})
	}
}

// unmade asks for a payout that fails so, while the releases meet the rules. It returns the operation, which waits for its
// release, and the payout's id.
func (w *world) unmade(f failing, rules ...provider.Rule) (idem.OperationID, string) {
	w.Helper()
	w.faults(append(rules, provider.Rule{On: provider.Payout, Fault: f.fault}, provider.Rule{On: provider.LegacyPayout, Fault: f.fault})...)
	w.payOut("k", "iban_ok")
	screening := w.screenings()[0]
	operation, _, err := idem.MessageID(screening.Key).Operation()
	w.ok(err)
	for range 3 * attemptsMax {
		switch m := w.message(operation); {
		case m.Index == 3:
			return operation, screening.Reference
		case m.State == storage.MessageUnknown: // a slow machine took longer than a call may
			w.reconciled()
		}
		w.clock.Advance(time.Minute)
		w.deliverMessage(operation, 2)
	}
	m := w.message(operation)
	w.Fatalf("message %d is %s, want a release", m.Index, m.State)
	return "", ""
}

// finished lets the platform do whatever is to be done: wake-ups, and the sweep.
func (w *world) finished() {
	w.Helper()
	for range 3 {
		w.drain(time.Hour)
		w.swept()
	}
}

// notPaidOut demands that the payout has ended so, by the stored answer, with the funds back and the hold released, once.
func (w *world) notPaidOut(f failing, operation idem.OperationID, id string) {
	w.Helper()
	final := w.payOut("k", "iban_ok").problem(f.status, f.code).want(f.status, "Idempotent-Replayed: true", "Idempotency-Expires", "-Location")
	if !strings.Contains(final.body, f.detail) {
		w.Errorf("%s, want %q", final.body, f.detail)
	}
	w.finished()
	for n := range 3 {
		w.deliverMessage(operation, n+1)
	}
	w.payOut("k", "iban_ok").same(final)
	w.made(1, f.payouts, 0)
	w.held(0)
	p, o := w.payout(id), w.operation(operation)
	if p.Status != f.row || (p.ProviderReference != nil) != (f.payouts == 1) || o.State != f.operation || o.Response.Body != final.body {
		w.Errorf("payout %+v, operation %+v", p, o)
	}
}

// waits demands that the payout waits for its release, and that nobody is told otherwise.
func (w *world) waits(f failing, operation idem.OperationID, id, status string) {
	w.Helper()
	var a accepted
	w.payOut("k", "iban_ok").want(202, "Idempotent-Replayed: true", "Retry-After", "Location").decode(&a)
	if p, o := w.payout(id), w.operation(operation); a.Operation != operation || p.Status != status || p.ProviderReference != nil || o.State != status {
		w.Errorf("payout %+v, operation %+v, want them %s", p, o, status)
	}
	w.made(1, f.payouts, 500)
}

// docs/payments-api.md "How a payout is compensated": whoever goes on, the client with its retries or the platform, the
// hold is released, and only then the funds are back and the answer is given. It denies nothing that was executed.
func TestAPayoutThatIsNotMadeReleasesTheHold(t *testing.T) {
	for by, finish := range map[string]func(w *world){
		"platform": func(w *world) { w.finished() },
		"client": func(w *world) {
			for range 2 * attemptsMax {
				w.clock.Advance(time.Minute)
				w.payOut("k", "iban_ok")
			}
		},
	} {
		t.Run(by, func(t *testing.T) {
			onEachFailing(t, func(w *world, f failing) {
				operation, id := w.unmade(f)
				finish(w)
				w.notPaidOut(f, operation, id)
				released, screening := w.releases(), w.screenings()[0]
				if len(released) != 1 {
					w.Fatalf("releases %+v, want one", released)
				}
				r := released[0]
				if r.Key != string(operation.Message(3)) || r.Screening != screening.ID || r.Amount != 500 || r.Currency != "EUR" || r.Reference != id || r.Attempts != 1 {
					w.Errorf("released by %+v", r)
				}
			})
		})
	}
}

// By a worker alone it is three messages, and the 202 until the last of them is settled.
func TestACompensatedPayoutByTheWorker(t *testing.T) {
	onEachFailing(t, func(w *world, f failing) {
		w.faults(provider.Rule{On: provider.Payout, Fault: f.fault})
		var a accepted
		first := w.payOut("k", "iban_ok").want(202)
		first.decode(&a)
		w.deliver(a.Operation)
		for range attemptsMax {
			w.clock.Advance(time.Minute)
			w.deliverMessage(a.Operation, 2)
		}
		w.waits(f, a.Operation, a.Payout.ID, "pending")
		w.held(1)
		w.payOut("k", "iban_ok").same(first)
		w.deliverMessage(a.Operation, 3)
		w.notPaidOut(f, a.Operation, a.Payout.ID)
	}, options{workerOnly: true})
}

// While the hold stands the operation has no end: duplicates get the 202, and the funds stay reserved.
func TestWhileTheHoldStandsThePayoutIsPending(t *testing.T) {
	onEachFailing(t, func(w *world, f failing) {
		operation, id := w.unmade(f, provider.Rule{On: provider.Release, Fault: provider.RateLimit, Times: 1})
		w.deliverMessage(operation, 3)
		w.waits(f, operation, id, "pending")
		w.held(1)
		w.finished()
		w.notPaidOut(f, operation, id)
	})
}

// Whatever goes wrong with a release for a while, there is one.
func TestProviderFaultsEndInOneRelease(t *testing.T) {
	for _, fault := range []provider.Fault{
		provider.RateLimit, provider.ErrorBefore, provider.ErrorAfter, provider.DropBefore, provider.DropAfter, provider.HangBefore, provider.HangAfter,
	} {
		t.Run(string(fault), func(t *testing.T) {
			onEachFailing(t, func(w *world, f failing) {
				operation, id := w.unmade(f, provider.Rule{On: provider.Release, Fault: fault, Times: 1})
				w.deliverMessage(operation, 3)
				w.waits(f, operation, id, "pending")
				w.finished()
				w.notPaidOut(f, operation, id)
			}, meeting(fault))
		})
	}
}

// A hold that can't be released leaves the operation before an operator: its answer would not be true. They release the
// hold by hand and say so, and the payout ends as it would have.
func TestAHoldThatCantBeReleasedIsLeftToAnOperator(t *testing.T) {
	for name, fault := range map[string]provider.Fault{
		"declined": provider.Decline, "refused": provider.Refuse, "given up": provider.RateLimit,
	} {
		t.Run("release "+name, func(t *testing.T) {
			onEachFailing(t, func(w *world, f failing) {
				operation, id := w.unmade(f, provider.Rule{On: provider.Release, Fault: fault})
				w.finished()
				w.deliverMessage(operation, 3)
				m := w.message(operation)
				if m.ID != operation.Message(3) || m.State != storage.MessageDead {
					w.Errorf("message %s is %s, want the release dead", m.ID, m.State)
				}
				w.waits(f, operation, id, "unknown")
				w.held(1)
				letters := w.queue.Letters()
				if len(letters) == 0 || letters[len(letters)-1].Message != m.ID {
					w.Errorf("dead letters %+v, want the release last", letters)
				}
				w.faults()
				byHand := w.release("by hand")
				if decision, err := w.operator.Settle(w.Context(), m.ID, w.seen(m), outbox.Delivered{Reference: byHand}); err != nil || decision != outbox.DecisionSettled {
					w.Errorf("settled: %s, %v", decision, err)
				}
				w.notPaidOut(f, operation, id)
			})
		})
	}
}

// release lets somebody else release the only screening's hold, under a key of their own.
func (w *world) release(key string) (reference string) {
	w.Helper()
	screening := w.screenings()[0]
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.provider.URL+"/screenings/"+screening.ID+"/releases",
		strings.NewReader(fmt.Sprintf(`{"amount":%d}`, screening.Amount)))
	w.ok(err)
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	w.ok(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		w.Fatalf("released with status %d", res.StatusCode)
	}
	return w.releases()[0].ID
}

// A hold that somebody else has released is refused to us. That it is released is for an operator to see, not to guess.
func TestAHoldThatSomebodyElseReleasedIsLeftToAnOperator(t *testing.T) {
	onEachFailing(t, func(w *world, f failing) {
		operation, id := w.unmade(f, provider.Rule{On: provider.Release, Fault: provider.RateLimit, Times: 1})
		w.deliverMessage(operation, 3)
		byHand := w.release("by hand")
		w.finished()
		m := w.message(operation)
		if m.State != storage.MessageDead {
			w.Errorf("message %s is %s, want it dead", m.ID, m.State)
		}
		w.waits(f, operation, id, "unknown")
		_, err := w.operator.Settle(w.Context(), m.ID, w.seen(m), outbox.Delivered{Reference: byHand})
		w.ok(err)
		w.notPaidOut(f, operation, id)
	})
}

// A release that was given up is sent again by an operator, under its key.
func TestAReleaseIsSentAgainByAnOperator(t *testing.T) {
	onEachFailing(t, func(w *world, f failing) {
		operation, id := w.unmade(f, provider.Rule{On: provider.Release, Fault: provider.RateLimit})
		w.finished()
		w.faults()
		m := w.message(operation)
		if err := w.operator.Close(w.Context(), m.ID, w.seen(m)); err == nil {
			w.Error("closed, although the hold stands")
		}
		_, err := w.operator.Redrive(w.Context(), m.ID, w.seen(m))
		w.ok(err)
		w.finished()
		w.notPaidOut(f, operation, id)
	})
}

// Given up while a call is open, nobody knows whether the hold stands; a probe decides (ADR 0015).
func TestAReleaseWithoutAnAnswerIsProbed(t *testing.T) {
	for name, fault := range map[string]provider.Fault{"released": provider.ErrorAfter, "not released": provider.ErrorBefore} {
		t.Run(name, func(t *testing.T) {
			onEachFailing(t, func(w *world, f failing) {
				operation, id := w.unmade(f, provider.Rule{On: provider.Release, Fault: fault})
				w.finished()
				if m := w.message(operation); m.ID != operation.Message(3) || m.State != storage.MessageUnknown || m.OpenSince.IsZero() {
					w.Errorf("message %s is %s, want the release unknown and open", m.ID, m.State)
				}
				w.waits(f, operation, id, "unknown")
				w.faults()
				w.reconciled()
				if fault == provider.ErrorAfter {
					w.notPaidOut(f, operation, id)
					return
				}
				w.waits(f, operation, id, "unknown") // provably not released, attempts over: an operator's
				m := w.message(operation)
				if m.State != storage.MessageDead {
					w.Errorf("message %s is %s, want it dead", m.ID, m.State)
				}
				_, err := w.operator.Redrive(w.Context(), m.ID, w.seen(m))
				w.ok(err)
				w.finished()
				w.notPaidOut(f, operation, id)
			})
		})
	}
}

// A payout that may have happened is not compensated until its absence is proven: by a probe, or by an operator's look.
func TestAPayoutThatMayHaveHappenedIsNotCompensated(t *testing.T) {
	for name, decide := range map[string]func(w *world, m storage.Message){
		"probe": func(w *world, _ storage.Message) { w.reconciled() },
		"operator": func(w *world, m storage.Message) {
			w.ok(w.operator.Close(w.Context(), m.ID, w.seen(m)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.faults(provider.Rule{On: provider.Payout, Fault: provider.ErrorBefore})
				var a accepted
				w.payOut("k", "iban_ok").want(202).decode(&a)
				w.finished()
				m := w.message(a.Operation)
				if m.ID != a.Operation.Message(2) || m.State != storage.MessageUnknown {
					w.Errorf("message %s is %s, want the payout unknown", m.ID, m.State)
				}
				w.waits(notMade(""), a.Operation, a.Payout.ID, "unknown")
				w.held(1)
				decide(w, m)
				w.finished()
				w.notPaidOut(notMade(""), a.Operation, a.Payout.ID)
			})
		})
	}
}

// docs/payments-api.md: screenings honour keys, also those of keyless payouts, and so do their releases.
func TestACompensatedLegacyPayout(t *testing.T) {
	onEachFailing(t, func(w *world, f failing) {
		w.faults(provider.Rule{On: provider.LegacyPayout, Fault: f.fault}, provider.Rule{On: provider.Release, Fault: provider.DropAfter, Times: 1})
		w.payOut("k", "legacy_iban")
		w.finished()
		final := w.payOut("k", "legacy_iban").problem(f.status, f.code)
		w.finished()
		w.payOut("k", "legacy_iban").same(final)
		w.made(1, f.payouts, 0)
		w.held(0)
	})
}
