package seal_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
)

// shipping is a worker and a sweep over a vault, and what they were heard to do.
type shipping struct {
	*vault
	worker *outbox.Worker
	runner *outbox.Runner
	queue  *memqueue.Queue
	cfg    seal.Config
	log    bytes.Buffer
	// called are the payloads that the provider got; during runs within each call.
	called []string
	during func()
	// mute is a provider that proves nothing by its answer.
	mute bool
}

func newShipping(t *testing.T) *shipping {
	t.Helper()
	s := &shipping{vault: newVault(t, seal.Config{})}
	s.restart(t)
	return s
}

// restart is another process on the same tables: it holds no key.
func (s *shipping) restart(t *testing.T) {
	t.Helper()
	s.cfg.Logger = slog.New(slog.NewTextHandler(&s.log, nil))
	s.Store = s.with(t, s.cfg)
	topics := must(outbox.NewTopics(
		outbox.Config{Now: s.clock.Now, Pause: s.clock.Pause, Logger: s.cfg.Logger},
		outbox.Topic{Name: "orders.charge", Call: s.call, Settle: s.settle, Keys: outbox.Keys{Honoured: true, Retention: time.Hour}},
	))(t)
	s.queue = memqueue.New(s.clock.Now)
	s.worker = must(outbox.NewWorker(s, topics, s.queue, s.queue))(t)
	s.runner = must(outbox.NewRunner(s.worker, nil, nil))(t)
}

func (s *shipping) call(_ context.Context, m storage.Message) outbox.Outcome {
	s.called = append(s.called, string(m.Payload))
	if s.during != nil {
		s.during()
	}
	if s.mute {
		return outbox.Delivered{Reference: "ch_1"}
	}
	return outbox.Delivered{Reference: "ch_1", Evidence: []byte("evidence of " + string(m.Payload))}
}

func (s *shipping) settle(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	if !strings.HasPrefix(string(m.Payload), "pay ") {
		return outbox.Settlement{}, errors.New("a payload that nobody wrote")
	}
	write := memstore.Write{Key: "paid", Apply: func(row []byte) []byte { return append(row, 1) }}
	delivered, _ := o.(outbox.Delivered)
	return outbox.Settlement{Writes: []storage.Write{write}, Response: storage.Response{Status: 201, Body: delivered.Evidence}}, nil
}

// accept commits a deferred operation of ada's.
func (s *shipping) accept(t *testing.T) (storage.Record, storage.Message) {
	t.Helper()
	r, m := accepted(t, "ada", "pay ada")
	commit(t, s, r, m)
	return r, m
}

func (s *shipping) want(t *testing.T, m storage.Message, message storage.MessageState, record storage.State, calls int) {
	t.Helper()
	gotMessage, err := s.inner.Message(t.Context(), m.ID)
	ok(t, err)
	gotRecord, err := s.inner.Get(t.Context(), m.RecordKey)
	ok(t, err)
	if gotMessage.State != message || gotRecord.State != record || len(s.called) != calls {
		t.Errorf("message %s, record %s, %d calls; want %s, %s, %d", gotMessage.State, gotRecord.State, len(s.called), message, record, calls)
	}
}

func (s *shipping) alarms(t *testing.T, event string) {
	t.Helper()
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "msg="+event) && strings.Contains(line, "alarm=true") {
			return
		}
	}
	t.Errorf("no alarm %s in\n%s", event, s.log.String())
}

// A worker is handed the payload that was sent, by either wake-up: as it reads it, or as a stream shows it.
func TestASealedMessageIsDelivered(t *testing.T) {
	for name, deliver := range map[string]func(s *shipping, image storage.Message) error{
		"read": func(s *shipping, image storage.Message) error {
			return s.worker.Deliver(context.Background(), image.ID)
		},
		"image": func(s *shipping, image storage.Message) error {
			return s.worker.DeliverSeen(context.Background(), image)
		},
		"image, opened": func(s *shipping, image storage.Message) error {
			opened, err := s.OpenMessage(context.Background(), image)
			if err != nil {
				return err
			}
			return s.worker.DeliverSeen(context.Background(), opened)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShipping(t)
			r, m := s.accept(t)
			image, err := s.inner.Message(t.Context(), m.ID)
			ok(t, err)
			s.restart(t)
			ok(t, deliver(s, *image))
			s.want(t, m, storage.MessageDelivered, storage.StateCompleted, 1)
			wantBody(t, s, r.Key, "evidence of pay ada")
			if s.called[0] != "pay ada" {
				t.Errorf("the provider got %q", s.called[0])
			}
		})
	}
}

// A message waits while its key can't be fetched: no call, no death, no loss, however often somebody looks.
func TestAMessageWaitsForItsKey(t *testing.T) {
	s := newShipping(t)
	_, m := s.accept(t)
	s.restart(t)
	s.keys.answers(false)
	for range 20 {
		wantNoKey(t, s.worker.Deliver(t.Context(), m.ID))
		s.clock.Advance(time.Minute)
		if did, err := s.runner.Sweep(t.Context()); err != nil || did.Messages.Errors != 1 {
			t.Errorf("sweep: %+v, %v", did, err)
		}
	}
	s.want(t, m, storage.MessagePending, storage.StatePending, 0)
	s.keys.answers(true)
	ok(t, s.worker.Deliver(t.Context(), m.ID))
	s.want(t, m, storage.MessageDelivered, storage.StateCompleted, 1)
}

