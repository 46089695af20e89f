//go:build prove

package check

import (
	"slices"
	"testing"

	p "github.com/idem-go/idem-aws/idem/protocol"
)

// withMessage is a world of the scenario in which a message is as change makes it, and its operation has its answer.
func withMessage(t *testing.T, scenario string, answer p.State, change func(*state, *p.Message)) (*world, *state) {
	t.Helper()
	all := Scenarios()
	at := slices.IndexFunc(all, func(sc Scenario) bool { return sc.Name == scenario })
	if at < 0 {
		t.Fatalf("there is no scenario %q", scenario)
	}
	w := newWorld(&all[at], p.Rules{})
	s := w.initial()
	s.rec.State, s.rec.Expires, s.rec.Free = answer, forever, forever
	change(&s, &s.msgs[0])
	return w, &s
}

// I9: a message that nobody can end is stuck, also where its operation has had its answer long since. Here others are in the way of every
// settlement, and what happened is known: it can't be closed.
func TestADetachedMessageThatNobodyEndsIsStuck(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		w, s := withMessage(t, "message, detached, closed", p.Completed, func(s *state, m *p.Message) {
			m.State, m.Epoch, m.FirstClaimed, m.OpenSince, m.Lease = p.InDoubt, 1, 1, 1, 2
			s.effect(m.Op, m.Index).n = 1
			s.crowded = crowded
		})
		want := uint8(0)
		if crowded {
			want = vStuck
		}
		if got := w.settled(s); got != want {
			t.Errorf("others in the way: %t: %q, want %q; the message is %v", crowded, violations[got], violations[want], s.msgs[0].State)
		}
	}
}

// docs/operator.md "OutboxDead": what is dead beside a failed record is undone at the provider, and closed. It is not stuck.
func TestWhatIsDeadBesideAFailedRecordIsClosed(t *testing.T) {
	for _, kept := range []p.Kept{0, p.KeptDelivered} {
		w, s := withMessage(t, "message, keyless", p.Failed, func(s *state, m *p.Message) {
			m.State, m.Kept = p.Dead, kept
			if kept != 0 {
				s.effect(m.Op, m.Index).n = 1
			}
			s.effect(m.Op, m.Index).alerted = true
		})
		if got := w.settled(s); got != 0 || s.msgs[0].State != p.Cancelled {
			t.Errorf("kept %v: %q, and the message is %v", kept, violations[got], s.msgs[0].State)
		}
	}
}
