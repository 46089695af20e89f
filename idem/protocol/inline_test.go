package protocol

import "testing"

// TestInlineDeliveryActsOnTheClaimThatLanded: a commit without a reply loses its lock on the second try, so the handler runs
// again. If the first commit lands after all, its claim is the one that a worker sees: the newer one was never stored.
func TestInlineDeliveryActsOnTheClaimThatLanded(t *testing.T) {
	c := tableConfig(Deferred)
	c.Inline = true
	chain := Result{Code: Responded, Answer: 5, Slot: 1, Chain: true}
	x, first := running(t, c).Next(Input{What: HandlerEnded, Now: tableNow + 100, Result: chain}, c)
	x, _ = x.Next(Input{What: Replied, Now: tableNow + 200, Reply: Reply{Code: Lost}}, c)
	x, a := x.Next(Input{What: Replied, Now: tableNow + 300, Reply: Reply{Code: Refused, Conds: CondRetry}}, c)
	if a.Do != Run {
		t.Fatalf("a lost lock leads to: %s", a.told())
	}
	x, second := x.Next(Input{What: HandlerEnded, Now: tableNow + 5_000, Result: chain}, c)
	if second.Write.Msg.Lease <= first.Write.Msg.Lease || second.Write.Token == first.Write.Token {
		t.Fatalf("the second commit is the first: %+v", second.Write)
	}
	stands := Reply{Code: Refused, Conds: CondRecord | CondMessage, Rec: first.Write.Rec, Msg: first.Write.Msg}
	if _, a = x.Next(Input{What: Replied, Now: tableNow + 5_100, Reply: stands}, c); a.Say.Code != Executed || a.Say.Carry != first.Write.Msg {
		t.Errorf("it delivers under %+v, and %+v is stored: %s", a.Say.Carry, first.Write.Msg, a.told())
	}
}
