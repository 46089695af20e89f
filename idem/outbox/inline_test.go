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
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

const (
	topicScreening = "payouts.screening"
	topicPayout    = "payouts.payout"
)

// chain is an application with an operation of two phases that delivers inline, and the workers behind it.
type chain struct {
	*world
	topics *outbox.Topics
	worker *outbox.Worker
	runner *outbox.Runner
	// calls counts what reached the store or the provider; from deadAt on, nothing of the request's process does. lostAt
	// is the call that is made, and whose reply nobody hears.
	calls, deadAt, lostAt atomic.Int64
}

var errKilled = errors.New("killed")

func newChain(t *testing.T, change func(*outbox.Topic)) *chain {
	t.Helper()
	c := &chain{world: newWorld(t, options{})}
	topic := func(name string, settle func(storage.Message, outbox.Outcome) (outbox.Settlement, error)) outbox.Topic {
		topic := outbox.Topic{
			Name: name, Call: c.provider.call, Settle: settle, Keys: outbox.Keys{Honoured: true, Retention: time.Hour}, AttemptsMax: 5,
		}
		if change != nil {
			change(&topic)
		}
		c.provider.keyed = topic.Keys.Honoured
		return topic
	}
	var err error
	c.topics, err = outbox.NewTopics(outbox.Config{Now: c.clock.Now, Random: c.mint.Random, Pause: c.clock.Pause},
		topic(topicScreening, settleScreening), topic(topicPayout, settle))
	c.ok(err)
	c.worker, err = outbox.NewWorker(c.inner, c.topics, c.queue, c.queue)
	c.ok(err)
	c.runner, err = outbox.NewRunner(c.worker, nil, nil)
	c.ok(err)
	return c
}

// settleScreening continues with the payout, unless the screening says no.
func settleScreening(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	said, err := settle(m, o)
	if _, delivered := o.(outbox.Delivered); delivered {
		said.Next = &outbox.Next{Topic: topicPayout, Payload: []byte(payload)}
	}
	return said, err
}

// operation registers the payouts of one process, which may be killed where it is mortal.
func (c *chain) operation(mortal bool) *idem.Registered {
	c.Helper()
	store := c.store
	if mortal {
		store = faulty.New(c.inner)
		store.All(func(ctx context.Context, run func(context.Context) error) error {
			return c.alive(func() error { return run(ctx) })
		})
	}
	worker, err := outbox.NewWorker(store, c.mortalTopics(mortal), c.queue, c.queue)
	c.ok(err)
	inline, err := outbox.NewInline(worker)
	c.ok(err)
	engine, err := idem.New(store, idem.Config{Now: c.clock.Now, Random: c.mint.Random, Pause: c.clock.Pause})
	c.ok(err)
	op, err := engine.Register(idem.Operation{Name: "payouts.create", Kind: idem.KindDeferred, Policy: idem.IETF(), Inline: inline})
	c.ok(err)
	return op
}

// alive makes a call of a process that may be dead by now, or die before it hears the reply.
func (c *chain) alive(run func() error) error {
	n, deadAt, lostAt := c.calls.Add(1), c.deadAt.Load(), c.lostAt.Load()
	if deadAt > 0 && n >= deadAt {
		return &storage.OutcomeUnknownError{Cause: errKilled}
	}
	if err := run(); lostAt == 0 || n < lostAt {
		return err
	}
	c.deadAt.Store(n)
	return &storage.OutcomeUnknownError{Cause: errKilled}
}

func (c *chain) mortalTopics(mortal bool) *outbox.Topics {
	if !mortal {
		return c.topics
	}
	call := func(ctx context.Context, m storage.Message) (o outbox.Outcome) {
		if err := c.alive(func() error { o = c.provider.call(ctx, m); return nil }); err != nil {
			return outbox.Ambiguous{Cause: err}
		}
		return o
	}
	keys := outbox.Keys{Honoured: c.provider.keyed}
	if keys.Honoured {
		keys.Retention = time.Hour
	}
	pause := func(ctx context.Context, d time.Duration) error {
		if deadAt := c.deadAt.Load(); deadAt > 0 && c.calls.Load() >= deadAt { // the dead do not go on
			return errKilled
		}
		return c.clock.Pause(ctx, d)
	}
	topics, err := outbox.NewTopics(outbox.Config{Now: c.clock.Now, Random: c.mint.Random, Pause: pause},
		outbox.Topic{Name: topicScreening, Call: call, Settle: settleScreening, Keys: keys, AttemptsMax: 5},
		outbox.Topic{Name: topicPayout, Call: call, Settle: settle, Keys: keys, AttemptsMax: 5})
	c.ok(err)
	return topics
}

