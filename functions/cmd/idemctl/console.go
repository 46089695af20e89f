package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator/console"
)

// onConsole completes the console with the drift job.
func onConsole(c *console.Config) error {
	c.Drift = driftOnConsole
	return nil
}

// Facts implements [console.Factual].
func (k known) Facts() console.Facts {
	facts := console.Facts{Unasked: map[idem.MessageID]string{}}
	if r := k.Row; r != nil {
		facts.Name = fmt.Sprintf("%s %s", r.Kind, r.ID)
		facts.Fields = []console.Field{{Name: "Status", Value: string(r.Status)}, {Name: "Amount", Value: money(r.Amount, r.Currency)}}
		for _, more := range []console.Field{{Name: "Of payment", Value: r.Payment}, {Name: "Provider's reference", Value: r.ProviderReference}} {
			if more.Value != "" {
				facts.Fields = append(facts.Fields, more)
			}
		}
		if r.Refunded != 0 {
			facts.Fields = append(facts.Fields, console.Field{Name: "Refunded", Value: money(r.Refunded, r.Currency)})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(k.Provider)) {
		objects, err := objectsIn(id, k.Provider[id])
		if err != nil {
			facts.Unasked[id] = err.Error()
		}
		facts.Objects = append(facts.Objects, objects...)
	}
	return facts
}

// object is what an operator has to know of a provider's object. The client's own text in it is not read.
type object struct {
	ID        string    `json:"id"`
	Kind      string    `json:"object"`
	Status    string    `json:"status"`
	Amount    int64     `json:"amount"`
	Currency  string    `json:"currency"`
	Attempts  int       `json:"attempts"`
	CreatedAt time.Time `json:"created_at"`
}

// objectsIn reads what the provider shows under a message's key: a list, nothing, or why it could not be asked.
func objectsIn(id idem.MessageID, raw json.RawMessage) ([]console.Object, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var why string
	if json.Unmarshal(raw, &why) == nil {
		return nil, errors.New(strings.TrimPrefix(why, unasked)) // the console says so itself
	}
	judged, err := payments.Judge(raw, id)
	if err != nil {
		return nil, fmt.Errorf("its answer can't be read: %w", err)
	}
	objects := make([]object, len(judged))
	for i, j := range judged {
		if err := json.Unmarshal(j.Bytes, &objects[i]); err != nil {
			return nil, fmt.Errorf("its answer can't be read: %w", err)
		}
	}
	shown := make([]console.Object, len(judged))
	for i, j := range judged {
		shown[i] = objects[i].shown(id, j)
	}
	return shown, nil
}

// shown is an object with what it proves, as a probe judges it: a person who settles by it settles what the reconciler would.
func (o object) shown(id idem.MessageID, judged payments.Judged) console.Object {
	shown := console.Object{
		Message: id, Reference: o.ID, At: o.CreatedAt, Evidence: judged.Bytes,
		Fields: []console.Field{{Name: "Kind", Value: o.Kind}, {Name: "Status", Value: o.Status}},
	}
	if judged.Outcome != nil {
		shown.Outcome = judged.Outcome.Name()
	} else {
		shown.Doubt = strings.TrimPrefix(judged.Doubt.Error(), "payments: ")
	}
	if o.Amount != 0 {
		shown.Fields = append(shown.Fields, console.Field{Name: "Amount", Value: money(o.Amount, o.Currency)})
	}
	if o.Attempts > 0 {
		shown.Fields = append(shown.Fields, console.Field{Name: "Requests for it", Value: fmt.Sprint(o.Attempts)})
	}
	return shown
}

// money is an amount in minor units as the application has it: how many of them make a whole is the currency's.
func money(amount int64, currency string) string {
	return fmt.Sprintf("%d %s (minor units)", amount, currency)
}

// driftOnConsole runs the drift job for its usual window.
func driftOnConsole(ctx context.Context, tenant string) (console.Drift, error) {
	cfg, err := read[config.Drift]()
	if err != nil {
		return console.Drift{}, err
	}
	job, err := drift.Open(ctx, cfg, nil)
	if err != nil {
		return console.Drift{}, err
	}
	report, err := job.Check(ctx, drift.Window{Tenant: tenant})
	return shownDrift(report), err
}

func shownDrift(r drift.Report) console.Drift {
	field := func(name, format string, args ...any) console.Field {
		return console.Field{Name: name, Value: fmt.Sprintf(format, args...)}
	}
	shown := console.Drift{Clean: r.Clean(), Fields: []console.Field{
		field("Window", "%s to %s", r.Window.From.Format(time.RFC3339), r.Window.To.Format(time.RFC3339)),
		field("Compared", "%d rows, %d messages, %d records, %d objects of the provider", r.Compared.Rows, r.Compared.Messages, r.Compared.Records, r.Compared.Objects),
		field("Drift", "%d", r.DriftCount()), field("Open", "%d", r.Open), field("With an operator", "%d", r.WithOperator),
	}}
	for _, more := range []struct {
		name string
		n    int
	}{{"Unreadable", r.Unreadable}, {"Not answered by the provider", r.Unanswered}} {
		if more.n > 0 {
			shown.Fields = append(shown.Fields, field(more.name, "%d", more.n))
		}
	}
	if r.Unfinished {
		shown.Fields = append(shown.Fields, field("Unfinished", "compared down to %s", r.Reached.Format(time.RFC3339)))
	}
	for _, d := range r.Drifts {
		finding := console.Finding{Kind: string(d.Kind), Tenant: d.Tenant, Entry: d.Entry}
		for _, side := range d.Sides {
			finding.Sides = append(finding.Sides, side.String())
		}
		shown.Findings = append(shown.Findings, finding)
	}
	for _, p := range r.Parked {
		shown.Findings = append(shown.Findings, console.Finding{
			Kind: "with an operator", Tenant: p.Tenant, Entry: p.Entry, Sides: []string{fmt.Sprintf("message %s %s", p.Message, p.State)},
		})
	}
	return shown
}
