package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// settling makes a topic whose Settle changes what the common one says.
func settling(change func(m storage.Message, o outbox.Outcome, said *outbox.Settlement) error) func(*outbox.Topic) {
	return func(topic *outbox.Topic) {
		topic.Settle = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
			said, err := settle(m, o)
			if err == nil {
				err = change(m, o, &said)
			}
			return said, err
		}
	}
}

// The effect has happened and its final response is too large to store. It is settled with a short one.
func TestResponseTooLarge(t *testing.T) {
	large := func(topic *outbox.Topic) {
		settling(func(_ storage.Message, _ outbox.Outcome, said *outbox.Settlement) error {
			said.Response.Body = bytes.Repeat([]byte("x"), 64<<10)
			return nil
		})(topic)
	}
	located := func(r idem.Response) idem.Response {
		return r.With("Location", strings.Repeat("x", storage.ResponseHeaderBytesMax))
	}
	headers := settling(func(_ storage.Message, _ outbox.Outcome, said *outbox.Settlement) error {
		said.Response = located(said.Response)
		return nil
	})
	for name, c := range map[string]struct {
		topic  func(*outbox.Topic)
		store  memstore.Config
		own    bool
		status int
	}{
		"headers larger than any store's bound": {topic: headers, status: 201},
		"with a fallback whose headers are too large": {status: 201, topic: func(topic *outbox.Topic) {
			headers(topic)
			topic.Fallback = func(storage.Message, outbox.Outcome) idem.Response { return located(idem.Response{Status: 200}) }
		}},
		"larger than the topic's bound": {topic: func(topic *outbox.Topic) { large(topic); topic.ResponseBytesMax = 8 << 10 }, status: 201},
		"larger than the store's bound": {topic: large, store: memstore.Config{ResponseBytesMax: 16 << 10}, status: 201},
		"with a fallback of its own": {own: true, status: 200, topic: func(topic *outbox.Topic) {
			large(topic)
			topic.ResponseBytesMax = 8 << 10
			topic.Fallback = func(storage.Message, outbox.Outcome) idem.Response {
				return idem.Response{Status: 200, Body: []byte("short")}
			}
		}},
		"with a fallback that is too large": {status: 201, topic: func(topic *outbox.Topic) {
			large(topic)
			topic.ResponseBytesMax = 8 << 10
			topic.Fallback = func(storage.Message, outbox.Outcome) idem.Response {
				return idem.Response{Status: 200, Body: make([]byte, 9<<10)}
			}
		}},
		"with a fallback that panics": {status: 201, topic: func(topic *outbox.Topic) {
			large(topic)
			topic.ResponseBytesMax = 8 << 10
			topic.Fallback = func(storage.Message, outbox.Outcome) idem.Response { panic("fallback") }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: c.topic, store: c.store})
			id := w.accept()
			w.deliver(id)
			w.want(id, storage.MessageDelivered, storage.StateCompleted, c.status, "delivered", 1)
			m, body := w.message(id), w.record(id).Response.Body
			if c.own {
				if string(body) != "short" {
					t.Errorf("body %q", body)
				}
				return
			}
			if operation, reference, code := operationOf(t, body); operation != string(m.OperationID) || reference != m.Reference || code != "response_too_large" {
				t.Errorf("body %s", body)
			}
		})
	}
}

