//go:build prove

package check

import p "github.com/idem-go/idem-aws/idem/protocol"

// A loss of data. Everybody is stopped, and the tables are restored as they were at an earlier instant, both as of the same one. Then
// everybody is told until when data may have been lost, and starts again. That takes longer than a claim's lease, and than a write is sent
// for. One that was frozen may have been overlooked: it wakes in the restored world. What the provider has done stays done.

// loses emits what leads to a loss, and the loss.
func (w *world) loses(s *state, out emit) {
	if n := w.fork(s, Unread); n != nil && s.lost != 0 {
		what := "until when data was lost can't be read from now on"
		if n.unread = !n.unread; !n.unread {
			what = "until when data was lost can be read again"
		}
		out(n, label{what, -1})
	}
	if s.left[Loss] == 0 || s.image.rec == s.rec && s.image.msgs == s.msgs { // nothing is lost
		return
	}
	if !s.image.taken {
		n := w.fork(s, free)
		n.image = image{taken: true, rec: s.rec, msgs: s.msgs}
		for k := range s.effects {
			n.image.alerted[k] = s.effects[k].alerted
		}
		out(n, label{"this is what will be restored", -1})
	}
	n := w.fork(s, Loss)
	w.restored(n)
	out(n, label{"data is lost; who was at work is frozen meanwhile", -1})
	n, alive := w.fork(s, Loss), false
	for i := range n.procs {
		if q := &n.procs[i]; q.started && !q.over {
			w.kill(n, i)
			alive = true
		}
	}
	if alive {
		w.restored(n)
		out(n, label{"data is lost, and with it who was at work", -1})
	}
}

// restored is the world once everybody may start again.
func (w *world) restored(n *state) {
	ahead := p.Millis(0)
	for _, a := range w.sc.Actors {
		ahead = max(ahead, a.Skew)
	}
	n.lost = n.now + ahead + 1
	t := &w.sc.Config.Topic
	for range max(t.ClaimLease, t.SettleFor, t.KeepFor) {
		w.pass(n)
	}
	n.rec, n.msgs, n.tokens = n.image.rec, n.image.msgs, [tokens]p.Token{}
	for k := range n.effects {
		n.effects[k].told, n.effects[k].alerted = false, n.image.alerted[k]
	}
	t0 := n.tally(n.rec.Op)
	t0.final, t0.promised, t0.since = 0, 0, 0
	if n.rec.State.Final() {
		t0.final, t0.promised = n.rec.Answer, n.rec.Expires
	}
}
