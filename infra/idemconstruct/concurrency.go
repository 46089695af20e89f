package idemconstruct

import (
	"fmt"

	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/infra/spec"
)

// ReservedOfDefaultQuota are reservations for ApplicationProps.Reserved that fit an account with Lambda's default quota of 1,000 and
// leave it more than 300: a provider that hangs holds the worker's executions, and the API still answers. They are no default,
// because a new account has 10 executions, of which nothing can be reserved: its first deployment would fail.
func ReservedOfDefaultQuota(shards int, relay bool) map[string]int {
	runs := ScheduledRuns(shards) + spec.RunsMargin
	reserved := map[string]int{environment.API: 400, environment.Worker: 200, environment.Sweep: runs, environment.Reconcile: runs}
	if relay {
		reserved[environment.Relay] = spec.ShardBatches * spec.StreamShards
	}
	return reserved
}

// wakeUpWorkers are how many workers take wake-ups at once: where executions are reserved for the worker, what the stream leaves of
// them. 0 is no bound.
func (p ApplicationProps) wakeUpWorkers() int {
	if reserved := p.Reserved[environment.Worker]; p.WorkerConcurrency == 0 && reserved != 0 {
		return min(p.leftToWakeUps(), spec.MappingMax)
	}
	return p.WorkerConcurrency
}

// leftToWakeUps is what a margin and the batches of a new table's stream leave of the worker's reserved executions.
func (p ApplicationProps) leftToWakeUps() int {
	left := p.Reserved[environment.Worker] - spec.WorkerMargin
	if !p.Relay {
		left -= spec.ShardBatches * spec.StreamShards
	}
	return left
}

// checkReserved refuses reservations that are too small for what a role runs at once: wake-ups would wait for a visibility time-out,
// and runs of a minute be missing.
func (p ApplicationProps) checkReserved(refuse func(field string, value any, rule string)) {
	if reserved, left := p.Reserved[environment.Worker], p.leftToWakeUps(); reserved > 0 && (left < spec.MappingMin || p.WorkerConcurrency > left) {
		refuse("Reserved["+environment.Worker+"]", reserved, fmt.Sprintf("%d or more, or 0: %d more than WorkerConcurrency, which is %d at the least",
			reserved-left+max(p.WorkerConcurrency, spec.MappingMin), reserved-left, spec.MappingMin))
	}
	for _, role := range []string{environment.Sweep, environment.Reconcile} {
		if n, runs := p.Reserved[role], ScheduledRuns(p.scheduledShards()); n > 0 && n < runs {
			refuse("Reserved["+role+"]", n, fmt.Sprintf("%d or more, its runs of a minute, or 0", runs))
		}
	}
}
