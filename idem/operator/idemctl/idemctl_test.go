package idemctl_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

const ticket = "--reason=ticket 17"

// The transcripts in testdata are what an operator sees, story by story: command, answer, exit code.

func TestCompleted(t *testing.T) {
	w := newWorld(t)
	id := string(w.operation("acme", completed, delivered))
	w.now = noon.Add(time.Minute)
	w.types(0, "inspect", id)
	w.types(0, "inspect", id, "--output", "json")
	w.types(1, "cache-bust", id, "--seen", seenIn(w, id), ticket, "--write") // its commit wrote a message
	w.transcript()
}

// A charge at a provider without keys whose answer was lost, and that nobody can be asked about.
func TestUnknownCharge(t *testing.T) {
	w := newWorld(t)
	id := string(w.operation("acme", deferred, legacyUnknown))
	message := id + ".1"
	w.now = noon.Add(30 * time.Second)
	w.types(0, "list", "unknown")
	w.types(0, "list", "unknown", "--utc", "--wide", "--color", "always")
	w.types(0, "list", "unknown", "--output", "json")
	w.types(0, "inspect", message)
	seen := seenIn(w, message)
	w.types(1, "close", message, "--seen", seen, ticket, "--write") // too early
	resolve := []string{"resolve", message, "--seen", seen, "--delivered", "ch_1", ticket}
	w.types(0, resolve...)
	w.types(0, append(resolve, "--write")...)
	w.now = noon.Add(time.Minute)
	w.types(1, append(resolve, "--write")...)
	w.types(1, resolve...)
	w.types(0, "inspect", id)
	w.types(0, "audit")
	w.types(0, "audit", "--output", "json", "--limit", "1")
	w.transcript()
}

func TestDead(t *testing.T) {
	w := newWorld(t)
	id := string(w.operation("acme", deferred, dead))
	w.now = noon.Add(time.Hour)
	w.types(0, "list", "dead", "--tenant", "acme")
	w.types(0, "list", "dead", "--tenant", "bolt")
	w.types(0, "inspect", id)
	w.types(0, "redrive", id+".1", "--seen", seenIn(w, id+".1"), ticket, "--write", "--output", "json")
	w.types(0, "reconcile", id+".1", ticket, "--write") // which proves that it is absent
	w.types(0, "inspect", id)
	w.transcript()
}

