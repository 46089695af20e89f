// Command model checks the idempotency protocol of docs/design.md exhaustively within small bounds.
//
//	go run .                  every run of the table; exit 1 when one differs from what it expects
//	go run . -run deferred    only runs whose name contains the text
//	go run . -trace           with the shortest trace of every violation
//	go run . -rules           how often each named rule fired, and what it cites
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

type run struct {
	name  string
	clean bool // expected: no violation
	do    func() Result
}

var limit = flag.Int("limit", 45_000_000, "states per run")

func explore[S comparable](m Model[S]) func() Result {
	return func() Result { return Explore(m, *limit, false) }
}

func atomic(name string, clean bool, execs, sends int, r Rules) run {
	return run{"atomic " + name, clean, explore(aCfg{execs, sends, r}.model())}
}

func express(name string, clean bool, execs int, r Rules) run {
	return run{"express " + name, clean, explore(eCfg{execs, r}.model())}
}

func opaque(name string, clean bool, r Rules) run {
	return run{"opaque " + name, clean, explore(oCfg{3, r}.model())}
}

func deferred(name string, clean bool, c dCfg, f func(r *Rules)) run {
	c.rules = fixed()
	f(&c.rules)
	return run{"deferred " + name, clean, explore(c.model())}
}

func with(f func(r *Rules)) Rules {
	r := fixed()
	f(&r)
	return r
}

