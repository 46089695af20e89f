package outbox_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

var errDown = errors.New("store: connection refused")

func TestDeliverSettlesOnce(t *testing.T) {
	for name, c := range map[string]struct {
		script  []string
		state   storage.MessageState
		status  int
		row     string
		charges int
	}{
		"delivered": {nil, storage.MessageDelivered, 201, "delivered", 1},
		"declined":  {[]string{"402"}, storage.MessageDeclined, 402, "declined", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			w.provider.script = c.script
			id := w.accept()
			w.clock.Add(time.Second)
			for range 3 { // wake-ups may be doubled
				w.deliver(id)
			}
			w.want(id, c.state, storage.StateCompleted, c.status, c.row, c.charges)
			if w.provider.called() != 1 {
				t.Errorf("%d calls, want 1", w.provider.called())
			}
			r, m := w.record(id), w.message(id)
			if done := noon.Add(time.Second); !r.DoneAt.Equal(done) || !r.ExpiresAt.Equal(done.Add(24*time.Hour)) || !m.DoneAt.Equal(done) {
				t.Errorf("done at %v and %v, expires at %v", r.DoneAt, m.DoneAt, r.ExpiresAt)
			}
			if m.Reference == "" || m.KeptDelivered != nil {
				t.Errorf("reference %q, evidence %v; want the one and not the other", m.Reference, m.KeptDelivered)
			}
			if n := w.logged("outbox." + c.row); n != 1 {
				t.Errorf("logged %d times, want once", n)
			}
		})
	}
}

// The stream's image is as old as the message: it saves a read while it is right, and does no harm when it is not.
func TestDeliverSeenIsConditionalOnWhatWasSeen(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept()
	image := w.message(id)
	for range 2 {
		w.ok(w.worker.DeliverSeen(t.Context(), image))
		if reads := w.store.Count(faulty.Message); reads != 0 && w.provider.called() == 0 {
			t.Errorf("%d reads before the first call", reads)
		}
	}
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	if w.provider.called() != 1 {
		t.Errorf("%d calls, want 1", w.provider.called())
	}
}

// Lost replies of each write of a delivery, and requests that land late: one call, one settlement.
func TestDeliverSurvivesLostReplies(t *testing.T) {
	for name, c := range map[string]struct {
		call  faulty.Call
		fault faulty.Fault
	}{
		"claim, reply lost":     {faulty.UpdateMessage, faulty.LoseReply()},
		"claim, request lost":   {faulty.UpdateMessage, faulty.LoseRequest()},
		"claim, contention":     {faulty.UpdateMessage, faulty.Refuse(storage.ErrContention)},
		"settle, reply lost":    {faulty.Settle, faulty.LoseReply()},
		"settle, request lost":  {faulty.Settle, faulty.LoseRequest()},
		"settle, contention":    {faulty.Settle, faulty.Refuse(storage.ErrContention)},
		"settle, throttled":     {faulty.Settle, faulty.Refuse(storage.ErrThrottled)},
		"first and second lost": {faulty.Settle, faulty.LoseReply()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			id := w.accept()
			w.store.On(c.call, 1, c.fault)
			if name == "first and second lost" {
				w.store.On(c.call, 2, c.fault)
			}
			w.deliver(id)
			w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
			if w.provider.called() != 1 {
				t.Errorf("%d calls, want 1", w.provider.called())
			}
		})
	}
}

// A settlement whose bytes land again, minutes and hours after the message was settled by them: it changes nothing.
func TestLateSettlementChangesNothing(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept()
	var frozen func(context.Context) error
	w.store.On(faulty.Settle, 1, func(_ context.Context, run func(context.Context) error) error {
		frozen = run
		return &storage.OutcomeUnknownError{Cause: errDown}
	})
	w.deliver(id)
	settled := w.record(id)
	w.clock.Add(time.Minute)
	if err := frozen(t.Context()); err != nil {
		t.Errorf("the same token must be taken as a repetition: %v", err)
	}
	w.clock.Add(time.Hour) // the token is forgotten
	var conflict *storage.MessageConflictError
	if err := frozen(t.Context()); !errors.As(err, &conflict) {
		t.Errorf("a forgotten token: %v, want a conflict", err)
	}
	if again := w.record(id); !again.DoneAt.Equal(settled.DoneAt) {
		t.Errorf("done at %v, then at %v", settled.DoneAt, again.DoneAt)
	}
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// A settlement without any reply: what can't be settled now is kept now, and settled later without another call.
func TestSettleWithoutAnyReply(t *testing.T) {
	for name, c := range map[string]struct {
		fault faulty.Fault
		state storage.MessageState
	}{"never landed": {faulty.LoseRequest(), storage.MessageEvidenced}, "landed": {faulty.LoseReply(), storage.MessageDelivered}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			id := w.accept()
			for n := range 100 {
				w.store.On(faulty.Settle, n+1, c.fault)
			}
			w.deliver(id)
			if m := w.message(id); m.State != c.state {
				t.Fatalf("message is %s, want %s", m.State, c.state)
			}
			w.store.Clear()
			w.drain(time.Minute)
			w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
			if w.provider.called() != 1 {
				t.Errorf("%d calls, want 1", w.provider.called())
			}
		})
	}
}

