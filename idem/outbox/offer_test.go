package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// unread has sweeps offer without reading, up to so many that wait.
func unread(most int) func(*outbox.Config) {
	return func(c *outbox.Config) { c.WakeUpsMax = most }
}

// gate is a queue of wake-ups that refuses some of them, and notes how often it took each.
type gate struct {
	*memqueue.Queue
	// refuses says that a message's wake-up is refused, the n-th time that it is sent, from 1; before runs before each batch, one
	// at a time.
	refuses func(id idem.MessageID, n int) bool
	before  func()
	// waits, where it is not nil, says how many wait.
	waits func() (int, error)

	mu          sync.Mutex
	sent, taken map[idem.MessageID]int
	batches     int
}

var errRefused = errors.New("queue: refused")

func newGate(now func() time.Time) *gate {
	return &gate{Queue: memqueue.New(now), sent: map[idem.MessageID]int{}, taken: map[idem.MessageID]int{}}
}

func (g *gate) Offer(ctx context.Context, wakeUps []outbox.WakeUp) []error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.before != nil {
		g.before()
	}
	g.batches++
	failed := make([]error, len(wakeUps))
	for i, w := range wakeUps {
		if g.sent[w.Message]++; g.refuses != nil && g.refuses(w.Message, g.sent[w.Message]) {
			failed[i] = errRefused
			continue
		}
		g.taken[w.Message]++
		g.Queue.Offer(ctx, []outbox.WakeUp{w})
	}
	return failed
}

func (g *gate) Waiting(ctx context.Context) (int, error) {
	if g.waits != nil {
		return g.waits()
	}
	return g.Queue.Waiting(ctx)
}

// backlog is a world in which so many messages are due, and a gate is the queue.
func backlog(t *testing.T, shards, messages, most int) (*world, *gate, []idem.MessageID) {
	t.Helper()
	var w *world
	g := newGate(func() time.Time { return w.clock.Now() })
	w = newWorld(t, options{wakes: g, store: memstore.Config{Shards: shards}, config: unread(most)})
	var ids []idem.MessageID
	for range messages {
		ids = append(ids, w.accept())
	}
	w.clock.Add(time.Minute)
	return w, g, ids
}

// What is due is offered from the index: nobody reads it but its worker.
func TestASweepOffersWithoutReading(t *testing.T) {
	w, g, ids := backlog(t, 3, 125, 1000)
	w.swept(outbox.Counts{Offered: 125})
	if reads, writes := w.store.Count(faulty.Message), w.store.Count(faulty.SetPlace); reads != 0 || writes != 0 {
		t.Errorf("%d reads of messages, %d writes of places", reads, writes)
	}
	if g.batches > 15 { // three shards, each with one that is not full
		t.Errorf("%d batches for 125 wake-ups", g.batches)
	}
	for _, id := range g.Queue.Take() {
		w.deliver(id)
	}
	for _, id := range ids {
		w.want(id, storage.MessageDelivered, storage.StateCompleted, 201, "delivered", 1)
	}
	w.swept(outbox.Counts{})
}

// Whoever receives the wake-up decides as the sweep would have.
func TestAnOfferThatWasNotReadIsJudgedByTheWorker(t *testing.T) {
	for name, c := range map[string]struct {
		topic  func(*outbox.Topic)
		change func(*storage.Message)
		state  storage.MessageState
		record storage.State
	}{
		"live claim":    {change: claimed(time.Hour), state: storage.MessageClaimed, record: storage.StatePending},
		"dead claim":    {change: claimed(time.Second), state: storage.MessageDelivered, record: storage.StateCompleted},
		"without keys":  {topic: keyless, change: claimed(time.Second), state: storage.MessageUnknown, record: storage.StatePending},
		"never claimed": {change: old, state: storage.MessageCancelled, record: storage.StateFailed},
		"age over, open": {change: func(m *storage.Message) {
			claimed(time.Second)(m)
			old(m)
		}, state: storage.MessageUnknown, record: storage.StatePending},
		"unknown topic": {change: func(m *storage.Message) { m.Topic = "other.topic" }, state: storage.MessagePending, record: storage.StatePending},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{topic: c.topic, config: unread(1000)})
			id := w.accept(c.change)
			w.clock.Add(time.Minute)
			w.swept(outbox.Counts{Offered: 1})
			for _, woken := range w.queue.Take() {
				w.deliver(woken)
			}
			if m, r := w.message(id), w.record(id); m.State != c.state || r.State != c.record {
				t.Errorf("message %s, record %s; want %s and %s", m.State, r.State, c.state, c.record)
			}
			if got := w.logged("outbox.abandoned"); got != map[bool]int{true: 1}[name == "never claimed"] {
				t.Errorf("outbox.abandoned is logged %d times", got)
			}
		})
	}
}

