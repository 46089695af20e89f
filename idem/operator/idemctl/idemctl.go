// Package idemctl is the operator's command line, over package operator. It inspects operations, lists what is stuck,
// unknown or dead, and starts package console. It reads by default. It makes a change only with --write, a reason,
// and what the operator saw.
//
// An application links it with its own topics, probes and tables, because only those say what its operations did:
//
//	func main() { os.Exit(idemctl.Main(idemctl.App{Build: build})) }
//
// Use [App].Commands to add commands of the application's own, which use the same audit log. For other tools than a
// command line use package operator.
package idemctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/console"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// The exit codes.
const (
	// ExitOK: read, done, or nothing to do.
	ExitOK = iota
	// ExitRefused: the fence or the contract refused it and nothing was changed; or nothing is there, there is drift, or
	// letters stay in the dead-letter queue.
	ExitRefused
	// ExitUsage: the command line, or what it names, or the environment can't be used; nothing was changed.
	ExitUsage
	// ExitTrouble: the store, a queue or the provider could not be asked. The audit log tells what was begun.
	ExitTrouble
)

// App is what the application brings. The zero App is no application: it has the commands that need none, such as new.
type App struct {
	// Build makes the desk, by the environment. Without it every command that needs a desk says so.
	Build func(context.Context) (*operator.Desk, error)
	// Find names the operation that made something of the application's own, such as a payment, by its tenant and its id; ""
	// where there is none. It may take the beginning of an id, and returns an [operator.AmbiguousError] where several begin so.
	// Without it inspect knows operations, messages and keys.
	Find func(ctx context.Context, tenant, id string) (idem.OperationID, error)
	// Letters goes through the dead-letter queue, at most so many letters, and gives each copy of a dead message to redrive,
	// which is nil in a dry run. again must say whether redrive returned nil for another letter of this message in this run: no run
	// redrives a message twice. redrive returns [outbox.ErrMessageGone] of a letter that is not needed because its message has
	// expired. Letters returns what it did, for JSON, also beside an error; nil where that is nothing. Where that is
	// a fmt.Stringer, the audit log has its words. Where some failed the error
	// is [ErrLettersLeft]. Without it there is no `redrive --dead-letters`.
	Letters func(ctx context.Context, most int, redrive func(ctx context.Context, letter outbox.DeadLetter, again bool) error) (any, error)
	// Drift compares a window, writes its report, and says whether nothing drifts. The report is printed once it is whole, and what a
	// terminal would act on in it is escaped, but for tabs and the ends of lines. Without it there is no `drift`.
	Drift func(ctx context.Context, w Window, asJSON bool, out io.Writer) (clean bool, err error)
	// Console completes what `idemctl console` is made with: About, Drift, times. Desk, Find and Actor are there already.
	// Default: nothing is added.
	Console func(*console.Config) error
	// Commands are the application's own. Default: none.
	Commands []Command
	// Now is the clock that tables say "3 m ago" by. Default time.Now.
	Now func() time.Time
}

// Window is a span of creation times; a zero time is the application's default.
type Window struct {
	// From is the first instant of the span, and To the first after it.
	From, To time.Time
	// Tenant limits the span to one tenant; empty means all of them.
	Tenant string
}

// Main runs the process's own command line, until an interrupt, and returns the exit code.
func Main(app App) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return Run(ctx, app, os.Args[1:], os.Stdout, os.Stderr)
}

// session is one command line on its way.
type session struct {
	ctx context.Context
	// until ends with the process, and not with the command line's patience.
	until context.Context
	app   App
	out   io.Writer
	errs  io.Writer
	cli   *commands
	// built is the desk, once it was asked for.
	built *operator.Desk
}

// desk makes the desk, once. What it lacks is in the environment.
func (s *session) desk() (*operator.Desk, error) {
	if s.built != nil {
		return s.built, nil
	}
	if s.app.Build == nil {
		return nil, &usageError{
			"This idemctl is linked with no application, so it knows no tables.",
			"Run the idemctl of your application: a main package that calls idemctl.Main with its App. Here only new, conform, completion and man work.",
		}
	}
	desk, err := s.app.Build(s.ctx)
	if err != nil {
		return nil, Environment(err)
	}
	s.built = desk
	return desk, nil
}

// Run runs a command line and returns the exit code. Answers go to stdout; why there is none goes to stderr.
func Run(ctx context.Context, app App, args []string, stdout, stderr io.Writer) int {
	var (
		cli   commands
		asked bool // for help
	)
	if app.Now == nil {
		app.Now = time.Now
	}
	parser, err := kong.New(&cli, append(app.options(), kong.Name("idemctl"), kong.Writers(stdout, stderr), kong.Exit(func(int) { asked = true }),
		kong.Description("Shows operations and messages, lists those that are stuck, unknown or dead, and changes them with --write. "+
			"Exits with 0: done, 1: refused or drift, 2: usage, 3: trouble."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))...)
	if err != nil {
		fmt.Fprintln(stderr, "idemctl:", err)
		return ExitUsage
	}
	if len(args) > 0 && args[0] == "help" { // as git and go have it: help inspect is inspect --help
		args = append(slices.Clone(args[1:]), "--help")
	}
	command, err := parser.Parse(args)
	switch {
	case asked:
		return ExitOK
	case err != nil:
		complain(stderr, misread(err))
		return ExitUsage
	}
	until := ctx
	ctx, cancel := context.WithTimeout(ctx, cli.Within)
	defer cancel()
	if err = cli.environment(); err == nil {
		s := &session{ctx: ctx, until: until, app: app, out: stdout, errs: stderr, cli: &cli}
		err = command.Run(s, &Desk{s}, parser)
	}
	complain(stderr, err)
	return exitOf(err)
}

// ErrLettersLeft: some letters could not be redriven, and stay in the queue; the report says which, and why.
var ErrLettersLeft = errors.New("letters failed, and stay in the queue")

// errDrift is the command drift's; its report has been written.
var errDrift = errors.New("there is drift")

func exitOf(err error) int {
	var (
		usage    *usageError
		invalid  *operator.InvalidError
		config   *idem.ConfigError
		unlogged *operator.UnloggedError
		refused  *refusedError
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage), errors.As(err, &invalid), errors.As(err, &config):
		return ExitUsage
	case errors.As(err, &unlogged):
		return ExitTrouble
	case errors.Is(err, errDrift), errors.Is(err, ErrLettersLeft), errors.Is(err, ErrDiffers), errors.As(err, &refused), operator.Refused(err):
		return ExitRefused
	}
	return ExitTrouble
}