// A clock that stands still is no reason to send a write for ever: what was waited for counts.
func TestAClockThatStandsStillEndsADeliveryAllTheSame(t *testing.T) {
	for _, write := range []faulty.Call{faulty.UpdateMessage, faulty.Settle} {
		t.Run(string(write), func(t *testing.T) {
			w := newWorld(t, options{config: func(c *outbox.Config) {
				c.Now = func() time.Time { return noon }
				c.Pause = func(context.Context, time.Duration) error { return nil }
			}})
			id := w.accept()
			for n := range 500 {
				w.store.On(write, n+1, faulty.LoseRequest())
			}
			w.store.On(write, 501, faulty.Before(func() { panic("it never ends") }))
			if err := w.worker.Deliver(t.Context(), id); (err != nil) != (write == faulty.UpdateMessage) {
				t.Error(err)
			}
			if n, charged := w.store.Count(write), w.provider.called(); n < 3 || charged > 1 {
				t.Errorf("%d tries, %d calls", n, charged)
			}
		})
	}
}

// A process that is frozen while it asks how much time its caller leaves has no more time by that: no write may be sent after the caller's
// deadline.
func TestAFreezeBeforeTheClockIsReadLeavesADeliveryNoMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, frozen := time.Now(), false
		w := newWorld(t, options{config: func(c *outbox.Config) {
			c.Now = func() time.Time {
				if !frozen {
					frozen = true
					time.Sleep(time.Second)
				}
				return noon.Add(time.Since(began))
			}
			c.CallTimeout, c.ClaimLease, c.SweepGrace, c.StoreTimeout = time.Second, time.Minute, 2*time.Minute, time.Minute
		}})
		id := w.accept()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		last, _ := ctx.Deadline()
		writes := 0
		w.store.Each(func(call faulty.Call) faulty.Fault {
			return func(ctx context.Context, run func(context.Context) error) error {
				if end, bounded := ctx.Deadline(); call == faulty.UpdateMessage || call == faulty.Settle {
					if writes++; !bounded || end.After(last) {
						t.Errorf("%s may be sent until %v after the caller's deadline", call, end.Sub(last))
					}
				}
				return run(ctx)
			}
		})
		w.ok(w.worker.Deliver(ctx, id))
		if writes < 2 || !frozen {
			t.Errorf("%d writes were seen, frozen %v", writes, frozen)
		}
	})
}

