package idemctl

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/idem/operator"
)

// Command is a command of the application's own beside the library's.
type Command struct {
	// Name is what is typed, and Help the line that is shown beside it.
	Name, Help string
	// Grammar is a pointer to a struct in the notation of package kong, whose commands have Run(*Desk) error, and may have
	// Validate() error for what the command line says. It serves one command line.
	Grammar any
}

// Reasoned is what every change needs. The grammar of a command that changes something embeds it.
type Reasoned struct {
	// Reason is why the change is made, on one line. It is required.
	Reason string `required:"" help:"Why you make this change, on one line. It goes to the audit log."`
	// Actor is who makes it. Default: the environment variable IDEMCTL_ACTOR, else USER.
	Actor string `env:"IDEMCTL_ACTOR,USER" help:"Who you are. It goes to the audit log."`
	// Write makes the change. Without it the command only says what it would do.
	Write bool `help:"Make the change. Without it the command only says what it would do."`
}

// Change is what [operator.Desk.Do] takes.
func (r Reasoned) Change() operator.Change {
	return operator.Change{Actor: r.Actor, Reason: r.Reason, DryRun: !r.Write}
}

// ErrDiffers says that what a command has looked at is not as it must be. The answer says in what; the exit code is [ExitRefused].
var ErrDiffers = errors.New("idemctl: it is not as it must be")

// Environment says that the environment lacks something, or has something that can't be used: nothing was read, and the exit code is
// [ExitUsage]. A nil error stays nil. Trouble stays as it is, such as a secret that could not be read: no variable mends that, the advice is by
// what AWS answered, and the exit code is [ExitTrouble].
func Environment(err error) error {
	if err == nil || isTrouble(err) {
		return err
	}
	return &usageError{err.Error(), adviceEnvironment}
}

// Desk is the operator's desk as a command of the application's own sees it.
type Desk struct{ s *session }

// Context ends with the command line's patience.
func (d *Desk) Context() context.Context { return d.s.ctx }

// Now is the time by the application's clock.
func (d *Desk) Now() time.Time { return d.s.app.Now() }

// Do carries a task out at the application's desk.
func (d *Desk) Do(t operator.Task, ch operator.Change) (operator.Result, error) {
	desk, err := d.s.desk()
	if err != nil {
		return operator.Result{}, err
	}
	return desk.Do(d.s.ctx, t, ch)
}

// Unfinished says whether an error leaves nothing to show: not where a change was made and only its entry could not be ended. Where
// the change itself failed or was refused it does, whatever became of the entry.
func Unfinished(err error) bool {
	if err == nil || reflect.TypeOf(err) == reflect.TypeFor[*operator.UnloggedError]() {
		return false
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(several.Unwrap(), Unfinished)
	}
	inner := errors.Unwrap(err)
	return inner == nil || Unfinished(inner)
}

// Show writes an answer: as JSON, or the lines.
func (d *Desk) Show(answer any, lines ...string) error {
	return d.s.show(answer, func(t *table) {
		for _, line := range lines {
			t.line("%s", visibleLines(line))
		}
	})
}

// Rows writes an answer: as JSON, or rows below their header.
func (d *Desk) Rows(answer any, header []string, rows [][]string) error {
	return d.s.show(answer, func(t *table) {
		columns := make([]column, len(header))
		for i, name := range header {
			columns[i] = column{name, hasText(rows, i)}
		}
		if t.columns(columns, rows); len(rows) == 0 {
			t.line("nothing")
		}
	})
}

// hasText says whether a column has texts of several words. They may be cut: nobody copies them.
func hasText(rows [][]string, i int) bool {
	return slices.ContainsFunc(rows, func(row []string) bool { return strings.Contains(row[i], " ") })
}

// Note says something beside the answer, on stderr: a line.
func (d *Desk) Note(line string) { d.s.note(line) }

func (s *session) note(line string) { fmt.Fprintln(s.errs, "idemctl:", visibleLines(line)) }

// options give the parser the application's own commands.
func (a App) options() []kong.Option {
	var options []kong.Option
	for _, c := range a.Commands {
		options = append(options, kong.DynamicCommand(c.Name, c.Help, "", c.Grammar))
	}
	return options
}
