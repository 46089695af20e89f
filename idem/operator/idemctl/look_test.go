package idemctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/internal/plaintext"
)

var noonHere = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Times are told from now, rounded down, and as they are stored on request.
func TestTimes(t *testing.T) {
	l := look{now: noonHere}
	for want, d := range map[string]time.Duration{
		"now": -999 * time.Millisecond, "1 s ago": -1999 * time.Millisecond, "59 s ago": -59 * time.Second, "1 m ago": -time.Minute,
		"59 m ago": -59*time.Minute - 59*time.Second, "1 h ago": -time.Hour, "47 h ago": -47 * time.Hour, "2 d ago": -48 * time.Hour,
		"in 3 m": 3 * time.Minute, "in 2 h": 2 * time.Hour, "in 365 d": 365 * 24 * time.Hour,
	} {
		if got := l.at(noonHere.Add(d)); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	if got := l.at(time.Time{}); got != "-" {
		t.Errorf("no time: %q", got)
	}
	berlin := time.FixedZone("CET", 3600)
	if got := (look{now: noonHere, utc: true}).at(noonHere.In(berlin)); got != "2026-11-21T12:00:00Z" {
		t.Errorf("--utc: %q", got)
	}
}

// Within a sentence a time says how far it is; the day stands there where it is another.
func TestTimesWithinASentence(t *testing.T) {
	for in, want := range map[time.Duration]string{
		3 * time.Minute: "12:03:00Z (in 3 m)", -time.Hour: "11:00:00Z (1 h ago)", 0: "12:00:00Z (now)", 24 * time.Hour: "2026-11-22T12:00:00Z (in 24 h)",
	} {
		if got := (look{now: noonHere}).moment(noonHere.Add(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	if got := (look{now: noonHere, utc: true}).moment(noonHere); got != "2026-11-21T12:00:00Z" {
		t.Errorf("--utc: %q", got)
	}
}

// Colour is for a terminal, unless somebody wants otherwise.
func TestColour(t *testing.T) {
	null, err := os.Open(os.DevNull) // a device of characters, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	if !coloured("auto", null) || coloured("auto", file) || coloured("auto", &bytes.Buffer{}) || coloured("never", null) || !coloured("always", file) {
		t.Error("colour does not follow --color and the terminal")
	}
	t.Setenv("NO_COLOR", "1")
	if coloured("auto", null) || !coloured("always", null) {
		t.Error("colour does not follow NO_COLOR")
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if coloured("auto", null) {
		t.Error("colour does not follow TERM")
	}
}

// escapes are what colour adds to a text.
var escapes = strings.NewReplacer(plain, "", bold, "", red, "", green, "", yellow, "")

// Colour changes nothing of what a table says.
func TestColourAddsNothing(t *testing.T) {
	var colours, words bytes.Buffer
	for out, colour := range map[*bytes.Buffer]bool{&colours: true, &words: false} {
		table := &table{out: out, look: look{now: noonHere, colour: colour}}
		table.columns([]column{{"ID", false}, {"SEEN", false}}, [][]string{{"a", "dead.1.00"}, {"bcd", "delivered.1.00"}, {"e", "pending.1.00"}})
		table.fields(field{"state", "unknown"}, field{"topic", "orders"})
	}
	if got := escapes.Replace(colours.String()); got != words.String() || strings.Contains(got, "\x1b") {
		t.Errorf("with colour\n%s\nwithout\n%s", got, &words)
	}
	for _, painted := range []string{red + "dead.1.00" + plain, green + "delivered.1.00" + plain, yellow + "unknown" + plain} {
		if !strings.Contains(colours.String(), painted) {
			t.Errorf("%q is not painted:\n%q", painted, colours.String())
		}
	}
}

// idem/scope.go bounds the length of a tenant's name and nothing else: a terminal shows such a name, and does not act on it.
func TestWhatATerminalWouldActOnIsShown(t *testing.T) {
	const evil, want = "a\x1b[2Jb\n\u009b\u202e\u200f\x7f\xff", `a\x1b[2Jb\n` + `\u009b\u202e\u200f\x7f` + "\ufffd"
	for _, wide := range []bool{false, true} {
		for name, writes := range map[string]func(*table){
			"a table": func(table *table) { table.columns([]column{{"TENANT", true}}, [][]string{{evil}}) },
			"a field": func(table *table) { table.fields(field{"tenant", evil}) },
			"an advice": func(table *table) {
				for _, line := range table.sentence(evil) {
					table.line("%s", line)
				}
			},
			"a result": func(table *table) {
				table.result(operator.Result{Subject: "x", Outcome: evil, State: operator.EntryDone})
			},
		} {
			var out bytes.Buffer
			writes(&table{out: &out, look: look{wide: wide}})
			header := map[bool]int{true: 1}[name == "a table"]
			if !strings.Contains(out.String(), want) || strings.Count(out.String(), "\n") != 1+header || strings.ContainsFunc(strings.ReplaceAll(out.String(), "\n", ""), plaintext.Acted) {
				t.Errorf("%s: %q, want %q in one line", name, out.String(), want)
			}
		}
	}
	var errs bytes.Buffer
	complain(&errs, errors.New(evil))
	if !strings.HasPrefix(errs.String(), `idemctl: a\x1b[2Jb`+"\n"+`\u009b\u202e\u200f\x7f`) {
		t.Errorf("an error: %q", errs.String())
	}
}

// JSON that a terminal shows says the same to a program.
func TestJSONHasNothingThatATerminalWouldActOn(t *testing.T) {
	const evil = "a\x1b[2Jb\n\u009b\u202e\u061c\x7f"
	var out bytes.Buffer
	(&table{out: &out}).json(map[string]any{"tenant": evil, "raw": json.RawMessage(`"` + "\u202e" + `"`)})
	var read map[string]string
	if err := json.Unmarshal(out.Bytes(), &read); err != nil || read["tenant"] != evil || read["raw"] != "\u202e" {
		t.Errorf("%q, %v", read, err)
	}
	if strings.ContainsFunc(strings.ReplaceAll(out.String(), "\n", ""), plaintext.Acted) {
		t.Errorf("%q", out.String())
	}
}

// Whatever an application's drift job writes, a terminal shows it, and a program reads the same.
func TestADriftReportHasNothingThatATerminalWouldActOn(t *testing.T) {
	const tenant = "a\x1b[2J\u200eb\x7f"
	app := App{Drift: func(_ context.Context, _ Window, asJSON bool, out io.Writer) (bool, error) {
		if asJSON {
			return true, json.NewEncoder(out).Encode(tenant)
		}
		_, err := fmt.Fprintf(out, "TENANT\tENTRY\n%s\t-\n", tenant)
		return true, err
	}}
	for output, want := range map[string]string{"table": "TENANT\tENTRY\n" + `a\x1b[2J\u200eb\x7f` + "\t-\n", "json": `"a\u001b[2J\u200eb\u007f"` + "\n"} {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), app, []string{"drift", "--output", output}, &out, &errs); code != ExitOK || out.String() != want {
			t.Errorf("%s: exit code %d, %q%s, want %q", output, code, out.String(), errs.String(), want)
		}
	}
}

// A table has at most 100 columns as long as there is something to cut. What is copied is never cut.
func TestTablesFit(t *testing.T) {
	id, long := strings.Repeat("i", 30), strings.Repeat("word ", 40)
	header := []column{{"ID", false}, {"LAST", true}, {"REASON", true}}
	rows := [][]string{{id, long, "short ü"}, {id, "x", long}}
	var narrow, wide bytes.Buffer
	(&table{out: &narrow}).columns(header, rows)
	for line := range strings.Lines(narrow.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > widthMax {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(narrow.String(), "…") || strings.Count(narrow.String(), id) != 2 {
		t.Errorf("cut wrongly:\n%s", &narrow)
	}
	(&table{out: &wide, look: look{wide: true}}).columns(header, rows)
	if strings.Contains(wide.String(), "…") || strings.Count(wide.String(), strings.TrimSpace(long)) != 2 {
		t.Errorf("--wide cuts:\n%s", &wide)
	}
	var fields bytes.Buffer
	(&table{out: &fields}).fields(field{"last error", long}, field{"id", strings.Repeat("i", 200)})
	if n := strings.Count(fields.String(), "\n"); n < 4 || strings.Count(fields.String(), "word") != 40 {
		t.Errorf("%d lines:\n%s", n, &fields)
	}
}

// Every recorded list, audit log and inspection fits, with whole ids where they are shown.
func TestRecordedTablesFit(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	looked := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range transcribed.FindAllStringSubmatch(string(text), -1) {
			command, rest, _ := strings.Cut(found[1], " ")
			if !slices.Contains([]string{"list", "audit", "inspect"}, command) || strings.Contains(rest, "--wide") || strings.Contains(rest, "json") || found[3] != "0" {
				continue
			}
			looked[command]++
			for line := range strings.Lines(escapes.Replace(found[2])) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > widthMax {
					t.Errorf("%s: idemctl %s: %d columns: %s", file, found[1], n, line)
				}
			}
		}
	}
	if len(looked) != 3 || looked["inspect"] < 5 {
		t.Errorf("%v were looked at", looked)
	}
}

// The token of a record in progress is the longest, the more so after a loss of data. Beside it, and times as they are stored, other columns
// are cut to a few characters; the token is copied, and stays whole.
func TestTablesFitBesideTheLongestToken(t *testing.T) {
	token := "in_progress.1000.5d59a8729d7655fa.mi9k2zr4"
	row := operator.Listed{At: noonHere, Tenant: "a-tenant-of-a-name", Message: &operator.MessageView{
		ID: "op_CnlW_D3il.1", Topic: "orders.import", LastOutcome: "the handler failed", Seen: operator.Seen(token),
	}}
	var out bytes.Buffer
	(&table{out: &out, look: look{utc: true}}).list(operator.List{Rows: []operator.Listed{row}})
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > widthMax {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, whole := range []string{"2026-11-21T12:00:00Z", "op_CnlW_D3il.1", token} {
		if !strings.Contains(out.String(), whole) {
			t.Errorf("%s is cut:\n%s", whole, &out)
		}
	}
}
