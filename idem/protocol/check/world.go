//go:build prove

package check

import (
	p "github.com/idem-go/idem-aws/idem/protocol"
)

const (
	procs   = 4
	runs    = 3
	flights = 3
	tokens  = 4
	tallies = 6
	// messages is how many are stored at most.
	messages = 3
	// healing is the run of those that come once faults have stopped.
	healing = 7
)

// The answers that are no handler's.
const (
	resolved p.Answer = 1 // a reconciler's or an operator's
	rejected p.Answer = 2 // a condition's that is declared Reject; the process is added, times 4
	handlers p.Answer = 64
)

// proc is a process. It keeps what its machine has asked it to do.
type proc struct {
	x p.Execution
	v p.Change
	d p.Delivery

	outcome     p.Outcome // of a call whose reply is under way, where slow
	reply       p.Reply   // that is under way, where slow
	seen        p.ID      // the revision that an operator decides about
	lost        p.Instant // until when data may have been lost, as the operator knows it
	do          p.Verb
	until, wake p.Instant

	run                        uint8
	index, carries             uint8 // the message that a courier comes to; how many a process has carried inline
	carrying                   bool
	started, over              bool
	slow, paused               bool
	acted, calling, hides      bool
	knows, frees, asked, found bool // an operator has looked; a provider was asked
	ends                       [runs]end
}

// end is what is remembered of a run.
type end struct {
	began             p.Instant // on the store's clock
	said              p.SayCode
	state             p.State
	newKey, ran, died bool
}

// flight is a late request, a late call of a handler, or an execution beside a record.
type flight struct {
	w     p.Write
	op    p.ID
	until p.Instant
	from  uint8
	run   uint8
	index uint8 // of the message that the call is about; 0 is a handler's
	call  bool
	aside bool // of an observed request that was told what it does not act on
}

// tally is what is remembered of an incarnation.
type tally struct {
	op p.ID
	// promised is until when its answer is promised, and since is when it became final.
	promised, since p.Instant
	final, accepted p.Answer
	writes          uint8
	// happened says that there was an effect which must not happen again.
	happened bool
	// aside says that an observed request ran beside it, and left no trace; enforced that it was executed by who enforces.
	aside, enforced bool
	// busted is an answer that an operator wanted gone; cached is until when a cache may hold it.
	busted p.Answer
	cached p.Instant
}

// found is what a person finds about the record. One who was not told that it was only observed looks under its own operation id.
func (s *state) found() bool {
	t := s.tally(s.rec.Op)
	return t.happened || t.aside && s.rec.State == p.Retryable
}

// effect is what a provider did about a message.
type effect struct {
	op       p.ID
	index    uint8
	n        uint8 // how often it was done
	declined bool
	told     bool // that it did not happen
	alerted  bool // an operator was told that the message is as it is: dead
	tried    bool // a call about it has left, and its caller goes on
	// forgets is until when the provider recognises another call as the same.
	forgets p.Instant
}

// business is the application's data: a version that is locked optimistically, and whether its condition fails.
type business struct {
	version uint8
	poor    bool
}

// state is all there is.
type state struct {
	rec     p.Record
	msgs    [messages]p.Message
	effects [messages]effect
	biz     business
	now     p.Instant
	procs   [procs]proc
	flights [flights]flight
	tokens  [tokens]p.Token
	tallies [tallies]tally
	// gone is the incarnation whose row was removed, and in what state it was.
	gone      p.ID
	goneState p.State
	erased    bool // nobody can open a message any more
	crowded   bool // settlements meet contention
	unread    bool // nobody can read until when data was lost
	// lost is until when data may have been lost; image is what is restored then.
	lost  p.Instant
	image image
	left  Budget
	bad   uint8
}

// image is the rows as a backup has them.
type image struct {
	taken bool // it is not the first one any more
	rec   p.Record
	msgs  [messages]p.Message
	// alerted says of what an operator had been told by then.
	alerted [messages]bool
}

