package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// host is a container: it accepts payments, and runs what brings them to an end.
type host struct {
	*recordWorld
	queue    *memqueue.Queue
	runner   *outbox.Runner
	payments *idem.Registered
	// calling and most count the calls that are under way at once; a call takes so long.
	calling, most atomic.Int64
	takes         time.Duration
	// probing, where set, is the topic's Probe, and knows its Knows.
	probing func(context.Context, storage.Message) outbox.Finding
	knows   func(payload []byte) error

	stop  context.CancelFunc
	ended chan error
}

func hosted(t *testing.T, test func(t *testing.T, h *host)) {
	bubble(t, outbox.Config{}, func(t *testing.T, w *recordWorld) {
		h := &host{recordWorld: w, queue: memqueue.New(time.Now), takes: 3 * time.Second, ended: make(chan error, 1)}
		topics, err := outbox.NewTopics(w.cfg, outbox.Topic{Name: topicName, Call: h.call, Probe: h.probe, Settle: settle, Knows: h.reads})
		w.ok(err)
		worker, err := outbox.NewWorker(w.store, topics, h.queue, h.queue)
		w.ok(err)
		h.runner, err = outbox.NewRunner(worker, w.engine, map[string]outbox.Probe{operation: (&asked{finding: executed201}).probe})
		w.ok(err)
		h.payments, err = w.engine.Register(idem.Operation{Name: charging, Kind: idem.KindDeferred, Policy: idem.IETF()})
		w.ok(err)
		test(t, h)
	})
}

func (h *host) call(context.Context, storage.Message) outbox.Outcome {
	for n := h.calling.Add(1); ; {
		if most := h.most.Load(); n <= most || h.most.CompareAndSwap(most, n) {
			break
		}
	}
	time.Sleep(h.takes)
	h.calling.Add(-1)
	return outbox.Delivered{}
}

func (h *host) probe(ctx context.Context, m storage.Message) outbox.Finding {
	if h.probing != nil {
		return h.probing(ctx, m)
	}
	return outbox.Absent{}
}

func (h *host) reads(payload []byte) error {
	if h.knows != nil {
		return h.knows(payload)
	}
	return nil
}

// begin runs until stop is called, or the test ends.
func (h *host) begin(cfg outbox.RunConfig) {
	ctx, stop := context.WithCancel(h.Context())
	h.stop = stop
	cfg.Queue = h.queue
	go func() { h.ended <- h.runner.Run(ctx, cfg) }()
}

// wantEnd stops the host, and says how long that took.
func (h *host) wantEnd(want error) time.Duration {
	h.Helper()
	began := time.Now()
	h.stop()
	if err := <-h.ended; !errors.Is(err, want) {
		h.Errorf("run: %v, want %v", err, want)
	}
	return time.Since(began)
}

// pay accepts a payment with the key as the message's payload, and returns the message. Nobody wakes a worker for it.
func (h *host) pay(key string) idem.MessageID {
	h.Helper()
	result, err := h.payments.Do(h.Context(), asking(key), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Send(topicName, []byte(key))
		return idem.Response{Status: 202}, nil
	})
	h.ok(err)
	return result.OperationID.Message(1)
}

// wake has the message delivered at once.
func (h *host) wake(ids ...idem.MessageID) {
	h.Helper()
	for _, id := range ids {
		h.ok(h.queue.Schedule(h.Context(), tenant, id, 0))
	}
}

func (h *host) message(id idem.MessageID) storage.Message {
	h.Helper()
	m, err := h.mem.Message(h.Context(), id)
	h.ok(err)
	return *m
}

