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
	n := &w.scratch
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

// looks: an operator sees what is unknown, learns the truth, and decides. What follows may come much later.
func (w *world) looks(s *state, i int, out emit) {
	r := s.rec
	if r.State != p.Unknown || w.clock(s, i) < r.Lease || w.underWay(s, r) {
		return
	}
	n := w.fork(s, free)
	n.procs[i].knows, n.procs[i].seen, n.procs[i].frees = true, r.Revision, !n.tally(r.Op).happened
	out(n, label{"looks at the record and decides", i})
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

// alike says that two processes differ in nothing but their names.
func (w *world) alike(i, j int) bool {
	a, b := w.sc.Actors[i], w.sc.Actors[j]
	if a.Config != nil || b.Config != nil {
		return false
	}
	a.Config, b.Config = nil, nil
	return a.Role == b.Role && a.Errand == b.Errand && a.Runs == b.Runs && a.Skew == b.Skew && a.Deadline == b.Deadline && a.Payload == b.Payload &&
		a.LookOnly == b.LookOnly && a.Barred == b.Barred && a.Waits == b.Waits && a.Heeds == b.Heeds && a.Obeys == b.Obeys && a.Purpose == b.Purpose && a.Blind == b.Blind && a.Alone == b.Alone && a.Chain == b.Chain
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
		if f.call {
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

// perform emits what may come of the action that the machine of the process asks for.
func (w *world) perform(s *state, i int, out emit) {
	q := &s.procs[i]
	if q.x.HandlerOn && !q.acted && w.c[i].Kind == p.Wrapped {
		w.acts(s, i, out)
	}
	if q.slow && q.outcome != 0 {
		w.tell(s, i, free, p.Input{What: p.Called, Outcome: q.outcome, Backoff: 1}, "hears from the provider", out)
		return
	}
	if q.slow {
		n := w.fork(s, free)
		w.replies(n, i, q.reply)
		out(n, label{"its reply arrives", i})
		return
	}
	switch q.do {
	case p.Read:
		w.reads(s, i, out)
	case p.Admit:
		w.tell(s, i, free, p.Input{What: p.Admitted}, "is admitted", out)
		w.tell(s, i, Turn, p.Input{What: p.TurnedAway}, "is turned away", out)
	case p.Send:
		w.sends(s, i, out)
		if q.x.HandlerOn && q.x.At.Tries > 0 { // its driver waits before a repetition
			w.handlers(s, i, out)
		}
	case p.Run, p.Wait:
		w.waits(s, i, out)
	case p.Ask:
		w.asks(s, i, out)
	case p.Call:
		w.calls(s, i, out)
	case p.Probe:
		w.probes(s, i, out)
	}
}

// tell emits that the process goes on with the input.
func (w *world) tell(s *state, i int, f Fault, in p.Input, what string, out emit) {
	if n := w.fork(s, f); n != nil {
		w.feed(n, i, in)
		out(n, label{what, i})
	}
}

func (w *world) replies(n *state, i int, r p.Reply) {
	if w.telling {
		w.heard = &r
	}
	w.feed(n, i, p.Input{What: p.Replied, Reply: r})
}

func (w *world) reads(s *state, i int, out emit) {
	n := w.fork(s, free)
	w.sampled(n, &n.rec)
	w.replies(n, i, w.row(n, i))
	out(n, label{"reads", i})
	if n := w.fork(s, Lost); n != nil {
		w.replies(n, i, p.Reply{Code: p.Lost})
		out(n, label{"reads, and gets no reply", i})
	}
	if n := w.fork(s, Slow); n != nil {
		w.sampled(n, &n.rec)
		n.procs[i].holdBack(w.row(n, i))
		out(n, label{"reads, and the reply takes its time", i})
	}
}

// sends emits what may become of one try.
func (w *world) sends(s *state, i int, out emit) {
	q := &s.procs[i]
	wr := *q.write(w, i)
	if w.clock(s, i) >= q.until && !w.off(p.NoWireDeadline) {
		n := w.fork(s, free)
		w.replies(n, i, p.Reply{Code: p.NotSent})
		out(n, label{"is too late to send", i})
		return
	}
	n := w.fork(s, free)
	if q.d.Errand == p.Close && q.d.Held.Sealed && wr.RecAs == p.End {
		w.replies(n, i, p.Reply{Code: p.Refused, Conds: p.CondRecord})
		out(n, label{"can't open the message, and closes only what has ended", i})
		return
	}
	if s.crowded && wr.Token != (p.Token{}) {
		if q.paused { // they are there for longer than a pause
			return
		}
		w.replies(n, i, p.Reply{Code: p.Contention})
		out(n, label{"settles, and others are in the way", i})
		return
	}
	n.procs[i].hides = false
	w.replies(n, i, w.land(n, i, q.run, &wr))
	out(n, label{"sends", i})
	if n := w.fork(s, Lost); n != nil {
		w.land(n, i, q.run, &wr)
		w.replies(n, i, p.Reply{Code: p.Lost})
		out(n, label{"sends, and its reply is lost", i})
	}
	if n := w.fork(s, Slow); n != nil {
		n.procs[i].holdBack(w.land(n, i, q.run, &wr))
		out(n, label{"sends, and the reply takes its time", i})
	}
	if n := w.fork(s, Late); n != nil && n.fly(flight{w: wr, until: n.now + w.sc.Wire, from: uint8(i), run: q.run}) {
		w.note(&wr)
		w.replies(n, i, p.Reply{Code: p.Lost})
		out(n, label{"sends, and it is late", i})
	}
	for _, t := range [...]struct {
		f    Fault
		code p.Code
		what string
	}{
		{Contend, p.Contention, "sends, and meets contention"}, {Throttle, p.Throttled, "sends, and is throttled"},
		{Down, p.NotSent, "does not send: the store is known to be down"}, {Reject, p.Broken, "sends, and its credentials have expired"},
	} {
		if n := w.fork(s, t.f); n != nil {
			w.note(&wr)
			w.replies(n, i, p.Reply{Code: t.code})
			out(n, label{t.what, i})
		}
	}
	w.unjudged(s, i, &wr, out)
}

// holdBack lets one unit of time pass before the reply arrives: a driver does not wait for longer.
func (q *proc) holdBack(r p.Reply) { q.reply, q.slow, q.paused = r, true, true }

// note keeps a write for the story.
func (w *world) note(wr *p.Write) {
	if w.telling {
		w.wrote = wr
	}
}

// unjudged emits that a transaction which fails does so without one of its items having been judged. Where no other
// condition fails this is contention.
func (w *world) unjudged(s *state, i int, wr *p.Write, out emit) {
	if wr.Slot == 0 || s.left[Unjudge] == 0 {
		return
	}
	_, all := p.Apply(s.rows(wr), *wr, s.conditions(wr))
	for _, t := range [...]struct {
		hidden, shown p.Conds
		what          string
	}{
		{p.CondRetry, p.Unjudged | p.UnjudgedRetry, "sends, and another transaction is at the locked data"},
		{p.CondReject, p.Unjudged, "sends, and another transaction is at the data of the business condition"},
		{p.CondRecord, p.Unjudged, "sends, and another transaction is at the record"},
	} {
		seen := all.Conds &^ t.hidden
		if seen == 0 {
			continue
		}
		if n := w.fork(s, Unjudge); n != nil {
			n.procs[i].hides = t.hidden == p.CondRetry && all.Conds&p.CondRetry != 0
			r := p.Reply{Code: p.Refused, Conds: seen | t.shown}
			if seen&p.CondRecord != 0 {
				r.Rec = n.rec
			}
			w.note(wr)
			w.replies(n, i, r)
			out(n, label{t.what, i})
		}
	}
}

// acts emits that a wrapped handler has its effect.
func (w *world) acts(s *state, i int, out emit) {
	q := &s.procs[i]
	if w.sc.Actors[i].Heeds && w.clock(s, i) >= q.x.Held.Lease {
		return
	}
	op := q.x.Held.Op
	n := w.fork(s, free)
	n.procs[i].acted = true
	w.arrives(n, i, q.run, op)
	out(n, label{"its handler has its effect", i})
	if n := w.fork(s, LateCall); n != nil && n.fly(flight{call: true, op: op, until: n.now + w.sc.Wire, from: uint8(i), run: q.run}) {
		n.procs[i].acted, n.procs[i].calling = true, true
		out(n, label{"its handler calls, and the call is late", i})
	}
}

// waits emits the end of a handler, and of a wait.
func (w *world) waits(s *state, i int, out emit) {
	q := &s.procs[i]
	now := w.clock(s, i)
	if !q.x.HandlerOn {
		if !q.paused || q.wake != 0 && now >= q.wake {
			w.tell(s, i, free, p.Input{What: p.Woke}, "looks again", out)
		}
		return
	}
	if q.wake != 0 && now >= q.wake {
		w.tell(s, i, free, p.Input{What: p.Woke}, "wakes to renew its lease", out)
	}
	w.handlers(s, i, out)
}

// handlers emits the ends of a handler. One whose call has no reply may fail without that being a fault.
func (w *world) handlers(s *state, i int, out emit) {
	q, a := &s.procs[i], &w.sc.Actors[i]
	r := p.Result{Code: p.Responded, Answer: handlers + p.Answer(i)*32 + p.Answer(q.run)*8 + p.Answer(q.x.Runs), Alone: a.Alone, Chain: a.Chain}
	ends := func(f Fault, code p.ResultCode, what string) {
		r.Code = code
		w.tell(s, i, f, p.Input{What: p.HandlerEnded, Result: r}, what, out)
	}
	wrapped := w.c[i].Kind == p.Wrapped
	if !wrapped && !a.Alone {
		r.Slot = 1 + s.biz.version
	}
	if !wrapped || q.acted && !q.calling {
		ends(free, p.Responded, "its handler answers")
	}
	ends(Refuse, p.Stored, "its handler refuses")
	switch {
	case a.Heeds && wrapped && !q.acted && w.clock(s, i) >= q.x.Held.Lease:
		ends(free, p.Broke, "its handler fails: its context has ended")
	case q.calling:
		ends(free, p.Broke, "its handler fails: its call has no reply")
	}
	ends(Fail, p.Broke, "its handler fails")
	ends(Unstored, p.Unstored, "its handler passes a 429 on")
	if !q.acted {
		ends(Promise, p.NothingHappened, "its handler promises that nothing happened")
	}
}

// probes emits the two halves of a question: the provider looks, and its answer arrives.
func (w *world) probes(s *state, i int, out emit) {
	q := &s.procs[i]
	if !q.asked {
		n := w.fork(s, free)
		n.procs[i].asked, n.procs[i].found = true, w.truth(n, i)
		out(n, label{"asks the provider", i})
		return
	}
	in := p.Input{What: p.Probed, Outcome: p.OutAbsent, Backoff: 1}
	what := "hears that there is nothing"
	if q.found {
		in.Outcome, what = p.OutDelivered, "hears that it happened"
	}
	w.tell(s, i, free, in, what, out)
	in.Outcome = p.OutUnclear
	w.tell(s, i, Unclear, in, "hears what decides nothing", out)
}

// fly puts a request under way; false where there are too many.
func (s *state) fly(f flight) bool {
	for k := range s.flights {
		if s.flights[k].until == 0 {
			s.flights[k] = f
			return true
		}
	}
	return false
}

// conditions are those of the application's items that do not hold.
func (s *state) conditions(wr *p.Write) (c p.Conds) {
	if wr.Slot == 0 {
		if wr.Said != p.NotAsked && s.biz.poor { // the topic's own writes are refused
			c = p.CondUndeclared
		}
		return c
	}
	if s.biz.poor {
		c |= p.CondReject
	}
	if wr.Slot-1 != s.biz.version {
		c |= p.CondRetry
	}
	return c
}
