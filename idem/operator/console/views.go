package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
)

// queueOf is a queue as a page shows it.
type queueOf struct {
	Queue operator.Queue
	About string
	Count operator.Count
	Rows  []queueRow
	// Oldest is the greatest age of the rows shown; "" where no age is known.
	Oldest string
	Tenant string
	// Next is the address of the rest; "" where there is none. Later says that this is not the begin.
	Next  string
	Later bool
}

// queueRow is an entry of a queue.
type queueRow struct {
	ID, State, What, Tenant, Last string
	Tone                          tone
	// Age counts from when it was made, and Open from the call, or the end of the execution's lease, whose outcome is not known.
	Age, Open string
	Made      time.Time
}

var aboutQueue = map[operator.Queue]string{
	operator.QueueStuck:   "Due, and not processed yet. The sweep takes them within a minute; what stays here longer waits for a worker that does not come.",
	operator.QueueUnknown: "May have happened. The reconciler asks the provider about them; what it cannot decide waits for evidence from you.",
	operator.QueueDead:    "Given up, or their evidence could not be settled. Nothing moves them but an operator.",
}

func (c *Console) overview(w http.ResponseWriter, r *http.Request) error {
	var all []queueOf
	for _, queue := range operator.Queues() {
		count, err := c.cfg.Desk.Count(r.Context(), queue, "")
		if err != nil {
			return err
		}
		q, err := c.readQueue(r.Context(), queue, "", "", 5)
		if err != nil {
			return err
		}
		q.Count = count
		all = append(all, q)
	}
	loss, err := c.cfg.Desk.Loss(r.Context())
	if err != nil {
		return err
	}
	entries, err := c.cfg.Desk.Entries(r.Context(), 24*time.Hour, "", 5)
	if err != nil {
		return err
	}
	c.render(w, r, http.StatusOK, "overview", "Overview", struct {
		Queues []queueOf
		Loss   operator.Loss
		Audit  []operator.Entry
	}{all, loss, entries})
	return nil
}

func (c *Console) queue(w http.ResponseWriter, r *http.Request) error {
	queue := operator.Queue(r.PathValue("queue"))
	if !slices.Contains(operator.Queues(), queue) {
		return &pageError{http.StatusNotFound, "There is no such queue."}
	}
	query := r.URL.Query()
	tenant, after := strings.TrimSpace(query.Get("tenant")), query.Get("after")
	q, err := c.readQueue(r.Context(), queue, tenant, after, pageRows)
	if err != nil {
		return err
	}
	if q.Count, err = c.cfg.Desk.Count(r.Context(), queue, tenant); err != nil {
		return err
	}
	c.render(w, r, http.StatusOK, "queue", "Queue: "+string(queue), q)
	return nil
}

func (c *Console) readQueue(ctx context.Context, queue operator.Queue, tenant, after string, limit int) (queueOf, error) {
	list, err := c.cfg.Desk.List(ctx, queue, tenant, limit, after)
	if err != nil {
		return queueOf{}, err
	}
	q := queueOf{Queue: queue, About: aboutQueue[queue], Tenant: tenant, Later: after != ""}
	now, oldest := c.now(), time.Duration(0)
	for _, l := range list.Rows {
		row := rowOf(l, now)
		q.Rows = append(q.Rows, row)
		if !row.Made.IsZero() {
			oldest = max(oldest, now.Sub(row.Made))
			q.Oldest = span(oldest)
		}
	}
	if list.Next != "" {
		q.Next = "/queue/" + string(queue) + "?" + url.Values{"tenant": {tenant}, "after": {list.Next}}.Encode()
	}
	return q, nil
}

