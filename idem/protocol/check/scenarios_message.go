//go:build prove

package check

import p "github.com/idem-go/idem-aws/idem/protocol"

// keyless is a topic whose provider executes each call; a claim lasts for 3, and absence is proof 2 later.
func keyless() p.Config {
	c := base(p.Deferred)
	c.Topic = p.Topic{
		AbsentAfter: 2, AttemptsMax: 2, AgeMax: 100, AbandonAfter: 100, UnknownMax: 100, ClaimLease: 3, SettleMargin: 1, SettleFor: 1, KeepFor: 3, SweepGrace: 1,
	}
	return c
}

// probed is a keyless topic whose provider can be asked.
func probed() p.Config {
	c := keyless()
	c.Topic.Probed = true
	return c
}

// honoured is a topic whose provider recognises a call again for 7: 3 are for a claim, a late call and a clock that is ahead.
func honoured() p.Config {
	c := keyless()
	c.Topic.KeysHonoured, c.Topic.KeyRetention, c.Topic.Margin = true, 7, 3
	return c
}

func courier(e p.MessageErrand, runs uint8) Actor {
	return Actor{Role: Courier, Purpose: e, Runs: runs}
}

// leaving is a client whose run of that number leaves the message to a worker.
func leaving(run uint8) Actor { return Actor{Role: Client, Chain: true, Leaves: run} }

// inlineScenarios are about first messages that a request may deliver.
func inlineScenarios() []Scenario {
	worker, begins := courier(p.Wake, 2), Actor{Role: Client, Chain: true}
	lockLost := with(probed(), func(c *p.Config) {
		c.Inline, c.ExecutionMax, c.HandlerMargin, c.Topic.ClaimLease, c.Topic.AbsentAfter = true, 8, 2, 2, 1
	})
	return []Scenario{
		{Name: "inline", Config: with(probed(), func(c *p.Config) { c.Inline, c.ExecutionMax, c.HandlerMargin = true, 4, 2 }), Actors: [4]Actor{begins, worker}, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Late: 1, Contend: 1, Stall: 1, Lock: 1, Ticks: 4}},
		{Name: "inline, lock lost", Config: lockLost, Actors: [4]Actor{begins, worker, courier(p.Question, 1)}, Wire: 1,
			Budget: Budget{Total: 1, Lost: 1, Late: 1, Lock: 2, Ticks: 7}},
		{Name: "inline, first left, then lock lost", Config: lockLost, Actors: [4]Actor{leaving(1), worker, courier(p.Question, 1)}, Wire: 1,
			Budget: Budget{Total: 1, Lost: 1, Late: 1, Lock: 2, Ticks: 7}},
		{Name: "inline, lock lost, then left", Config: lockLost, Actors: [4]Actor{leaving(2), worker, courier(p.Question, 1)}, Wire: 1,
			Budget: Budget{Total: 1, Lost: 1, Late: 1, Lock: 2, Ticks: 7}},
	}
}