// Wake-ups for a message that is busy, or backs off, don't live on where the sweep offers unread: it offered the message many
// times while the queue was long. The sweep offers it again when it is due.
func TestDoubledWakeUpsOfABusyMessageEnd(t *testing.T) {
	w := newWorld(t, options{config: func(c *outbox.Config) { c.WakeUpsMax = 1000 }})
	id := w.accept()
	w.provider.script = []string{"429"}
	w.deliver(id)
	w.want(id, storage.MessagePending, storage.StatePending, 202, "", 0)
	for range 5 {
		w.deliver(id)
	}
	w.clock.Add(time.Hour)
	if woken := w.queue.Take(); len(woken) != 1 {
		t.Errorf("%d wake-ups, want the back-off's only", len(woken))
	}
	w.swept(outbox.Counts{Offered: 1})
	w.drain(0)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// A worker killed between charge and settle: the claim is left alone while its lease lives, then offered again:
// the effect may come first, and its record afterwards.
func TestWorkerKilledBetweenChargeAndSettle(t *testing.T) {
	// Shorter than the lease, and longer than a busy machine may stand still: the second worker settles by these, too.
	w := newWorld(t, options{config: func(c *outbox.Config) { c.SettleMax, c.KeepMax = time.Second, time.Second }})
	id := w.accept()
	w.provider.during = func() { w.store.All(faulty.Refuse(errDown)) }
	if err := w.worker.Deliver(t.Context(), id); !errors.Is(err, errDown) {
		t.Fatalf("deliver: %v, want the store's error", err)
	}
	w.store.Clear()
	w.provider.during = nil
	w.deliver(id)
	w.want(id, storage.MessageClaimed, storage.StatePending, 202, "", 1)
	if w.provider.called() != 1 {
		t.Fatalf("called while the lease lives")
	}
	w.drain(11 * time.Second) // the wake-up that the redelivery scheduled for the lease's end
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	if m := w.message(id); w.provider.called() != 2 || m.Epoch != 2 || m.Died != 1 {
		t.Errorf("%d calls, epoch %d, %d claims died; want 2, 2, 1", w.provider.called(), m.Epoch, m.Died)
	}
}

// The same at a provider without keys: nobody calls again.
func TestWorkerKilledAtProviderWithoutKeys(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept()
	w.provider.during = func() { w.store.All(faulty.Refuse(errDown)) }
	if err := w.worker.Deliver(t.Context(), id); !errors.Is(err, errDown) {
		t.Fatalf("deliver: %v, want the store's error", err)
	}
	w.store.Clear()
	w.clock.Add(time.Minute)
	for range 2 {
		w.deliver(id)
	}
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
	if w.provider.called() != 1 || w.logged("outbox.unknown") != 1 {
		t.Errorf("%d calls, %d alarms, want 1 and 1", w.provider.called(), w.logged("outbox.unknown"))
	}
	if died := w.message(id).Died; died != 1 {
		t.Errorf("%d claims died, want 1", died)
	}
}

// A holds the provider's answer but lost its lease; B parks the message; A's evidence settles it all the same.
func TestEvidenceSettlesFromAnyEpoch(t *testing.T) {
	t.Run("parked meanwhile", func(t *testing.T) {
		w := newWorld(t, options{topic: keyless})
		id := w.accept()
		w.provider.during = func() {
			w.provider.during = nil
			w.clock.Add(16 * time.Second)
			report, err := w.sweep(t.Context())
			if err != nil || report.Parked != 1 {
				t.Errorf("sweep: %+v, %v, want one parked", report, err)
			}
		}
		w.deliver(id)
		w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	})
	t.Run("claimed meanwhile", func(t *testing.T) {
		w := newWorld(t, options{})
		id := w.accept()
		w.provider.during = func() {
			w.provider.during = nil
			w.clock.Add(11 * time.Second)
			w.provider.script = []string{"500 before"}
			w.deliver(id) // backs off under epoch 2
		}
		w.deliver(id)
		w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
		if m := w.message(id); m.Epoch != 2 {
			t.Errorf("epoch %d, want 2", m.Epoch)
		}
	})
	t.Run("settled meanwhile", func(t *testing.T) {
		w := newWorld(t, options{})
		id := w.accept()
		w.provider.during = func() {
			w.provider.during = nil
			w.clock.Add(11 * time.Second)
			w.deliver(id)
		}
		w.deliver(id)
		w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
		if n := w.logged("outbox.evidence_differs"); n != 0 {
			t.Errorf("the same evidence twice raised %d alarms", n)
		}
	})
}

// What a worker without a lease has to say without evidence is nobody's business any more.
func TestLateBackOffIsFencedOff(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept()
	w.provider.script = []string{"lost", "lost"}
	w.provider.during = func() {
		w.provider.during = nil
		w.clock.Add(11 * time.Second)
		w.deliver(id)
	}
	w.deliver(id)
	if m := w.message(id); m.Epoch != 2 || m.Attempts != 1 || m.Died != 1 || m.OpenSince != noon {
		t.Errorf("epoch %d, attempts %d, %d died, open since %v; want the second worker's alone", m.Epoch, m.Attempts, m.Died, m.OpenSince)
	}
	if w.logged("outbox.claim_lost") != 1 {
		t.Error("the first worker did not notice")
	}
}

// A charge with a lost reply, a 429 for the second attempt, attempts over.
func TestAttemptsOverWithAnOpenCall(t *testing.T) {
	w := newWorld(t, options{topic: unprobed})
	w.provider.script = []string{"lost", "429", "429"}
	id := w.accept()
	w.deliver(id)
	w.drain(time.Hour)
	w.want(id, storage.MessageDead, storage.StatePending, 202, "", 1)
	letters := w.queue.Letters()
	if len(letters) != 1 || !letters[0].Open || letters[0].Reason != "attempts over" || letters[0].Message != id || letters[0].Attempts != 3 {
		t.Errorf("dead letters: %+v", letters)
	}
	if w.logged("outbox.dead") != 1 {
		t.Error("no alarm")
	}
}

// The same, where the provider can be asked: nobody has to look, and nobody is told "failed" whose card was
// charged (ADR 0015).
func TestAttemptsOverIsLeftToProbes(t *testing.T) {
	for name, c := range map[string]struct {
		first   string
		message storage.MessageState
		record  storage.State
		status  int
		row     string
		charges int
	}{
		"charged":       {"lost", storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1},
		"never charged": {"500 before", storage.MessageDead, storage.StateFailed, 502, "not_executed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			w.provider.script = []string{c.first, "429", "429"}
			id := w.accept()
			w.deliver(id)
			w.drain(time.Hour)
			w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", c.charges)
			if len(w.queue.Letters()) != 0 || w.logged("outbox.unknown") != 1 {
				t.Errorf("letters %+v", w.queue.Letters())
			}
			_, err := w.reconcile(t.Context())
			w.ok(err)
			w.drain(time.Minute)
			w.want(id, c.message, c.record, c.status, c.row, c.charges)
			if w.provider.called() != 3 {
				t.Errorf("%d calls, want 3", w.provider.called())
			}
		})
	}
}

