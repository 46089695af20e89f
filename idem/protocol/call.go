package protocol

// Call: from the claim to what the provider's answer means.

func (d Delivery) claimDecided(v Verdict, in Input, c *Config) (Delivery, Action) {
	switch {
	case v == Done:
		d.Held = d.At.W.Msg
		return d.call(in.Now, c)
	case v == Conflict && d.own(in.Reply.Msg): // one's own claim, its reply lost
		d.Held = in.Reply.Msg
		return d.call(in.Now, c)
	case v == Conflict:
		return d.again(in.Reply.Msg, in.Now, c)
	}
	return d.over(Unavailable)
}

// call asks the provider while the claim's own lease lives, and never after: what is sent later could not be told from
// what a successor sends.
func (d Delivery) call(now Instant, c *Config) (Delivery, Action) {
	until := d.Held.Lease - c.Topic.SettleMargin
	if d.Deadline != 0 {
		until = min(until, d.Deadline-c.Topic.SettleMargin)
	}
	if now >= until && !c.off(NoCallDeadline) {
		return d.called(Input{Outcome: OutUncalled, Now: now}, c)
	}
	d.Step = Calling
	return d, Action{Do: Call, Until: until}
}

// called writes what the answer means, where nothing was written beside the claim: the whole row is put, and evidence that came
// meanwhile must not go with what it replaces. Losing the claim in between is fine: the worker that has it knows from OpenSince that
// this call may have happened.
func (d Delivery) called(in Input, c *Config) (Delivery, Action) {
	m, now := d.Held, in.Now
	if in.Outcome.definite() {
		d.Evidence, d.Epoch, d.Owner = in.Outcome, m.Epoch, m.Owner
		if d.strayed(now, c) {
			d.Alarms |= AlarmWeak
			return d.keepBeside(now, c)
		}
		return d.settle(now, c)
	}
	if in.Outcome != OutUncalled || c.off(UncalledCounts) {
		m.Attempts++
	}
	at := now + in.Backoff
	switch in.Outcome {
	case OutUncalled, OutNotExecuted:
		m = backOff(m, at, d.OpenBefore, c)
	case OutRefused:
		if d.OpenBefore {
			m = d.refusedOpen(m, now, c)
			break
		}
		m = backOff(m, now, false, c)
		m.Refused = true
	case OutRefusedOpen:
		m = d.refusedOpen(m, now, c)
	default:
		if m = backOff(m, at, true, c); !m.offerable(at, c) {
			m = park(m, now, c)
		}
	}
	return d.put(m, now, c)
}

// refusedOpen: no further call is wanted, and one may have happened.
func (d Delivery) refusedOpen(m Message, now Instant, c *Config) Message {
	m.Refused = true
	m.State = Due // the claim has not died: it was answered
	if c.Topic.Probed {
		return park(m, now, c)
	}
	return bury(m, now, c)
}

// probed decides by what the provider has. Absence counts from when the question was put.
func (d Delivery) probed(in Input, c *Config) (Delivery, Action) {
	m := d.Held
	from := max(m.Provable(c), m.Redriven)
	switch {
	case in.Outcome.definite():
		d.Evidence, d.Epoch, d.Owner = in.Outcome, m.Epoch, m.Owner // what was read before the question was put
		return d.settle(in.Now, c)
	case in.Outcome == OutAbsent && d.AskedAt >= m.Provable(c):
		return d.put(offer(m, d.AskedAt, in.Now, c), in.Now, c)
	case in.Outcome == OutUnclear && in.Now >= from+c.Topic.UnknownMax:
		return d.put(bury(m, in.Now, c), in.Now, c)
	case in.Outcome == OutAbsent:
		return d.postpone(from, in.Now, c)
	}
	return d.postpone(max(in.Now+in.Backoff, from), in.Now, c)
}
