//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/chaos"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/progress"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// The kill loop's size and seed; and whether sweep and reconciler are left to their schedule once the clients are gone,
// instead of being invoked every second. `make chaos` sets them.
var (
	chaosSeed     = flag.Int64("chaos.seed", 0, "seed of the kill loop's plan; 0 draws one")
	chaosRequests = flag.Int("chaos.requests", 200, "requests of the kill loop")
	chaosSchedule = flag.Bool("chaos.schedule", false, "leave sweep and reconciler to their schedule")
)

// clientsAtOnce of the kill loop.
const clientsAtOnce = 32

// loop is one run of a plan.
type loop struct {
	plan    chaos.Plan
	stories []*story
	out     *progress.Printer
	began   time.Time
	// begun counts requests, and open what has no end yet, once the clients are gone.
	begun, open atomic.Int64
	// met is how many calls met the provider's faults that are laid out for them.
	met int

	figures figures

	mu    sync.Mutex
	wrong []string
	// died are the claims whose holders were killed.
	died map[string]claim
}

// TestKillLoop runs alone: payments, transfers, payouts and refunds of two tenants, while processes are killed at random,
// the provider fails in every way that it knows, and DynamoDB loses and refuses. Then the clients are gone, everything that
// runs is killed once more, and the system alone has to bring each operation to its end.
func TestKillLoop(t *testing.T) { // design.md I1 to I9
	defer during(ofKillLoop)()
	l := newLoop(t)
	l.out.Line("kill loop: seed %d, %d requests; again: make chaos SEED=%d N=%d EMULATOR=%s", l.plan.Seed, len(l.stories), l.plan.Seed,
		len(l.stories), deployed.variables["EMULATOR"])
	defer l.figures.print(l.out)
	defer l.report()()
	l.arm(t)
	l.load(t)
	l.calm(t)
	l.check(t, l.watch(t))
}

func newLoop(t *testing.T) *loop {
	t.Helper()
	seed := *chaosSeed
	if seed == 0 {
		seed = 1 + rand.Int64N(1_000_000_000)
	}
	plan, err := chaos.New(seed, *chaosRequests)
	must(t, err)
	l := &loop{plan: plan, out: progress.New(os.Stdout), began: time.Now(), died: map[string]claim{}}
	for _, tenant := range []string{chaos.TenantA, chaos.TenantB} {
		for i := range chaos.AccountCount {
			balance := int64(1_000_000)
			if i == chaos.AccountCount-1 {
				balance = 0
			}
			openFor(t, tenant, pocket(i), balance)
			if i == collectingPocket {
				haveCollect(t, tenant, accountName(pocket(i)), 2)
			}
		}
	}
	for i, r := range plan.Requests {
		l.stories = append(l.stories, l.story(i, r))
	}
	return l
}

// collectingPocket is the account whose transfers wait until a sweep folds them, while sweeps are killed too.
const collectingPocket = 1

// pocket names an account of a tenant; both tenants have the same.
func pocket(i int) string { return fmt.Sprintf("loop-%d", i) }

// arm lays the plan's faults out. The rules of other tests are put back when all is over.
func (l *loop) arm(t *testing.T) {
	t.Helper()
	var calls []provider.Rule
	var requests []faultproxy.Rule
	for _, s := range l.stories {
		calls = append(calls, s.providerRules()...)
		for _, rule := range s.plan.DynamoDB {
			rule.Contains = traceOf(s.key())
			requests = append(requests, rule)
		}
	}
	must(t, deployed.provider.Faults(t.Context(), calls...))
	must(t, deployed.dynamodb.Faults(t.Context(), requests...))
	t.Cleanup(func() { must(t, layOutFaults(context.WithoutCancel(t.Context()))) })
}