// world is a scenario that is being explored.
type world struct {
	sc      *Scenario
	c       [procs]p.Config
	minSkew p.Instant
	busts   bool // somebody may make the answer go
	// scratch is the state that is emitted; the one that keeps it puts another buffer in its place.
	scratch, kept *state
	healed        state  // where faults have stopped
	nurse         *world // the same scenario for those who come then
	// telling says that a story is told: what happens is kept in wrote and heard.
	telling bool
	wrote   *p.Write
	heard   *p.Reply
}

func newWorld(sc *Scenario, off p.Rules) *world {
	w := &world{sc: sc, scratch: &state{}, kept: &state{}}
	for i, a := range sc.Actors {
		w.c[i] = sc.Config
		if a.Config != nil {
			a.Config(&w.c[i])
		}
		w.c[i].Off = off
		w.busts = w.busts || a.Errand == p.Bust
		if a.Role != Nobody {
			w.minSkew = min(w.minSkew, a.Skew)
		}
	}
	return w
}

func (w *world) initial() state {
	s := state{now: 1, left: w.sc.Budget}
	if s.left[Total] == 0 {
		s.left[Total] = 3
	}
	if w.sc.Pending {
		w.pending(&s)
	}
	if w.sc.Budget[Loss] != 0 {
		s.image = image{rec: s.rec, msgs: s.msgs}
	}
	return s
}

func (w *world) off(r p.Rule) bool { return w.c[0].Off.Has(r) }

func (w *world) clock(s *state, i int) p.Instant { return s.now + w.sc.Actors[i].Skew }

// Identities say whose they are: the process and its run are in the high word, what a machine derives is in the low one.
func seed(i int, run uint8) p.ID        { return p.ID{1 + uint64(i)*8 + uint64(run), 0} }
func incarnation(i int, run uint8) p.ID { return p.ID{101 + uint64(i)*8 + uint64(run), 0} }

// whose says which process and run an owner or an incarnation is of.
func whose(id p.ID) (i int, run uint8) {
	n := id[0]%1000 - 1
	if n >= 100 {
		n -= 100
	}
	return int(n/8) % procs, uint8(n % 8)
}

// isOf says that the identity was derived by the run of the process.
func isOf(id p.ID, i int, run uint8) bool {
	j, r := whose(id)
	return !id.None() && j == i && r == run
}

func (s *state) tally(op p.ID) *tally {
	for i := range s.tallies {
		if t := &s.tallies[i]; t.op == op || t.op.None() {
			t.op = op
			return t
		}
	}
	panic("check: too many incarnations")
}

func (w *world) payload(op p.ID) uint8 {
	i, _ := whose(op)
	return w.sc.Actors[i].Payload
}

// seenBy is the row as the driver of the process reads it: it compares fingerprints.
func (w *world) seenBy(i int, r p.Record) p.Record {
	if r.State != p.Absent && w.sc.Actors[i].Role == Client && w.payload(r.Op) != w.sc.Actors[i].Payload {
		r.Match = p.Different
	}
	return r
}

// end is where the run of the process is remembered. Those who come once faults have stopped share a place.
func (s *state) end(i int, run uint8) *end { return &s.procs[i].ends[min(int(run), runs-1)] }

// start begins a run of a process.
func (w *world) start(s *state, i int, run uint8) {
	q, a := &s.procs[i], &w.sc.Actors[i]
	*q = proc{started: true, run: run, ends: q.ends, seen: q.seen, lost: q.lost, frees: q.frees, index: q.index, carries: q.carries}
	*s.end(i, run) = end{began: s.now}
	id, now := seed(i, run), w.clock(s, i)
	in := p.Input{What: p.Begin}
	if a.Deadline != 0 {
		in.Deadline = now + a.Deadline
	}
	switch a.Role {
	case Client:
		r := p.Request{Seed: id, Incarnation: incarnation(i, run), LookOnly: a.LookOnly, Barred: a.Barred}
		if a.Waits != 0 {
			r.WaitUntil = now + a.Waits
		}
		q.x = p.NewExecution(r)
	case Visitor:
		q.v = w.visit(s, i, a.Errand)
	case Courier:
		q.d = w.delivery(s, i)
	case Operator:
		errand := p.Resolve
		if q.frees {
			errand = p.Free
		}
		if q.v = w.visit(s, i, errand); !a.Blind {
			q.v.Seen = q.seen
		}
	}
	w.feed(s, i, in)
}