// A row that can't be read is listed beside the others, with the reason.
func TestListShowsARowThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	ids := []string{string(w.operation("acme", deferred, dead)) + ".1", string(w.operation("bolt", deferred, dead)) + ".1"}
	w.store.On(faulty.Message, 1, faulty.Refuse(&storage.MalformedError{Cause: errors.New("attribute st is missing")}))
	out, _ := w.types(0, "list", "dead", "--wide")
	for _, want := range append(ids, "can't be read", "attribute st is missing", "payments.charges") {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// After a restore: the instant is set once, moves later only, and never far ahead.
func TestRefuseBefore(t *testing.T) {
	w := newWorld(t)
	w.types(0, "refuse-before")
	set := []string{"refuse-before", "set", "2026-11-21T11:30:02Z", ticket}
	w.types(0, set...)
	w.types(0, "refuse-before", "--output", "json")
	w.types(0, append(set, "--write")...)
	w.types(0, "refuse-before")
	w.types(0, append(set, "--write")...) // again: it stands
	w.types(idemctl.ExitRefused, "refuse-before", "set", "2026-11-21T11:30:01+00:00", ticket, "--write")
	w.types(idemctl.ExitUsage, "refuse-before", "set", "2026-11-21T12:05:01Z", ticket, "--write")
	w.types(idemctl.ExitUsage, "refuse-before", "set", "yesterday", ticket, "--write")
	w.types(0, "refuse-before", "set", "2026-11-21T12:00:02Z", ticket, "--write")
	w.types(0, "refuse-before", "show", "--output", "json")
	w.types(0, "audit")
	w.transcript()
}

// A payout whose first phase is done and whose second waits.
func TestBetweenPhases(t *testing.T) {
	w := newWorld(t)
	id := string(w.operation("acme", deferred, delivered, pending))
	w.now = noon.Add(time.Minute)
	w.types(0, "inspect", id)
	w.types(0, "list", "stuck")
	w.types(0, "sweep", ticket)
	w.types(0, "sweep", ticket, "--output", "json")
	w.types(0, "sweep", ticket, "--write")
	w.transcript()
}

// A wrapped handler that died: first its lease is over, then its outcome is unknown, then somebody knows.
func TestWrapped(t *testing.T) {
	w := newWorld(t)
	id := string(w.operation("acme", wrapped(storage.StateInProgress, "")))
	w.now = noon.Add(time.Minute)
	w.types(0, "list", "stuck")
	w.types(0, "list", "stuck", "--output", "json")
	w.types(0, "inspect", id)
	w.types(1, "release", id, "--seen", seenIn(w, id), ticket, "--write") // it was never unknown
	w.types(0, "sweep", ticket, "--write")
	w.types(0, "inspect", id)
	body := filepath.Join(t.TempDir(), "body")
	w.ok(os.WriteFile(body, []byte(`{"imported":17}`), 0o600))
	w.types(0, "reconcile", id, ticket, "--write") // too early to prove anything
	before := w.typed.Len()
	w.types(0, "resolve", id, "--seen", seenIn(w, id), "--status", "201", "--body", body, ticket, "--write")
	said := strings.ReplaceAll(w.typed.String()[before:], body, "answer.json")
	kept := w.typed.String()[:before]
	w.typed.Reset()
	w.typed.WriteString(kept + said)
	w.types(0, "inspect", id)
	w.transcript()
	if r := w.inner.Records()[0]; string(r.Response.Body) != `{"imported":17}` || r.Response.Header[0] != (idem.Field{Name: "Content-Type", Value: "application/json"}) {
		t.Errorf("stored %+v", r.Response)
	}
}

// The answer of a wrapped handler is stored under the content type that was given for it.
func TestAnAnswerHasTheContentTypeThatIsGiven(t *testing.T) {
	w := newWorld(t)
	id := string(w.operation("acme", wrapped(storage.StateUnknown, "")))
	body := filepath.Join(t.TempDir(), "body")
	w.ok(os.WriteFile(body, []byte("imported"), 0o600))
	w.types(0, "resolve", id, "--seen="+seenIn(w, id), "--status", "201", "--body", body, "--type", "text/plain", ticket, "--write")
	if r := w.inner.Records()[0]; len(r.Response.Header) != 1 || r.Response.Header[0] != (idem.Field{Name: "Content-Type", Value: "text/plain"}) {
		t.Errorf("stored %+v", r.Response)
	}
}

// seenIn is what inspect shows of it: a person copies it.
func seenIn(w *world, id string) string {
	w.Helper()
	desk, err := w.app.Build(w.Context())
	w.ok(err)
	story, err := desk.Inspect(w.Context(), id)
	w.ok(err)
	if strings.Contains(id, ".") {
		return string(story.Messages[0].Seen)
	}
	return string(story.Record.Seen)
}

// What the command line lacks is said before anything is read, and nothing is changed.
func TestUsage(t *testing.T) {
	w := newWorld(t)
	id := string(w.operation("acme", deferred, legacyUnknown))
	message, before := id+".1", w.inner.Messages()[0]
	fence := "--seen=" + seenIn(w, message)
	file := filepath.Join(t.TempDir(), "answer")
	w.ok(os.WriteFile(file, []byte(`{}`), 0o600))
	for _, args := range [][]string{
		{}, {"explode"}, {"list", "all"}, {"list", "dead", "--limit", "0"}, {"list", "dead", "--limit", "1001"}, {"list", "dead", "--after", "nowhere"}, {"list", "dead", "--output", "xml"},
		{"inspect"}, {"inspect", id, "--tenant", "acme"}, {"inspect", "--tenant", "acme"}, {"inspect", "--key", "order-17"},
		{"inspect", id, "--operation", "payments.create"}, {"inspect", id, "--key", "order-17", "--tenant", "acme"},
		{"resolve", message, "--delivered", "ch_1", ticket, "--write"}, // nothing seen
		{"resolve", message, fence, "--delivered", "ch_1", "--write"},  // no reason
		{"resolve", message, fence, "--delivered", "ch_1", "--reason=", "--write"},
		{"resolve", message, fence, "--delivered", "ch_1", "--reason=two\nlines", "--write"},
		{"resolve", message, fence, "--delivered", "ch_1", "--reason=" + strings.Repeat("x", 501), "--write"},
		{"resolve", message, fence, "--delivered", "ch_1", ticket, "--actor=", "--write"},
		{"resolve", message, fence, ticket, "--write"},
		{"resolve", message, fence, "--delivered", "ch_1", "--declined", "none", ticket, "--write"},
		{"resolve", message, fence, "--status", "201", ticket, "--write"},
		{"resolve", message, fence, "--delivered", "ch_1", "--evidence", "/no/such/file", ticket, "--write"},
		{"resolve", id, fence, "--delivered", "ch_1", ticket, "--write"},
		{"resolve", message, fence, "--delivered", "ch_1", "--body", file, ticket, "--write"},
		{"resolve", id, fence, "--status", "201", "--evidence", file, ticket, "--write"},
		{"resolve", message, fence, "--delivered", "ch_1", "--type", "text/plain", ticket, "--write"},
		{"resolve", id, fence, "--status", "201", "--type", "text/plain", ticket, "--write"}, // of what?
		{"close", id, fence, ticket, "--write"}, {"release", message, fence, ticket, "--write"}, {"cache-bust", message, fence, ticket, "--write"},
		{"redrive", ticket, "--write"}, {"redrive", message, ticket, "--write"}, {"redrive", message, fence, "--dead-letters", ticket, "--write"},
		{"redrive", "--dead-letters", ticket, "--write"}, {"drift"}, // which this application has not
		{"audit", "--since", "9000h"}, {"audit", "--limit", "0"}, {"--env-file", "/no/such/file", "list", "dead"},
	} {
		if out, errs := w.types(idemctl.ExitUsage, args...); out != "" || !strings.HasPrefix(errs, "idemctl: ") || !strings.Contains(errs, "\nnext: ") {
			t.Errorf("%q says %q, %q", args, out, errs)
		}
	}
	if after := w.inner.Messages()[0]; after.State != before.State {
		t.Errorf("the message is %s", after.State)
	}
	if out, _ := w.types(0, "audit"); out != "nothing\n" {
		t.Errorf("the log has\n%s", out)
	}
	for _, args := range [][]string{{"--help"}, {"resolve", "--help"}} {
		if out, _ := w.types(0, args...); !strings.Contains(out, "--output") {
			t.Errorf("%q says\n%s", args, out)
		}
	}
}

// Only the word none means that the provider has no reference: one that begins so is kept as it is, because evidence can't be taken back.
func TestADeclinesReferenceIsKeptAsItIsGiven(t *testing.T) {
	for given, kept := range map[string]string{"none": "", "none_17": "none_17", "nonpay-3": "nonpay-3", "ch_none": "ch_none"} {
		w := newWorld(t)
		message := string(w.operation("acme", deferred, legacyUnknown)) + ".1"
		w.types(0, "resolve", message, "--seen="+seenIn(w, message), "--declined", given, ticket, "--write")
		if m := w.inner.Messages()[0]; m.State != storage.MessageDeclined || m.Reference != kept {
			t.Errorf("--declined %s: %s with the reference %q, want %q", given, m.State, m.Reference, kept)
		}
	}
}

// uncalled is an operation of AWS that came to an error, as the SDK has it.
type uncalled struct{ error }

func (uncalled) Service() string   { return "DynamoDB" }
func (uncalled) Operation() string { return "GetItem" }

// docs/operator.md "Exit codes": what can't be reached is trouble, to be tried again; the environment is blamed only for what it says.
func TestWhatCannotBeReachedWhileTheDeskIsMadeIsTrouble(t *testing.T) {
	_, notAnAddress := url.Parse(strings.TrimSuffix("http://[::1]", "]"))
	for name, c := range map[string]struct {
		err  error
		exit int
	}{
		"a refused connection":      {fmt.Errorf("operation error DynamoDB: GetItem: %w", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}), idemctl.ExitTrouble},
		"a name that is not found":  {fmt.Errorf("operation error Secrets Manager: %w", &url.Error{Op: "Post", URL: "https://x", Err: &net.DNSError{Err: "no such host"}}), idemctl.ExitTrouble},
		"a certificate":             {&url.Error{Op: "Post", URL: "https://x", Err: x509.UnknownAuthorityError{}}, idemctl.ExitTrouble},
		"an expired session":        {uncalled{errors.New("get identity: get credentials: cached SSO token is expired, or not present, and cannot be refreshed")}, idemctl.ExitTrouble},
		"a Region that is missing":  {uncalled{errors.New("endpoint rule error, Invalid Configuration: Missing Region")}, idemctl.ExitUsage},
		"a file that is missing":    {fmt.Errorf("SECRET_FILE: %w", &fs.PathError{Op: "open", Path: "f", Err: syscall.ENOENT}), idemctl.ExitUsage},
		"an address that is none":   {fmt.Errorf("PROVIDER_URL: %w", notAnAddress), idemctl.ExitUsage},
		"a table that is not named": {errors.New("OUTBOX_TABLE is not set"), idemctl.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.app.Build = func(context.Context) (*operator.Desk, error) { return nil, c.err }
			_, errs := w.types(c.exit, "list", "dead")
			if blamed := strings.Contains(errs, "Set the variables"); blamed != (c.exit == idemctl.ExitUsage) {
				t.Errorf("%q", errs)
			}
		})
	}
}

