package docsite

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

var update = flag.Bool("update", false, "write the tables of docs/start/kinds.md")

// costTable is the table of a page whose figures are those of bench/cost.
var costTable = regexp.MustCompile(`(?m)(<!-- cost: (.+) -->\n\|.*\n\|[-|]+\n)((?:\|.*\n)*)`)

// The costs that the page names are those that bench/cost measures.
func TestKindsCostWhatIsMeasured(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(root, "docs", "start", "kinds.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	measured, err := os.ReadFile(filepath.Join(root, "bench", "cost", "testdata", "dynoxide.txt"))
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	want := costTable.ReplaceAllStringFunc(string(text), func(table string) string {
		tables++
		part := costTable.FindStringSubmatch(table)
		return part[1] + costs(t, string(measured), part[2])
	})
	switch {
	case tables != 1:
		t.Fatalf("%s has %d tables of costs", page, tables)
	case want == string(text):
	case *update:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has other costs than bench/cost/testdata; go test ./localstack/docsite -run %s -update writes them", page, t.Name())
	}
}

// costs are the rows of the table, for one size of the answer.
func costs(t *testing.T, measured, size string) string {
	var rows strings.Builder
	for _, kind := range []struct{ name, section, delivery string }{
		{"atomic", "atomic", ""}, {"atomic, read first", "atomic_read_first", ""}, {"atomic, with a message", "atomic_message", "delivery, by stream"}, {"optimistic", "optimistic", ""},
		{"deferred", "deferred", "delivery, by stream"}, {"deferred, inline first", "inline", ""}, {"wrapped", "wrapped", ""},
	} {
		_, section, ok := strings.Cut(measured, "\n"+kind.section+", "+size+" ")
		if !ok {
			t.Fatalf("bench/cost has no %s, %s", kind.section, size)
		}
		section, _, _ = strings.Cut(section, "\n\n")
		delivery := ""
		switch {
		case kind.delivery != "":
			delivery = cost(t, section, kind.delivery, true)
		case kind.section == "inline":
			delivery = "in the request"
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s |\n", kind.name,
			cost(t, section, "first", true), delivery, cost(t, section, "replay", false), cost(t, section, "conflict", false))
	}
	return rows.String()
}

// costRow is a row of bench/cost: its name, nine columns, and the calls.
var costRow = regexp.MustCompile(`(?m)^  (\S.*?)  +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) +(\S+)  .*?  ((?:GetItem|PutItem|TransactWriteItems|BatchGetItem).*)$`)

// cost is what a path of a section costs, as in "5 W 1 R, 3 calls".
func cost(t *testing.T, section, name string, calls bool) string {
	for _, row := range costRow.FindAllStringSubmatch(section, -1) {
		if row[1] != name {
			continue
		}
		var parts []string
		if row[6] != "." {
			parts = append(parts, row[6]+" W")
		}
		if row[7] != "." {
			parts = append(parts, row[7]+" R")
		}
		text := strings.Join(parts, " ")
		if calls {
			text += fmt.Sprintf(", %d calls", strings.Count(row[9], ", ")+1)
		}
		return text
	}
	t.Fatalf("bench/cost has no path %q in\n%s", name, section)
	return ""
}
