//go:build prove

package check

import p "github.com/idem-go/idem-aws/idem/protocol"

// What comes of one action, with the faults that its call may meet.

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
	r := p.Result{Code: p.Responded, Answer: handlers + p.Answer(i)*32 + p.Answer(q.run)*8 + p.Answer(q.x.Runs), Alone: a.Alone, Chain: a.Chain, Left: a.Leaves != 0 && a.Leaves == q.x.Runs}
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