// Help may be asked for by a command, too.
func TestHelpIsACommandToo(t *testing.T) {
	w := newWorld(t)
	for _, command := range [][]string{{}, {"inspect"}, {"list"}, {"refuse-before", "set"}} {
		flag, _ := w.types(0, append(slices.Clone(command), "--help")...)
		if word, _ := w.types(0, append([]string{"help"}, command...)...); word != flag || !strings.HasPrefix(word, "Usage: idemctl "+strings.Join(command, " ")) {
			t.Errorf("help %q says\n%s\nwant\n%s", command, word, flag)
		}
	}
	w.types(idemctl.ExitUsage, "help", "coffee")
}

// Whoever is nobody changes nothing: neither the flag nor the environment says who they are.
func TestActor(t *testing.T) {
	w := newWorld(t)
	t.Setenv("USER", "eve")
	id := string(w.operation("acme", deferred, dead))
	redrive := []string{"redrive", id + ".1", "--seen", "stale.1.00000000", ticket, "--write"}
	for _, c := range []struct {
		variable, flag, want string
	}{{"ada", "bob", "bob"}, {"ada", "", "ada"}, {"", "", "eve"}} {
		t.Setenv("IDEMCTL_ACTOR", c.variable)
		if c.variable == "" {
			w.ok(os.Unsetenv("IDEMCTL_ACTOR"))
		}
		args := redrive
		if c.flag != "" {
			args = append(args, "--actor", c.flag)
		}
		w.types(idemctl.ExitRefused, args...)
		w.now = w.now.Add(time.Second)
		if out, _ := w.types(0, "audit", "--limit", "1"); !strings.Contains(out, c.want) {
			t.Errorf("%+v: the log says\n%s", c, out)
		}
	}
	w.ok(os.Unsetenv("USER"))
	if _, errs := w.types(idemctl.ExitUsage, redrive...); !strings.Contains(errs, "--actor NAME, or IDEMCTL_ACTOR") {
		t.Errorf("it does not say how to say it:\n%s", errs)
	}
}

