package rehearsal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/progress"
	"github.com/idem-go/idem-aws/localstack/provider"
	"github.com/idem-go/idem-aws/localstack/stack"
)

// Rehearsals carry runbooks out on a stack that is up, on ministack with the fault proxy and with tables that are retained.
type Rehearsals struct {
	// Root is the checkout.
	Root string
	// Stack is the one that everything happens to. It is not what it was afterwards: take it down.
	Stack *stack.Stack
	// Other makes a stack in another Region, of the same settings: one that has nothing in common with the first but the provider.
	Other func(providerURL string) (*stack.Stack, error)
	Out   *progress.Printer

	// barred says that an earlier rehearsal has lost records on this stack.
	barred bool
	// amounts counts the amounts that clients have asked for.
	amounts atomic.Int64
}

// loss is one way to lose data, and the runbook for it.
type loss struct {
	name string
	// keeps says that the moment to which data is restored is before the loss; loses that records are lost at all.
	keeps, loses bool
	// prepares is what must be done before a loss of this kind, at the moment to which data is restored. Nil is nothing.
	prepares func(*run, context.Context) error
	// strikes loses the data; recovers is the runbook.
	strikes, recovers func(*run, context.Context) error
}

// losses are in the order in which they can share a stack: the last one ends it.
func losses() []loss {
	return []loss{
		{name: "destroyed", strikes: (*run).destroyed, recovers: (*run).deployAgain},
		{name: "anew", loses: true, strikes: (*run).wiped, recovers: (*run).beginAnew},
		{name: "restore", keeps: true, loses: true, strikes: (*run).damaged, recovers: (*run).restore},
		{name: "region", keeps: true, loses: true, prepares: (*run).exportKeys, strikes: (*run).regionLost, recovers: (*run).failOver},
	}
}

// Names are those of the rehearsals.
func Names() (names []string) {
	for _, l := range losses() {
		names = append(names, l.name)
	}
	return names
}

// Short is one of those that are among the checks, by turns: one loses nothing, and one has every step of the others.
func Short(turn int) []string { return [][]string{{"destroyed"}, {"restore"}}[turn%2] }

// Run carries out the rehearsals of these names, all without any, prints what the money comes to, and returns what was wrong.
func (r *Rehearsals) Run(ctx context.Context, names ...string) error {
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("there is no rehearsal %q: %s", name, strings.Join(Names(), ", "))
		}
	}
	program := filepath.Join(".local", "build", "bin", "idemctl")
	err := r.Out.Step("build idemctl", func() error {
		return emulator.Run(ctx, r.Root, nil, "go", "build", "-o", program, "./functions/cmd/idemctl")
	})
	if err != nil {
		return err
	}
	var (
		all    []Money
		failed []error
	)
	for _, l := range losses() {
		if len(names) > 0 && !slices.Contains(names, l.name) {
			continue
		}
		began := time.Now()
		r.Out.Line("\nrehearsal %s", l.name)
		money, err := r.rehearse(ctx, l)
		if err != nil {
			failed = append(failed, fmt.Errorf("rehearsal %s: %w", l.name, err))
		}
		all = append(all, money)
		r.Out.Line("%7.1f s  rehearsal %s", time.Since(began).Seconds(), l.name)
		if err != nil { // the stack is not what the next one needs
			break
		}
	}
	r.Out.Line("")
	return errors.Join(errors.Join(failed...), WriteTable(os.Stdout, all))
}

// run is one rehearsal under way.
type run struct {
	*Rehearsals
	loss
	// id is part of every source, destination and key.
	id        string
	began     time.Time
	variables stack.Variables
	tables    *dynamodb.Client
	functions *lambda.Client
	provider  provider.Control
	proxy     faultproxy.Control
	rules     []provider.Rule

	stories []*story
	torn    []*transferred
	younger *story // the payment under a key that is younger than the loss
	rows    []row  // of the payments table, just before the loss
	process *wrapped
	others  []*held
	revoked string            // an API key that was revoked after the moment that data is restored to
	cutOver time.Time         // what was written before it may be lost
	snapped string            // the name of the backups of that moment
	copied  map[string][]item // what another Region has of it, by the variables of the tables
	other   elsewhere         // the other Region
	money   Money
}

