package middleware_test

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// contract is an API whose two operations follow one policy. Its handler answers as the request's X-Answer says.
type contract struct {
	*api
	policy idem.Policy
	runs   atomic.Int64
	// held, where set, is reached by each run, which then waits for its release.
	reached, release chan struct{}
}

func newContract(t *testing.T, policy idem.Policy, change ...func(*idem.Policy)) *contract {
	t.Helper()
	for _, f := range change {
		f(&policy)
	}
	c := &contract{api: newAPI(t, nil), policy: policy}
	for _, name := range []string{"orders", "refunds"} {
		c.handle("POST /"+name, idem.Operation{Name: name + ".create", Policy: policy}, middleware.Route{Validate: validate}, c.execute)
	}
	return c
}

// validate refuses a body with "invalid" in it, before anything executes.
func validate(r *middleware.Request) *idem.Problem {
	if !strings.Contains(string(r.Body), "invalid") {
		return nil
	}
	p := idem.NewProblem(http.StatusBadRequest, "request_invalid", "Invalid request", "The body is not valid.")
	return &p
}

func (c *contract) execute(_ context.Context, _ *idem.Tx, r *middleware.Request) (idem.Response, error) {
	run := c.runs.Add(1)
	if c.reached != nil {
		c.reached <- struct{}{}
		<-c.release
	}
	status, err := strconv.Atoi(r.HTTP.Header.Get("X-Answer"))
	if err != nil {
		status = http.StatusCreated
	}
	if r.HTTP.Header.Get("X-Declared") != "" {
		return idem.Response{}, &idem.RejectedError{Problem: idem.NewProblem(status, "declared", "Declared", "By Reject.")}
	}
	return idem.JSON(status, run)
}

// post sends an order with a key and a body, to which the handler shall answer with the status.
func (c *contract) post(key string, answer int, more ...func(*ask)) *reply {
	c.Helper()
	q := ask{keys: []string{key}, header: map[string]string{"X-Answer": strconv.Itoa(answer)}}
	for _, f := range more {
		f(&q)
	}
	return c.do(q)
}

func body(text string) func(*ask) { return func(q *ask) { q.body = text } }
func at(path string) func(*ask)   { return func(q *ask) { q.path = path } }
func by(tenant string) func(*ask) { return func(q *ask) { q.tenant = tenant } }
func without(q *ask)              { q.keys = nil }
func declared(q *ask)             { q.header["X-Declared"] = "1" }
func sentAt(at time.Time) func(*ask) {
	return func(q *ask) { q.header["Idempotency-First-Sent"] = at.Format(time.RFC3339) }
}
func (c *contract) executed(n int64) {
	c.Helper()
	if got := c.runs.Load(); got != n {
		c.Errorf("executed %d times, want %d", got, n)
	}
}

// is demands a status, the Idempotency-Status that goes with it, and a problem's code ("" for none).
func (r *reply) is(t *testing.T, status int, became, code string) *reply {
	t.Helper()
	got := ""
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/problem+json") {
		got = r.code(t)
	}
	if r.StatusCode != status || r.Header.Get("Idempotency-Status") != became || got != code {
		t.Errorf("%d %q %q: %s; want %d %q %q", r.StatusCode, r.Header.Get("Idempotency-Status"), got, r.body, status, became, code)
	}
	return r
}

// comesBack demands a Retry-After.
func (r *reply) comesBack(t *testing.T) {
	t.Helper()
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || seconds < 1 {
		t.Errorf("Retry-After %q, want seconds", r.Header.Get("Retry-After"))
	}
}

// replays demands that the same request gets the stored answer, and that nothing executes again.
func (c *contract) replays(first *reply, again *reply) {
	c.Helper()
	runs := c.runs.Load()
	if again.StatusCode != first.StatusCode || string(again.body) != string(first.body) || again.Header.Get("Idempotent-Replayed") != "true" || again.Header.Get("Idempotency-Status") != "replayed" {
		c.Errorf("%d %s %v; want a replay of %d %s", again.StatusCode, again.body, again.Header, first.StatusCode, first.body)
	}
	c.executed(runs)
}

const (
	executed    = "executed"
	mismatch    = "mismatch"
	inProgress  = "in_progress"
	unprotected = "unprotected"
)

// cells are the table "Policies" of docs/semantics.md: row, policy, and what proves the cell.
var cells = map[string]map[string]func(*testing.T, idem.Policy){
	"missing key on an unsafe method": {"IETF": missingIsRefused, "Stripe": missingIsUnprotected, "Lenient": missingIsUnprotected},
	"empty header":                    {"IETF": emptyIsRefused, "Stripe": emptyIsMissing, "Lenient": emptyIsMissing},
	"syntax":                          {"IETF": syntaxStructured, "Stripe": syntaxOpaqueBounded, "Lenient": syntaxOpaqueAny},
	"other payload":                   {"IETF": payload422, "Stripe": payload400, "Lenient": payloadReplays},
	"in flight":                       {"IETF": flight409, "Stripe": flightInUse, "Lenient": flightWaits},
	"5xx result":                      {"IETF": serverErrorReleases, "Stripe": serverErrorIsStored, "Lenient": serverErrorReleases},
	"4xx result":                      {"IETF": clientErrorsFinal, "Stripe": clientErrorsFinal, "Lenient": clientErrorsAll},
	"scope":                           {"IETF": scopeOperation, "Stripe": scopeTenant(400, "idempotency_error"), "Lenient": scopeTenant(422, "idempotency_key_reused_with_different_payload")},
	"retention":                       {"IETF": retentionChosen, "Stripe": retentionOfADay, "Lenient": retentionOrLifetime},
	"after expiry":                    {"IETF": expiredIsNewOrGone, "Stripe": expiredIsNew, "Lenient": expiredIsNew},
}

var presets = map[string]func() idem.Policy{"IETF": idem.IETF, "Stripe": idem.Stripe, "Lenient": idem.Lenient}

func TestConformance(t *testing.T) { // docs/semantics.md "Policies"
	for row, policies := range cells {
		t.Run(row, func(t *testing.T) {
			for name, prove := range policies {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					prove(t, presets[name]())
				})
			}
		})
	}
}

// The table of the contract and that of the tests have the same rows and columns.
func TestConformanceCoversTheContract(t *testing.T) {
	text, err := os.ReadFile("../../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n## Policies\n")
	if !found {
		t.Fatal("docs/semantics.md has no section Policies")
	}
	lines := regexp.MustCompile(`(?m)^\|.*\|$`).FindAllString(table, -1)
	var rows []string
	for i, line := range lines {
		fields := strings.Split(strings.Trim(line, "|"), "|")
		for j := range fields {
			fields[j] = strings.TrimSpace(fields[j])
		}
		switch {
		case i == 0:
			columns := []string{"IETF (default)", "Stripe", "Lenient"}
			if !slices.Equal(fields[1:], columns) {
				t.Errorf("columns %q, want %q", fields[1:], columns)
			}
		case i > 1 && len(fields) == 4:
			rows = append(rows, fields[0])
		}
	}
	if len(rows) != len(cells) {
		t.Errorf("%d rows %q, and %d with tests", len(rows), rows, len(cells))
	}
	for _, row := range rows {
		if len(cells[row]) != len(presets) {
			t.Errorf("row %q has %d cells with a test", row, len(cells[row]))
		}
	}
}
