package middleware_test

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
)

// cell is one cell of the contract: what it says, word for word, and what proves it.
type cell struct {
	says  string
	prove func(*testing.T, idem.Policy)
}

// row is one row of the contract: a cell for each published policy, and what is left of it where nothing is acted on.
type row struct {
	name                  string
	ietf, stripe, lenient cell
	// passes are requests at a route that is exempt, or only observed; reports is what the observed route reports of them,
	// as "status outcome code".
	passes  func(*contract)
	reports []string
}

// rows is the table "Policies" of docs/semantics.md.
var rows = []row{
	{
		"missing key on an unsafe method",
		cell{"400", missingIsRefused},
		cell{"executes without protection, marked so in header and metric", missingIsUnprotected},
		cell{"as without header", missingIsUnprotected},
		passMissing, []string{"400  idempotency_key_missing"},
	},
	{
		"empty header",
		cell{"400", emptyIsRefused},
		cell{"as missing", emptyIsMissing},
		cell{"as absent", emptyIsMissing},
		passEmpty, []string{"400  idempotency_key_invalid"},
	},
	{
		"syntax",
		cell{"structured-field string, quoted; a bare value is the same key unless strict", syntaxStructured},
		cell{"opaque, 1..255, minimum length by choice", syntaxOpaqueBounded},
		cell{"opaque, any", syntaxOpaqueAny},
		passSyntax, []string{"400  idempotency_key_invalid"},
	},
	{
		"other payload",
		cell{"422", payload422},
		cell{"400 `idempotency_error`", payload400},
		cell{"replays the first result", payloadReplays},
		passPayload, []string{"422 mismatch idempotency_key_reused_with_different_payload"},
	},
	{
		"in flight",
		cell{"409 + Retry-After", flight(header.CodeInProgress)},
		cell{"409 `idempotency_key_in_use`", flight(header.CodeInUse)},
		cell{"waits, then replays the winner's response; 409 only when the wait budget is over", flightWaits},
		passFlight, []string{"409 in_progress idempotency_key_in_progress"},
	},
	{
		"5xx result",
		cell{"not stored; retry executes", serverErrorReleases},
		cell{"stored and replayed once execution began", serverErrorIsStored},
		cell{"not stored", serverErrorReleases},
		passServerError, nil,
	},
	{
		"4xx result",
		cell{"stored, except validation before execution and 401, 403, 408, 409, 425, 429 (the layer's own or a handler's, unless it declared them by Reject)", clientErrorsFinal},
		cell{"same", clientErrorsFinal},
		cell{"stored", clientErrorsAll},
		passClientError, []string{"402 replayed"},
	},
	{
		"scope",
		cell{"tenant + operation + key", scopeOperation},
		cell{"tenant + key; another operation = mismatch", scopeTenant(400, header.CodeError)},
		cell{"tenant + key; another operation = mismatch, never a replay", scopeTenant(422, header.CodeKeyReused)},
		passScope, nil,
	},
	{
		"retention",
		cell{"24 h, per operation 1 h .. 90 d", retentionChosen},
		cell{"24 h", retentionOfADay},
		cell{"24 h, or the resource's lifetime", retentionOrLifetime},
		passRetention, []string{"201 replayed"},
	},
	{
		"after expiry",
		cell{"new request, or 410 by tombstone or a time in every key", expiredIsNewOrGone},
		cell{"new request", expiredIsNew},
		cell{"new request", expiredIsNew},
		passExpiry, nil,
	},
}

func TestConformance(t *testing.T) { // docs/semantics.md "Policies"
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			proves(t, "IETF", func(t *testing.T) { row.ietf.prove(t, idem.IETF()) })
			proves(t, "Stripe", func(t *testing.T) { row.stripe.prove(t, idem.Stripe()) })
			proves(t, "Lenient", func(t *testing.T) { row.lenient.prove(t, idem.Lenient()) })
			proves(t, "Exempt", func(t *testing.T) { passes(t, idem.Exempt("a search"), row.passes, nil) })
			proves(t, "Observe", func(t *testing.T) { passes(t, idem.Observe(idem.IETF()), row.passes, row.reports) })
		})
	}
}

// proves runs a subtest in a bubble, whose time passes when nobody has anything else to do.
func proves(t *testing.T, name string, prove func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, prove)
	})
}

// The tests have the rows, columns and words of the contract: who changes one sees the other.
func TestConformanceIsTheContract(t *testing.T) {
	want := [][]string{{"", "IETF (default)", "Stripe", "Lenient"}}
	for _, r := range rows {
		want = append(want, []string{r.name, r.ietf.says, r.stripe.says, r.lenient.says})
	}
	sameTable(t, table(t, "Policies"), want)
}

// Every field of a policy is a row of the contract or a variant that no published policy uses.
func TestEveryFieldOfAPolicyIsProven(t *testing.T) {
	proven := map[string]string{
		"ExemptReason": "Exempt", "Observe": "Observe",
		"MissingKey": "missing key on an unsafe method", "EmptyKeyIsMissing": "empty header", "Syntax": "syntax", "KeyBytesMin": "syntax",
		"Mismatch": "other payload", "InFlight": "in flight", "WaitMax": "in flight", "StoreServerErrors": "5xx result",
		"StoreClientErrors": "4xx result", "Scope": "scope", "Retention": "retention", "ResourceBacked": "retention",
		"GoneAfterExpiry": "after expiry", "KeepFor": "after expiry", "KeyTime": "after expiry", "KeyTimeRequired": "after expiry",
		"BindPrincipal": "BindPrincipal", "ReplayHeaders": "ReplayHeaders",
	}
	tests := slices.AppendSeq([]string{"Exempt", "Observe"}, maps.Keys(variants))
	for _, r := range rows {
		tests = append(tests, r.name)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[idem.Policy]()) {
		if field.Name != "Name" && !slices.Contains(tests, proven[field.Name]) {
			t.Errorf("Policy.%s is proven by %q, which is no row and no variant", field.Name, proven[field.Name])
		}
	}
}

// section is the text of the contract below a heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/semantics.md has no section %q", heading)
	}
	below, _, _ := strings.Cut(after, "\n## ")
	return below
}

var tableLine = regexp.MustCompile(`(?m)^\|.*\|$`)

// table is the one table of a section, without the line below its head.
func table(t *testing.T, heading string) [][]string {
	t.Helper()
	var lines [][]string
	for i, line := range tableLine.FindAllString(section(t, heading), -1) {
		fields := strings.Split(strings.Trim(line, "|"), "|")
		for j, field := range fields {
			fields[j] = strings.TrimSpace(field)
		}
		if i != 1 {
			lines = append(lines, fields)
		}
	}
	return lines
}

func sameTable(t *testing.T, document, tests [][]string) {
	t.Helper()
	for _, line := range document {
		if !slices.ContainsFunc(tests, func(tested []string) bool { return slices.Equal(line, tested) }) {
			t.Errorf("docs/semantics.md says what no test does: %q", line)
		}
	}
	for _, tested := range tests {
		if !slices.ContainsFunc(document, func(line []string) bool { return slices.Equal(line, tested) }) {
			t.Errorf("docs/semantics.md does not say what a test does: %q", tested)
		}
	}
}
