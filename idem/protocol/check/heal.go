//go:build prove

package check

import p "github.com/idem-go/idem-aws/idem/protocol"

// heals runs the machines on without a fault: those that live end, time passes, sweeper, reconciler and operator come,
// and a last client asks. It says what is violated where not all comes to an end; 0 is nothing. The way is deterministic, so
// that a state on a way that was walked already needs no second walk.
func (w *world) heals(from *state, walked *set, enc *encoder) (stuck, done uint8) {
	s := &w.healed
	*s = *from
	s.left, s.flights, s.crowded, s.unread, s.image, s.bad = Budget{Ticks: 255}, [flights]flight{}, false, false, image{}, 0
	for range 400 {
		if !walked.add(enc.hash(s)) {
			return 0, 0
		}
		ended, moved := true, false
		for i := range s.procs {
			if q := &s.procs[i]; q.started && !q.over {
				ended = false
				if w.prompt(s, i) {
					moved = true
					break
				}
			}
		}
		if ended {
			stuck = w.settled(s)
			return stuck, s.bad
		}
		if !moved {
			w.pass(s)
		}
	}
	return vStuck, s.bad
}

// prompt does the one thing that a process does without a fault; false where it waits for time.
func (w *world) prompt(s *state, i int) bool {
	found := false
	w.perform(s, i, func(*state, label) {
		if !found {
			w.kept, w.scratch, found = w.scratch, w.kept, true
		}
	})
	if found {
		*s = *w.kept
	}
	return found
}

// healer is the place of those that come once faults have stopped.
const healer = procs - 1

// nurse brings those who come once faults have stopped.
type nurse struct {
	*world
	s *state
}

// come is one visit; it says how it ended.
func (v nurse) come(a Actor, index uint8) end {
	s := v.s
	v.sc.Actors[healer] = a
	s.tokens = [tokens]p.Token{}
	old := s.procs[healer]
	q := proc{knows: true, ends: old.ends, seen: s.rec.Revision, frees: s.rec.State != p.Absent && !s.found()}
	if a.Role == Courier {
		q.index, q.seen, q.lost, q.carries = index, s.msgs[index-1].Revision, s.lost, old.carries
		for k := range s.msgs {
			if s.msgs[k].Index == index {
				q.seen = s.msgs[k].Revision
			}
		}
	}
	s.procs[healer] = q
	v.start(s, healer, healing)
	for n := 0; !s.procs[healer].over && n < 80; n++ {
		if !v.prompt(s, healer) {
			v.pass(s)
		}
	}
	return *s.end(healer, healing)
}

// settled says what is violated where a world in which nobody is at work does not come to an end; 0 is nothing.
func (w *world) settled(s *state) uint8 {
	v := nurse{w.nursing(), s}
	s.biz.poor = false
	for round := range 16 {
		if v.calm() {
			break
		}
		if round == untended && v.unalerted() {
			return vUnalerted
		}
		v.pass(s)
		if s.rec.State == p.InProgress || s.rec.State == p.Unknown {
			v.come(Actor{Role: Visitor, Errand: p.ParkDead}, 0)
			v.come(Actor{Role: Visitor, Errand: p.Reconcile}, 0)
		}
		for k := range s.msgs {
			v.tends(&s.msgs[k], round)
		}
	}
	if v.person(); v.held() {
		return vHeld
	}
	switch {
	case s.rec.State == p.Pending || v.open():
		return vStuck
	case v.calm() && v.stays():
		return vStays
	}
	switch v.last() {
	case p.Executed, p.Replayed, p.Gone:
		return 0
	}
	return vStuck
}

// person decides what is unknown, or was only observed, which may take two decisions.
func (v nurse) person() {
	for range 2 {
		if v.s.rec.State == p.Unknown || v.s.rec.Observed {
			v.come(Actor{Role: Operator}, 0)
		}
	}
}

