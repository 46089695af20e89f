package docsite

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// statusOf are net/http's names of the statuses that problems have.
var statusOf = map[string]int{
	"StatusBadRequest": http.StatusBadRequest, "StatusUnauthorized": http.StatusUnauthorized, "StatusForbidden": http.StatusForbidden,
	"StatusNotFound": http.StatusNotFound, "StatusMethodNotAllowed": http.StatusMethodNotAllowed, "StatusConflict": http.StatusConflict,
	"StatusGone": http.StatusGone, "StatusPreconditionFailed": http.StatusPreconditionFailed,
	"StatusRequestEntityTooLarge": http.StatusRequestEntityTooLarge, "StatusUnsupportedMediaType": http.StatusUnsupportedMediaType,
	"StatusUnprocessableEntity": http.StatusUnprocessableEntity, "StatusTooManyRequests": http.StatusTooManyRequests,
	"StatusInternalServerError": http.StatusInternalServerError, "StatusServiceUnavailable": http.StatusServiceUnavailable,
}

// The page of the HTTP contract has every problem code of the layer, with the statuses that it is answered with.
func TestProblemCodesAreDocumented(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{} // by the name of their constant
	for _, folder := range []string{"header", "middleware"} {
		textConstants(t, filepath.Join(root, "idem", folder), func(name, value string) {
			if strings.HasPrefix(strings.ToLower(name), "code") {
				codes[name] = value
			}
		})
	}
	answered := map[string]map[int]bool{}
	answer := func(code string, status int) {
		if answered[code] == nil {
			answered[code] = map[int]bool{}
		}
		answered[code][status] = true
	}
	visit := func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		named, ok := call.Args[0].(*ast.SelectorExpr)
		if function := lastName(call.Fun); !ok || function != "NewProblem" && function != "refuse" {
			return true
		}
		status, known := statusOf[named.Sel.Name]
		if !known {
			t.Errorf("a problem has http.%s, which this test does not know", named.Sel.Name)
		}
		literal, _ := call.Args[1].(*ast.BasicLit)
		switch code := lastName(call.Args[1]); {
		case literal != nil:
			code, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Error(err)
			}
			answer(code, status)
		case codes[code] != "":
			answer(codes[code], status)
		case code == "inFlightCode": // a call that returns one of two
			answer(codes["CodeInProgress"], status)
			answer(codes["CodeInUse"], status)
		default:
			t.Errorf("a problem with http.%s has the code %q, which is no constant", named.Sel.Name, code)
		}
		return true
	}
	inspect(t, filepath.Join(root, "idem"), visit) // the engine's errors: idem.ProblemOf
	inspect(t, filepath.Join(root, "idem", "middleware"), visit)
	documented := map[string][]int{}
	text := readPageText(t, root, "http.md")
	for _, row := range tableBelow(t, text, "## Problem codes") {
		if len(row) != 4 || row[2] == "" || row[3] == "" {
			t.Errorf("the row %q does not say what happened, and what a client does", row)
			continue
		}
		code := strings.Trim(row[0], "`")
		for _, status := range strings.Split(row[1], ", ") {
			number, err := strconv.Atoi(status)
			if err != nil {
				t.Errorf("the row %q has no status", row)
			}
			documented[code] = append(documented[code], number)
		}
	}
	if len(answered) < 20 {
		t.Errorf("%d codes", len(answered))
	}
	for code, statuses := range answered {
		if want := slices.Sorted(maps.Keys(statuses)); !slices.Equal(documented[code], want) {
			t.Errorf("docs/reference/http.md has %s with the statuses %d, the code has %d", code, documented[code], want)
		}
	}
	for code := range documented {
		if answered[code] == nil {
			t.Errorf("docs/reference/http.md has %s, which nothing answers with", code)
		}
	}
}