func messageScenarios() []Scenario {
	worker, late := courier(p.Wake, 2), Actor{Role: Courier, Purpose: p.Wake, Skew: 1}
	webhook, question := courier(p.Tidings, 1), Actor{Role: Courier, Purpose: p.Question, Skew: 1, Runs: 2}
	return []Scenario{
		{Name: "message, keyless", Config: keyless(), Actors: [4]Actor{worker, webhook, courier(p.Redrive, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Contend: 1, Ambiguous: 1, LateCall: 1, NotExecuted: 1, Poor: 1, Die: 1, Ticks: 3}},
		{Name: "message, keyless, closed", Config: keyless(), Actors: [4]Actor{worker, webhook, courier(p.Close, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Contend: 1, Stall: 1, Ambiguous: 1, LateCall: 1, Poor: 1, Die: 1, Ticks: 7}},
		{Name: "message, probed", Config: probed(), Actors: [4]Actor{worker, late, question}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Stall: 1, Ambiguous: 1, LateCall: 1, Die: 1, Ticks: 6}},
		{Name: "message, keys honoured", Config: honoured(), Actors: [4]Actor{worker, late}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Stall: 2, Ambiguous: 1, LateCall: 1, Die: 1, Decline: 1, Ticks: 9}},
		{Name: "message, declined", Config: with(probed(), func(c *p.Config) { c.Topic.ClaimLease, c.Topic.AbsentAfter = 2, 1 }), Wire: 1, Pending: true,
			Actors: [4]Actor{courier(p.Wake, 1), courier(p.Wake, 2), courier(p.Question, 1)}, Budget: Budget{Total: 4, Stall: 3, SlowCall: 1, Decline: 1, Ticks: 4}},
		{Name: "message, dead", Config: with(honoured(), func(c *p.Config) { c.Topic.AttemptsMax = 1 }), Actors: [4]Actor{worker, webhook, courier(p.Redrive, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Ambiguous: 1, LateCall: 1, Lost: 1, Poor: 1, Ticks: 3}},
		{Name: "message, evidence", Config: keyless(), Actors: [4]Actor{worker, webhook, courier(p.Redrive, 1)}, Pending: true, Wire: 1, NoDrop: true,
			Budget: Budget{Total: 2, Lost: 1, Contend: 2, Settle: 1, Poor: 1, Ticks: 4}},
		{Name: "message, store trouble", Config: keyless(), Actors: [4]Actor{courier(p.Wake, 1)}, Pending: true, Wire: 1, NoDrop: true,
			Budget: Budget{Total: 4, Throttle: 2, Down: 2, Reject: 2, Lost: 1, Ticks: 8}},
		{Name: "message, contradicted", Config: honoured(), Actors: [4]Actor{worker, webhook, {Role: Courier, Purpose: p.Tidings, Skew: 1}}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Lie: 1, Settle: 1, Contend: 1, Poor: 1, Ticks: 2}},
		{Name: "message, refused", Config: honoured(), Actors: [4]Actor{worker, courier(p.Redrive, 1), courier(p.Close, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Refusal: 2, Settle: 1, Lost: 1, Late: 1, Contend: 1, Poor: 1, Ticks: 4}},
		{Name: "chain", Config: honoured(), Chain: 2, Actors: [4]Actor{worker, webhook, courier(p.Redrive, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 1, Lost: 1, Late: 1, Ambiguous: 1, Poor: 1, Decline: 1, Die: 1, Ticks: 4}},
		{Name: "chain, closed", Config: probed(), Chain: 2, Actors: [4]Actor{worker, webhook, courier(p.Close, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Ambiguous: 1, LateCall: 1, Settle: 1, SlowCall: 1, Lost: 1, Ticks: 5}},
		{Name: "chain, failed and then delivered", Config: probed(), Chain: 2, Actors: [4]Actor{worker, webhook, {Role: Courier, Purpose: p.Wake, Skew: 1}}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Refusal: 1, Lie: 1, Settle: 1, Ticks: 3}},
		{Name: "chain, failed and then redriven", Config: probed(), Chain: 2, Actors: [4]Actor{worker, webhook, courier(p.Redrive, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 3, Refusal: 1, Lie: 1, Contend: 1, Ticks: 3}},
		{Name: "chain, undone", Config: honoured(), Chain: 2, Undo: true, Actors: [4]Actor{worker, {Role: Courier, Purpose: p.Wake, Runs: 3, Skew: 1}, courier(p.Close, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Refusal: 2, Ambiguous: 1, Decline: 1, Ticks: 3}},
		{Name: "message, restored", Config: keyless(), Restored: true, Actors: [4]Actor{worker, webhook, courier(p.Close, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Stall: 1, Die: 1, Ticks: 5}},
		{Name: "message, restored under a call", Config: probed(), Restored: true, Leaving: true, Actors: [4]Actor{worker, question}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Stall: 1, Die: 1, Ticks: 7}},
		{Name: "chain, restored", Config: keyless(), Chain: 2, Restored: true, Actors: [4]Actor{worker, webhook, courier(p.Redrive, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 1, Lost: 1, Stall: 1, Die: 1, Ticks: 4}},
		{Name: "message, abandoned", Config: with(honoured(), func(c *p.Config) { c.Topic.AbandonAfter = 3 }), Actors: [4]Actor{worker, late, courier(p.Close, 1)}, Pending: true, Wire: 2,
			Budget: Budget{Total: 2, Lost: 1, Late: 2, Stall: 2, Ticks: 7}},
		{Name: "message, detached", Config: with(keyless(), func(c *p.Config) { c.Topic.AttemptsMax = 1 }), Actors: [4]Actor{worker, webhook, courier(p.Redrive, 1)}, Pending: true, Detached: true, Writes: true, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Ambiguous: 1, NotExecuted: 2, Settle: 1, Poor: 1, Die: 1, Ticks: 4}},
		{Name: "message, detached, closed", Config: keyless(), Actors: [4]Actor{worker, webhook, courier(p.Close, 1)}, Pending: true, Detached: true, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Refusal: 1, LateCall: 1, Settle: 1, Poor: 1, Ticks: 7}},
		{Name: "message, erased", Config: keyless(), Actors: [4]Actor{worker, webhook, courier(p.Close, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Ambiguous: 1, LateCall: 1, NotExecuted: 1, Settle: 1, Erase: 1, Ticks: 7}},
		{Name: "chain, erased", Config: probed(), Chain: 2, Undo: true, Actors: [4]Actor{courier(p.Wake, 3), question, courier(p.Redrive, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Ambiguous: 1, NotExecuted: 1, Refusal: 1, Erase: 1, Ticks: 4}},
		{Name: "message, swept", Config: with(probed(), func(c *p.Config) { c.Topic.AttemptsMax, c.Topic.AbandonAfter = 1, 4 }), Wire: 1, Pending: true,
			Actors: [4]Actor{courier(p.Wake, 1), {Role: Courier, Purpose: p.Offer, Runs: 2, Skew: 1}, courier(p.Question, 1), courier(p.Redrive, 1)},
			Budget: Budget{Total: 2, Lost: 1, Late: 1, Stall: 1, Ambiguous: 1, NotExecuted: 1, Settle: 1, Die: 1, Ticks: 6}},
		{Name: "message, of another release", Config: probed(), Wire: 1, Pending: true,
			Actors: [4]Actor{{Role: Courier, Purpose: p.Wake, Foreign: true}, {Role: Courier, Purpose: p.Question, Skew: 1, Foreign: true}, worker, {Role: Courier, Purpose: p.Redrive, Foreign: true}},
			Budget: Budget{Total: 2, Lost: 1, Ambiguous: 1, Refusal: 1, Settle: 1, Ticks: 5}},
		{Name: "message, unclear", Config: with(probed(), func(c *p.Config) { c.Topic.UnknownMax = 2 }), Wire: 1, Pending: true,
			Actors: [4]Actor{courier(p.Wake, 1), question, courier(p.Redrive, 1)}, Budget: Budget{Total: 3, Lost: 1, Ambiguous: 1, LateCall: 1, Unclear: 2, Ticks: 9}},
	}
}

// weakDeclineScenarios are about a decline that may be of another attempt than the last one.
func weakDeclineScenarios() []Scenario {
	worker, webhook := courier(p.Wake, 2), courier(p.Tidings, 1)
	return []Scenario{
		{Name: "message, weak decline", Config: with(probed(), func(c *p.Config) { c.Topic.ClaimLease, c.Topic.AbsentAfter = 2, 1 }), Wire: 1, Pending: true,
			Actors: [4]Actor{worker, courier(p.Question, 1), webhook}, Budget: Budget{Total: 3, Ambiguous: 1, Decline: 1, Contend: 1, Ticks: 5}},
		{Name: "message, weak decline under a call", Config: with(keyless(), func(c *p.Config) { c.Topic.ClaimLease = 3 }), Wire: 1, Pending: true,
			Actors: [4]Actor{worker, webhook}, Budget: Budget{Total: 4, NotExecuted: 1, Ambiguous: 1, Decline: 1, Lost: 1, Ticks: 6}},
	}
}

// deadlineScenarios are about deliveries whose caller has a deadline, and about inline ones.
func deadlineScenarios() []Scenario {
	webhook, worker, begins := courier(p.Tidings, 1), courier(p.Wake, 2), Actor{Role: Client, Chain: true}
	inlineChain := with(probed(), func(c *p.Config) {
		c.Inline, c.ExecutionMax, c.HandlerMargin, c.Topic.CallFor, c.Life.Retention = true, 5, 2, 1, 100
	})
	return []Scenario{
		{Name: "message, deadline", Config: with(keyless(), func(c *p.Config) { c.Topic.ClaimLease, c.Topic.SettleMargin, c.Topic.SettleFor = 6, 2, 9 }), Wire: 1, Pending: true, NoDrop: true,
			Actors: [4]Actor{{Role: Courier, Purpose: p.Wake, Deadline: 6}, {Role: Courier, Purpose: p.Wake, Deadline: 6, Skew: 1}, webhook},
			Budget: Budget{Total: 1, Contend: 1, Throttle: 1, Stall: 1, NotExecuted: 1, Crowd: 1, Ticks: 7}},
		{Name: "message, store trouble past a deadline", Config: keyless(), Pending: true, Wire: 1, NoDrop: true,
			Actors: [4]Actor{{Role: Courier, Purpose: p.Wake, Deadline: 3, Outlives: true}, webhook},
			Budget: Budget{Total: 4, Throttle: 2, Down: 2, Reject: 2, Lost: 1, Ticks: 8}},
		{Name: "inline, store trouble past the deadline", Config: with(keyless(), func(c *p.Config) { c.Inline, c.ExecutionMax, c.HandlerMargin = true, 4, 2 }), Wire: 1, NoDrop: true,
			Actors: [4]Actor{{Role: Client, Chain: true, Outlives: true}, courier(p.Wake, 1)},
			Budget: Budget{Total: 4, Throttle: 4, Down: 1, Lost: 1, Stall: 1, Ticks: 7}},
		{Name: "inline, chain", Config: inlineChain, Chain: 2, Actors: [4]Actor{begins, worker}, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Late: 1, Contend: 1, Stall: 1, Ambiguous: 1, Settle: 1, Ticks: 5}},
		{Name: "inline, chain, its second message left", Config: inlineChain, Chain: 2, Actors: [4]Actor{leaving(2), worker}, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Late: 1, Contend: 1, Stall: 1, Ambiguous: 1, Settle: 1, Ticks: 5}},
	}
}

// lossScenarios are about a loss of data in the middle of a story.
func lossScenarios() []Scenario {
	worker, late, webhook, question := courier(p.Wake, 2), Actor{Role: Courier, Purpose: p.Wake, Skew: 1}, courier(p.Tidings, 1), courier(p.Question, 1)
	once := courier(p.Wake, 1)
	quick := with(probed(), func(c *p.Config) { c.Topic.ClaimLease, c.Topic.AbsentAfter = 2, 1 })
	return []Scenario{
		{Name: "loss, chain", Config: keyless(), Chain: 2, Actors: [4]Actor{worker, late, webhook}, Pending: true, Wire: 1,
			Budget: Budget{Total: 1, Loss: 1, Unread: 1, SlowCall: 1, Ambiguous: 1, Ticks: 3}},
		{Name: "loss, declined", Config: quick, Actors: [4]Actor{once, worker, question}, Pending: true, Wire: 1,
			Budget: Budget{Total: 3, Loss: 1, Unread: 1, SlowCall: 1, Decline: 1, Stall: 2, Ticks: 3}},
		{Name: "loss, refused", Config: quick, Actors: [4]Actor{once, worker, question}, Pending: true, Wire: 1,
			Budget: Budget{Total: 3, Loss: 1, Unread: 1, SlowCall: 1, Refusal: 1, Stall: 2, Ticks: 3}},
		{Name: "loss, person", Config: probed(), Actors: [4]Actor{worker, question, courier(p.Close, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 1, Loss: 1, LateCall: 1, Ticks: 9}},
		{Name: "loss, judged", Config: quick, Actors: [4]Actor{worker, question, courier(p.Judgement, 1)}, Pending: true, Wire: 1,
			Budget: Budget{Total: 2, Loss: 1, Unread: 1, Ambiguous: 1, Decline: 1, Settle: 1, Stall: 1, Ticks: 4}},
	}
}
