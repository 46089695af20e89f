package protocol

// Alert: an operator is told of what only they can end, at once and then every day. The write that makes it so may lose its
// reply, and the process that sent it may die before it tells anybody. So the row says from when on somebody is to tell, and
// that moves only after somebody has.

// alertEvery is what lies between two alerts about one message.
const alertEvery Millis = 24 * 60 * 60 * 1000

// stored goes on after a write that is known to stand.
func (d Delivery) stored() (Delivery, Action) {
	if d.Held.State == Dead {
		return d.alert(Changed)
	}
	return d.over(Changed)
}

// remind tells of what is dead and was not told of for a day.
func (d Delivery) remind(now Instant, c *Config) (Delivery, Action) {
	if m := d.Held; m.State != Dead || now < m.LookAt || c.off(NoReminder) {
		return d.over(Quiet)
	}
	return d.alert(Undecided)
}

// alert has an operator told, and ends with code.
func (d Delivery) alert(code SayCode) (Delivery, Action) {
	d.Step, d.Then = Alerting, code
	return d, Action{Do: Alert}
}

// alerted moves the place in the queue to the next alert.
func (d Delivery) alerted(in Input, c *Config) (Delivery, Action) {
	next := d.Held
	next.LookAt = in.Now + alertEvery
	return d.send(Alerting, Write{MsgIf: seenMessage(d.Held, c), MsgAs: Postpone, Msg: next}, in.Now+c.Topic.SettleFor)
}

// alertDecided ends the delivery: where the place could not be moved, a sweep tells the operator once more.
func (d Delivery) alertDecided(v Verdict) (Delivery, Action) {
	if d.Then == Undecided && (v == Nothing || v == Unclear) {
		return d.over(Unavailable)
	}
	return d.over(d.Then)
}
