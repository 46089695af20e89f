//go:build prove

package check

import p "github.com/idem-go/idem-aws/idem/protocol"

// label says what a step was.
type label struct {
	what string
	who  int // -1 is the world
}

// emit gets each successor. The state is the world's own: it is overwritten by the next one.
type emit func(n *state, l label)

// fork is a copy in which the fault is paid for; nil where the budget has none left. The Total itself is the price of
// what is no fault: nothing.
func (w *world) fork(s *state, f Fault) *state {
	if f != Total {
		if s.left[f] == 0 || f < charged && s.left[Total] == 0 {
			return nil
		}
	}
	n := w.scratch
	*n = *s
	if f != Total {
		n.left[f]--
		if f < charged {
			n.left[Total]--
		}
	}
	w.wrote, w.heard = nil, nil
	return n
}

const free = Total

// next emits every successor, always in the same order.
func (w *world) next(s *state, out emit) {
	for i := range s.procs {
		w.starts(s, i, out)
		if q := &s.procs[i]; q.started && !q.over {
			w.perform(s, i, out)
			if n := w.fork(s, Die); n != nil {
				w.kill(n, i)
				out(n, label{"dies", i})
			}
		}
	}
	w.arrivals(s, out)
	w.tick(s, out)
	if n := w.fork(s, Lock); n != nil {
		n.biz.version ^= 1
		out(n, label{"somebody changes the locked business data", -1})
	}
	if n := w.fork(s, Erase); n != nil {
		n.erased = true
		out(n, label{"the key that opens the messages is erased", -1})
	}
	if n := w.fork(s, Crowd); n != nil {
		n.crowded = true
		out(n, label{"others are in the way of every settlement", -1})
	}
	w.loses(s, out)
	if n := w.fork(s, Poor); n != nil {
		n.biz.poor = !n.biz.poor
		out(n, label{"the business condition changes", -1})
	}
	if s.rec.Free != 0 && s.now >= s.rec.Free+w.sc.keeps() && (s.rec.State.Final() || s.rec.State == p.Retryable) {
		if n := w.fork(s, TTL); n != nil {
			n.gone, n.goneState = n.rec.Op, n.rec.State
			w.replaced(n, p.Record{}, false)
			n.rec = p.Record{}
			out(n, label{"the store removes the expired record", -1})
		}
	}
}

func (w *world) kill(n *state, i int) {
	q := &n.procs[i]
	n.end(i, q.run).died = true
	n.procs[i] = proc{started: true, over: true, run: q.run, ends: q.ends, knows: q.knows}
}

// starts emits that a process comes, or comes again, and that an operator looks.
func (w *world) starts(s *state, i int, out emit) {
	q, a := &s.procs[i], &w.sc.Actors[i]
	if a.Role == Nobody || q.started && (!q.over || q.run+1 >= max(a.Runs, 1)) {
		return
	}
	if i > 0 && !s.procs[i-1].started && w.alike(i-1, i) {
		return // they start in order
	}
	if a.Role == Courier {
		w.delivers(s, i, out)
		return
	}
	if a.Role == Operator && !q.knows {
		w.looks(s, i, out)
		return
	}
	n := w.fork(s, free)
	run := uint8(0)
	if q.started {
		run = q.run + 1
	}
	w.start(n, i, run)
	if a.Role == Client {
		out(n, label{"starts", i})
		return
	}
	// Nothing lies between the start of a visit and its reading. One that then has nothing to do has not happened.
	w.replies(n, i, p.Reply{Code: p.OK, Rec: n.rec})
	if !n.procs[i].over {
		out(n, label{"comes and reads", i})
	}
}

// looks: an operator sees what waits for a person, learns the truth, and decides. What follows may come much later.
func (w *world) looks(s *state, i int, out emit) {
	if !w.waitsForAPerson(s, i) {
		return
	}
	n := w.fork(s, free)
	n.procs[i].knows, n.procs[i].seen, n.procs[i].frees = true, s.rec.Revision, !n.found()
	out(n, label{"looks at the record and decides", i})
}

// waitsForAPerson says that what the operator would be wrong about is over: what is unknown, its own execution; what was only
// observed, everything beside it. The holder of an observed lease is fenced off without a look.
func (w *world) waitsForAPerson(s *state, i int) bool {
	r := s.rec
	switch {
	case r.State == p.Unknown:
		return w.clock(s, i) >= r.Lease && !w.underWay(s, r)
	case !r.Observed || r.Safe:
		return false
	case r.State == p.Retryable:
		return !w.observes(s) && !w.besides(s, r.Op)
	}
	return r.State == p.InProgress && r.Kind != p.Wrapped
}

