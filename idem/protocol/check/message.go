//go:build prove

package check

import p "github.com/idem-go/idem-aws/idem/protocol"

// The answers that end a chain.
const (
	answerDelivered   p.Answer = 10
	answerDeclined    p.Answer = 11
	answerNotExecuted p.Answer = 12
	answerAccepted    p.Answer = 13
)

// pending is a world that begins with a message.
func (w *world) pending(s *state) {
	op := incarnation(0, healing-1)
	s.rec = p.Record{State: p.Pending, Kind: p.Deferred, Op: op, Owner: seed(0, healing-1), Epoch: 1, Answer: answerAccepted, Revision: p.ID{1000, 1}}
	s.tally(op).accepted = answerAccepted
	s.msgs[0] = p.Message{State: p.Due, Index: 1, Op: op, Revision: p.ID{1000, 2}, Created: 1, NextAttempt: 1}
	if w.sc.Detached {
		s.rec.State, s.msgs[0].Detached = p.Completed, true
		s.tally(op).final, s.tally(op).promised = answerAccepted, forever
	}
	if t := &w.sc.Config.Topic; w.sc.Restored { // it was called before the loss, and nothing here says so
		s.now, s.lost = 2, 2
		if w.sc.Leaving {
			s.fly(flight{call: true, op: op, index: 1, until: s.lost + t.ClaimLease - t.SettleMargin + w.sc.Wire, run: healing - 1})
		} else {
			for k := range max(1, w.sc.Chain) { // the whole chain
				s.effects[k] = effect{op: op, index: k + 1, n: 1}
			}
		}
	}
}

// message is the stored one, or the place where it would be.
func (s *state) message(op p.ID, index uint8) *p.Message {
	var room *p.Message
	for k := range s.msgs {
		switch m := &s.msgs[k]; {
		case m.State != p.NoMessage && m.Op == op && m.Index == index:
			return m
		case m.State == p.NoMessage && room == nil:
			room = m
		}
	}
	if room == nil {
		panic("check: too many messages")
	}
	return room
}

func (s *state) effect(op p.ID, index uint8) *effect {
	for k := range s.effects {
		if e := &s.effects[k]; e.op.None() || e.op == op && e.index == index {
			e.op, e.index = op, index
			return e
		}
	}
	panic("check: too many effects")
}

// rows are those that the write names.
func (s *state) rows(wr *p.Write) (r p.Rows) {
	r.Rec = s.rec
	if wr.MsgAs != p.Leave {
		r.Msg = *s.message(wr.Msg.Op, wr.Msg.Index)
	}
	if wr.Next.State != p.NoMessage {
		r.Next = *s.message(wr.Next.Op, wr.Next.Index)
	}
	return r
}

// row is what a read finds.
func (w *world) row(s *state, i int) p.Reply {
	q := &s.procs[i]
	if w.machine(q, i) != Courier {
		return p.Reply{Code: p.OK, Rec: s.rec}
	}
	return p.Reply{Code: p.OK, Msg: *s.message(q.d.Held.Op, q.index)}
}

// answerOf is the write with what the topic's Settle has it store: its driver fills that in.
func (w *world) answerOf(s *state, wr *p.Write) *p.Write {
	filled := *wr
	filled.Rec.Answer = answerDelivered
	switch {
	case wr.Said == p.AskDeclined:
		filled.Rec.Answer = answerDeclined
	case wr.Said == p.AskNotExecuted || wr.Rec.State == p.Failed:
		filled.Rec.Answer = answerNotExecuted
	}
	filled.Rec.Expires = s.now + w.sc.Config.Life.Retention
	filled.Rec.Free = filled.Rec.Expires + w.sc.Config.Skew
	return &filled
}

// person says that somebody looks at the message first, and comes to it later.
func person(e p.MessageErrand) bool { return e == p.Judgement || e == p.Close || e == p.Redrive }