// Trouble is told from a refusal, and says nothing of what is there.
func TestTrouble(t *testing.T) {
	w := newWorld(t)
	id := string(w.operation("acme", deferred, legacyUnknown))
	seen := seenIn(w, id+".1")
	w.store.All(faulty.Refuse(errDown))
	for _, args := range [][]string{
		{"inspect", id}, {"list", "unknown"}, {"resolve", id + ".1", "--seen", seen, "--delivered", "ch_1", ticket, "--write"},
	} {
		if _, errs := w.types(idemctl.ExitTrouble, args...); !strings.Contains(errs, "down") {
			t.Errorf("%q: %s", args, errs)
		}
	}
	w.app.Build = func(context.Context) (*operator.Desk, error) { return nil, errors.New("no OUTBOX_TABLE") }
	if _, errs := w.types(idemctl.ExitUsage, "inspect", id); !strings.Contains(errs, "--env-file") {
		t.Errorf("%s", errs)
	}
	// What makes the desk asks AWS, too: for a secret, for instance.
	for _, err := range []error{context.DeadlineExceeded, fmt.Errorf("read: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")})} {
		w.app.Build = func(context.Context) (*operator.Desk, error) { return nil, err }
		w.types(idemctl.ExitTrouble, "inspect", id)
	}
}

