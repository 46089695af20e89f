package protocol

// Lease: what happens beside the handler. A lease means that its holder is alive; where the platform does not end the
// process at a deadline, it is renewed for as long as the handler runs.

// run starts the handler, after a pause where it lost an optimistic lock before.
func (x Execution) run(now Instant, c *Config) (Execution, Action) {
	x.Phase, x.HandlerOn = Running, true
	a := Action{Do: Run, Until: x.Plan.HandlerUntil, Pause: x.Runs}
	x.Runs++
	if c.renews() {
		a.Wake = x.wake(now)
		a.Until = x.handlerUntil()
	}
	return x, a
}

// handlerUntil is when the context of a handler ends whose lease is renewed: with its caller's deadline, or else with the
// last lease that the store has confirmed.
func (x Execution) handlerUntil() Instant {
	if x.Plan.Bounded {
		return x.Plan.HandlerUntil
	}
	return x.Held.Lease
}

// wake is when the lease is renewed next: twice before it would end. Of one that counts from long ago, because the handler began late or
// the last reply came late, half of what is left is as far.
func (x Execution) wake(now Instant) Instant {
	wait := x.third()
	if left := x.Held.Lease - now; left > 0 {
		wait = min(wait, left/2)
	}
	return now + max(1, wait)
}

// third is a third of a lease.
func (x Execution) third() Millis { return max(1, (x.Plan.LeaseUntil-x.Plan.Began)/3) }

// renew keeps the lease of the handler that runs. It never shortens one: a late renewal may land after its successor. It
// keeps the state, so that what somebody parked meanwhile stays parked; the handler's own answer settles it all the same.
func (x Execution) renew(now Instant, c *Config) (Execution, Action) {
	if now-x.Plan.Began >= c.RunMax {
		return x, Action{Do: Wait, Until: x.handlerUntil()}
	}
	next := renewed(x.Held, now+x.Plan.LeaseUntil-x.Plan.Began)
	fence := holder(x.Held, InProgress, Unknown)
	if !c.off(NoMonotonicLease) {
		fence.LeaseBelow = next.Lease
	}
	until := max(x.Held.Lease, now+x.third())
	if c.off(ShortRenewal) {
		until = now + x.third()
	}
	return x.send(Renewing, Write{RecIf: fence, RecAs: Renew, Rec: next}, until)
}

// renewDecided: a renewal that is in the way of its own repetition has landed.
func (x Execution) renewDecided(v Verdict, in Input, c *Config) (Execution, Action) {
	now, stored := in.Now, in.Reply.Rec
	if v == Done || v == Conflict && stored.State != Absent && stored.Revision == x.At.W.Rec.Revision {
		x.Held.Lease, x.Held.Revision = x.At.W.Rec.Lease, x.At.W.Rec.Revision
	}
	x.Phase = Running
	return x, Action{Do: Wait, Wake: x.wake(now), Until: x.handlerUntil()}
}