// A run fills the queue, and no more; the next one offers as many as were received, and what was offered last comes last.
func TestTheQueueSetsTheRateOfASweep(t *testing.T) {
	w, g, ids := backlog(t, 2, 5000, 2000)
	offered := func(least, most int) int {
		t.Helper()
		did, err := w.sweep(t.Context())
		if err != nil || did.Offered < least || did.Offered > most || did != (outbox.Counts{Offered: did.Offered, Unfinished: true}) {
			t.Errorf("%+v, %v; want %d to %d offered", did, err, least, most)
		}
		return did.Offered
	}
	offered(2000, 2000)
	offered(200, 200) // the least: 100 of each shard
	g.Queue.Take()
	offered(2000, 2000)
	for range 500 { // half of a shard's part
		g.Queue.Receive(t.Context(), 1)
	}
	offered(500-200, 500)
	g.Queue.Take()
	did, err := w.sweep(t.Context()) // the rest, and the queue's room is left to the next run
	if err != nil || did.Unfinished || len(g.taken) != len(ids) {
		t.Errorf("%+v, %v; %d of %d messages were offered", did, err, len(g.taken), len(ids))
	}
	for id, n := range g.taken {
		if n != 1 {
			t.Errorf("%s was offered %d times before all were", id, n)
		}
	}
	g.Queue.Take()
	offered(2000, 2000)
	if w.store.Count(faulty.Message) != 0 {
		t.Error("messages were read")
	}
}

// SendMessageBatch may refuse some of a batch: those are sent again, and the rest is not.
func TestWhatAQueueRefusesOfABatchIsSentAgain(t *testing.T) {
	w, g, ids := backlog(t, 1, 95, 1000)
	g.refuses = func(id idem.MessageID, n int) bool { return strings.Contains("AEIMQUYcgkosw048", id20(id)) && n < 3 }
	w.swept(outbox.Counts{Offered: 95})
	refused := 0
	for _, id := range ids {
		if g.taken[id] != 1 {
			t.Errorf("%s was offered %d times", id, g.taken[id])
		}
		if g.sent[id] > 1 {
			refused++
		}
	}
	if refused == 0 || refused == len(ids) {
		t.Fatalf("%d of %d were refused: the test says nothing", refused, len(ids))
	}
}

// id20 is a letter of an id's random part.
func id20(id idem.MessageID) string { return string(id)[60:61] }

// One that the queue never takes holds up nobody, is told of, and stays due.
func TestAWakeUpThatIsAlwaysRefusedHoldsUpNoOther(t *testing.T) {
	w, g, ids := backlog(t, 1, 3000, 1000)
	g.refuses = func(id idem.MessageID, _ int) bool { return id == ids[0] }
	errs := 0
	for range 4 {
		did, err := w.sweep(t.Context())
		if err != nil {
			t.Error(err)
		}
		errs += did.Errors
		g.Queue.Take()
	}
	for _, id := range ids[1:] {
		if g.taken[id] == 0 {
			t.Errorf("%s was not offered", id)
		}
	}
	if errs == 0 || w.logged("outbox.wake_ups_lost") == 0 {
		t.Errorf("%d errors", errs)
	}
	g.refuses = nil
	for range 4 {
		_, err := w.sweep(t.Context())
		w.ok(err)
		g.Queue.Take()
	}
	if g.taken[ids[0]] == 0 {
		t.Error("it is not offered any more")
	}
}

