//go:build prove

package check

import p "github.com/idem-go/idem-aws/idem/protocol"

// base has a request that may execute until 1 and send until 2 after it began, a lease of 4, and a record that answers for
// 4. Clocks differ by at most 1.
func base(kind p.Kind) p.Config {
	return p.Config{
		Kind: kind, Life: p.Life{Retention: 4},
		ExecutionMax: 2, HandlerMargin: 1, FenceMargin: 1, AnswerMargin: 0, LeaseMargin: 2, WorkMin: 1,
		ReserveFor: 2, CompleteFor: 2, RunMax: 100, AbsentAfter: 4, Skew: 2, CacheAge: 2,
		TriesMax: 3, ContentionMax: 1, RunsMax: 2, LoopsMax: 3,
	}
}

func with(c p.Config, f func(*p.Config)) p.Config {
	f(&c)
	return c
}

// Scenarios are the bounded worlds in which all rules hold.
func Scenarios() []Scenario {
	client := Actor{Role: Client}
	return []Scenario{
		{Name: "atomic", Config: base(p.Atomic), Actors: [4]Actor{client, {Role: Client, Skew: 1}}, Wire: 2,
			Budget: Budget{Total: 2, Lost: 1, Slow: 1, Late: 1, Contend: 1, Stall: 2, Die: 1, Fail: 1, Ticks: 6}},
	}
}
