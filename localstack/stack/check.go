package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/localstack/mutants"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// Part is a part of the whole check.
type Part string

// The parts. Some compute, some wait for time-outs and for other programs: their tasks run side by side in lanes.
const (
	// Fast is what to run while one writes: formatting, vet, and the tests of the library and the functions in memory and on
	// dynoxide, without those that take minutes. It is not among AllParts, which prove more.
	Fast  Part = "fast"
	Lint  Part = "lint"
	Unit  Part = "unit"
	Race  Part = "race"
	Prove Part = "prove"
	Infra Part = "infra"
	E2E   Part = "e2e"
	// Simulate plays stories in simulated time, and Browser reads pages in a real browser.
	Simulate Part = "simulate"
	Browser  Part = "browser"
)

// AllParts are what `make test` runs. Those whose first task takes longest begin; the linters compile for minutes where nothing was
// compiled before.
func AllParts() []Part { return []Part{E2E, Lint, Infra, Unit, Race, Browser, Simulate, Prove} }

// Check is one run of the project's checks.
type Check struct {
	// Root is the checkout.
	Root string
	// Strict fails where a part can't run on this machine; otherwise one line says so. Set with CI=true.
	Strict bool
	// Whole runs everything on everything, as the nightly workflow does: the race detector on every package at full size, every
	// store test on DynamoDB Local too, and every end-to-end test on both emulators.
	Whole bool
	// Ahead makes it the check of so many commits later: other stories, other turns, the same code.
	Ahead int
	// Out is told every step.
	Out *progress.Printer
	// Rehearse carries out runbooks on a stack that the other tests are done with, and may leave it in any state. Those that are not
	// in each check have turns: the number of the commit.
	Rehearse func(ctx context.Context, on *Stack, turn int) error

	several    bool // of the parts are run: some of their tests take turns
	installing sync.Mutex

	mu      sync.Mutex // guards what lanes that run side by side have to say
	tally   tally
	leftOut []string
}

// ErrCheck says that a check failed; which, has been printed.
var ErrCheck = errors.New("a check failed")

// Run runs parts, all of them even after a failure, prints what failed and closes with one line of totals. Stacks that it
// started are down when it returns, also when ctx ended it. Its error is ErrCheck.
func (c *Check) Run(ctx context.Context, parts ...Part) error {
	started := time.Now()
	c.several = len(parts) > 1
	err := errors.Join(os.RemoveAll(filepath.Join(c.Root, eventsFolder)), c.prepare(ctx))
	if err == nil {
		err = c.runAll(ctx, parts)
	}
	for _, what := range c.leftOut {
		c.Out.Line("           not run: %s", what)
	}
	if c.Strict && len(c.leftOut) > 0 {
		err = errors.Join(err, fmt.Errorf("not everything ran: %s", strings.Join(c.leftOut, "; ")))
	}
	verdict := "all green"
	if err != nil {
		c.Out.Line("\n%v\n", err)
		c.tellFailures()
		verdict = "FAILED"
	}
	c.Out.Line("%7.1f s  total: %s (tests: %.0f s of processor time)", time.Since(started).Seconds(), verdict, c.tally.processor.Seconds())
	c.Out.Line("tests: %v", c.tally) // alone on its line, for tools that read it
	if err != nil {
		return ErrCheck
	}
	return nil
}

// tellFailures names the tests that failed and what they said once more, at the end: what was printed of them stands far above, among the
// log of the code under test.
func (c *Check) tellFailures() {
	failures, err := failuresIn(filepath.Join(c.Root, eventsFolder))
	if err != nil {
		c.Out.Line("           what the tests said can't be read: %v", err)
	}
	for _, f := range failures {
		c.Out.Line("failed: %s\n%s", f.test, strings.Join(f.said, "\n"))
	}
}

// task is what one lane runs to its end: a step, or a few that follow each other.
type task = func(context.Context) error

// laneCount is how many tasks run side by side. Most of them wait for time-outs and for other programs, too, so that more than there are
// processors keep these busy.
const laneCount = 4

// runAll runs the tasks of the parts in lanes.
func (c *Check) runAll(ctx context.Context, parts []Part) error {
	of := map[Part][]task{
		Fast: {c.fast}, Lint: {c.lint}, Unit: {c.unit, c.dynamoDBLocal, c.alike}, Race: {c.race},
		Prove: {c.explored, c.mutate, c.planted}, Infra: {c.infra}, E2E: {c.e2e},
		Simulate: {c.crashes, c.stories, c.simulated}, Browser: {c.browser},
	}
	var all [][]task
	for _, part := range parts {
		all = append(all, of[part])
	}
	tasks := byTurns(all)
	if slices.Contains(parts, E2E) {
		tasks = append(tasks, c.e2eAgain)
	}
	return inLanes(ctx, laneCount, tasks...)
}

// byTurns has the first task of each part, which is its longest one, then the second of each, and so on: what is long begins early, so that
// the lanes end at nearly the same time.
func byTurns(parts [][]task) (tasks []task) {
	for n, left := 0, true; left; n++ {
		left = false
		for _, part := range parts {
			if n < len(part) {
				tasks, left = append(tasks, part[n]), true
			}
		}
	}
	return tasks
}