// delivers emits that a courier comes to a message. One that then has nothing to do has not come.
func (w *world) delivers(s *state, i int, out emit) {
	q, a := &s.procs[i], &w.sc.Actors[i]
	for k := range s.msgs {
		m := &s.msgs[k]
		if m.State == p.NoMessage || q.knows && q.index != m.Index {
			continue
		}
		if person(a.Purpose) && !q.knows {
			w.learns(s, i, m, out)
			continue
		}
		w.comes(s, i, k, free, out)
		w.comes(s, i, k, Lie, out)
	}
}

// learns: a person looks at a message that needs them, and learns the truth.
func (w *world) learns(s *state, i int, m *p.Message, out emit) {
	if m.State != p.Dead && m.State != p.InDoubt && m.State != p.Evidenced || w.calling(s, m) {
		return
	}
	e := s.effect(m.Op, m.Index)
	known := e.n > 0 || e.declined
	if a := w.sc.Actors[i].Purpose; a == p.Judgement && !known || a == p.Close && e.n > 0 || a == p.Redrive && m.State != p.Dead {
		return
	}
	n := w.fork(s, free)
	q := &n.procs[i]
	q.knows, q.seen, q.lost, q.index = true, m.Revision, s.lost, m.Index
	out(n, label{"looks at the message and decides", i})
}

// calling says that a call about the message may be under way.
func (w *world) calling(s *state, m *p.Message) bool {
	for k := range s.flights {
		if f := &s.flights[k]; f.call && f.op == m.Op && f.index == m.Index {
			return true
		}
	}
	for i := range s.procs {
		if q := &s.procs[i]; q.started && !q.over && w.machine(q, i) == Courier && q.d.Held.Op == m.Op && q.d.Held.Index == m.Index && q.do == p.Call {
			return true
		}
	}
	return false
}

// comes emits one visit. A webhook says what is true; one that lies is a fault.
func (w *world) comes(s *state, i, k int, f Fault, out emit) {
	a := &w.sc.Actors[i]
	if f == Lie && a.Purpose != p.Tidings {
		return
	}
	e := s.effect(s.msgs[k].Op, s.msgs[k].Index)
	if a.Purpose == p.Tidings && f != Lie && e.n == 0 && !e.declined {
		return
	}
	n := w.fork(s, f)
	if n == nil {
		return
	}
	q := &n.procs[i]
	run := uint8(0)
	if q.started {
		run = q.run + 1
	}
	q.index = s.msgs[k].Index
	w.start(n, i, run)
	if f == Lie {
		q.d.Evidence ^= p.OutDelivered ^ p.OutDeclined
	}
	w.replies(n, i, p.Reply{Code: p.OK, Msg: n.msgs[k]})
	if !q.over || n.bad != 0 {
		what := "comes and reads"
		if f == Lie {
			what = "comes with what is not true"
		}
		out(n, label{what, i})
	}
}

// delivery is a courier's machine.
func (w *world) delivery(s *state, i int) p.Delivery {
	q, a := &s.procs[i], &w.sc.Actors[i]
	m := p.Message{}
	for k := range s.msgs {
		if s.msgs[k].Index == q.index && s.msgs[k].State != p.NoMessage {
			m = s.msgs[k]
		}
	}
	d := p.Delivery{Errand: a.Purpose, Seed: seed(i, q.run), Outlives: a.Outlives}
	d.Held.Op = m.Op // where it is; everything else is read
	if e := s.effect(m.Op, m.Index); a.Purpose == p.Tidings || a.Purpose == p.Judgement {
		if d.Evidence = p.OutDelivered; e.n == 0 {
			d.Evidence = p.OutDeclined
		}
	}
	if person(a.Purpose) && !a.Blind {
		d.Seen, d.SeenLost = q.seen, q.lost
	}
	return d
}