// scenarioOfClients is what this test reads of idem/client/scenarios.json.
type scenarioOfClients struct {
	Name  string `json:"name"`
	Sends []struct {
		Server []struct {
			Status  int               `json:"status"`
			Headers map[string]string `json:"headers"`
			Cut     string            `json:"cut"`
		} `json:"server"`
		Want struct {
			Error *struct {
				Unknown bool `json:"unknown"`
			} `json:"error"`
		} `json:"want"`
	} `json:"sends"`
}

// lostFirst are the statuses after which all clients say that the operation may have happened, because an attempt before had no
// answer.
func lostFirst(t *testing.T, root string) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "idem", "client", "scenarios.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Scenarios []scenarioOfClients `json:"scenarios"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	statuses := map[string]bool{}
	for _, s := range all.Scenarios {
		send := s.Sends[0]
		if len(s.Sends) == 1 && len(send.Server) == 2 && send.Server[0].Cut != "" && send.Server[1].Status >= 300 && send.Want.Error != nil && send.Want.Error.Unknown {
			statuses[strconv.Itoa(send.Server[1].Status)] = true
		}
	}
	return statuses
}

var anyStatus = regexp.MustCompile(`\b[1-5]\d\d\b`)

// A client that is written by the page takes no answer for "was not executed" which the clients take for unknown: one after an
// attempt that had no answer, and one of a wrapped handler that decides nothing.
func TestAnAnswerAfterALostOneIsNoProofOnThePage(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, statuses := readPageText(t, root, "http.md"), lostFirst(t, root)
	if len(statuses) < 15 {
		t.Errorf("the clients have scenarios for %v", statuses)
	}
	after := map[string]string{}
	for _, row := range tableBelow(t, text, "## After an attempt without an answer") {
		for _, status := range append(anyStatus.FindAllString(row[0], -1), row[0]) {
			after[status] += row[1] + "\n"
		}
	}
	for _, row := range tableBelow(t, text, "## What to do by status") {
		if strings.Contains(row[1], "not executed") {
			for _, status := range anyStatus.FindAllString(row[0], -1) {
				statuses[status] = true
			}
		}
	}
	for status := range statuses {
		told := cmp.Or(after[status], after["anything else"])
		if told == "" || strings.Contains(told, "not executed") || !strings.Contains(told, "may have been executed") {
			t.Errorf("docs/reference/http.md says of a %s after an attempt without an answer: %q", status, told)
		}
	}
	if first := tableBelow(t, text, "## What to do by status")[0]; !strings.Contains(first[0], "`Idempotency-Status: unknown`") || !strings.HasPrefix(first[1], "may have been executed") {
		t.Errorf("docs/reference/http.md begins with %q", first)
	}
}

// The page has every header of the contract.
func TestHeadersAreDocumented(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, names := readPageText(t, root, "http.md"), 0
	textConstants(t, filepath.Join(root, "idem", "header"), func(name, value string) {
		if strings.HasPrefix(name, "Name") {
			names++
			if !strings.Contains(text, "\n| `"+value+"` | ") {
				t.Errorf("docs/reference/http.md does not explain the header %s", value)
			}
		}
	})
	if names < 5 {
		t.Errorf("%d headers", names)
	}
}

// textConstants calls visit with each constant of the package whose value is a literal text.
func textConstants(t *testing.T, folder string, visit func(name, value string)) {
	t.Helper()
	inspect(t, folder, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			if value, err := strconv.Unquote(literal.Value); err == nil {
				visit(spec.Names[0].Name, value)
			}
		}
		return true
	})
}

// lastName is the name of a constant or a function, without its package.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	}
	return ""
}

func readPageText(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tableBelow are the rows of the table below a heading, without its head.
func tableBelow(t *testing.T, text, heading string) [][]string {
	t.Helper()
	_, section, found := strings.Cut(text, "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var rows [][]string
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") {
			var row []string
			for _, cell := range strings.Split(strings.Trim(line, "|"), " | ") {
				row = append(row, strings.TrimSpace(cell))
			}
			rows = append(rows, row)
		}
	}
	if !found || len(rows) < 3 {
		t.Fatalf("the page has no table below %s", heading)
	}
	return rows[2:]
}
