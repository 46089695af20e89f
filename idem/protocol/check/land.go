//go:build prove

package check

import p "github.com/idem-go/idem-aws/idem/protocol"

// What is demanded of every state. A violation is named as its reader would say it.
var violations = [...]string{
	"",
	"business writes twice in one incarnation",
	"two final answers in one incarnation",
	"a client is told an answer that is not the stored one",
	"a client is told the answer of another request",
	"two effects for one key",
	"stored as not happened, and it happened",
	"told that nothing happened, and it is committed",
	"unknown although no handler ever ran",
	"a 409 or 503 leaves its own lease standing",
	"a lease lands for an execution that is over",
	"a request that is over executes after its key has expired",
	"a rejection is stored that was judged on a lost lock",
	"a living holder is parked",
	"a record is parked whose lease lives",
	"something executes from unknown",
	"a promised answer is gone before its time",
	"a promise to answer is shortened",
	"a new key stands and its right was given back",
	"a key begins that was never admitted",
	"an epoch goes back",
	"a cache still holds an answer that has been replaced",
	"an operator's decision is applied to what it was not made about",
	"the answer of a handler is dropped",
	"told that nothing happened, and it becomes unknown",
	"a change is made, and its author is told that it is not",
	"something is done although the answer is final",
	"kept evidence is overwritten",
	"definite evidence is dropped",
	"a message may go before its chain has ended",
	"failed, and what was done is not undone",
	"settled as declined, and it is known to be delivered",
	"dead, and no operator is told",
	"a key of which nothing happened is held for ever",
	"what was started anew is given up as too old",
	"called again although its answer is known",
	"given up after attempts of which none was made",
	"changed by a release that does not know its topic",
	"a rejection never expires",
	"a message is never removed",
	"stuck: faults have stopped and nobody can end it",
}

const (
	vTwice uint8 = iota + 1
	vAnswers
	vTold
	vMixed
	vEffects
	vFreed
	vPassed
	vBurnt
	vLease
	vGhost
	vZombie
	vHidden
	vAlive
	vParkedLive
	vFromUnknown
	vPromise
	vShorter
	vQuota
	vUnasked
	vEpoch
	vCached
	vUnseen
	vDropped
	vForgotten
	vMisled
	vAfterEnd
	vOverwritten
	vEvidence
	vChainGone
	vNotUndone
	vContradicted
	vUnalerted
	vHeld
	vRestarted
	vRecalled
	vUntried
	vForeign
	vEndless
	vStays
	vStuck
)

func (s *state) fail(v uint8) {
	if s.bad == 0 {
		s.bad = v
	}
}

// land is a request that the store executes.
func (w *world) land(s *state, i int, run uint8, wr *p.Write) p.Reply {
	w.note(wr)
	if wr.Token != (p.Token{}) {
		for _, t := range s.tokens {
			if t == wr.Token {
				return p.Reply{Code: p.OK}
			}
		}
	}
	before := s.rec
	if wr.RecAs == p.End {
		wr = w.answerOf(s, wr)
	}
	rows, reply := p.Apply(s.rows(wr), *wr, s.conditions(wr))
	if reply.Code != p.OK {
		w.sampled(s, &reply.Rec)
		return reply
	}
	if wr.Token != (p.Token{}) {
		copy(s.tokens[1:], s.tokens[:])
		s.tokens[0] = wr.Token
	}
	if rows.Rec.Op != before.Op && before.State != p.Absent || rows.Rec.State == p.Retryable && before.State.Final() {
		w.replaced(s, rows.Rec, w.errand(i) == p.Bust)
	}
	if s.rec = rows.Rec; rows.Rec != before {
		w.changed(s, i, run, &before, wr)
	}
	w.stored(s, i, &rows, wr)
	return reply
}

// sampled notes that an answer was read: a cache may hold it from now.
func (w *world) sampled(s *state, r *p.Record) {
	if w.busts && r.State.Final() {
		t := s.tally(r.Op)
		t.cached = max(t.cached, s.now+w.sc.Config.CacheAge)
	}
}

// errand is why a visitor came; 0 for anybody else.
func (w *world) errand(i int) p.Errand {
	if w.sc.Actors[i].Role == Visitor {
		return w.sc.Actors[i].Errand
	}
	return 0
}

// replaced judges that a row is not there any more. Its answer was promised on every clock of the fleet.
func (w *world) replaced(s *state, next p.Record, bust bool) {
	t := s.tally(s.rec.Op)
	if t.final == 0 {
		return
	}
	if bust && next.Op == s.rec.Op {
		t.busted, t.final, t.promised, t.writes = t.final, 0, 0, 0
		return
	}
	if s.now+w.minSkew < t.promised {
		s.fail(vPromise)
	}
}