// last is what a last client is told.
func (v nurse) last() p.SayCode {
	first := v.sc.Actors[0]
	payload := first.Payload
	if v.s.rec.State != p.Absent && first.Role == Client {
		payload = v.payload(v.s.rec.Op)
	}
	return v.come(Actor{Role: Client, Payload: payload, Chain: first.Chain}, 0).said
}

// nursing is the world without what a scenario takes away from those who come once faults have stopped.
func (w *world) nursing() *world {
	if w.nurse == nil {
		sc := *w.sc
		sc.NoBurn, sc.NoLeaseLeft, sc.NoParkAlive, sc.NoDrop = false, false, false, false
		w.nurse = &world{sc: &sc, c: w.c, minSkew: w.minSkew, scratch: &state{}, kept: &state{}}
		w.nurse.c[healer] = w.sc.Config
		w.nurse.c[healer].Off = w.c[0].Off
	}
	w.nurse.sc.Actors = w.sc.Actors
	return w.nurse
}

// held says that a key of which nothing happened is never free for another request, however late it comes.
func (v nurse) held() bool {
	if v.s.rec.State != p.Retryable || v.s.rec.FreeAt(forever) {
		return false
	}
	much := *v.s
	much.now = forever
	e := nurse{v.world, &much}.come(Actor{Role: Client, Payload: 9, Chain: v.sc.Actors[0].Chain}, 0)
	return e.said != p.Executed
}

// untended is for how many rounds no operator comes.
const untended = 8

// unalerted says that a message is dead, and that no operator has been told.
func (v nurse) unalerted() bool {
	for k := range v.s.msgs {
		if m := &v.s.msgs[k]; m.State == p.Dead && !v.s.effect(m.Op, m.Index).alerted {
			return true
		}
	}
	return false
}

// open says that a message has not ended, whatever its operation's answer is.
func (v nurse) open() bool {
	for k := range v.s.msgs {
		if m := &v.s.msgs[k]; m.State != p.NoMessage && !m.State.Final() {
			return true
		}
	}
	return false
}

// calm says that time alone changes nothing that anybody waits for.
func (v nurse) calm() bool {
	return !v.open() && (v.s.rec.State == p.Absent || v.s.rec.State.Final())
}

// answered says that the message's operation has its answer, which stands. A record that is gone had one.
func (v nurse) answered(m *p.Message) bool {
	return !m.Detached && (v.s.rec.Op != m.Op || v.s.rec.State.Final())
}

// stays says that a message will never be removed, although it has ended and with it, where nobody waits for anything, its operation.
func (v nurse) stays() bool {
	for k := range v.s.msgs {
		if m := &v.s.msgs[k]; m.State.Final() && !m.Ended {
			return true
		}
	}
	return false
}

// tends to a message: workers and reconcilers first, and an operator for what they leave.
func (v nurse) tends(m *p.Message, round int) {
	if m.State == p.NoMessage || m.State.Final() {
		return
	}
	index := m.Index
	v.come(Actor{Role: Courier, Purpose: p.Wake}, index)
	v.come(Actor{Role: Courier, Purpose: p.Question}, index)
	v.come(Actor{Role: Courier, Purpose: p.Remind}, index)
	if round < untended || m.State.Final() {
		return
	}
	e := v.s.effect(m.Op, m.Index)
	if m.State == p.Dead && v.answered(m) { // what the answer denies is undone by hand at the provider
		e.n, e.declined = 0, false
		v.come(Actor{Role: Courier, Purpose: p.Close}, index)
		return
	}
	if m.Undoes && (e.declined || v.s.erased) { // it is undone by hand
		e.n, e.declined = 1, false
	}
	switch {
	case m.Undoes && m.Kept != 0:
		v.come(Actor{Role: Courier, Purpose: p.Judgement}, index)
	case m.State == p.Dead && round%2 == 0:
		v.come(Actor{Role: Courier, Purpose: p.Redrive}, index)
	case e.n > 0 || e.declined || v.s.erased: // what nobody can open is declined by hand
		v.come(Actor{Role: Courier, Purpose: p.Judgement}, index)
	default:
		v.come(Actor{Role: Courier, Purpose: p.Close}, index)
	}
}
