package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// crowded keeps a call to the store in contention for so many tries.
func (w *world) crowded(call faulty.Call, tries int) {
	for n := range tries {
		w.store.On(call, n+1, faulty.Refuse(storage.ErrContention))
	}
}

// A provider without keys that nobody can ask: the one definite answer that there will ever be is kept, whatever is in the
// way of its settlement, and settled without a call once nothing is.
func TestADefiniteAnswerIsKeptWhenItCannotBeSettled(t *testing.T) {
	for name, meet := range map[string]func(*world, idem.MessageID){
		"by the sweep": func(w *world, _ idem.MessageID) { w.swept(outbox.Counts{Settled: 1}) },
		"by a worker":  func(w *world, id idem.MessageID) { w.deliver(id) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); topic.Probe = nil }})
			id := w.accept()
			w.crowded(faulty.Settle, 1000)
			_ = w.worker.Deliver(t.Context(), id) // the old code had an error
			w.store.Clear()
			if delivered, _ := w.kept(id); !delivered {
				t.Error("the evidence is lost")
			}
			w.clock.Add(time.Minute)
			meet(w, id)
			w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
			if n := w.provider.called(); n != 1 {
				t.Errorf("%d calls, want 1", n)
			}
		})
	}
}

// A provider without keys that nobody can ask: only this process knows its answer. Whatever the store says, and however
// long it does, the answer is sent until it is kept.
func TestTheOnlyEvidenceIsSentForAsLongAsTheProcessLives(t *testing.T) {
	for name, trouble := range map[string]error{
		"throttled": storage.ErrThrottled, "credentials have expired": errDown, "the breaker is open": &storage.NotAskedError{Cause: errDown},
		"no reply": &storage.OutcomeUnknownError{Cause: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); topic.Probe = nil }})
			id := w.accept()
			w.provider.during = func() {
				w.store.All(func(ctx context.Context, run func(context.Context) error) error {
					if w.clock.Now().Before(noon.Add(24 * time.Hour)) {
						return trouble
					}
					return run(ctx)
				})
			}
			if err := w.worker.Deliver(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if delivered, _ := w.kept(id); !delivered {
				t.Error("the evidence is lost")
			}
		})
	}
}

// The process is about to end: its caller has cancelled the context. What nobody else knows is sent for KeepMax more.
func TestTheOnlyEvidenceIsSentForKeepMaxOnceTheCallerHasGone(t *testing.T) {
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); topic.Probe = nil }})
	id := w.accept()
	ctx, stop := context.WithCancel(t.Context())
	w.provider.during = func() {
		w.store.All(faulty.Refuse(storage.ErrThrottled))
		stop()
	}
	if err := w.worker.Deliver(ctx, id); !errors.Is(err, context.Canceled) || !errors.Is(err, storage.ErrThrottled) {
		t.Errorf("%v, want both reasons", err)
	}
	if took := w.clock.Now().Sub(noon); took < 10*time.Minute || took > 25*time.Minute {
		t.Errorf("given up after %v, want about 10 min", took)
	}
}

// A webhook's decline is kept on a claim, whose call has not ended yet and may be another one's. Whatever that call ends with
// is written beside what is kept, and does not replace it.
func TestEvidenceThatComesDuringACallStays(t *testing.T) {
	for _, end := range []string{"lost", "429", "409"} {
		t.Run(end, func(t *testing.T) {
			meanwhile := func() {}
			w := newWorld(t, options{topic: func(topic *outbox.Topic) {
				keyless(topic)
				call := topic.Call
				topic.Probe, topic.Call = nil, func(ctx context.Context, m storage.Message) outbox.Outcome {
					meanwhile()
					return call(ctx, m)
				}
			}})
			id := w.accept()
			w.provider.script = []string{"429", end}
			w.deliver(id)
			w.clock.Add(time.Hour)
			meanwhile = func() { w.tidings(id, outbox.Declined{Reference: "ch_no"}) }
			_ = w.worker.Deliver(t.Context(), id)
			if _, kept := w.kept(id); !kept {
				t.Error("the decline is lost")
			}
			if m := w.message(id); m.State == storage.MessageClaimed {
				t.Errorf("what the call ended with was not written: %s", m.State)
			}
		})
	}
}