// changed judges what a write has made of the record.
func (w *world) changed(s *state, i int, run uint8, before *p.Record, wr *p.Write) {
	r := &s.rec
	t := s.tally(r.Op)
	client := w.sc.Actors[i].Role == Client
	if r.Op != before.Op {
		w.begins(s, i, run, before)
	} else {
		if r.Epoch < before.Epoch {
			s.fail(vEpoch)
		}
		if client && w.payload(r.Op) != w.sc.Actors[i].Payload && before.State != p.Unknown && r.State != p.Unknown {
			s.fail(vMixed)
		}
	}
	if client && wr.RecAs == p.Put && wr.Slot != 0 {
		w.writes(s, i, run)
	}
	switch {
	case r.State.Final():
		w.final(s, i, before)
	case r.State == p.Pending:
		t.accepted = r.Answer
	case r.State == p.Unknown && before.State != p.Unknown:
		w.parked(s, i, run, before)
	case r.State == p.Retryable && before.State != p.Retryable:
		if t.happened && !before.State.Final() && w.c[i].Kind == p.Wrapped && !w.sc.Outlives {
			s.fail(vFreed)
		}
	case r.State == p.InProgress && before.State == p.Unknown:
		s.fail(vFromUnknown)
	case r.State == p.InProgress && wr.RecAs == p.Put && w.sc.NoLeaseLeft && client && w.isOver(s, i, run):
		s.fail(vGhost)
	}
	if w.sc.Actors[i].Role == Operator && s.procs[i].seen != before.Revision {
		s.fail(vUnseen)
	}
}

// isOver says that the run has been answered. One that died is no such run.
func (w *world) isOver(s *state, i int, run uint8) bool {
	e := s.end(i, run)
	return e.said != 0 && !e.died
}

// begins judges that a new incarnation stands.
func (w *world) begins(s *state, i int, run uint8, before *p.Record) {
	t := s.tally(s.rec.Op)
	old, state := before.Op, before.State
	if state == p.Absent {
		old, state = s.gone, s.goneState
	}
	if !old.None() && state == p.Retryable { // what was stored as not happened is the same intent
		t.happened = t.happened || s.tally(old).happened
	}
	e := s.end(i, run)
	if w.isOver(s, i, run) {
		if !e.newKey {
			s.fail(vQuota)
		}
	} else if q := &s.procs[i]; q.run == run && !e.died && !q.x.Asked {
		s.fail(vUnasked)
	}
}

// writes judges that the application's writes have landed.
func (w *world) writes(s *state, i int, run uint8) {
	t := s.tally(s.rec.Op)
	if t.writes++; t.writes > 1 || t.aside && !w.c[i].Observed {
		s.fail(vTwice)
	}
	t.enforced = t.enforced || !w.c[i].Observed
	if e := s.end(i, run); w.isOver(s, i, run) && toldNothing(e.said, e.state) {
		s.fail(vPassed)
	}
	w.late(s, i, run, s.rec.Op)
}

// toldNothing says that the answer means: nothing has happened, and nothing will.
func toldNothing(c p.SayCode, state p.State) bool {
	switch c {
	case p.Passed:
		return state == p.Retryable
	case p.Undeclared, p.Late, p.TurnedOff, p.Vacant, p.Mismatch, p.Gone:
		return true
	}
	return false
}

// late judges that a request executes which was under way when another incarnation of its key became final, and has
// outlived it.
func (w *world) late(s *state, i int, run uint8, op p.ID) {
	began := s.end(i, run).began
	for k := range s.tallies {
		if t := &s.tallies[k]; !t.op.None() && t.op != op && t.final != 0 && began < t.since {
			s.fail(vZombie)
		}
	}
}

// final judges an answer that is stored.
func (w *world) final(s *state, i int, before *p.Record) {
	r := &s.rec
	t := s.tally(r.Op)
	promised := r.Expires
	if promised == 0 {
		promised = forever
	}
	if t.final == 0 {
		t.final, t.since = r.Answer, s.now
		if t.busted != 0 && s.now < t.cached {
			s.fail(vCached)
		}
	}
	if t.final != r.Answer {
		s.fail(vAnswers)
	}
	if r.Expires == 0 && r.Answer != resolved && r.Answer < handlers { // nothing that a handler made
		s.fail(vEndless)
	}
	if promised < t.promised && w.errand(i) != p.EndLife {
		s.fail(vShorter)
	}
	t.promised = promised
	t.cached = max(t.cached, s.now+w.c[i].CacheAge)
}

