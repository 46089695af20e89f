package rehearsal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/localstack/provider"
)

type item = map[string]types.AttributeValue

// Attributes of the payments table.
const (
	attributeKey         = "pk"
	attributeStatus      = "st"
	attributeAmount      = "amt"
	attributeProvider    = "prv"
	attributeSource      = "src"
	attributeDestination = "dst"
)

func text(it item, name string) string {
	switch v := it[name].(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

// scan reads a whole table.
func scan(ctx context.Context, client *dynamodb.Client, table string, take func(item) error) error {
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, it := range page.Items {
			if err := take(it); err != nil {
				return err
			}
		}
	}
	return nil
}

// payments are the rehearsal's rows of payments and payouts.
func (r *run) payments(ctx context.Context) (rows []row, err error) {
	err = scan(ctx, r.tables, r.variables["PAYMENTS_TABLE"], func(it item) error {
		intent := text(it, attributeSource) + text(it, attributeDestination)
		if !strings.Contains(intent, r.id) {
			return nil
		}
		amount, err := strconv.ParseInt(text(it, attributeAmount), 10, 64)
		rows = append(rows, row{ID: text(it, attributeKey), Status: text(it, attributeStatus), Provider: text(it, attributeProvider), Amount: amount, Intent: intent})
		return err
	})
	return rows, err
}

// objects are the provider's that moved money for the rehearsal, and those of wrapped operations.
func (r *run) objects(ctx context.Context) (moved, wrapped []provider.Object, err error) {
	charges, err := r.provider.Charges(ctx)
	if err != nil {
		return nil, nil, err
	}
	payouts, err := r.provider.Payouts(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range append(charges, payouts...) {
		switch {
		case o.Status != provider.Succeeded || !strings.Contains(o.Source+o.Destination, r.id):
		case strings.HasPrefix(o.Source, "wrapped_"):
			wrapped = append(wrapped, o)
		default:
			moved = append(moved, o)
		}
	}
	return moved, wrapped, nil
}

// hasten runs sweep and reconciler once, as their schedule does every minute.
func (r *run) hasten(ctx context.Context) error {
	for _, name := range []string{"FUNCTION_SWEEP", "FUNCTION_RECONCILE"} {
		out, err := r.functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(r.variables[name]), Payload: []byte(`{}`)})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if out.FunctionError != nil {
			return fmt.Errorf("%s: %s", name, out.Payload)
		}
	}
	return nil
}

// after lets the clients send again, with their old keys, until each has its last answer or is refused with nothing left open.
func (r *run) after(ctx context.Context) error {
	before := answered(r.stories)
	if err := r.answers(ctx); err != nil {
		return err
	}
	r.tally()
	if !r.loses { // where records are lost, a request may be refused that was answered
		if err := r.answeredTheSame(before); err != nil {
			return err
		}
	}
	return errors.Join(r.askWrapped(ctx), r.askRevoked(ctx), r.payYounger(ctx))
}

