package protocol

import "testing"

// TestPlanLeavesTheHandlerHalfOfAShortDeadline: margins shrink in proportion, so that a second is enough to execute in.
func TestPlanLeavesTheHandlerHalfOfAShortDeadline(t *testing.T) {
	for _, kills := range []bool{false, true} {
		c := tableConfig(Atomic)
		c.Kills = kills
		for left := Instant(1_000); left <= 40_000; left += 250 {
			p := PlanOf(tableNow, tableNow+left, c)
			end := min(left, c.ExecutionMax)
			switch {
			case !p.Fits(c):
				t.Errorf("%d ms leave no time: %+v", left, p)
			case p.HandlerUntil-p.Began < end/2:
				t.Errorf("of %d ms the handler has %d", left, p.HandlerUntil-p.Began)
			case !(p.HandlerUntil < p.CommitUntil && p.CommitUntil < p.StoreUntil && p.StoreUntil < p.Began+end):
				t.Errorf("of %d ms the instants are not in order: %+v", left, p)
			case p.ReplyUntil() <= p.StoreUntil || p.ReplyUntil() >= p.Began+end:
				t.Errorf("of %d ms a reply is waited for until %d", left, p.ReplyUntil())
			case p.StoreUntil+p.AnswerMargin != p.Began+end:
				t.Errorf("of %d ms the margin is %d", left, p.AnswerMargin)
			case p.LeaseUntil < p.Began+end+c.LeaseMargin:
				t.Errorf("of %d ms the lease ends %d ms before its margin", left, p.Began+end+c.LeaseMargin-p.LeaseUntil)
			case kills && p.LeaseUntil < tableNow+left: // a handler may run until the platform kills it
				t.Errorf("of %d ms the lease ends before the platform kills", left)
			}
		}
	}
}

// TestPlanRefusesADeadlineInWhichNothingCanBeExecuted: nothing is reserved, and the answer has its own code.
func TestPlanRefusesADeadlineInWhichNothingCanBeExecuted(t *testing.T) {
	c := tableConfig(Atomic)
	for _, left := range []Instant{-1_000, 0, 1, 500, 900} {
		x, a := NewExecution(Request{Seed: tableSeed}).Next(Input{What: Begin, Now: tableNow, Deadline: tableNow + left}, c)
		if a.Do != Tell || a.Say.Code != Late || x.Phase != Ended {
			t.Errorf("with %d ms left: %s", left, a.told())
		}
	}
}

// TestPlanWithoutMarginsRefusesADeadlineThatHasPassed: margins of less than a millisecond are none, and nothing is divided by them.
func TestPlanWithoutMarginsRefusesADeadlineThatHasPassed(t *testing.T) {
	c := tableConfig(Atomic)
	c.HandlerMargin, c.AnswerMargin = 0, 0
	for _, left := range []Instant{-1_000, -1, 0} {
		if p := PlanOf(tableNow, tableNow+left, c); p.Fits(c) {
			t.Errorf("with %d ms left: %+v", left, p)
		}
	}
}

// TestPlanWithoutADeadlineIsBoundedByExecutionMax: where the platform does not kill, a wrapped handler is bounded by its lease
// alone, which is renewed.
func TestPlanWithoutADeadlineIsBoundedByExecutionMax(t *testing.T) {
	c := tableConfig(Wrapped)
	p := PlanOf(tableNow, 0, c)
	if p.Bounded || p.StoreUntil != tableNow+c.ExecutionMax-c.AnswerMargin || p.LeaseUntil != tableNow+c.ExecutionMax+c.LeaseMargin {
		t.Errorf("%+v", p)
	}
	x := running(t, c)
	_, a := x.run(tableNow, c)
	if a.Until != x.Held.Lease || a.Wake == 0 || a.Wake >= x.Held.Lease {
		t.Errorf("a handler whose lease is renewed runs until %d, and its lease %d is renewed at %d", a.Until, x.Held.Lease, a.Wake)
	}
	c.Kills = true
	if _, a := x.run(tableNow, c); a.Until != x.Plan.HandlerUntil || a.Wake != 0 {
		t.Errorf("where the platform kills, it runs until %d and wakes at %d", a.Until, a.Wake)
	}
}

// TestALeaseIsRenewedTwiceBeforeItEnds: also where the handler began late in it, and after a renewal whose reply was late.
func TestALeaseIsRenewedTwiceBeforeItEnds(t *testing.T) {
	c := tableConfig(Wrapped)
	lease := c.ExecutionMax + c.LeaseMargin
	for late := Instant(0); late < lease-3; late += 100 {
		x := running(t, c)
		now := tableNow + late
		_, began := x.run(now, c)
		x, asked := x.renew(tableNow, c)
		_, renewed := x.Next(Input{What: Replied, Now: now, Reply: Reply{Code: OK}}, c)
		if asked.Write.Rec.Lease != tableNow+lease {
			t.Fatalf("it asks for a lease until %d", asked.Write.Rec.Lease)
		}
		for what, a := range map[string]Action{"begun": began, "renewed": renewed} {
			left := tableNow + lease - now
			if wait := a.Wake - now; wait <= 0 || wait > lease/3 || wait > left/2 {
				t.Errorf("%s with %d of %d ms left, it is renewed after %d", what, left, lease, wait)
			}
		}
	}
}
