package stack_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// alarmNameForm is how alarms are named, and no other heading begins.
var alarmNameForm = regexp.MustCompile(`^[A-Z][a-z]+([A-Z][A-Za-z]*)*$`)

// runbooks reads docs/operator.md: what its table of alarms says each looks at, and how often each is in a heading.
func runbooks(t *testing.T) (rows map[string]string, headings map[string]int) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, found := strings.Cut(string(text), "\n## Alarms and runbooks\n")
	if !found {
		t.Fatal("docs/operator.md has no chapter of alarms")
	}
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	table, sections, _ := strings.Cut(chapter, "\n### ")
	rows, headings = map[string]string{}, map[string]int{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && alarmNameForm.MatchString(strings.TrimPrefix(cells[0], "| ")) {
			rows[strings.TrimPrefix(cells[0], "| ")] = cells[1]
		}
	}
	for _, section := range strings.Split(sections, "\n### ") {
		heading, _, _ := strings.Cut(section, "\n")
		names, _, _ := strings.Cut(heading, ": ")
		for name := range strings.SplitSeq(names, ", ") {
			if alarmNameForm.MatchString(name) {
				headings[name]++
			}
		}
	}
	return rows, headings
}

// docs/operator.md: who is called at night finds what the alarm means and what to do; and no runbook is of an alarm that is not there.
func TestEveryAlarmHasARunbook(t *testing.T) {
	rows, headings := runbooks(t)
	named := map[string]bool{}
	for _, variant := range []string{"http-gateway", "rest-gateway"} {
		for id, a := range synthesize(t, variant).alarms(t) {
			named[a.runbook] = true
			if !strings.HasPrefix(id, a.runbook) || rows[a.runbook] == "" || headings[a.runbook] != 1 {
				t.Errorf("%s: runbook %q, %d headings, in the table %q", id, a.runbook, headings[a.runbook], rows[a.runbook])
			}
			if a.Namespace == metric.Namespace && rows[a.runbook] != "`"+a.MetricName+"`" {
				t.Errorf("%s looks at %s, the table says %s", id, a.MetricName, rows[a.runbook])
			}
		}
	}
	for name := range headings {
		if !named[name] {
			t.Errorf("a runbook of %s, which is no alarm", name)
		}
	}
	for name := range rows {
		if !named[name] {
			t.Errorf("a row of %s, which is no alarm", name)
		}
	}
}