// Evidence whose settlement fails is kept on the message, which is dead: before a person, its record still pending.
func TestFailedSettlementKeepsItsEvidence(t *testing.T) {
	failing := func(storage.Message, outbox.Outcome, *outbox.Settlement) error {
		return errors.New("settle: bad evidence")
	}
	for name, topic := range map[string]func(*outbox.Topic){
		"a business write fails": settling(func(m storage.Message, _ outbox.Outcome, said *outbox.Settlement) error {
			said.Writes = append(said.Writes, memstore.Write{Key: "balance", Condition: func([]byte) bool { return false }})
			return nil
		}),
		"settle fails":  settling(failing),
		"settle panics": settling(func(storage.Message, outbox.Outcome, *outbox.Settlement) error { panic("secret") }),
		"no response": settling(func(_ storage.Message, _ outbox.Outcome, said *outbox.Settlement) error {
			said.Response = idem.Response{}
			return nil
		}),
		"an unknown topic next": settling(func(_ storage.Message, _ outbox.Outcome, said *outbox.Settlement) error {
			said.Next = &outbox.Next{Topic: "not.registered"}
			return nil
		}),
		"a next message without room for its evidence": settling(func(_ storage.Message, _ outbox.Outcome, said *outbox.Settlement) error {
			said.Next = &outbox.Next{Topic: topicName, Payload: make([]byte, storage.PayloadBytesMax+1)}
			return nil
		}),
		"two writes of one row": settling(func(_ storage.Message, _ outbox.Outcome, said *outbox.Settlement) error {
			said.Writes = append(said.Writes, said.Writes...)
			return nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: topic})
			id := w.accept()
			for range 2 {
				w.deliver(id)
				w.drain(time.Minute)
			}
			w.want(id, storage.MessageDead, storage.StatePending, 202, "", 1)
			m := w.message(id)
			if want := `{"id":"ch_` + string(id) + `"}`; m.KeptDelivered == nil || string(m.KeptDelivered.Evidence) != want || m.KeptDelivered.Reference != "ch_"+string(id) || m.LastOutcome != "delivered" {
				t.Errorf("kept %+v, outcome %q", m.KeptDelivered, m.LastOutcome)
			}
			if letters := w.queue.Letters(); len(letters) != 1 || w.logged("outbox.settle_failed") != 1 || w.logged("outbox.dead") != 1 || w.provider.called() != 1 {
				t.Errorf("letters %+v, %d and %d alarms, %d calls", letters, w.logged("outbox.settle_failed"), w.logged("outbox.dead"), w.provider.called())
			}
		})
	}
}

func TestKeptEvidenceIsBounded(t *testing.T) {
	w := newWorld(t, options{topic: func(topic *outbox.Topic) {
		settling(func(storage.Message, outbox.Outcome, *outbox.Settlement) error { return errors.New("no") })(topic)
	}})
	id := w.accept()
	_, err := w.worker.Settle(t.Context(), id, outbox.Delivered{Evidence: make([]byte, 1<<20)})
	w.ok(err)
	if m := w.message(id); m.KeptDelivered == nil || len(m.KeptDelivered.Evidence) != 72<<10 {
		t.Errorf("kept %d bytes, want 72 KiB", len(m.KeptDelivered.Evidence))
	}
}

// Two answers that contradict each other fit into one item with the largest payload, in whatever order they are kept. Neither is cut
// for the other's sake: two processes may keep them at the same instant, and neither knows of the other's then.
func TestOfTwoAnswersThatContradictEachOtherAsMuchIsKept(t *testing.T) {
	large := make([]byte, 1<<20)
	for name, answers := range map[string][]outbox.Outcome{
		"delivered first": {outbox.Delivered{Evidence: large}, outbox.Declined{Evidence: large}},
		"declined first":  {outbox.Declined{Evidence: large}, outbox.Delivered{Evidence: large}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: settling(func(storage.Message, outbox.Outcome, *outbox.Settlement) error { return errors.New("no") })})
			id := w.accept()
			for _, answer := range answers {
				_, err := w.worker.Settle(t.Context(), id, answer)
				w.ok(err)
			}
			m := w.message(id)
			if m.KeptDelivered == nil || m.KeptDeclined == nil {
				t.Fatalf("kept %v and %v, want both answers", m.KeptDelivered != nil, m.KeptDeclined != nil)
			}
			if delivered, declined := len(m.KeptDelivered.Evidence), len(m.KeptDeclined.Evidence); delivered != outbox.EvidenceBytesMax || declined != outbox.EvidenceBytesMax {
				t.Errorf("%d and %d bytes are kept, want 72 KiB of each", delivered, declined)
			}
		})
	}
}

