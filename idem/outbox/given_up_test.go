package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// Evidence comes to a dead message and can't be settled. While it is being kept an operator redrives the message: what was meant
// for the dead message must not make it dead again.
func TestEvidenceThatIsBeingKeptBuriesNoRedrive(t *testing.T) {
	w := newWorld(t, options{})
	id := w.accept(dead)
	w.clock.Add(time.Hour)
	w.store.Each(func(c faulty.Call) faulty.Fault {
		if c == faulty.Settle {
			return faulty.Refuse(storage.ErrThrottled)
		}
		return func(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
	})
	w.store.On(faulty.PatchMessage, 1, faulty.Before(func() {
		operator, err := outbox.NewOperator(w.inner, w.topics, w.queue, w.queue)
		w.ok(err)
		if _, err := operator.Redrive(t.Context(), id, w.seen(id)); err != nil {
			t.Error(err)
		}
	}))
	if _, err := w.worker.Settle(t.Context(), id, charged); err != nil {
		t.Error(err)
	}
	if m := w.message(id); m.State != storage.MessageEvidenced || m.KeptDelivered == nil || w.logged("outbox.settle_failed") > 0 {
		t.Errorf("message is %s and keeps %+v, want it evidenced and no alarm", m.State, m.KeptDelivered)
	}
	w.store.Clear()
	w.clock.Add(time.Minute)
	_, err := w.sweep(t.Context())
	w.ok(err)
	w.drain(time.Minute)
	w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 0)
}

// Nobody takes from the queue what the provider is known to have: no record says what it meant.
func TestADetachedMessageThatKeepsADeliveryIsNotClosed(t *testing.T) {
	w := newWorld(t, options{topic: unsettlingOnce()})
	id := w.accept(func(m *storage.Message) { m.Detached = true })
	w.deliver(id)
	if m := w.message(id); m.State != storage.MessageDead || m.KeptDelivered == nil {
		t.Fatalf("message is %s and keeps %+v", m.State, m.KeptDelivered)
	}
	w.clock.Add(48 * time.Hour)
	var refusal *outbox.RefusalError
	if err := w.operator.Close(t.Context(), id, w.seen(id)); !errors.As(err, &refusal) {
		t.Errorf("a close: %v, want it refused", err)
	}
	if _, err := w.operator.Redrive(t.Context(), id, w.seen(id)); err != nil {
		t.Error(err)
	}
	if m, row := w.message(id), string(w.inner.Row("payment "+string(id))); m.State != storage.MessageDelivered || !strings.Contains(row, "delivered") {
		t.Errorf("after a redrive the message is %s, its row %q", m.State, row)
	}
}

// What was given up has been written as not executed. A delivery that comes later is settled, because it is the truth, and an
// operator hears that both were written: also where the settlement did not know that the message was given up.
func TestADeliveryAfterADetachedMessageWasGivenUpRings(t *testing.T) {
	t.Run("evidence comes", func(t *testing.T) {
		w := newWorld(t, options{})
		id := w.accept(func(m *storage.Message) { m.Detached = true })
		w.provider.script = []string{"400"}
		w.deliver(id)
		if m := w.message(id); m.State != storage.MessageDead || m.Unfailed {
			t.Fatalf("message %+v, want it given up", m)
		}
		if _, err := w.worker.Settle(t.Context(), id, charged); err != nil {
			t.Error(err)
		}
		if m := w.message(id); m.State != storage.MessageDelivered || w.logged("outbox.evidence_differs") != 1 {
			t.Errorf("message is %s, want it delivered with an alarm", m.State)
		}
	})
	t.Run("it is given up while it is being settled", func(t *testing.T) {
		w := newWorld(t, options{})
		id := w.accept(func(m *storage.Message) { m.Detached = true })
		w.store.On(faulty.Settle, 1, faulty.Before(func() {
			other, err := outbox.NewWorker(w.inner, w.topics, w.queue, w.queue)
			w.ok(err)
			w.provider.script = []string{"400"}
			w.ok(other.Deliver(t.Context(), id))
		}))
		if _, err := w.worker.Settle(t.Context(), id, charged); err != nil {
			t.Error(err)
		}
		if m := w.message(id); m.State != storage.MessageDelivered || w.logged("outbox.evidence_differs") != 1 {
			t.Errorf("message is %s, want it delivered with an alarm", m.State)
		}
	})
}

// A decline of what was given up is no news: the writes that say that nothing happened are not made a second time, by whomever it
// comes. Where nothing was written the decline is settled.
func TestADeclineAfterADetachedMessageWasGivenUpWritesNothingTwice(t *testing.T) {
	for want, silent := range map[string]bool{"not_executed;": false, "declined;": true} {
		t.Run(want, func(t *testing.T) {
			w := newWorld(t, options{topic: func(topic *outbox.Topic) {
				topic.Settle = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
					if _, ok := o.(outbox.NotExecuted); ok && silent {
						return outbox.Settlement{}, nil
					}
					more := func(row []byte) []byte { return append(row, o.Name()+";"...) }
					return outbox.Settlement{Writes: []idem.Write{memstore.Write{Key: "payment " + string(m.ID), Apply: more}}}, nil
				}
			}})
			id := w.accept(func(m *storage.Message) { m.Detached = true })
			w.provider.script = []string{"400"}
			w.deliver(id)
			declined := outbox.Declined{Reference: "no"}
			if _, err := w.worker.Settle(t.Context(), id, declined); err != nil {
				t.Error(err)
			}
			if m := w.message(id); !silent && m.KeptDeclined == nil || silent && m.State != storage.MessageDeclined {
				t.Errorf("message is %s and keeps %+v", m.State, m.KeptDeclined)
			}
			// What a person says of it afterwards may be refused.
			var refusal *outbox.RefusalError
			if _, err := w.operator.Redrive(t.Context(), id, w.seen(id)); err != nil && !errors.As(err, &refusal) {
				t.Error(err)
			}
			if _, err := w.operator.Settle(t.Context(), id, w.seen(id), declined); err != nil && !errors.As(err, &refusal) {
				t.Error(err)
			}
			w.drain(time.Hour)
			if row := string(w.inner.Row("payment " + string(id))); row != want {
				t.Errorf("written %q, want %q", row, want)
			}
		})
	}
}

