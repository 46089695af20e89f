package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Story is how a seed's story went.
type Story struct {
	// Seed makes the same story again.
	Seed uint64
	// Steps are calls that reached the store or the provider.
	Steps int
	// Faults are the names of what went wrong.
	Faults []string
	// Broken are the invariants that do not hold, in the order in which they broke.
	Broken []string
	// Lines are what happened, if they were asked for.
	Lines []string
}

// Stories plays the stories of an application from a seed on, until they have so many steps together. The first that breaks is shrunk, and
// told with the command that tells it again: again, with the story's flags.
func Stories(t *testing.T, begin Begin, again string, first uint64, least int) {
	t.Helper()
	steps, seed := 0, first
	for ; steps < least && !t.Failed(); seed++ {
		story := Tell(t, begin, seed, nil, false)
		if steps/progressEvery != (steps+story.Steps)/progressEvery {
			t.Logf("%d stories, %d steps so far", seed-first, steps)
		}
		steps += story.Steps
		if len(story.Broken) > 0 {
			small := Shrink(t, begin, story)
			t.Errorf("seed %d: %s\n%s\nagain: %s -sim.seed %d -sim.only '%s'", seed, strings.Join(story.Broken, "; "), strings.Join(small.Lines, "\n"), again, small.Seed, strings.Join(small.Faults, "|"))
		}
	}
	t.Logf("%d stories, %d steps; -sim.seed %d -sim.steps %d plays them again", seed-first, steps, first, least)
}

// progressEvery is after how many steps Stories says how far it is.
const progressEvery = 250_000

// Twice tells so many stories twice: the same seed is the same story.
func Twice(t *testing.T, begin Begin, stories uint64) {
	t.Helper()
	for seed := range stories {
		a, b := Tell(t, begin, seed, nil, true), Tell(t, begin, seed, nil, true)
		if slices.Equal(a.Lines, b.Lines) {
			continue
		}
		a.Lines, b.Lines = append(a.Lines, "the end of one"), append(b.Lines, "the end of the other")
		for i, line := range a.Lines {
			if line != b.Lines[i] {
				t.Fatalf("seed %d, line %d:\n%s\n%s", seed, i, line, b.Lines[i])
			}
		}
	}
}

// Replay tells the story of one seed, with all of its faults or with those of a text as Stories prints them.
func Replay(t *testing.T, begin Begin, seed uint64, only string) {
	t.Helper()
	var faults []string
	if only != "" {
		faults = strings.Split(only, "|")
	}
	story := Tell(t, begin, seed, faults, true)
	t.Log("\n" + strings.Join(story.Lines, "\n"))
	if len(story.Broken) > 0 {
		t.Error(strings.Join(story.Broken, "\n"))
	}
}

// Tell plays the story of a seed. Where only is not nil nothing goes wrong but what it names.
func Tell(t *testing.T, begin Begin, seed uint64, only []string, lines bool) (story Story) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(beginning))
		w := newWorld(t, begin, seed, only, lines)
		w.play()
		story = Story{Seed: seed, Steps: int(w.steps.Load()), Faults: w.happened(), Broken: w.wrong, Lines: w.lines}
	})
	return story
}

// play lets everybody act, until nothing can happen any more but by a person.
func (w *world) play() {
	w.spawn(w.deliverWakeUps)
	for _, k := range w.keys {
		for n := range 1 + w.oneOf("clients of "+k.name, w.mood.clients) {
			w.clients.Add(1)
			w.spawn(func() { w.client(k, n+1) })
		}
	}
	w.scheduled()
	w.judgeEnd()
	w.nextDay()
	time.Sleep(50*time.Hour + w.mood.expires) // beyond every retention, that of messages too
	w.expire()
	w.judgeGone()
	w.over.Store(true)
	close(w.end)
	w.background.Wait()
	time.Sleep(time.Hour) // what idem's own goroutines still send ends soon, now that nothing goes wrong any more
}