// A message whose payload is erased is never delivered: it ends dead and its operation fails, with an alarm and a dead
// letter, whoever meets it.
func TestAMessageOfAnErasedTenantEndsDead(t *testing.T) {
	for name, meet := range map[string]func(*testing.T, *shipping, storage.Message){
		"worker": func(t *testing.T, s *shipping, m storage.Message) { ok(t, s.worker.Deliver(t.Context(), m.ID)) },
		"stream": func(t *testing.T, s *shipping, m storage.Message) {
			image, err := s.inner.Message(t.Context(), m.ID)
			ok(t, err)
			ok(t, s.worker.DeliverSeen(t.Context(), *image))
		},
		"sweep": func(t *testing.T, s *shipping, _ storage.Message) {
			s.clock.Advance(time.Minute)
			if did, err := s.runner.Sweep(t.Context()); err != nil || did.Messages.Dead != 1 {
				t.Errorf("sweep: %+v, %v", did, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShipping(t)
			r, m := s.accept(t)
			before, err := s.inner.Message(t.Context(), m.ID)
			ok(t, err)
			s.keys.erase("ada")
			s.restart(t)
			meet(t, s, m)
			s.want(t, m, storage.MessageDead, storage.StateFailed, 0)
			s.alarms(t, "outbox.dead")
			letters := s.queue.Letters() // at least one: a sweep may meet it once more before its place has moved
			if len(letters) == 0 {
				t.Error("no dead letter")
			}
			for _, letter := range letters {
				if letter.Message != m.ID || letter.Reason != "payload can't be opened" {
					t.Errorf("dead letter %+v", letter)
				}
			}
			_, err = load(t, s, r.Key)
			wantErased(t, err)
			after, err := s.inner.Message(t.Context(), m.ID)
			if err != nil || !bytes.Equal(after.Payload, before.Payload) {
				t.Errorf("the payload became %q, %v", after.Payload, err)
			}
			ok(t, s.worker.Deliver(t.Context(), m.ID)) // it stays
			s.want(t, m, storage.MessageDead, storage.StateFailed, 0)
		})
	}
}

// So does a payload that somebody put there; the store raises an alarm of its own.
func TestAForgedPayloadIsNotDelivered(t *testing.T) {
	s := newShipping(t)
	_, m := s.accept(t)
	_, other := s.accept(t)
	stored, err := s.inner.Message(t.Context(), m.ID)
	ok(t, err)
	theirs, err := s.inner.Message(t.Context(), other.ID)
	ok(t, err)
	forged := *stored
	forged.Payload = theirs.Payload
	ok(t, s.inner.UpdateMessage(t.Context(), forged, storage.FenceOfMessage(*stored)))
	ok(t, s.worker.Deliver(t.Context(), m.ID))
	s.want(t, m, storage.MessageDead, storage.StateFailed, 0)
	s.alarms(t, "outbox.dead")
}

// An effect that happened just before an erasure is settled with its business writes; only its answer can't be read.
func TestAnErasureWhileAProviderIsCalled(t *testing.T) {
	s := newShipping(t)
	r, m := s.accept(t)
	s.clock.Advance(2*time.Minute + 29*time.Second + 500*time.Millisecond)
	s.during = func() {
		s.keys.erase("ada")
		s.clock.Advance(time.Second) // half of the key's age is over: it is fetched anew
	}
	ok(t, s.worker.Deliver(t.Context(), m.ID))
	s.want(t, m, storage.MessageDelivered, storage.StateCompleted, 1)
	if paid := s.inner.Row("paid"); len(paid) != 1 {
		t.Errorf("the business write happened %d times", len(paid))
	}
	_, err := load(t, s, r.Key)
	wantErased(t, err)
	if stored, err := s.inner.Message(t.Context(), m.ID); err != nil || stored.Reference != "ch_1" {
		t.Errorf("reference %q, %v", stored.Reference, err)
	}
}

// Evidence whose settlement finds no key is not lost, and nothing is given up for want of one: the next wake-up settles what
// could be kept, or asks the provider by the same key.
func TestASettlementWaitsForItsKey(t *testing.T) {
	for name, trouble := range map[string]func(*shipping){
		"none":                    func(s *shipping) { s.keys.answers(false) },
		"none to seal under":      func(s *shipping) { s.keys.opensOnly(true) },
		"an answer that is empty": func(s *shipping) { s.keys.opensOnly(true); s.mute = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShipping(t)
			_, m := s.accept(t)
			s.keys.rotate("ada")
			s.during = func() {
				trouble(s)
				s.Store = s.with(t, seal.Config{}) // as if its keys had grown too old
				s.during = nil
			}
			wantNoKey(t, s.worker.Deliver(t.Context(), m.ID))
			s.want(t, m, storage.MessageClaimed, storage.StatePending, 1)
			s.keys.answers(true)
			s.keys.opensOnly(false)
			s.clock.Advance(time.Minute)
			ok(t, s.worker.Deliver(t.Context(), m.ID))
			s.want(t, m, storage.MessageDelivered, storage.StateCompleted, 2)
		})
	}
}
