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
	// Object names the provider's object that says outcome, reference and evidence; "" where the person says them.
	Object string
	Status int
	Body   []byte
	Type   string
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
				"If it is the first of its operation, the operation fails with operation_closed: every retry of the client gets that answer. What the application books for it, such as giving back what was reserved, is written in the same transaction.",
				"If it is a later one, the application may send a message that undoes the earlier steps: a worker then calls the provider, retries get the 202 until that has ended, and what was reserved stays so until then. The operation fails with the application's own answer. If the application sends none, it fails with operation_closed at once.",
				"If it was to undo an earlier step, that step stands: the operation fails with operation_closed, or the close is refused where the application does not admit that.",
				"If the operation has its final answer already, that answer stays, and nothing is booked. If the operation was complete without the message, its answer stays too, and the application books that the message was not executed, unless it did so when the message was given up.",
				"If nobody can open the message any more, the application books nothing for it.",
			},
			not: []string{
				"The provider is not called for this message. If it did execute the call after all, it has it, and the books here do not.",
				"The client's key does not become free: until the record has expired, a new try needs a new key.",
			},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.Close(ctx, a.message(), ch)
			},
		},
		"redrive": {
			Label: "Redrive: start it again",
			will: []string{
				"If the message keeps evidence, that is settled. Where that fails, it stays as it is and keeps the evidence.",
				"If it keeps none and a call is open, it becomes unknown: the reconciler asks the provider at its next run, where the provider can be asked. If it is proven that nothing happened, a worker executes the message.",
				"If it keeps none and no call is open, it is delivered again, under the same key at the provider.",
			},
			not: []string{
				"A call that may have happened is not repeated by this: first it has to be proven that nothing came of it.",
				"It is refused where the operation has its final answer, and for a decline that may be about one attempt of several.",
			},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.Redrive(ctx, a.message(), ch)
			},
		},
		"reconcile": {
			Label: "Reconcile: ask the provider", Unfenced: true,
			will: []string{
				"If the message is unknown, the provider is asked now what became of the call, as the reconciler asks it by its schedule. What it says is settled: delivered or declined.",
				"If it is proven that nothing happened, the message is offered again, and a worker executes it.",
				"If the provider could not tell for as long as the topic admits, the message is dead, and an operator must decide.",
				"If the message keeps evidence that waits to be settled, that is settled, and nobody is asked.",
			},
			not: []string{
				"This does not execute anything at the provider by itself. If the provider cannot tell, or it is too early for a proof, the message stays unknown, and is asked about again later.",
			},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.ReconcileMessage(ctx, a.message(), ch)
			},
		},
	}
	ofRecords = map[string]action{
		"resolve": {
			Label: "Resolve with an answer", Answers: true,
			will: []string{
				"The operation is completed. Every retry of the client gets the answer that you gave, for as long as its record answers.",
			},
			not: []string{
				"The handler is not run, and no row of the application is written. A handler that still runs is not stopped: what it writes by itself stays.",
			},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.ResolveRecord(ctx, a.operation(), a.answer(), ch)
			},
		},
		"release": {
			Label: "Release: let it execute again",
			will: []string{
				"The next request with the client's key executes. A holder that still runs is fenced off: it can store no answer, and commit nothing through the engine.",
			},
			not: []string{
				"Nothing executes now: the client, or its retry, has to come.",
				"It is refused for an operation that is unknown while a request of its handler may be under way.",
				"What was observed is released twice. Its first release leaves it only observed: where its policy is enforced, its key executes nothing until you know of no other request that was executed beside it, and release it again.",
				"It is not checked that nothing happened. If the handler of a wrapped operation did do what it was asked for, or still does it, the next request does it a second time: what it writes by itself is not fenced.",
			},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.Release(ctx, a.operation(), ch)
			},
		},
		"cache-bust": {
			Label: "Cache-bust: forget the answer",
			will: []string{
				"The stored answer is not given any more. The next request with the key executes, once no cache can hold the old answer. Until then, usually about a minute, the key answers 409; where nothing is cached, it executes at once.",
				"An answer that has expired already stays as it is.",
			},
			not: []string{
				"Nothing that was written is undone. It is refused where executing again could do something twice: where the commit wrote more than the record, or a handler that writes by itself is not declared safe to run again. It is refused, too, where the answer lives as long as its resource.",
			},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.CacheBust(ctx, a.operation(), ch)
			},
		},
		"reconcile": {
			Label: "Reconcile: ask what became of it", Unfenced: true,
			will: []string{
				"The operation's Probe is asked now what became of it, as the reconciler asks it by its schedule. If it was executed, the answer that the Probe gives is stored, and retries get it.",
				"If it is proven that nothing happened, the key is free: the next request with it executes.",
			},
			not: []string{
				"The handler does not run now. If the Probe cannot tell, if it is too early for a proof, or if there is no Probe, the record stays unknown.",
			},
			make: func(ctx context.Context, d *operator.Desk, a asked, ch operator.Change) (operator.Result, error) {
				return d.ReconcileRecord(ctx, a.operation(), ch)
			},
		},
	}
	ofAll = map[string]action{
		"sweep": {
			Label: "Sweep now", Unfenced: true,
			will: []string{
				"What is due is looked at now, as the schedule does every minute: due messages are offered to workers, who may call the provider; kept evidence is settled; operations whose holder died become unknown; abandoned messages end.",
				"It stops after as long as a change may take here, and after as many entries as one run may read. What is left is the next run's.",
			},
			not: []string{
				"Nothing is decided that the schedule would not decide by itself.",
			},
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

// will says what the change does. would is what the desk says of it: of a message that nobody can open any more it says so in a second sentence.
func (a asked) will(of action, would string) []string {
	if !of.Settles {
		return of.will
	}
	named := ""
	if a.Reference != "" {
		named = ", with the provider's reference " + a.Reference
	}
	lines := []string{
		fmt.Sprintf("The message is settled as %s%s, as its worker would have settled it.", a.Outcome, named),
		"What the application books for that is written in the same transaction. The operation gets its final answer, or its next message, which a worker executes. The answer of an operation that was complete without the message stays.",
		"If that cannot be written, or contradicts what the message keeps, nothing is settled: the message keeps what you gave, and is dead, or evidenced until the sweep settles it.",
	}
	if _, unopened, is := strings.Cut(would, ". "); is {
		lines[1] = unopened + ". Correct its rows by hand."
	}
	if a.Outcome == string(storage.MessageDeclined) {
		lines = append(lines, "If the message was to undo an earlier step, a decline settles nothing: what it was to undo stands, and the message keeps the decline and is dead.")
	}
	switch {
	case a.Object != "":
		lines = append(lines, fmt.Sprintf("The settlement reads what the provider showed when you looked: %d bytes. If that is not what the message asked for, such as another amount, nothing is settled: the message keeps it, and waits for an operator.", len(a.Evidence)))
	case len(a.Evidence) > 0:
		lines = append(lines, fmt.Sprintf("The settlement reads the evidence that you gave: %d bytes. If they contradict it, nothing is settled and the message keeps them.", len(a.Evidence)))
	}
	return lines
}

func (a asked) not(of action) []string {
	if !of.Settles {
		return of.not
	}
	asks := "The provider is not called for this message, and it is not checked that it says the same: that is your evidence."
	if a.Object != "" {
		asks = "The provider is not called for this message, and is not asked again: what it showed when you looked is the evidence."
	}
	return []string{asks, "It cannot be taken back here. A settlement that is wrong has to be put right in the books."}
}

// changePage is the form of a change.
type changePage struct {
	Of    action
	Asked asked
	Actor string
}

// changeForm shows the form of a change, for what was seen.
func (c *Console) changeForm(w http.ResponseWriter, r *http.Request) error {
	a, err := askedIn(r.URL.Query())
	if err == nil {
		a, err = c.byObject(a)
	}
	if err != nil {
		return err
	}
	of, known := actionOf(a.Action, a.Subject)
	if !known {
		return &operator.InvalidError{Field: "change", Rule: "is not one that can be made there"}
	}
	c.render(w, r, http.StatusOK, "change", of.Label, changePage{of, a, c.cfg.Actor})
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
		Evidence: typed(values.Get("evidence")), Body: typed(values.Get("body")), Type: strings.TrimSpace(values.Get("type")), Object: values.Get("object"),
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

// typed is what was typed into a field of several lines: browsers send each end of a line as CR LF, whatever it was.
func typed(text string) []byte { return []byte(strings.ReplaceAll(text, "\r\n", "\n")) }

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
