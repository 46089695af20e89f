package idemctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// commands is the command line.
type commands struct {
	Output  string        `short:"o" enum:"table,json" default:"table" help:"How to print the answer: ${enum}."`
	EnvFile string        `name:"env-file" type:"existingfile" help:"File for variables that the environment does not set: lines NAME=value, such as .local/run.env, or what cdk deploy --outputs-file writes."`
	Color   string        `enum:"auto,always,never" default:"auto" help:"Colour in tables: ${enum}; auto is on a terminal, without NO_COLOR."`
	UTC     bool          `name:"utc" help:"Print times in RFC 3339 and UTC, instead of as 3 m ago."`
	Wide    bool          `help:"Print whole ids and texts. By default tables have at most 100 columns."`
	Within  time.Duration `default:"2m" help:"Give up after this time. The console never does."`

	Inspect   inspect   `cmd:"" help:"Show everything about an operation: record, messages, application, provider, audit log, and what you may do."`
	List      list      `cmd:"" help:"List the messages and operations that are stuck, unknown or dead."`
	Resolve   resolve   `cmd:"" help:"Settle what is unknown or dead, by evidence that you have."`
	Close     closing   `cmd:"" name:"close" help:"Cancel a message of which nothing happened. Its operation fails."`
	Release   release   `cmd:"" help:"Let the next request with the key run the handler, because nothing happened. An execution that still runs can commit nothing."`
	CacheBust cacheBust `cmd:"" name:"cache-bust" help:"Forget a stored answer that is wrong, where nothing else was written."`
	Redrive   redrive   `cmd:"" help:"Start a dead message again, or every one that the dead-letter queue names."`
	Reconcile reconcile `cmd:"" help:"Ask the provider now what became of a message, or of a wrapped operation, that is unknown."`
	Sweep     sweep     `cmd:"" help:"Process now everything that is due, as the schedule does every minute."`
	Loss      loss      `cmd:"" name:"refuse-before" help:"After a loss of data: show or set the time before which keys execute nothing."`
	Drift     drift     `cmd:"" help:"Compare keys, messages, business rows and the provider's objects, and report what differs."`
	Audit     audit     `cmd:"" help:"Show what operators have changed, newest first."`
	Console   page      `cmd:"" help:"Serve all of this as a page on this machine, until Ctrl-C. It prints the address."`

	Conform    conformance `cmd:"" help:"Hold the HTTP behaviour of a running service against the contract of idempotency keys, and print what holds. It needs no application."`
	New        newService  `cmd:"" help:"Write a new service that uses idem: handler, topic, tests, CDK app, Makefile. It needs no application."`
	Completion completion  `cmd:"" help:"Print the completions for a shell."`
	Man        manual      `cmd:"" help:"Print a manual page, in roff: idemctl man | man -l -"`
}

// change is what every change needs.
type change struct{ Reasoned }

func (c change) change(seen operator.Seen) operator.Change {
	asked := c.Reasoned.Change()
	asked.Seen = seen
	return asked
}

// fenced is a change of what was seen.
type fenced struct {
	ID   string        `arg:"" help:"Id of the operation, or of the message: <operation>.<n>; or the beginning of the operation's, as list shows it."`
	Seen operator.Seen `required:"" help:"What you saw of it: what inspect and list show as seen."`
	change
}

func (f fenced) asked() operator.Change { return f.change.change(f.Seen) }

// changed shows what came of a change that was made, be it that its entry could not be ended.
func (s *session) changed(result operator.Result, err error) error {
	if Unfinished(err) {
		return err
	}
	return errors.Join(s.show(result, func(t *table) { t.result(result) }), err)
}

type inspect struct {
	ID        string `arg:"" optional:"" help:"Id of the operation, or of one of its messages, or its beginning, as list shows it; with --tenant of what the application made by it, such as a payment."`
	Tenant    string `help:"The tenant: with --key, or with an id of the application's own, such as a payment's. With an operation's id, to see what the application has of it after record and messages are gone."`
	Operation string `help:"With --key: the operation's name, such as payments.create. Leave it out where a key is the tenant's for all operations."`
	Key       string `help:"The client's key, instead of an id."`
	Principal string `help:"With --key: the principal, where the policy binds keys to one."`
}

