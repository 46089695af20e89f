package outbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// twoPhases goes on with a second message, and undoes the first where the second was given up or declined; the undoing message's
// answer is the operation's.
func twoPhases(compensates bool) func(*outbox.Topic) {
	return settling(func(m storage.Message, o outbox.Outcome, said *outbox.Settlement) error {
		_, delivered := o.(outbox.Delivered)
		_, not := o.(outbox.NotExecuted)
		_, declined := o.(outbox.Declined)
		switch {
		case delivered && m.Index == 1:
			said.Next = &outbox.Next{Topic: topicName, Payload: []byte("second")}
		case not && m.Index == 2 && compensates:
			said.Next = &outbox.Next{Topic: topicName, Payload: []byte("undo the first")}
		case declined && m.Index == 2 && compensates:
			said.Next = &outbox.Next{Topic: topicName, Payload: []byte("undo the first"), Undoes: true}
		case m.Index == 3: // if it were asked after the undoing has failed, the record would be told so
			said.Response = idem.Response{Status: 409, Body: []byte(`{"code":"undone"}`)}
		}
		return nil
	})
}

// refusedSecond is an operation whose first phase was executed, and whose second was refused with nothing open.
func refusedSecond(t *testing.T, compensates bool, script ...string) (*world, idem.OperationID) {
	return endedSecond(t, compensates, "400", script...)
}

// endedSecond is the same with any end of the second phase.
func endedSecond(t *testing.T, compensates bool, second string, script ...string) (*world, idem.OperationID) {
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { twoPhases(compensates)(topic); topic.Probe = nil }})
	id := w.accept()
	w.deliver(id)
	w.provider.script = append([]string{second}, script...)
	operation := w.message(id).OperationID
	w.deliver(operation.Message(2))
	return w, operation
}

// Compensation: the message that undoes the first phase follows, the operation stays pending, and only once it is undone does
// it fail, with the application's own answer.
func TestARefusedPhaseIsFollowedByWhatUndoesTheOneBefore(t *testing.T) {
	w, operation := refusedSecond(t, true)
	w.want(operation.Message(2), storage.MessageCancelled, storage.StatePending, 202, "not_executed", 0)
	firstIsUndone(t, w, operation)
}

// The same after a decline.
func TestADeclinedPhaseIsFollowedByWhatUndoesTheOneBefore(t *testing.T) {
	w, operation := endedSecond(t, true, "402")
	w.want(operation.Message(2), storage.MessageDeclined, storage.StatePending, 202, "declined", 0)
	if w.logged("outbox.compensating") != 1 {
		t.Error("nobody was told that the first phase is being undone")
	}
	firstIsUndone(t, w, operation)
}

func firstIsUndone(t *testing.T, w *world, operation idem.OperationID) {
	t.Helper()
	first, second, undo := operation.Message(1), operation.Message(2), operation.Message(3)
	if m := w.message(undo); m.State != storage.MessagePending || !m.Undoes || string(m.Payload) != "undo the first" {
		t.Fatalf("undoing message: %+v", m)
	}
	w.clock.Add(time.Hour)
	w.deliver(undo)
	w.want(undo, storage.MessageDelivered, storage.StateFailed, 409, "delivered", 1)
	r := w.record(undo)
	if string(r.Response.Body) != `{"code":"undone"}` || !r.DoneAt.Equal(w.clock.Now()) || !r.ExpiresAt.Equal(r.DoneAt.Add(24*time.Hour)) {
		t.Errorf("answer %s, done %v, expires %v", r.Response.Body, r.DoneAt, r.ExpiresAt)
	}
	for _, id := range []idem.MessageID{first, second, undo} {
		if m := w.message(id); !m.RemoveAt.After(r.ExpiresAt) {
			t.Errorf("message %d may go at %v, the record expires at %v", m.Index, m.RemoveAt, r.ExpiresAt)
		}
	}
	if len(w.queue.Letters()) != 0 {
		t.Errorf("dead letters %+v", w.queue.Letters())
	}
}

