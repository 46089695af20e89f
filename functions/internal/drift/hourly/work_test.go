package hourly_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/drift/hourly"
	"github.com/idem-go/idem-aws/functions/internal/payments"
)

// An hour is done when all pieces of its pass are, and its report has each row and each finding once, however often and in
// whatever order the queue delivers.
func TestAnHourIsComparedInPieces(t *testing.T) {
	w := newWorld(t)
	w.plan(t, hourly.Plan{}) // the first hour that is planned
	w.plantHour(330)
	p := w.start(wire)
	if plan, err := p.planner.Plan(t.Context()); err != nil || plan.Sent != plan.Open*4 || plan.Done != 0 || plan.Open < 3 {
		t.Fatalf("%+v, %v", plan, err)
	}
	sent := w.take()
	var all sync.WaitGroup
	limit := make(chan struct{}, 4)
	for _, piece := range append(sent, sent...) {
		if !piece.Hour.Equal(hour) {
			continue
		}
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			if err := p.Work(t.Context(), piece); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if plan, err := p.planner.Plan(t.Context()); err != nil || plan.Sent != 0 || plan.Done != 3 {
		t.Errorf("%+v, %v", plan, err)
	}
	for _, after := range hourly.Passes {
		report, done := w.kept(w.prefix+"-drift", "pass/"+hourly.Pass{Hour: hour, After: after}.String())
		w.exact(fmt.Sprint("pass ", after), report, done)
	}
	if got := w.logged("drift.run"); got != 3 {
		t.Errorf("%d passes counted, want 3", got)
	}
}

// Each process that works on the piece has one accident, at its n-th call, for every n until it gets through; the next one comes when
// the lease is over. The piece ends done, each row is compared once, and each finding is kept once and was logged.
func TestAPieceSurvivesACrashAtEveryCall(t *testing.T) {
	for _, mode := range []string{dieBefore, dieAfter, loseReply, throttle} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			newWorld(t).crashAtEveryCall(mode)
		})
	}
}

func (w *world) crashAtEveryCall(mode string) {
	w.plantHour(130)
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s-drift-%d-%d", w.prefix, len(mode), n)
		w.progress(name)
		own := func(c *hourly.Config) { c.Table = name }
		w.log.Reset()
		cut := &accident{at: n, mode: mode}
		err := w.start(cut, own).Work(w.Context(), whole)
		if !cut.reached() {
			w.ok(err)
			if n < 20 {
				w.Errorf("%s: %d calls: the test proves less than it says", mode, n)
			}
			break
		}
		second := &accident{at: n/2 + 1, mode: dieAfter}
		w.clock.Advance(12 * time.Minute)
		_ = w.start(second, own).Work(w.Context(), whole) // what became of it, the row says
		w.clock.Advance(12 * time.Minute)
		if err := w.start(wire, own).Work(w.Context(), whole); err != nil {
			w.Fatalf("%s at call %d: %v", mode, n, err)
		}
		report, done := w.kept(name, "piece/48/2101-02-03T10/0")
		w.exact(fmt.Sprintf("%s at call %d", mode, n), report, done)
		if got := w.logged("drift.found"); got < 2 {
			w.Errorf("%s at call %d: %d findings in the log", mode, n, got)
		}
	}
}

// gate holds a process's n-th call until the test lets it go on: the process is frozen.
type gate struct {
	at            int
	mu            sync.Mutex
	calls         int
	frozen, thawn chan struct{}
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	g.calls++
	now := g.calls == g.at
	g.mu.Unlock()
	if now {
		close(g.frozen)
		<-g.thawn
	}
	return wire.RoundTrip(r)
}

// A worker that comes back from a freeze after its lease changes nothing: neither what another has done meanwhile, nor its counts.
func TestAFrozenWorkerIsFencedOff(t *testing.T) {
	w := newWorld(t)
	w.plantHour(330)
	for _, at := range []int{3, 10, 18} {
		name := fmt.Sprint(w.prefix, "-frozen-", at)
		w.progress(name)
		own := func(c *hourly.Config) { c.Table = name }
		g := &gate{at: at, frozen: make(chan struct{}), thawn: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- w.start(g, own).Work(t.Context(), whole) }()
		<-g.frozen
		other := w.start(wire, own)
		w.ok(other.Work(t.Context(), whole)) // its lease is not over: left alone
		if _, done := w.kept(name, "piece/48/2101-02-03T10/0"); done {
			t.Errorf("frozen at call %d: done beside its worker", at)
		}
		w.clock.Advance(12 * time.Minute)
		w.ok(other.Work(t.Context(), whole))
		close(g.thawn)
		if err := <-ended; err != nil {
			t.Errorf("frozen at call %d: %v", at, err)
		}
		report, done := w.kept(name, "piece/48/2101-02-03T10/0")
		w.exact(fmt.Sprintf("frozen at call %d", at), report, done)
	}
}