// underWay says that the holder's handler, or a call of it, may still have its effect.
func (w *world) underWay(s *state, r p.Record) bool {
	j, run := whose(r.Owner)
	if q := &s.procs[j]; q.started && !q.over && q.run == run && q.x.HandlerOn {
		return true
	}
	for _, f := range s.flights {
		if f.call && f.op == r.Op {
			return true
		}
	}
	return false
}

// observes says that somebody observes, or may begin to.
func (w *world) observes(s *state) bool {
	for i := range s.procs {
		if q := &s.procs[i]; w.c[i].Observed && (!q.started || !q.over || q.run+1 < w.sc.Actors[i].Runs) {
			return true
		}
	}
	return false
}

// besides says that what an observed request executes beside the incarnation may still have its effect.
func (w *world) besides(s *state, op p.ID) bool {
	for _, f := range s.flights {
		if f.aside && f.op == op {
			return true
		}
	}
	return false
}

// alike says that two processes differ in nothing but their names.
func (w *world) alike(i, j int) bool {
	a, b := w.sc.Actors[i], w.sc.Actors[j]
	if a.Config != nil || b.Config != nil {
		return false
	}
	a.Config, b.Config = nil, nil
	return a.Role == b.Role && a.Errand == b.Errand && a.Runs == b.Runs && a.Skew == b.Skew && a.Deadline == b.Deadline && a.Outlives == b.Outlives && a.Payload == b.Payload &&
		a.LookOnly == b.LookOnly && a.Barred == b.Barred && a.Waits == b.Waits && a.Heeds == b.Heeds && a.Obeys == b.Obeys && a.Purpose == b.Purpose && a.Blind == b.Blind && a.Foreign == b.Foreign && a.Alone == b.Alone && a.Chain == b.Chain && a.Leaves == b.Leaves
}

// arrivals emits that what is late takes effect. What a store refuses changes nothing, and nobody hears of it.
func (w *world) arrivals(s *state, out emit) {
	for k := range s.flights {
		f := &s.flights[k]
		if f.until == 0 {
			continue
		}
		n := w.fork(s, free)
		n.flights[k] = flight{}
		if f.aside {
			w.arrivesAside(n, f.op)
			out(n, label{"what it executes beside the record takes effect", int(f.from)})
		} else if f.call {
			if f.index != 0 {
				w.called(n, int(f.from), f.op, f.index)
			} else {
				w.arrives(n, int(f.from), f.run, f.op)
			}
			out(n, label{"its late call takes effect", int(f.from)})
		} else if reply := w.land(n, int(f.from), f.run, &f.w); reply.Code == p.OK && (n.rec != s.rec || n.msgs != s.msgs) {
			out(n, label{"its late try lands", int(f.from)})
		}
	}
}

// behind says that the process has something to do at this instant: time that passes freezes it.
func (w *world) behind(s *state, i int) bool {
	q := &s.procs[i]
	switch {
	case !q.started || q.over || q.asked || q.paused:
		return false
	case q.slow:
		return true
	case q.do == p.Run || q.do == p.Wait:
		return q.wake != 0 && w.clock(s, i) >= q.wake || q.until != 0 && w.clock(s, i) >= q.until
	}
	return true
}

func (w *world) tick(s *state, out emit) {
	if s.left[Ticks] == 0 {
		return
	}
	f := free
	for i := range s.procs {
		if w.behind(s, i) {
			f = Stall
		}
	}
	if n := w.fork(s, f); n != nil {
		n.left[Ticks]--
		w.pass(n)
		what := "time passes"
		if f == Stall {
			what = "time passes, although somebody has something to do"
		}
		out(n, label{what, -1})
	}
}

// pass is one unit of time. A platform that kills does so at the deadline.
func (w *world) pass(n *state) {
	n.now++
	for k := range n.flights {
		if f := &n.flights[k]; f.until != 0 && n.now > f.until {
			*f = flight{}
		}
	}
	for i := range n.procs {
		q := &n.procs[i]
		q.paused = false
		if d := w.sc.Actors[i].Deadline; w.c[i].Kills && d != 0 && q.started && !q.over && n.now >= n.end(i, q.run).began+d {
			w.kill(n, i)
		}
	}
}