// A reference is a name, and is stored beside the evidence up to three times: what is longer than any name is none, whoever brings it.
func TestAnAnswerWithALongReferenceIsNoEvidence(t *testing.T) {
	for bytes, taken := range map[int]bool{1 << 10: true, 1<<10 + 1: false} {
		for name, answer := range map[string]outbox.Outcome{
			"delivered": outbox.Delivered{Reference: strings.Repeat("x", bytes)}, "declined": outbox.Declined{Reference: strings.Repeat("x", bytes)},
		} {
			t.Run(fmt.Sprintf("%s, %d bytes", name, bytes), func(t *testing.T) {
				final := storage.MessageState(name)
				brings := func(by string, state storage.MessageState, bring func(*world, idem.MessageID) bool) {
					t.Helper()
					w := newWorld(t, options{topic: func(topic *outbox.Topic) {
						topic.Call = func(context.Context, storage.Message) outbox.Outcome { return answer }
						topic.Probe = func(context.Context, storage.Message) outbox.Finding { return outbox.Found{Outcome: answer} }
					}})
					id := w.accept(func(m *storage.Message) { m.State = state })
					refused := bring(w, id)
					if m := w.message(id); refused == taken || taken != (m.State == final) || !taken && (m.State.Final() || m.Reference != "") {
						t.Errorf("%s: refused: %v; the message is %s, with a reference of %d bytes", by, refused, m.State, len(m.Reference))
					}
				}
				brings("a call", storage.MessagePending, func(w *world, id idem.MessageID) bool {
					w.deliver(id)
					return w.message(id).LastOutcome == "ambiguous"
				})
				brings("a probe", storage.MessageUnknown, func(w *world, _ idem.MessageID) bool {
					w.clock.Add(time.Hour)
					_, err := w.reconcile(t.Context())
					w.ok(err)
					return w.logged("idempotency.probe_unclear") == 1
				})
				brings("a webhook", storage.MessageUnknown, func(w *world, id idem.MessageID) bool {
					_, err := w.worker.Settle(t.Context(), id, answer)
					return err != nil
				})
				brings("a person", storage.MessageUnknown, func(w *world, id idem.MessageID) bool {
					_, err := w.operator.Settle(t.Context(), id, w.seen(id), answer)
					return errors.As(err, new(*outbox.RefusalError))
				})
			})
		}
	}
}

// Evidence that comes after the operation was given up is kept with an alarm; the stored answer stays.
func TestEvidenceAfterTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		message  storage.MessageState
		evidence bool
		alarm    string
	}{
		"after the record failed":      {storage.MessageDead, true, "outbox.settle_failed"},
		"after the message was closed": {storage.MessageCancelled, true, "outbox.evidence_late"},
		"other evidence than settled":  {storage.MessageDeclined, false, "outbox.evidence_differs"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			id := w.accept()
			w.provider.during = func() { // an operator ends it while the call is under way
				r := w.record(id)
				pending := storage.FenceOf(r)
				r.State, r.Response, r.DoneAt, r.ExpiresAt = storage.StateFailed, idem.Response{Status: 408}, noon, noon.Add(time.Hour)
				w.rewrite(id, func(m *storage.Message) { m.State, m.DoneAt = c.message, noon })
				w.ok(w.inner.Update(t.Context(), r, pending))
			}
			w.deliver(id)
			w.want(id, c.message, storage.StateFailed, 408, "", 1)
			if m := w.message(id); (m.KeptDelivered != nil) != c.evidence {
				t.Errorf("kept %+v", m.KeptDelivered)
			}
			if w.logged(c.alarm) != 1 {
				t.Errorf("no alarm %s", c.alarm)
			}
		})
	}
}

// docs/design.md "Rules of evidence": what agrees with the settlement in everything but its reference is about another object at the
// provider, and a person must look: the key may have been executed twice. The answer stays.
func TestEvidenceOfAnotherObjectThanTheSettledOneRings(t *testing.T) {
	for name, c := range map[string]struct {
		same, other outbox.Outcome
		state       storage.MessageState
	}{
		"delivered": {outbox.Delivered{Reference: "ch_1"}, outbox.Delivered{Reference: "ch_2"}, storage.MessageDelivered},
		"declined":  {outbox.Declined{Reference: "ch_1"}, outbox.Declined{Reference: "ch_2"}, storage.MessageDeclined},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			id := w.accept()
			w.tidings(id, c.same)
			w.tidings(id, c.same)
			if got := w.logged("outbox.evidence_differs"); got != 0 {
				t.Errorf("the same evidence again: %d alarms", got)
			}
			w.tidings(id, c.other)
			if got := w.logged("outbox.evidence_differs"); got != 1 {
				t.Errorf("%d alarms", got)
			}
			if m := w.message(id); m.State != c.state || m.Reference != "ch_1" {
				t.Errorf("the message is %s of %s", m.State, m.Reference)
			}
		})
	}
}

