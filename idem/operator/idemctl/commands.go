package idemctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// commands is the command line.
type commands struct {
	Output  string        `short:"o" enum:"table,json" default:"table" help:"How to answer: ${enum}."`
	EnvFile string        `name:"env-file" type:"existingfile" help:"KEY=value lines for what the environment does not say, as .local/run.env."`
	Within  time.Duration `default:"2m" help:"Give up after that long; the console does not."`

	Inspect   inspect   `cmd:"" help:"Tell the whole story of an operation: record, messages, application, provider, audit log, and what may be done."`
	List      list      `cmd:"" help:"List what is stuck, unknown or dead."`
	Resolve   resolve   `cmd:"" help:"End what is unknown or dead with evidence."`
	Close     closing   `cmd:"" name:"close" help:"Cancel a message of which nothing happened, and fail its operation."`
	Release   release   `cmd:"" help:"Let the next request with the key execute: nothing happened, or the holder is fenced off."`
	CacheBust cacheBust `cmd:"" name:"cache-bust" help:"Make a completed record not answer any more, where nothing else was written."`
	Redrive   redrive   `cmd:"" help:"Start a dead message anew, or all that the dead-letter queue tells of."`
	Reconcile reconcile `cmd:"" help:"Ask now what became of a message, or of a wrapped operation, that is unknown."`
	Sweep     sweep     `cmd:"" help:"Look now at everything that is due."`
	Loss      loss      `cmd:"" name:"refuse-before" help:"After a loss of data: show, or set, before when keys execute nothing."`
	Drift     drift     `cmd:"" help:"Compare keys, messages, business rows and the provider's objects."`
	Audit     audit     `cmd:"" help:"Show what operators have changed."`
	Console   page      `cmd:"" help:"Serve all of this as a page on this machine, until an interrupt. It prints the address."`
}

// environment reads the file of variables; what is set already stays.
func (c *commands) environment() error {
	if c.EnvFile == "" {
		return nil
	}
	file, err := os.Open(c.EnvFile)
	if err != nil {
		return &usageError{err.Error()}
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), "=")
		if _, set := os.LookupEnv(name); !found || set || strings.HasPrefix(name, "#") {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return &usageError{fmt.Sprintf("%s: %v", c.EnvFile, err)}
		}
	}
	return lines.Err()
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
	ID   string        `arg:"" help:"Id of the operation, or of the message: <operation>.<n>."`
	Seen operator.Seen `required:"" help:"What you saw, as inspect and list show it."`
	change
}

func (f fenced) asked() operator.Change { return f.change.change(f.Seen) }

// message says that the id is a message's.
func (f fenced) message() (idem.MessageID, bool) { return messageIn(f.ID) }

func messageIn(id string) (idem.MessageID, bool) {
	_, _, err := idem.MessageID(id).Operation()
	return idem.MessageID(id), err == nil
}

// changed shows what came of a change.
func (s *session) changed(result operator.Result, err error) error {
	var unlogged *operator.UnloggedError
	if err != nil && !errors.As(err, &unlogged) {
		return err
	}
	return errors.Join(s.show(result, func(t *table) { t.result(result) }), err)
}

type inspect struct {
	ID        string `arg:"" optional:"" help:"Id of the operation, or of one of its messages; with --tenant of what the application made by it, such as a payment."`
	Tenant    string `help:"With --key or an id of the application's: whose it is."`
	Operation string `help:"With --key: name of the operation, as payments.create; empty where the policy scopes keys by tenant alone."`
	Key       string `help:"Instead of an id: the client's key."`
	Principal string `help:"With --key: the principal, where the policy binds keys to one."`
}

// Run implements the command.
func (i *inspect) Run(s *session) error {
	switch byKey := i.Key != ""; {
	case byKey == (i.ID != "") || byKey && i.Tenant == "":
		return &usageError{"inspect needs an id, or --tenant and --key"}
	case !byKey && (i.Operation != "" || i.Principal != ""):
		return &usageError{"--operation and --principal are for --key"}
	case !byKey && i.Tenant != "" && s.app.Find == nil:
		return &usageError{"this application finds nothing by ids of its own: inspect needs an operation's or a message's, without --tenant"}
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
		return desk.Inspect(s.ctx, i.ID)
	}
	id, err := s.app.Find(s.ctx, i.Tenant, i.ID)
	switch {
	case err != nil:
		return operator.Story{}, fmt.Errorf("ask the application: %w", err)
	case id == "":
		return operator.Story{}, operator.ErrNotFound
	}
	return desk.Inspect(s.ctx, string(id))
}

type list struct {
	Queue  operator.Queue `arg:"" enum:"stuck,unknown,dead" help:"Which: ${enum}."`
	Tenant string         `help:"Only this tenant's."`
	Limit  int            `default:"100" help:"At most so many."`
	After  string         `help:"Where another list of the queue ended: its next."`
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
	Delivered string `xor:"outcome" help:"The effect happened; the provider's reference of it."`
	Declined  string `xor:"outcome" help:"The provider said no; its reference, or the word none."`
	Evidence  string `type:"existingfile" help:"File with what the provider said, byte for byte: what the settlement reads."`
	Status    int    `xor:"outcome" help:"Of a wrapped operation: the status that its handler would have answered."`
	Body      string `type:"existingfile" help:"File with the body of that answer."`
	Type      string `default:"application/json" help:"Content type of that answer."`
}