func (c *chain) request(op *idem.Registered, key string) (*idem.Result, error) {
	return c.requestWithin(c.Context(), op, key)
}

func (c *chain) requestWithin(ctx context.Context, op *idem.Registered, key string) (*idem.Result, error) {
	return op.Do(ctx, idem.Request{Tenant: "t", Key: key, Input: canonical.Input{}}, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Send(topicScreening, []byte(payload))
		reserve := memstore.Write{Key: "reserved " + string(tx.OperationID()), Condition: func(row []byte) bool { return row == nil }, Apply: func([]byte) []byte { return []byte("1") }}
		tx.Write(reserve)
		return idem.JSON(202, map[string]string{"operation": string(tx.OperationID())})
	})
}

// payout demands an answer, its outcome and status, and returns its operation.
func (c *chain) payout(op *idem.Registered, outcome idem.Outcome, status int) idem.OperationID {
	c.Helper()
	result, err := c.request(op, "k")
	c.ok(err)
	if result.Outcome != outcome || result.Response.Status != status {
		c.Fatalf("%s with status %d, want %s with %d", result.Outcome, result.Response.Status, outcome, status)
	}
	if final := result.State.Final(); final != (status != 202) || final == result.ExpiresAt.IsZero() {
		c.Errorf("a %d in state %s that expires at %v", status, result.State, result.ExpiresAt)
	}
	return result.OperationID
}

// effects demands how often the provider made the effect of each phase.
func (c *chain) effects(id idem.OperationID, screenings, payouts int) {
	c.Helper()
	if s, p := c.provider.made(id.Message(1)), c.provider.made(id.Message(2)); s != screenings || p != payouts {
		c.Errorf("%d screenings and %d payouts, want %d and %d", s, p, screenings, payouts)
	}
}

// wake serves everything that wakes workers, without clients, for an hour: queue and sweep.
func (c *chain) wake() {
	c.Helper()
	for range 60 {
		_, err := c.runner.Sweep(c.Context())
		c.ok(err)
		for _, id := range c.queue.Take() {
			c.ok(c.worker.Deliver(c.Context(), id))
		}
		c.clock.Add(time.Minute)
	}
}

// design.md "Kinds of operation": both phases and the final answer in one request; a duplicate replays it.
func TestInlineAnswersTheFinalResultInOneRequest(t *testing.T) {
	c := newChain(t, nil)
	op := c.operation(false)
	id := c.payout(op, idem.OutcomeExecuted, 201)
	c.effects(id, 1, 1)
	if again := c.payout(op, idem.OutcomeReplayed, 201); again != id {
		t.Errorf("replayed %s, want %s", again, id)
	}
	c.effects(id, 1, 1)
	if at, waiting := c.queue.Next(); waiting {
		t.Errorf("a wake-up at %v, with nothing left to do", at)
	}
}

// A decline of the first phase ends the chain.
func TestInlineDeclineEndsTheChain(t *testing.T) {
	c := newChain(t, nil)
	c.provider.script = []string{"402"}
	op := c.operation(false)
	id := c.payout(op, idem.OutcomeExecuted, 402)
	c.payout(op, idem.OutcomeReplayed, 402)
	c.effects(id, 0, 0)
}

// What the provider refuses for good is answered in the same request.
func TestInlineRefusalIsAnsweredAtOnce(t *testing.T) {
	c := newChain(t, nil)
	c.provider.script = []string{"400"}
	c.payout(c.operation(false), idem.OutcomeExecuted, 502)
}