// A settlement without a reply is sent again as it was prepared, under the same token; each phase of a chain has a token of its own.
func TestASettlementIsPreparedOnceHoweverOftenItIsSent(t *testing.T) {
	w := newWorld(t, options{topic: twoPhases(false)})
	id := w.accept()
	w.store.On(faulty.Settle, 1, faulty.LoseReply())
	w.store.On(faulty.Settle, 2, faulty.Refuse(storage.ErrThrottled))
	w.store.On(faulty.Settle, 3, faulty.LoseRequest())
	w.deliver(id)
	second := w.message(id).OperationID.Message(2)
	if tokens, sent := w.store.Prepared(), w.store.Count(faulty.Settle); len(tokens) != 1 || sent != 4 {
		t.Errorf("sent %d times, prepared as %q", sent, tokens)
	}
	w.deliver(second)
	w.want(second, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	if tokens := w.store.Prepared(); len(tokens) != 2 || tokens[0] == tokens[1] {
		t.Errorf("prepared as %q", tokens)
	}
}

// A chain: the settlement of one phase writes the next message, whose id is the next downstream key.
func TestChain(t *testing.T) {
	phases := func(m storage.Message, o outbox.Outcome, said *outbox.Settlement) error {
		if _, ok := o.(outbox.Delivered); ok && m.Index == 1 {
			said.Next = &outbox.Next{Topic: topicName, Payload: []byte("second")}
		}
		return nil
	}
	t.Run("to its end", func(t *testing.T) {
		w := newWorld(t, options{topic: settling(phases)})
		id := w.accept()
		w.store.On(faulty.Settle, 1, faulty.LoseReply())
		w.deliver(id)
		w.want(id, storage.MessageDelivered, storage.StatePending, 202, "delivered", 1)
		second := w.message(w.message(id).OperationID.Message(2))
		if second.State != storage.MessagePending || string(second.Payload) != "second" || second.Tenant != "t" || second.Retention != 24*time.Hour {
			t.Fatalf("second message: %+v", second)
		}
		w.deliver(second.ID)
		w.want(second.ID, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	})
	t.Run("given up in the second phase", func(t *testing.T) {
		w := newWorld(t, options{topic: settling(phases)})
		id := w.accept()
		w.deliver(id)
		second := w.message(id).OperationID.Message(2)
		w.provider.script = []string{"400"}
		w.deliver(second)
		w.want(second, storage.MessageDead, storage.StateFailed, 502, "not_executed", 0)
	})
	t.Run("next although not executed", func(t *testing.T) {
		w := newWorld(t, options{topic: settling(func(_ storage.Message, _ outbox.Outcome, said *outbox.Settlement) error {
			said.Next = &outbox.Next{Topic: topicName}
			return nil
		})})
		id := w.accept()
		w.provider.script = []string{"400"}
		w.deliver(id)
		w.want(id, storage.MessageDead, storage.StatePending, 202, "", 0)
	})
	t.Run("too long", func(t *testing.T) {
		w := newWorld(t, options{topic: settling(func(_ storage.Message, _ outbox.Outcome, said *outbox.Settlement) error {
			said.Next = &outbox.Next{Topic: topicName}
			return nil
		})})
		id := w.accept(func(m *storage.Message) { m.ID, m.Index = m.OperationID.Message(16), 16 })
		w.deliver(id)
		w.want(id, storage.MessageDead, storage.StatePending, 202, "", 1)
	})
}

// A message of an operation that is complete without it: its end leaves the record alone.
func TestDetached(t *testing.T) {
	detached := func(m *storage.Message) { m.Detached = true }
	t.Run("delivered", func(t *testing.T) {
		w := newWorld(t, options{})
		id := w.accept(detached)
		w.deliver(id)
		w.want(id, storage.MessageDelivered, storage.StateCompleted, 202, "delivered", 1)
	})
	t.Run("given up", func(t *testing.T) {
		w := newWorld(t, options{})
		id := w.accept(detached)
		w.provider.script = []string{"400"}
		w.deliver(id)
		w.want(id, storage.MessageDead, storage.StateCompleted, 202, "not_executed", 0)
	})
	t.Run("has no chain", func(t *testing.T) {
		w := newWorld(t, options{topic: settling(func(_ storage.Message, _ outbox.Outcome, said *outbox.Settlement) error {
			said.Next = &outbox.Next{Topic: topicName}
			return nil
		})})
		id := w.accept(detached)
		w.deliver(id)
		if m := w.message(id); m.State != storage.MessageDead || m.KeptDelivered == nil {
			t.Errorf("message is %s, evidence %v", m.State, m.KeptDelivered)
		}
	})
}

// Giving up, with faults in the way of its transaction.
func TestGivingUpSurvivesFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault  faulty.Fault
		then   faulty.Fault
		topic  func(*outbox.Topic)
		record storage.State
		status int
		row    string
	}{
		"reply lost":   {fault: faulty.LoseReply(), record: storage.StateFailed, status: 502, row: "not_executed"},
		"request lost": {fault: faulty.LoseRequest(), record: storage.StateFailed, status: 502, row: "not_executed"},
		// Under its second token it meets itself.
		"reply lost, then contention": {
			fault: faulty.LoseReply(), then: faulty.Refuse(storage.ErrContention), record: storage.StateFailed, status: 502, row: "not_executed",
		},
		"contention": {fault: faulty.Refuse(storage.ErrContention), record: storage.StateFailed, status: 502, row: "not_executed"},
		"settle fails": {record: storage.StatePending, status: 202, topic: settling(
			func(storage.Message, outbox.Outcome, *outbox.Settlement) error { return errors.New("settle") })},
		"a business write fails": {record: storage.StatePending, status: 202, topic: settling(
			func(_ storage.Message, _ outbox.Outcome, said *outbox.Settlement) error {
				said.Writes = append(said.Writes, memstore.Write{Key: "balance", Condition: func([]byte) bool { return false }})
				return nil
			})},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: c.topic})
			if c.fault != nil {
				w.store.On(faulty.Settle, 1, c.fault)
			}
			if c.then != nil {
				w.store.On(faulty.Settle, 2, c.then)
			}
			w.provider.script = []string{"400"}
			id := w.accept()
			for range 2 {
				w.deliver(id)
			}
			w.want(id, storage.MessageDead, c.record, c.status, c.row, 0)
			if letters := w.queue.Letters(); len(letters) != 1 || w.logged("outbox.dead") != 1 {
				t.Errorf("letters %+v, %d alarms; want one each", letters, w.logged("outbox.dead"))
			}
		})
	}
}

