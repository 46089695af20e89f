//go:build prove

package check

import (
	"slices"

	p "github.com/idem-go/idem-aws/idem/protocol"
)

// base has a request that may execute until 1 and send until 2 after it began, a lease of 4, and a record that answers for
// 4. Clocks differ by at most 1.
func base(kind p.Kind) p.Config {
	return p.Config{
		Kind: kind, Life: p.Life{Retention: 4},
		ExecutionMax: 2, HandlerMargin: 1, FenceMargin: 1, AnswerMargin: 0, LeaseMargin: 2, WorkMin: 1,
		ReserveFor: 2, CompleteFor: 2, RunMax: 100, AbsentAfter: 4, Skew: 2, CacheAge: 2, ChangeFor: 3,
		TriesMax: 3, ContentionMax: 1, RunsMax: 2, LoopsMax: 3,
	}
}

func with(c p.Config, f func(*p.Config)) p.Config {
	f(&c)
	return c
}

// unhurried leaves three units of time to give something back in, and two to fence something off.
func unhurried(c *p.Config) {
	c.ExecutionMax, c.HandlerMargin, c.FenceMargin, c.ReserveFor = 6, 3, 2, 1
}

// Scenarios are the bounded worlds in which all rules hold.
func Scenarios() []Scenario {
	return slices.Concat(atomicScenarios(), optimisticScenarios(), wrappedScenarios(), deployScenarios(), amendScenarios(), inlineScenarios(), messageScenarios(), weakDeclineScenarios(),
		deadlineScenarios(), lossScenarios())
}

var (
	client     = Actor{Role: Client}
	ahead      = Actor{Role: Client, Skew: 1}
	twice      = Actor{Role: Client, Runs: 2}
	sweeper    = Actor{Role: Visitor, Errand: p.ParkDead, Skew: 1}
	reconciler = Actor{Role: Visitor, Errand: p.Reconcile, Skew: 1}
	operator   = Actor{Role: Operator}
)

func errand(e p.Errand) Actor { return Actor{Role: Visitor, Errand: e} }

func atomicScenarios() []Scenario {
	return []Scenario{
		{Name: "atomic", Config: base(p.Atomic), Actors: [4]Actor{client, ahead}, Wire: 2,
			Budget: Budget{Total: 2, Lost: 1, Slow: 1, Late: 1, Contend: 1, Stall: 2, Die: 1, Fail: 1, Ticks: 6}},
		{Name: "atomic, business conditions", Config: base(p.Atomic), Actors: [4]Actor{client, client}, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Late: 1, Contend: 1, Unjudge: 1, Lock: 2, Poor: 1, Fail: 1, Ticks: 2}},
		{Name: "atomic, one 503", Config: with(base(p.Atomic), unhurried), Actors: [4]Actor{{Role: Client, Runs: 2, Obeys: true}, {Role: Client, Obeys: true}}, Wire: 2,
			NoLeaseLeft: true, Budget: Budget{Total: 2, Late: 2, Ticks: 6}},
		{Name: "atomic, quota", Config: with(base(p.Atomic), func(c *p.Config) { c.TriesMax = 2 }), Actors: [4]Actor{client, ahead}, Wire: 2,
			Budget: Budget{Total: 2, Late: 2, Turn: 1, Lost: 1, Slow: 1, Stall: 1, Ticks: 5}},
		{Name: "atomic, quota and a release", Config: with(base(p.Atomic), func(c *p.Config) { c.TriesMax = 2 }), Actors: [4]Actor{client, errand(p.Free)}, Wire: 2,
			Budget: Budget{Total: 2, Late: 1, Turn: 1, Lost: 1, Ticks: 4}},
		{Name: "atomic, store trouble", Config: with(base(p.Atomic), func(c *p.Config) { c.ContentionMax = 2 }), Actors: [4]Actor{client, client}, Wire: 1,
			Budget: Budget{Total: 3, Lost: 1, Throttle: 2, Down: 2, Reject: 2, Ticks: 3}},
		{Name: "atomic, who waits and who looks", Config: with(base(p.Atomic), func(c *p.Config) { c.ReadFirst = true }), Wire: 1,
			Actors: [4]Actor{client, {Role: Client, Waits: 3}, {Role: Client, LookOnly: true}, {Role: Client, Barred: true}},
			Budget: Budget{Total: 1, Lost: 1, Fail: 1, Die: 1, Ticks: 3}},
		{Name: "atomic, another payload", Config: base(p.Atomic), Actors: [4]Actor{client, {Role: Client, Payload: 1, Runs: 2}}, Wire: 2,
			Budget: Budget{Total: 2, Lost: 1, Late: 1, Fail: 1, Die: 1, TTL: 1, Ticks: 7}},
		{Name: "atomic, expiry", Config: with(base(p.Atomic), func(c *p.Config) { c.Life.Retention = 2; c.ReadFirst = true }), Actors: [4]Actor{twice, ahead}, Wire: 1,
			Budget: Budget{Total: 2, Late: 1, Stall: 1, TTL: 1, Ticks: 7}},
	}
}