// Run implements the command.
func (i *inspect) Run(s *session) error {
	switch byKey := i.Key != ""; {
	case byKey == (i.ID != "") || byKey && i.Tenant == "":
		return &usageError{"inspect needs an id, or --tenant and --key.", "Run idemctl inspect op_…, or idemctl inspect --tenant T --operation NAME --key K."}
	case !byKey && (i.Operation != "" || i.Principal != ""):
		return &usageError{"--operation and --principal are for --key.", "Leave them out, or give the client's key with --key instead of an id."}
	case !byKey && i.Tenant != "" && s.app.Find == nil:
		return &usageError{"This application finds nothing by ids of its own.", "Give the id of an operation or of a message, without --tenant."}
	}
	desk, err := s.desk()
	if err != nil {
		return err
	}
	story, err := i.story(s, desk)
	if err != nil {
		return err
	}
	return s.show(story, func(t *table) { t.story(story) })
}

func (i *inspect) story(s *session, desk *operator.Desk) (operator.Story, error) {
	switch {
	case i.Key != "":
		return desk.InspectScope(s.ctx, idem.Scope{Tenant: i.Tenant, Operation: i.Operation, Key: i.Key, Principal: i.Principal})
	case i.Tenant == "":
		whole, err := s.whole(i.ID, false)
		if err != nil {
			return operator.Story{}, err
		}
		return desk.Inspect(s.ctx, whole)
	case operationIn(i.ID) != "":
		return desk.InspectOf(s.ctx, i.Tenant, i.ID)
	}
	id, err := s.app.Find(s.ctx, i.Tenant, i.ID)
	switch {
	case operator.Refused(err):
		return operator.Story{}, err
	case err != nil:
		return operator.Story{}, fmt.Errorf("ask the application: %w", err)
	case id == "":
		return operator.Story{}, operator.ErrNotFound
	}
	return desk.InspectOf(s.ctx, i.Tenant, string(id))
}

type list struct {
	Queue  operator.Queue `arg:"" enum:"stuck,unknown,dead" help:"Which: ${enum}."`
	Tenant string         `help:"Only what is this tenant's."`
	Limit  int            `default:"100" help:"At most this many, 1 to 1000."`
	After  string         `help:"Go on where a list of the queue ended: what it printed last."`
}

// Run implements the command.
func (l *list) Run(s *session) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	rows, err := desk.List(s.ctx, l.Queue, l.Tenant, l.Limit, l.After)
	if err != nil {
		return err
	}
	return s.show(rows, func(t *table) { t.list(rows) })
}

type resolve struct {
	fenced
	Delivered string `xor:"outcome" help:"The effect happened: the provider's reference of it."`
	Declined  string `xor:"outcome" help:"The provider refused it: its reference, or the word none."`
	Evidence  string `type:"existingfile" help:"With --delivered or --declined: file with the provider's answer, byte for byte. The settlement reads it."`
	Status    int    `xor:"outcome" help:"For a wrapped operation: the status that its handler would have answered."`
	Body      string `type:"existingfile" help:"With --status: file with the body of that answer."`
	Type      string `help:"With --body: content type of that answer. Default: application/json."`
}

// Run implements the command.
func (r *resolve) Run(s *session) error {
	if err := r.misused(); err != nil {
		return err
	}
	evidence, err := contents(r.Evidence)
	if err != nil {
		return err
	}
	body, err := contents(r.Body)
	if err != nil {
		return err
	}
	desk, err := s.desk()
	if err != nil {
		return err
	}
	id, err := s.whole(r.ID, true)
	if err != nil {
		return err
	}
	if !namesMessage(r.ID) {
		response := idem.Response{Status: r.Status, Body: body}
		if len(body) > 0 {
			response.Header = []idem.Field{{Name: "Content-Type", Value: cmp.Or(r.Type, "application/json")}}
		}
		return s.changed(desk.ResolveRecord(s.ctx, idem.OperationID(id), response, r.asked()))
	}
	return s.changed(desk.Resolve(s.ctx, idem.MessageID(id), r.outcome(evidence), r.asked()))
}

