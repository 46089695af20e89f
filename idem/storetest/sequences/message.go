package sequences

import (
	"errors"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// accept commits a deferred operation with its message, which nobody delivers yet.
func (w *world) accept() idem.MessageID {
	w.Helper()
	result := w.do(w.register(idem.Operation{Kind: idem.KindDeferred}), w.handler(202))
	w.want(result, idem.OutcomeExecuted, 202, "1")
	return result.OperationID.Message(1)
}

// settlements: the provider's answer is definite, and the row of its settlement hot. The settlement is sent again, and nobody
// calls the provider again for want of it, though it may be called once only. What cannot be settled is kept, and settled later.
func settlements(faults Faults) []sequence {
	var all []sequence
	add := func(name string, meet func(w *world), kept bool) {
		all = append(all, sequence{name, func(w *world) {
			w.deliver(func(topic *outbox.Topic) { topic.AttemptsMax = 1 })
			id := w.accept()
			meet(w)
			w.ok(w.worker.Deliver(w.Context(), id))
			w.store.Clear()
			if kept {
				w.ended(id, storage.MessageEvidenced, storage.StatePending, 0)
				time.Sleep(time.Minute)
				w.ok(w.worker.Deliver(w.Context(), id))
			}
			w.ended(id, storage.MessageDelivered, storage.StateCompleted, 1)
			w.called(1)
		}})
	}
	for _, busy := range sorted(faults.Busy) {
		add(busy, func(w *world) { w.fail(faulty.Settle, 1, 12, faults.Busy[busy]) }, false)
		add("reply lost, then "+busy, func(w *world) {
			w.fail(faulty.Settle, 1, 1, faults.LoseReply)
			w.fail(faulty.Settle, 2, 12, faults.Busy[busy])
		}, false)
		add(busy+" until it is kept", func(w *world) {
			w.fail(faulty.Settle, 1, endless, faults.Busy[busy])
			w.fail(faulty.PatchMessage, 1, 12, faults.Busy[busy])
		}, true)
	}
	return all
}

// operatorsWrites: evidence comes in between the read that an operator's change is decided on and its write. Neither state,
// epoch nor owner changes by that, only the revision: the write is refused, and the evidence stays.
func operatorsWrites() []sequence {
	return []sequence{
		{"redrive", func(w *world) {
			w.overtaken(func(id idem.MessageID, seen storage.Revision) error {
				_, err := w.operator.Redrive(w.Context(), id, outbox.Seen{Revision: seen})
				return err
			})
		}},
		{"close", func(w *world) {
			w.overtaken(func(id idem.MessageID, seen storage.Revision) error {
				return w.operator.Close(w.Context(), id, outbox.Seen{Revision: seen})
			})
		}},
	}
}

// undeliverable can settle everything but a delivery, whose evidence is kept then.
func (w *world) undeliverable(topic *outbox.Topic) {
	topic.Settle = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
		if _, delivered := o.(outbox.Delivered); delivered {
			return outbox.Settlement{}, errors.New("no such order")
		}
		return w.settle(m, o)
	}
}

// overtaken lets a webhook's evidence overtake the first write of an operator's change of a dead message.
func (w *world) overtaken(change func(idem.MessageID, storage.Revision) error) {
	w.Helper()
	w.deliver(w.undeliverable)
	id := w.accept()
	w.provider.next = []outbox.Outcome{outbox.Refused{Unproven: true, Cause: errors.New("409")}}
	w.ok(w.worker.Deliver(w.Context(), id))
	w.ended(id, storage.MessageDead, storage.StatePending, 0)
	time.Sleep(time.Hour)
	came := false
	for _, write := range []faulty.Call{faulty.UpdateMessage, faulty.PatchMessage, faulty.Settle} {
		w.store.On(write, 1, faulty.Before(func() {
			if came {
				return
			}
			came = true
			_, err := w.worker.Settle(w.Context(), id, charged)
			w.ok(err)
		}))
	}
	before := w.message(id)
	err := change(id, before.Revision)
	after := w.message(id)
	if !came || err == nil || after.KeptDelivered == nil || after.Epoch != before.Epoch {
		w.Errorf("%v; the evidence came %v, is kept %v, epoch %d and %d", err, came, after.KeptDelivered != nil, before.Epoch, after.Epoch)
	}
	w.ended(id, storage.MessageDead, storage.StatePending, 0)
	w.called(1)
}

// redriven: a message is too old to be delivered when it is first met, and could not be given up either. An operator redrives
// it, whatever their write meets: its age counts from then, and it is delivered.
func redriven(faults Faults) []sequence {
	all := []sequence{{"without faults", func(w *world) { w.redriven(w.abandoned()) }}}
	for _, busy := range sorted(faults.Busy) {
		all = append(all, sequence{"reply lost, then " + busy, func(w *world) {
			id := w.abandoned()
			w.fail(faulty.UpdateMessage, 1, 1, faults.LoseReply)
			w.fail(faulty.UpdateMessage, 2, 5, faults.Busy[busy])
			w.redriven(id)
		}})
	}
	return all
}

// abandoned accepts a message that nobody claims for longer than it may wait. Giving it up fails, so it is dead and its record
// pending.
func (w *world) abandoned() idem.MessageID {
	w.Helper()
	broken := true
	w.deliver(func(topic *outbox.Topic) {
		topic.Settle = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
			if broken {
				return outbox.Settlement{}, errors.New("a bug")
			}
			return w.settle(m, o)
		}
	})
	id := w.accept()
	time.Sleep(25 * time.Hour)
	w.ok(w.worker.Deliver(w.Context(), id))
	w.ended(id, storage.MessageDead, storage.StatePending, 0)
	broken = false
	return id
}

func (w *world) redriven(id idem.MessageID) {
	w.Helper()
	state, err := w.operator.Redrive(w.Context(), id, outbox.Seen{Revision: w.message(id).Revision})
	if err != nil || state != storage.MessagePending {
		w.Fatalf("redriven, it is %q: %v", state, err)
	}
	w.ok(w.worker.Deliver(w.Context(), id))
	w.ended(id, storage.MessageDelivered, storage.StateCompleted, 1)
	w.called(1)
}
