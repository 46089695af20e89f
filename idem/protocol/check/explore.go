//go:build prove

package check

import (
	"runtime"
	"time"

	p "github.com/idem-go/idem-aws/idem/protocol"
)

// Report is what an exploration found.
type Report struct {
	// Violation is "" where none was found; Story is a shortest way to it.
	Violation string
	Story     []string
	// States were visited by Transitions, at most Depth steps from the beginning.
	States, Transitions, Depth int
	// Took is how long the exploration ran.
	Took time.Duration
	// HeapMiB is what the process holds of the system's memory.
	HeapMiB uint64
	// Truncated says that there were more states than an exploration visits: it proves nothing beyond its depth.
	Truncated bool
}

// How many states an exploration visits at most.
const (
	statesMax      = 4_000_000
	statesMaxLarge = 100_000_000
)

// explorer visits every reachable state breadth first.
type explorer struct {
	w       *world
	enc     *encoder
	seen    set
	walked  set
	parents []uint32
	choices []uint8
	report  Report
	bad     int
	// healed is the first state, if any, whose run without faults does what nothing may do, and done what that is. A story that leads there
	// says more, and is looked for first.
	healed int
	done   uint8
}

func (x *explorer) add(n *state, parent uint32, choice uint8, into *queue) bool {
	x.w.canonical(n)
	packed := x.enc.pack(n)
	if !x.seen.add(mix(packed)) {
		return false
	}
	x.parents, x.choices = append(x.parents, parent), append(x.choices, choice)
	into.push(packed)
	return true
}

// Explore visits every reachable state of the scenario without the rules that are off, and stops at the first violation.
func Explore(sc Scenario, off p.Rules) Report {
	begin := time.Now()
	x := &explorer{w: newWorld(&sc, off), enc: newEncoder(), bad: -1, healed: -1}
	first := x.w.initial()
	level, after, base := &queue{}, &queue{}, 0
	x.add(&first, 0, 0, level)
	for level.n > 0 && x.bad < 0 && !x.report.Truncated {
		x.level(level, after, base)
		base += level.n
		level.reset()
		level, after = after, level
		x.report.Depth++
	}
	if x.bad < 0 && x.healed >= 0 {
		x.bad, x.report.Violation = x.healed, violations[x.done]
	}
	x.report.States, x.report.Took = len(x.parents), time.Since(begin)
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	x.report.HeapMiB = mem.Sys >> 20
	if x.bad >= 0 {
		x.report.Story = x.story(first)
	}
	return x.report
}

// level visits all states at one distance from the beginning.
func (x *explorer) level(level, after *queue, base int) {
	var s state
	for k := range level.n {
		from, choice := uint32(base+k), uint8(0)
		level.pop(&s)
		if !x.w.sc.NoHeal {
			stuck, done := x.w.heals(&s, &x.walked, x.enc)
			if stuck != 0 {
				x.bad, x.report.Violation = int(from), violations[stuck]
				return
			}
			if done != 0 && x.healed < 0 {
				x.healed, x.done = int(from), done
			}
		}
		x.w.next(&s, func(n *state, _ label) {
			x.report.Transitions++
			bad := n.bad
			if x.bad < 0 && x.add(n, from, choice, after) && bad != 0 {
				x.bad, x.report.Violation = len(x.parents)-1, violations[bad]
			}
			choice++
		})
		if x.bad >= 0 {
			return
		}
		if bound := statesMaxLarge; len(x.parents) > bound || !x.w.sc.Large && len(x.parents) > statesMax {
			x.report.Truncated = true
			return
		}
	}
}

// canonical maps states that behave alike to one: what a store would ignore, the order of what is under way, tokens that
// nobody sends again.
func (w *world) canonical(s *state) {
	for k := range s.flights {
		f := &s.flights[k]
		for _, t := range s.tokens {
			if f.until != 0 && f.w.Token != (p.Token{}) && t == f.w.Token {
				*f = flight{}
			}
		}
	}
	for a := range s.flights {
		for b := a + 1; b < len(s.flights); b++ {
			if fa, fb := &s.flights[a], &s.flights[b]; fb.before(fa) {
				*fa, *fb = *fb, *fa
			}
		}
	}
	used := s.flights[0].until != 0
	for i := range s.procs {
		used = used || s.procs[i].started && !s.procs[i].over
	}
	if !used {
		s.tokens = [tokens]p.Token{}
	}
	w.forget(s)
}

// forget drops what no judgement asks for any more.
func (w *world) forget(s *state) {
	oldest := forever
	for i := range s.procs {
		q := &s.procs[i]
		for run := range q.ends {
			e := &q.ends[run]
			switch live := q.started && !q.over && int(q.run) == run; {
			case live || s.flying(i, run):
				oldest = min(oldest, e.began)
			case e.began != 0:
				*e = w.remembered(s, i, run)
			}
		}
	}
	for k := range s.tallies {
		t := &s.tallies[k]
		if t.since <= oldest {
			t.since = 0
		}
		if t.op != s.rec.Op {
			t.promised = 0
		}
		if !w.busts || s.now >= t.cached {
			t.cached = 0
		}
	}
	for k := range s.effects {
		if e := &s.effects[k]; s.now >= e.forgets {
			e.forgets = 0
		}
	}
	for k := range s.msgs {
		for _, m := range [...]*p.Message{&s.msgs[k], &s.image.msgs[k]} {
			m.LookAt = min(m.LookAt, forever) // in a day
		}
	}
	if s.left[Loss] == 0 {
		s.image = image{}
	}
	if s.rec.State != p.Absent {
		s.gone, s.goneState = p.ID{}, 0
	}
}

// remembered is what is kept of a run that is over and of which nothing is under way.
func (w *world) remembered(s *state, i, run int) end {
	e := s.procs[i].ends[run]
	kept := end{ran: e.ran, died: e.died}
	if w.sc.NoBurn && s.rec.State == p.InProgress && isOf(s.rec.Owner, i, uint8(run)) { // it may yet be parked
		kept.said, kept.state = e.said, e.state
	}
	return kept
}

// flying says that something of the run is under way.
func (s *state) flying(i, run int) bool {
	for k := range s.flights {
		if f := &s.flights[k]; f.until != 0 && int(f.from) == i && int(f.run) == run {
			return true
		}
	}
	return false
}

// before orders what is under way; what is not goes last.
func (f *flight) before(g *flight) bool {
	switch {
	case f.until == 0 || g.until == 0:
		return f.until != 0 && g.until == 0
	case f.from != g.from:
		return f.from < g.from
	case f.until != g.until:
		return f.until < g.until
	}
	return f.w.Rec.Revision[1] < g.w.Rec.Revision[1]
}

// story replays the choices that lead to the violation.
func (x *explorer) story(s state) []string {
	var way []uint8
	for to := x.bad; to != 0; to = int(x.parents[to]) {
		way = append(way, x.choices[to])
	}
	var lines []string
	x.w.telling = true
	for k := len(way) - 1; k >= 0; k-- {
		i := uint8(0)
		before := s
		x.w.next(&before, func(n *state, l label) {
			if i == way[k] {
				s = *n
				lines = append(lines, x.w.line(&before, &s, l))
				x.w.canonical(&s)
			}
			i++
		})
	}
	return lines
}
