package outbox_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// held is a process whose requests call a provider that may hang: it answers each call after as long as it takes for that topic and
// tenant, or never in time.
type held struct {
	*recordWorld
	op     *idem.Registered
	worker *outbox.Worker
	queue  *memqueue.Queue

	mu    sync.Mutex
	takes map[string]time.Duration // by topic and tenant, or by topic
	calls map[idem.MessageID]int
	sent  int
}

const hangs = time.Hour

// holds runs the test in a bubble, whose clock moves calls; pauses last for exactly as long as is configured.
func holds(t *testing.T, cfg outbox.Config, topics []string, test func(t *testing.T, h *held)) {
	t.Helper()
	cfg.InlineWakes = true
	if cfg.Random == nil {
		cfg.Random = &evenly{}
	}
	bubble(t, cfg, func(t *testing.T, w *recordWorld) {
		h := &held{recordWorld: w, queue: memqueue.New(time.Now), takes: map[string]time.Duration{}, calls: map[idem.MessageID]int{}}
		var made []outbox.Topic
		for i, name := range topics {
			settles := settle
			if i+1 < len(topics) {
				settles = func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
					said, err := settle(m, o)
					said.Next = &outbox.Next{Topic: topics[i+1]}
					return said, err
				}
			}
			made = append(made, outbox.Topic{Name: name, Call: h.call, Settle: settles, Keys: outbox.Keys{Honoured: true, Retention: time.Hour}})
		}
		registered, err := outbox.NewTopics(w.cfg, made...)
		w.ok(err)
		h.worker, err = outbox.NewWorker(w.store, registered, h.queue, h.queue)
		w.ok(err)
		inline, err := outbox.NewInline(h.worker)
		w.ok(err)
		engine, err := idem.New(w.store, idem.Config{Logger: w.cfg.Logger})
		w.ok(err)
		h.op, err = engine.Register(idem.Operation{Name: charging, Kind: idem.KindDeferred, Policy: idem.IETF(), Inline: inline})
		w.ok(err)
		test(t, h)
	})
}

// evenly is a source whose jitter is in the middle of 15 s to 45 s, and whose ids differ all the same.
type evenly struct{ drawn atomic.Uint64 }

func (e *evenly) Read(p []byte) (int, error) {
	if jitter := len(p) == 8; jitter {
		binary.BigEndian.PutUint64(p, uint64(15*time.Second))
		return len(p), nil
	}
	copy(p, fmt.Sprintf("%016d", e.drawn.Add(1)))
	return len(p), nil
}

func (h *held) call(ctx context.Context, m storage.Message) outbox.Outcome {
	h.mu.Lock()
	h.calls[m.ID]++
	takes := max(h.takes[m.Topic+" "+m.Tenant], h.takes[m.Topic])
	h.mu.Unlock()
	select {
	case <-ctx.Done():
		return outbox.Ambiguous{Cause: ctx.Err()}
	case <-time.After(takes):
		return outbox.Delivered{Reference: "ch_1"}
	}
}

// take sets how long the provider takes for a topic, or for a topic and a tenant.
func (h *held) take(takes time.Duration, whom ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, who := range whom {
		h.takes[who] = takes
	}
}

// post sends a new request of the tenant, and says how long it held the process and what its message's id is.
func (h *held) post(tenant string) (status int, took time.Duration, id idem.OperationID) {
	h.mu.Lock()
	h.sent++
	key := fmt.Sprint("k", h.sent)
	h.mu.Unlock()
	return h.postAs(tenant, key)
}

func (h *held) postAs(tenant, key string) (status int, took time.Duration, id idem.OperationID) {
	h.Helper()
	began := time.Now()
	req := asking(key)
	req.Tenant = tenant
	ctx, cancel := context.WithTimeout(h.Context(), deadline)
	defer cancel()
	result, err := h.op.Do(ctx, req, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Send(topicName, nil)
		return idem.Response{Status: 202}, nil
	})
	h.ok(err)
	return result.Response.Status, time.Since(began), result.OperationID
}

// wants sends a new request of the tenant, and demands its status and how long it is held.
func (h *held) wants(tenant string, status int, takes time.Duration) idem.OperationID {
	h.Helper()
	got, took, id := h.post(tenant)
	if got != status || took != takes {
		h.Errorf("a request of %s: %d after %v, want %d after %v", tenant, got, took, status, takes)
	}
	return id
}