// The same, and the provider's key retention ends: no second charge.
func TestKeyRetentionEnds(t *testing.T) {
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { topic.AttemptsMax = 99 }})
	w.provider.script = append([]string{"lost"}, slices.Repeat([]string{"429"}, 50)...)
	id := w.accept()
	w.deliver(id)
	w.drain(time.Minute) // the next wake-up is lost
	calls := w.provider.called()
	w.queue.Take()
	w.clock.Add(time.Hour)
	w.provider.keyed, w.provider.script = false, nil // it has forgotten the key, and works
	for range 3 {
		w.deliver(id)
		w.drain(time.Minute)
	}
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
	if again := w.provider.called(); calls < 3 || again != calls {
		t.Errorf("%d calls, then %d", calls, again)
	}
}

// docs/design.md "Messages": the last call of a claim that begins at the margin's start still arrives while the provider remembers
// the key: the margin is a claim, a freeze, the longest request, and what clocks may differ by. On its instant nobody calls any more.
func TestAnOpenCallIsRepeatedUntilTheMarginOfItsKeysRetention(t *testing.T) {
	const (
		retention = time.Hour
		longest   = 3 * time.Minute
		margin    = lease + time.Minute + longest + 2*time.Second
	)
	for name, c := range map[string]struct {
		after  time.Duration
		state  storage.MessageState
		record storage.State
		status int
		row    string
		calls  int
	}{
		"an instant before it": {retention - margin - time.Millisecond, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 2},
		"on its instant":       {retention - margin, storage.MessageUnknown, storage.StatePending, 202, "", 1},
		"an instant within it": {retention - margin + time.Millisecond, storage.MessageUnknown, storage.StatePending, 202, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: func(topic *outbox.Topic) { topic.Keys.Retention, topic.LongestRequest = retention, longest }})
			w.provider.script = []string{"lost"}
			id := w.accept()
			w.deliver(id)
			w.queue.Take() // the next wake-up is lost
			w.clock.Set(w.message(id).OpenSince.Add(c.after))
			w.deliver(id)
			w.want(id, c.state, c.record, c.status, c.row, 1)
			if calls := w.provider.called(); calls != c.calls {
				t.Errorf("%d calls, want %d", calls, c.calls)
			}
		})
	}
}

// A provider that says when it may be asked again is not asked before.
func TestTheNextCallIsWhenTheProviderSays(t *testing.T) {
	w := newWorld(t, options{})
	w.provider.script = []string{"429 for 20 s"}
	id := w.accept()
	w.deliver(id)
	if m := w.message(id); m.State != storage.MessagePending || !m.NextAttemptAt.Equal(noon.Add(20*time.Second)) {
		t.Errorf("%s, next at %v, want it pending until 20 s later", m.State, m.NextAttemptAt)
	}
	w.drain(time.Hour)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// While the provider refuses the caller, or can't be reached, nothing is wrong with a message: it waits, whatever its AttemptsMax, and
// each call is told. What ends it is its age.
func TestACallThatNobodyJudgedCountsAsNoneAndIsTold(t *testing.T) {
	for step, event := range map[string]string{"401": "outbox.unauthorized", "unreachable": "outbox.unsent"} {
		t.Run(step, func(t *testing.T) { waitsUntilJudged(t, step, event) })
	}
}

func waitsUntilJudged(t *testing.T, step, event string) {
	for name, c := range map[string]struct {
		calls   int
		message storage.MessageState
		record  storage.State
		status  int
		row     string
		charges int
	}{
		"until a call is judged": {30, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1},
		"until it is too old":    {1 << 20, storage.MessageDead, storage.StateFailed, 502, "not_executed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); topic.AgeMax = time.Hour }})
			w.provider.script = slices.Repeat([]string{step}, c.calls)
			id := w.accept()
			w.deliver(id)
			if m := w.message(id); m.Attempts != 0 || !m.OpenSince.IsZero() || m.State != storage.MessagePending {
				t.Errorf("%+v, want it to wait for its next call", m)
			}
			w.drain(2 * time.Hour)
			w.want(id, c.message, c.record, c.status, c.row, c.charges)
			if told := w.logged(event); told != w.provider.called()-c.charges || told < 30 {
				t.Errorf("told of %d of %d calls", told, w.provider.called()-c.charges)
			}
		})
	}
}