// A piece that does not end in its worker's time is given back and put into the queue, and the next one goes on where it was.
func TestAPieceGoesOnInTheNextInvocation(t *testing.T) {
	w := newWorld(t)
	w.plantHour(330)
	runs := 0
	work := func() {
		runs++
		ctx, cancel := context.WithDeadline(t.Context(), w.clock.Now().Add(25*time.Second))
		defer cancel()
		p := w.start(wire, func(c *hourly.Config) {
			clock := c.Now
			ticks := 0
			c.Now = func() time.Time { ticks++; return clock().Add(time.Duration(ticks) * time.Second) } // each look takes a second
		})
		w.ok(p.Work(ctx, whole))
	}
	work()
	for sent := w.take(); len(sent) > 0; sent = w.take() {
		if len(sent) != 1 || sent[0] != whole || runs > 10 {
			t.Fatalf("%+v after %d runs", sent, runs)
		}
		work()
	}
	report, done := w.kept(w.prefix+"-drift", "piece/48/2101-02-03T10/0")
	w.exact("in several runs", report, done)
	if runs < 2 {
		t.Errorf("%d runs: the test proves less than it says", runs)
	}
}

// What the queue loses, the planner sends again, and it alarms where an hour is not done in time.
func TestALostPieceIsSentAgain(t *testing.T) {
	w := newWorld(t)
	w.plan(t, hourly.Plan{})
	w.clock.Advance(time.Hour + grace + 2*time.Minute)
	w.plan(t, hourly.Plan{Open: 1, Sent: 4})
	w.plan(t, hourly.Plan{Open: 1}) // they wait in the queue, for all it knows
	lost := w.take()
	w.clock.Advance(15 * time.Minute)
	w.plan(t, hourly.Plan{Open: 1, Sent: 4})
	p := w.start(wire)
	for _, piece := range w.take()[:3] {
		w.ok(p.Work(t.Context(), piece))
	}
	w.clock.Advance(15 * time.Minute)
	w.plan(t, hourly.Plan{Open: 1, Sent: 1})
	if again := w.take(); len(again) != 1 || again[0] != lost[3] {
		t.Errorf("%+v is sent again, want %+v", again, lost[3])
	}
	if n := w.logged("drift.late"); n != 0 {
		t.Errorf("%d alarms in time", n)
	}
	w.clock.Advance(91 * time.Minute) // later than two hours after it was due
	w.plan(t, hourly.Plan{Open: 5, Late: 1, Sent: 17})
	if n := w.logged("drift.late"); n != 1 {
		t.Errorf("%d alarms, want one", n)
	}
	w.ok(p.Work(t.Context(), lost[3]))
	w.plan(t, hourly.Plan{Open: 4, Done: 1})
	w.plan(t, hourly.Plan{Open: 4})
}

// docs/operator.md "DriftLate": an hour that is compared after the two days in which a message stays is compared all the same. A payment
// failed, its charge came two hours later, and TTL took what would have led from the charge to its row: the row is looked for. The last
// pass looks for none, because it comes after those days each time.
func TestAChargeIsFoundHoweverLateItsHourIsCompared(t *testing.T) {
	w := newWorld(t)
	w.plan(t, hourly.Plan{}) // the first hour that is planned
	key := w.row(hour.Add(5*time.Minute), payments.StatusFailed, 1999)
	w.waitUntil(hour.Add(2*time.Hour + 10*time.Minute))
	w.charge(key)
	w.clock.Advance(55 * time.Hour)
	p := w.start(wire, func(c *hourly.Config) { c.Parts = 1 })
	if plan, err := p.planner.Plan(t.Context()); err != nil || plan.Late == 0 {
		t.Fatalf("%+v, %v", plan, err)
	}
	for _, piece := range w.take() {
		if piece.Hour.Equal(hour.Add(2 * time.Hour)) {
			w.ok(p.Work(t.Context(), piece))
		}
	}
	for after, want := range map[int]int{0: 1, 1: 1, 48: 0} {
		report, done := w.kept(w.prefix+"-drift", fmt.Sprintf("piece/%d/2101-02-03T12/0", after))
		if !done || report.Compared.Objects != 1 || report.DriftCount() != want || report.Drift[drift.StateDiffers] != want {
			t.Errorf("the pass after %d h: done: %t, %+v, want %d that differ in state", after, done, report, want)
		}
	}
	if n := w.logged("drift.found"); n != 2 {
		t.Errorf("%d findings in the log, want one of each of the first two passes", n)
	}
}

// plan demands what a run of the planner does.
func (w *world) plan(t *testing.T, want hourly.Plan) {
	t.Helper()
	plan, err := w.start(wire).planner.Plan(t.Context())
	if err != nil || plan != want {
		t.Errorf("%+v, %v, want %+v", plan, err, want)
	}
}

