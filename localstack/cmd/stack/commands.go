package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/localstack/progress"
	"github.com/idem-go/idem-aws/localstack/rehearsal"
	"github.com/idem-go/idem-aws/localstack/stack"
)

type toolsCommand struct{}

// Run installs everything whose prerequisites are there.
func (toolsCommand) Run(s call) error { return stack.InstallTools(s.ctx, s.root, s.out) }

type cdkCommand struct{}

// Run prints the path of the CDK's command line, and nothing else on standard output: a shell takes it from there.
func (cdkCommand) Run(s call) error {
	program, err := stack.InstallCDK(s.ctx, s.root, progress.New(os.Stderr))
	if err != nil {
		return err
	}
	_, err = fmt.Println(program)
	return err
}

type runCommand struct {
	NoLogs bool `help:"End after the example requests."`
	Raw    bool `help:"Print log lines as they were logged."`
}

// Run ends without an error on Ctrl-C while it follows the logs. The operator's console is served meanwhile.
func (c runCommand) Run(s call) error {
	opened, err := s.stack()
	if err != nil {
		return err
	}
	if err := opened.Up(s.ctx); err != nil {
		return err
	}
	if err := opened.Story(s.ctx); err != nil || c.NoLogs {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	var console errgroup.Group
	console.Go(func() error {
		err := opened.Console(ctx)
		if err != nil && ctx.Err() == nil { // the logs are worth following without it
			s.out.Line("console: %v", err)
		}
		return nil
	})
	err = opened.Logs(s.ctx, c.Raw)
	cancel()
	return errors.Join(err, console.Wait())
}

type upCommand struct{}

// Run brings the stack up.
func (upCommand) Run(s call) error {
	opened, err := s.stack()
	if err != nil {
		return err
	}
	return opened.Up(s.ctx)
}

type downCommand struct{}

// Run takes the stack down.
func (downCommand) Run(s call) error {
	opened, err := s.stack()
	if err != nil {
		return err
	}
	return opened.Down(s.ctx)
}

type statusCommand struct{}

// Run fails where something of the stack is not running.
func (statusCommand) Run(s call) error {
	opened, err := s.stack()
	if err != nil {
		return err
	}
	up, err := opened.Status()
	if err == nil && !up {
		err = errors.New("the stack is down")
	}
	return err
}

type logsCommand struct {
	Raw bool `help:"Print the lines as they were logged, JSON, and nothing else."`
}

// Run follows the logs until Ctrl-C.
func (c logsCommand) Run(s call) error {
	opened, err := s.stack()
	if err != nil {
		return err
	}
	return opened.Logs(s.ctx, c.Raw)
}

type invokeCommand struct {
	Function string `required:"" help:"Folder of functions/ that has a main.go, such as api."`
	Event    string `required:"" type:"existingfile" help:"File with the event, as in events/."`
}

// Run fails where the function does.
func (c invokeCommand) Run(s call) error {
	opened, err := s.stack()
	if err != nil {
		return err
	}
	return opened.Invoke(s.ctx, c.Function, c.Event)
}

type buildCommand struct {
	Arch string `default:"arm64" enum:"arm64,amd64" help:"Architecture of the functions: ${enum}."`
}

// Run builds the functions into .local/build/<arch>.
func (c buildCommand) Run(s call) error {
	return s.out.Step("build functions for "+c.Arch, func() error { return stack.BuildFunctions(s.ctx, s.root, c.Arch) })
}

type testCommand struct {
	Parts []stack.Part `arg:"" optional:"" enum:"fast,lint,unit,race,prove,infra,browser,simulate,e2e" help:"Parts to run. Default: all but fast."`
	Whole bool         `help:"Run every test everywhere: the race detector at full size, each store test on DynamoDB Local, each end-to-end test on both emulators, all runbooks. Takes hours: for nightly runs and releases."`
}

// Run fails where a check does, and with CI=true where one can't run.
func (c testCommand) Run(s call) error {
	parts := c.Parts
	if len(parts) == 0 {
		parts = stack.AllParts()
	}
	return s.check(s.out, c.Whole).Run(s.ctx, parts...)
}

// check is the project's checks, or with whole every test everywhere, told to out.
func (s call) check(out *progress.Printer, whole bool) *stack.Check {
	return &stack.Check{Root: s.root, Strict: stack.Strict(), Whole: whole, Out: out, Rehearse: func(ctx context.Context, on *stack.Stack, turn int) error {
		runbooks := rehearsal.Short(turn)
		if whole {
			runbooks = rehearsal.Names()
		}
		return rehearse(ctx, s.root, out, on, runbooks...)
	}}
}

type flakesCommand struct {
	Runs   int           `default:"10" help:"How often to run them."`
	Freeze time.Duration `default:"0s" help:"Let processes of the runs stand for half of this time to all of it, one or two at once, all the time: an overloaded machine. 0 lets none."`
}

// Run fails where a run of the checks does.
func (c flakesCommand) Run(s call) error {
	if c.Runs < 1 || c.Freeze < 0 {
		return errors.New("--runs must be at least 1, and --freeze at least 0s")
	}
	// Go would take the results of the first run for those of all others.
	if err := os.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -count=1"); err != nil {
		return err
	}
	return stack.Flakes(s.ctx, s.root, c.Runs, c.Freeze, func(out *progress.Printer) *stack.Check { return s.check(out, false) }, s.out)
}