// A worker killed between the back-off that ends the attempts and the death: whoever comes next gives up.
func TestDeathIsResumed(t *testing.T) {
	w := newWorld(t, options{})
	w.provider.script = []string{"400"}
	id := w.accept()
	w.store.On(faulty.Settle, 1, faulty.Before(func() { w.store.All(faulty.Refuse(errDown)) }))
	w.store.On(faulty.Settle, 1, faulty.Refuse(errDown))
	if err := w.worker.Deliver(t.Context(), id); !errors.Is(err, errDown) {
		t.Fatalf("deliver: %v", err)
	}
	w.store.Clear()
	w.want(id, storage.MessagePending, storage.StatePending, 202, "", 0)
	w.clock.Add(time.Minute)
	report, err := w.sweep(t.Context())
	if err != nil || report.Dead != 1 {
		t.Errorf("sweep: %+v, %v", report, err)
	}
	w.want(id, storage.MessageDead, storage.StateFailed, 502, "not_executed", 0)
	if w.provider.called() != 1 {
		t.Errorf("%d calls, want 1", w.provider.called())
	}
}

func TestNoWakeUpMatters(t *testing.T) {
	w := newWorld(t, options{wakes: deaf{}})
	w.provider.script = []string{"429"}
	id := w.accept()
	w.deliver(id)
	w.want(id, storage.MessagePending, storage.StatePending, 202, "", 0)
	if !strings.Contains(w.log.String(), "outbox.wake_up_lost") {
		t.Error("a lost wake-up leaves no line")
	}
}

