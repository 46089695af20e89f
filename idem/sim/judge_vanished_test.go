package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// A row that is gone is missed unless it had ended and its time was over; and whoever acts removes none.
func TestARowThatVanishesTooEarlyIsMissed(t *testing.T) {
	const retention = time.Hour
	record := func(state storage.State, change func(*storage.Record)) func(*world) {
		return func(w *world) {
			k := w.keys[0]
			r := storage.Record{Key: k.id, State: state, LeaseUntil: beginning, Retention: retention}
			if state.Final() {
				r.DoneAt, r.ExpiresAt, r.FreeAt = beginning, beginning.Add(retention), beginning.Add(retention)
			}
			if change != nil {
				change(&r)
			}
			w.judge.records[r.Key] = r
		}
	}
	message := func(state storage.MessageState, operation storage.State) func(*world) {
		return func(w *world) {
			m := storage.Message{ID: "op_1.1", RecordKey: w.keys[0].id, OperationID: "op_1", State: state, DoneAt: beginning, Retention: retention}
			w.judge.messages[m.ID] = m
			if operation != "" { // and its record stands
				r := storage.Record{Key: m.RecordKey, OperationID: m.OperationID, State: operation, ExpiresAt: beginning.Add(retention), SchemaVersion: storage.SchemaVersion}
				w.must(w.memory.Insert(t.Context(), r, beginning))
				w.judge.records[r.Key] = r
			}
		}
	}
	// later is a message whose operation has another one, which ended an hour later.
	later := func(detached bool) func(*world) {
		return func(w *world) {
			for n, done := range []time.Time{beginning, beginning.Add(time.Hour)} {
				m := storage.Message{
					ID: storage.OperationID("op_1").Message(n + 1), Index: n + 1, RecordKey: w.keys[0].id, OperationID: "op_1", Detached: detached, State: storage.MessageDelivered, DoneAt: done, Retention: retention,
				}
				if w.judge.lastMessages[m.ID] = m; n == 0 {
					w.judge.messages[m.ID] = m
				}
			}
		}
	}
	gone := func(r *storage.Record) {
		r.Expiry = storage.Expiry{KeepFor: retention, Gone: true}
		r.FreeAt = r.FreeAt.Add(retention)
	}
	const never = 1000 * time.Hour
	for name, c := range map[string]struct {
		kind   kind
		stands func(*world)
		until  time.Duration // it stays for so long after the beginning
	}{
		"pending":                   {deferredKeys, record(storage.StatePending, nil), never},
		"unknown":                   {wrappedOperator, record(storage.StateUnknown, nil), never},
		"a wrapped lease":           {wrappedOperator, record(storage.StateInProgress, nil), never},
		"a lease":                   {atomicWrite, record(storage.StateInProgress, nil), retention + recordsStay},
		"a lease that is safe":      {wrappedSafe, record(storage.StateInProgress, nil), retention + recordsStay},
		"freed":                     {atomicWrite, record(storage.StateFailedRetryable, nil), retention + recordsStay},
		"freed, and known to be":    {atomicWrite, record(storage.StateFailedRetryable, func(r *storage.Record) { r.FreeAt = beginning }), recordsStay},
		"completed":                 {atomicWrite, record(storage.StateCompleted, nil), retention + recordsStay},
		"failed":                    {atomicWrite, record(storage.StateFailed, nil), retention + recordsStay},
		"a tombstone":               {atomicWrite, record(storage.StateCompleted, gone), 2*retention + recordsStay},
		"a message that is open":    {deferredKeys, message(storage.MessagePending, ""), never},
		"a message that is dead":    {deferredKeys, message(storage.MessageDead, ""), never},
		"a message of what pends":   {deferredKeys, message(storage.MessageDelivered, storage.StatePending), never},
		"a message that has ended":  {deferredKeys, message(storage.MessageDelivered, ""), retention + messagesStay},
		"the first of a chain":      {deferredKeys, later(false), time.Hour + retention + messagesStay},
		"one of two that are apart": {deferredKeys, later(true), retention + messagesStay},
		"a message with its record": {deferredKeys, message(storage.MessageDelivered, storage.StateCompleted), retention + messagesStay},
	} {
		t.Run(name, func(t *testing.T) {
			broken := func(after time.Duration, by func(*world) *act) bool {
				var wrong []string
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Until(beginning.Add(after)))
					choices := newChoices(0, []string{})
					w := newWorldIn(t, Begin{}, calm(c.kind, choices), choices, false)
					c.stands(w)
					w.look(by(w))
					wrong = w.wrong
				})
				return len(wrong) > 0
			}
			ttl, somebody := func(*world) *act { return nil }, func(w *world) *act { return newAct("somebody", w.start("api")) }
			if !broken(c.until-2*skews, ttl) {
				t.Error("it is not missed before its time")
			}
			if c.until != never && broken(c.until, ttl) {
				t.Error("it is missed when its time is over")
			}
			if !broken(c.until, somebody) {
				t.Error("somebody removes it, and nobody misses it")
			}
		})
	}
}