// client sends the requests of one key, from once until it has its final answer or gives up. Where clients come again, they do so
// about when their key expires.
func (w *world) client(k *key, n int) {
	defer w.clients.Add(-1)
	name := fmt.Sprintf("client %d of %s", n, k.name)
	body := w.oneOf(name+" asks for", w.mood.bodies)
	time.Sleep(w.between(name+" begins", 0, []time.Duration{100 * time.Millisecond, 20 * time.Second}[w.oneOf("clients of "+k.name+" begin", 2)]))
	for try := 1; try <= 12 && !w.over.Load(); try++ {
		who := fmt.Sprintf("%s, try %d", name, try)
		p := w.instance(who)
		w.asked(k)
		w.say("%s asks %s", who, p.name)
		asked := time.Now()
		a := p.serve(k, who, body, w.between(who+" patience", time.Second, 35*time.Second))
		if w.over.Load() {
			return
		}
		w.answered(k, who, asked, body, a)
		w.pry(k, who, a)
		pause := w.between(who+" pause", 50*time.Millisecond, time.Duration(try)*w.mood.hurry)
		switch done := a.final() || a.mismatch(); {
		case done && w.mood.again && a.final() && try < 8:
			pause = max(0, time.Until(a.result.ExpiresAt)) + w.between(who+" comes again", -1500*time.Millisecond, 4*time.Second)
		case done && w.oneOf(who+" asks again", 3) != 0, w.fault(who+" gives up", 50, 1) != nothingWrong:
			return
		}
		time.Sleep(pause)
	}
}

// pry has another tenant ask what became of an operation, by its id. To them there is no such operation (I5).
func (w *world) pry(k *key, who string, a answer) {
	if w.mood.tenants == 1 || a.err != nil || a.result.OperationID == "" || w.oneOf(who+" is pried upon", 3) != 0 {
		return
	}
	_ = w.invoke("prying", who+", pried upon", func(ctx context.Context, p *process) error {
		seen, err := p.served.Pry(ctx, k.name, a.result)
		if seen != "" {
			Stage{w}.BrokenLater("I5: another tenant is told %s of the operation of %s", seen, k.name)
		}
		return err
	})
}

// A story lasts this long, and what runs every few seconds at its beginning runs every hour at its end. Where something has not ended by
// then, nothing goes wrong any more, and everything must end: no promise to end it holds where the store never answers. Those who were
// to be told are told within a day, and what is in doubt is probed each hour.
const (
	storyLasts = 60 * time.Hour
	calmLasts  = 48 * time.Hour
)

// busyFor is for how long what is scheduled runs in its first period.
const busyFor = 3 * time.Minute

// amendersCome in each third round.
const amendersCome = 3

// operatorsLooks is how often the operator looks in the end at what waits for him.
const operatorsLooks = 2

// thereIsAnOperator decides whether somebody looks in the end at what waits for a person.
const thereIsAnOperator = "there is an operator"

// scheduled runs what the platform runs by a schedule, and the native TTL; and people, who look now and then, and in the end.
func (w *world) scheduled() {
	period, looks := w.mood.period, 0
	for round := 1; time.Since(beginning) < storyLasts || w.calms(); round++ {
		name := fmt.Sprintf("round %d", round)
		time.Sleep(w.between(name, period, period+period/4))
		if time.Since(beginning) > busyFor {
			period = min(period*3/2, time.Hour)
		}
		if !w.idle() {
			w.spawn(func() { w.run("sweep", name, (*outbox.Runner).Sweep) })
			if w.fault(name+" reconciles beside itself", w.mood.wakeUps, 1) != nothingWrong {
				w.spawn(func() { w.run("second reconcile", name, (*outbox.Runner).Reconcile) })
			}
			w.run("reconcile", name, (*outbox.Runner).Reconcile)
		}
		if !w.app.Idle() {
			w.spawn(func() { w.schedule(name) })
		}
		w.expire()
		if w.mood.amenders && round%amendersCome == 0 && round < 20 {
			w.amend(round)
		}
		switch {
		case !w.ended() || !w.app.Idle() || w.clients.Load() > 0:
			if w.mood.people && round%4 == 0 && round < 60 {
				w.operators(round, 2, false)
			}
		case round < w.mood.rounds: // somebody has yet to come
		case looks == operatorsLooks || w.oneOf(thereIsAnOperator, 2) == 0:
			return
		default:
			looks++
			w.operators(round, 1, true)
			time.Sleep(6 * time.Minute)
		}
	}
}

// calms says that the story goes on after its time, and lets nothing go wrong any more.
func (w *world) calms() bool {
	w.calm.Store(true)
	return time.Since(beginning) < storyLasts+calmLasts && !w.ended()
}

// idle says that a run of the sweep or the reconciler would find nothing.
func (w *world) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.judge.messages {
		if !m.State.Final() {
			return false
		}
	}
	for _, r := range w.judge.records {
		if _, _, queued := r.Queue(); queued {
			return false
		}
	}
	return true
}

