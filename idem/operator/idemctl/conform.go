package idemctl

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/conform"
)

type conformance struct {
	URL          string        `arg:"" help:"Address of an endpoint that executes something once for each key."`
	Body         string        `required:"" type:"existingfile" help:"File with a valid request of the endpoint."`
	OtherBody    string        `type:"existingfile" help:"File with a valid request for something else. Default: the body with one member more."`
	Policy       string        `default:"ietf" enum:"ietf,stripe,lenient" help:"The contract that the endpoint declares: ${enum}."`
	Strict       bool          `help:"The endpoint refuses keys without quotes (policy ietf)."`
	Method       string        `default:"POST" help:"POST or PATCH."`
	ContentType  string        `default:"application/json" help:"Media type of the bodies."`
	Headers      string        `type:"existingfile" help:"File with a header on each line, as Authorization: Bearer …, which each request carries."`
	OtherHeaders string        `type:"existingfile" help:"The same for another tenant. Default: nothing is said about tenants."`
	Foreign      bool          `help:"The service does not use idem: its own headers and problem codes are not demanded."`
	Duplicates   int           `default:"8" help:"Number of requests that are sent with one key at the same moment, 2 to 100."`
	Settle       time.Duration `default:"1m" help:"How long a request is sent again until it has its final answer."`
	Execute      bool          `help:"Send the requests. About 15 of some 60 execute what the endpoint executes: use a test tenant. Without it the command only says so."`
}

// conformed is the answer to conform. The report's findings are empty unless --execute was given.
type conformed struct {
	URL      string            `json:"url"`
	Policy   string            `json:"policy"`
	Conforms bool              `json:"conforms"`
	Requests int               `json:"requests"`
	Executed int               `json:"executed"`
	Findings []conform.Finding `json:"findings"`
}

// Run implements the command.
func (c *conformance) Run(s *session) error {
	target, err := c.target()
	if err != nil {
		return &usageError{err.Error(), "Run idemctl conform --help: it lists what the command takes."}
	}
	if !c.Execute {
		answer := conformed{URL: c.URL, Policy: target.Policy.Name, Findings: []conform.Finding{}}
		return s.show(answer, func(t *table) {
			t.line("dry run: would send about 60 requests to %s, of which about 15 execute; add --execute", c.URL)
		})
	}
	report, err := conform.Check(s.ctx, target)
	var refused *idem.ConfigError
	if errors.As(err, &refused) {
		return &usageError{refused.Error(), "Run idemctl conform --help: it lists what the command takes."}
	}
	if err != nil {
		err = &unansweredError{err}
	}
	answer := conformed{c.URL, report.Policy, err == nil && report.Conforms(), report.Requests, report.Executed, report.Findings}
	if shown := s.show(answer, answer.write); shown != nil || err != nil {
		return errors.Join(err, shown)
	}
	if !answer.Conforms {
		return ErrDiffers
	}
	return nil
}

// unansweredError is a service that could not be held against anything: no table of one's own is in trouble.
type unansweredError struct{ cause error }

func (e *unansweredError) Error() string { return e.cause.Error() }
func (e *unansweredError) Unwrap() error { return e.cause }

func (c conformed) write(t *table) {
	rows := make([][]string, len(c.Findings))
	counts := map[conform.Verdict]int{}
	for i, f := range c.Findings {
		counts[f.Verdict]++
		rows[i] = []string{string(f.Verdict), f.Check, f.Clause}
	}
	t.columns([]column{{"VERDICT", false}, {"CHECK", false}, {"CLAUSE", true}}, rows)
	for _, f := range c.Findings {
		if f.Saw != "" {
			t.line("%s: %s", f.Check, visibleLines(f.Saw))
		}
	}
	t.line("%s, policy %s: %d hold, %d differ, %d not told, %d skipped; %s requests, at most %s executed", c.URL, c.Policy,
		counts[conform.Holds], counts[conform.Differs], counts[conform.NotTold], counts[conform.Skipped], strconv.Itoa(c.Requests), strconv.Itoa(c.Executed))
}

// target is what the command line says.
func (c *conformance) target() (t conform.Target, err error) {
	policies := map[string]func() idem.Policy{"ietf": idem.IETF, "stripe": idem.Stripe, "lenient": idem.Lenient}
	t = conform.Target{
		URL: c.URL, Method: c.Method, ContentType: c.ContentType, Policy: policies[c.Policy](), Foreign: c.Foreign, Duplicates: c.Duplicates, Settle: c.Settle,
	}
	if c.Strict {
		if t.Policy.Syntax != idem.SyntaxStructured {
			return t, errors.New("--strict goes with --policy ietf")
		}
		t.Policy.Syntax = idem.SyntaxStrict
	}
	if t.Body, err = os.ReadFile(c.Body); err != nil {
		return t, err
	}
	if c.OtherBody != "" {
		if t.Other, err = os.ReadFile(c.OtherBody); err != nil {
			return t, err
		}
	}
	if t.Header, err = headersIn(c.Headers); err != nil {
		return t, err
	}
	t.OtherCaller, err = headersIn(c.OtherHeaders)
	return t, err
}

// headersIn reads a file of header lines; nil without a file. Its errors do not show the lines, which hold credentials.
func headersIn(file string) (http.Header, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := http.Header{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, errors.New(file + ": line " + strconv.Itoa(n) + " is not Name: value")
		}
		all.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return all, lines.Err()
}
