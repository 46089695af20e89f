// Package check explores the machines of package protocol exhaustively. It tries every interleaving of a few
// processes, with every fault that a budget allows, breadth first. It is for this project's own checks, and
// applications do not use it.
//
// It writes no transition of the protocol: rows change by [protocol.Apply] alone, and everything that a process does
// next is decided by the machine that it runs.
//
// The package is empty without the build tag prove, because only that build has rules that can be removed:
//
//	go test -tags prove ./idem/protocol/check
//	go run -tags prove ./idem/protocol/check/cmd/prove -run wrapped
//
// # How the world is bounded
//
//   - A [Scenario] has up to four processes. Each runs one machine, on a clock of its own.
//   - A [Budget] says how often each fault may happen in one story, and Total how many faults it may have in all.
//   - A request lands and is answered; or its reply is lost or slow; or the request is late: it lands later or never, and
//     nobody is told.
//   - Time is a small integer. It passes freely only while no process has something to do. Otherwise that is a fault: the
//     process is frozen, or slow.
//   - A state is hashed to 128 bits; only the two newest levels are kept, with their zero words left out. A story is
//     replayed from the choices that lead to it, and is a shortest one.
//   - A loss of data restores the rows of any earlier step, both as of the same one. A process that was at work dies, or is frozen through it.
//     It takes longer than a claim's lease, and than a write is sent for; after that everybody is told of it. Only messages and their
//     couriers meet one: no inline delivery, no honoured keys, no undoing.
//   - "Stuck" is judged from every state, by a run without faults: those that live end, sweeper, reconciler and operator
//     come, and one more client asks.
//
// # What it does not show
//
// Fingerprints, sizes, caches, ciphers and quotas are not part of the protocol. Whether an adapter makes one call of one
// action is shown by the tests of that adapter. Two decisions are made by a driver, and are shown by the tests of packages
// outbox and dynamo: whether a message belongs to another release ([protocol.Message].Foreign), and that a request which
// was delayed past its last instant is never sent.
//
// # Where a rule is shown to be needed
//
// testdata/table.txt has a row for each rule that is removed: the section of the contract or of the design that would
// not be true without it, the scenario, and what breaks there. Command prove prints the story of each.
package check