// carry goes on with a message that this process has claimed with its own write.
func (w *world) carry(s *state, i int, m p.Message) {
	q := &s.procs[i]
	in := p.Input{What: p.Begin, Deadline: q.d.Deadline}
	if !q.carrying {
		in.Deadline = q.x.Plan.StoreUntil
	}
	q.carries++
	id := seed(i, q.run)
	id[0] += 1000 * uint64(q.carries)
	s.procs[i] = proc{started: true, run: q.run, ends: q.ends, index: m.Index, carries: q.carries, carrying: true}
	s.procs[i].d = p.Delivery{Errand: p.Carry, Seed: id, Held: m, Outlives: w.sc.Actors[i].Outlives}
	w.feed(s, i, in)
}

// asks emits the topic's answer.
func (w *world) asks(s *state, i int, out emit) {
	d := &s.procs[i].d
	var meant p.Meant
	switch {
	case d.Asked == p.AskDelivered && !d.Held.Undoes:
		meant.Continues = d.Held.Index < w.sc.Chain
	case w.sc.Undo && !d.Held.Undoes && d.Held.Index <= w.sc.Chain:
		meant.Continues = d.Held.Index > 1
		meant.Undoes = meant.Continues && d.Asked == p.AskDeclined
	}
	meant.Left = w.sc.Actors[i].Leaves != 0 && meant.Continues
	meant.Writes = w.sc.Writes && d.Asked == p.AskNotExecuted
	w.tell(s, i, free, p.Input{What: p.Answered, Meant: meant}, "asks the topic", out)
	w.tell(s, i, Settle, p.Input{What: p.Answered, Meant: p.Meant{Fails: true}}, "asks the topic, which has no answer", out)
}

// called is a call that takes effect at the provider; its answer is what the provider says of it.
func (w *world) called(s *state, i int, op p.ID, index uint8) p.Outcome {
	e, t := s.effect(op, index), &w.c[i].Topic
	if t.KeysHonoured && s.now < e.forgets {
		if e.n == 0 {
			return p.OutDeclined
		}
		return p.OutDelivered
	}
	if e.n++; e.n > 1 {
		s.fail(vEffects)
	}
	e.forgets = s.now + t.KeyRetention
	if m := s.message(op, index); m.State == p.Cancelled || m.State == p.Declined || e.told {
		s.fail(vFreed)
	}
	return p.OutDelivered
}

// calls emits what may become of a call.
func (w *world) calls(s *state, i int, out emit) {
	q := &s.procs[i]
	op, index := q.d.Held.Op, q.d.Held.Index
	hears := func(f Fault, o p.Outcome, what string) {
		w.tell(s, i, f, p.Input{What: p.Called, Outcome: o, Backoff: 1}, what, out)
	}
	if w.clock(s, i) >= q.until && !w.off(p.NoCallDeadline) {
		hears(free, p.OutUncalled, "is too late to call")
		return
	}
	n := w.fork(s, free)
	o := w.called(n, i, op, index)
	w.feed(n, i, p.Input{What: p.Called, Outcome: o, Backoff: 1})
	out(n, label{"calls the provider", i})
	if n := w.fork(s, SlowCall); n != nil {
		n.procs[i].outcome = w.called(n, i, op, index)
		n.procs[i].slow, n.procs[i].paused = true, true
		out(n, label{"calls the provider, and the reply takes its time", i})
	}
	if n := w.fork(s, Ambiguous); n != nil {
		w.called(n, i, op, index)
		w.feed(n, i, p.Input{What: p.Called, Outcome: p.OutAmbiguous, Backoff: 1})
		out(n, label{"calls the provider, and its reply is lost", i})
	}
	if n := w.fork(s, LateCall); n != nil && n.fly(flight{call: true, op: op, index: index, until: n.now + w.sc.Wire, from: uint8(i), run: q.run}) {
		w.feed(n, i, p.Input{What: p.Called, Outcome: p.OutAmbiguous, Backoff: 1})
		out(n, label{"calls the provider, and the call is late", i})
	}
	if e := s.effect(op, index); e.n == 0 || !w.c[i].Topic.KeysHonoured {
		w.declines(s, i, op, index, out)
		hears(NotExecuted, p.OutNotExecuted, "calls the provider: not executed")
		hears(Refusal, p.OutRefused, "calls the provider: refused")
		w.slowly(s, i, NotExecuted, p.OutNotExecuted, "calls the provider: not executed, and the reply takes its time", out)
		w.slowly(s, i, Refusal, p.OutRefused, "calls the provider: refused, and the reply takes its time", out)
	}
}

