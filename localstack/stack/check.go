package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/localstackhost"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// Part is a part of the whole check.
type Part string

// The parts, in the order in which they run.
const (
	Lint  Part = "lint"
	Unit  Part = "unit"
	Prove Part = "prove"
	Infra Part = "infra"
	E2E   Part = "e2e"
)

// AllParts are what `make test` runs.
func AllParts() []Part { return []Part{Lint, Unit, Prove, Infra, E2E} }

// Check is one run of the project's checks.
type Check struct {
	// Root is the checkout.
	Root string
	// Strict fails where a part can't run on this machine; otherwise one line says so. Set with CI=true.
	Strict bool
	// Out is told every step.
	Out *progress.Printer
	// Rehearse carries out runbooks on a stack that the other tests are done with, and may leave it in any state.
	Rehearse func(ctx context.Context, on *Stack) error

	tally   tally
	leftOut []string
}

// ErrCheck says that a check failed; which, has been printed.
var ErrCheck = errors.New("a check failed")

// Run runs parts, all of them even after a failure, prints what failed and closes with one line of totals. Stacks that it
// started are down when it returns, also when ctx ended it. Its error is ErrCheck.
func (c *Check) Run(ctx context.Context, parts ...Part) error {
	started := time.Now()
	err := c.prepare(ctx)
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
		verdict = "FAILED"
	}
	c.Out.Line("%7.1f s  total: %s", time.Since(started).Seconds(), verdict)
	c.Out.Line("tests: %v", c.tally) // alone on its line, for tools that read it
	if err != nil {
		return ErrCheck
	}
	return nil
}

func (c *Check) runAll(ctx context.Context, parts []Part) error {
	run := map[Part]func(context.Context) error{Lint: c.lint, Unit: c.unit, Prove: c.prove, Infra: c.infra, E2E: c.e2e}
	var failed []error
	for _, part := range parts {
		if err := run[part](ctx); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			return errors.Join(append(failed, ctx.Err())...)
		}
	}
	return errors.Join(failed...)
}

// prepare installs the tools beside the longest build.
func (c *Check) prepare(ctx context.Context) error {
	var lanes errgroup.Group
	lanes.Go(func() error { return InstallTools(ctx, c.Root, c.Out) })
	lanes.Go(func() error { return c.Out.Step("build CDK app", func() error { return buildInfra(ctx, c.Root) }) })
	return lanes.Wait()
}

// lint checks the formatting, that each go.mod names what its module needs, and that the compose file is YAML; and it runs
// vet, staticcheck and, over the workflows, actionlint.
func (c *Check) lint(ctx context.Context) error {
	staticcheck := filepath.Join(emulator.StaticcheckTool().Directory(c.Root), "staticcheck")
	everything := append([]string{"-tags", "e2e,prove,browser"}, packages(modules...)...)
	python := filepath.Join(emulator.MinistackTool().Directory(c.Root), "venv", "bin", "python")
	steps := []struct {
		name string
		work func() error
	}{
		{"gofmt", func() error { return c.formatted(ctx) }},
		{"go mod tidy", func() error { return c.tidy(ctx) }},
		{"go vet", func() error { return emulator.Run(ctx, c.Root, nil, "go", append([]string{"vet"}, everything...)...) }},
		{"go vet, modules by themselves", func() error {
			var failed []error
			for _, module := range outsideModules {
				failed = append(failed, emulator.Run(ctx, filepath.Join(c.Root, module), []string{"GOWORK=off"}, "go", "vet", "./..."))
			}
			return errors.Join(failed...)
		}},
		{"staticcheck", func() error { return emulator.Run(ctx, c.Root, nil, staticcheck, everything...) }},
		{"actionlint", func() error {
			return emulator.Run(ctx, c.Root, nil, filepath.Join(emulator.ActionlintTool().Directory(c.Root), "actionlint"))
		}},
		{"compose file", func() error {
			return emulator.Run(ctx, c.Root, nil, python, "-c", composeCheck, "localstack/compose.yaml", localstackhost.Version)
		}},
	}
	var failed []error
	for _, step := range steps {
		failed = append(failed, c.Out.Step(step.name, step.work))
	}
	return errors.Join(failed...)
}

// composeCheck holds the compose file against what the stack expects of it: the version, and an address of this machine.
const composeCheck = `
import sys, yaml
service = yaml.safe_load(open(sys.argv[1]))["services"]["localstack"]
assert service["image"].endswith(":" + sys.argv[2]), service["image"]
assert service["environment"]["GATEWAY_LISTEN"].startswith("127.0.0.1:"), service["environment"]
`

// tidy fails with what `go mod tidy` would change. Each module is looked at without go.work, as those who require it do.
func (c *Check) tidy(ctx context.Context) error {
	var failed []error
	for _, module := range append(slices.Clone(modules), outsideModules...) {
		err := emulator.Run(ctx, filepath.Join(c.Root, module), []string{"GOWORK=off"}, "go", "mod", "tidy", "-diff")
		if err != nil {
			failed = append(failed, fmt.Errorf("module %s: %w", module, err))
		}
	}
	return errors.Join(failed...)
}

// formatted fails with the names of files that gofmt would change.
func (c *Check) formatted(ctx context.Context) error {
	var files []string
	err := filepath.WalkDir(c.Root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{".git", ".local", "node_modules"}, entry.Name()) {
			return fs.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".go" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, "gofmt", append([]string{"-l"}, files...)...).CombinedOutput()
	if err != nil || len(output) > 0 {
		return fmt.Errorf("gofmt would change:\n%s", output)
	}
	return nil
}

