package idemctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// awsError is an answer of AWS, as the SDK has it.
type awsError string

func (e awsError) Error() string     { return "api error " + string(e) }
func (e awsError) ErrorCode() string { return string(e) }

// uncalled is an operation of AWS that came to an error, as the SDK has it.
type uncalled struct{ error }

func (uncalled) Service() string   { return "DynamoDB" }
func (uncalled) Operation() string { return "GetItem" }
func (u uncalled) Unwrap() error   { return u.error }

// Each error says in words what is wrong, and what to do next, and has one exit code.
func TestErrorsSayWhatToDoNext(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		do   string
		exit int
	}{
		"the command line":        {&usageError{"No.", "Do that."}, "Do that.", ExitUsage},
		"nobody":                  {&operator.InvalidError{Field: operator.FieldActor, Rule: "must be given"}, "IDEMCTL_ACTOR", ExitUsage},
		"no reason":               {&operator.InvalidError{Field: "reason", Rule: "must be given"}, "--reason", ExitUsage},
		"another list":            {&operator.InvalidError{Field: "after", Rule: "must be"}, "--after", ExitUsage},
		"an instant ahead":        {&operator.InvalidError{Field: "refuse-before", Rule: "must be"}, "cut-over", ExitUsage},
		"another value":           {&operator.InvalidError{Field: "limit", Rule: "must be"}, "--help", ExitUsage},
		"written since":           {&operator.StaleError{Subject: "op", Seen: "a", Now: "b"}, "decide again", ExitRefused},
		"written meanwhile":       {fmt.Errorf("x: %w", &storage.RecordConflictError{}), "decide again", ExitRefused},
		"a message meanwhile":     {&storage.MessageConflictError{}, "decide again", ExitRefused},
		"not there":               {operator.ErrNotFound, "right stage", ExitRefused},
		"not there any more":      {idem.ErrNotLive, "right stage", ExitRefused},
		"no id":                   {storage.ErrOperationID, "whole id", ExitRefused},
		"sealed":                  {operator.ErrSealed, "KMS_KEY_ID", ExitRefused},
		"an earlier instant":      {operator.ErrNotLater, "refuse-before", ExitRefused},
		"too early":               {&outbox.RefusalError{ID: "op.1", Reason: "too early"}, "from when", ExitRefused},
		"another state":           {&idem.TransitionError{}, "inspect", ExitRefused},
		"an answer that stays":    {&idem.CacheBustError{}, "can't be taken back", ExitRefused},
		"a status":                {&idem.ResponseError{Status: 1}, "--status", ExitRefused},
		"a rule":                  {fmt.Errorf("%w: spent", operator.ErrRefused), "which rule", ExitRefused},
		"drift":                   {errDrift, "report", ExitRefused},
		"letters":                 {ErrLettersLeft, "letters", ExitRefused},
		"something differs":       {ErrDiffers, "left to you", ExitRefused},
		"nobody wrote it down":    {errors.Join(operator.ErrNotFound, &operator.UnloggedError{Entry: "au", Cause: errors.New("down")}), "may have been made", ExitTrouble},
		"refused, and unheard":    {errors.Join(fmt.Errorf("%w: spent", operator.ErrRefused), fmt.Errorf("x: %w", &storage.OutcomeUnknownError{Cause: context.DeadlineExceeded})), "reply was lost", ExitTrouble},
		"refused, and trouble":    {fmt.Errorf("x: %w", errors.Join(operator.ErrNotFound, errors.New("down"))), "idemctl audit", ExitTrouble},
		"all are refused":         {errors.Join(operator.ErrNotFound, errors.Join(&outbox.RefusalError{ID: "op.1"})), "right stage", ExitRefused},
		"refused because of it":   {fmt.Errorf("%w: %w", operator.ErrRefused, errors.New("spent")), "which rule", ExitRefused},
		"evidence":                {operator.ErrUnsettled, "above, in the log line outbox.settle_failed", ExitTrouble},
		"nothing is decided":      {operator.ErrUndecided, "once the provider answers", ExitTrouble},
		"a message that died":     {operator.ErrDied, "idemctl inspect", ExitTrouble},
		"a sweep that failed":     {&operator.SweepError{}, "leave the rest to the scheduled sweep", ExitTrouble},
		"a sweep of another's":    {&operator.SweepError{Report: outbox.Report{Messages: outbox.Counts{Errors: 2, OtherRelease: 2}}}, "Another release wrote it", ExitTrouble},
		"a sweep, some another's": {&operator.SweepError{Report: outbox.Report{Messages: outbox.Counts{Errors: 2, OtherRelease: 1}}}, "leave the rest to the scheduled sweep", ExitTrouble},
		"another scope secret":    {idem.ErrScopeSecret, "scope secret", ExitTrouble},
		"another release's topic": {&outbox.TopicError{Topic: "t"}, "Another release", ExitTrouble},
		"an unusable value":       {&idem.ConfigError{Field: "Window", Rule: "must be above 0"}, "another value", ExitUsage},
		"a lost reply":            {fmt.Errorf("x: %w", &storage.OutcomeUnknownError{Cause: context.DeadlineExceeded}), "reply was lost", ExitTrouble},
		"too slow":                {fmt.Errorf("read: %w", context.DeadlineExceeded), "--within", ExitTrouble},
		"an interrupt":            {context.Canceled, "stopped it", ExitTrouble},
		"a session that is over":  {awsError("ExpiredTokenException"), "Sign in", ExitTrouble},
		"no permission":           {awsError("AccessDeniedException"), "may not do this", ExitTrouble},
		"no table":                {awsError("ResourceNotFoundException"), "AWS_REGION", ExitTrouble},
		"a session of SSO":        {uncalled{errors.New("get identity: get credentials: the SSO session has expired or is invalid: expired")}, "Sign in again", ExitTrouble},
		"a session of SSO, told":  {uncalled{awsError("UnauthorizedException")}, "Sign in again", ExitTrouble},
		"a grant of SSO":          {uncalled{awsError("InvalidGrantException")}, "Sign in again", ExitTrouble},
		"a token that is missing": {uncalled{fmt.Errorf("get credentials: %w", &fs.PathError{Op: "open", Path: "/sso/cache", Err: syscall.ENOENT})}, "Sign in again", ExitTrouble},
		"no Region":               {uncalled{errors.New("endpoint rule error, Invalid Configuration: Missing Region")}, "Set AWS_REGION", ExitTrouble},
		"a folder that is none":   {&fs.PathError{Op: "open", Path: "none/f", Err: syscall.ENOENT}, "has room", ExitTrouble},
		"a full disk":             {fmt.Errorf("x: %w", &fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}), "has room", ExitTrouble},
		"too much":                {awsError("ThrottlingException"), "idemctl audit", ExitTrouble},
		"no connection":           {fmt.Errorf("x: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), "Check the network", ExitTrouble},
		"anything else":           {errors.New("down"), "idemctl audit", ExitTrouble},
	} {
		var out strings.Builder
		complain(&out, c.err)
		lines := strings.SplitN(strings.TrimSpace(out.String()), "\nnext: ", 2)
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "idemctl: ") || !strings.Contains(lines[1], c.do) {
			t.Errorf("%s: %q, want what to do: %q", name, out.String(), c.do)
		}
		if packages.MatchString(strings.TrimPrefix(lines[0], "idemctl: ")) {
			t.Errorf("%s: it names a package: %q", name, lines[0])
		}
		if got := exitOf(c.err); got != c.exit {
			t.Errorf("%s: exit code %d, want %d", name, got, c.exit)
		}
	}
}

