// Package sim simulates everything of idem that runs: engines, workers, sweeps, reconcilers and inline delivery of
// many processes, with their clients, over one store and one provider, in simulated time. It is for this project's
// own checks, and applications do not use it; they test their handlers with package idemtest. Each story follows from
// a seed, and the same seed makes the same story.
//
// Requests to the store and to the provider are refused, lost, late, or have no reply; processes die or freeze; clocks differ; wake-ups
// are lost, late and doubled; clients hang up, ask twice at once, and give up. After each call that has landed the invariants I1 to I9
// of docs/design.md are judged, by the rows, by the provider's books, and by what the clients were told.
//
// Beside the stories of seeds there are planned ones, in which nothing goes wrong but one or two calls that are cut off: every call, in
// every way (plan.go).
//
// A story that breaks one is shrunk to the faults that it needs, and told.
//
//	go test ./idem/sim -run TestReplay -v -sim.seed 1702
//	go test ./idem/sim -run TestReplayPlan -v -sim.plan 'sim.chain;client 1 of k1, try 1 in api 1 Commit 1=9'
package sim