// answers lets the clients send again until each has its last answer, or is refused and has no row.
func (r *run) answers(ctx context.Context) error {
	if err := r.provider.Faults(ctx); err != nil {
		return err
	}
	for _, s := range r.stories { // each asks once more, also who had its last answer
		s.answer = answer{}
	}
	for deadline := time.Now().Add(settleWithin); ; {
		r.retry(ctx, r.stories)
		known, err := r.payments(ctx)
		if err != nil {
			return err
		}
		var open []string
		for _, s := range r.stories {
			if lost := s.refused() && !contains(known, s.intent); !s.final() && !lost {
				open = append(open, fmt.Sprintf("%s: %d %s", s.intent, s.status, s.code))
			}
		}
		if len(open) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %s", settleWithin, strings.Join(open, "; "))
		}
		if err := r.hasten(ctx); err != nil {
			return err
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

func contains(rows []row, intent string) bool {
	for _, r := range rows {
		if r.Intent == intent {
			return true
		}
	}
	return false
}

// askWrapped sends the requests of wrapped operations again: whatever they are told, they don't execute.
func (r *run) askWrapped(ctx context.Context) error {
	again, err := r.newWrapped()
	if err != nil {
		return err
	}
	for _, h := range r.others {
		outcome, err := again.do(ctx, h.key, h.firstSent, false)
		var refused *idem.RefusedBeforeError
		switch {
		case errors.As(err, &refused) && r.loses:
		case err == nil && outcome != idem.OutcomeExecuted:
		default:
			return fmt.Errorf("wrapped operation %s: %s, %w", h.key, outcome, err)
		}
	}
	return nil
}

// payYounger pays under a key that is proven to be younger than the loss, which is executed.
func (r *run) payYounger(ctx context.Context) error {
	if err := pause(ctx, time.Until(r.cutOver.Add(3*time.Second))); err != nil { // a second is lost to the header's format
		return err
	}
	s := r.payment(fmt.Sprintf("card_%s_younger", r.id), nil)
	r.younger = s
	r.barred = r.barred || r.loses
	s.firstSent = r.now()
	for deadline := time.Now().Add(settleWithin); !s.final(); {
		if s.take(r.send(ctx, s)); s.refused() || time.Now().After(deadline) {
			return fmt.Errorf("a payment under a younger key is answered %d %s", s.status, s.code)
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// compare has the drift job compare everything, and counts the money.
func (r *run) compare(ctx context.Context) error {
	listed, drifted := r.drift(ctx)
	e := evidence{asked: r.asked(), listed: listed}
	var (
		charges []provider.Object
		err     error
	)
	if e.objects, charges, err = r.objects(ctx); err != nil {
		return err
	}
	if e.rows, err = r.payments(ctx); err != nil {
		return err
	}
	if err := r.countUnreadable(ctx); err != nil {
		return err
	}
	r.money.LostRows = lost(r.rows, e.rows)
	wrong := append(r.money.count(e), r.expected()...)
	perKey := map[string]int{}
	for _, o := range charges {
		if perKey[o.Source]++; perKey[o.Source] > 1 {
			wrong = append(wrong, fmt.Sprintf("wrapped operation %s was charged twice", o.Source))
		}
	}
	if r.money.Wrapped = len(charges); len(perKey) != len(r.others) {
		wrong = append(wrong, fmt.Sprintf("%d wrapped operations were charged, want %d", len(perKey), len(r.others)))
	}
	if len(wrong) > 0 {
		drifted = errors.Join(drifted, errors.New(strings.Join(wrong, "\n")))
	}
	return drifted
}

// expected says what a rehearsal has not shown that it is there to show.
func (r *run) expected() (wrong []string) {
	m := r.money
	if r.loses != (m.LostRows > 0) || r.loses != (m.Refused > 0) || r.loses != (m.Missing > 0) {
		wrong = append(wrong, fmt.Sprintf("%d rows were lost, %d retries refused, %d objects missing; records are lost: %v", m.LostRows, m.Refused, m.Missing, r.loses))
	}
	if m.Objects == 0 || (r.keeps || !r.loses) && m.Final == 0 {
		wrong = append(wrong, "nothing was there to be counted")
	}
	return wrong
}

// found is what the drift job says, as far as it is looked at.
type found struct {
	Unfinished         bool
	Unanswered         int
	Open, WithOperator int
	Window             struct{ To time.Time }
	Drifts             []struct {
		Kind, Entry string
		Sides       []struct{ What, ID, State string }
	}
}

// drift runs the drift job until its window ends after everything, and returns the provider's objects that no row accounts for. It is
// an error that anything else drifts, is open, or waits for an operator.
func (r *run) drift(ctx context.Context) (listed []string, err error) {
	to := time.Now()
	for {
		out, errs, code := r.idemctl(ctx, nil, "--output", "json", "drift", "--from", stamp(r.began), "--to", stamp(to))
		var report found
		if err := json.Unmarshal([]byte(out), &report); err != nil || code > 1 {
			return nil, fmt.Errorf("idemctl drift exits with %d: %s%s", code, out, errs)
		}
		if report.Window.To.Before(to.Truncate(time.Millisecond)) { // its grace is not over
			if err := pause(ctx, time.Second); err != nil {
				return nil, err
			}
			continue
		}
		var wrong []string
		for _, d := range report.Drifts {
			side := d.Sides[len(d.Sides)-1]
			if d.Kind != "missing_here" || d.Entry != "" {
				wrong = append(wrong, fmt.Sprintf("%+v", d))
			}
			listed = append(listed, side.ID)
		}
		if report.Unfinished || report.Unanswered+report.Open+report.WithOperator > 0 || len(wrong) > 0 {
			return listed, fmt.Errorf("the drift job finds more than missing objects: %s; %.2000s", strings.Join(wrong, "; "), out)
		}
		return listed, nil
	}
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// askRevoked: an API key that was revoked opens nothing, whatever was restored.
func (r *run) askRevoked(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.variables["API_URL"]+"/v1/accounts/acct_1", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.revoked)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		return fmt.Errorf("a revoked API key is answered %s", res.Status)
	}
	return nil
}