func optimisticScenarios() []Scenario {
	return []Scenario{
		{Name: "optimistic", Config: base(p.Optimistic), Actors: [4]Actor{client, ahead}, Wire: 2,
			Budget: Budget{Total: 3, Lost: 1, Late: 2, Contend: 1, Stall: 1, Die: 1, Fail: 1, Ticks: 3}},
		{Name: "optimistic, business conditions", Config: base(p.Optimistic), Actors: [4]Actor{client, client}, Wire: 2,
			Budget: Budget{Total: 2, Late: 1, Unjudge: 1, Lock: 2, Poor: 1, Fail: 1, Ticks: 2}},
		{Name: "optimistic, expiry", Config: base(p.Optimistic), Actors: [4]Actor{twice, ahead}, Wire: 1,
			Budget: Budget{Total: 3, Late: 1, Stall: 3, TTL: 1, Ticks: 8}},
		{Name: "optimistic, quota", Config: base(p.Optimistic), Actors: [4]Actor{client, ahead}, Wire: 2,
			Budget: Budget{Total: 3, Late: 2, Turn: 1, Fail: 1, Lock: 1, Slow: 1, Ticks: 4}},
	}
}

func wrappedScenarios() []Scenario {
	kills := with(base(p.Wrapped), func(c *p.Config) { c.Kills = true })
	mortal := Actor{Role: Client, Deadline: 3}
	return []Scenario{
		{Name: "wrapped, one fault", Config: with(base(p.Wrapped), unhurried), Actors: [4]Actor{twice, client}, Wire: 1, NoBurn: true, NoLeaseLeft: true, NoDrop: true,
			Budget: Budget{Total: 2, Lost: 1, Slow: 1, Contend: 1, Promise: 1, Ticks: 6}},
		{Name: "wrapped, store trouble", Config: with(base(p.Wrapped), unhurried), Actors: [4]Actor{client, client}, Wire: 1, NoDrop: true, NoForget: true,
			Budget: Budget{Total: 2, Throttle: 1, Down: 1, Reject: 1, Promise: 1, Ticks: 3}},
		{Name: "wrapped, reserve found late", Config: with(base(p.Wrapped), func(c *p.Config) { c.ExecutionMax, c.HandlerMargin = 4, 2 }), Actors: [4]Actor{twice, client}, Wire: 1, NoLeaseLeft: true,
			Budget: Budget{Total: 3, Lost: 1, Slow: 1, Contend: 1, Ticks: 6}},
		{Name: "wrapped, late promise", Config: base(p.Wrapped), Actors: [4]Actor{client, ahead, sweeper}, Wire: 1, NoBurn: true,
			Budget: Budget{Total: 2, Promise: 1, Contend: 1, Ticks: 6}},
		{Name: "wrapped, promised late", Config: with(base(p.Wrapped), func(c *p.Config) { c.RunMax = 1 }), Actors: [4]Actor{client, sweeper}, Wire: 1, NoForget: true,
			Budget: Budget{Total: 1, Promise: 1, Ticks: 9}},
		{Name: "wrapped, freed under a living holder", Config: with(base(p.Wrapped), func(c *p.Config) { c.RunMax = 1 }), Wire: 1, NoDrop: true, Outlives: true,
			Actors: [4]Actor{client, {Role: Client, LookOnly: true}, sweeper, reconciler}, Budget: Budget{Total: 1, Lost: 1, Contend: 1, Ticks: 11}},
		{Name: "wrapped, slow provider", Config: base(p.Wrapped), Actors: [4]Actor{client, sweeper, reconciler}, Wire: 4,
			Budget: Budget{Total: 2, LateCall: 1, Die: 1, Ticks: 11}},
		{Name: "wrapped, late take-over", Config: with(base(p.Wrapped), unhurried), Actors: [4]Actor{client, client, sweeper}, Wire: 2, NoBurn: true, NoLeaseLeft: true,
			Budget: Budget{Total: 3, Promise: 1, Late: 2, Ticks: 8}},
		{Name: "wrapped, late reserve", Config: with(base(p.Wrapped), unhurried), Actors: [4]Actor{client, sweeper}, Wire: 1, NoBurn: true, NoLeaseLeft: true,
			Budget: Budget{Total: 3, Late: 2, Contend: 1, Ticks: 6}},
		{Name: "wrapped", Config: base(p.Wrapped), Actors: [4]Actor{client, ahead, sweeper, reconciler}, Wire: 2, NoParkAlive: true,
			Budget: Budget{Total: 2, Lost: 1, Late: 1, Contend: 1, Unstored: 1, LateCall: 1, Ticks: 5}},
		{Name: "wrapped, frozen holder", Config: base(p.Wrapped), Actors: [4]Actor{{Role: Client, Heeds: true}, sweeper, reconciler}, Wire: 1,
			Budget: Budget{Total: 4, Stall: 4, Lost: 1, LateCall: 1, Ticks: 8}},
		{Name: "wrapped, long wire", Config: base(p.Wrapped), Actors: [4]Actor{client, ahead, sweeper}, Wire: 6, NoParkAlive: true,
			Budget: Budget{Total: 1, Late: 1, Ticks: 9}},
		{Name: "wrapped, killed at its deadline", Config: kills, Actors: [4]Actor{mortal, {Role: Client, Deadline: 3, Skew: 1}, sweeper, reconciler}, Wire: 2, NoParkAlive: true,
			Budget: Budget{Total: 2, Lost: 1, Late: 1, LateCall: 1, Promise: 1, Ticks: 8}},
		{Name: "wrapped, operator", Config: base(p.Wrapped), Actors: [4]Actor{twice, client, sweeper, operator}, Wire: 1,
			Budget: Budget{Total: 2, Die: 1, Fail: 1, Lost: 1, LateCall: 1, Ticks: 6}},
		{Name: "wrapped, operator beside a reconciler", Config: with(base(p.Wrapped), func(c *p.Config) { c.AbsentAfter, c.LeaseMargin = 1, 1 }), Wire: 1,
			Actors: [4]Actor{twice, sweeper, {Role: Visitor, Errand: p.Reconcile}, operator}, Budget: Budget{Total: 2, Fail: 2, Ticks: 8}},
		{Name: "wrapped, past the longest run", Config: with(base(p.Wrapped), func(c *p.Config) { c.RunMax = 2 }), Actors: [4]Actor{{Role: Client, Heeds: true}, {Role: Client, Heeds: true}, sweeper, reconciler}, Wire: 1,
			Budget: Budget{Total: 1, LateCall: 1, Fail: 1, Ticks: 11}},
		{Name: "wrapped, promises", Config: base(p.Wrapped), Actors: [4]Actor{client, ahead, sweeper}, Wire: 1,
			Budget: Budget{Total: 2, Promise: 2, Lost: 1, Late: 1, Ticks: 5}},
		{Name: "wrapped, dead before it began", Config: base(p.Wrapped), Actors: [4]Actor{client, sweeper}, Wire: 1,
			Budget: Budget{Total: 6, Stall: 5, Lost: 1, Slow: 1, Ticks: 7}},
	}
}