func rowOf(l operator.Listed, now time.Time) queueRow {
	row := queueRow{ID: l.ID(), Tenant: l.Tenant}
	var open time.Time
	switch {
	case l.Message != nil:
		m := l.Message
		row.State, row.What, row.Last = string(m.State), m.Topic, m.LastOutcome
		row.Tone, row.Made, open = toneOfMessage(m.State), m.CreatedAt, m.OpenSince
	case l.Record != nil:
		r := l.Record
		row.State, row.What, row.Last = string(r.State), r.Operation, r.LastError
		row.Tone, row.Made, open = toneOfRecord(r.State), r.CreatedAt, openSince(*r, now)
	default:
		row.State, row.Tone, row.Last = "can't be read", bad, l.Unreadable
		row.What, row.Age = "not known", "not known"
		return row
	}
	row.Age = span(now.Sub(row.Made))
	if !open.IsZero() {
		row.Open = span(now.Sub(open))
	}
	return row
}

// operationPage is an operation's story as its page shows it.
type operationPage struct {
	Story    operator.Story
	Facts    Facts
	Factual  bool
	Summary  string
	Tone     tone
	Timeline timeline
	Picture  picture
	Offers   []offer
	Objects  []card
	// Fence is another one whenever anything was written that a change would be fenced by.
	Fence string
}

// card is what the provider has made, and where it settles its message; "" where it does not.
type card struct {
	Object
	Settles string
}

// offer is a step that a person may take, and where.
type offer struct {
	operator.Step
	// Reason is Why with its time as this console writes times.
	Reason string
	// Link is the page of the change, and Label what its button says; "" where the step is none.
	Link, Label string
}

func (c *Console) operation(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if operationOf(id) == "" {
		return &operator.InvalidError{Field: "id", Rule: "must be an operation's id, or a message's"}
	}
	story, err := c.story(r, id)
	if err != nil {
		return err
	}
	page := c.pageOf(story)
	c.render(w, r, http.StatusOK, "operation", "Operation", page)
	return nil
}

// story is the story of an id. Where a tenant's name of its own has led to the operation, the address has the tenant.
func (c *Console) story(r *http.Request, id string) (operator.Story, error) {
	if tenant := r.URL.Query().Get("tenant"); tenant != "" {
		return c.cfg.Desk.InspectOf(r.Context(), tenant, id)
	}
	return c.cfg.Desk.Inspect(r.Context(), id)
}

func (c *Console) pageOf(story operator.Story) operationPage {
	now := c.now()
	page := operationPage{Story: story, Fence: fenceOf(story)}
	if told, ok := story.Application.(Factual); ok {
		page.Facts, page.Factual = told.Facts(), true
	}
	page.Summary, page.Tone = summary(story, now)
	page.Timeline = timelineOf(story, page.Facts, now)
	page.Picture = draw(page.Timeline)
	seen := seenOf(story)
	for _, step := range story.Steps {
		o := offer{Step: step, Reason: step.WhyAt(func(at time.Time) string { return moment(at, now) })}
		if of, known := actionOf(step.Action, step.Subject); known && c.writes() {
			o.Label = of.Label
			o.Link = changeLink(url.Values{"action": {step.Action}, "subject": {step.Subject}, "seen": {string(seen[step.Subject])}})
		}
		page.Offers = append(page.Offers, o)
	}
	for _, object := range page.Facts.Objects {
		page.Objects = append(page.Objects, card{object, c.settleLink(story.Steps, seen, object)})
	}
	return page
}

// settleLink is where a message is settled by what the provider shows; "" where it can't be.
func (c *Console) settleLink(steps []operator.Step, seen map[string]operator.Seen, o Object) string {
	subject := string(o.Message)
	resolvable := slices.ContainsFunc(steps, func(s operator.Step) bool { return s.Subject == subject && s.Action == "resolve" })
	if !c.writes() || !resolvable || !o.settles() {
		return ""
	}
	return changeLink(url.Values{"action": {"resolve"}, "subject": {subject}, "seen": {string(seen[subject])}, "object": {c.objects.add(o)}})
}

func changeLink(values url.Values) string { return "/change?" + values.Encode() }