// A chain has at most ChainMax messages. What the last one is followed by is not sent: its evidence is kept, and an operator is told.
func TestAChainEndsWithItsLastMessage(t *testing.T) {
	w := newWorld(t, options{topic: settling(func(_ storage.Message, _ outbox.Outcome, said *outbox.Settlement) error {
		said.Next = &outbox.Next{Topic: topicName, Payload: []byte("and one more")}
		return nil
	})})
	operation := w.message(w.accept()).OperationID
	for index := 1; index <= outbox.ChainMax; index++ {
		if index == outbox.ChainMax && w.message(operation.Message(index)).State != storage.MessagePending {
			t.Fatalf("message %d does not follow", index)
		}
		w.deliver(operation.Message(index))
	}
	last, beyond := operation.Message(outbox.ChainMax), operation.Message(outbox.ChainMax+1)
	if m := w.message(last); m.State != storage.MessageDead || m.KeptDelivered == nil || w.logged("outbox.settle_failed") != 1 {
		t.Errorf("the last message is %s, keeps %v, and %d alarms rang", m.State, m.KeptDelivered, w.logged("outbox.settle_failed"))
	}
	if m, err := w.inner.Message(t.Context(), beyond); err != nil || m != nil {
		t.Errorf("message %d is %+v, %v", outbox.ChainMax+1, m, err)
	}
}

// 408 "nothing was executed" is the end of a first message that nobody claimed in time. A later one that waited as long is
// delivered: what comes before it was executed.
func TestALaterPhaseIsNotAnsweredWithATimeout(t *testing.T) {
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { twoPhases(false)(topic); topic.AbandonAfter = time.Minute }})
	never := w.accept()
	id := w.accept()
	w.deliver(id)
	second := w.message(id).OperationID.Message(2)
	w.clock.Add(time.Hour)
	w.deliver(never)
	w.want(never, storage.MessageCancelled, storage.StateFailed, 408, "not_executed", 0)
	w.deliver(second)
	w.want(second, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
}

// What could not be undone stands before an operator, its operation pending: nobody is told that it failed.
func TestAnUndoingThatIsGivenUpStandsBeforeAnOperator(t *testing.T) {
	for second, answer := range map[string]string{"refused": "400", "declined": "402"} {
		for name, script := range map[string][]string{"declined": {"402"}, "refused": {"400"}, "exhausted": {"429", "429", "429"}} {
			t.Run("second "+second+", undoing "+name, func(t *testing.T) {
				w, operation := endedSecond(t, true, answer, script...)
				w.deliver(operation.Message(3))
				w.drain(time.Hour)
				w.want(operation.Message(3), storage.MessageDead, storage.StatePending, 202, "", 0)
				if letters := w.queue.Letters(); len(letters) != 1 || w.logged("outbox.dead") != 1 {
					t.Errorf("letters %+v, %d alarms", letters, w.logged("outbox.dead"))
				}
			})
		}
	}
}

// The first phase has nothing before it that could be undone: an application that says so has no answer, and an operator decides.
func TestADeclinedFirstPhaseUndoesNothing(t *testing.T) {
	w := newWorld(t, options{topic: settling(func(_ storage.Message, o outbox.Outcome, said *outbox.Settlement) error {
		said.Next = &outbox.Next{Topic: topicName, Undoes: true}
		return nil
	})})
	id := w.accept()
	w.provider.script = []string{"402"}
	w.deliver(id)
	w.want(id, storage.MessageDead, storage.StatePending, 202, "", 0)
	if _, declined := w.kept(id); !declined || w.logged("outbox.settle_failed") != 1 {
		t.Errorf("declined is kept: %v, %d alarms", declined, w.logged("outbox.settle_failed"))
	}
}

// An answer that comes late for a phase that was cancelled is kept, and a person hears of it.
func TestLateEvidenceOfACancelledPhaseIsKept(t *testing.T) {
	w, operation := refusedSecond(t, true)
	w.tidings(operation.Message(2), charged)
	w.want(operation.Message(2), storage.MessageCancelled, storage.StatePending, 202, "not_executed", 0)
	if delivered, _ := w.kept(operation.Message(2)); !delivered || w.logged("outbox.evidence_late") != 1 {
		t.Errorf("kept %v, %d alarms", delivered, w.logged("outbox.evidence_late"))
	}
}

