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