// work has a worker serve every wake-up of the next minute.
func (h *held) work() {
	h.Helper()
	for range 60 {
		for _, id := range h.queue.Take() {
			h.ok(h.worker.Deliver(h.Context(), id))
		}
		time.Sleep(time.Second)
	}
}

// told demands how many pauses have begun and ended, for a tenant or for all.
func (h *held) told(paused, resumed int) {
	h.Helper()
	begun, _ := h.lines("outbox.inline_paused")
	ended, alarms := h.lines("outbox.inline_resumed")
	if begun != paused || ended != resumed || alarms != 0 {
		h.Errorf("%d pauses and %d ends of one are logged, want %d and %d", begun, ended, paused, resumed)
	}
}

// A provider that hangs for one tenant holds one request of it in each pause, and nobody else's. What is left to a worker wakes one at
// once, and is called once.
func TestInlineLeavesToTheWorkerWhoseCallsHang(t *testing.T) {
	holds(t, outbox.Config{}, []string{topicName}, func(t *testing.T, h *held) {
		h.take(hangs, topicName+" a")
		h.wants("a", 202, 5*time.Second)
		h.queue.Take()
		left := h.wants("a", 202, 0)
		if m := h.message(left, 1); m.State != storage.MessagePending || m.Epoch != 0 || h.calls[m.ID] != 0 {
			t.Errorf("what is left is %s in epoch %d after %d calls, want pending and untouched", m.State, m.Epoch, h.calls[m.ID])
		}
		if got := h.queue.Take(); len(got) != 1 || got[0] != left.Message(1) {
			t.Errorf("wake-ups %v, want one of what is left, at once", got)
		}
		h.wants("b", 201, 0)
		h.told(1, 0)

		h.take(0, topicName+" a")
		h.ok(h.worker.Deliver(t.Context(), left.Message(1)))
		if m := h.message(left, 1); m.State != storage.MessageDelivered || h.calls[m.ID] != 1 {
			t.Errorf("what was left is %s after %d calls, want delivered with one", m.State, h.calls[m.ID])
		}
		h.wants("a", 202, 0) // the worker's calls say nothing about requests
		time.Sleep(30 * time.Second)
		h.wants("a", 201, 0)
		h.wants("a", 201, 0)
		h.told(1, 1)
	})
}

func (h *held) message(id idem.OperationID, n int) storage.Message {
	h.Helper()
	m, err := h.store.Message(h.Context(), id.Message(n))
	h.ok(err)
	return *m
}

// After a pause one request finds out, and the others stay with the worker meanwhile.
func TestInlineProbesWithOneRequestAfterAPause(t *testing.T) {
	holds(t, outbox.Config{}, []string{topicName}, func(t *testing.T, h *held) {
		h.take(hangs, topicName+" a")
		h.wants("a", 202, 5*time.Second)
		time.Sleep(30*time.Second - time.Millisecond)
		h.wants("a", 202, 0)
		time.Sleep(time.Millisecond)
		var probe sync.WaitGroup
		probe.Go(func() { h.wants("a", 202, 5*time.Second) })
		time.Sleep(time.Second)
		h.wants("a", 202, 0)
		probe.Wait()
		time.Sleep(29 * time.Second)
		h.wants("a", 202, 0)
		h.told(2, 0)
	})
}

// A pause ends where the clock was set back: it would last for as long as the clock had been wrong besides.
func TestInlinePauseEndsWithAClockThatIsSetBack(t *testing.T) {
	var back atomic.Int64
	clock := func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
	holds(t, outbox.Config{Now: clock, InlineSlowMax: 1}, []string{topicName}, func(t *testing.T, h *held) {
		h.take(hangs, topicName)
		h.wants("a", 202, 5*time.Second)
		h.take(0, topicName)
		h.wants("a", 202, 0)
		h.wants("b", 202, 0)
		back.Store(int64(time.Hour))
		h.wants("b", 201, 0) // the topic's pause
		h.wants("a", 201, 0) // the tenant's
	})
}

// Slow calls in a row, whatever tenants' they are, pause their topic for everybody; a quick one between them begins the count anew.
func TestInlinePausesATopicForEverybody(t *testing.T) {
	holds(t, outbox.Config{}, []string{topicName}, func(t *testing.T, h *held) {
		h.take(hangs, topicName+" a", topicName+" b", topicName+" c", topicName+" d")
		h.wants("a", 202, 5*time.Second)
		h.wants("b", 202, 5*time.Second)
		h.wants("sound", 201, 0)
		h.wants("c", 202, 5*time.Second)
		h.wants("d", 202, 5*time.Second)
		h.wants("sound", 201, 0)
		h.take(hangs, topicName)
		h.wants("e", 202, 5*time.Second)
		h.wants("f", 202, 5*time.Second)
		h.wants("g", 202, 5*time.Second)
		h.wants("h", 202, 0)
		h.wants("sound", 202, 0)
		h.told(8, 0) // seven tenants, and the topic
		h.take(0, topicName)
		time.Sleep(30 * time.Second)
		h.wants("h", 201, 0)
		h.wants("sound", 201, 0)
		h.told(8, 1)
	})
}

