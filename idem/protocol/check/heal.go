//go:build prove

package check

import p "github.com/idem-go/idem-aws/idem/protocol"

// heals runs the machines on without a fault: whoever is alive ends, time passes, sweeper, reconciler and operator come,
// and a last client asks. It says whether all comes to an end. The way is deterministic, so that a state on a way that was
// walked already needs no second walk.
func (w *world) heals(from *state, walked *set, enc *encoder) bool {
	s := *from
	s.left, s.flights, s.bad = Budget{Ticks: 255}, [flights]flight{}, 0
	for range 400 {
		if !walked.add(enc.hash(&s)) {
			return true
		}
		done, moved := true, false
		for i := range s.procs {
			if q := &s.procs[i]; q.started && !q.over {
				done = false
				if w.prompt(&s, i) {
					moved = true
					break
				}
			}
		}
		if done {
			return w.settled(&s)
		}
		if !moved {
			w.pass(&s)
		}
	}
	return false
}

// prompt does the one thing that a process does without a fault; false where it waits for time.
func (w *world) prompt(s *state, i int) bool {
	found := false
	var next state
	w.perform(s, i, func(n *state, _ label) {
		if !found {
			next, found = *n, true
		}
	})
	if found {
		*s = next
	}
	return found
}

// healer is the place of whoever comes once faults have stopped.
const healer = procs - 1

// settled says whether a world in which nobody is at work comes to an end.
func (w *world) settled(s *state) bool {
	sc := *w.sc
	sc.NoBurn, sc.NoLeaseLeft, sc.NoParkAlive = false, false, false
	v := &world{sc: &sc, c: w.c, minSkew: w.minSkew, healing: true}
	v.c[healer] = w.c[0]
	come := func(a Actor) end {
		sc.Actors[healer] = a
		s.tokens = [tokens]p.Token{}
		s.procs[healer] = proc{knows: true, ends: s.procs[healer].ends, seen: s.rec.Revision, frees: s.rec.State != p.Absent && !s.tally(s.rec.Op).happened}
		v.start(s, healer, healing)
		for n := 0; !s.procs[healer].over && n < 80; n++ {
			if !v.prompt(s, healer) {
				v.pass(s)
			}
		}
		return *s.end(healer, healing)
	}
	for range 12 {
		v.pass(s)
		if s.rec.State == p.InProgress || s.rec.State == p.Unknown {
			come(Actor{Role: Visitor, Errand: p.ParkDead})
			come(Actor{Role: Visitor, Errand: p.Reconcile})
		}
	}
	if s.rec.State == p.Unknown {
		come(Actor{Role: Operator})
	}
	payload := w.sc.Actors[0].Payload
	if s.rec.State != p.Absent {
		payload = w.payload(s.rec.Op)
	}
	switch e := come(Actor{Role: Client, Payload: payload}); e.said {
	case p.Executed, p.Replayed, p.Gone:
		return true
	}
	return false
}
