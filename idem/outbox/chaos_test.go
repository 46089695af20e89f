package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// chaos makes a world in which, around each call to the store and to the provider, anything may happen that a seed says:
// replies and requests get lost or land later, processes die, time passes, other workers, sweeps and reconcilers run in between.
type chaos struct {
	*world
	outbox.Records
	storage.Loss
	random *rand.Rand
	ids    []idem.MessageID
	// under way: what was sent and has not landed yet, with until when it must or is lost.
	late  []func()
	depth int
	calm  bool
	// probed says that the provider can be asked; elsewhere what is unknown stays so.
	probed bool

	made map[idem.MessageID]madeCharge
}

type madeCharge struct {
	outcome string
	first   time.Time
	charges int
}

var errDied = errors.New("the process died")

func (c *chaos) chance(percent int) bool { return !c.calm && c.random.IntN(100) < percent }

// meanwhile lets something else happen.
func (c *chaos) meanwhile() {
	if c.depth > 2 {
		return
	}
	c.depth++
	defer func() { c.depth-- }()
	switch {
	case c.chance(10):
		c.clock.Add(time.Duration(c.random.IntN(15_000)) * time.Millisecond)
	case c.chance(1):
		c.clock.Add(time.Duration(c.random.IntN(60)) * time.Minute)
	case c.chance(10):
		id := c.ids[c.random.IntN(len(c.ids))]
		_ = mortal(func() error { return c.worker.Deliver(c.Context(), id) }) // trouble with the store is what this is about
	case c.chance(5):
		_ = mortal(func() error { _, err := c.sweep(c.Context()); return err })
	case c.chance(5):
		_ = mortal(func() error { _, err := c.reconcile(c.Context()); return err })
	case c.chance(10) && len(c.late) > 0:
		c.land(c.random.IntN(len(c.late)))
	}
}

func (c *chaos) land(i int) {
	f := c.late[i]
	c.late = append(c.late[:i:i], c.late[i+1:]...)
	f()
}

// around makes one write, or not, or later.
func (c *chaos) around(ctx context.Context, run func(context.Context) error) error {
	c.meanwhile()
	var err error
	switch {
	case c.chance(4):
		err = &storage.OutcomeUnknownError{Cause: errDied}
	case c.chance(4):
		c.late = append(c.late, func() { _ = run(context.WithoutCancel(ctx)) }) // nobody hears of it
		err = &storage.OutcomeUnknownError{Cause: errDied}
	case c.chance(4):
		_ = run(ctx)
		err = &storage.OutcomeUnknownError{Cause: errDied}
	case c.chance(3):
		err = storage.ErrContention
	case c.chance(3):
		err = errDied
	case c.chance(3):
		_ = run(ctx)
		panic(errDied)
	default:
		err = run(ctx)
	}
	c.meanwhile()
	return err
}

func (c *chaos) Message(ctx context.Context, id idem.MessageID) (*storage.Message, error) {
	if c.chance(3) {
		return nil, errDied
	}
	m, err := c.inner.Message(ctx, id)
	c.meanwhile()
	return m, err
}

func (c *chaos) UpdateMessage(ctx context.Context, m storage.Message, fence storage.MessageFence) error {
	return c.around(ctx, func(ctx context.Context) error { return c.inner.UpdateMessage(ctx, m, fence) })
}

func (c *chaos) PatchMessage(ctx context.Context, end storage.MessageEnd, fence storage.MessageFence) error {
	return c.around(ctx, func(ctx context.Context) error { return c.inner.PatchMessage(ctx, end, fence) })
}

func (c *chaos) PostponeMessage(ctx context.Context, id idem.MessageID, at time.Time, fence storage.MessageFence) error {
	return c.around(ctx, func(ctx context.Context) error { return c.inner.PostponeMessage(ctx, id, at, fence) })
}

func (c *chaos) PrepareSettle(s storage.Settlement) (func(context.Context) error, error) {
	send, err := c.inner.PrepareSettle(s)
	return func(ctx context.Context) error { return c.around(ctx, send) }, err
}