// An answer that comes late counts as a time-out does, and one that comes soon does not, whatever it says.
func TestInlinePausesAfterSlowAnswersToo(t *testing.T) {
	holds(t, outbox.Config{}, []string{topicName}, func(t *testing.T, h *held) {
		h.take(2500*time.Millisecond-time.Millisecond, topicName)
		h.wants("a", 201, 2499*time.Millisecond)
		h.take(2500*time.Millisecond, topicName)
		h.wants("a", 201, 2500*time.Millisecond)
		h.wants("a", 202, 0)
	})
}

// A probe whose commit fails is nobody's to report: the next one is made after another pause.
func TestInlineProbesAgainAfterAProbeThatWasNeverSent(t *testing.T) {
	holds(t, outbox.Config{}, []string{topicName}, func(t *testing.T, h *held) {
		h.take(hangs, topicName)
		h.wants("a", 202, 5*time.Second)
		h.take(0, topicName)
		time.Sleep(30 * time.Second)
		h.store.On(faulty.Commit, 1, faulty.Refuse(errors.New("a bug")))
		req := asking("lost")
		req.Tenant = "a"
		if _, err := h.op.Do(t.Context(), req, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Send(topicName, nil)
			return idem.Response{Status: 202}, nil
		}); err == nil {
			t.Error("a commit that fails was answered")
		}
		h.wants("a", 202, 0)
		time.Sleep(30 * time.Second)
		h.wants("a", 201, 0)
	})
}

// Of a chain whose second topic hangs the first message is still delivered within the request, and the second wakes a worker.
func TestInlineLeavesTheNextMessageOfAChain(t *testing.T) {
	const second = "payouts.second"
	holds(t, outbox.Config{}, []string{topicName, second}, func(t *testing.T, h *held) {
		h.take(hangs, second)
		h.wants("a", 202, 5*time.Second)
		h.queue.Take()
		id := h.wants("a", 202, 0)
		if one, two := h.message(id, 1), h.message(id, 2); one.State != storage.MessageDelivered || two.State != storage.MessagePending || two.Epoch != 0 {
			t.Errorf("the messages are %s and %s (epoch %d), want delivered, and pending and untouched", one.State, two.State, two.Epoch)
		}
		if got := h.queue.Take(); len(got) != 1 || got[0] != id.Message(2) {
			t.Errorf("wake-ups %v, want one of what is left, at once", got)
		}
		h.take(0, second)
		h.ok(h.worker.Deliver(t.Context(), id.Message(2)))
		if h.calls[id.Message(1)] != 1 || h.calls[id.Message(2)] != 1 {
			t.Errorf("calls %v, want one of each message", h.calls)
		}
	})
}

// A duplicate does not begin what its first request left to a worker.
func TestInlineDuplicateLeavesWhatIsPaused(t *testing.T) {
	holds(t, outbox.Config{}, []string{topicName}, func(t *testing.T, h *held) {
		h.take(hangs, topicName)
		h.wants("a", 202, 5*time.Second)
		_, _, id := h.postAs("a", "again")
		if status, took, _ := h.postAs("a", "again"); status != 202 || took != 0 || h.calls[id.Message(1)] != 0 {
			t.Errorf("%d after %v and %d calls, want 202 at once and none", status, took, h.calls[id.Message(1)])
		}
		h.take(0, topicName)
		time.Sleep(30 * time.Second)
		if status, _, _ := h.postAs("a", "again"); status != 201 || h.calls[id.Message(1)] != 1 {
			t.Errorf("after the pause: %d and %d calls, want 201 and one", status, h.calls[id.Message(1)])
		}
		h.work()
		if h.calls[id.Message(1)] != 1 {
			t.Errorf("%d calls, want one", h.calls[id.Message(1)])
		}
	})
}