func (r *Rehearsals) rehearse(ctx context.Context, l loss) (Money, error) {
	x := &run{Rehearsals: r, loss: l, id: strings.ToLower(rand.Text()[:8]), began: time.Now().Add(-time.Second), money: Money{Name: l.name}}
	if err := x.open(); err != nil {
		return x.money, err
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"payments and payouts, some under way", x.before},
		{"the loss, in the middle of more", x.lose},
		{"the runbook", func(ctx context.Context) error { return x.recovers(x, ctx) }},
		{"clients send again with their old keys", x.after},
		{"count the money", x.compare},
		{"make again what is missing", x.again},
	} {
		if err := r.Out.Step(step.name, func() error { return step.do(ctx) }); err != nil {
			return x.money, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	r.barred = r.barred || l.loses
	return x.money, nil
}

// now is the time by the clients' clocks. They are right, unless an earlier rehearsal has lost records on this stack: then they are
// as far ahead as a client's may be, because otherwise their new keys would be refused for two minutes after that loss, which are
// the clocks' difference that is allowed for.
func (r *run) now() time.Time {
	if r.barred {
		return time.Now().Add(idem.FirstSentSkew - time.Second)
	}
	return time.Now()
}

// open reads where the stack is now.
func (r *run) open() error {
	variables, err := stack.ReadVariables(r.Stack.EnvFile())
	if err != nil {
		return err
	}
	if variables["FAULT_PROXY_URL"] == "" {
		return errors.New("the stack has no fault proxy")
	}
	config := localConfig(variables)
	r.variables, r.tables, r.functions = variables, dynamodb.NewFromConfig(config), lambda.NewFromConfig(config)
	r.provider, r.proxy = provider.Control{URL: variables["PROVIDER_URL"]}, faultproxy.Control{URL: variables["FAULT_PROXY_URL"]}
	return nil
}

// settleWithin bounds the wait for final answers: a claim's lease, what a lost call may take, and its probe.
const settleWithin = 100 * time.Second

// before is what happens until the loss: some is settled before the moment to which data can be restored, some is under way then,
// and some comes after it.
func (r *run) before(ctx context.Context) error {
	// One account collects, so that a runbook has to have it folded again.
	if _, err := r.must(ctx, nil, "account", "collect", "acct_1", "--tenant", "tenant-a", "--partitions", "2", "--reason", reason, "--write"); err != nil {
		return err
	}
	early := r.wave("early")
	if err := r.done(ctx, early); err != nil {
		return err
	}
	var err error
	if r.process, err = r.newWrapped(); err != nil {
		return err
	}
	under := r.underWay("under")
	clients, err := r.begin(ctx, under)
	if err != nil {
		return err
	}
	over, err := r.hold(ctx, "before") // a wrapped operation is in progress at that moment, and completes after it
	if err != nil {
		return err
	}
	if r.keeps {
		if err := r.transfers(ctx); err != nil {
			return err
		}
		if err := r.committed(ctx, under); err != nil {
			return err
		}
		if err := r.snapshot(ctx); err != nil {
			return err
		}
		if r.prepares != nil {
			if err := r.prepares(r, ctx); err != nil {
				return err
			}
		}
	}
	if err := r.revoke(ctx); err != nil {
		return err
	}
	r.process.release <- struct{}{}
	if err := <-over; err != nil {
		return fmt.Errorf("wrapped operation: %w", err)
	}
	if _, err := r.hold(ctx, "after"); err != nil { // this one's process is killed
		return err
	}
	if err := r.done(ctx, r.wave("late")); err != nil {
		return err
	}
	clients.Wait()
	return r.settleKeyed(ctx, under)
}

// committed waits until requests are committed with their messages, whatever has become of them.
func (r *run) committed(ctx context.Context, stories []*story) error {
	for deadline := time.Now().Add(settleWithin); ; {
		rows, err := r.payments(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(stories, func(s *story) bool { return !contains(rows, s.intent) }) {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("requests are not committed")
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// done lets clients ask, and follow up until they have their last answers.
func (r *run) done(ctx context.Context, stories []*story) error {
	clients, err := r.begin(ctx, stories)
	if err != nil {
		return err
	}
	clients.Wait()
	return r.settle(ctx, stories, settleWithin)
}

// settleKeyed waits for what needs no proof of absence: everything but the legacy charge, which stays unknown across the loss.
func (r *run) settleKeyed(ctx context.Context, stories []*story) error {
	var keyed []*story
	for _, s := range stories {
		if !strings.HasSuffix(s.intent, "_hang") || !strings.HasPrefix(s.intent, "legacy_") {
			keyed = append(keyed, s)
		}
	}
	return r.settle(ctx, keyed, settleWithin)
}

// lose begins more, and loses the data in the middle of it.
func (r *run) lose(ctx context.Context) error {
	clients, err := r.begin(ctx, append(r.wave("cut"), r.underWay("cut")...))
	if err != nil {
		return err
	}
	if err := pause(ctx, 700*time.Millisecond); err != nil {
		return err
	}
	if r.rows, err = r.payments(ctx); err != nil {
		return err
	}
	r.process.kill()
	if err := r.strikes(r, ctx); err != nil {
		return err
	}
	clients.Wait()
	r.money.Requests = len(r.stories)
	return nil
}