// load lets the clients begin, in the plan's order, with its events beside them. When the provider was asked for nearly
// everything, a last wave begins all at once, meets a provider that keeps every answer back, and is cut off.
func (l *loop) load(t *testing.T) {
	ctx, goodbye := context.WithCancel(t.Context())
	defer goodbye()
	var clients, events sync.WaitGroup
	slots, next := make(chan struct{}, clientsAtOnce), l.plan.Events
	wave := len(l.stories) - min(clientsAtOnce, len(l.stories)/4)
	for i, s := range l.stories {
		if i == wave {
			l.await(t)
			l.stall(t)
		}
		if i < wave {
			slots <- struct{}{}
		}
		l.begun.Add(1)
		for ; len(next) > 0 && next[0].After <= i; next = next[1:] {
			e := next[0]
			events.Go(func() { l.happen(t.Context(), e) })
		}
		clients.Go(func() {
			l.client(ctx, s)
			if i < wave {
				<-slots
			}
		})
	}
	<-time.After(waveTime)
	l.killAll(t)
	goodbye()
	clients.Wait()
	events.Wait()
	l.out.Line("%7.1f s  the clients are gone", time.Since(l.began).Seconds())
}

// waveTime is what the last wave has before everything that runs is killed, lastKills times: each time a worker has claimed
// something else.
const (
	waveTime  = time.Second
	lastKills = 8
)

// metMax bounds how long the last wave is held back.
const metMax = 20 * time.Second

// await waits until nearly every message was claimed once, so that it has met the faults which are laid out for it.
func (l *loop) await(t *testing.T) {
	t.Helper()
	for began := time.Now(); time.Since(began) < metMax; <-time.After(time.Second) {
		messages, err := scan(t.Context(), "OUTBOX")
		must(t, err)
		unmet := 0
		for _, m := range messages {
			if !settled(m) && number(m, schema.FirstClaimedAt) == 0 {
				unmet++
			}
		}
		if unmet <= clientsAtOnce/4 {
			return
		}
	}
}

func (l *loop) killAll(t *testing.T) {
	t.Helper()
	for range lastKills {
		l.summon(t.Context(), chaos.Sweep)
		l.summon(t.Context(), chaos.Reconcile)
		<-time.After(100 * time.Millisecond)
		for _, victim := range chaos.Victims() {
			l.kill(t.Context(), chaos.Event{Victim: victim, All: true})
		}
		<-time.After(600 * time.Millisecond)
	}
}

// stall has the provider keep every answer back: some of what it is asked for is made all the same.
func (l *loop) stall(t *testing.T) {
	t.Helper()
	l.tallyProvider(t)
	l.met = l.figures.sum(tableProvider, "")
	var rules []provider.Rule
	for _, call := range []provider.Kind{
		provider.Charge, provider.LegacyCharge, provider.Refund, provider.Screening, provider.Release, provider.Payout, provider.LegacyPayout,
	} {
		rules = append(rules, provider.Rule{On: call, Fault: provider.HangAfter, Times: 2}, provider.Rule{On: call, Fault: provider.HangBefore})
	}
	must(t, deployed.provider.Faults(t.Context(), rules...))
}

// calm takes the faults back. What is held back on its way to DynamoDB still lands.
func (l *loop) calm(t *testing.T) {
	t.Helper()
	l.tallyProvider(t)
	l.tallyDynamoDB(t)
	must(t, deployed.provider.Faults(t.Context()))
	must(t, deployed.dynamodb.Faults(t.Context()))
	must(t, announce(t.Context(), provider.Off, 0))
}

// report prints how far the loop is, until it is stopped.
func (l *loop) report() (stop func()) {
	ticker, done := time.NewTicker(5*time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			l.out.Line("%7.1f s  %d of %d requests begun, %d answers, %d processes killed, %d open", time.Since(l.began).Seconds(), l.begun.Load(),
				len(l.stories), l.figures.sum(tableRequests, "answer"), l.figures.sum(tableKills, "killed"), l.open.Load())
		}
	}()
	return func() { ticker.Stop(); close(done) }
}

// tallyProvider counts what the provider's faults did, before they are replaced.
func (l *loop) tallyProvider(t *testing.T) {
	t.Helper()
	calls, err := deployed.provider.Rules(t.Context())
	must(t, err)
	for _, rule := range calls {
		l.figures.add(tableProvider, fmt.Sprintf("%s %s", rule.On, rule.Fault), rule.Applied)
	}
}

// tallyDynamoDB counts what the fault proxy's faults did.
func (l *loop) tallyDynamoDB(t *testing.T) {
	t.Helper()
	requests, err := deployed.dynamodb.Rules(t.Context())
	must(t, err)
	for _, rule := range requests {
		l.figures.add(tableDynamoDB, fmt.Sprintf("%s %s", rule.Operation, rule.Fault), rule.Applied)
	}
}