// inLanes runs the tasks in their order, so many at a time, all of them also after a failure, and none that has not begun when ctx ends. A
// lane that is free takes the next one.
func inLanes(ctx context.Context, lanes int, tasks ...task) error {
	waiting := make(chan task, len(tasks))
	for _, t := range tasks {
		waiting <- t
	}
	close(waiting)
	lane := func() (err error) {
		for t := range waiting {
			if ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			err = errors.Join(err, t(ctx))
		}
		return err
	}
	return sideBySide(slices.Repeat([]func() error{lane}, lanes)...)
}

// sideBySide runs all at once and returns every error.
func sideBySide(all ...func() error) error {
	failed := make([]error, len(all))
	var running sync.WaitGroup
	for i, one := range all {
		running.Go(func() { failed[i] = one() })
	}
	running.Wait()
	return errors.Join(failed...)
}

// prepare installs the tools beside the longest build.
func (c *Check) prepare(ctx context.Context) error {
	var lanes errgroup.Group
	lanes.Go(func() error { return InstallTools(ctx, c.Root, c.Out) })
	lanes.Go(func() error { return c.Out.Step("build CDK app", func() error { return buildInfra(ctx, c.Root) }) })
	return lanes.Wait()
}

// noticed is how many changes of the code a check makes on purpose, other ones for each commit, to see that a test fails.
const noticed = 2

// explored explores the protocol within its small bounds, a part of it where its code is the one that the committed table was explored
// with. The rules have their switches in this build only.
func (c *Check) explored(ctx context.Context) error {
	return errors.Join(
		c.test(ctx, "the machines of the protocol", testRun{environment: calm, arguments: []string{"-tags", "prove", "./idem/protocol"}}),
		c.test(ctx, "the protocol, explored", testRun{
			environment: calm, arguments: append([]string{"-tags", "prove", "./idem/protocol/check"}, c.part(ctx, "prove", exploredAgain)...),
		}),
	)
}

// planted plays the stories that find rules which were removed from the real code.
func (c *Check) planted(ctx context.Context) error {
	return c.test(ctx, "stories that find planted rules", testRun{
		environment: calm, arguments: []string{"-tags", "prove", "-run", planted, "./idem/sim"},
	})
}

// mutate breaks the code itself, on purpose, and fails where no test does.
func (c *Check) mutate(ctx context.Context) error {
	return c.Out.Step(fmt.Sprintf("%d changes of the code that a test must notice", noticed), func() error {
		chosen := mutants.Sample(mutants.Listed(), noticed, uint64(c.number(ctx)))
		report, err := mutants.Run(ctx, mutants.Config{Root: c.Root, Out: io.Discard}, chosen)
		if err == nil && len(report.Wrong) > 0 {
			err = errors.New(strings.Join(report.Wrong, "\n\n"))
		}
		return err
	})
}

// What takes minutes, and says the same for nearly every commit, takes turns of three commits. Who asks for one part gets all of it.
const turns = 3

// hasTurn tells whether the commit has one of the turns, of 0, 1 and 2, and says in a line what it leaves to its neighbours.
func (c *Check) hasTurn(ctx context.Context, what string, has ...int) bool {
	turn := c.number(ctx) % turns
	if c.Whole || !c.several || slices.Contains(has, turn) {
		return true
	}
	c.Out.Line("           left to other commits: %s (turn %d of %d)", what, turn+1, turns)
	return false
}

// The turns cost 108, 80 and 66 s of processor time. The second emulator keeps its tables in DynamoDB Local, so that the stores' own tests on that have
// the other ones.
var (
	secondEmulator = []int{0}
	browserReads   = []int{1}
	documentHolds  = []int{2}
	storesOnLocal  = []int{1, 2}
)

// lintPart is the variable by which the tests of the CDK app have the linters look at a part of the templates, and lintedAgain of how
// many parts. It is so where the committed tables of what the linters find are of the templates as they are now.
const (
	lintPart    = "IDEM_LINT_PART"
	lintedAgain = 3
)

func (c *Check) infra(ctx context.Context) error {
	step, environment := "infra tests", quietNode
	if !c.Whole {
		part := c.number(ctx) % lintedAgain
		step += fmt.Sprintf(", and the linters on templates %d of %d", part+1, lintedAgain)
		environment = append(slices.Clone(quietNode), fmt.Sprintf("%s=%d/%d", lintPart, part, lintedAgain))
	}
	return c.test(ctx, step, testRun{directory: filepath.Join(c.Root, "infra"), environment: environment, arguments: []string{"./..."}})
}

// eventsFolder has what the tests of the last check told, a file for each step.
var eventsFolder = filepath.Join(".local", "tests")

// test is a step that runs go test and adds what it counted; without a directory, in the checkout. What it told is kept in
// eventsFolder. What failed is printed at once, while other steps go on; the error names the step.
func (c *Check) test(ctx context.Context, step string, run testRun) error {
	if run.directory == "" {
		run.directory = c.Root
	}
	run.events = filepath.Join(c.Root, eventsFolder, strings.Join(strings.FieldsFunc(step, notInNames), "-")+".json")
	err := c.Out.StepCosting(step, func() (time.Duration, error) {
		counted, err := goTest(ctx, run)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tally.add(counted)
		return counted.processor, err
	})
	if err == nil {
		return nil
	}
	c.Out.Line("\n%v\n", err)
	return fmt.Errorf("%s: failed, as printed above", step)
}

func notInNames(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// leaveOut notes what a missing tool keeps from running.
func (c *Check) leaveOut(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leftOut = append(c.leftOut, what)
}

// Strict tells whether the environment asks for everything: CI=true.
func Strict() bool { return os.Getenv("CI") == "true" }