// What the application made is found by its own id, and the tenant's only.
func TestFind(t *testing.T) {
	w := newWorld(t)
	made := w.operation("acme", deferred, legacyUnknown)
	w.app.Find = func(_ context.Context, tenant, id string) (idem.OperationID, error) {
		switch tenant + "/" + id {
		case "acme/pay_1":
			return made, nil
		case "acme/pay_2":
			return "", errDown
		}
		return "", nil
	}
	if out, _ := w.types(idemctl.ExitOK, "inspect", "pay_1", "--tenant", "acme"); !strings.HasPrefix(out, "operation "+string(made)) {
		t.Errorf("%s", out)
	}
	w.types(idemctl.ExitRefused, "inspect", "pay_1", "--tenant", "bolt")
	w.types(idemctl.ExitTrouble, "inspect", "pay_2", "--tenant", "acme")
}

// What was redriven before the command was interrupted is told: of letters without an entry of their own nothing else tells it.
func TestLettersThatWereRedrivenAreToldWhateverFollows(t *testing.T) {
	w := newWorld(t)
	w.app.Letters = func(context.Context, int, func(context.Context, outbox.DeadLetter, bool) error) (any, error) {
		return map[string]any{"redriven": 3}, context.Canceled
	}
	if out, _ := w.types(idemctl.ExitTrouble, "redrive", "--dead-letters", ticket, "--write"); !strings.Contains(out, `"redriven": 3`) {
		t.Errorf("%q", out)
	}
	w.app.Letters = func(context.Context, int, func(context.Context, outbox.DeadLetter, bool) error) (any, error) {
		return nil, errDown
	}
	if out, _ := w.types(idemctl.ExitTrouble, "redrive", "--dead-letters", ticket, "--write"); out != "" {
		t.Errorf("%q", out)
	}
}

// counts is a report that has words.
type counts int

func (c counts) String() string { return fmt.Sprintf("acknowledged: %d", int(c)) }

// A letter that nobody needs goes without a change of a message: so the run has an entry before the first of them, and somebody's name.
func TestLettersAreDeletedUnderAnEntryOnly(t *testing.T) {
	w := newWorld(t)
	deleted := 0
	w.app.Letters = func(_ context.Context, _ int, redrive func(context.Context, outbox.DeadLetter, bool) error) (any, error) {
		if redrive != nil {
			deleted++
		}
		return counts(deleted), nil
	}
	all := []string{"redrive", "--dead-letters", ticket, "--write"}
	w.types(idemctl.ExitUsage, append(all, "--actor=")...)
	w.types(idemctl.ExitUsage, "redrive", "--dead-letters", "--reason=", "--write")
	build := w.app.Build
	for name, spoil := range map[string]func(*operator.Config){
		"the log can't be written": func(cfg *operator.Config) { cfg.Audit = unwritable{w.audit} },
		"the clock is off":         func(cfg *operator.Config) { cfg.ClockOff = hourAhead },
	} {
		w.app.Build = func(context.Context) (*operator.Desk, error) { return w.built(spoil) }
		if out, errs := w.types(map[bool]int{true: idemctl.ExitTrouble, false: idemctl.ExitRefused}[strings.Contains(name, "log")], all...); out != "" {
			t.Errorf("%s: %q, %q", name, out, errs)
		}
	}
	w.app.Build = build
	if deleted != 0 {
		t.Fatalf("%d runs deleted letters", deleted)
	}
	w.types(0, all...)
	if out, _ := w.types(0, "audit"); deleted != 1 || !strings.Contains(out, "done   acknowledged: 1") {
		t.Errorf("%d; the log says\n%s", deleted, out)
	}
	w.app.Letters = func(context.Context, int, func(context.Context, outbox.DeadLetter, bool) error) (any, error) {
		return counts(2), idemctl.ErrLettersLeft
	}
	w.now = w.now.Add(time.Second)
	w.types(idemctl.ExitRefused, all...)
	if out, _ := w.types(0, "audit", "--wide", "--limit", "1"); !strings.Contains(out, "failed  acknowledged: 2: letters failed") {
		t.Errorf("the log says\n%s", out)
	}
}

// unwritable is an audit log that can't be written.
type unwritable struct{ operator.AuditLog }

func (unwritable) Begin(context.Context, operator.Entry) error { return errDown }

func hourAhead(context.Context) (time.Duration, error) { return time.Hour, nil }

