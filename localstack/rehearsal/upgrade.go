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
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/idem-go/idem-aws/localstack/emulator"
)

// step is one step of a rehearsal.
type step struct {
	name string
	do   func(context.Context) error
}

// Upgrade deploys this release over an earlier one and goes back, while clients pay, and counts the money; then it does the same with a
// release whose rows this one can't read. The commit is the earlier release's, as [Earlier] returns it. The stack must be up, with the
// fault proxy.
func (r *Rehearsals) Upgrade(ctx context.Context, commit string) error {
	folder := filepath.Join(r.Root, ".local", "upgrade")
	this := release{name: "this release", checkout: r.Root, build: filepath.Join(r.Root, ".local", "build")}
	var before, later release
	err := r.Out.Step("build the earlier release, one with another schema, and idemctl", func() error {
		var err error
		if before, err = checkOut(ctx, r.Root, filepath.Join(folder, "earlier"), commit); err != nil {
			return err
		}
		if later, err = buildLater(ctx, r.Root, filepath.Join(folder, "later")); err != nil {
			return err
		}
		return emulator.Run(ctx, r.Root, nil, "go", "build", "-o", filepath.Join(".local", "build", "bin", "idemctl"), "./functions/cmd/idemctl")
	})
	if err != nil {
		return err
	}
	upgraded, err := r.steps(ctx, "upgrade", func(x *run) []step { return x.upgrade(folder, before, this) })
	if err != nil {
		return err
	}
	unreadable, err := r.steps(ctx, "schema", func(x *run) []step { return x.schema(folder, this, later) })
	return errors.Join(err, WriteTable(os.Stdout, []Money{upgraded, unreadable}))
}

// steps carries one rehearsal out.
func (r *Rehearsals) steps(ctx context.Context, name string, of func(*run) []step) (Money, error) {
	x := &run{
		Rehearsals: r, loss: loss{name: name}, id: strings.ToLower(rand.Text()[:8]), began: time.Now().Add(-time.Second), money: Money{Name: name},
	}
	if err := x.open(); err != nil {
		return x.money, err
	}
	began := time.Now()
	r.Out.Line("\nrehearsal %s", name)
	for _, s := range of(x) {
		if err := r.Out.Step(s.name, func() error { return s.do(ctx) }); err != nil {
			return x.money, fmt.Errorf("rehearsal %s: %s: %w", name, s.name, err)
		}
	}
	r.Out.Line("%7.1f s  rehearsal %s", time.Since(began).Seconds(), name)
	return x.money, nil
}

// upgrade is a deployment as infra/stack orders it, what processes work before what accepts it, and the way back, the other way round.
func (r *run) upgrade(folder string, before, this release) []step {
	between := func() (release, error) { return mixed(filepath.Join(folder, "mixed"), before, this) }
	replayed := func(api release) step {
		return step{"what was answered is sent again: " + api.name + " answers the same", func(ctx context.Context) error { return r.replayFrom(ctx, api, this) }}
	}
	return []step{
		{"deploy the earlier release", r.deploying(before)},
		{"payments and payouts, some under way", func(ctx context.Context) error {
			if err := r.done(ctx, r.wave("early")); err != nil {
				return err
			}
			_, err := r.begin(ctx, r.underWay("under"))
			return err
		}},
		{"under load: this release's workers, the earlier one's API", r.loaded("a", between)},
		replayed(before),
		{"under load: this release", r.loaded("b", func() (release, error) { return this, nil })},
		replayed(this),
		{"under load, back: the earlier one's API first", r.loaded("c", between)},
		replayed(before),
		{"under load, back: the earlier release, with this one's rows", r.loaded("d", func() (release, error) { return before, nil })},
		replayed(before),
		{"clients send again until they have their answers, of the earlier release", func(ctx context.Context) error { return r.settleIfReadable(ctx, before, this) }},
		{"under load: this release again", r.loaded("e", func() (release, error) { return this, nil })},
		{"clients send again", func(ctx context.Context) error { return r.settleAll(ctx) }},
		replayed(this),
		{"count the money", func(ctx context.Context) error {
			return errors.Join(r.everyAnswer(ctx), r.compare(ctx))
		}},
	}
}