// A call without an answer leaves the 202, and a worker finishes with the client gone.
func TestInlineLeavesWhatIsNotAnsweredToAWorker(t *testing.T) {
	for phase, script := range [][]string{{"lost"}, {"", "lost"}, {"429"}, {"", "500 before"}} {
		t.Run(fmt.Sprintf("%d %s", phase, strings.Join(script, ",")), func(t *testing.T) {
			c := newChain(t, nil)
			c.provider.script = script
			op := c.operation(false)
			id := c.payout(op, idem.OutcomeExecuted, 202)
			c.wake()
			c.payout(op, idem.OutcomeReplayed, 201)
			c.effects(id, 1, 1)
		})
	}
}

// While a claim lives, a duplicate gets the 202 and calls nobody.
func TestInlineDuplicateOfALiveClaimGetsThe202(t *testing.T) {
	c := newChain(t, nil)
	op := c.operation(false)
	var once sync.Once
	c.provider.during = func() {
		once.Do(func() { c.payout(op, idem.OutcomeReplayed, 202) })
	}
	id := c.payout(op, idem.OutcomeExecuted, 201)
	c.effects(id, 1, 1)
	if n := c.provider.called(); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

// A phase for which there is no time left is left to its stream record: pending, not claimed.
func TestInlineLeavesAPhaseWithoutTimeToItsWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, nil)
		op := c.operation(false)
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		c.provider.during = func() { time.Sleep(2 * time.Second); c.clock.Add(2 * time.Second) } // the next call and its settlement want 7 s
		result, err := c.requestWithin(ctx, op, "k")
		c.ok(err)
		if m := c.message(result.OperationID.Message(2)); result.Response.Status != 202 || m.State != storage.MessagePending || !m.OpenSince.IsZero() {
			t.Errorf("status %d, second message %s, open since %v; want 202, pending, never", result.Response.Status, m.State, m.OpenSince)
		}
		c.ok(c.worker.Deliver(t.Context(), result.OperationID.Message(2)))
		c.effects(result.OperationID, 1, 1)
	})
}

// The process that serves the request is killed before and after each of its calls to store and provider. With the
// claim's lease over, the client's retry, or the workers alone, finish the chain, each effect made once (design.md I1, I2, I9).
func TestInlineKilledAtEveryCallIsFinishedOnce(t *testing.T) {
	for _, finish := range []string{"by the retry", "by the workers"} {
		for _, where := range []string{"before", "after"} {
			for call := int64(1); ; call++ {
				c := newChain(t, nil)
				switch where {
				case "before":
					c.deadAt.Store(call)
				case "after":
					c.lostAt.Store(call)
				}
				if result, err := c.request(c.operation(true), "k"); err == nil && result.State.Final() && c.deadAt.Load() == 0 || c.calls.Load() < call {
					if call < 6 {
						t.Fatalf("the request made %d calls only", c.calls.Load())
					}
					break
				}
				t.Run(fmt.Sprintf("killed %s call %d, finished %s", where, call, finish), func(t *testing.T) {
					c.T = t
					c.clock.Add(11 * time.Second)
					if finish == "by the workers" {
						c.wake()
					}
					c.finished(finish == "by the workers")
				})
			}
		}
	}
}

// finished demands the end of what a killed request has begun: by then, or by a retry.
func (c *chain) finished(already bool) {
	c.Helper()
	op := c.operation(false)
	begun := len(c.inner.Records()) > 0
	result, err := c.request(op, "k")
	c.ok(err)
	if begun && result.Outcome != idem.OutcomeReplayed {
		c.Errorf("what was committed is %s", result.Outcome)
	}
	if !result.State.Final() && !already {
		c.wake() // its back-off may still run
		result, err = c.request(op, "k")
		c.ok(err)
	}
	if result.Response.Status != 201 {
		c.Errorf("status %d in state %s, want 201", result.Response.Status, result.State)
	}
	c.effects(result.OperationID, 1, 1)
	if rows := c.inner.Row("reserved " + string(result.OperationID)); string(rows) != "1" {
		c.Errorf("reserved %q", rows)
	}
}

