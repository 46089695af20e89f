package stack_test

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
	"github.com/idem-go/idem-aws/infra/spec"
)

// alarmNameForm is how alarms are named, and no other heading begins.
var alarmNameForm = regexp.MustCompile(`^[A-Z][a-z]+([A-Z][A-Za-z]*)*$`)

// alarmRow is what the table of alarms says of one.
type alarmRow struct {
	// looks is what it looks at, and own how a stack of one's own gets it.
	looks, own string
}

// chapter is that of docs/operator.md about alarms: its table, and its sections, each from its heading on.
func chapter(t *testing.T) (table string, sections []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, all, found := strings.Cut(string(text), "\n## Alarms and runbooks\n")
	if !found {
		t.Fatal("docs/operator.md has no chapter of alarms")
	}
	all, _, _ = strings.Cut(all, "\n## ")
	table, rest, _ := strings.Cut(all, "\n### ")
	return table, strings.Split(rest, "\n### ")
}

// alarmsIn are the alarms that a section is about, by its heading.
func alarmsIn(section string) (all []string) {
	heading, _, _ := strings.Cut(section, "\n")
	names, _, _ := strings.Cut(heading, ": ")
	for name := range strings.SplitSeq(names, ", ") {
		if alarmNameForm.MatchString(name) {
			all = append(all, name)
		}
	}
	return all
}

// runbooks reads docs/operator.md: what its table says of each alarm, and how often each is in a heading.
func runbooks(t *testing.T) (rows map[string]alarmRow, headings map[string]int) {
	t.Helper()
	table, sections := chapter(t)
	rows, headings = map[string]alarmRow{}, map[string]int{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); len(cells) == 4 && alarmNameForm.MatchString(strings.TrimPrefix(cells[0], "| ")) {
			rows[strings.TrimPrefix(cells[0], "| ")] = alarmRow{cells[1], strings.TrimSuffix(cells[3], " |\n")}
		}
	}
	for _, section := range sections {
		for _, name := range alarmsIn(section) {
			headings[name]++
		}
	}
	return rows, headings
}

// ofWholeFunctions are commands that take no qualifier: they are about a function whatever its versions, or about the account.
var ofWholeFunctions = []string{"get-account-settings", "get-function-concurrency"}

// docs/operator.md: what a runbook looks at hangs on the alias of a function, by which everything calls it (TestEverythingCallsTheLiveAlias).
// Of the function itself AWS shows no permission, no mapping, and the settings of a version that nothing calls.
func TestRunbooksLookAtTheLiveAlias(t *testing.T) {
	_, sections := chapter(t)
	looked := 0
	for _, section := range sections {
		heading, _, _ := strings.Cut(section, "\n")
		for line := range strings.Lines(section) {
			command, is := strings.CutPrefix(line, "aws lambda ")
			if name, _, _ := strings.Cut(strings.TrimSpace(command), " "); !is || slices.Contains(ofWholeFunctions, name) {
				continue
			}
			if looked++; !strings.Contains(line, "--qualifier live") && !strings.Contains(line, "--function-name FUNCTION:live") {
				t.Errorf("%s: %s", heading, line)
			}
		}
	}
	if looked < 3 {
		t.Errorf("%d commands were looked at", looked)
	}
}

// An alarm on how many messages are in a queue ends when nobody has to look any more: by a command of its runbook that takes them out, or by
// itself within a day.
func TestAnAlarmOnWhatIsInAQueueEnds(t *testing.T) {
	_, sections := chapter(t)
	empties := map[string]bool{}
	for _, section := range sections {
		for _, name := range alarmsIn(section) {
			empties[name] = empties[name] || strings.Contains(section, "idemctl redrive --dead-letters")
		}
	}
	template, seen := synthesize(t, "http-gateway"), 0
	for id, a := range template.alarms(t) {
		if a.MetricName != "ApproximateNumberOfMessagesVisible" {
			continue
		}
		seen++
		queue, _, _ := strings.Cut(plain(a.Dimensions[0].Value), ".")
		kept := template.of("AWS::SQS::Queue")[queue].Properties["MessageRetentionPeriod"]
		if seconds, ok := kept.(float64); !empties[a.runbook] && (!ok || seconds > 24*60*60) {
			t.Errorf("%s rings for %v s after its cause, and no command of its runbook takes anything out of %s", id, kept, queue)
		}
	}
	if seen < 2 {
		t.Errorf("%d alarms on queues were looked at", seen)
	}
}

// docs/operator.md: who is called at night finds what the alarm means and what to do; and no runbook is of an alarm that is not there.
func TestEveryAlarmHasARunbook(t *testing.T) {
	rows, headings := runbooks(t)
	named := map[string]bool{}
	for _, variant := range []string{"http-gateway", "rest-gateway"} {
		for id, a := range synthesize(t, variant).alarms(t) {
			named[a.runbook] = true
			if !strings.HasPrefix(id, a.runbook) || rows[a.runbook].looks == "" || headings[a.runbook] != 1 {
				t.Errorf("%s: runbook %q, %d headings, in the table %q", id, a.runbook, headings[a.runbook], rows[a.runbook].looks)
			}
			if a.Namespace == metric.Namespace && rows[a.runbook].looks != "`"+a.MetricName+"`" {
				t.Errorf("%s looks at %s, the table says %s", id, a.MetricName, rows[a.runbook].looks)
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

// docs/operator.md: who deploys a service of their own sees which alarms they get, and which they must add.
func TestTheManualSaysWhichAlarmsAStackOfOnesOwnHas(t *testing.T) {
	made := map[string]bool{}
	for _, a := range spec.Alarms(spec.Functions(spec.Choices{}), []spec.Resource{"rule"}, "index", "index") {
		made[cmp.Or(a.Runbook, a.ID)] = true
	}
	rows, _ := runbooks(t)
	for name, row := range rows {
		want := "no"
		switch {
		case made[name]:
			want = "yes"
		case strings.HasPrefix(name, "Gateway"):
			want = "by `Monitor.Gateway`"
		}
		if row.own != want {
			t.Errorf("%s: the manual says %q, want %q", name, row.own, want)
		}
		delete(made, name)
	}
	for name := range made {
		t.Errorf("%s has no row", name)
	}
}