// settleIfReadable lets the earlier release end what this one began. Where the schemas differ it may not, and leaves it alone.
func (r *run) settleIfReadable(ctx context.Context, before, this release) error {
	if same, err := sameSchema(before, this); err != nil || !same {
		return err
	}
	return r.settleAll(ctx)
}

// replayFrom demands of the release that has the API that it replays what itself and this one have answered.
func (r *run) replayFrom(ctx context.Context, api, this release) error {
	readable, err := sameSchema(api, this)
	if err != nil {
		return err
	}
	return r.replay(ctx, readable)
}

// sameSchema says that two releases can read each other's rows.
func sameSchema(a, b release) (bool, error) {
	ofA, err := schemaOf(a.checkout)
	if err != nil {
		return false, err
	}
	ofB, err := schemaOf(b.checkout)
	return ofA == ofB, err
}

// patience is how long clients wait for the answers to all of their requests.
func (r *run) patience() time.Duration {
	return settleWithin + time.Duration(len(r.stories))*settleEach
}

// settleEach is what each of hundreds of requests may add to the wait for their answers, on a busy machine.
const settleEach = 500 * time.Millisecond

func (r *run) settleAll(ctx context.Context) error {
	return r.settle(ctx, r.stories, r.patience())
}

// everyAnswer counts the requests and their answers: each must have its final one, and its row.
func (r *run) everyAnswer(ctx context.Context) error {
	r.money.Requests = len(r.stories)
	r.tally()
	return errors.Join(r.money.allFinal(), r.everyAnswerIsBooked(ctx))
}

// schema is a deployment in the wrong order, and its way back: a release with another schema accepts work, and this one meets its rows.
// It executes none of it, calls nobody, and says so; the later release ends all of it.
func (r *run) schema(folder string, this, later release) []step {
	return []step{
		{"this release's workers, the other one's API", func(ctx context.Context) error {
			both, err := mixed(filepath.Join(folder, "mixed"), later, this)
			if err != nil {
				return err
			}
			return r.deploying(both)(ctx)
		}},
		{"payments and payouts, some under way", func(ctx context.Context) error {
			clients, err := r.begin(ctx, append(r.wave("later"), r.underWay("later")...))
			if err != nil {
				return err
			}
			clients.Wait()
			return r.keepRows(ctx)
		}},
		{"back to this release, which can't read the rows", r.deploying(this)},
		{"clients send again: nothing is executed, and log lines with alarm=true say so", r.leavesAlone},
		{"forward: the other release everywhere", r.deploying(later)},
		{"clients send again", func(ctx context.Context) error { return r.settleAll(ctx) }},
		{"what was answered is sent again", func(ctx context.Context) error { return r.replay(ctx, true) }},
		{"count the money", func(ctx context.Context) error {
			return errors.Join(r.everyAnswer(ctx), r.countRows(ctx))
		}},
	}
}

// deploying deploys a release.
func (r *run) deploying(what release) func(context.Context) error {
	return func(ctx context.Context) error {
		r.Stack = r.Stack.From(what.checkout)
		return r.deploy(ctx, map[string]string{"build": what.build})
	}
}

// loaded deploys while clients pay: one payment, one payout and one payment where keys are not honoured each second, and some that
// the provider answers late or never.
func (r *run) loaded(name string, what func() (release, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		chosen, err := what()
		if err != nil {
			return err
		}
		load, stop := *r, make(chan struct{})
		load.stories, load.rules = nil, slices.Clone(r.rules)
		over := make(chan error, 1)
		go func() { over <- load.pay(ctx, name, stop) }()
		deployed := r.deploying(chosen)(ctx)
		if deployed == nil {
			deployed = pause(ctx, 2*time.Second) // and some after it
		}
		close(stop)
		err = errors.Join(deployed, <-over)
		r.stories, r.rules = append(r.stories, load.stories...), load.rules
		r.Out.Line("           %d requests meanwhile", len(load.stories))
		return err
	}
}