func deployScenarios() []Scenario {
	wrapped := func(c *p.Config) { c.Kind = p.Wrapped }
	safe := func(c *p.Config) { c.Kind, c.Safe = p.Wrapped, true }
	observed := func(c *p.Config) { c.Observed = true }
	return []Scenario{
		{Name: "deploy, wrapped becomes atomic", Config: base(p.Atomic), Actors: [4]Actor{{Role: Client, Config: wrapped}, client, sweeper}, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Late: 1, Die: 1, Fail: 1, Stall: 1, Ticks: 6}},
		{Name: "deploy, optimistic becomes wrapped", Config: base(p.Wrapped), Wire: 1,
			Actors: [4]Actor{{Role: Client, Config: func(c *p.Config) { c.Kind = p.Optimistic }}, client, sweeper},
			Budget: Budget{Total: 2, Lost: 1, Late: 1, Die: 1, Fail: 1, Stall: 1, Ticks: 6}},
		{Name: "deploy, atomic becomes optimistic", Config: base(p.Optimistic), Wire: 1,
			Actors: [4]Actor{{Role: Client, Config: func(c *p.Config) { c.Kind = p.Atomic }}, client},
			Budget: Budget{Total: 2, Lost: 1, Late: 1, Die: 1, Fail: 1, Stall: 2, Ticks: 6}},
		{Name: "deploy, safe becomes unsafe", Config: base(p.Wrapped), Actors: [4]Actor{{Role: Client, Config: safe}, client, client, sweeper}, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Die: 1, Fail: 1, Unstored: 1, Ticks: 5}},
		{Name: "observed beside enforced", Config: base(p.Wrapped), Actors: [4]Actor{{Role: Client, Config: observed}, client, sweeper}, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Die: 1, Fail: 1, Ticks: 6}},
		{Name: "observed twice, wrapped", Config: with(base(p.Wrapped), func(c *p.Config) { c.AbsentAfter, c.LeaseMargin = 1, 1 }), Wire: 1,
			Actors: [4]Actor{{Role: Client, Config: observed, Runs: 2}, client, {Role: Visitor, Errand: p.Reconcile}, sweeper},
			Budget: Budget{Total: 2, Lost: 1, Die: 1, Fail: 1, Promise: 1, Ticks: 6}},
		{Name: "observed twice, atomic", Config: base(p.Atomic), Actors: [4]Actor{{Role: Client, Config: observed, Runs: 2}, client, sweeper}, Wire: 1,
			Budget: Budget{Total: 2, Lost: 1, Die: 1, Fail: 1, Slow: 1, Ticks: 6}},
		{Name: "observed at once, wrapped", Config: with(base(p.Wrapped), func(c *p.Config) { c.LeaseMargin = 1 }), Wire: 1,
			Actors: [4]Actor{{Role: Client, Config: observed}, {Role: Client, Config: observed}, client, {Role: Operator, Runs: 2}},
			Budget: Budget{Total: 1, Lost: 1, Die: 1, Fail: 1, Promise: 1, Ticks: 6}},
		{Name: "observed at once, atomic", Config: with(base(p.Atomic), func(c *p.Config) { c.LeaseMargin = 0 }), Wire: 1,
			Actors: [4]Actor{{Role: Client, Config: observed}, {Role: Client, Config: observed}, client, {Role: Operator, Runs: 2}},
			Budget: Budget{Total: 1, Die: 1, Fail: 1, Ticks: 3}},
	}
}