func table() []run {
	keyed := dCfg{ops: 1, phases: 1, workers: 2, epochs: 6, inline: true, keyed: true}
	bare, chain, two := keyed, keyed, keyed
	bare.keyed = false
	chain.phases, chain.epochs = 2, 3
	two.ops, two.workers, two.epochs = 2, 2, 2
	plain, chainPlain, twoPlain, twoBare, chainBare := keyed, chain, two, two, chain
	plain.inline, chainPlain.inline, twoPlain.inline, twoBare.keyed, chainBare.keyed = false, false, false, false, false
	three, chainSmall, twoSmall := two, chainPlain, twoPlain
	three.workers, three.epochs = 1, 3
	chainSmall.workers, chainSmall.epochs, twoSmall.workers, twoSmall.epochs = 1, 2, 1, 1
	nothing := func(*Rules) {}
	written := func(r *Rules) { *r = Rules{} }
	return []run{
		// the design as written
		atomic("as written, 2 executions, resent reserves", false, 2, 2, Rules{}),
		atomic("as written, 3 executions, reserves sent once", true, 3, 1, Rules{}),
		express("as written, 3 executions", false, 3, Rules{}),
		deferred("as written, keys honoured", false, keyed, written),
		deferred("as written, keys honoured, no inline holder", false, plain, written),
		deferred("as written, no keys", false, bare, written),
		deferred("as written, two phases", false, chainSmall, written),
		deferred("as written, two incarnations", false, twoSmall, written),
		opaque("as written", false, Rules{}),
		// with the proposed changes
		atomic("fixed (bound), 2 executions", true, 2, 2, fixed()),
		atomic("fixed (mint per sending), 2 executions", true, 2, 2, Rules{FixMint: true}),
		atomic("fixed (bound), 3 executions", true, 3, 2, fixed()),
		express("fixed, 3 executions", true, 3, fixed()),
		deferred("fixed, keys honoured", true, keyed, nothing),
		deferred("fixed, keys honoured, no inline holder", true, plain, nothing),
		deferred("fixed, no keys", true, bare, nothing),
		deferred("fixed, two phases", true, chain, nothing),
		deferred("fixed, two phases, no inline holder", true, chainPlain, nothing),
		deferred("fixed, two phases, no keys", true, chainBare, nothing),
		deferred("fixed, two incarnations", true, two, nothing),
		deferred("fixed, two incarnations, more claims", true, three, nothing),
		deferred("fixed, two incarnations, no inline holder", true, twoPlain, nothing),
		deferred("fixed, two incarnations, no keys", true, twoBare, nothing),
		opaque("fixed", true, fixed()),
		// each change alone taken back
		deferred("without fix: dead → failed asks open_since", false, keyed, func(r *Rules) { r.FixOpenDead, r.FixProbeFirst = false, false }),
		deferred("without fix: every claim asks open_since", false, keyed, func(r *Rules) { r.FixOpenClaim = false }),
		deferred("without fix: 408 only before the first message", false, chain, func(r *Rules) { r.FixFirstOnly = false }),
		deferred("without fix: ends run Settle", false, keyed, func(r *Rules) { r.FixOutcome = false }),
		deferred("without fix: time bound", false, keyed, func(r *Rules) { r.FixBound = false }),
		opaque("without fix: 5xx → unknown", false, with(func(r *Rules) { r.FixOpaque5xx = false })),
		opaque("without fix: complete settles unknown", false, with(func(r *Rules) { r.FixOpaqueLate = false })),
		// sentences of the design read the other way
		deferred("reading: pending records expire", false, two, func(r *Rules) { r.PendingExpires = true }),
		deferred("reading: dead is final", false, keyed, func(r *Rules) { r.DeadIsFinal = true }),
		deferred("reading: back-off asks the epoch only", false, keyed, func(r *Rules) { r.BackoffAnyState = true }),
		deferred("reading: redrive → pending, nothing asked, keys", false, keyed, func(r *Rules) { r.BlindRedrive, r.FixRedrive = true, false }),
		deferred("reading: redrive → pending, nothing asked, no keys", false, bare, func(r *Rules) { r.BlindRedrive, r.FixRedrive, r.FixOpenClaim = true, false, false }),
		deferred("reading: operator closes at once", false, keyed, func(r *Rules) { r.BlindClose = true }),
		deferred("reading: stale probe result applied", false, bare, func(r *Rules) { r.NoProbeEpoch, r.NoI8 = true, true }),
		deferred("reading: call after own lease, keys", false, keyed, func(r *Rules) { r.LateCall = true }),
		deferred("reading: call after own lease, no keys", false, bare, func(r *Rules) { r.LateCall = true }),
		deferred("reading: margin below lease + longest request", false, keyed, func(r *Rules) { r.SmallMargin = true }),
		deferred("reading: HTTP client resends, keys", false, keyed, func(r *Rules) { r.TwinCalls = true }),
		deferred("reading: HTTP client resends, no keys", false, bare, func(r *Rules) { r.TwinCalls = true }),
		opaque("reading: fence-off after a lost complete", false, with(func(r *Rules) { r.OpaqueFence = true })),
		opaque("reading: ttl on unfinished opaque records", false, with(func(r *Rules) { r.OpaqueTTL = true })),
		// mutations: one rule taken away
		atomic("mutation: no owner and epoch", false, 2, 1, with(func(r *Rules) { r.NoEpoch = true })),
		atomic("mutation: no owner and epoch (I8 unchecked)", true, 2, 1, with(func(r *Rules) { r.NoEpoch, r.NoI8 = true, true })),
		atomic("mutation: no epoch, owner kept", false, 2, 2, with(func(r *Rules) { r.NoEpochOnly = true })),
		atomic("mutation: no epoch, owner kept (I8 unchecked)", true, 2, 2, with(func(r *Rules) { r.NoEpochOnly, r.NoI8 = true, true })),
		atomic("mutation: no operation id", true, 2, 2, with(func(r *Rules) { r.NoOpID = true })),
		atomic("mutation: no operation id, owner, epoch (I8 unchecked)", false, 2, 1, with(func(r *Rules) { r.NoOpID, r.NoEpoch, r.NoI8 = true, true, true })),
		atomic("mutation H1: fence-off on owner only", false, 2, 1, with(func(r *Rules) { r.NoFenceState = true })),
		atomic("mutation H7: token of (pk, epoch)", false, 2, 1, with(func(r *Rules) { r.SharedToken = true })),
		atomic("mutation H7: token without attempt", false, 2, 1, with(func(r *Rules) { r.TokenNoTry = true })),
		express("mutation H7: token of (pk, epoch)", false, 2, with(func(r *Rules) { r.SharedToken = true })),
		express("mutation H7: token without attempt", false, 2, with(func(r *Rules) { r.TokenNoTry = true })),
		deferred("mutation: no epoch on back-off and parking", false, keyed, func(r *Rules) { r.NoEpoch = true }),
		deferred("mutation: no epoch (I8 unchecked), no keys", false, bare, func(r *Rules) { r.NoEpoch, r.NoI8 = true, true }),
		deferred("mutation H6: no operation id", false, two, func(r *Rules) { r.NoOpID = true }),
		deferred("mutation H2: 408 whatever was claimed", false, keyed, func(r *Rules) { r.No408Claimed = true }),
		deferred("mutation H9: settle needs the epoch", false, keyed, func(r *Rules) { r.NoEvidence = true }),
		deferred("mutation H4: no key-retention rule, keys", false, keyed, func(r *Rules) { r.NoRetention = true }),
		deferred("mutation H4: no key-retention rule, no keys", false, bare, func(r *Rules) { r.NoRetention = true }),
		deferred("mutation H5: absence at once, no keys", false, bare, func(r *Rules) { r.NoQuiet = true }),
		deferred("mutation H5: absence at once, keys", false, keyed, func(r *Rules) { r.NoQuiet = true }),
		deferred("mutation I9: attempts and age unbounded", false, keyed, func(r *Rules) { r.NoDead = true }),
		opaque("mutation I9: dead opaque leases not swept", false, with(func(r *Rules) { r.NoSweep = true })),
		opaque("mutation H5: absence at once", false, with(func(r *Rules) { r.NoQuiet = true })),
	}
}

func main() {
	only := flag.String("run", "", "only runs whose name contains this")
	traces := flag.Bool("trace", false, "print the shortest trace of every violation")
	rules := flag.Bool("rules", false, "print how often each rule fired")
	flag.Parse()
	begin, wrong := time.Now(), 0
	for _, r := range table() {
		if !strings.Contains(r.name, *only) {
			continue
		}
		res := r.do()
		debug.FreeOSMemory()
		verdict := "as expected"
		if res.Truncated || r.clean != (len(res.Names) == 0) {
			verdict, wrong = "NOT AS EXPECTED", wrong+1
		}
		fmt.Printf("%-62s %9d states %10d steps %7.1fs  %s\n", r.name, res.States, res.Steps, res.Took.Seconds(), verdict)
		for _, name := range res.Names {
			fmt.Printf("    violated: %s (%d steps)\n", name, len(res.Traces[name])-1)
			if *traces {
				fmt.Println(strings.Join(res.Traces[name], "\n"))
			}
		}
		if *rules {
			for rule, n := range res.Fired {
				fmt.Printf("    %9d  %s  [%s]\n", n, rule.Name, rule.Cite)
			}
		}
	}
	fmt.Printf("%v in all, %d not as expected\n", time.Since(begin).Round(time.Second), wrong)
	if wrong > 0 {
		os.Exit(1)
	}
}