// pay sends requests until it is stopped, and returns when each has an answer or none.
func (r *run) pay(ctx context.Context, name string, stop <-chan struct{}) error {
	var all []*sync.WaitGroup
	for n := 0; ; n++ {
		id := fmt.Sprintf("%s%03d", name, n)
		stories := r.wave(id)[1:2] // a payout
		stories = append(stories, r.payment(fmt.Sprintf("card_%s_%s", r.id, id), nil), r.payment(fmt.Sprintf("legacy_%s_%s", r.id, id), nil))
		if n%15 == 0 {
			stories = append(stories, r.underWay(id)...)
		}
		clients, err := r.begin(ctx, stories)
		if err != nil {
			return err
		}
		all = append(all, clients)
		select {
		case <-stop:
			for _, clients := range all {
				clients.Wait()
			}
			return nil
		case <-time.After(time.Second):
		}
	}
}

// moved is how often the provider has moved money for the rehearsal.
func (r *run) moved(ctx context.Context) (int, error) {
	moved, _, err := r.objects(ctx)
	return len(moved), err
}

// leavesAlone demands that this release executes nothing of what it can't read, and that the lines of the log say so from which the stack
// makes its alarm UnknownTopic. The emulator runs no alarms: that one rings is not looked at.
func (r *run) leavesAlone(ctx context.Context) error {
	if err := pause(ctx, 10*time.Second); err != nil { // what the provider answers late has happened by then
		return err
	}
	before, err := r.moved(ctx)
	if err != nil {
		return err
	}
	open := 0
	for range 3 {
		if err := r.hasten(ctx); err != nil {
			return err
		}
		for _, s := range r.stories {
			if told := r.send(ctx, s); told.status != 503 || told.refused() {
				return fmt.Errorf("%s: a retry is answered %d %s, want 503 because the row can't be read", s.intent, told.status, told.code)
			}
		}
		if err := pause(ctx, 5*time.Second); err != nil { // longer than a claim would need
			return err
		}
	}
	after, err := r.moved(ctx)
	if err != nil {
		return err
	}
	if after != before {
		return fmt.Errorf("%d objects of the provider, and %d before: rows that can't be read were executed", after, before)
	}
	for _, s := range r.stories {
		if !s.final() {
			open++
		}
	}
	if open == 0 {
		return errors.New("everything had its answer before: nothing was there to be left alone")
	}
	told, err := r.logged(ctx, "outbox.unknown_topic")
	if err != nil {
		return err
	}
	if told == 0 {
		return fmt.Errorf("%d operations are left alone, and no line outbox.unknown_topic says so", open)
	}
	r.Out.Line("           %d operations are left alone, told %d times; every retry is answered 503", open, told)
	return nil
}

// logged is how often the functions that process work have said something about the rehearsal's time, with alarm=true.
func (r *run) logged(ctx context.Context, message string) (lines int, err error) {
	client := cloudwatchlogs.NewFromConfig(localConfig(r.variables))
	for _, name := range []string{"FUNCTION_WORKER", "FUNCTION_SWEEP", "FUNCTION_RECONCILE"} {
		function, err := r.functions.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(r.variables[name])})
		if err != nil {
			return 0, err
		}
		pages := cloudwatchlogs.NewFilterLogEventsPaginator(client, &cloudwatchlogs.FilterLogEventsInput{
			LogGroupName: function.LoggingConfig.LogGroup, StartTime: aws.Int64(r.began.UnixMilli()),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return 0, fmt.Errorf("log of %s: %w", name, err)
			}
			for _, event := range page.Events {
				if text := aws.ToString(event.Message); strings.Contains(text, `"`+message+`"`) && strings.Contains(text, `"alarm":true`) {
					lines++
				}
			}
		}
	}
	return lines, nil
}

// everyAnswerIsBooked demands one row for each request, and of each that was answered 201 that its money moved.
func (r *run) everyAnswerIsBooked(ctx context.Context) error {
	rows, err := r.payments(ctx)
	if err != nil {
		return err
	}
	if wrong := unbooked(r.stories, rows); wrong != nil {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// countRows counts the money without the drift job, which this release can't run over rows that it can't read.
func (r *run) countRows(ctx context.Context) (err error) {
	e := evidence{asked: r.asked()}
	if e.objects, _, err = r.objects(ctx); err != nil {
		return err
	}
	if e.rows, err = r.payments(ctx); err != nil {
		return err
	}
	r.money.LostRows = lost(r.rows, e.rows)
	if wrong := append(r.money.count(e), r.expected()...); len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}