// slowly emits a call that has no effect, and whose reply takes its time.
func (w *world) slowly(s *state, i int, f Fault, o p.Outcome, what string, out emit) {
	if n := w.fork(s, f); n != nil && n.left[SlowCall] != 0 {
		n.left[SlowCall]--
		n.procs[i].outcome, n.procs[i].slow, n.procs[i].paused = o, true, true
		out(n, label{what, i})
	}
}

// declines emits that the provider says no: at once, slowly, or without anybody hearing it.
func (w *world) declines(s *state, i int, op p.ID, index uint8, out emit) {
	if n := w.fork(s, Decline); n != nil {
		w.declined(n, i, op, index)
		w.feed(n, i, p.Input{What: p.Called, Outcome: p.OutDeclined, Backoff: 1})
		out(n, label{"calls the provider: declined", i})
	}
	if n := w.fork(s, Decline); n != nil && n.left[Ambiguous] != 0 {
		n.left[Ambiguous]--
		w.declined(n, i, op, index)
		w.feed(n, i, p.Input{What: p.Called, Outcome: p.OutAmbiguous, Backoff: 1})
		out(n, label{"calls the provider: declined, and the reply is lost", i})
	}
	if n := w.fork(s, Decline); n != nil && n.left[SlowCall] != 0 {
		n.left[SlowCall]--
		w.declined(n, i, op, index)
		n.procs[i].outcome, n.procs[i].slow, n.procs[i].paused = p.OutDeclined, true, true
		out(n, label{"calls the provider: declined, and the reply takes its time", i})
	}
}

func (w *world) declined(s *state, i int, op p.ID, index uint8) {
	e := s.effect(op, index)
	e.declined, e.forgets = true, s.now+w.c[i].Topic.KeyRetention
}

// truth is what a provider that is asked knows.
func (w *world) truth(s *state, i int) bool {
	q := &s.procs[i]
	if w.machine(q, i) == Courier {
		return s.effect(q.d.Held.Op, q.d.Held.Index).n > 0
	}
	return s.tally(q.v.Held.Op).happened
}

// stored takes over what a write has made of the messages, and judges it.
func (w *world) stored(s *state, i int, rows *p.Rows, wr *p.Write) {
	if wr.MsgAs != p.Leave {
		m := s.message(wr.Msg.Op, wr.Msg.Index)
		before := *m
		*m = rows.Msg
		w.judgeMessage(s, i, &before, m)
		if wr.Said == p.AskNotExecuted && (wr.RecAs == p.End || w.sc.Writes) {
			e := s.effect(m.Op, m.Index)
			if e.told = true; e.n > 0 && s.left[Lie] == w.sc.Budget[Lie] {
				s.fail(vFreed)
			}
		}
	}
	if wr.Next.State != p.NoMessage {
		*s.message(wr.Next.Op, wr.Next.Index) = rows.Next
		if s.rec.Op == wr.Next.Op && s.rec.State.Final() && !wr.Next.Detached { // a phase is offered, or claimed, although the client has its answer
			s.fail(vAfterEnd)
		}
	}
	for k := range s.msgs {
		m := &s.msgs[k]
		if m.State == p.NoMessage {
			continue
		}
		if wr.Earlier != 0 && m.Op == wr.Msg.Op && m.Index <= wr.Earlier {
			m.Ended = true
		}
		if m.Ended && !m.Detached && m.Op == s.rec.Op && s.rec.State == p.Pending {
			s.fail(vChainGone)
		}
	}
	if wr.RecAs == p.End {
		w.chainEnds(s, i)
	}
}

