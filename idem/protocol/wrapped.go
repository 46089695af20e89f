package protocol

// Wrapped: the end of a handler that wrote for itself. What it answered is evidence; what is not stored proves nothing.

func (x Execution) wrappedEnded(now Instant, c *Config) (Execution, Action) {
	switch code := x.Result.Code; {
	case code == Responded || code == Stored:
		return x.complete(now, c)
	case code == NothingHappened || c.Safe || code == Unstored && c.off(UnstoredProves):
		return x.giveUp(Say{Code: Passed, State: Retryable, Op: x.Held.Op}, ToldNothingHappened, now, c)
	}
	x.Then = Say{Code: Passed, State: Unknown, Op: x.Held.Op}
	why := NotStored
	if x.Result.Code == Broke {
		why = HandlerFailed
	}
	return x.send(Parking, Write{RecIf: holder(x.Held, InProgress), RecAs: Put, Rec: parked(x.Held), Why: why}, x.completeUntil(now, c))
}

// complete settles from in_progress, unknown or freed, by operation id and owner: evidence is never refused. It is never
// fenced off, and contention on it is no answer: nobody else can say what it says.
func (x Execution) complete(now Instant, c *Config) (Execution, Action) {
	done := completed(x.Held, x.Result.Answer, c.Life, false, now, x.skew(c))
	done.Epoch++ // as it is where the record was freed: an epoch never goes back
	fence := holder(x.Held, InProgress, Unknown, Retryable)
	fence.AnyEpoch = true
	switch {
	case c.off(NoLateCompletion):
		fence = holder(x.Held, InProgress)
	case c.off(NoFreedCompletion):
		fence = holder(x.Held, InProgress, Unknown)
	}
	x, a := x.send(Completing, Write{RecIf: fence, RecAs: Put, Rec: done}, x.completeUntil(now, c))
	x.At.Persists = x.At.Persists && !c.off(NoPersistence)
	return x, a
}

// completeUntil gives evidence the rest of its lease, and some time in any case: less where the request is only observed. A platform that
// kills leaves no time after the deadline, in which the caller would be told: before that the margin is kept, or half of what is left.
func (x Execution) completeUntil(now Instant, c *Config) Instant {
	until := max(x.Held.Lease, now+c.CompleteFor)
	switch {
	case c.off(PlanEndsAnswer):
		return x.Plan.StoreUntil
	case c.Observed: // its client waits, and got nothing from being observed
		until = now + c.ReserveFor
	case c.off(LeaseGivesNoTime):
		until = now + c.CompleteFor
	}
	if killed := x.killed(c); now < killed {
		until = min(until, killed-min(x.Plan.AnswerMargin, (killed-now)/2))
	}
	return until
}

// completeDecided: where an operator ended the record while the handler was running, the stored answer stands. The
// handler has run and does not run again for this request, whatever the record admits now.
func (x Execution) completeDecided(v Verdict, in Input, _ *Config) (Execution, Action) {
	r := in.Reply.Rec
	switch {
	case v == Done:
		return x.executed(x.At.W.Rec, Message{})
	case v == Conflict && x.own(r):
		return x.executed(r, Message{})
	case v == Conflict && r.State.Final():
		x.Zombie = true
		return x.replay(r)
	case v == Conflict:
		x.Zombie = true
	}
	return x.tell(Say{Code: Unavailable})
}