// What a failed or refused change leaves is not shown as done, also where its entry could not be ended.
func TestChangeThatFailedIsUnfinishedWhateverBecameOfItsEntry(t *testing.T) {
	unlogged := &operator.UnloggedError{Entry: "au", Cause: errors.New("down")}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"made":                     {nil, false},
		"made, and not logged":     {errors.Join(nil, unlogged), false},
		"wrapped":                  {fmt.Errorf("x: %w", unlogged), false},
		"refused":                  {fmt.Errorf("%w: spent", operator.ErrRefused), true},
		"refused, and not logged":  {errors.Join(operator.ErrRefused, unlogged), true},
		"failed, and not logged":   {fmt.Errorf("x: %w", errors.Join(errors.New("down"), unlogged)), true},
		"two, and one is not done": {errors.Join(errors.Join(nil, unlogged), errors.New("down")), true},
	} {
		if got := Unfinished(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A command line that is incomplete, or has a value in another form, is answered by what to write.
func TestCommandLinesThatAreIncompleteAreAnsweredByWhatToWrite(t *testing.T) {
	for line, want := range map[string]string{
		"":                                     "Begin with idemctl list unknown",
		"list":                                 "idemctl list stuck, unknown or dead",
		"close op_1.1":                         "copy what it shows as seen into --seen",
		"close op_1.1 --seen x":                "one line on why, with the ticket",
		"sweep":                                "one line on why, with the ticket",
		"drift --from yesterday":               "such as 2026-11-21T09:00:00Z",
		"audit --since 2d":                     "such as 168h or 90m",
		"list lost":                            "Run idemctl list --help",
		"conform http://127.0.0.1:1 --body . ": "Run idemctl conform --help",
	} {
		var out, errs strings.Builder
		if code := Run(t.Context(), App{}, strings.Fields(line), &out, &errs); code != ExitUsage || !strings.Contains(errs.String(), "\nnext: ") || !strings.Contains(errs.String(), want) {
			t.Errorf("idemctl %s: exit code %d, %q, want %q", line, code, &errs, want)
		}
	}
}

// What AWS or the network answers is trouble, also where it is passed on as the environment's.
func TestTroubleIsNotOfTheEnvironment(t *testing.T) {
	for _, trouble := range []error{uncalled{awsError("AccessDeniedException")}, context.DeadlineExceeded, &net.OpError{Op: "dial", Err: errors.New("refused")}} {
		if err := Environment(fmt.Errorf("read the secret: %w", trouble)); !errors.Is(err, trouble) || exitOf(err) != ExitTrouble {
			t.Errorf("%v: exit code %d", err, exitOf(err))
		}
	}
	if err := Environment(errors.New("it is not set")); exitOf(err) != ExitUsage || Environment(nil) != nil {
		t.Errorf("%v: exit code %d", err, exitOf(err))
	}
}

// What an error links to is a heading of the manual.
func TestErrorsLinkToTheManual(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operator.md")
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(page), -1) {
		text := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors[strings.ReplaceAll(text, " ", "-")] = true
	}
	for _, err := range []error{Environment(errors.New("no table")), errDrift, &idem.ConfigError{}, idem.ErrScopeSecret} {
		_, anchor, linked := strings.Cut(advice(err), manualPage+"#")
		if !linked || !anchors[anchor] {
			t.Errorf("%v: %q leads to no heading", err, advice(err))
		}
	}
}