// A call that did not get as far as a connection within its time tells of the provider, as when its packets are dropped. One that ended
// with its caller tells of nothing: the process ends, or the client has gone.
func TestAnUnsentCallOfACallerThatIsGoneIsNotTold(t *testing.T) {
	for name, c := range map[string]struct {
		leaves bool
		told   int
	}{"the caller waits": {false, 1}, "the caller has gone": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				w := newWorld(t, options{topic: func(topic *outbox.Topic) {
					topic.Call = func(ctx context.Context, _ storage.Message) outbox.Outcome {
						if c.leaves {
							leave()
						}
						<-ctx.Done()
						return outbox.NotExecuted{Unsent: true, Cause: ctx.Err()}
					}
				}})
				id := w.accept()
				w.ok(w.worker.Deliver(ctx, id))
				w.want(id, storage.MessagePending, storage.StatePending, 202, "", 0)
				if told := w.logged("outbox.unsent"); told != c.told {
					t.Errorf("told %d times, want %d", told, c.told)
				}
			})
		})
	}
}

// docs/design.md "One message, step by step": a claim whose call was not heard of again, because the store refused what it came to, counts as
// one whose worker died. Where nothing was claimed, a store that fails counts for nothing.
func TestAClaimWhoseResultWasNotWrittenCountsAsDead(t *testing.T) {
	const attempts = 3 // the topic's
	for _, step := range []string{"429", "unreachable"} {
		t.Run(step, func(t *testing.T) {
			var w *world
			w = newWorld(t, options{topic: func(topic *outbox.Topic) {
				call := topic.Call
				topic.Call = func(ctx context.Context, m storage.Message) outbox.Outcome {
					w.store.All(faulty.Refuse(storage.ErrThrottled))
					return call(ctx, m)
				}
			}})
			w.provider.script = slices.Repeat([]string{step}, attempts)
			id := w.accept()
			for n := range attempts {
				w.store.All(faulty.Refuse(storage.ErrThrottled))
				_ = w.worker.Deliver(t.Context(), id) // it can't be claimed
				w.store.Clear()
				if err := w.worker.Deliver(t.Context(), id); !errors.Is(err, storage.ErrThrottled) {
					t.Fatalf("%v, want the store's error", err)
				}
				w.store.Clear()
				if m := w.message(id); m.State != storage.MessageClaimed || m.Attempts != 0 || m.Died != n {
					t.Fatalf("%s with %d attempts and %d dead claims, want a claim with 0 and %d", m.State, m.Attempts, m.Died, n)
				}
				w.clock.Add(lease)
			}
			w.deliver(id)
			if m := w.message(id); m.State != storage.MessageUnknown || w.provider.called() != attempts {
				t.Errorf("%s after %d calls: %+v", m.State, w.provider.called(), m)
			}
		})
	}
}

// 429s until the attempts are over: nothing is open, so the record fails, with the business writes of "not executed", in one transaction.
func TestAttemptsOverWithNothingOpen(t *testing.T) {
	w := newWorld(t, options{})
	w.provider.script = []string{"429", "429", "429"}
	id := w.accept()
	w.deliver(id)
	w.want(id, storage.MessagePending, storage.StatePending, 202, "", 0)
	w.drain(time.Hour)
	w.want(id, storage.MessageDead, storage.StateFailed, 502, "not_executed", 0)
	if w.provider.called() != 3 {
		t.Errorf("%d calls, want 3", w.provider.called())
	}
	letters := w.queue.Letters()
	if len(letters) != 1 || letters[0].Open || w.logged("outbox.dead") != 1 || w.logged("outbox.retried") != 2 {
		t.Errorf("letters %+v, %d alarms, %d retries; want one, one, two", letters, w.logged("outbox.dead"), w.logged("outbox.retried"))
	}
	if r := w.record(id); r.LastError != "provider_unavailable" || r.Response.Get("Content-Type") != "application/problem+json" {
		t.Errorf("record: %q, %+v", r.LastError, r.Response)
	}
}

func TestRefusedIsDeadAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		script []string
		record storage.State
		status int
		row    string
	}{
		"proven":                               {[]string{"400"}, storage.StateFailed, 502, "not_executed"},
		"not proven":                           {[]string{"409"}, storage.StatePending, 202, ""},
		"after an open one":                    {[]string{"500 before", "400"}, storage.StatePending, 202, ""},
		"the client's data, not proven":        {[]string{"409 data"}, storage.StatePending, 202, ""},
		"the client's data, after an open one": {[]string{"500 before", "400 data"}, storage.StatePending, 202, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: unprobed})
			w.provider.script = slices.Clone(c.script)
			id := w.accept()
			w.deliver(id)
			w.drain(time.Hour)
			w.want(id, storage.MessageDead, c.record, c.status, c.row, 0)
			if letters := w.queue.Letters(); len(letters) != 1 || letters[0].Reason != "refused" || w.provider.called() != len(c.script) {
				t.Errorf("letters %+v, %d calls", letters, w.provider.called())
			}
		})
	}
}

// Whoever sends data that the provider refuses is told so. It was a dead message, whose alarm rolls deployments back: any client
// could stop them all.
func TestARefusalOfTheClientsDataIsAnAnswerToTheClient(t *testing.T) {
	w := newWorld(t, options{})
	w.provider.script = []string{"429", "400 data"}
	id := w.accept()
	w.deliver(id)
	w.drain(time.Hour)
	w.want(id, storage.MessageDeclined, storage.StateCompleted, 402, "declined", 0)
	if letters := w.queue.Letters(); len(letters) != 0 || w.logged("outbox.dead") != 0 || w.logged("outbox.declined") != 1 {
		t.Errorf("letters %+v, %d alarms, %d declines", letters, w.logged("outbox.dead"), w.logged("outbox.declined"))
	}
}

// "could not be reached in time" was said of a provider that had answered at once.
func TestTheAnswerSaysWhyTheProviderMadeNothing(t *testing.T) {
	for code, c := range map[string]struct {
		script []string
		detail string
	}{
		"provider_refused":     {[]string{"400"}, "The provider refused the request. Nothing was executed."},
		"provider_unavailable": {[]string{"429", "429", "429"}, "The provider could not be reached, or took no request, in time. Nothing was executed."},
	} {
		w := newWorld(t, options{})
		w.provider.script = c.script
		id := w.accept()
		w.deliver(id)
		w.drain(time.Hour)
		if r := w.record(id); r.LastError != code || r.Response.Status != 502 || !strings.Contains(string(r.Response.Body), c.detail) {
			t.Errorf("%s: %s, %s", code, r.LastError, r.Response.Body)
		}
	}
}

// The provider answers 500 for a while: delivered later, once.
func TestProviderTroubleEndsInOneDelivery(t *testing.T) {
	for _, script := range [][]string{{"500 before", "lost"}, {"panic", "429"}, {"nil"}, {"429", "lost"}} {
		w := newWorld(t, options{})
		w.provider.script = script
		id := w.accept()
		w.deliver(id)
		w.drain(time.Hour)
		w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
		w.logged("outbox.panic") // tells no secrets
	}
}

// A call that has its effect and then says nothing that anybody could read, at a provider without keys: nobody knows, and nobody
// calls again.
func TestACallThatSaysNothingMayHaveHappened(t *testing.T) {
	for _, end := range []string{"charged, nil", "panic"} {
		t.Run(end, func(t *testing.T) {
			w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); topic.Probe = nil }})
			w.provider.script = []string{end}
			id := w.accept()
			w.deliver(id)
			w.drain(time.Hour)
			w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
			if w.provider.called() != 1 || w.logged("outbox.unknown") != 1 {
				t.Errorf("%d calls, %d alarms, want 1 and 1", w.provider.called(), w.logged("outbox.unknown"))
			}
		})
	}
}

func TestTwoWorkersRace(t *testing.T) {
	w := newWorld(t, options{})
	ids := []idem.MessageID{w.accept(), w.accept(), w.accept()}
	var group sync.WaitGroup
	for range 8 {
		for _, id := range ids {
			image := w.message(id)
			group.Go(func() {
				if err := w.worker.DeliverSeen(t.Context(), image); err != nil {
					t.Errorf("deliver: %v", err)
				}
			})
		}
	}
	group.Wait()
	for _, id := range ids {
		w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	}
	if w.provider.called() != 3 {
		t.Errorf("%d calls, want 3", w.provider.called())
	}
}

