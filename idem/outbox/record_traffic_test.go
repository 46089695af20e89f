package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// Two of each sweep and reconciler beside clients that repeat themselves, and beside processes that die at any point,
// overstay their lease or give no answer: no transition happens twice, no live lease is lost, and with the clients gone
// everything comes to an end.
func TestSweepsBesideEachOtherAndLiveTraffic(t *testing.T) {
	t.Run("memstore", func(t *testing.T) {
		seen := map[string]int{}
		wanted := []string{
			"in_progress → unknown", "unknown → completed", "unknown → failed_retryable", "failed_retryable → in_progress",
			"message claimed → claimed", "message claimed → unknown", "message unknown → pending",
		}
		met := func(transition string) bool { return seen[transition] > 0 }
		for seed := range uint64(60) { // schedules differ from run to run: at least six, and until all were met
			if seed >= 6 && !slices.ContainsFunc(wanted, func(transition string) bool { return !met(transition) }) {
				break
			}
			synctest.Test(t, func(t *testing.T) {
				mem, err := memstore.New(memstore.Config{Shards: 3})
				if err != nil {
					t.Fatal(err)
				}
				for transition, n := range newTraffic(t, mem, seed, 40).run() {
					seen[transition] += n
				}
			})
		}
		for _, transition := range wanted {
			if seen[transition] == 0 {
				t.Errorf("no %s: the test proves less than it says", transition)
			}
		}
	})
	dynamotest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		client := dynamotest.Client(url, wirefault.Patiently)
		tables, err := dynamotest.CreateTables(t.Context(), client, "traffic")
		if err != nil {
			t.Fatal(err)
		}
		store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox, Shards: 2})
		if err != nil {
			t.Fatal(err)
		}
		newTraffic(t, store, 1, 12).run()
	})
}

const (
	longestRequest = 1500 * time.Millisecond
	clockSkew      = 50 * time.Millisecond
	charging       = "payments.create"
)

var (
	engineConfig = idem.Config{
		ClockSkew:    clockSkew,
		ExecutionMax: 2500 * time.Millisecond, HandlerMargin: 300 * time.Millisecond, AnswerMargin: 50 * time.Millisecond,
		LeaseMargin: 100 * time.Millisecond, CallTimeout: time.Second, SweepGrace: 300 * time.Millisecond,
		FreezeAllowance: 10 * time.Millisecond,
	}
	outboxConfig = outbox.Config{
		ClaimLease: 1500 * time.Millisecond, CallTimeout: 600 * time.Millisecond, SettleMargin: 300 * time.Millisecond, ClockSkew: clockSkew, LongestRequest: longestRequest,
		FreezeAllowance: 10 * time.Millisecond,             // with the default of a minute, the two that run gives for all to end are two proofs of absence
		SettleMax:       time.Second, KeepMax: time.Second, // what a process that has died still tries keeps those beside it waiting
		BackoffMin: 50 * time.Millisecond, BackoffMax: 300 * time.Millisecond, ProbeBackoffMin: 200 * time.Millisecond,
		ProbeBackoffMax: time.Second, SweepGrace: 300 * time.Millisecond, SweepPage: 7,
	}
)

// traffic is a fleet of processes that die, on one store, and a provider that knows the truth.
type traffic struct {
	*testing.T
	store *auditor
	queue *memqueue.Queue
	keys  int
	// honours says that the provider of messages honours keys.
	honours bool

	mu     sync.Mutex
	random *rand.Rand
	// charges are what really happened, by the key that the provider was given; landing are under way.
	charges map[string]int
	landing sync.WaitGroup
	// answers are the final answers that clients got.
	answers map[string]string
	deaths  int
}

func newTraffic(t *testing.T, store faulty.Inner, seed uint64, keys int) *traffic {
	return &traffic{
		T: t, store: newAuditor(store), queue: memqueue.New(time.Now), keys: keys, honours: seed%2 == 0,
		random: rand.New(rand.NewPCG(seed, 2)), charges: map[string]int{}, answers: map[string]string{},
	}
}

// chance is true in so many of a hundred cases.
func (f *traffic) chance(percent int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(100) < percent
}

func (f *traffic) upTo(d time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Duration(f.random.Int64N(int64(d)))
}

// process is a store as one process has it: once it died, nothing that it sends arrives.
func (f *traffic) process() (store *faulty.Store, die func()) {
	store = faulty.New(f.store)
	return store, func() {
		store.All(faulty.LoseRequest())
		f.mu.Lock()
		defer f.mu.Unlock()
		f.deaths++
	}
}