// A duplicate of what calls nobody does not use up the one call that is let through after a pause, and evidence that is kept is settled
// within a request whether its topic is paused or not.
func TestInlineDuplicateThatCallsNobodyLeavesTheProbe(t *testing.T) {
	for state, settled := range map[storage.MessageState]bool{storage.MessageUnknown: false, storage.MessageDead: false, storage.MessageEvidenced: true} {
		t.Run(string(state), func(t *testing.T) {
			holds(t, outbox.Config{}, []string{topicName}, func(t *testing.T, h *held) {
				h.take(hangs, topicName)
				_, _, id := h.postAs("a", "first")
				m := h.message(id, 1)
				seen := storage.FenceOfMessage(m)
				if m.State, m.Revision = state, "changed"; settled {
					m.KeptDelivered, m.SweepAt = &storage.Kept{Reference: "ch_1"}, time.Now()
				}
				h.ok(h.mem.UpdateMessage(t.Context(), m, seen))
				again := func() {
					want := map[bool]int{false: 202, true: 201}[settled]
					if status, took, _ := h.postAs("a", "first"); status != want || took != 0 {
						t.Errorf("the duplicate: %d after %v, want %d at once", status, took, want)
					}
				}
				if settled {
					again() // within the pause
				}
				h.take(0, topicName)
				time.Sleep(30 * time.Second)
				again()
				h.wants("a", 201, 0)
				if h.calls[id.Message(1)] != 1 {
					t.Errorf("%d calls of the duplicate's message, want the first one only", h.calls[id.Message(1)])
				}
			})
		})
	}
}

// Of more tenants than a process remembers, the one whose pause ends first is called again: memory is bounded.
func TestInlineForgetsTenantsWhereThereAreMany(t *testing.T) {
	const many = 1_001
	holds(t, outbox.Config{InlineSlowMax: many + 1}, []string{topicName}, func(t *testing.T, h *held) {
		h.take(hangs, topicName)
		var clients sync.WaitGroup
		for n := range many {
			clients.Go(func() {
				time.Sleep(time.Duration(n) * time.Millisecond)
				h.post(fmt.Sprint("t", n))
			})
		}
		clients.Wait()
		h.wants("t1", 202, 0)
		h.wants("t0", 202, 5*time.Second)
	})
}

// Where every call hangs, a process is held for the time-out of a call in each pause: 5 s of 35 s, a seventh of its time.
func TestAHangingProviderHoldsASeventhOfAProcess(t *testing.T) {
	holds(t, outbox.Config{}, []string{topicName}, func(t *testing.T, h *held) {
		h.take(hangs, topicName)
		var busy time.Duration
		began := time.Now()
		for n := 0; time.Since(began) < time.Hour; n++ {
			_, took, _ := h.post(fmt.Sprint("t", n%50))
			busy += took
			time.Sleep(time.Second)
		}
		if share := busy.Seconds() / time.Since(began).Seconds(); share < 0.13 || share > 0.15 {
			t.Errorf("held for %.3f of the time, want a seventh", share)
		}
	})
}

// Pauses that begin together end at different times: else all processes would probe at once, and be held at once.
func TestInlinePausesEndApart(t *testing.T) {
	holds(t, outbox.Config{InlineSlowMax: 100, Random: rand.Reader}, []string{topicName}, func(t *testing.T, h *held) {
		h.take(hangs, topicName)
		var clients sync.WaitGroup
		for n := range 60 {
			clients.Go(func() { h.post(fmt.Sprint("t", n)) })
		}
		clients.Wait()
		h.take(0, topicName)
		for _, at := range []struct {
			after       time.Duration
			least, most int
		}{{15*time.Second - time.Millisecond, 0, 0}, {15*time.Second + time.Millisecond, 1, 59}, {15 * time.Second, 60, 60}} {
			time.Sleep(at.after)
			inline := 0
			for n := range 60 {
				if status, _, _ := h.post(fmt.Sprint("t", n)); status == 201 {
					inline++
				}
			}
			if inline < at.least || inline > at.most {
				t.Errorf("%d of 60 tenants are delivered inline, want %d to %d", inline, at.least, at.most)
			}
		}
	})
}

func TestInlinePauseConfiguration(t *testing.T) {
	for field, cfg := range map[string]outbox.Config{
		"Config.InlinePause": {InlinePause: -time.Second}, "Config.InlineSlowAfter": {InlineSlowAfter: -1}, "Config.InlineSlowMax": {InlineSlowMax: -1},
	} {
		var rejected *idem.ConfigError
		if _, err := outbox.NewTopics(cfg); !errors.As(err, &rejected) || rejected.Field != field {
			t.Errorf("%v, want %s refused", err, field)
		}
	}
}