// misused says what of the command line does not go together.
func (r *resolve) misused() error {
	isMessage := namesMessage(r.ID)
	switch {
	case isMessage && r.Status != 0:
		return &usageError{"--status is for an operation, and this is the id of a message.", "Give --delivered REFERENCE or --declined REFERENCE, with what the provider's own books say."}
	case isMessage && r.Delivered == "" && r.Declined == "":
		return &usageError{"resolve needs to know what happened.", "Give --delivered REFERENCE or --declined REFERENCE, with what the provider's own books say."}
	case !isMessage && r.Status == 0:
		return &usageError{"An operation is resolved by the answer that its handler would have given.", "Give --status N, and --body FILE; or the id of the message: <operation>.<n>."}
	case isMessage && r.Body != "":
		return &usageError{"--body is for an operation, and this is the id of a message.", "Give the provider's answer with --evidence FILE, or leave --body out."}
	case isMessage && r.Type != "":
		return &usageError{"--type is for an operation, and this is the id of a message.", "Leave --type out: the settlement reads the provider's answer as it is."}
	case r.Body == "" && r.Type != "":
		return &usageError{"--type is the content type of --body, and there is none.", "Give the body of the handler's answer with --body FILE, or leave --type out."}
	case !isMessage && r.Evidence != "":
		return &usageError{"--evidence is for a message, and this is the id of an operation.", "Give the body of the handler's answer with --body FILE, or leave --evidence out."}
	}
	return nil
}

func (r *resolve) outcome(evidence []byte) outbox.Outcome {
	if r.Delivered != "" {
		return outbox.Delivered{Reference: r.Delivered, Evidence: evidence}
	}
	reference := r.Declined
	if reference == "none" { // the word, and not the beginning of a reference
		reference = ""
	}
	return outbox.Declined{Reference: reference, Evidence: evidence}
}

func contents(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, &usageError{err.Error(), "Give a file that can be read."}
	}
	return raw, nil
}

type closing struct{ fenced }

// Run implements the command.
func (c *closing) Run(s *session) error {
	return s.onMessage(c.fenced, (*operator.Desk).Close)
}

type release struct{ fenced }

// Run implements the command.
func (r *release) Run(s *session) error { return s.onRecord(r.fenced, (*operator.Desk).Release) }

type cacheBust struct{ fenced }

// Run implements the command.
func (c *cacheBust) Run(s *session) error { return s.onRecord(c.fenced, (*operator.Desk).CacheBust) }

func (s *session) onMessage(
	f fenced, act func(*operator.Desk, context.Context, idem.MessageID, operator.Change) (operator.Result, error),
) error {
	if !namesMessage(f.ID) {
		return &usageError{"That is no id of a message.", "Give <operation>.<n>, as idemctl inspect shows it."}
	}
	desk, err := s.desk()
	if err != nil {
		return err
	}
	id, err := s.whole(f.ID, true)
	if err != nil {
		return err
	}
	return s.changed(act(desk, s.ctx, idem.MessageID(id), f.asked()))
}

func (s *session) onRecord(
	f fenced, act func(*operator.Desk, context.Context, idem.OperationID, operator.Change) (operator.Result, error),
) error {
	if namesMessage(f.ID) {
		return &usageError{"That is the id of a message, and this is a change of an operation.", "Give the operation's id, without .n at its end."}
	}
	desk, err := s.desk()
	if err != nil {
		return err
	}
	id, err := s.whole(f.ID, true)
	if err != nil {
		return err
	}
	return s.changed(act(desk, s.ctx, idem.OperationID(id), f.asked()))
}

type redrive struct {
	ID          string        `arg:"" optional:"" help:"Id of a dead message."`
	Seen        operator.Seen `help:"What you saw of it: what inspect and list show as seen. Not with --dead-letters, which redrives each message as it stands."`
	DeadLetters bool          `name:"dead-letters" help:"Redrive every message that the dead-letter queue names."`
	Max         int           `default:"100" help:"With --dead-letters: at most this many letters."`
	change
}

// Run implements the command.
func (r *redrive) Run(s *session) error {
	switch {
	case r.DeadLetters == (r.ID != ""):
		return &usageError{"redrive needs the id of a message, or --dead-letters, and not both.", "Run idemctl list dead to see the messages."}
	case r.DeadLetters:
		return r.letters(s)
	case r.Seen == "":
		return &usageError{"redrive needs --seen: what you saw of the message.", "Run idemctl inspect with its id, look at it, and copy what it shows as seen."}
	}
	return s.onMessage(fenced{r.ID, r.Seen, r.change}, (*operator.Desk).Redrive)
}