// One that the queue never takes, and that is alone in its page, holds up neither other shards nor what is older.
func TestAWakeUpThatIsAlwaysRefusedAndAloneInItsPageHoldsUpNoOther(t *testing.T) {
	t.Run("in its shard", func(t *testing.T) {
		w, g, ids := backlog(t, 8, 24, 1000)
		of := map[idem.MessageID]int{}
		var alone idem.MessageID
		for shard := range 8 {
			refs, _, err := w.inner.QueuedMessages(t.Context(), storage.QueueOffer, shard, w.clock.Now(), 1000, "")
			w.ok(err)
			for i, ref := range refs {
				of[ref.ID] = shard
				if i == 0 && shard == 3 {
					alone = ref.ID
				}
			}
		}
		for _, id := range ids {
			if of[id] == 3 && id != alone {
				w.deliver(id)
			}
		}
		g.refuses = func(id idem.MessageID, _ int) bool { return id == alone }
		for range 3 {
			_, err := w.sweep(t.Context())
			w.ok(err)
			g.Queue.Take()
		}
		for _, id := range ids {
			if of[id] != 3 && g.taken[id] < 3 {
				t.Errorf("%s of shard %d was offered %d times in 3 runs", id, of[id], g.taken[id])
			}
		}
	})
	t.Run("after a full page", func(t *testing.T) {
		w, g, ids := backlog(t, 1, 1000, 10_000)
		w.clock.Add(time.Minute)
		last := w.accept()
		w.clock.Add(time.Minute)
		g.refuses = func(id idem.MessageID, _ int) bool { return id == last }
		for range 6 {
			_, err := w.sweep(t.Context())
			w.ok(err)
			g.Queue.Take()
			w.clock.Add(time.Minute)
		}
		if n := g.taken[ids[0]]; n < 3 {
			t.Errorf("the oldest was offered %d times in 6 runs", n)
		}
	})
}

// A queue that takes few of each page is not asked for all, and what is oldest comes first once it takes them again.
func TestWhatAThrottledQueueRefusedComesFirstInTheNextRun(t *testing.T) {
	w, g, ids := backlog(t, 1, 5000, 200_000)
	throttled, n := true, 0
	g.refuses = func(idem.MessageID, int) bool { n++; return throttled && n%100 != 0 }
	did, err := w.sweep(t.Context())
	if err != nil || !did.Unfinished || g.batches > 600 { // three tries of two pages
		t.Errorf("%+v, %v, %d batches", did, err, g.batches)
	}
	throttled = false
	did, err = w.sweep(t.Context())
	if err != nil || did.Offered != 5000 {
		t.Errorf("%+v, %v", did, err)
	}
	for _, id := range ids {
		if g.taken[id] == 0 {
			t.Errorf("%s was not offered", id)
		}
	}
}