func (c *chaos) QueuedMessages(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) ([]storage.MessageRef, string, error) {
	return c.inner.QueuedMessages(ctx, queue, shard, until, limit, cursor)
}

func (c *chaos) Place(ctx context.Context, name string) (string, error) {
	return c.inner.Place(ctx, name)
}

func (c *chaos) SetPlace(ctx context.Context, name, cursor string) error {
	return c.inner.SetPlace(ctx, name, cursor)
}

func (c *chaos) Shards() int { return c.inner.Shards() }

// mortal stands between a worker and its process: a death ends the work at that very point.
func mortal(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if p != errDied {
				panic(p)
			}
			err = errDied
		}
	}()
	return f()
}

// process is the provider's: it repeats what it remembers under an honoured key, else it charges or declines.
func (c *chaos) process(id idem.MessageID) string {
	now := c.clock.Now()
	made, ok := c.made[id]
	if ok && c.provider.keyed && now.Before(made.first.Add(time.Hour)) {
		return made.outcome
	}
	made.outcome, made.first = "delivered", now
	if c.random.IntN(5) == 0 && made.charges == 0 {
		made.outcome = "declined"
	} else {
		made.charges++
	}
	c.made[id] = made
	return made.outcome
}

func (c *chaos) call(_ context.Context, m storage.Message) outbox.Outcome {
	c.meanwhile()
	now := c.clock.Now()
	if now.After(m.LeaseUntil) {
		// The caller lost its lease while the call was on its way; its context would have ended it.
		return outbox.NotExecuted{Cause: errDied}
	}
	switch {
	case c.chance(15):
		return outbox.NotExecuted{Cause: errors.New("429")}
	case c.chance(5):
		return outbox.Refused{Cause: errors.New("400")}
	case c.chance(10):
		return outbox.Ambiguous{Cause: errors.New("500")}
	case c.chance(10): // processed while its caller waits no more, at most LongestRequest later
		c.late = append(c.late, func() {
			if c.clock.Now().Before(now.Add(time.Minute)) {
				c.process(m.ID)
			}
		})
		return outbox.Ambiguous{Cause: errors.New("time-out")}
	}
	outcome := c.process(m.ID)
	c.meanwhile()
	switch {
	case c.chance(20):
		return outbox.Ambiguous{Cause: errors.New("connection lost")}
	case c.chance(5):
		return outbox.Refused{Unproven: true, Cause: errors.New("409: the key's first request is still running")}
	case c.chance(5):
		panic("a bug in the topic")
	case outcome == "declined":
		return outbox.Declined{Reference: "ch_no"}
	}
	return outbox.Delivered{Reference: "ch_" + string(m.ID)}
}

// probe looks, and what it saw may be old when its caller hears of it.
func (c *chaos) probe(_ context.Context, m storage.Message) outbox.Finding {
	c.meanwhile()
	made, ok := c.made[m.ID]
	c.meanwhile()
	switch {
	case c.chance(15):
		return outbox.Unclear{Cause: errors.New("503")}
	case c.chance(5):
		panic("a bug in the topic")
	case !ok:
		return outbox.Absent{}
	case made.outcome == "declined":
		return outbox.Found{Outcome: outbox.Declined{Reference: "ch_no"}}
	}
	return outbox.Found{Outcome: outbox.Delivered{Reference: "ch_" + string(m.ID)}}
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{random: rand.New(rand.NewPCG(seed, 1)), made: map[idem.MessageID]madeCharge{}}
	c.world = newWorld(t, options{seed: seed, topic: func(topic *outbox.Topic) {
		if topic.AttemptsMax = 4; seed%2 == 1 {
			keyless(topic)
		}
	}})
	cfg := outbox.Config{Now: c.clock.Now, Random: c.mint.Random, Pause: c.clock.Pause, ProbeBackoffMax: 5 * time.Minute, SweepConcurrency: 1}
	if seed/2%2 == 1 { // the sweep reads nothing that is due
		cfg.WakeUpsMax = 1000
	}
	keys := outbox.Keys{Honoured: true, Retention: time.Hour}
	if !c.provider.keyed {
		keys = outbox.Keys{}
	}
	topic := outbox.Topic{Name: topicName, Call: c.call, Settle: settle, Keys: keys, AttemptsMax: 4, AgeMax: 2 * time.Hour}
	if c.probed = seed%3 != 0; c.probed {
		topic.Probe = c.probe
	}
	topics, err := outbox.NewTopics(cfg, topic)
	c.ok(err)
	c.Records, c.Loss = c.inner, c.inner
	c.worker, err = outbox.NewWorker(c, topics, c.queue, c.queue)
	c.ok(err)
	c.runner, err = outbox.NewRunner(c.worker, nil, nil)
	c.ok(err)
	for range 3 {
		c.ids = append(c.ids, c.accept())
	}
	return c
}

