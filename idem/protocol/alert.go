package protocol

// Alert: an operator is told of what only they can end, at once and then every day. The write that makes it so may lose its
// reply, and the process that sent it may die before it tells anybody. So the row says from when on somebody is to tell, and
// that moves only after somebody has.

// alertEvery is what lies between two alerts about one message, and alertNever stands for no other one.
const (
	alertEvery Millis = 24 * 60 * 60 * 1000
	alertNever        = 36_500 * alertEvery
)

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

// alerted moves the place in the queue to the next alert, also where the caller's time is over and the process goes on.
func (d Delivery) alerted(in Input, c *Config) (Delivery, Action) {
	if d.Outlives && in.Now >= d.Deadline {
		d.Deadline = 0
	}
	next := d.Held
	if next.LookAt = in.Now + alertEvery; next.answered() {
		next.LookAt = in.Now + alertNever
	}
	return d.send(Alerting, Write{MsgIf: seenMessage(d.Held, c), MsgAs: Postpone, Msg: next}, in.Now+c.Topic.SettleFor)
}

// alertDecided ends the delivery: where the place could not be moved, a sweep tells the operator once more.
func (d Delivery) alertDecided(v Verdict) (Delivery, Action) {
	if d.Then == Undecided && (v == Nothing || v == Unclear) {
		return d.over(Unavailable)
	}
	return d.over(d.Then)
}

// answered says of what is dead that its operation has failed with it: nothing happened, and the client was told so. Nothing is
// left for an operator to decide.
func (m Message) answered() bool {
	return m.State == Dead && m.OpenSince == 0 && m.Kept == 0 && !m.Unfailed && !m.Undoes && !m.Detached
}