// A decline that can't be settled buries a detached message of which no call is known: nobody has told the application that it did
// not happen, so that the decline is settled, once, by a redrive as by a person. Neither rings as if both had been written.
func TestADeclineThatBuriedADetachedMessageIsSettled(t *testing.T) {
	declined := outbox.Declined{Reference: "no"}
	restored := func(c *outbox.Config) { c.RefuseBefore = noon.Add(time.Minute) }
	for name, c := range map[string]struct {
		config func(*outbox.Config)
		script []string
		ends   func(w *world, id idem.MessageID) error
	}{
		"restored, redriven": {restored, nil, redrives},
		"restored, a person's word": {restored, nil, func(w *world, id idem.MessageID) error {
			_, err := w.operator.Settle(w.Context(), id, w.seen(id), declined)
			return err
		}},
		"not executed, then declined, redriven": {nil, []string{"429"}, redrives},
	} {
		t.Run(name, func(t *testing.T) {
			broken := true
			w := newWorld(t, options{config: c.config, topic: func(topic *outbox.Topic) {
				topic.Settle = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
					if broken {
						return outbox.Settlement{}, errors.New("the funds are not reserved")
					}
					more := func(row []byte) []byte { return append(row, o.Name()+";"...) }
					return outbox.Settlement{Writes: []idem.Write{memstore.Write{Key: "payment " + string(m.ID), Apply: more}}}, nil
				}
			}})
			id := w.accept(func(m *storage.Message) { m.Detached = true })
			if w.provider.script = c.script; c.script != nil {
				w.deliver(id)
			}
			if _, err := w.worker.Settle(t.Context(), id, declined); err != nil {
				t.Error(err)
			}
			if m := w.message(id); m.State != storage.MessageDead || m.KeptDeclined == nil || !m.OpenSince.IsZero() {
				t.Fatalf("message %+v, want it dead with its decline, and no call known", m)
			}
			broken = false
			w.clock.Add(time.Hour)
			w.ok(c.ends(w, id))
			m, row := w.message(id), string(w.inner.Row("payment "+string(id)))
			if m.State != storage.MessageDeclined || row != "declined;" || w.logged("outbox.evidence_differs") != 0 {
				t.Errorf("message is %s, written %q, %d alarms; want it declined, once and silently", m.State, row, w.logged("outbox.evidence_differs"))
			}
		})
	}
}

func redrives(w *world, id idem.MessageID) error {
	_, err := w.operator.Redrive(w.Context(), id, w.seen(id))
	return err
}

// Only what was done lives as long as its resource, whatever status the answer of an undone operation has.
func TestAnUndoneOperationExpiresAfterItsRetention(t *testing.T) {
	w := newWorld(t, options{topic: settling(func(m storage.Message, o outbox.Outcome, said *outbox.Settlement) error {
		_, declined := o.(outbox.Declined)
		switch {
		case m.Index == 1:
			said.Next = &outbox.Next{Topic: topicName, Payload: []byte("second")}
		case m.Index == 2 && declined:
			said.Next = &outbox.Next{Topic: topicName, Payload: []byte("undo"), Undoes: true}
		case m.Index == 3:
			said.Response = idem.Response{Status: 200, Body: []byte(`{"status":"declined"}`)}
		}
		return nil
	})})
	id := w.accept(func(m *storage.Message) { m.Expiry = storage.Expiry{ResourceBacked: true} })
	w.deliver(id)
	op := w.message(id).OperationID
	w.provider.script = []string{"402"}
	w.deliver(op.Message(2))
	w.deliver(op.Message(3))
	r := w.record(id)
	if want := r.DoneAt.Add(r.Retention); r.State != storage.StateFailed || !r.ExpiresAt.Equal(want) || r.FreeAt.IsZero() {
		t.Errorf("record is %s, expires at %v and is free at %v, want %v", r.State, r.ExpiresAt, r.FreeAt, want)
	}
}

// Two instances would disagree about when the key of a settled operation is free.
func TestARunnersClockSkewIsAtLeastItsEngines(t *testing.T) {
	w := newWorld(t, options{})
	engine, err := idem.New(w.inner, idem.Config{ClockSkew: 10 * time.Second, LeaseMargin: 10 * time.Second})
	w.ok(err)
	var refused *idem.ConfigError
	if _, err := outbox.NewRunner(w.worker, engine, nil); !errors.As(err, &refused) || refused.Field != "Config.ClockSkew" {
		t.Errorf("%v, want Config.ClockSkew refused", err)
	}
}