// run lets chaos reign, then lets sweeps, reconcilers, wake-ups and time alone bring everything to an end (docs/design.md I9).
func (c *chaos) run() {
	for range 60 {
		for _, id := range append(c.queue.Take(), c.ids[c.random.IntN(len(c.ids))]) {
			_ = mortal(func() error { return c.worker.Deliver(c.Context(), id) })
			c.depth = 0
		}
		_ = mortal(func() error { _, err := c.sweep(c.Context()); return err })
		c.depth = 0
		_ = mortal(func() error { _, err := c.reconcile(c.Context()); return err })
		c.depth = 0
		c.clock.Add(time.Duration(c.random.IntN(8)) * time.Second)
	}
	c.calm = true
	for len(c.late) > 0 {
		c.land(c.random.IntN(len(c.late)))
	}
	for range 30 {
		c.clock.Add(time.Minute)
		_, err := c.sweep(c.Context())
		c.ok(err)
		_, err = c.reconcile(c.Context())
		c.ok(err)
		for _, id := range c.queue.Take() {
			c.ok(c.worker.Deliver(c.Context(), id))
		}
	}
}

func (c *chaos) check(id idem.MessageID) error {
	m, r, made := c.message(id), c.record(id), c.made[id]
	row := string(c.inner.Row("payment " + string(id)))
	told := fmt.Sprintf("message %s, open %v; record %s, status %d; row %q; %d charges", m.State, !m.OpenSince.IsZero(), r.State, r.Response.Status, row, made.charges)
	switch {
	case made.charges > 1:
		return errors.New("I2, charged twice: " + told)
	case m.State == storage.MessagePending || m.State == storage.MessageClaimed || m.State == storage.MessageEvidenced:
		return errors.New("I9, stuck: " + told)
	case m.State == storage.MessageUnknown && c.probed:
		return errors.New("I9, unknown for ever: " + told)
	case r.State == storage.StateFailed && (made.charges > 0 || row != "not_executed"):
		return errors.New("I4/I6, told failed: " + told)
	case r.State == storage.StateCompleted && (r.Response.Status == 201) != (made.charges == 1):
		return errors.New("I4, told another outcome: " + told)
	case r.State == storage.StateCompleted && (row == "delivered") != (made.charges == 1):
		return errors.New("I1/I6, other business writes: " + told)
	case m.State == storage.MessageDead && !slices.ContainsFunc(c.queue.Letters(), func(l outbox.DeadLetter) bool { return l.Message == id }):
		return errors.New("I9, dead, and no operator was told: " + told)
	case r.State == storage.StatePending && (m.State.Final() || row != ""):
		return errors.New("I3, lost: " + told)
	}
	return nil
}

func TestAnySchedule(t *testing.T) {
	ends := map[string]int{}
	for seed := range outbox.Sized[uint64](600, 150) {
		c := newChaos(t, seed)
		c.run()
		for _, id := range c.ids {
			if err := c.check(id); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			ends[fmt.Sprintf("%s/%s", c.message(id).State, c.record(id).State)]++
		}
	}
	for _, end := range []string{"delivered/completed", "declined/completed", "dead/failed", "dead/pending", "unknown/pending"} {
		if ends[end] == 0 {
			t.Errorf("no schedule ended %s: the test proves less than it says; it saw %v", end, ends)
		}
	}
	t.Logf("ends: %v", ends)
}