// charge sends a request that takes a while to arrive, whoever waits for it; once is a provider that honours keys.
func (f *traffic) charge(key string, once bool) (arrived <-chan struct{}) {
	done, takes := make(chan struct{}), f.upTo(longestRequest/4)
	f.landing.Go(func() {
		defer close(done)
		_ = idem.Pause(context.Background(), takes)
		f.mu.Lock()
		defer f.mu.Unlock()
		if !once || f.charges[key] == 0 {
			f.charges[key]++
		}
	})
	return done
}

func (f *traffic) made(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.charges[key]
}

// handler is a wrapped one, which charges for itself: it dies, fails, or overstays its lease, before or after.
func (f *traffic) handler(die func()) idem.Handler {
	return func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
		if err := idem.Pause(ctx, f.upTo(500*time.Millisecond)); err != nil {
			return idem.Response{}, err
		}
		switch {
		case f.chance(10):
			die()
			return idem.Response{}, errors.New("killed before")
		case f.chance(10):
			return idem.Response{}, errors.New("failed before")
		}
		arrived := f.charge(string(tx.OperationID()), false)
		switch {
		case f.chance(15):
			die()
			return idem.Response{}, errors.New("killed after")
		case f.chance(15):
			return idem.Response{Status: 500}, nil
		case f.chance(10):
			_ = idem.Pause(context.WithoutCancel(ctx), 4*time.Second) // past its lease
		}
		<-arrived
		return idem.Response{Status: 201, Body: []byte(tx.OperationID())}, nil
	}
}

func (f *traffic) call(_ context.Context, m storage.Message) outbox.Outcome {
	if f.chance(20) {
		return outbox.NotExecuted{Cause: errors.New("429")}
	}
	arrived := f.charge(string(m.ID), f.honours)
	if f.chance(30) {
		return outbox.Ambiguous{Cause: errors.New("504")}
	}
	<-arrived
	return outbox.Delivered{Reference: "ch"}
}

// client asks until it has a final answer, or gives up.
func (f *traffic) client(ctx context.Context, kind idem.Kind, name, key string) {
	for range 12 {
		store, die := f.process()
		engine, err := idem.New(store, engineConfig)
		f.ok(err)
		op, err := engine.Register(idem.Operation{Name: name, Kind: kind, Probed: kind == idem.KindWrapped, Policy: idem.IETF()})
		f.ok(err)
		handler := f.handler(die)
		if kind == idem.KindDeferred {
			handler = func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				tx.Send(topicName, nil)
				return idem.Response{Status: 202}, nil
			}
		}
		request := asking(key)
		result, err := op.Do(ctx, request, handler)
		if err == nil && result.State == storage.StateCompleted {
			f.answered(name+" "+key, fmt.Sprintf("%d %s", result.Response.Status, result.Response.Body))
			return
		}
		if idem.Pause(ctx, 100*time.Millisecond+f.upTo(400*time.Millisecond)) != nil {
			return
		}
	}
}

func (f *traffic) answered(key, answer string) { // I4
	f.mu.Lock()
	defer f.mu.Unlock()
	if first, ok := f.answers[key]; ok && first != answer {
		f.Errorf("%s was answered %q and %q", key, first, answer)
	}
	f.answers[key] = answer
}

func (f *traffic) ok(err error) {
	f.Helper()
	if err != nil {
		f.Error(err)
	}
}

// must is for the test's own goroutine.
func (f *traffic) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *traffic) topics() *outbox.Topics {
	f.Helper()
	keys := outbox.Keys{}
	if f.honours {
		keys = outbox.Keys{Honoured: true, Retention: time.Hour}
	}
	topics, err := outbox.NewTopics(outboxConfig, outbox.Topic{
		Name: topicName, Call: f.call, LongestRequest: longestRequest, AttemptsMax: 20,
		Keys: keys,
		Probe: func(_ context.Context, m storage.Message) outbox.Finding {
			switch {
			case f.chance(20):
				return outbox.Unclear{Cause: errors.New("503")}
			case f.made(string(m.ID)) > 0:
				return outbox.Found{Outcome: outbox.Delivered{Reference: "ch"}}
			}
			return outbox.Absent{}
		},
		Settle: func(m storage.Message, _ outbox.Outcome) (outbox.Settlement, error) {
			return outbox.Settlement{Response: idem.Response{Status: 201, Body: []byte(m.ID)}}, nil
		},
	})
	f.must(err)
	return topics
}

