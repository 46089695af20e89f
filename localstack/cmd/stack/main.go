// Command stack runs the application on this machine, tests it there, and deploys it to AWS. The Makefile's targets call it.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/progress"
	"github.com/idem-go/idem-aws/localstack/stack"
)

type arguments struct {
	Local local `embed:""`

	Tools     toolsCommand     `cmd:"" help:"Install the pinned tools into .local/tools."`
	CDK       cdkCommand       `cmd:"" name:"cdk" help:"Print the path of the pinned CDK's command line, installed where it is missing."`
	Run       runCommand       `cmd:"" help:"Start the stack, send example requests and follow the logs."`
	Up        upCommand        `cmd:"" help:"Start the stack, or update it."`
	Down      downCommand      `cmd:"" help:"Stop what up started."`
	Status    statusCommand    `cmd:"" help:"Show which parts of the stack run."`
	Logs      logsCommand      `cmd:"" help:"Follow the logs of the functions."`
	Invoke    invokeCommand    `cmd:"" help:"Call one function with an event."`
	Build     buildCommand     `cmd:"" help:"Build the functions for Lambda."`
	Test      testCommand      `cmd:"" help:"Run the checks: lint, unit, infra, e2e."`
	Flakes    flakesCommand    `cmd:"" help:"Run all checks again and again on the same code, and tell which tests failed in how many runs."`
	LintAll   lintAllCommand   `cmd:"" help:"Run the linters that take long to install."`
	Chaos     chaosCommand     `cmd:"" help:"Kill processes at random under load, on a stack of its own, and check what is left."`
	Rehearse  rehearseCommand  `cmd:"" help:"Lose data under load and recover it by the runbooks, on a stack of its own, and count the money."`
	Upgrade   upgradeCommand   `cmd:"" name:"rehearse-upgrade" help:"Deploy this release over an earlier one and go back under load, on a stack of its own, and count the money."`
	Bootstrap bootstrapCommand `cmd:"" help:"Prepare a stage's account and Region for deployments."`
	Deploy    deployCommand    `cmd:"" help:"Deploy a stage to AWS with your credentials."`
	Diff      diffCommand      `cmd:"" help:"Show what deploying a stage would change."`
	Destroy   destroyCommand   `cmd:"" help:"Remove a stage's stack from AWS."`
	Idemctl   idemctlCommand   `cmd:"" help:"Run the operator's command on a deployed stage."`
	Docs      docsCommand      `cmd:"" help:"Build the documentation site and check it."`
	Dynamodb  dynamodbCommand  `cmd:"" help:"Start an emulator of DynamoDB with the tables of an application, until Ctrl-C."`

	Release         releaseCommand         `cmd:"" help:"Check a release, and make its commit and tags. Nothing is pushed."`
	ReleaseCheck    releaseCheckCommand    `cmd:"" help:"Install this checkout as if it were released, and compare two builds."`
	ReleaseClients  releaseClientsCommand  `cmd:"" help:"Build the packages of the TypeScript and the Python client."`
	ReleaseBinaries releaseBinariesCommand `cmd:"" help:"Build what is attached to a release, on its tag."`
}

// local are the options that every local stack has.
type local struct {
	State        string         `default:".local/stack" help:"Folder of the stack's logs, pid files and outputs."`
	Env          string         `default:".local/run.env" help:"File to write variables for clients and tests to."`
	Emulator     stack.Emulator `default:"ministack" enum:"ministack,localstack" env:"EMULATOR" help:"What to deploy to: ${enum}."`
	Port         int            `default:"4566" help:"Port of the emulator on 127.0.0.1; 0 takes a free one."`
	ProviderPort int            `default:"4580" help:"Port of the provider simulator; 0 takes a free one."`
	FaultProxy   bool           `help:"Put the fault proxy between functions and DynamoDB."`
	Traces       string         `default:"off" enum:"off,on" env:"TRACES" help:"Start an OpenTelemetry collector, and send it the functions' traces: ${enum}."`
	IAM          string         `default:"off" enum:"off,on" env:"IAM" help:"Have ministack deny what no policy of a role allows, as AWS does: ${enum}. The policies of queues, which demand TLS, are replaced."`
	Encryption   string         `default:"" enum:",off,on" env:"ENCRYPTION" help:"Encrypt stored responses and payloads per tenant: off or on. Default: on for rehearsals, as production stages have it, otherwise off."`
	Outbox       string         `default:"" enum:",streams,sqs" env:"OUTBOX" help:"How new messages reach the worker: streams or sqs. Default: sqs for rehearsals, as production stages have it, otherwise streams."`
}

// options are those of a stack with the defaults of a team's own: plain, with a worker that reads the stream.
func (l local) options(root string) stack.Options {
	return stack.Options{Root: root, Emulator: l.Emulator, Encryption: l.Encryption == "on", Outbox: cmp.Or(l.Outbox, stack.OutboxStreams)}
}

// rehearsed are those of a stack for rehearsals: with the defaults of a production stage, which is what a loss or an upgrade happens to.
func (l local) rehearsed(root, state string) stack.Options {
	return stack.Options{
		Root: root, State: state, EnvFile: filepath.Join(state, "run.env"), Emulator: stack.Ministack, FaultProxy: true,
		Encryption: cmp.Or(l.Encryption, "on") == "on", Outbox: cmp.Or(l.Outbox, stack.OutboxSQS),
	}
}

func (l local) open(root string, out *progress.Printer) (*stack.Stack, error) {
	options := l.options(root)
	options.State, options.EnvFile, options.Port, options.ProviderPort = l.State, l.Env, l.Port, l.ProviderPort
	options.FaultProxy, options.Traces, options.IAM = l.FaultProxy, l.Traces == "on", l.IAM == "on"
	return stack.New(options, out)
}

// call is what every command works with.
type call struct {
	ctx   context.Context
	root  string
	out   *progress.Printer
	local local
}

func (s call) stack() (*stack.Stack, error) { return s.local.open(s.root, s.out) }

// shareBuilds has every go command build without the path of the checkout, so that all checkouts of a machine share what Go has
// built: another clone's tests begin minutes earlier.
func shareBuilds(ctx context.Context) error {
	flags, err := exec.CommandContext(ctx, "go", "env", "GOFLAGS").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	return os.Setenv("GOFLAGS", strings.TrimSpace(strings.TrimSpace(string(flags))+" -trimpath"))
}

func main() {
	var a arguments
	cli := kong.Parse(&a, kong.Name("stack"), kong.Description("The payments application on this machine."), kong.UsageOnError())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := localtool.Root()
	if err == nil {
		err = shareBuilds(ctx)
	}
	if err == nil {
		err = cli.Run(call{ctx: ctx, root: root, out: progress.New(os.Stdout), local: a.Local})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		os.Exit(1)
	}
}