// unit runs the tests of every module but the CDK app's, the store's against every DynamoDB emulator that is installed. The
// race detector needs a C compiler.
func (c *Check) unit(ctx context.Context) error {
	endpoints := localtool.Dynoxide
	if emulator.DynamoDBLocalTool().Installed(c.Root) {
		endpoints += "," + localtool.DynamoDBLocal
	} else {
		c.leftOut = append(c.leftOut, "store tests on DynamoDB Local (they need Java 17 and Maven)")
	}
	others := crashes
	if !emulator.MkDocsTool().Installed(c.Root) {
		c.leftOut = append(c.leftOut, "the documentation site (it needs Python 3.11)")
		others += "|^TestSite"
	}
	arguments := append([]string{"-skip", others}, packages(unitModules()...)...)
	if exec.CommandContext(ctx, "gcc", "--version").Run() == nil {
		arguments = append([]string{"-race"}, arguments...)
	}
	err := c.Out.Step("unit and store tests on "+endpoints, func() error {
		return c.count(goTest(ctx, c.Root, []string{"IDEM_STORE_ENDPOINTS=" + endpoints}, arguments...))
	})
	return errors.Join(err, c.Out.Step("the application, crashing at every call", func() error {
		return c.count(goTest(ctx, c.Root, nil, "-run", crashes, "./functions/internal/payments"))
	}), c.console(ctx))
}

// crashes is a test of a hundred thousand runs, each in one goroutine: the race detector would find nothing there, and take
// minutes for it.
const crashes = "^TestCrashAtEveryCall$"

// prove explores the protocol within its small bounds. The rules have their switches in this build only.
func (c *Check) prove(ctx context.Context) error {
	return c.Out.Step("the protocol, explored", func() error {
		return c.count(goTest(ctx, c.Root, nil, "-tags", "prove", "./idem/protocol/..."))
	})
}

func (c *Check) infra(ctx context.Context) error {
	return c.Out.Step("infra tests", func() error {
		return c.count(goTest(ctx, filepath.Join(c.Root, "infra"), quietNode, "./..."))
	})
}

func (c *Check) count(counted tally, err error) error {
	c.tally.add(counted)
	return err
}

// e2e runs the end-to-end tests on each emulator.
func (c *Check) e2e(ctx context.Context) error {
	if tests, _ := filepath.Glob(filepath.Join(c.Root, "localstack", "e2e", "*_test.go")); len(tests) == 0 {
		c.leftOut = append(c.leftOut, "end-to-end tests (there are none in localstack/e2e)")
		return nil
	}
	first := suite{emulator: Ministack, name: "ministack", killLoop: true, rehearse: true}
	// The second stack is the other one wherever there is a choice, so that the tests hold with it and without.
	second := suite{emulator: LocalStack, name: "localstack", encryption: true, outbox: "sqs"}
	if !localstackhost.Tool().Installed(c.Root) && !dockerAnswers(ctx) {
		c.leftOut = append(c.leftOut, "end-to-end tests on LocalStack (they need Python 3.13, a JDK 17 and Maven, or Docker)")
		second.emulator, second.name = Ministack, "ministack-sqs"
	}
	err := c.e2eOn(ctx, first)
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, c.e2eOn(ctx, second))
}

// suite is a stack that the end-to-end tests run on.
type suite struct {
	emulator   Emulator
	name       string
	encryption bool
	outbox     string
	// killLoop has the kill loop run there, too.
	killLoop bool
	// rehearse has runbooks rehearsed there at the end.
	rehearse bool
}

// e2eOn brings up a stack of its own, beside any that a person runs, tests it and takes it down whatever happened.
func (c *Check) e2eOn(ctx context.Context, on suite) (err error) {
	state := filepath.Join(".local", "test-"+on.name)
	s, err := New(Options{
		Root: c.Root, State: state, EnvFile: filepath.Join(state, "run.env"), Emulator: on.emulator, FaultProxy: true,
		Traces: true, Encryption: on.encryption, Outbox: on.outbox,
		Contexts: map[string]string{"retainTables": strconv.FormatBool(on.rehearse)},
	}, c.Out)
	if err != nil {
		return err
	}
	if err := s.Down(ctx); err != nil { // what a killed run may have left
		return err
	}
	defer func() { err = errors.Join(err, s.Down(context.WithoutCancel(ctx))) }()
	if err := s.Up(ctx); err != nil {
		return err
	}
	others := killLoop
	if !emulator.SchemathesisTool().Installed(c.Root) {
		c.leftOut = append(c.leftOut, fmt.Sprintf("the API on %s against its OpenAPI document (it needs Python 3.11)", on.name))
		others += "|^TestAPIKeepsToItsDocument$"
	}
	err = c.Out.Step("end-to-end tests on "+on.name, func() error {
		environment := []string{"IDEM_E2E_ENV=" + s.options.EnvFile}
		return c.count(goTest(ctx, c.Root, environment, "-tags", "e2e", "-count=1", "-timeout", "20m", "-skip", others, "./localstack/e2e/..."))
	})
	if on.killLoop && ctx.Err() == nil {
		err = errors.Join(err, c.killLoopOn(ctx, s, on))
	}
	if on.rehearse && ctx.Err() == nil {
		err = errors.Join(err, c.Out.Step("runbooks rehearsed on "+on.name, func() error { return c.Rehearse(ctx, s) }))
	}
	return err
}

// Strict tells whether the environment asks for everything: CI=true.
func Strict() bool { return os.Getenv("CI") == "true" }