// run is one run of the sweep or the reconciler. What failed is done by the next.
func (w *world) run(what, round string, work func(*outbox.Runner, context.Context, ...int) (outbox.Report, error)) {
	time.Sleep(w.between(what+" of "+round, 0, 5*time.Second))
	_ = w.invoke(what, what+" of "+round, func(ctx context.Context, p *process) error {
		_, err := work(p.runner, ctx)
		return err
	})
}

// nextDay is a day on which nothing goes wrong, and at its end a sweep: what is dead is told of again. A process may have been too slow, or of
// another release.
func (w *world) nextDay() {
	w.calm.Store(true)
	w.mu.Lock()
	w.planned = false // what is planned is over
	clear(w.judge.told)
	w.mu.Unlock()
	time.Sleep(25 * time.Hour)
	for n := 1; n <= 3 && len(w.unreminded()) > 0; n++ {
		w.run("sweep", fmt.Sprintf("the next day, %d", n), (*outbox.Runner).Sweep)
	}
	w.judgeReminders()
}

// schedule is one run of what the application's own schedule does.
func (w *world) schedule(round string) {
	who := "schedule of " + round
	time.Sleep(w.between(who, 0, 5*time.Second))
	_ = w.invoke("schedule", who, func(ctx context.Context, p *process) error { return p.served.Scheduled(ctx) })
}

// expire lets the native TTL remove what it does by now: it is as late as the story's mood says.
func (w *world) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.memory.Expire(time.Now().Add(-w.mood.expires))
	w.look(nil)
}

// wakeUp is a hint to the worker: a stream record, which has the message as it was inserted, or a queue message.
type wakeUp struct {
	id    idem.MessageID
	seen  *storage.Message
	after time.Duration
	try   int
	name  string
}

// stream is what the stream shows of a message that was inserted. Called with the lock held.
func (w *world) stream(m storage.Message) {
	name := w.numbered("stream record of " + w.subject(m) + " to " + m.Topic)
	w.hint(wakeUp{id: m.ID, seen: &m, name: name, try: 1})
}

// wakeUp is what the queue does with a wake-up.
func (w *world) wakeUp(id idem.MessageID, delay time.Duration) {
	w.hint(wakeUp{id: id, after: delay, name: w.numbered("wake-up of " + w.ofMessage(id)), try: 1})
}

// ofMessage names a message by its key and topic, because ids differ where stories do.
func (w *world) ofMessage(id idem.MessageID) string {
	if m, err := w.memory.Message(context.Background(), id); err == nil && m != nil {
		return w.subject(*m) + " to " + m.Topic
	}
	return "nobody"
}

// hint delivers a wake-up, or loses it, or doubles it, or lets it be late.
func (w *world) hint(hint wakeUp) {
	wrong := w.fault(hint.name, w.mood.wakeUps, 3)
	late := w.between(hint.name, time.Millisecond, 2*time.Second)
	switch wrong {
	case 1:
		return
	case 2:
		late = w.between(hint.name+" late", time.Second, 20*time.Minute)
	case 3:
		twin := hint
		twin.name += " again"
		twin.after += w.between(twin.name, time.Millisecond, time.Minute)
		w.queue <- twin
	}
	hint.after += late
	w.queue <- hint
}

// deliverWakeUps gives each hint to a worker when its time has come.
func (w *world) deliverWakeUps() {
	for {
		select {
		case hint := <-w.queue:
			w.spawn(func() { w.deliver(hint) })
		case <-w.end:
			return
		}
	}
}

// deliver is one invocation of the worker. What fails comes again a few times, as streams and queues do.
func (w *world) deliver(hint wakeUp) {
	select {
	case <-time.After(hint.after):
	case <-w.end:
		return
	}
	name := fmt.Sprintf("%s, try %d", hint.name, hint.try)
	err := w.invoke("worker", name, func(ctx context.Context, p *process) error {
		if hint.seen != nil {
			p.saw(ctx, hint.seen.Revision)
			return p.worker.DeliverSeen(ctx, *hint.seen)
		}
		return p.worker.Deliver(ctx, hint.id)
	})
	if err == nil || hint.try == 4 || w.over.Load() {
		return
	}
	hint.try++
	hint.after = w.between(name+" again", time.Second, time.Minute)
	w.deliver(hint)
}
