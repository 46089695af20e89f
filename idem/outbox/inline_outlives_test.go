package outbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// server is a process that delivers inline at a provider without keys that nobody can ask: only the process that called has
// the answer.
type server struct {
	*recordWorld
	op     *idem.Registered
	inline *outbox.Inline
	worker *outbox.Worker
	runner *outbox.Runner
	queue  *memqueue.Queue
	// calls counts them; answer is what the next one gets, and then happens what comes during it.
	calls  int
	answer outbox.Outcome
	during func()
}

// deadline is what a client waits for.
const deadline = 20 * time.Second

func served(t *testing.T, cfg idem.Config, test func(t *testing.T, s *server)) {
	t.Helper()
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		s := &server{recordWorld: w, queue: memqueue.New(time.Now), answer: outbox.Delivered{Reference: "ch_1"}, during: func() {}}
		topics, err := outbox.NewTopics(w.cfg, outbox.Topic{Name: topicName, Settle: settle, Call: func(context.Context, storage.Message) outbox.Outcome {
			s.calls++
			s.during()
			return s.answer
		}})
		w.ok(err)
		s.worker, err = outbox.NewWorker(w.store, topics, s.queue, s.queue)
		w.ok(err)
		s.inline, err = outbox.NewInline(s.worker)
		w.ok(err)
		s.runner, err = outbox.NewRunner(s.worker, nil, nil)
		w.ok(err)
		cfg.Logger = w.cfg.Logger
		engine, err := idem.New(w.store, cfg)
		w.ok(err)
		s.op, err = engine.Register(idem.Operation{Name: charging, Kind: idem.KindDeferred, Policy: idem.IETF(), Inline: s.inline})
		w.ok(err)
		test(t, s)
	})
}

// troubled has every call to the store fail for so long from the provider's next answer on.
func (s *server) troubled(trouble error, last time.Duration) {
	s.during = func() {
		until := time.Now().Add(last)
		s.store.All(func(ctx context.Context, run func(context.Context) error) error {
			if time.Now().Before(until) {
				return trouble
			}
			return run(ctx)
		})
	}
}

// charge is a client's request; it must have its 202 by its deadline.
func (s *server) charge(outcome idem.Outcome) idem.MessageID {
	s.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.Context(), deadline)
	defer cancel()
	result, err := s.op.Do(ctx, asking("k"), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Send(topicName, nil)
		return idem.Response{Status: 202}, nil
	})
	s.ok(err)
	if took := time.Since(began); result.Outcome != outcome || result.Response.Status != 202 || took > deadline {
		s.Errorf("%s with %d after %v, want %s with 202 within %v", result.Outcome, result.Response.Status, took, outcome, deadline)
	}
	return result.OperationID.Message(1)
}

func (s *server) message(id idem.MessageID) storage.Message {
	s.Helper()
	m, err := s.mem.Message(s.Context(), id)
	s.ok(err)
	return *m
}

// waits demands how a wait of so long ends.
func (s *server) waits(most time.Duration, want error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), most)
	defer cancel()
	if err := s.inline.Wait(ctx); !errors.Is(err, want) {
		s.Errorf("wait: %v, want %v", err, want)
	}
}

// settled demands that the answer is kept, and ends its operation without another call.
func (s *server) settled(id idem.MessageID, calls int) {
	s.Helper()
	if m := s.message(id); m.State != storage.MessageEvidenced || m.KeptDelivered == nil || m.KeptDelivered.Reference != "ch_1" {
		s.Errorf("the message is %s and keeps %v", m.State, m.KeptDelivered)
	}
	time.Sleep(time.Minute)
	s.ok(s.worker.Deliver(s.Context(), id))
	if m := s.message(id); m.State != storage.MessageDelivered || s.calls != calls {
		s.Errorf("the message is %s after %d calls, want delivered after %d", m.State, s.calls, calls)
	}
}

// The store fails from the provider's answer on, until long after the client's deadline. The client has its 202 in time; the
// answer is sent on, and kept.
func TestInlineKeepsTheOnlyEvidenceBeyondTheDeadline(t *testing.T) {
	for name, trouble := range map[string]error{
		"throttled": storage.ErrThrottled, "credentials have expired": errDown, "the breaker is open": &storage.NotAskedError{Cause: errDown},
		"no reply": &storage.OutcomeUnknownError{Cause: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			served(t, idem.Config{}, func(t *testing.T, s *server) {
				s.troubled(trouble, time.Hour)
				id := s.charge(idem.OutcomeExecuted)
				s.waits(time.Minute, outbox.ErrUndrained)
				s.waits(time.Hour, nil)
				s.settled(id, 1)
			})
		})
	}
}

// A process that was frozen in its call has no time left to read what was lost. Nothing was: its decline is kept, and settles.
func TestADeclineThatComesBeyondTheDeadlineIsSettledLater(t *testing.T) {
	served(t, idem.Config{}, func(t *testing.T, s *server) {
		s.answer, s.during = outbox.Declined{Reference: "ch_no"}, func() { time.Sleep(3 * time.Minute) }
		ctx, cancel := context.WithTimeout(s.Context(), deadline)
		defer cancel()
		result, err := s.op.Do(ctx, asking("k"), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Send(topicName, nil)
			return idem.Response{Status: 202}, nil
		})
		s.ok(err)
		id := result.OperationID.Message(1)
		s.waits(time.Hour, nil)
		time.Sleep(time.Minute)
		s.ok(s.worker.Deliver(s.Context(), id))
		if m := s.message(id); m.State != storage.MessageDeclined || s.calls != 1 {
			t.Errorf("the message is %s after %d calls, want declined after one", m.State, s.calls)
		}
	})
}