// A queue that hangs costs a run its time, and no order: once it answers, the oldest come first.
func TestASweepOfAQueueThatHangsKeepsTheOldestFirst(t *testing.T) {
	w, g, ids := backlog(t, 1, 2500, 10_000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g.refuses = func(idem.MessageID, int) bool { return true }
	g.before = func() {
		if g.batches > 320 { // the first page's tries are over, and so is the time
			cancel()
		}
	}
	if did, err := w.sweep(ctx); err != nil || !did.Unfinished || did.Offered > 0 {
		t.Errorf("%+v, %v", did, err)
	}
	g.refuses, g.before = nil, nil
	w.swept(outbox.Counts{Offered: 2500})
	if g.taken[ids[0]] != 1 {
		t.Error("the oldest was not offered")
	}
}

// A queue that is down costs the tries of two pages, and the next run begins with the oldest.
func TestAQueueThatIsDownLosesNothing(t *testing.T) {
	w, g, ids := backlog(t, 1, 2500, 10_000)
	down := true
	g.refuses = func(idem.MessageID, int) bool { return down }
	for range 2 {
		if did, err := w.sweep(t.Context()); err != nil || did != (outbox.Counts{Errors: 2000, Unfinished: true}) {
			t.Errorf("%+v, %v", did, err)
		}
	}
	down = false
	w.swept(outbox.Counts{Offered: 2500})
	for _, id := range ids {
		if g.taken[id] != 1 {
			t.Errorf("%s was offered %d times", id, g.taken[id])
		}
	}
}

// Where the process dies between listing, offering and keeping its place, or the place can't be kept, messages are offered again,
// and none is skipped.
func TestASweepThatDiesWhileItOffersSkipsNothing(t *testing.T) {
	for dies := range outbox.Sized(12, 3) {
		w, g, ids := backlog(t, 1, 2200, 4000)
		left := 23 * dies
		g.before = func() {
			if left--; left < 0 {
				panic(errDied)
			}
		}
		w.alone()
		if dies%2 == 0 {
			w.store.On(faulty.SetPlace, 1, faulty.Refuse(errDown))
		}
		_ = mortal(func() error { _, err := w.sweep(t.Context()); return err })
		g.before = nil
		w.alone()
		for range 2 {
			_, err := w.sweep(t.Context())
			w.ok(err)
			g.Queue.Take()
		}
		for _, id := range ids {
			if n := g.taken[id]; n < 1 || n > 3 {
				t.Errorf("died after %d batches: %s was offered %d times", 23*dies, id, n)
			}
		}
	}
}

// alone makes another process's runner, which does one thing after the other.
func (w *world) alone() {
	w.Helper()
	cfg := outbox.Config{Now: w.clock.Now, Random: w.mint.Random, Pause: w.clock.Pause, WakeUpsMax: 4000, SweepConcurrency: 1}
	topics, err := outbox.NewTopics(cfg, outbox.Topic{Name: topicName, Call: w.provider.call, Settle: settle})
	w.ok(err)
	worker, err := outbox.NewWorker(w.store, topics, w.wakes, w.queue)
	w.ok(err)
	w.runner, err = outbox.NewRunner(worker, nil, nil)
	w.ok(err)
}

// The time of a run ends between two batches: the next run begins with the page that was not done.
func TestASweepThatOffersStopsInTime(t *testing.T) {
	w, g, ids := backlog(t, 1, 1500, 10_000)
	ctx, cancel := context.WithCancel(t.Context())
	g.before = cancel
	did, err := w.sweep(ctx)
	if err != nil || !did.Unfinished || did.Errors > 0 || did.Offered == 0 || did.Offered > 80 {
		t.Errorf("%+v, %v", did, err)
	}
	w.swept(outbox.Counts{Offered: 1500})
	for _, id := range ids {
		if g.taken[id] == 0 {
			t.Errorf("%s was not offered", id)
		}
	}
}

// misnamed is a store whose index has a message with an id that names no operation.
type misnamed struct{ outbox.Store }

func (s misnamed) QueuedMessages(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) ([]storage.MessageRef, string, error) {
	refs, next, err := s.Store.QueuedMessages(ctx, queue, shard, until, limit, cursor)
	if queue == storage.QueueOffer && cursor == "" && len(refs) > 0 {
		refs[0].ID = "nobody's"
	}
	return refs, next, err
}

// A message whose id is damaged is told of, and not sent to a worker, which would make a dead letter of it that names nothing.
func TestASweepOffersNoMessageThatHasNoName(t *testing.T) {
	w, g, _ := backlog(t, 1, 25, 1000)
	worker, err := outbox.NewWorker(misnamed{w.store}, w.topics, g, w.queue)
	w.ok(err)
	w.runner, err = outbox.NewRunner(worker, nil, nil)
	w.ok(err)
	w.swept(outbox.Counts{Offered: 24})
	if n := w.logged("outbox.unknown_topic"); n != 1 || g.taken["nobody's"] != 0 {
		t.Errorf("told %d times, offered %d times", n, g.taken["nobody's"])
	}
}

// How many wait may not be known: then the least is offered, so that nothing waits for ever.
func TestASweepOffersTheLeastWhereNobodySaysHowManyWait(t *testing.T) {
	w, g, _ := backlog(t, 2, 1000, 10_000)
	g.waits = func() (int, error) { return 0, errDown }
	w.swept(outbox.Counts{Offered: 200, Errors: 1, Unfinished: true})
	g.waits = func() (int, error) { return 1 << 40, nil }
	w.swept(outbox.Counts{Offered: 200, Unfinished: true})
}

func TestWakeUpsMaxWantsAQueueThatTakesBatches(t *testing.T) {
	build := func(most int, wakes outbox.WakeUps) error {
		w := newWorld(t, options{})
		topics, err := outbox.NewTopics(outbox.Config{WakeUpsMax: most}, outbox.Topic{Name: topicName, Call: w.provider.call, Settle: settle})
		if err != nil {
			return err
		}
		worker, err := outbox.NewWorker(w.store, topics, wakes, w.queue)
		w.ok(err)
		_, err = outbox.NewRunner(worker, nil, nil)
		return err
	}
	queue := memqueue.New(time.Now)
	for _, c := range []struct {
		most  int
		wakes outbox.WakeUps
		fails bool
	}{{-1, queue, true}, {1, deaf{}, true}, {0, deaf{}, false}, {1, queue, false}} {
		err := build(c.most, c.wakes)
		var broken *idem.ConfigError
		if errors.As(err, &broken) != c.fails || c.fails && broken.Field != "Config.WakeUpsMax" {
			t.Errorf("%d with a %T: %v", c.most, c.wakes, err)
		}
	}
}

// Each invocation may have shards of its own; together they do what one does. A shard that does not exist is no empty run.
func TestSweepsOfSingleShardsDoTogetherWhatOneDoes(t *testing.T) {
	for _, most := range []int{0, 1000} {
		w := newWorld(t, options{store: memstore.Config{Shards: 5}, config: unread(most)})
		for range 60 {
			w.accept()
		}
		w.accept(parked)
		w.clock.Add(time.Hour)
		offered, asked := 0, 0
		for _, shards := range [][]int{{4, 1}, {0}, {2, 3}} {
			did, err := w.runner.Sweep(t.Context(), shards...)
			w.ok(err)
			offered += did.Messages.Offered
			did, err = w.runner.Reconcile(t.Context(), shards...)
			w.ok(err)
			asked += did.Messages.Offered
		}
		if offered != 60 || asked != 1 {
			t.Errorf("%d offered, %d asked about; want 60 and 1", offered, asked)
		}
		for _, shards := range [][]int{{-1}, {5}, {0, 0}, {1, 9}} {
			_, err := w.runner.Sweep(t.Context(), shards...)
			var broken *idem.ConfigError
			if !errors.As(err, &broken) || !strings.Contains(err.Error(), fmt.Sprint(shards)) || !strings.Contains(err.Error(), "0 to 4") {
				t.Errorf("shards %v: %v", shards, err)
			}
		}
	}
}

// lower is a store of a release that has fewer shards than rows were written with.
type lower struct {
	outbox.Store
	shards int
}

func (s lower) Shards() int { return s.shards }

// A release that has raised the number of shards may be gone back from. The runs of the one before name its own shards only, and
// together look into all.
func TestRunsLookIntoTheShardsOfAReleaseThatWasGoneBackFrom(t *testing.T) {
	for _, most := range []int{0, 1000} {
		w := newWorld(t, options{store: memstore.Config{Shards: 16}, config: unread(most)})
		for range 80 {
			w.accept()
		}
		w.clock.Add(time.Hour)
		worker, err := outbox.NewWorker(lower{w.store, 6}, w.topics, w.wakes, w.queue)
		w.ok(err)
		runner, err := outbox.NewRunner(worker, nil, nil)
		w.ok(err)
		kept, unasked := 16, error(nil)
		runner.AdoptShards(func(context.Context) (int, error) { return kept, unasked })
		if waits, err := runner.Backlog(t.Context()); err != nil || waits.Due != 80 {
			t.Errorf("%+v wait, %v, want 80", waits, err)
		}
		offered := 0
		for shard := range 6 {
			did, err := runner.Sweep(t.Context(), shard)
			w.ok(err)
			offered += did.Messages.Offered
		}
		if offered != 80 {
			t.Errorf("%d offered, want 80", offered)
		}
		listed := w.store.Count(faulty.QueuedMessages)
		if _, err := runner.Sweep(t.Context(), 9, 3, 15); err != nil { // 9 and 15 are those that 3 stands for
			t.Errorf("shards that the kept number has: %v", err)
		}
		if lists := w.store.Count(faulty.QueuedMessages) - listed; lists != 2*3 {
			t.Errorf("%d listings of two queues, want each of three shards once", lists)
		}
		if _, err := runner.Sweep(t.Context(), 16); !errors.As(err, new(*idem.ConfigError)) {
			t.Errorf("a shard that nobody has: %v", err)
		}
		kept = 3 // what lists begins before what writes has recorded its own
		if did, err := runner.Sweep(t.Context(), 5); err != nil {
			t.Errorf("a shard of its own: %+v, %v", did, err)
		}
		unasked = errDown
		if did, err := runner.Sweep(t.Context()); !errors.Is(err, errDown) || did != (outbox.Report{}) || w.logged("idempotency.sweep_failed") != 1 {
			t.Errorf("without the number: %+v, %v", did, err)
		}
		if _, err := runner.Backlog(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("without the number something is counted: %v", err)
		}
	}
}