// Run implements the command.
func (r *resolve) Run(s *session) error {
	id, isMessage := r.message()
	switch {
	case isMessage && r.Status != 0:
		return &usageError{"a message is resolved by --delivered or --declined"}
	case isMessage && r.Delivered == "" && r.Declined == "":
		return &usageError{"resolve needs --delivered or --declined"}
	case !isMessage && r.Status == 0:
		return &usageError{"the record of an operation is resolved by --status"}
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
	if !isMessage {
		response := idem.Response{Status: r.Status, Body: body}
		if len(body) > 0 {
			response.Header = []idem.Field{{Name: "Content-Type", Value: r.Type}}
		}
		return s.changed(desk.ResolveRecord(s.ctx, idem.OperationID(r.ID), response, r.asked()))
	}
	return s.changed(desk.Resolve(s.ctx, id, r.outcome(evidence), r.asked()))
}

func (r *resolve) outcome(evidence []byte) outbox.Outcome {
	if r.Delivered != "" {
		return outbox.Delivered{Reference: r.Delivered, Evidence: evidence}
	}
	return outbox.Declined{Reference: strings.TrimPrefix(r.Declined, "none"), Evidence: evidence}
}

func contents(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, &usageError{err.Error()}
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
	id, isMessage := f.message()
	if !isMessage {
		return &usageError{"it needs the id of a message: <operation>.<n>"}
	}
	desk, err := s.desk()
	if err != nil {
		return err
	}
	return s.changed(act(desk, s.ctx, id, f.asked()))
}

func (s *session) onRecord(
	f fenced, act func(*operator.Desk, context.Context, idem.OperationID, operator.Change) (operator.Result, error),
) error {
	if _, isMessage := f.message(); isMessage {
		return &usageError{"it needs the id of an operation, without a message's number"}
	}
	desk, err := s.desk()
	if err != nil {
		return err
	}
	return s.changed(act(desk, s.ctx, idem.OperationID(f.ID), f.asked()))
}

type redrive struct {
	ID          string        `arg:"" optional:"" help:"Id of a dead message."`
	Seen        operator.Seen `help:"What you saw, as inspect and list show it. Not for --dead-letters: each message is redriven as it stands."`
	DeadLetters bool          `name:"dead-letters" help:"Empty the dead-letter queue instead."`
	Max         int           `default:"100" help:"With --dead-letters: at most so many letters."`
	change
}

// Run implements the command.
func (r *redrive) Run(s *session) error {
	switch {
	case r.DeadLetters == (r.ID != ""):
		return &usageError{"redrive needs a message, or --dead-letters"}
	case r.DeadLetters:
		return r.letters(s)
	case r.Seen == "":
		return &usageError{"redrive needs --seen"}
	}
	return s.onMessage(fenced{r.ID, r.Seen, r.change}, (*operator.Desk).Redrive)
}

// letters redrives what the dead-letter queue tells of; each message has its entry in the audit log.
func (r *redrive) letters(s *session) error {
	if s.app.Letters == nil {
		return &usageError{"this application has no dead-letter queue"}
	}
	desk, err := s.desk()
	if err != nil {
		return err
	}
	var each func(context.Context, outbox.DeadLetter) error
	if r.Write {
		each = func(ctx context.Context, letter outbox.DeadLetter) error {
			return desk.RedriveLetter(ctx, letter, r.change.change(""))
		}
	}
	report, err := s.app.Letters(s.ctx, r.Max, each)
	if err != nil && !errors.Is(err, ErrLettersLeft) {
		return err
	}
	return errors.Join(s.show(report, func(t *table) { t.json(report) }), err)
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
	if id, isMessage := messageIn(r.ID); isMessage {
		return s.changed(desk.ReconcileMessage(s.ctx, id, r.change.change("")))
	}
	return s.changed(desk.ReconcileRecord(s.ctx, idem.OperationID(r.ID), r.change.change("")))
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
	Show showLoss `cmd:"" default:"1" help:"Show the instant."`
	Set  setLoss  `cmd:"" help:"Set it. It moves to a later instant only, and nothing takes it back."`
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
	At time.Time `arg:"" help:"The cut-over and the clocks' difference, RFC 3339: what was written before may be lost."`
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
	From   time.Time `help:"Begin of the window, RFC 3339."`
	To     time.Time `help:"End of the window."`
	Tenant string    `help:"Only this tenant's."`
}

// Run implements the command.
func (d *drift) Run(s *session) error {
	if s.app.Drift == nil {
		return &usageError{"this application has no drift job"}
	}
	clean, err := s.app.Drift(s.ctx, Window{d.From, d.To, d.Tenant}, s.cli.Output == "json", s.out)
	if err == nil && !clean {
		return errDrift
	}
	return err
}

type audit struct {
	Since   time.Duration `default:"168h" help:"So far back."`
	Subject string        `help:"Only what is about operations, messages or queues whose name begins so."`
	Limit   int           `default:"100" help:"At most so many."`
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