// Evidence comes in between an operator's look and their write: it is another row by then, and stays.
func TestEvidenceBetweenAnOperatorsLookAndTheirWriteStays(t *testing.T) {
	for name, change := range map[string]func(*world, idem.MessageID) error{
		"redrive": func(w *world, id idem.MessageID) error {
			seen := w.seen(id)
			w.tidings(id, charged)
			_, err := w.operator.Redrive(w.Context(), id, seen)
			return err
		},
		"close": func(w *world, id idem.MessageID) error {
			seen := w.seen(id)
			w.tidings(id, charged)
			return w.operator.Close(w.Context(), id, seen)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: unsettling})
			id := w.accept(dead)
			w.clock.Add(time.Hour)
			stale(t, change(w, id))
			if delivered, _ := w.kept(id); !delivered || w.message(id).State != storage.MessageDead {
				t.Errorf("message %s, kept %v", w.message(id).State, delivered)
			}
			w.want(id, storage.MessageDead, storage.StatePending, 202, "", 0)
		})
	}
}

// tidings are a webhook's evidence.
func (w *world) tidings(id idem.MessageID, o outbox.Outcome) {
	w.Helper()
	_, err := w.worker.Settle(w.Context(), id, o)
	w.ok(err)
}

// Kept as delivered, and then told as declined: somebody was charged, so nobody is told otherwise. Both answers are kept, and
// a person hears of it.
func TestADeclineNeverOverrulesWhatIsKeptAsDelivered(t *testing.T) {
	broken := true
	w := newWorld(t, options{topic: func(topic *outbox.Topic) {
		topic.Settle = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
			if broken {
				return outbox.Settlement{}, errors.New("a bug")
			}
			return settle(m, o)
		}
	}})
	id := w.accept(parked)
	w.tidings(id, charged)
	broken = false
	w.tidings(id, outbox.Declined{Reference: "ch_no"})
	w.want(id, storage.MessageDead, storage.StatePending, 202, "", 0)
	if delivered, declined := w.kept(id); !delivered || !declined || w.logged("outbox.evidence_differs") == 0 {
		t.Errorf("kept %v and %v, %d alarms", delivered, declined, w.logged("outbox.evidence_differs"))
	}
	_, err := w.operator.Redrive(t.Context(), id, w.seen(id))
	w.ok(err)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 0)
}

// A provider without keys. The first call is declined, and its worker freezes; a probe finds nothing; the second call charges.
// The first decline says nothing of the second attempt.
func TestADeclineOfAnEarlierAttemptSettlesNothing(t *testing.T) {
	var w *world
	calls := 0
	w = newWorld(t, options{topic: func(topic *outbox.Topic) {
		keyless(topic)
		topic.Call = func(_ context.Context, m storage.Message) outbox.Outcome {
			if calls++; calls > 1 {
				w.provider.charge(m.ID)
				return outbox.Ambiguous{Cause: errors.New("lost")}
			}
			w.clock.Add(lease + absentAfter) // frozen
			w.swept(outbox.Counts{Parked: 1})
			w.clock.Add(absentAfter)
			w.reconciled(outbox.Counts{Offered: 1})
			w.deliver(m.ID)
			return outbox.Declined{Reference: "ch_no"}
		}
	}})
	id := w.accept()
	w.deliver(id)
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
	w.clock.Add(lease + absentAfter)
	w.reconciled(outbox.Counts{Settled: 1})
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// A webhook's decline at a provider without keys, of a message that was claimed twice: nobody knows which attempt it is about.
func TestAWebhooksDeclineOfNobodyKnowsWhichAttemptIsKept(t *testing.T) {
	w := newWorld(t, options{topic: keyless})
	id := w.accept(parked, func(m *storage.Message) { m.Epoch = 2 })
	w.tidings(id, outbox.Declined{Reference: "ch_no"})
	w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 0)
	if _, declined := w.kept(id); !declined {
		t.Error("the evidence is lost")
	}
}

