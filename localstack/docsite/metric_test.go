package docsite

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

var (
	generatedMetrics = regexp.MustCompile(`(?s)(<!-- metrics -->\n\| metric \| \| alarm \|\n\|---\|---\|---\|\n)(.*?)(\n\n)`)
	alarmRow         = regexp.MustCompile("(?m)^\\| ([A-Z][A-Za-z]+) \\| `([a-z_.]+)` \\| ([^|]+) \\| [^|]+ \\|$")
	// eventName is the form of the messages that programs look for; other messages are sentences.
	eventName = regexp.MustCompile(`^(idempotency|outbox|sweep|reconcile|drift|seal|webhook|function|provider|batch|relay|auth)\.[a-z_.]+$`)
)

// The page of metrics has every metric as the comments of the code explain it, with the alarms of the operator's manual, and
// every other line that programs may look for. With -update the table of metrics is written.
func TestMetricsAndEventsAreDocumented(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	manual, err := os.ReadFile(filepath.Join(root, "docs", "operator.md"))
	if err != nil {
		t.Fatal(err)
	}
	alarms := map[string][]string{}
	for _, row := range alarmRow.FindAllStringSubmatch(string(manual), -1) {
		alarms[row[2]] = append(alarms[row[2]], row[1]+" "+row[3])
	}
	metrics := metricsOf(t, filepath.Join(root, "idem", "telemetry", "metric"))
	var rows []string
	known := map[string]bool{}
	for _, m := range metrics {
		name := m.known[0]
		known[name] = true
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", name, m.text, strings.Join(alarms[name], "; ")))
	}
	for name := range alarms {
		if !known[name] {
			t.Errorf("docs/operator.md has an alarm of %s, which is no metric", name)
		}
	}
	file := filepath.Join(root, "docs", "reference", "metrics.md")
	text := readPageText(t, root, "metrics.md")
	if !generatedMetrics.MatchString(text) || len(metrics) < 40 || len(alarms) < 20 {
		t.Fatalf("%d metrics, %d with alarms, a page without their table", len(metrics), len(alarms))
	}
	want := generatedMetrics.ReplaceAllStringFunc(text, func(table string) string {
		part := generatedMetrics.FindStringSubmatch(table)
		return part[1] + strings.Join(rows, "\n") + part[3]
	})
	switch {
	case want == text:
	case *update:
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs from the code; go test ./localstack/docsite -run %s -update writes it", file, t.Name())
	}
	explained := map[string]bool{}
	for _, row := range tableBelow(t, text, "## Other log lines") {
		explained[strings.Trim(row[0], "`")] = true
	}
	told := events(t, root)
	for name := range told {
		if !known[name] && !explained[name] {
			t.Errorf("docs/reference/metrics.md does not explain the line %s", name)
		}
	}
	for name := range explained {
		if !told[name] || known[name] {
			t.Errorf("docs/reference/metrics.md explains the line %s, which nobody writes, or which is a metric", name)
		}
	}
}

// metricsOf are the constants of the package that are names of metrics, in their order, with their comments.
func metricsOf(t *testing.T, folder string) []explained {
	t.Helper()
	var rows []explained
	var inGo []string
	inspect(t, folder, func(node ast.Node) bool {
		group, ok := node.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			return true
		}
		for _, spec := range group.Specs {
			constant := spec.(*ast.ValueSpec)
			literal, ok := constant.Values[0].(*ast.BasicLit)
			if !ok {
				continue
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !eventName.MatchString(value) {
				continue
			}
			doc := constant.Doc
			if doc == nil {
				doc = group.Doc
			}
			name := constant.Names[0].Name
			inGo = append(inGo, name, value)
			rows = append(rows, explained{known: []string{value}, text: prose(doc, name, name+":", name+" counts")})
		}
		return false
	})
	return byVariable(rows, inGo)
}

// events are the messages of log lines that are no sentences, of the library and of the payments application.
func events(t *testing.T, root string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, module := range []string{"idem", "functions"} {
		err := filepath.WalkDir(filepath.Join(root, module), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if own, err := filepath.Glob(filepath.Join(path, "*.go")); err != nil || len(own) == 0 {
				return err
			}
			inspect(t, path, func(node ast.Node) bool {
				literal, ok := node.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				if value, err := strconv.Unquote(literal.Value); err == nil && eventName.MatchString(value) {
					found[value] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 50 {
		t.Errorf("%d lines", len(found))
	}
	return found
}