// With all wake-ups lost and every holder dead, messages and records have their end a few minutes later.
func TestRunBringsEverythingToAnEnd(t *testing.T) {
	hosted(t, func(t *testing.T, h *host) {
		var messages []idem.MessageID
		for i := range 25 {
			messages = append(messages, h.pay(keyOf(i)))
		}
		dead := h.reserved("dead")
		h.begin(outbox.RunConfig{})
		time.Sleep(4 * time.Minute)
		for _, id := range messages {
			if m := h.message(id); m.State != storage.MessageDelivered {
				t.Errorf("a message is %s", m.State)
			}
		}
		h.want(dead, storage.StateCompleted, 201, 1)
		if most := h.most.Load(); most != 10 {
			t.Errorf("%d calls at once, want 10", most)
		}
		if took := h.wantEnd(nil); took > time.Second {
			t.Errorf("with nothing under way it took %v to end", took)
		}
	})
}

// ADR 0079: a release that has raised the number of shards, and is gone back from within its first minute, has written it all the same.
// That the number can't be had then stops nothing.
func TestRunTellsItsShardsBeforeItsFirstRound(t *testing.T) {
	for _, unasked := range []error{nil, errors.New("the table is gone")} {
		hosted(t, func(t *testing.T, h *host) {
			asked := 0
			h.runner.AdoptShards(func(context.Context) (int, error) { asked++; return 1, unasked })
			h.begin(outbox.RunConfig{})
			synctest.Wait() // no time passes
			if told := strings.Contains(h.log.String(), "the table is gone"); asked != 1 || told != (unasked != nil) {
				t.Errorf("asked %d times, and told of trouble: %t", asked, told)
			}
			delivered := h.pay("1")
			h.wake(delivered)
			time.Sleep(10 * time.Second)
			if m := h.message(delivered); m.State != storage.MessageDelivered {
				t.Errorf("the message is %s", m.State)
			}
			h.wantEnd(nil)
		})
	}
}

// docs/operator.md "Alarms and runbooks": each round that ended without an error counts itself, and what waits is counted. Otherwise
// nobody would be told of a process whose rounds fail.
func TestRunTellsOfItsRounds(t *testing.T) {
	hosted(t, func(t *testing.T, h *host) {
		told := func(line string) int { return strings.Count(h.log.String(), `"msg":"`+line+`"`) }
		h.begin(outbox.RunConfig{})
		time.Sleep(10 * time.Minute)
		for _, line := range []string{"sweep.run", "reconcile.run", "outbox.backlog"} {
			if n := told(line); n < 9 || n > 11 {
				t.Errorf("%d lines of %s in ten minutes, want one a minute", n, line)
			}
		}
		h.store.All(faulty.Refuse(errors.New("the table is gone")))
		sweeps, reconciles := told("sweep.run"), told("reconcile.run")
		time.Sleep(5 * time.Minute)
		if told("sweep.run") != sweeps || told("reconcile.run") != reconciles {
			t.Error("a round that could list nothing counts as one that has run")
		}
		h.wantEnd(nil)
	})
}

// A payload on which its topic panics is nobody's but its own: everything else has its end, and the process lives.
func TestRunGoesOnBesideAPayloadOnWhichItsTopicPanics(t *testing.T) {
	hosted(t, func(t *testing.T, h *host) {
		broken, sound := h.pay("broken"), h.pay("sound")
		h.knows = panicsOn("broken")
		h.begin(outbox.RunConfig{})
		h.wake(broken)
		time.Sleep(4 * time.Minute)
		if m := h.message(sound); m.State != storage.MessageDelivered {
			t.Errorf("the other message is %s", m.State)
		}
		if m := h.message(broken); m.State != storage.MessagePending || m.Epoch != 0 {
			t.Errorf("it is %s in epoch %d, want it left alone", m.State, m.Epoch)
		}
		h.wantEnd(nil)
	})
}

func TestRunDeliversWhatIsWokenAtOnceByFewWorkers(t *testing.T) {
	hosted(t, func(t *testing.T, h *host) {
		h.begin(outbox.RunConfig{Workers: 2, Period: time.Hour})
		synctest.Wait()
		for i := range 6 {
			h.wake(h.pay(keyOf(i)))
		}
		time.Sleep(3*h.takes + time.Millisecond)
		for _, m := range h.mem.Messages() {
			if m.State != storage.MessageDelivered {
				t.Errorf("a message is %s after three rounds of two", m.State)
			}
		}
		if most := h.most.Load(); most != 2 {
			t.Errorf("%d calls at once, want 2", most)
		}
		h.wantEnd(nil)
	})
}

