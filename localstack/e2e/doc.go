// Package e2e holds the end-to-end tests: black box, through the API of a deployed stack, with the provider simulator and
// the fault proxy as the only other hands on it. They are built with the tag e2e and find the stack in the env file that
// IDEM_E2E_ENV names (localstack/cmd/stack: up --fault-proxy). The same tests run on every emulator. The package belongs to
// this repository's tools and has no compatibility promise.
//
//	stack up --state .local/e2e --env .local/e2e/run.env --port 0 --provider-port 0 --fault-proxy
//	IDEM_E2E_ENV=$PWD/.local/e2e/run.env go test -tags e2e -count=1 ./localstack/e2e
//
// Tests hold clauses of docs/semantics.md and docs/design.md, and failures of docs/peers.md. Faults are laid out
// before the first test and meet one source, or one scope, only, so tests run beside each other; those that stop
// processes or the whole store run alone first. When all are over, the invariants of docs/design.md are checked against
// everything that the run left in the tables, at the provider and in the logs, and against all that clients were answered and
// all that functions wrote (localstack/audit).
//
// A 503 is an answer like any other: it is counted, and fails the run where no fault explains it. The suites of witness_test.go
// say how many of them each kind of fault allows.
//
// TestKillLoop carries out a plan of localstack/chaos: requests of both tenants while processes are killed at random. It prints
// the plan's seed first; -chaos.seed and -chaos.requests repeat it, `make chaos` on a stack of its own. What it asserts of time,
// once the clients are gone, stands in chaos_watch_test.go.
//
// TestMoneyAddsUpInBadWeather lets clients race each other while DynamoDB answers with every error of the real service at a
// rate, and prints what was injected; -weather.seed chooses other faults.
package e2e
