package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// action is a change at the desk, in the words of a person who has to understand it first.
type action struct {
	Name string
	// Label is the button's.
	Label string
	// Settles says that the change needs evidence, and Answers that it needs an answer.
	Settles, Answers bool
	// Unfenced says that the change decides nothing that the system would not decide by itself.
	Unfenced  bool
	will, not []string
	make      func(context.Context, *operator.Desk, asked, operator.Change) (operator.Result, error)
}

// asked is a change as its form says it.
type asked struct {
	Action, Subject    string
	Seen               operator.Seen
	Reason             string
	Outcome, Reference string
	Evidence           []byte
	Status             int
	Body               []byte
	Type               string
}

func (a asked) message() idem.MessageID     { return idem.MessageID(a.Subject) }
func (a asked) operation() idem.OperationID { return idem.OperationID(a.Subject) }

const everything = "all"

// ofMessages and ofRecords are the changes by the name that the audit log gives them.
var (
	ofMessages = map[string]action{
		"resolve": {
			Label: "Resolve with evidence", Settles: true,
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.Resolve(ctx, a.message(), a.evidence(), ch)
			},
		},
		"close": {
			Label: "Close: nothing happened",
			will: []string{
				"The message is cancelled, and nobody executes it any more.",
				"Its operation fails with operation_closed: every retry of the client gets that answer.",
				"What the application had reserved for it is given back, in the same transaction.",
			},
			not: []string{
				"The provider is not called. If it did execute the call after all, it has it, and the books here do not.",
				"The client's key does not become free: a new try needs a new key.",
			},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.Close(ctx, a.message(), ch)
			},
		},
		"redrive": {
			Label: "Redrive: start it again",
			will: []string{
				"Evidence that the message keeps is settled. Where it keeps none and a call is open, the provider is asked what became of it.",
				"Otherwise the message is delivered again, under the same key at the provider.",
			},
			not: []string{"Nothing is executed twice: the provider knows the key, or the message is only probed."},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.Redrive(ctx, a.message(), ch)
			},
		},
		"reconcile": {
			Label: "Reconcile: ask the provider", Unfenced: true,
			will: []string{
				"The provider is asked now what became of the call, as the reconciler asks it by its schedule.",
				"What it says is settled: delivered, declined, or, where enough time has passed, that nothing happened.",
			},
			not: []string{"Nothing is executed at the provider. If it cannot tell, the message stays as it is."},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.ReconcileMessage(ctx, a.message(), ch)
			},
		},
	}
	ofRecords = map[string]action{
		"resolve": {
			Label: "Resolve with an answer", Answers: true,
			will: []string{"The operation is completed. Every retry of the client gets the answer below, from now on and until its record expires."},
			not:  []string{"The handler does not run, and no row of the application is written."},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.ResolveRecord(ctx, a.operation(), a.answer(), ch)
			},
		},
		"release": {
			Label: "Release: let it execute again",
			will:  []string{"The next request with the client's key executes. A holder that still runs is fenced off, and can store nothing."},
			not: []string{
				"Nothing executes now: the client, or its retry, has to come.",
				"It is not checked that nothing happened. If the handler did do what it was asked for, the next request does it a second time.",
			},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.Release(ctx, a.operation(), ch)
			},
		},
		"cache-bust": {
			Label: "Cache-bust: forget the answer",
			will: []string{
				"The stored answer is not given any more. The next request with the key executes, once no cache can hold the old answer.",
				"Until then, about a minute, the key answers 409.",
			},
			not: []string{"Nothing else that was written is undone: it is refused where anything was."},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.CacheBust(ctx, a.operation(), ch)
			},
		},
		"reconcile": {
			Label: "Reconcile: ask what became of it", Unfenced: true,
			will: []string{"The operation's Probe is asked now what became of it, as the reconciler asks it by its schedule. What it finds is stored."},
			not:  []string{"The handler does not run. If the Probe cannot tell, or there is none, the record stays as it is."},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.ReconcileRecord(ctx, a.operation(), ch)
			},
		},
	}
	ofAll = map[string]action{
		"sweep": {
			Label: "Sweep now", Unfenced: true,
			will: []string{"Everything that is due is processed now, as the schedule does every minute: due messages are offered to workers, operations whose holder died are marked, abandoned ones end."},
			not:  []string{"Nothing is decided that the schedule would not decide by itself."},
			make: func(ctx context.Context, d *operator.Desk, _ asked, ch operator.Change) (operator.Result, error) {
				return d.Sweep(ctx, ch)
			},
		},
	}
)