// judgeMessage judges what has become of one message.
func (w *world) judgeMessage(s *state, i int, before, m *p.Message) {
	e, t := s.effect(m.Op, m.Index), &w.c[i].Topic
	given := (m.State == p.Dead || m.State == p.Cancelled) && before.State == p.Due && !s.erased && !person(w.sc.Actors[i].Purpose)
	final := s.rec.Op == m.Op && s.rec.State.Final()
	if m.State != before.State || m.Kept != before.Kept {
		e.alerted = false
	}
	switch {
	case before.Kept&^m.Kept != 0 && !m.State.Final():
		s.fail(vOverwritten)
	case w.sc.Actors[i].Foreign && *m != *before:
		s.fail(vForeign)
	case m.State == p.Claimed && before.State == p.Evidenced:
		s.fail(vRecalled)
	case given && before.FirstClaimed == 0 && before.Redriven != 0 && w.clock(s, i) < before.Redriven+t.AbandonAfter:
		s.fail(vRestarted)
	case given && before.Attempts >= t.AttemptsMax && !e.tried:
		s.fail(vUntried)
	case m.State == p.Declined && before.Kept&p.KeptDelivered != 0:
		s.fail(vContradicted)
	case m.State == p.Claimed && before.State != p.Claimed && final && !m.Detached:
		s.fail(vAfterEnd)
	case (m.State == p.Cancelled || m.State == p.Declined) && m.State != before.State && e.n > 0 && s.left[Lie] == w.sc.Budget[Lie]:
		s.fail(vFreed)
	}
}

// delivering judges what a delivery asks for after an input: a delivery that has a definite answer gives nothing back for a call.
func (w *world) delivering(s *state, i int, in *p.Input, a *p.Action) {
	d := &s.procs[i].d
	if in.What == p.Called && in.Outcome != p.OutUncalled {
		s.effect(d.Held.Op, d.Held.Index).tried = true
	}
	if a.Do == p.Send && a.Write.MsgAs == p.Put && a.Write.Msg.State == p.Due && (d.Evidence == p.OutDelivered || d.Evidence == p.OutDeclined) {
		s.fail(vRecalled)
	}
}

// chainEnds judges that a record whose chain was not done to its end has had every phase undone. What an operator closes is theirs, and nobody
// can undo what nobody can open.
func (w *world) chainEnds(s *state, i int) {
	if !w.sc.Undo || s.erased || w.sc.Actors[i].Purpose == p.Close {
		return
	}
	last, done := uint8(0), 0
	for k := range s.msgs {
		if m := &s.msgs[k]; m.Op == s.rec.Op && m.State == p.Delivered && !m.Undoes {
			last = max(last, m.Index)
		}
	}
	if s.rec.State == p.Completed && last == w.sc.Chain { // it was done to its end
		return
	}
	for k := range s.effects {
		if e := &s.effects[k]; e.op == s.rec.Op && e.n > 0 {
			if s.message(e.op, e.index).Undoes {
				done -= 2
			}
			done++
		}
	}
	if done > 0 {
		s.fail(vNotUndone)
	}
}

// delivered judges the end of a delivery: definite evidence is settled or kept.
func (w *world) delivered(s *state, i int, say p.Say) {
	d := &s.procs[i].d
	if d.Evidence == 0 || !w.sc.NoDrop || say.Code == p.Stale {
		return
	}
	m := s.message(d.Held.Op, d.Held.Index)
	kept := p.KeptDelivered
	if d.Evidence == p.OutDeclined {
		kept = p.KeptDeclined
		if !w.c[i].Topic.KeysHonoured && (m.Owner != d.Owner || m.Epoch != d.Epoch) { // of an attempt that another has followed
			return
		}
	}
	if !m.State.Final() && m.Kept&kept == 0 {
		s.fail(vEvidence)
	}
}