// A request that goes on with what another one left has the only answer, too.
func TestAResumedDeliveryKeepsTheOnlyEvidenceBeyondTheDeadline(t *testing.T) {
	served(t, idem.Config{}, func(t *testing.T, s *server) {
		delivered := s.answer
		s.answer = outbox.NotExecuted{}
		s.charge(idem.OutcomeExecuted)
		time.Sleep(time.Minute)
		s.answer = delivered
		s.troubled(storage.ErrThrottled, time.Hour)
		id := s.charge(idem.OutcomeReplayed)
		s.waits(time.Hour, nil)
		s.settled(id, 2)
	})
}

// Meanwhile the sweep parks the message, whose claim is over: the evidence is kept all the same.
func TestEvidenceThatIsKeptLateSettlesWhatWasParkedMeanwhile(t *testing.T) {
	served(t, idem.Config{}, func(t *testing.T, s *server) {
		s.troubled(storage.ErrThrottled, 10*time.Minute)
		id := s.charge(idem.OutcomeExecuted)
		beside, err := outbox.NewTopics(s.cfg, outbox.Topic{Name: topicName, Settle: settle, Call: func(context.Context, storage.Message) outbox.Outcome {
			t.Error("called again")
			return outbox.Ambiguous{}
		}})
		s.ok(err)
		worker, err := outbox.NewWorker(s.mem, beside, s.queue, s.queue)
		s.ok(err)
		time.Sleep(time.Minute)
		s.ok(worker.Deliver(t.Context(), id))
		if m := s.message(id); m.State != storage.MessageUnknown {
			t.Fatalf("the message is %s, want unknown", m.State)
		}
		s.waits(time.Hour, nil)
		s.settled(id, 1)
	})
}

// Where the platform kills at the deadline nothing goes on after it: what a thawed process would send later is not counted on.
func TestInlineEndsAtTheDeadlineOfAPlatformThatKills(t *testing.T) {
	served(t, idem.Config{KillsAtDeadline: true}, func(t *testing.T, s *server) {
		s.troubled(storage.ErrThrottled, time.Hour)
		id := s.charge(idem.OutcomeExecuted)
		s.waits(time.Millisecond, nil)
		time.Sleep(2 * time.Hour)
		if m := s.message(id); m.State != storage.MessageClaimed || m.KeptDelivered != nil {
			t.Errorf("the message is %s and keeps %v", m.State, m.KeptDelivered)
		}
	})
}

// A process that is told to end waits for what its requests have left behind, for as long as it drains.
func TestRunWaitsForWhatInlineDeliveryKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		last time.Duration
		want error
	}{
		"in time": {50 * time.Second, nil}, "too long": {time.Hour, outbox.ErrUndrained},
	} {
		t.Run(name, func(t *testing.T) {
			served(t, idem.Config{}, func(t *testing.T, s *server) {
				s.troubled(storage.ErrThrottled, c.last)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- s.runner.Run(ctx, outbox.RunConfig{Queue: s.queue, Drain: time.Minute}) }()
				id := s.charge(idem.OutcomeExecuted)
				stop()
				if err := <-ended; !errors.Is(err, c.want) {
					t.Errorf("run: %v, want %v", err, c.want)
				}
				if kept := s.message(id).KeptDelivered != nil; kept != (c.want == nil) {
					t.Errorf("kept: %v", kept)
				}
				s.waits(2*time.Hour, nil) // the bubble's goroutines end with it
			})
		})
	}
}

// A runner that ends while a request is still being served waits for that request's delivery, too.
func TestRunWaitsForInlineDeliveriesUnderWay(t *testing.T) {
	served(t, idem.Config{}, func(t *testing.T, s *server) {
		s.troubled(storage.ErrThrottled, 50*time.Second)
		ctx, stop := context.WithCancel(t.Context())
		ended, answered := make(chan error), make(chan idem.MessageID)
		go func() { ended <- s.runner.Run(ctx, outbox.RunConfig{Queue: s.queue, Drain: 2 * time.Minute}) }()
		go func() { answered <- s.charge(idem.OutcomeExecuted) }()
		time.Sleep(deadline / 2)
		stop()
		var id idem.MessageID
		select {
		case id = <-answered:
		case err := <-ended:
			t.Fatalf("run has ended while a delivery was under way: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if s.message(id).KeptDelivered == nil {
			t.Error("the answer is lost")
		}
	})
}

// What is settled within its request leaves nothing behind.
func TestWaitWithNothingToKeepReturnsAtOnce(t *testing.T) {
	served(t, idem.Config{}, func(t *testing.T, s *server) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.inline.Wait(ended); err != nil {
			t.Errorf("nothing was delivered: %v", err)
		}
		s.store.On(faulty.Settle, 1, faulty.Refuse(storage.ErrThrottled))
		ctx, stop := context.WithTimeout(t.Context(), deadline)
		defer stop()
		result, err := s.op.Do(ctx, asking("k"), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Send(topicName, nil)
			return idem.Response{Status: 202}, nil
		})
		if err != nil || result.Response.Status != 201 {
			t.Errorf("%+v, %v", result, err)
		}
		if err := s.inline.Wait(ended); err != nil {
			t.Errorf("all was settled in time: %v", err)
		}
	})
}