// What the store refuses to settle, time and again, waits for somebody who mends it: an operator is told by the second try on, it is
// tried more and more rarely, and settled once it is mended.
func TestASettlementThatTheStoreRefusesForGoodIsToldAndSlowsDown(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept()
	sends, broken := 0, true
	w.store.Each(func(c faulty.Call) faulty.Fault {
		return func(ctx context.Context, run func(context.Context) error) error {
			if c == faulty.Settle && broken {
				sends++
				return errors.New("ValidationError: an operand in the update expression has an incorrect data type")
			}
			return run(ctx)
		}
	})
	w.deliver(id)
	if m := w.message(id); m.State != storage.MessageEvidenced || w.logged("outbox.settle_failed") != 0 {
		t.Fatalf("message is %s after %d alarms, want it evidenced: its credentials may just have expired", m.State, w.logged("outbox.settle_failed"))
	}
	w.drain(time.Minute)
	if w.logged("outbox.settle_failed") == 0 {
		t.Error("nobody was told within a minute")
	}
	for range 3 * 24 * 4 {
		_, err := w.sweep(t.Context())
		w.ok(err)
		w.drain(15 * time.Minute)
	}
	told := w.logged("outbox.settle_failed")
	if told < 3 || told > 100 || sends > 3_000 {
		t.Errorf("told %d times in three days, sent %d times", told, sends)
	}
	w.want(id, storage.MessageEvidenced, storage.StatePending, 202, "", 1)
	broken = false
	for range 8 {
		_, err := w.sweep(t.Context())
		w.ok(err)
		w.drain(15 * time.Minute)
	}
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// What it means that nothing was executed may be refused for good as well: it is told, and tried more and more rarely, until somebody has
// mended it. No operator could end the message meanwhile.
func TestAFailureThatTheStoreRefusesForGoodIsToldAndSlowsDown(t *testing.T) {
	w := newWorld(t, options{})
	w.provider.script = []string{"400"}
	id := w.accept()
	sends, broken := 0, true
	refusal := errors.New("ValidationError: an operand in the update expression has an incorrect data type")
	w.store.Each(func(c faulty.Call) faulty.Fault {
		return func(ctx context.Context, run func(context.Context) error) error {
			if c == faulty.Settle && broken {
				sends++
				return refusal
			}
			return run(ctx)
		}
	})
	if err := w.worker.Deliver(t.Context(), id); !errors.Is(err, refusal) || w.logged("outbox.settle_failed") != 0 {
		t.Fatalf("delivery: %v, with %d alarms; want the error only: its credentials may just have expired", err, w.logged("outbox.settle_failed"))
	}
	w.clock.Add(time.Minute)
	if _, err := w.sweep(t.Context()); err != nil || w.logged("outbox.settle_failed") != 1 {
		t.Errorf("sweep: %v, told %d times within a minute, want once", err, w.logged("outbox.settle_failed"))
	}
	for range 3 * 24 * 4 {
		w.clock.Add(15 * time.Minute)
		_, err := w.sweep(t.Context())
		w.ok(err)
		w.drain(0)
	}
	told := w.logged("outbox.settle_failed")
	if told < 3 || told > 100 || sends > 200 {
		t.Errorf("told %d times in three days, sent %d times", told, sends)
	}
	w.want(id, storage.MessagePending, storage.StatePending, 202, "", 0)
	if why := `"outcome":"not_executed","error":"` + refusal.Error(); strings.Count(w.log.String(), why) != told {
		t.Errorf("not each of the %d alarms says why", told)
	}
	broken = false
	for range 4 {
		w.clock.Add(15 * time.Minute)
		_, err := w.sweep(t.Context())
		w.ok(err)
		w.drain(0)
	}
	w.want(id, storage.MessageDead, storage.StateFailed, 502, "not_executed", 0)
}