// janitors are what runs every minute, here every 200 ms, each process twice; it returns what stops them.
func (f *traffic) janitors(ctx context.Context) (stop func()) {
	topics := f.topics()
	probe := func(_ context.Context, r storage.Record) outbox.Finding {
		switch {
		case f.chance(20):
			return outbox.Unclear{Cause: errors.New("503")}
		case f.made(string(r.OperationID)) > 0:
			return outbox.Executed{Response: idem.Response{Status: 201, Body: []byte(r.OperationID)}}
		}
		return outbox.Absent{}
	}
	engine, err := idem.New(f.store, engineConfig)
	f.must(err)
	var running sync.WaitGroup
	var stopped atomic.Bool
	loop := func(run func() error) {
		running.Go(func() {
			for !stopped.Load() {
				f.ok(run())
				_ = idem.Pause(ctx, 150*time.Millisecond+f.upTo(100*time.Millisecond))
			}
		})
	}
	for range 2 {
		worker, err := outbox.NewWorker(f.store, topics, f.queue, f.queue)
		f.must(err)
		runner, err := outbox.NewRunner(worker, engine, map[string]outbox.Probe{operation: probe})
		f.must(err)
		loop(func() error { _, err := runner.Sweep(ctx); return err })
		loop(func() error { _, err := runner.Reconcile(ctx); return err })
		loop(func() error { f.deliver(ctx, topics); return nil })
	}
	return func() { stopped.Store(true); running.Wait() }
}

// deliver serves what is due, each message by a process of its own, which may die before or after its call.
func (f *traffic) deliver(ctx context.Context, topics *outbox.Topics) {
	var group sync.WaitGroup
	for _, id := range f.queue.Take() {
		group.Go(func() {
			store, die := f.process()
			worker, err := outbox.NewWorker(store, topics, f.queue, f.queue)
			f.ok(err)
			switch {
			case f.chance(10):
				store.On(faulty.UpdateMessage, 1, faulty.After(func(error) { die() }))
			case f.chance(10):
				store.On(faulty.Settle, 1, faulty.Before(die))
				store.On(faulty.Settle, 1, faulty.LoseRequest())
			}
			_ = worker.Deliver(ctx, id) // what fails is woken again by the sweep
		})
	}
	group.Wait()
}

// run lets the clients go, then time and janitors alone.
func (f *traffic) run() map[string]int {
	ctx := f.Context()
	stop := f.janitors(ctx)
	var clients sync.WaitGroup
	for i := range f.keys {
		for range 2 { // a client that is impatient with itself
			clients.Go(func() { f.client(ctx, idem.KindWrapped, operation, keyOf(i)) })
			clients.Go(func() { f.client(ctx, idem.KindDeferred, charging, keyOf(i)) })
		}
	}
	clients.Wait()
	for range 600 { // two minutes: only what is stuck takes so long
		_ = idem.Pause(ctx, 200*time.Millisecond)
		if f.quiet() {
			break
		}
	}
	stop()
	f.landing.Wait()
	return f.check()
}

// quiet says that everything has ended.
func (f *traffic) quiet() bool {
	for _, r := range f.records() {
		if !r.State.Final() && r.State != storage.StateFailedRetryable {
			return false
		}
	}
	return true
}

func (f *traffic) records() (all []storage.Record) {
	for i := range f.keys {
		for _, name := range []string{operation, charging} {
			r, err := f.store.Get(f.Context(), idem.Scope{Tenant: tenant, Operation: name, Key: keyOf(i)}.RecordKey())
			f.ok(err)
			if r != nil {
				all = append(all, *r)
			}
		}
	}
	return all
}

// check demands what must hold when all is over, and returns how often each transition was seen.
func (f *traffic) check() map[string]int {
	ends := map[string]int{}
	for _, r := range f.records() {
		charges := f.made(string(r.OperationID))
		if r.Operation == charging {
			charges = f.made(string(r.OperationID.Message(1)))
		}
		ends[fmt.Sprintf("%s %s", r.Kind, r.State)]++
		switch {
		case charges > 1:
			f.Errorf("I2: %s was executed201 %d times, its record is %s in epoch %d", r.OperationID, charges, r.State, r.Epoch)
		case r.State == storage.StateCompleted && charges == 0:
			f.Errorf("I4: %s was told success, nothing happened", r.OperationID)
		case (r.State == storage.StateFailedRetryable || r.State == storage.StateFailed) && charges > 0:
			f.Errorf("I7: %s was executed201 and is %s", r.OperationID, r.State)
		case !r.State.Final() && r.State != storage.StateFailedRetryable:
			f.Errorf("I9: %s is stuck, %s since %v", r.OperationID, r.State, time.Since(r.LeaseUntil))
		}
	}
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if len(f.store.wrong) > 0 {
		f.Errorf("transitions that must not be:\n%s", strings.Join(f.store.wrong, "\n"))
	}
	f.Logf("%d deaths, ends %v, transitions %v", f.deaths, ends, f.store.seen)
	return f.store.seen
}