// The number of parts may change at any time: a pass keeps the one that it was planned with.
func TestPartsMayChangeWhilePassesAreOpen(t *testing.T) {
	w := newWorld(t)
	w.plan(t, hourly.Plan{})
	w.clock.Advance(time.Hour + grace + 2*time.Minute)
	w.plan(t, hourly.Plan{Open: 1, Sent: 4})
	w.take()
	w.clock.Advance(time.Hour)
	p := w.start(wire, func(c *hourly.Config) { c.Parts = 7 })
	if plan, err := p.planner.Plan(t.Context()); err != nil || plan.Open != 3 || plan.Sent != 4+7+7 {
		t.Errorf("%+v, %v", plan, err)
	}
	parts := map[string]int{}
	for _, piece := range w.take() {
		parts[fmt.Sprint(piece.Hour.Hour(), "+", piece.After, " of ", piece.Of)]++
	}
	if len(parts) != 3 || parts["10+0 of 4"] != 4 || parts["10+1 of 7"] != 7 || parts["11+0 of 7"] != 7 {
		t.Errorf("%v", parts)
	}
}

// The planner survives an accident at each of its calls: the next run does what is left, and nothing is closed twice.
func TestThePlannerSurvivesACrashAtEveryCall(t *testing.T) {
	w := newWorld(t)
	for _, mode := range []string{dieBefore, dieAfter, loseReply, throttle} {
		for n := 1; ; n++ {
			name := fmt.Sprintf("%s-plan-%d-%d", w.prefix, len(mode), n)
			w.progress(name)
			own := func(c *hourly.Config) { c.Table, c.Parts = name, 1 }
			w.take()
			cut := &accident{at: n, mode: mode}
			first := w.start(cut, own)
			well := w.start(wire, own)
			for range 3 { // begin, send, close
				_, _ = first.planner.Plan(t.Context())
				w.clock.Advance(time.Hour + grace + 2*time.Minute)
				for _, piece := range w.take() {
					w.ok(well.Work(t.Context(), piece))
				}
			}
			reached := cut.reached()
			for range 3 {
				if _, err := well.planner.Plan(t.Context()); err != nil {
					t.Fatalf("%s at call %d: %v", mode, n, err)
				}
				for _, piece := range w.take() {
					w.ok(well.Work(t.Context(), piece))
				}
				w.clock.Advance(20 * time.Minute)
			}
			if plan, err := well.planner.Plan(t.Context()); err != nil || plan.Sent != plan.Open {
				t.Errorf("%s at call %d: %+v, %v", mode, n, plan, err)
			}
			w.clock.Advance(time.Minute)
			if !reached {
				break
			}
		}
	}
}

// A message that names no piece, or one that is not due, is an error and writes nothing.
func TestWhatIsNoPieceIsRefused(t *testing.T) {
	for _, body := range []string{
		``, `{}`, `null`, `{"hour":"2101-02-03T10:30:00Z","of":1}`, `{"hour":"2101-02-03T10:00:00Z","of":0}`, `{"hour":"2101-02-03T10:00:00Z","of":241}`,
		`{"hour":"2101-02-03T10:00:00Z","of":2,"part":2}`, `{"hour":"2101-02-03T10:00:00Z","of":2,"part":-1}`, `{"hour":"2101-02-03T10:00:00Z","of":1,"after":-1}`,
	} {
		if p, err := hourly.Read(body); err == nil {
			t.Errorf("%s is %v", body, p)
		}
	}
	if p, err := hourly.Read(`{"hour":"2101-02-03T10:00:00Z","after":48,"part":0,"of":1}`); err != nil || p != whole {
		t.Errorf("%v, %v", p, err)
	}
	w := newWorld(t)
	if err := w.start(wire).Work(t.Context(), whole); err == nil {
		t.Error("a piece is worked on that is not due")
	}
	if _, done := w.kept(w.prefix+"-drift", "piece/48/2101-02-03T10/0"); done {
		t.Error("and done")
	}
}

// The parts of an hour are the hour, in whole milliseconds, without gap or overlap.
func TestPartsAreTheHour(t *testing.T) {
	for of := 1; of <= hourly.PartsMax; of++ {
		at := hour
		for part := range of {
			w := hourly.Piece{Pass: hourly.Pass{Hour: hour}, Part: part, Of: of}.Window()
			if !w.From.Equal(at) || !w.To.After(w.From) || w.To != w.To.Truncate(time.Millisecond) {
				t.Errorf("part %d of %d is %+v, want it to begin at %s", part, of, w, at)
			}
			at = w.To
		}
		if !at.Equal(hour.Add(time.Hour)) {
			t.Errorf("%d parts end at %s", of, at)
		}
	}
}

// A provider that does not answer leaves the piece to the next run, and what was compared stays.
func TestAProviderThatFailsLeavesThePieceFree(t *testing.T) {
	w := newWorld(t)
	w.plantHour(130)
	err := w.start(&accident{at: 9, mode: dieBefore}).Work(t.Context(), whole)
	if !errors.Is(err, errCut) {
		t.Errorf("%v", err)
	}
	w.clock.Advance(12 * time.Minute)
	w.ok(w.start(wire).Work(t.Context(), whole))
	report, done := w.kept(w.prefix+"-drift", "piece/48/2101-02-03T10/0")
	w.exact("after a failure", report, done)
}