// docs/design.md "Rules of evidence": what died had its record fail with it, and its client was told so. Evidence that came later is
// kept for a person. A redrive that meets contention leaves it dead: a worker that found it evidenced would send the next phase of
// what has failed.
func TestNoPhaseFollowsWhatHasFailedHoweverItIsRedriven(t *testing.T) {
	w := newWorld(t, options{topic: twoPhases(false)})
	id := w.accept()
	w.provider.script = []string{"400"}
	w.deliver(id)
	w.want(id, storage.MessageDead, storage.StateFailed, 502, "not_executed", 0)
	if _, err := w.worker.Settle(t.Context(), id, charged); err != nil {
		t.Fatal(err)
	}
	if delivered, _ := w.kept(id); !delivered {
		t.Fatal("the evidence is lost")
	}
	w.crowded(faulty.Settle, 1000)
	if state, err := w.operator.Redrive(t.Context(), id, w.seen(id)); err != nil || state != storage.MessageDead {
		t.Errorf("redriven in contention it is %s, %v", state, err)
	}
	w.store.Clear()
	w.drain(time.Hour)
	w.swept(outbox.Counts{})
	second, err := w.inner.Message(t.Context(), w.message(id).OperationID.Message(2))
	if err != nil || second != nil {
		t.Errorf("the second phase of what has failed is %+v, %v", second, err)
	}
	if delivered, _ := w.kept(id); !delivered || w.message(id).State != storage.MessageDead || w.record(id).State != storage.StateFailed {
		t.Errorf("the message is %s, the record %s", w.message(id).State, w.record(id).State)
	}
}

// "Nothing was executed" is only true of the first message.
func TestOnlyTheFirstMessageIsAnsweredWithNothingWasExecuted(t *testing.T) {
	said := func(w *world, id idem.MessageID) string { return string(w.record(id).Response.Body) }
	w := newWorld(t, options{})
	w.provider.script = []string{"400"}
	id := w.accept()
	w.deliver(id)
	if body := said(w, id); !strings.Contains(body, "Nothing was executed") {
		t.Errorf("the first: %s", body)
	}
	w, operation := refusedSecond(t, false)
	if body := said(w, operation.Message(2)); strings.Contains(body, "Nothing was executed") || !strings.Contains(body, "provider_refused") {
		t.Errorf("the second: %s", body)
	}
}

// Nothing of a chain goes before its end, and then all of it with the record.
func TestNothingOfAChainGoesBeforeItsEnd(t *testing.T) {
	const kept = 72 * time.Hour
	for name, expiry := range map[string]storage.Expiry{"plain": {}, "kept": {KeepFor: kept}, "as long as its resource": {ResourceBacked: true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: twoPhases(false)})
			id := w.accept(func(m *storage.Message) { m.Expiry = expiry })
			w.deliver(id)
			second := w.message(id).OperationID.Message(2)
			w.clock.Add(1000 * time.Hour)
			if _, messages := w.inner.Expire(w.clock.Now()); messages != 0 {
				t.Fatalf("TTL removed %d messages of a pending operation", messages)
			}
			if open, err := outbox.Open(t.Context(), w.store, w.message(id).OperationID); err != nil || open == nil || open.ID != second {
				t.Fatalf("recovery point %+v, %v", open, err)
			}
			w.tidings(second, charged)
			end := w.clock.Now().Add(24*time.Hour + expiry.KeepFor)
			if _, messages := w.inner.Expire(end.Add(23 * time.Hour)); messages != 0 {
				t.Errorf("%d messages went with their record still there", messages)
			}
			want := 2
			if expiry.ResourceBacked {
				want = 0
			}
			if _, messages := w.inner.Expire(end.Add(25 * time.Hour)); messages != want {
				t.Errorf("%d messages went a day after their record, want %d", messages, want)
			}
		})
	}
}

