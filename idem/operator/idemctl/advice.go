package idemctl

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/storage"
)

// usageError is a command line, or what it names, that can't be used. Nothing was read.
type usageError struct {
	// wrong says what is wrong, and do what to do about it.
	wrong, do string
}

func (e *usageError) Error() string { return e.wrong }

// misread is what kong says of a command line.
func misread(err error) error {
	help := "idemctl --help"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if command := parse.Context.Selected(); command != nil {
			help = "idemctl " + command.Path() + " --help"
		}
	}
	return &usageError{err.Error(), adviceOnLine(err.Error()) + "Run " + help + ": it lists what the command takes."}
}

// adviceOnLine is what to write instead, where what kong says does not show it: a sentence and a space, or nothing.
func adviceOnLine(wrong string) string {
	switch {
	case strings.HasPrefix(wrong, "expected one of \"inspect\""):
		return "Begin with idemctl list unknown, or idemctl inspect and the id. "
	case strings.HasPrefix(wrong, "expected \"<queue>\""):
		return "Say which queue: idemctl list stuck, unknown or dead. "
	case strings.HasPrefix(wrong, "missing flags:") && strings.Contains(wrong, "--seen"):
		return "Run idemctl inspect with the id, look at it, and copy what it shows as seen into --seen. --reason says why, with the ticket. "
	case strings.HasPrefix(wrong, "missing flags: --reason"):
		return "Give --reason \"…\": one line on why, with the ticket. It goes to the audit log. "
	case strings.Contains(wrong, "parsing time"):
		return "Give a time in RFC 3339, such as 2026-11-21T09:00:00Z. "
	case strings.Contains(wrong, "expected duration"):
		return "Give hours, minutes or seconds, such as 168h or 90m; there are no days. "
	}
	return ""
}

// complain writes an error for a person: what is wrong, and what to do next.
func complain(out io.Writer, err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(out, "idemctl:", visibleLines(inWords(err)))
	fmt.Fprintln(out, "next:", advice(err))
}

// packages are the names that errors of the library begin with. They mean nothing to an operator.
var packages = regexp.MustCompile(`(^|: |\n)(?:operator|outbox|idem|idemctl|dynamo|storage|conform): `)

// inWords is an error without the names of packages.
func inWords(err error) string { return packages.ReplaceAllString(err.Error(), "$1") }

// manualPage is where the operator's manual can be read: an adopter's operator has no checkout of idem.
const manualPage = "https://github.com/idem-go/idem-aws/blob/main/docs/operator.md"

// What to do next, where several errors have the same answer.
const (
	adviceEnvironment = "Set the variables in the environment, or in a file that you give with --env-file. They are listed at " + manualPage + "#variables"
	adviceInspect     = "Nothing was changed. Run idemctl inspect with the id: it shows what is there now and what may be done, and from when."
	adviceTrouble     = "Run the command again. If it was a change with --write, run idemctl audit first: it shows whether it was made."
)

// advice is what to do about an error: a sentence or two.
func advice(err error) string {
	var (
		usage    *usageError
		refused  *refusedError
		unlogged *operator.UnloggedError
		unheard  *unansweredError
		invalid  *operator.InvalidError
		several  *operator.AmbiguousError
	)
	switch {
	case errors.As(err, &usage):
		return usage.do
	case errors.As(err, &several):
		return "Give more characters of the id that you mean, or all of it."
	case errors.As(err, &refused):
		return refused.do
	case errors.As(err, &unheard):
		return "Check the address, the files of headers, and that the service runs. The report says how many requests were sent, and how many may have been executed."
	case errors.As(err, &unlogged): // whatever else went wrong, nobody wrote down how it ended
		return "The change may have been made. Run idemctl inspect with the id to see whether it was; its entry in idemctl audit stays intended."
	case errors.As(err, &invalid):
		return adviceOnField(invalid.Field)
	case errors.Is(err, errDrift):
		return "The report says what differs. The runbook: " + manualPage + "#driftfound-driftfailed-driftfound-driftfailed"
	case errors.Is(err, ErrLettersLeft):
		return "The report says which letters, and why. Deal with that, and run the command again."
	case errors.Is(err, ErrDiffers):
		return "The answer says what is left to you."
	case operator.Refused(err):
		return adviceOnRefusal(err)
	}
	return adviceOnTrouble(err)
}

// adviceOnField is for a value that can't be used.
func adviceOnField(field string) string {
	switch field {
	case operator.FieldActor:
		return "Say who you are: --actor NAME, or IDEMCTL_ACTOR=NAME in the environment."
	case "reason":
		return "Give --reason \"…\": one line on why, with the ticket. It goes to the audit log."
	case "after":
		return "Leave --after out to begin the list anew, or copy what the list before this one ended with."
	case "refuse-before":
		return "Give the time of the cut-over. Nothing takes a later time back."
	}
	return "Give another value. Run the command with --help to see what it takes."
}

// adviceOnRefusal is for what the fence, or the contract, did not admit.
func adviceOnRefusal(err error) string {
	var (
		stale    *operator.StaleError
		record   *storage.RecordConflictError
		message  *storage.MessageConflictError
		response *idem.ResponseError
		bust     *idem.CacheBustError
		clock    *operator.ClockError
	)
	switch {
	case errors.As(err, &clock):
		return "Set this machine's clock by a time server, and try again."
	case errors.As(err, &stale) && stale.Lost():
		return "Nothing was changed: the provider may have been called after you looked, and what says so is lost. Ask the provider again, run idemctl inspect with the id, and decide by both."
	case errors.As(err, &stale), errors.As(err, &record), errors.As(err, &message):
		return "Nothing was changed: somebody wrote it after you looked. Run idemctl inspect with the id, and decide again by what it shows."
	case errors.Is(err, operator.ErrNotFound), errors.Is(err, idem.ErrNotLive):
		return "Check the id and the tenant, and that --env-file is of the right stage. What has expired is removed; idemctl audit --since 8760h may still name it."
	case errors.Is(err, storage.ErrOperationID):
		return "Give a whole id, op_ and 64 characters, or the first characters of one that a list shows."
	case errors.Is(err, operator.ErrSealed):
		return "Set KEYS_TABLE and KMS_KEY_ID as the functions have them, and use credentials that may decrypt. Where they are set, nobody can open it any more: only idemctl resolve ends it, and idemctl inspect says how."
	case errors.Is(err, operator.ErrNotLater):
		return "Nothing was changed, and nothing needs to be: the later instant protects more. Run idemctl refuse-before to see it."
	case errors.As(err, &response), errors.Is(err, idem.ErrResponseTooLarge):
		return "Nothing was changed. Give the answer that the handler would have given: --status 200 to 599, and a body that can be stored."
	case errors.As(err, &bust):
		return "Nothing was changed. The answer can't be taken back; correct the effect by an operation of its own."
	case errors.Is(err, storage.ErrLossNotDated):
		return "Nothing was changed. Run idemctl refuse-before set with the time of the cut-over first. Where that refusal has been ended, load the stack's variables again instead: another cut-over would refuse every client."
	case errors.Is(err, operator.ErrRefused):
		return "Nothing was changed. The message says which rule forbids it."
	}
	return adviceInspect
}