// What has its claim ends; what has none gets none, and its wake-up comes again.
func TestRunLetsDeliveriesEndAndBeginsNone(t *testing.T) {
	hosted(t, func(t *testing.T, h *host) {
		claimed, reading, waiting := h.pay("claimed"), h.pay("reading"), h.pay("waiting")
		h.begin(outbox.RunConfig{Workers: 2, Period: time.Hour})
		h.wake(claimed)
		time.Sleep(time.Second)
		h.store.On(faulty.Message, 1, paused(2*time.Second, func() {}))
		h.wake(reading, waiting)
		time.Sleep(time.Second)
		if took := h.wantEnd(nil); took != time.Second {
			t.Errorf("it took %v to end, want the second that the call needs", took)
		}
		for id, want := range map[idem.MessageID]storage.MessageState{claimed: storage.MessageDelivered, reading: storage.MessagePending, waiting: storage.MessagePending} {
			if m := h.message(id); m.State != want || want == storage.MessagePending && m.Epoch != 0 {
				t.Errorf("a message is %s in epoch %d, want %s", m.State, m.Epoch, want)
			}
		}
		time.Sleep(time.Second)
		if again := h.queue.Take(); len(again) != 2 {
			t.Errorf("%d wake-ups come again, want 2", len(again))
		}
	})
}

// Evidence that no store takes is tried for minutes; a process that is to end waits for its drain only.
func TestRunEndsWithinItsDrain(t *testing.T) {
	hosted(t, func(t *testing.T, h *host) {
		id := h.pay("k")
		h.begin(outbox.RunConfig{Period: time.Hour})
		h.wake(id)
		time.Sleep(time.Second)
		h.store.All(faulty.Refuse(storage.ErrContention))
		if took := h.wantEnd(outbox.ErrUndrained); took != 20*time.Second {
			t.Errorf("it took %v to end, want ClaimLease + SettleMax", took)
		}
		h.store.Clear()
		time.Sleep(time.Minute)
	})
}

// down is a queue that can't be reached, and counts who tries.
type down struct{ tries int }

func (d *down) Receive(context.Context, int) ([]outbox.Received, error) {
	d.tries++
	return nil, errDown
}

func TestRunBacksOffFromAQueueThatIsDown(t *testing.T) {
	hosted(t, func(t *testing.T, h *host) {
		queue := &down{}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		id := h.pay("k")
		h.ok(h.runner.Run(ctx, outbox.RunConfig{Queue: queue}))
		if queue.tries < 20 || queue.tries > 120 {
			t.Errorf("%d tries in ten minutes", queue.tries)
		}
		if m := h.message(id); m.State != storage.MessagePending {
			t.Errorf("a message is %s, want offered to a queue that hands nothing out", m.State)
		}
		if n, _ := h.lines("outbox.receive_failed"); n < queue.tries-1 { // the last one may meet the end
			t.Errorf("%d lines of %d tries", n, queue.tries)
		}
	})
}

// parked makes a message unknown and due.
func (h *host) parked(id idem.MessageID) idem.MessageID {
	h.Helper()
	m := h.message(id)
	seen := storage.FenceOfMessage(m)
	parked(&m)
	m.OpenSince, m.FirstClaimedAt, m.LeaseUntil, m.SweepAt = time.Now(), time.Now(), time.Now(), time.Now()
	revision, err := mint.Revision()
	h.ok(err)
	m.Revision = revision
	h.ok(h.mem.UpdateMessage(h.Context(), m, seen))
	return id
}