// visit is a change as its caller asks for it.
func (w *world) visit(s *state, i int, errand p.Errand) p.Change {
	q := &s.procs[i]
	v := p.Change{Errand: errand, Seed: seed(i, q.run), Answer: resolved}
	switch r := s.rec; errand {
	case p.Extend:
		v.Until = w.clock(s, i) + w.c[i].Life.Retention + 1 + p.Instant(i)
		v.Op = r.Op
	case p.EndLife:
		v.Op = r.Op
	case p.Bust:
		v.Op, v.Owner = r.Op, r.Owner
	}
	return v
}

// feed gives a machine an input, and keeps what it asks for.
func (w *world) feed(s *state, i int, in p.Input) {
	q := &s.procs[i]
	in.Now = w.clock(s, i)
	q.slow, q.outcome = false, 0
	if in.What == p.Replied {
		q.reply = p.Reply{}
		in.Reply.Rec = w.seenBy(i, in.Reply.Rec)
		in.Reply.Msg.Sealed = s.erased && in.Reply.Msg.State != p.NoMessage
		in.Reply.Msg.Foreign = w.sc.Actors[i].Foreign && in.Reply.Msg.State != p.NoMessage
		if in.Reply.Code == p.Refused && in.Reply.Conds&p.CondReject != 0 {
			in.Rejection = rejected + 4*p.Answer(i)
		}
	}
	var a p.Action
	switch w.machine(q, i) {
	case Client:
		q.x, a = q.x.Next(in, &w.c[i])
	case Courier:
		switch heeds := q.d.Heeds(in, &w.c[i]); {
		case heeds && s.unread:
			in.Unread = true
		case heeds:
			in.Lost = s.lost
		}
		q.d, a = q.d.Next(in, &w.c[i])
		w.delivering(s, i, &in, &a)
	default:
		q.v, a = q.v.Next(in, &w.c[i])
	}
	q.do, q.until, q.wake, q.paused = a.Do, 0, a.Wake, a.Pause != 0
	q.asked, q.found = false, false
	switch a.Do {
	case p.Admit:
		if w.sc.Budget[Turn] == 0 { // nothing lies between the two
			w.feed(s, i, p.Input{What: p.Admitted})
		}
	case p.Call:
		q.until = a.Until
	case p.Alert: // nothing lies before it: who dies here is as one whose write has no reply
		s.effect(q.d.Held.Op, q.d.Held.Index).alerted = true
		w.feed(s, i, p.Input{What: p.Alerted})
	case p.Send:
		q.until = a.Until
		if a.Write != *q.write(w, i) {
			panic("check: a machine asks for another write than the one that it judges")
		}
		if q.hides && q.x.Phase == p.Storing {
			s.fail(vHidden)
		}
	case p.Run, p.Wait:
		if q.x.HandlerOn && w.sc.Actors[i].Obeys {
			q.until = a.Until
		}
		if a.Do == p.Wait {
			break
		}
		q.acted, q.calling, q.hides = false, false, false
		s.end(i, q.run).ran = true
	case p.Tell:
		w.told(s, i, a.Say)
	}
}

// machine is which machine the process runs now: a client may have gone on to carry its message inline.
func (w *world) machine(q *proc, i int) Role {
	if q.carrying {
		return Courier
	}
	return w.sc.Actors[i].Role
}

// write is what the machine of the process sends.
func (q *proc) write(w *world, i int) *p.Write {
	switch w.machine(q, i) {
	case Client:
		return &q.x.At.W
	case Courier:
		return &q.d.At.W
	}
	return &q.v.At.W
}