func amendScenarios() []Scenario {
	alone := Actor{Role: Client, Alone: true}
	return []Scenario{
		{Name: "cache-bust", Config: with(base(p.Atomic), func(c *p.Config) { c.ChangeFor, c.WireMax = 1, 2 }), Wire: 2,
			Actors: [4]Actor{alone, {Role: Client, Alone: true, Skew: 1, Runs: 2}, errand(p.Bust)}, Budget: Budget{Total: 1, Late: 1, Slow: 1, Ticks: 9}},
		{Name: "cache-bust, wrapped", Config: with(base(p.Wrapped), func(c *p.Config) { c.Safe, c.ChangeFor, c.WireMax = true, 1, 2 }), Wire: 4,
			Actors: [4]Actor{client, errand(p.Bust)}, Budget: Budget{Total: 1, Late: 1, Ticks: 7}},
		{Name: "extended twice", Config: base(p.Atomic), Actors: [4]Actor{client, errand(p.Extend), errand(p.Extend), ahead}, Wire: 1,
			Budget: Budget{Total: 1, Lost: 1, Late: 1, TTL: 1, Ticks: 8}},
		{Name: "as long as its resource", Config: with(base(p.Atomic), func(c *p.Config) { c.Life.Endless = true }), Actors: [4]Actor{client, ahead, errand(p.EndLife)}, Wire: 2,
			Budget: Budget{Total: 2, Lost: 1, Late: 1, Slow: 1, Poor: 1, TTL: 1, Ticks: 6}},
		{Name: "tombstone", Config: with(base(p.Atomic), func(c *p.Config) { c.Life = p.Life{Retention: 2, Held: 2} }), Actors: [4]Actor{client, {Role: Client, Skew: 1, Runs: 2}}, Wire: 1,
			Budget: Budget{Total: 1, Lost: 1, Late: 1, TTL: 1, Ticks: 7}},
	}
}