// A provider that hangs, with more unknown messages than a round has time for: no round outlasts RoundMax, each goes on where
// the last one stopped, and so everything is asked about in a few of them.
func TestRunBoundsARoundAndGoesOnWhereItStopped(t *testing.T) {
	hosted(t, func(t *testing.T, h *host) {
		const messages, atOnce, inRound = 100, 8, 32 // a probe hangs for 5 s, and begins within 19 s
		var mu sync.Mutex
		var began []time.Time // the rounds, and how many were asked about in each
		var last time.Time
		rounds := map[int]int{}
		asked, asking, most := map[idem.MessageID]bool{}, 0, 0
		h.probing = func(ctx context.Context, m storage.Message) outbox.Finding {
			mu.Lock()
			if now := time.Now(); now.Sub(last) > 15*time.Second {
				began = append(began, now)
			}
			last = time.Now()
			rounds[len(began)]++
			asked[m.ID] = true
			asking++
			most = max(most, asking)
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			asking--
			return outbox.Unclear{Cause: ctx.Err()}
		}
		for i := range messages {
			h.parked(h.pay(keyOf(i)))
		}
		h.begin(outbox.RunConfig{RoundMax: 30 * time.Second})
		time.Sleep(9 * time.Minute)
		h.stop()
		// Those that were asked about are due again after one to two minutes, and may come before the last of the others, which
		// stand in another shard: each of the four begins a round in turn.
		if len(asked) != messages || most != atOnce || len(began) < 5 {
			t.Fatalf("asked about %d of %d messages in %d rounds, %d at once; want %d at once", len(asked), messages, len(began), most, atOnce)
		}
		for round := range 3 {
			if rounds[round+1] != inRound {
				t.Errorf("round %d asked about %d, want %d", round+1, rounds[round+1], inRound)
			}
		}
		for i := range began[1:] {
			if after := began[i+1].Sub(began[i]); after < 54*time.Second || after > 66*time.Second {
				t.Errorf("a round began %v after the one before, want a Period", after)
			}
		}
	})
}

func TestRunRefusesItsConfig(t *testing.T) {
	hosted(t, func(t *testing.T, h *host) {
		for field, cfg := range map[string]outbox.RunConfig{
			"Queue": {}, "Workers": {Queue: h.queue, Workers: -1}, "Period": {Queue: h.queue, Period: -1},
			"RoundMax": {Queue: h.queue, RoundMax: 19 * time.Second}, "Drain": {Queue: h.queue, Drain: 19 * time.Second},
		} {
			var refused *idem.ConfigError
			if err := h.runner.Run(t.Context(), cfg); !errors.As(err, &refused) || refused.Field != "RunConfig."+field {
				t.Errorf("%s: %v, want a ConfigError", field, err)
			}
		}
	})
}

// A service in a container runs this beside its HTTP server. In production the queue is sqsqueue's Consumer.
func ExampleRunner_Run() {
	store, queue := exampleStore(), memqueue.New(time.Now)
	topics, err := outbox.NewTopics(outbox.Config{}, outbox.Topic{
		Name: "orders.ship",
		Call: func(_ context.Context, m storage.Message) outbox.Outcome {
			fmt.Printf("shipping %s\n", m.Payload)
			return outbox.Delivered{}
		},
		Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
			return outbox.Settlement{Response: idem.Response{Status: 201}}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	worker, err := outbox.NewWorker(store, topics, queue, queue)
	if err != nil {
		panic(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		panic(err)
	}
	runner, err := outbox.NewRunner(worker, engine, nil)
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // in a service signal.NotifyContext(ctx, syscall.SIGTERM)
	done := make(chan error)
	go func() { done <- runner.Run(ctx, outbox.RunConfig{Queue: queue, Workers: 20}) }()

	operation := exampleOrder(engine, "book")
	_ = queue.Schedule(ctx, "tenant-a", operation.Message(1), 0) // as the relay of the table's stream does
	for {
		if m, _ := store.Message(ctx, operation.Message(1)); m.State == storage.MessageDelivered {
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	fmt.Println(<-done)
	// Output:
	// shipping book
	// <nil>
}