// letters redrives what the dead-letter queue tells of. The run has an entry in the audit log, and so has each message.
func (r *redrive) letters(s *session) error {
	if s.app.Letters == nil {
		return &usageError{"This application has no dead-letter queue.", "Run idemctl list dead, and redrive each message by its id."}
	}
	desk, err := s.desk()
	if err != nil {
		return err
	}
	var report any
	ch := r.change.change("")
	_, err = desk.RedriveLetters(s.ctx, ch, func(ctx context.Context) (outcome string, err error) {
		report, err = s.app.Letters(ctx, r.Max, func(ctx context.Context, letter outbox.DeadLetter, again bool) error {
			return desk.RedriveLetter(ctx, letter, again, ch)
		})
		return dealt(report, err)
	})
	if err == nil && ch.DryRun {
		report, err = s.app.Letters(s.ctx, r.Max, nil)
	}
	if report == nil {
		return err
	}
	return errors.Join(s.show(report, func(t *table) { t.json(report) }), err)
}

// dealt is what came of a run through the dead letters, in words where its report has some.
func dealt(report any, err error) (string, error) {
	words, ok := report.(fmt.Stringer)
	switch {
	case ok && err != nil:
		return "", fmt.Errorf("%s: %w", words, err)
	case ok:
		return words.String(), nil
	}
	return "dealt with", err
}

type reconcile struct {
	ID string `arg:"" help:"Id of the message, or of the wrapped operation."`
	change
}

// Run implements the command.
func (r *reconcile) Run(s *session) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	id, err := s.whole(r.ID, true)
	if err != nil {
		return err
	}
	if namesMessage(id) {
		return s.changed(desk.ReconcileMessage(s.ctx, idem.MessageID(id), r.change.change("")))
	}
	return s.changed(desk.ReconcileRecord(s.ctx, idem.OperationID(id), r.change.change("")))
}

type sweep struct{ change }

// Run implements the command.
func (w *sweep) Run(s *session) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	return s.changed(desk.Sweep(s.ctx, w.change.change("")))
}

type loss struct {
	Show showLoss `cmd:"" default:"1" help:"Show the time before which keys execute nothing."`
	Set  setLoss  `cmd:"" help:"Set the time before which keys execute nothing. It only moves to a later one: nothing takes it back."`
}

type showLoss struct{}

// Run implements the command.
func (*showLoss) Run(s *session) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	loss, err := desk.Loss(s.ctx)
	if err != nil {
		return err
	}
	return s.show(loss, func(t *table) { t.loss(loss) })
}

type setLoss struct {
	At time.Time `arg:"" help:"The time of the cut-over plus the difference between the clocks, in RFC 3339. What was written before may be lost."`
	change
}

// Run implements the command.
func (l *setLoss) Run(s *session) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	return s.changed(desk.RefuseBefore(s.ctx, l.At, l.change.change("")))
}

type drift struct {
	From   time.Time `help:"Begin of the window, in RFC 3339. Without it, the application chooses."`
	To     time.Time `help:"End of the window, in RFC 3339."`
	Tenant string    `help:"Only what is this tenant's."`
}

// Run implements the command.
func (d *drift) Run(s *session) error {
	if s.app.Drift == nil {
		return &usageError{"This application has no drift job.", "Set App.Drift where the application makes its idemctl."}
	}
	var report strings.Builder
	clean, err := s.app.Drift(s.ctx, Window{d.From, d.To, d.Tenant}, s.cli.Output == "json", &report)
	shown := visibleTable
	if s.cli.Output == "json" {
		shown = visibleJSON
	}
	if _, lost := io.WriteString(s.out, shown(report.String())); err == nil {
		err = lost
	}
	if err == nil && !clean {
		return errDrift
	}
	return err
}

type audit struct {
	Since   time.Duration `default:"168h" help:"How far back, in hours, as 168h."`
	Subject string        `help:"Only entries about an id that begins with this."`
	Limit   int           `default:"100" help:"At most this many, 1 to 1000."`
}

// Run implements the command.
func (a *audit) Run(s *session) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	entries, err := desk.Entries(s.ctx, a.Since, a.Subject, a.Limit)
	if err != nil {
		return err
	}
	return s.show(entries, func(t *table) {
		if t.entries(entries); len(entries) == 0 {
			t.line("nothing")
		}
	})
}