// docs/semantics.md "Chains": messages are removed a day after their record, however their operation ended. Of one that is complete
// without them, they go as if it ended with them.
func TestMessagesGoADayAfterTheirRecordHoweverItEnded(t *testing.T) {
	const kept = 72 * time.Hour
	closes := func(w *world, id idem.MessageID) {
		w.clock.Add(time.Hour) // nothing is under way any more
		w.ok(w.operator.Close(w.Context(), id, w.seen(id)))
	}
	detached := func(m *storage.Message) { m.Detached = true }
	for name, c := range map[string]struct {
		options options
		accept  func(*storage.Message)
		script  []string
		ends    func(*world, idem.MessageID) // after the last message was delivered as the script says
		state   storage.MessageState
		chain   bool // the script is about its second message
	}{
		"delivered":                       {state: storage.MessageDelivered},
		"declined":                        {script: []string{"402"}, state: storage.MessageDeclined},
		"abandoned":                       {options: options{topic: abandoning}, state: storage.MessageCancelled},
		"closed":                          {options: options{topic: unprobed}, script: []string{"409"}, ends: closes, state: storage.MessageCancelled},
		"closed with its answer there":    {script: []string{"400"}, ends: closes, state: storage.MessageCancelled},
		"a chain's second, closed":        {chain: true, options: options{topic: unprobed}, script: []string{"409"}, ends: closes, state: storage.MessageCancelled},
		"the same with its answer there":  {chain: true, script: []string{"400"}, ends: closes, state: storage.MessageCancelled},
		"detached, delivered":             {accept: detached, state: storage.MessageDelivered},
		"detached, declined":              {accept: detached, script: []string{"402"}, state: storage.MessageDeclined},
		"detached, closed":                {options: options{topic: unprobed}, accept: detached, script: []string{"409"}, ends: closes, state: storage.MessageCancelled},
		"detached, given up, then closed": {accept: detached, script: []string{"400"}, ends: closes, state: storage.MessageCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: func(topic *outbox.Topic) {
				if c.chain {
					twoPhases(false)(topic)
				}
				if c.options.topic != nil {
					c.options.topic(topic)
				}
			}})
			if c.accept == nil {
				c.accept = func(*storage.Message) {}
			}
			id, want := w.accept(c.accept, func(m *storage.Message) { m.Expiry.KeepFor = kept }), 1
			if c.chain {
				w.deliver(id)
				id, want = w.message(id).OperationID.Message(2), 2
			}
			w.provider.script = c.script
			w.clock.Add(time.Minute)
			w.deliver(id)
			if c.ends != nil {
				if _, messages := w.inner.Expire(w.clock.Now().Add(1000 * time.Hour)); messages != 0 {
					t.Fatalf("%d messages went before an operator", messages)
				}
				c.ends(w, id)
			}
			if m := w.message(id); m.State != c.state {
				t.Fatalf("it is %s, want %s", m.State, c.state)
			}
			end := w.clock.Now().Add(24*time.Hour + kept)
			if _, messages := w.inner.Expire(end.Add(23 * time.Hour)); messages != 0 {
				t.Errorf("%d messages went with their record still there", messages)
			}
			if _, messages := w.inner.Expire(end.Add(25 * time.Hour)); messages != want {
				t.Errorf("%d messages went a day after their record, want %d", messages, want)
			}
		})
	}
}

func abandoning(topic *outbox.Topic) { topic.AbandonAfter = time.Minute }

// Only a record of what was done lives as long as its resource: one that failed expires, and its message goes a day later, also where it
// ends after its record. What is beside a record that stays, stays.
func TestAMessageThatEndsAfterItsRecordGoesAsThatDoes(t *testing.T) {
	for name, c := range map[string]struct {
		detached bool
		want     int
	}{"its record failed": {false, 1}, "its record lives as long as its resource": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			w.provider.script = []string{"400"}
			id := w.accept(func(m *storage.Message) { m.Detached, m.Expiry.ResourceBacked = c.detached, true })
			w.deliver(id)
			w.clock.Add(time.Hour)
			w.ok(w.operator.Close(t.Context(), id, w.seen(id)))
			if m := w.message(id); m.State != storage.MessageCancelled {
				t.Fatalf("it is %s", m.State)
			}
			if _, messages := w.inner.Expire(w.clock.Now().Add(49 * time.Hour)); messages != c.want {
				t.Errorf("%d messages went a day after their record, want %d", messages, c.want)
			}
		})
	}
}

// After a loss of data nobody knows whether a restored message was called: one whose provider honours no keys is not called,
// and asked about where there is somebody to ask. Each instance may be told so, or the table all of them.
func TestARestoredMessageCountsAsCalled(t *testing.T) {
	restored := func(c *outbox.Config) { c.RefuseBefore = noon.Add(time.Minute) }
	for name, change := range map[string]func(*storage.Message){
		"never claimed": func(*storage.Message) {}, "backed off": func(m *storage.Message) {
			claimed(lease)(m)
			m.State, m.OpenSince = storage.MessagePending, time.Time{}
		},
	} {
		for source, config := range map[string]func(*outbox.Config){"config": restored, "row": nil} {
			t.Run(name+", by "+source, func(t *testing.T) {
				w := newWorld(t, options{topic: keyless, config: config})
				if config == nil {
					w.loses(noon.Add(time.Minute))
				}
				id := w.accept(change)
				w.provider.charge(id) // before the loss
				w.clock.Add(time.Hour)
				w.deliver(id)
				w.want(id, storage.MessageUnknown, storage.StatePending, 202, "", 1)
				w.clock.Add(time.Hour)
				w.reconciled(outbox.Counts{Settled: 1})
				w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
			})
		}
	}
	t.Run("a later one is called", func(t *testing.T) {
		w := newWorld(t, options{topic: keyless, config: restored, store: memstore.Config{}})
		w.clock.Add(time.Hour)
		id := w.accept()
		w.deliver(id)
		w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	})
}