// At a provider without keys, a phase whose caller died with the call open ends unknown: nobody calls again.
func TestInlineKilledAtAProviderWithoutKeysEndsUnknown(t *testing.T) {
	for _, phase := range []int{1, 2} {
		t.Run(fmt.Sprintf("phase %d", phase), func(t *testing.T) {
			c := newChain(t, keyless)
			calls := 0
			c.provider.during = func() {
				if calls++; calls == phase {
					c.deadAt.Store(c.calls.Load()) // the answer is never heard
				}
			}
			if _, err := c.request(c.operation(true), "k"); err != nil {
				t.Fatal(err)
			}
			c.provider.during = nil
			c.clock.Add(11 * time.Second)
			op := c.operation(false)
			id := c.payout(op, idem.OutcomeReplayed, 202)
			c.wake()
			c.payout(op, idem.OutcomeReplayed, 202)
			if m := c.message(id.Message(phase)); m.State != storage.MessageUnknown {
				t.Errorf("message %d is %s, want unknown", phase, m.State)
			}
			c.effects(id, 1, phase-1)
		})
	}
}

// Duplicates that race for an abandoned chain finish it once.
func TestInlineDuplicatesRaceForADeadClaim(t *testing.T) {
	c := newChain(t, nil)
	c.lostAt.Store(4) // the commit
	_, err := c.request(c.operation(true), "k")
	if err == nil {
		t.Fatal("a killed request answered")
	}
	c.clock.Add(time.Minute)
	op := c.operation(false)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if result, err := c.request(op, "k"); err != nil || result.Outcome != idem.OutcomeReplayed {
				t.Errorf("%v, %v", result, err)
			}
		})
	}
	group.Wait()
	c.effects(c.payout(op, idem.OutcomeReplayed, 201), 1, 1)
	if n := c.provider.called(); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

func TestInlineIsForDeferredOperationsOnly(t *testing.T) {
	c := newChain(t, nil)
	inline, err := outbox.NewInline(c.worker)
	c.ok(err)
	engine, err := idem.New(c.store, idem.Config{})
	c.ok(err)
	_, err = engine.Register(idem.Operation{Name: "a.b", Kind: idem.KindAtomic, Policy: idem.IETF(), Inline: inline})
	var rejected *idem.ConfigError
	if !errors.As(err, &rejected) || rejected.Field != "Operation.Inline" {
		t.Errorf("%v, want a ConfigError of Operation.Inline", err)
	}
	if _, err := outbox.NewInline(nil); !errors.As(err, &rejected) {
		t.Errorf("no worker: %v, want a ConfigError", err)
	}
}

// Once a 202 is committed the operation never becomes failed_retryable, whatever becomes of its message: no second
// execution, no second id, and the same bytes until there is a final answer.
func TestA202IsNeverExecutedAgain(t *testing.T) {
	for name, script := range map[string][]string{
		"given up":            {"429", "429", "429", "429", "429"},
		"refused":             {"409"},
		"unknown":             {"lost", "lost", "lost", "lost", "lost"},
		"declined at last":    {"429", "402"},
		"a panic":             {"panic", "500 before", "402"},
		"an answer of no use": {"nil"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChain(t, nil)
			c.provider.script = script
			op := c.operation(false)
			first, err := c.request(op, "k")
			c.ok(err)
			for range 4 {
				again, err := c.request(op, "k")
				c.ok(err)
				if again.Outcome != idem.OutcomeReplayed || again.OperationID != first.OperationID {
					t.Errorf("%s of %s, want a replay of %s", again.Outcome, again.OperationID, first.OperationID)
				}
				if again.Response.Status == 202 && string(again.Response.Body) != string(first.Response.Body) {
					t.Errorf("another 202: %s, then %s", first.Response.Body, again.Response.Body)
				}
				for _, r := range c.inner.Records() {
					if r.State == storage.StateFailedRetryable || r.Epoch != 1 {
						t.Errorf("the record is %s in epoch %d", r.State, r.Epoch)
					}
				}
				c.wake()
			}
			if rows := c.inner.Row("reserved " + string(first.OperationID)); string(rows) != "1" || len(c.inner.Records()) != 1 {
				t.Errorf("reserved %q, %d records", rows, len(c.inner.Records()))
			}
		})
	}
}