// seenOf is what the page shows of everything that can be changed, by its id.
func seenOf(s operator.Story) map[string]operator.Seen {
	seen := map[string]operator.Seen{}
	if s.Record != nil {
		seen[string(s.Operation)] = s.Record.Seen
	}
	for _, m := range s.Messages {
		seen[string(m.ID)] = m.Seen
	}
	return seen
}

func fenceOf(s operator.Story) string {
	var all []string
	if s.Record != nil {
		all = append(all, string(s.Record.Seen))
	}
	for _, m := range s.Messages {
		all = append(all, string(m.Seen))
	}
	return strings.Join(all, " ")
}

// find leads to what an id names: an operation's, a message's, with a tenant one of the application's, or the begin of the id of
// what stands in a queue or in the audit log.
func (c *Console) find(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	id, tenant := strings.TrimSpace(query.Get("id")), strings.TrimSpace(query.Get("tenant"))
	switch {
	case id == "":
		c.render(w, r, http.StatusOK, "find", "Find", findPage{Applications: c.cfg.Find != nil})
		return nil
	case operationOf(id) != "":
		http.Redirect(w, r, "/operation/"+url.PathEscape(id), http.StatusSeeOther)
		return nil
	case tenant != "" && c.cfg.Find != nil:
		found, err := c.cfg.Find(r.Context(), tenant, id)
		if operator.Refused(err) {
			return err
		}
		if err != nil {
			return fmt.Errorf("ask the application: %w", err)
		}
		if found != "" {
			http.Redirect(w, r, "/operation/"+url.PathEscape(string(found))+"?"+url.Values{"tenant": {tenant}}.Encode(), http.StatusSeeOther)
			return nil
		}
	}
	page := findPage{Applications: c.cfg.Find != nil, ID: id, Tenant: tenant, Asked: true}
	if len(id) >= operator.BeginningMin {
		found, err := c.cfg.Desk.Beginning(r.Context(), id)
		if err != nil {
			return err
		}
		if page.Found = found.Operations; len(page.Found) == 1 {
			http.Redirect(w, r, "/operation/"+url.PathEscape(string(page.Found[0])), http.StatusSeeOther)
			return nil
		}
	}
	c.render(w, r, http.StatusNotFound, "find", "Find", page)
	return nil
}

type findPage struct {
	// Applications says that the application can be asked for ids of its own.
	Applications bool
	ID, Tenant   string
	Asked        bool
	Found        []idem.OperationID
}

// findKey leads to the operation of a client's key. The key comes in a form, so that no address and no log has it.
func (c *Console) findKey(w http.ResponseWriter, r *http.Request) error {
	scope := idem.Scope{
		Tenant: strings.TrimSpace(r.PostForm.Get("tenant")), Operation: strings.TrimSpace(r.PostForm.Get("operation")),
		Key: r.PostForm.Get("key"), Principal: strings.TrimSpace(r.PostForm.Get("principal")),
	}
	if scope.Tenant == "" || scope.Key == "" {
		return &operator.InvalidError{Field: "search", Rule: "needs the tenant and its key"}
	}
	story, err := c.cfg.Desk.InspectScope(r.Context(), scope)
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/operation/"+url.PathEscape(string(story.Operation)), http.StatusSeeOther)
	return nil
}

// sinces are the spans that the page of the audit log offers.
var sinces = []time.Duration{24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, operator.SinceMax}

func (c *Console) audit(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	since, subject := sinces[1], strings.TrimSpace(query.Get("subject"))
	if text := query.Get("since"); text != "" {
		asked, err := time.ParseDuration(text)
		if err != nil {
			return &operator.InvalidError{Field: "since", Rule: "must be a duration, such as 168h"}
		}
		since = asked
	}
	entries, err := c.cfg.Desk.Entries(r.Context(), since, subject, auditRows)
	if err != nil {
		return err
	}
	c.render(w, r, http.StatusOK, "audit", "Audit log", struct {
		Entries []operator.Entry
		Since   time.Duration
		Sinces  []time.Duration
		Subject string
		Full    bool
	}{entries, since, sinces, subject, len(entries) == auditRows})
	return nil
}