// forever is later than any story ends.
const forever p.Instant = 1 << 20

// parked judges that a record has become unknown.
func (w *world) parked(s *state, i int, run uint8, before *p.Record) {
	j, r := whose(before.Owner)
	q, e := &s.procs[j], s.end(j, r)
	if w.sc.NoBurn && !e.ran {
		s.fail(vBurnt)
	}
	if w.sc.NoBurn && w.isOver(s, j, r) && toldNothing(e.said, e.state) {
		s.fail(vForgotten)
	}
	if j == i && r == run {
		return
	}
	if before.Lease > w.clock(s, i) {
		s.fail(vParkedLive)
	}
	on := q.run == r && !q.over && q.x.HandlerOn && q.x.Owner == before.Owner
	if on && (w.sc.NoParkAlive || w.clock(s, j) < q.x.Held.Lease) {
		s.fail(vAlive)
	}
}

// arrives is an effect of a wrapped handler.
func (w *world) arrives(s *state, i int, run uint8, op p.ID) {
	if q := &s.procs[i]; q.run == run {
		q.calling = false
	}
	t := s.tally(op)
	if t.happened || t.aside && !w.c[i].Observed {
		s.fail(vEffects)
	}
	t.happened = t.happened || !w.c[i].Safe
	t.enforced = t.enforced || !w.c[i].Observed
	w.late(s, i, run, op)
}

// arrivesAside is an effect beside a record that was observed.
func (w *world) arrivesAside(s *state, op p.ID) {
	t := s.tally(op)
	if t.enforced {
		s.fail(vEffects)
	}
	t.aside = true
}

// told judges what a machine ends with.
func (w *world) told(s *state, i int, say p.Say) {
	q := &s.procs[i]
	e := s.end(i, q.run)
	if w.machine(q, i) != Courier {
		e.said, e.state, e.newKey = say.Code, say.State, q.x.NewKey
	}
	switch own := s.rec.State != p.Absent && s.rec.Revision == q.v.At.W.Rec.Revision; {
	case w.machine(q, i) == Courier:
		w.delivered(s, i, say)
		if e.said == 0 { // its client has not been told already
			e.said = say.Code
		}
	case w.sc.Actors[i].Role == Client:
		w.answered(s, i, say)
	case own && say.Code != p.Changed && say.Code != p.Unavailable:
		s.fail(vMisled)
	}
	if say.Carry.State == p.Claimed {
		w.carry(s, i, say.Carry)
		return
	}
	s.procs[i] = proc{started: true, over: true, run: q.run, ends: q.ends, carries: q.carries}
}

func (w *world) answered(s *state, i int, say p.Say) {
	q, r := &s.procs[i], &s.rec
	// Who only observes executes whatever it is told, and writes nothing down. No lease bounds that.
	if r.Observed && w.c[i].Observed && !s.end(i, q.run).ran && !r.State.Final() && r.State != p.Pending {
		if !s.fly(flight{aside: true, op: r.Op, until: s.now + w.sc.Wire, from: uint8(i), run: q.run}) {
			panic("check: too much is under way")
		}
	}
	own := r.State != p.Absent && isOf(r.Owner, i, q.run)
	switch say.Code {
	case p.Executed, p.Replayed:
		t := s.tally(say.Op)
		if say.State != p.Pending && say.Answer != t.final && say.Answer != t.busted || say.State == p.Pending && t.accepted != say.Answer {
			s.fail(vTold)
		}
		if w.payload(say.Op) != w.sc.Actors[i].Payload {
			s.fail(vMixed)
		}
	default:
		if toldNothing(say.Code, say.State) && own && (r.State.Final() || r.State == p.Pending) {
			s.fail(vPassed)
		}
		if w.sc.NoLeaseLeft && own && (q.x.Runs == 0 || w.c[i].Kind != p.Wrapped) && (r.State == p.InProgress || r.State == p.Unknown) {
			s.fail(vLease)
		}
	}
	if answered := q.x.Result.Code == p.Responded || q.x.Result.Code == p.Stored; w.sc.NoDrop && w.c[i].Kind == p.Wrapped && answered && own && !r.State.Final() {
		s.fail(vDropped)
	}
	if w.sc.NoForget && own && r.State == p.Unknown && toldNothing(say.Code, say.State) {
		s.fail(vForgotten)
	}
	if r.State != p.Absent && isOf(r.Op, i, q.run) && !q.x.NewKey {
		s.fail(vQuota)
	}
}
