package sim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// What a row said is held to the provider's books after it has expired, or its key has been taken by the next incarnation.
func TestWhatIsGoneIsHeldToTheBooks(t *testing.T) {
	const op, message = storage.OperationID("op_1"), storage.MessageID("op_1.1")
	record := func(w *world, state storage.State, status int) {
		r := storage.Record{Key: w.keys[0].id, OperationID: op, State: state, Response: storage.Response{Status: status}}
		w.judge.last[op], w.judge.keys[op] = r, w.keys[0]
	}
	sent := func(w *world, topic string, state storage.MessageState) {
		w.judge.lastMessages[message] = storage.Message{ID: message, RecordKey: w.keys[0].id, OperationID: op, Topic: topic, State: state, Index: 1}
	}
	for name, c := range map[string]struct {
		kind kind
		was  func(*world)
		want string
	}{
		"a wrapped success without its effect": {wrappedProbed, func(w *world) { record(w, storage.StateCompleted, 201) }, "I1:"},
		"a refusal with its effect": {wrappedProbed, func(w *world) {
			record(w, storage.StateCompleted, 402)
			w.judge.effects[string(op)] = 1
		}, "I1:"},
		"a success without its write": {atomicWrite, func(w *world) { record(w, storage.StateCompleted, 201) }, "I1:"},
		"a freed key with its write": {atomicWrite, func(w *world) {
			record(w, storage.StateFailedRetryable, 0)
			w.memory.PutRow(written(op), []byte("x"))
		}, "I1:"},
		"a delivered message that was never made": {deferredNothing, func(w *world) {
			record(w, storage.StateFailed, 502)
			sent(w, withNothing, storage.MessageDelivered)
		}, "I3:"},
		"a cancelled message that was made": {deferredKeys, func(w *world) {
			record(w, storage.StateFailed, 408)
			sent(w, withKeys, storage.MessageCancelled)
			w.provider.made[string(message)] = 1
		}, "I3:"},
		"an effect after its key was freed, and taken": {wrappedProbed, func(w *world) {
			record(w, storage.StateFailedRetryable, 0)
			w.noteEffect(w.keys[0], op)
		}, "I1:"},
		"what nobody was told of": {wrappedOperator, func(w *world) { record(w, storage.StateUnknown, 0) }, "I9:"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(beginning))
				choices := newChoices(0, []string{})
				w := newWorldIn(t, Begin{}, calm(c.kind, choices), choices, false)
				w.judgeEnd()
				if len(w.wrong) > 0 {
					t.Fatalf("it breaks by itself: %q", w.wrong)
				}
				c.was(w)
				w.judgeEnd()
				if len(w.wrong) == 0 || !strings.HasPrefix(w.wrong[0], c.want) {
					t.Errorf("%q, want %s", w.wrong, c.want)
				}
			})
		})
	}
}

// What has ended, and all of its operation with it, is missed where it still stands long after its time: a message a day after its record.
func TestWhatIsNeverRemovedIsMissed(t *testing.T) {
	const retention = time.Hour
	records := func(state storage.State, expiry storage.Expiry) func(*world) {
		return func(w *world) {
			r := storage.Record{Key: w.keys[0].id, OperationID: "op_1", State: state, FreeAt: beginning.Add(retention), ExpiresAt: beginning.Add(retention), Expiry: expiry}
			w.judge.records[r.Key] = r
		}
	}
	leases := func(wrapped, safe bool) func(*world) {
		return func(w *world) {
			k := w.keys[0]
			k.wrapped, k.safe = wrapped, safe
			w.judge.records[k.id] = storage.Record{Key: k.id, OperationID: "op_1", State: storage.StateInProgress, LeaseUntil: beginning, Retention: retention}
		}
	}
	messages := func(expiry storage.Expiry, states ...storage.MessageState) func(*world) {
		return func(w *world) {
			for n, state := range states {
				op := storage.OperationID("op_1")
				m := storage.Message{ID: op.Message(n + 1), RecordKey: w.keys[0].id, OperationID: op, State: state, DoneAt: beginning, Retention: retention, Expiry: expiry}
				w.judge.messages[m.ID], w.judge.lastMessages[m.ID] = m, m
			}
		}
	}
	const never = 1000 * time.Hour
	for name, c := range map[string]struct {
		stands func(*world)
		until  time.Duration // it may stand for so long after the beginning, and an hour more
	}{
		"completed":                     {records(storage.StateCompleted, storage.Expiry{}), retention + recordsStay},
		"failed":                        {records(storage.StateFailed, storage.Expiry{}), retention + recordsStay},
		"kept for longer":               {records(storage.StateCompleted, storage.Expiry{KeepFor: retention}), 2*retention + recordsStay},
		"as long as its resource":       {records(storage.StateCompleted, storage.Expiry{ResourceBacked: true}), never},
		"a lease":                       {leases(false, false), retention + recordsStay},
		"a lease that is safe":          {leases(true, true), retention + recordsStay},
		"a wrapped lease":               {leases(true, false), never},
		"pending":                       {records(storage.StatePending, storage.Expiry{}), never},
		"delivered":                     {messages(storage.Expiry{}, storage.MessageDelivered), retention + messagesStay},
		"cancelled after a delivery":    {messages(storage.Expiry{}, storage.MessageDelivered, storage.MessageCancelled), retention + messagesStay},
		"dead":                          {messages(storage.Expiry{}, storage.MessageDead), never},
		"before what is dead":           {messages(storage.Expiry{}, storage.MessageDelivered, storage.MessageDead), never},
		"a message of what is kept":     {messages(storage.Expiry{KeepFor: retention}, storage.MessageDelivered), 2*retention + messagesStay},
		"a message beside its resource": {messages(storage.Expiry{ResourceBacked: true}, storage.MessageDelivered), never},
	} {
		t.Run(name, func(t *testing.T) {
			missed := func(after time.Duration) (missed bool) {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Until(beginning.Add(after)))
					choices := newChoices(0, []string{})
					w := newWorldIn(t, Begin{}, calm(deferredKeys, choices), choices, false)
					c.stands(w)
					w.judgeGone()
					missed = len(w.wrong) > 0
				})
				return missed
			}
			if missed(c.until + time.Hour - 2*skews) {
				t.Error("it is missed while it may stand")
			}
			if missed(c.until+time.Hour+2*skews) != (c.until != never) {
				t.Error("it stands for ever: want it missed, unless it may")
			}
		})
	}
}