// A claim that took so long that its lease is almost over leads to no call, and leaves nothing open.
func TestNoCallWithoutALease(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept()
	w.store.On(faulty.UpdateMessage, 1, faulty.After(func(error) { w.clock.Add(7500 * time.Millisecond) }))
	w.deliver(id)
	if m := w.message(id); w.provider.called() != 0 || m.State != storage.MessagePending || !m.OpenSince.IsZero() || m.Attempts != 0 {
		t.Errorf("%d calls; %s, open since %v, attempts %d", w.provider.called(), m.State, m.OpenSince, m.Attempts)
	}
	w.drain(time.Minute)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

func TestNoClaimWithoutTime(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	if err := w.worker.Deliver(ctx, id); !errors.Is(err, outbox.ErrNoTime) {
		t.Errorf("deliver: %v, want ErrNoTime", err)
	}
	if m := w.message(id); m.State != storage.MessagePending || m.Epoch != 0 {
		t.Errorf("message is %s, epoch %d", m.State, m.Epoch)
	}
}

func TestWakeUpsThatNeedNothing(t *testing.T) {
	w := newWorld(t, options{})
	if err := w.worker.Deliver(t.Context(), "op_gone.1"); err != nil {
		t.Errorf("an absent message: %v", err)
	}
	id := w.accept(func(m *storage.Message) { m.NextAttemptAt = noon.Add(20 * time.Minute) })
	w.deliver(id)
	if at, ok := w.queue.Next(); !ok || !at.Equal(noon.Add(outbox.WakeUpDelayMax)) {
		t.Errorf("not due: next wake-up %v %v, want the longest delay", at, ok)
	}
	w.drain(20 * time.Minute)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// A message that this release can't read, or whose topic it does not know, is acknowledged and left alone with an alarm: an
// error would stop the shard, and all tenants with it. The release that knows it is offered it again.
func TestAMessageOfAnotherReleaseStopsNobody(t *testing.T) {
	w := newWorld(t, options{})
	newer := w.accept(func(m *storage.Message) { m.SchemaVersion++ })
	other := w.accept(func(m *storage.Message) { m.Topic = "other.topic" })
	for _, id := range []idem.MessageID{newer, other} {
		w.deliver(id)
		w.ok(w.worker.DeliverSeen(t.Context(), w.message(id)))
		if m := w.message(id); m.State != storage.MessagePending || m.Epoch != 0 {
			t.Errorf("%s: %s, epoch %d", m.Topic, m.State, m.Epoch)
		}
	}
	if n := w.logged("outbox.unknown_topic"); n != 4 {
		t.Errorf("%d alarms, want one for each wake-up", n)
	}
	known := newWorld(t, options{topic: func(topic *outbox.Topic) { topic.Name = "other.topic" }})
	id := known.accept(func(m *storage.Message) { m.Topic = "other.topic" })
	known.clock.Add(time.Minute)
	known.swept(outbox.Counts{Offered: 1})
	known.drain(time.Second)
	known.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// A payload that only another release can read is that release's, as a topic is: it waits however often and however long this one meets
// it, is told of each time, and nothing of it is called, settled or counted. What is dead of it is still the operator's.
func TestAPayloadOfAnotherReleaseIsLeftToIt(t *testing.T) {
	const newer = `{"version":2}`
	errNewer := errors.New("version 2")
	gone := false
	w := newWorld(t, options{topic: func(topic *outbox.Topic) {
		topic.Probe = nil
		topic.Knows = func(payload []byte) error {
			if gone || string(payload) == newer {
				return errNewer
			}
			return nil
		}
	}})
	id := w.accept(func(m *storage.Message) { m.Payload = []byte(newer) })
	before := w.message(id)
	const times = 30
	for range times {
		w.clock.Add(time.Hour)
		w.deliver(id)
	}
	w.ok(w.worker.DeliverSeen(t.Context(), before))
	if _, err := w.worker.Settle(t.Context(), id, outbox.Delivered{Reference: "ch_1", Evidence: []byte(`{}`)}); !errors.Is(err, errNewer) {
		t.Errorf("its webhook: %v, want the topic's error", err)
	}
	if m := w.message(id); !reflect.DeepEqual(m, before) || w.provider.called() != 0 {
		t.Errorf("%+v after %d calls, want it as it was", m, w.provider.called())
	}
	if n := w.logged("outbox.unknown_topic"); n != times+1 {
		t.Errorf("%d alarms, want one for each wake-up", n)
	}
	known := w.accept()
	w.deliver(known)
	w.want(known, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	w.provider.script = []string{"409"}
	w.deliver(w.accept())
	gone = true
	w.clock.Add(25 * time.Hour)
	if did, err := w.sweep(t.Context()); err != nil || did.Reminded != 1 {
		t.Errorf("sweep of what is dead: %+v, %v", did, err)
	}
}

// panicsOn is a topic's Knows with an error in it, which only that payload brings out.
func panicsOn(broken string) func([]byte) error {
	return func(payload []byte) error {
		if string(payload) == broken {
			panic("secret")
		}
		return nil
	}
}

// A topic that panics on a payload can't read it: the message is left alone and told of, once for each look, and no other one waits for
// it.
func TestATopicThatPanicsOnAPayloadCannotReadIt(t *testing.T) {
	for name, c := range map[string]struct {
		state storage.MessageState
		look  func(*world)
	}{
		"worker": {storage.MessagePending, func(w *world) {
			for _, m := range w.inner.Messages() {
				w.deliver(m.ID)
			}
		}},
		"sweep":     {storage.MessagePending, func(w *world) { w.swept(outbox.Counts{Offered: 1, Errors: 1}) }},
		"reconcile": {storage.MessageUnknown, func(w *world) { w.reconciled(outbox.Counts{Offered: 1, Errors: 1}) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: func(topic *outbox.Topic) { topic.Knows = panicsOn("broken") }})
			put := func(body string) idem.MessageID {
				return w.accept(func(m *storage.Message) { m.Payload, m.State = []byte(body), c.state })
			}
			broken := put("broken")
			before := w.message(broken)
			sound := put("sound")
			w.clock.Add(time.Hour)
			c.look(w)
			if m := w.message(broken); !reflect.DeepEqual(m, before) {
				t.Errorf("%+v, want it as it was", m)
			}
			if told, stacks := w.logged("outbox.unknown_topic"), w.logged("outbox.panic"); told != 1 || stacks != 1 {
				t.Errorf("told of %d times, and of its panic %d times; want once", told, stacks)
			}
			w.drain(time.Second)
			w.want(sound, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
		})
	}
}

// A later release changes a message while this one calls, or while its webhook is taken: it is not gone, and the webhook comes
// again. Whoever reads the message ends it.
func TestAMessageThatAnotherReleaseChangesMeanwhileIsNotGone(t *testing.T) {
	for name, deliver := range map[string]func(*world, idem.MessageID) error{
		"worker": func(w *world, id idem.MessageID) error { return w.worker.Deliver(w.Context(), id) },
		"webhook": func(w *world, id idem.MessageID) error {
			_, err := w.worker.Settle(w.Context(), id, outbox.Delivered{Reference: "ch_1", Evidence: []byte(`{}`)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			id := w.accept()
			w.store.On(faulty.Settle, 1, faulty.Before(func() {
				m := w.message(id)
				fence := storage.MessageFence{Revision: m.Revision}
				m.SchemaVersion, m.State, m.Revision = m.SchemaVersion+1, "paused", "later"
				w.ok(w.inner.UpdateMessage(t.Context(), m, fence))
			}))
			err := deliver(w, id)
			if unreadable := new(outbox.UnreadableError); (name == "webhook") != errors.As(err, &unreadable) {
				t.Error(err)
			}
			if gone := w.logged("outbox.message_gone"); gone > 0 {
				t.Error("it is told that the message is gone")
			}
			if told := w.logged("outbox.unknown_topic"); name == "worker" && told != 1 {
				t.Errorf("another release's message is told of %d times, want once", told)
			}
			if m := w.message(id); m.State != "paused" || m.Revision != "later" {
				t.Errorf("it was changed: %+v", m)
			}
		})
	}
}

// Whose message it is needs no store, so a store that is down stops no shard over it.
func TestAnImageOfAnotherReleaseNeedsNoStore(t *testing.T) {
	w := newWorld(t, options{})
	image := w.message(w.accept(func(m *storage.Message) { m.Topic = "other.topic" }))
	w.store.All(faulty.Refuse(errDown))
	w.ok(w.worker.DeliverSeen(t.Context(), image))
	if n := w.logged("outbox.unknown_topic"); n != 1 {
		t.Errorf("%d alarms, want one", n)
	}
}

func TestStoreTroubleIsTheOnlyError(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept()
	w.store.All(faulty.Refuse(errDown))
	for _, deliver := range []func() error{
		func() error { return w.worker.Deliver(t.Context(), id) },
		func() error { return w.worker.DeliverSeen(t.Context(), w.message(id)) },
	} {
		if err := deliver(); !errors.Is(err, errDown) {
			t.Errorf("deliver: %v, want the store's error", err)
		}
	}
	if w.provider.called() != 0 {
		t.Error("called without a claim")
	}
}