// A worker whose clock is ahead gives up what another has just claimed: the fence refuses (invariant I8).
func TestGivingUpIsFenced(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept(func(m *storage.Message) { m.CreatedAt = noon.Add(-24 * time.Hour) })
	w.store.On(faulty.Settle, 1, faulty.Before(func() {
		w.rewrite(id, claimed(time.Minute))
	}))
	w.deliver(id)
	w.want(id, storage.MessageClaimed, storage.StatePending, 202, "", 0)
	if letters := w.queue.Letters(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// The message disappears, or is settled by another, while its evidence is under way.
func TestEvidenceMeetsAnotherEnd(t *testing.T) {
	t.Run("settled while it was to be kept", func(t *testing.T) {
		w := newWorld(t, options{topic: settling(func(storage.Message, outbox.Outcome, *outbox.Settlement) error { return errors.New("settle") })})
		id := w.accept()
		w.store.On(faulty.PatchMessage, 1, faulty.Before(func() {
			w.rewrite(id, func(m *storage.Message) {
				m.State, m.Reference, m.DoneAt = storage.MessageDelivered, "ch_"+string(id), noon
			})
		}))
		w.deliver(id)
		if m := w.message(id); m.State != storage.MessageDelivered || len(w.queue.Letters()) != 0 {
			t.Errorf("message %s, letters %+v", m.State, w.queue.Letters())
		}
	})
	for name, topic := range map[string]func(*outbox.Topic){
		"gone while it was to be settled": nil,
		"gone while it was to be kept":    settling(func(storage.Message, outbox.Outcome, *outbox.Settlement) error { return errors.New("settle") }),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: topic})
			id := w.accept()
			w.provider.during = func() {
				w.rewrite(id, func(m *storage.Message) { m.State, m.DoneAt, m.RemoveAt = storage.MessageCancelled, noon, noon })
				w.inner.Expire(noon.Add(1000 * time.Hour))
			}
			w.deliver(id)
			if w.logged("outbox.message_gone") != 1 {
				t.Error("no alarm")
			}
		})
	}
}

func TestSettleWhileTheStoreGoesDown(t *testing.T) {
	w := newWorld(t, options{topic: settling(func(storage.Message, outbox.Outcome, *outbox.Settlement) error { return errors.New("settle") })})
	id := w.accept()
	for n := 1; n <= 3000; n++ { // for longer than KeepMax
		w.store.On(faulty.PatchMessage, n, faulty.Refuse(errDown))
	}
	if err := w.worker.Deliver(t.Context(), id); !errors.Is(err, errDown) {
		t.Errorf("evidence that could not be kept: %v, want the store's error", err)
	}
	w.want(id, storage.MessageClaimed, storage.StatePending, 202, "", 1) // its provider honours keys: it is asked again
}

// A message says who ended it, and one that has not ended says nothing.
func TestAMessageSaysWhoEndedIt(t *testing.T) {
	w := newWorld(t, options{topic: func(topic *outbox.Topic) { keyless(topic); topic.Probe = nil }})
	ended := func(id idem.MessageID, want storage.Settler) {
		t.Helper()
		if m := w.message(id); m.SettledBy != want || m.State.Final() != (want != "") {
			t.Errorf("%s, settled by %q, want %q", m.State, m.SettledBy, want)
		}
	}
	id := w.accept()
	ended(id, "")
	w.deliver(id)
	ended(id, storage.SettledByWorker)

	id = w.accept()
	w.crowded(faulty.Settle, 1000)
	_ = w.worker.Deliver(t.Context(), id) // its answer is kept
	w.store.Clear()
	ended(id, "")
	w.clock.Add(time.Minute)
	w.swept(outbox.Counts{Settled: 1})
	ended(id, storage.SettledBySweep)

	id = w.accept()
	if _, err := w.worker.Settle(t.Context(), id, outbox.Delivered{Reference: "ch_1"}); err != nil {
		t.Fatal(err)
	}
	ended(id, storage.SettledByWebhook)

	id = w.accept(dead)
	if _, err := w.operator.Settle(t.Context(), id, w.seen(id), outbox.Declined{}); err != nil {
		t.Fatal(err)
	}
	ended(id, storage.SettledByOperator)

	id = w.accept(dead)
	w.clock.Add(time.Hour)
	w.ok(w.operator.Close(t.Context(), id, w.seen(id)))
	ended(id, storage.SettledByOperator)
}

func TestAMessageThatWasAskedAboutSaysSo(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept(parked)
	w.provider.charges[id] = 1
	w.decided(id, outbox.DecisionSettled)
	if m := w.message(id); m.SettledBy != storage.SettledByReconciler {
		t.Errorf("%s, settled by %q", m.State, m.SettledBy)
	}
}

// Every message of a chain that a request delivers by itself says so.
func TestAMessageThatWasDeliveredInlineSaysSo(t *testing.T) {
	c := newChain(t, nil)
	id := c.payout(c.operation(false), idem.OutcomeExecuted, 201)
	for n := 1; n <= 2; n++ {
		if m := c.message(id.Message(n)); m.SettledBy != storage.SettledByInline {
			t.Errorf("message %d is %s, settled by %q", n, m.State, m.SettledBy)
		}
	}
}