type lintAllCommand struct{}

// Run fails with what the linters find.
func (lintAllCommand) Run(s call) error { return stack.LintAll(s.ctx, s.root, s.out) }

type chaosCommand struct {
	Seed     int64 `help:"Seed of the plan. 0 draws a random one."`
	Requests int   `default:"1000" help:"Requests of the plan."`
	Hasten   bool  `help:"Invoke sweep and reconciler every second once the clients are gone, instead of leaving them to their schedule."`
}

// Run fails where anything is lost, doubled or left open.
func (c chaosCommand) Run(s call) error {
	loop := stack.KillLoop{Seed: c.Seed, Requests: c.Requests, Hasten: c.Hasten, Options: s.local.options(s.root)}
	return loop.Run(s.ctx, s.out)
}

type rehearseCommand struct {
	Only []string `arg:"" optional:"" help:"Rehearsals to run: destroyed, anew, restore, region. Default: all."`
}

// Run brings a stack of its own up, rehearses, and takes it down whatever happened. It fails where money moved twice, or where
// anything that is missing is not listed.
func (c rehearseCommand) Run(s call) error {
	return s.rehearsing(func(on *stack.Stack) error { return rehearse(s.ctx, s.root, s.out, on, c.Only...) })
}

type upgradeCommand struct {
	From string `help:"Commit of the earlier release: a tag, a branch, a hash. Its functions must have Lambda aliases. Default: the newest tag of a version, or HEAD~1 where there is none."`
}

// Run fails where money moved twice or is not accounted for, or where a release executes what it can't read.
func (c upgradeCommand) Run(s call) error {
	commit, err := rehearsal.Earlier(s.ctx, s.root, c.From) // before anything is built or started
	if err != nil {
		return err
	}
	return s.rehearsing(func(on *stack.Stack) error {
		rehearsals := rehearsal.Rehearsals{Root: s.root, Stack: on, Out: s.out}
		return rehearsals.Upgrade(s.ctx, commit)
	})
}

// rehearsing brings a stack for rehearsals up, and takes it down whatever happened.
func (s call) rehearsing(do func(*stack.Stack) error) (err error) {
	options := s.local.rehearsed(s.root, filepath.Join(".local", "rehearsal"))
	options.Contexts = map[string]string{"retainTables": "true"}
	opened, err := stack.New(options, s.out)
	if err != nil {
		return err
	}
	if err := opened.Down(s.ctx); err != nil { // what a killed run may have left
		return err
	}
	defer func() { err = errors.Join(err, opened.Down(context.WithoutCancel(s.ctx))) }()
	if err := opened.Up(s.ctx); err != nil {
		return err
	}
	return do(opened)
}

// rehearse rehearses on a stack, which is not what it was afterwards. The stack in another Region is taken down.
func rehearse(ctx context.Context, root string, out *progress.Printer, on *stack.Stack, only ...string) (err error) {
	var others []*stack.Stack
	defer func() {
		for _, other := range others {
			err = errors.Join(err, other.Down(context.WithoutCancel(ctx)))
		}
	}()
	rehearsals := rehearsal.Rehearsals{Root: root, Stack: on, Out: out, Other: func(providerURL string) (*stack.Stack, error) {
		other, err := on.Elsewhere(filepath.Join(".local", "rehearsal-region"), providerURL)
		if err != nil {
			return nil, err
		}
		others = append(others, other)
		return other, other.Down(ctx)
	}}
	return rehearsals.Run(ctx, only...)
}

// staged is the option of commands about a stage in AWS.
type staged struct {
	Stage string `help:"Name of the stage: that of its file in infra/stages, without .json."`
}

// on opens the stage and does something with it.
func (c staged) on(s call, do func(*stack.Stage, context.Context) error) error {
	stage, err := stack.OpenStage(s.ctx, s.root, c.Stage, s.out)
	if err != nil {
		return err
	}
	return do(stage, s.ctx)
}

type bootstrapCommand struct{ staged }

// Run prepares account and Region.
func (c bootstrapCommand) Run(s call) error { return c.on(s, (*stack.Stage).Bootstrap) }

type deployCommand struct {
	staged
	Now bool `help:"Move all calls at once, and let no alarm end the deployment."`
}

// Run deploys to AWS.
func (c deployCommand) Run(s call) error {
	if c.Now {
		return c.on(s, (*stack.Stage).DeployNow)
	}
	return c.on(s, (*stack.Stage).Deploy)
}

type diffCommand struct{ staged }

// Run shows what a deployment would change.
func (c diffCommand) Run(s call) error { return c.on(s, (*stack.Stage).Diff) }

type destroyCommand struct{ staged }

// Run removes the stack from AWS.
func (c destroyCommand) Run(s call) error { return c.on(s, (*stack.Stage).Destroy) }

type idemctlCommand struct {
	staged
	Arguments []string `arg:"" optional:"" help:"idemctl's arguments, after --."`
}

// Run runs the operator's command on a stage.
func (c idemctlCommand) Run(s call) error { return stack.Idemctl(s.ctx, s.root, c.Stage, c.Arguments) }