// actionOf is the change of that name for a message, an operation, or everything.
func actionOf(name, subject string) (action, bool) {
	of := ofRecords
	if _, _, err := idem.MessageID(subject).Operation(); err == nil {
		of = ofMessages
	} else if subject == everything {
		of = ofAll
	} else if operationOf(subject) == "" {
		return action{}, false
	}
	a, known := of[name]
	a.Name = name
	return a, known
}

// evidence is what a message is settled by.
func (a asked) evidence() outbox.Outcome {
	if a.Outcome == string(storage.MessageDelivered) {
		return outbox.Delivered{Reference: a.Reference, Evidence: a.Evidence}
	}
	return outbox.Declined{Reference: a.Reference, Evidence: a.Evidence}
}

// answer is what a wrapped operation is completed with.
func (a asked) answer() idem.Response {
	response := idem.Response{Status: a.Status, Body: a.Body}
	if len(a.Body) > 0 {
		response.Header = []idem.Field{{Name: "Content-Type", Value: a.Type}}
	}
	return response
}

// Will says what the change does.
func (a asked) will(of action) []string {
	if !of.Settles {
		return of.will
	}
	named := ""
	if a.Reference != "" {
		named = ", with the provider's reference " + a.Reference
	}
	lines := []string{
		fmt.Sprintf("The message is settled as %s%s, as its worker would have settled it.", a.Outcome, named),
		"What the application books for that is written in the same transaction. The operation gets its final answer, or its next message.",
	}
	if len(a.Evidence) > 0 {
		lines = append(lines, fmt.Sprintf("The settlement reads the evidence that you gave: %d bytes. If they contradict it, nothing is settled and the message keeps them.", len(a.Evidence)))
	}
	return lines
}

func (a asked) not(of action) []string {
	if !of.Settles {
		return of.not
	}
	return []string{
		"The provider is not called, and it is not checked that it says the same: that is your evidence.",
		"It cannot be taken back here. A settlement that is wrong has to be put right in the books.",
	}
}

// changePage is the form of a change.
type changePage struct {
	Of        action
	Asked     asked
	Operation string
	Actor     string
}

// changeForm shows the form of a change, for what was seen.
func (c *Console) changeForm(w http.ResponseWriter, r *http.Request) error {
	a, err := askedIn(r.URL.Query())
	if err != nil {
		return err
	}
	of, known := actionOf(a.Action, a.Subject)
	if !known {
		return &operator.InvalidError{Field: "change", Rule: "is not one that can be made there"}
	}
	c.render(w, r, http.StatusOK, "change", of.Label, changePage{of, a, operationOf(a.Subject), c.cfg.Actor})
	return nil
}

// fieldMax is the most characters of a field that is one line.
const fieldMax = 1000

// askedIn reads a change from a form, or from the address of one. The desk judges reason and fence.
func askedIn(values url.Values) (asked, error) {
	for name, of := range values {
		if name != "evidence" && name != "body" && len(of[0]) > fieldMax {
			return asked{}, &operator.InvalidError{Field: name, Rule: fmt.Sprintf("must have at most %d bytes", fieldMax)}
		}
	}
	a := asked{
		Action: values.Get("action"), Subject: values.Get("subject"), Seen: operator.Seen(values.Get("seen")), Reason: strings.TrimSpace(values.Get("reason")),
		Outcome: values.Get("outcome"), Reference: strings.TrimSpace(values.Get("reference")),
		Evidence: []byte(values.Get("evidence")), Body: []byte(values.Get("body")), Type: strings.TrimSpace(values.Get("type")),
	}
	if text := values.Get("status"); text != "" {
		status, err := strconv.Atoi(text)
		if err != nil || status < 200 || status > 599 {
			return asked{}, &operator.InvalidError{Field: "status", Rule: "must be 200..599"}
		}
		a.Status = status
	}
	return a, nil
}

// judged says what a change lacks that its form asks for.
func (a asked) judged(of action) error {
	settled := a.Outcome == string(storage.MessageDelivered) || a.Outcome == string(storage.MessageDeclined)
	switch {
	case of.Settles && !settled:
		return &operator.InvalidError{Field: "outcome", Rule: "must be delivered or declined"}
	case of.Settles && a.Outcome == string(storage.MessageDelivered) && a.Reference == "":
		return &operator.InvalidError{Field: "reference", Rule: "must be the provider's name of what was delivered"}
	case of.Answers && a.Status == 0:
		return &operator.InvalidError{Field: "status", Rule: "must be the status that the handler would have answered"}
	case of.Answers && len(a.Body) > 0 && a.Type == "":
		return &operator.InvalidError{Field: "type", Rule: "must be the content type of the answer"}
	}
	return nil
}
