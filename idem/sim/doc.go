// Package sim simulates the parts of idem that decide, as they are linked: the engine, the worker, inline delivery, the sweep, the
// reconciler and the operator of many processes, with their clients, webhooks and people, over the reference store and one provider, in
// simulated time. "What it does not show" says what is left out. The package is for this project's own checks, and applications do not
// use it; they test their handlers with package idemtest. Each story follows from a seed, and the same seed makes the same story.
//
// # What goes wrong
//
// Requests to the store and to the provider are refused, lost, late, or have no reply; the store is down for a while, or others
// are in the way of every settlement; processes die, or freeze and wake up after their leases; clocks differ; wake-ups are lost,
// late and doubled; webhooks come early, late, or say the opposite of what is true. Clients hang up, ask twice at once, with
// another body, method, path, query or media type, and again as their key expires. Two tenants call their keys the same, and ask for
// each other's operations. Each request has a process of its own, or one that serves others too, side by side or one after the other.
// The native TTL is up to two days late. People decide about what they saw some minutes ago. Some processes are of a
// release that does not know a topic, or that only observes.
//
// A story's mood (mood.go) draws which of this there is at all, how often, and in which bounds: short stories full of faults
// stand next to long quiet ones, and half of the stories have a theme.
//
// # What is judged
//
// After each write that has landed the rows are compared with what they were before, by the rules of docs/semantics.md and
// of the design: the invariants I1 to I9, who may write what, leases, expiry, and rules of evidence. The judge knows what each
// request, delivery and visit met (act.go), so that it can also demand what holds only for an actor without an excuse: that a 503
// leaves no lease of its own behind, that the answer of a handler and definite evidence are not dropped, that a living holder is
// not parked. In the end every incarnation of a key and every message that there ever was is held to the provider's books, also what has
// expired since. What only a person can end must have been told of: in a dead letter, or by an alarm in the log. Of what is dead a letter
// comes again on the next day. When every retention is over, the native TTL has removed whatever has ended.
//
// What has not ended after 60 hours of faults must end in the 48 hours after them, in which nothing goes wrong.
//
// A story that breaks a rule is shrunk to the faults that it needs, and told, with the command that tells it again:
//
//	go test ./idem/sim -run TestReplay -v -sim.seed 1702
//
// # Another application
//
// An [App] is played instead of the simulator's own kinds of operation. Shared are clients, processes, the network to the store and to the
// provider, queues and streams, sweeps, reconcilers, people, time, moods, shrinking, and the judgement of records, messages and answers.
// The App brings what clients ask for, its topics and handlers, its provider's books, and the judgement of its rows. The payments
// application is played so, by its http.Handler, its topics, its webhook endpoint and its folder. Two moods are the simulator's alone:
// processes of a release that does not know the topics or that only observes, and providers that say the opposite of what is true.
//
//	make simulate SEED=7
//
// # Every cut
//
// Beside the stories of seeds there are planned ones (plan.go). There is one client and one key, and nothing goes wrong but that
// one call is cut off, or one and then a later one: every call in every way. An integer says which way, as in network.go. In each an
// operator looks in the end at what is left. Some are made so that people must act, or a webhook (circumstances_test.go): a settlement,
// a redrive, a close, a resolution, an extension and a cache-bust are cut off as well.
//
//	go test ./idem/sim -run TestEveryKind -v -sim.deep 2
//	go test ./idem/sim -run TestReplayPlan -v -sim.plan 'sim.chain;client 1 of k1, try 1 in api 1 Commit of k1 1=9'
//
// # What it is known to find
//
// In the checker's build (build tag prove) a rule of the protocol can be removed from the real engine and workers.
// testdata/planted.txt has a row for each rule whose removal stories have found without a hint: the seed, how many steps were
// simulated until then, and how long the story is once it is shrunk. The test plays those stories again, with the rule and without
// it: with it they must be whole. The rest is in the table beyond of planted_test.go, each with its reason.
//
//	go test -tags prove ./idem/sim -run TestPlanted
//	go test -tags prove ./idem/sim -run TestPlanted -v -timeout 3h -sim.search .
//
// # What it does not show
//
// No story loses data, seals anything, has more than one shard, a policy other than idem.IETF with a retention of an hour, a key or a
// request that says how old it is, or an answer that is too large. What runs beside a record that is only observed is not played: the
// judge demands that nobody who enforces goes on with such a record. Clocks differ by a second at most, and none is set while it runs.
// No sweep offers messages unread (outbox.Config.WakeUpsMax) or looks at several at once (SweepConcurrency), no look-up finds late what
// was made (ListingDelay), and no provider asks for a pause (NotExecuted.RetryAfter), refuses its caller (NotExecuted.Unauthorized) or
// refuses without a proof that nothing happened (Refused.Unproven).
// Of the ways in only package middleware and the webhook's package function are played, by the payments application; awslambda and
// container are not, nor quotas that refuse, caches, breakers, telemetry, the operator's command and the drift job. Nothing takes the
// place of DynamoDB but the reference store: what an expression or a wire does is shown by the tests of package dynamo.
package sim