// The application's parts get what the command line says.
func TestLettersAndDrift(t *testing.T) {
	w := newWorld(t)
	id := w.operation("acme", deferred, dead)
	w.app.Letters = func(ctx context.Context, most int, redrive func(context.Context, outbox.DeadLetter, bool) error) (any, error) {
		if redrive != nil {
			w.ok(redrive(ctx, outbox.DeadLetter{Message: id.Message(1)}, false))
		}
		return map[string]any{"most": most, "dry": redrive == nil}, nil
	}
	if out, _ := w.types(0, "redrive", "--dead-letters", "--max", "7", ticket); !strings.Contains(out, `"dry": true`) || !strings.Contains(out, `"most": 7`) {
		t.Errorf("%s", out)
	}
	w.types(0, "redrive", "--dead-letters", ticket, "--write")
	if m := w.inner.Messages()[0]; m.State != storage.MessageUnknown {
		t.Errorf("the message is %s", m.State)
	}
	if out, _ := w.types(0, "audit", "--wide"); !strings.Contains(out, "redrive letters  dead letters") || !strings.Contains(out, "redrive          "+string(id)) {
		t.Errorf("the log says\n%s", out)
	}

	clean := true
	w.app.Drift = driftOf(t, &clean)
	span := []string{"drift", "--from", "2026-11-21T10:00:00Z", "--to", "2026-11-21T11:00:00Z", "--tenant", "acme"}
	w.types(0, span...)
	clean = false
	if _, errs := w.types(idemctl.ExitRefused, span...); !strings.Contains(errs, "drift") {
		t.Errorf("%s", errs)
	}
}

// A sweep that goes on in the next run, and one that fails, are told in words; only the first is done.
func TestASweepIsToldInWords(t *testing.T) {
	w := newWorld(t)
	id := w.operation("acme", deferred, pending)
	w.now = noon.Add(time.Minute)
	entry := operator.Entry{ID: "au_1", At: w.now, Actor: "ada", Action: "sweep", Subject: "all", Reason: "r", State: operator.EntryIntended}
	w.ok(w.audit.Begin(t.Context(), entry))
	entry.State, entry.Outcome = operator.EntryDone, `{"messages":{"offered":3,"unfinished":true},"records":{}}`
	w.ok(w.audit.End(t.Context(), entry))
	w.now = w.now.Add(time.Second)
	if out, _ := w.types(0, "audit", "--wide"); !strings.Contains(out, "messages offered: 3, more messages are due") || strings.Contains(out, "{") {
		t.Errorf("the log says\n%s", out)
	}
	w.store.On(faulty.Message, 1, faulty.Refuse(errDown))
	out, errs := w.types(idemctl.ExitTrouble, "sweep", ticket, "--write", "--output", "json")
	if out != "" || !strings.Contains(errs, "messages errors: 1") || !strings.Contains(errs, "\nnext: The causes are above") {
		t.Errorf("%q, %q", out, errs)
	}
	if out, _ := w.types(0, "sweep", ticket, "--write"); !strings.Contains(out, "sweep all: done, messages offered: 1") {
		t.Errorf("%s; the message %s.1", out, id)
	}
}

// unending is an audit log that can't be told how a change ended.
type unending struct{ operator.AuditLog }

func (unending) End(context.Context, operator.Entry) error { return errDown }

// docs/reference/idemctl-json.md: where a command fails, stdout has a document only for a change that was made and could not be logged.
func TestAChangeThatWasRefusedHasNoAnswerWhateverBecameOfItsEntry(t *testing.T) {
	w := newWorld(t)
	message := string(w.operation("acme", deferred, legacyUnknown)) + ".1"
	w.app.Build = func(context.Context) (*operator.Desk, error) {
		return w.built(func(cfg *operator.Config) { cfg.Audit = unending{w.audit} })
	}
	resolve := []string{"resolve", message, "--delivered", "ch_1", ticket, "--write", "--output", "json"}
	if out, errs := w.types(idemctl.ExitTrouble, append(resolve, "--seen", "unknown.1.0000000000000000")...); out != "" || !strings.Contains(errs, "stays intended") {
		t.Errorf("refused: %q, %q", out, errs)
	}
	if out, errs := w.types(idemctl.ExitTrouble, append(resolve, "--seen", seenIn(w, message))...); !strings.Contains(out, `"outcome": "delivered"`) || !strings.Contains(errs, "stays intended") {
		t.Errorf("made: %q, %q", out, errs)
	}
}
