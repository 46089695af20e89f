package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
)

// plan is a change that was asked for, tried without writing, and shown. It is made at most once, however often its form comes.
type plan struct {
	id    string
	of    action
	asked asked
	// would is what the desk says that it would do, and unsettled that evidence can't be settled by it.
	would     string
	unsettled bool
	at        time.Time
	by        *session

	// turn is had by who makes it, mu guards what came of it: a page need not wait for the end.
	turn, mu sync.Mutex
	// begun says that it was begun, made that it has ended, with result and err.
	begun, made bool
	result      operator.Result
	err         error
}

// plans are the changes of this console's life, the latest of them.
type plans struct {
	mu   sync.Mutex
	byID map[string]*plan
	// order has the oldest first.
	order []string
}

func (p *plans) add(one *plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID == nil {
		p.byID = map[string]*plan{}
	}
	if len(p.order) >= plansMax {
		delete(p.byID, p.order[0])
		p.order = p.order[1:]
	}
	p.byID[one.id] = one
	p.order = append(p.order, one.id)
}

// of returns the plan that the browser was shown; nil where there is none any more.
func (p *plans) of(id string, by *session) *plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.byID[id]; one != nil && one.by == by {
		return one
	}
	return nil
}

// change is who changes it, why, and about what they saw.
func (c *Console) change(a asked, of action, dry bool) operator.Change {
	ch := operator.Change{Actor: c.cfg.Actor, Reason: a.Reason, Seen: a.Seen, DryRun: dry}
	if of.Unfenced {
		ch.Seen = ""
	}
	return ch
}

// planChange tries a change without writing, and shows what it would do.
func (c *Console) planChange(w http.ResponseWriter, r *http.Request) error {
	a, err := askedIn(r.PostForm)
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
	if err := a.judged(of); err != nil {
		return err
	}
	tried, err := of.make(r.Context(), c.cfg.Desk, a, c.change(a, of, true))
	if err != nil {
		return err
	}
	id, err := c.mint()
	if err != nil {
		return err
	}
	c.plans.add(&plan{id: id, of: of, asked: a, would: tried.Outcome, unsettled: tried.Unsettled, at: c.now(), by: sessionOf(r)})
	http.Redirect(w, r, "/plan/"+id, http.StatusSeeOther)
	return nil
}

var errNoPlan = &pageError{http.StatusNotFound, "This change is not known here: it was planned by another browser, too long ago, or before the console started again. The audit log has what was made."}

// planPage is a plan as its page shows it.
type planPage struct {
	ID          string
	Of          action
	Asked       asked
	Will, Not   []string
	Actor       string
	Made, Again bool
	Result      operator.Result
	Failed      string
	Stale       *operator.StaleError
	// Broke says that it panicked.
	Broke bool
	// Unlogged says that it was made, and that the audit log could not be told.
	Unlogged bool
}

func (c *Console) showPlan(w http.ResponseWriter, r *http.Request) error {
	p := c.plans.of(r.PathValue("id"), sessionOf(r))
	if p == nil {
		return errNoPlan
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun && !p.made {
		return &pageError{http.StatusServiceUnavailable, "This change is being made. Load the page again to see what came of it."}
	}
	page := planPage{
		ID: p.id, Of: p.of, Asked: p.asked, Will: p.will(), Not: p.asked.not(p.of),
		Actor: c.cfg.Actor, Made: p.made, Again: r.URL.Query().Has("again"), Result: p.result, Stale: staleOf(p.err),
	}
	title, status := "Confirm: "+p.of.Label, http.StatusOK
	if p.made {
		title = "Done: " + p.of.Label
	}
	if p.err != nil {
		if status, title = statusOf(p.err); status == http.StatusBadGateway { // which says of a page that it could not be read
			title = "It failed: " + p.of.Label
		}
		page.Broke = errors.Is(p.err, errBroke)
		page.Failed = sentence(p.err.Error())
		var unlogged *operator.UnloggedError
		page.Unlogged = errors.As(p.err, &unlogged)
	}
	c.render(w, r, status, "plan", title, page)
	return nil
}

// makeChange makes a planned change, once. A form that is sent again shows what came of it. A browser that goes does
// not end it.
func (c *Console) makeChange(w http.ResponseWriter, r *http.Request) {
	p := c.plans.of(r.PathValue("id"), sessionOf(r))
	if p == nil {
		c.fail(w, r, errNoPlan)
		return
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	address := "/plan/" + url.PathEscape(p.id)
	switch {
	case p.begun: // who has the turn alone writes it
		address += "?again=1"
	case c.now().Sub(p.at) > planAge:
		c.fail(w, r, &pageError{http.StatusConflict, "This change was planned too long ago. Nothing was changed: look at the operation again."})
		return
	default:
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), c.cfg.ChangeWithin)
		defer cancel()
		p.begin()
		p.end(c.made(ctx, p))
	}
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// will says what the change does: first what the desk says of the row as it is, such as that a next message is sent. Where evidence can't be
// settled, nothing else is true.
func (p *plan) will() []string {
	switch now := "As it is now, this would " + p.would + "."; {
	case p.unsettled:
		return []string{
			"Nothing is settled: it was tried, without writing. " + now,
			"The evidence may be about something else than the message asked for, such as another amount. The operation gets no answer by it.",
		}
	case p.of.Unfenced, // nobody can say before what is found
		p.of.Settles && p.would == "settle it as "+p.asked.Outcome: // and nothing is sent
		return p.asked.will(p.of, p.would)
	default:
		return append([]string{now}, p.asked.will(p.of, p.would)...)
	}
}

func (p *plan) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = true
}

func (p *plan) end(result operator.Result, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made, p.result, p.err = true, result, err
}

var errBroke = errors.New("console: the change panicked")

// made makes the change at the desk. After a panic nobody knows how far it came.
func (c *Console) made(ctx context.Context, p *plan) (result operator.Result, err error) {
	defer func() {
		if broke := recover(); broke != nil {
			c.cfg.Logger.ErrorContext(ctx, "console.panicked", "action", p.of.Name, "subject", p.asked.Subject, "error", fmt.Sprint(broke), "stack", string(debug.Stack()))
			err = errBroke
		}
	}()
	return p.of.make(ctx, c.cfg.Desk, p.asked, c.change(p.asked, p.of, false))
}
