package logview

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden file of recorded lines")

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// recorded are lines of a story that ran on ministack, as "<function>\t<line>".
func recorded(t *testing.T) []Entry {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "recorded.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var entries []Entry
	for text := range strings.Lines(string(text)) {
		function, line, ok := strings.Cut(strings.TrimSuffix(text, "\n"), "\t")
		if !ok {
			t.Fatalf("no function: %s", text)
		}
		entries = append(entries, Entry{Function: function, At: noon, Text: line})
	}
	return entries
}

func TestRecordedLinesReadAsInTestdata(t *testing.T) {
	got := strings.Join((&View{}).Round(recorded(t)), "\n") + "\n"
	golden := filepath.Join("testdata", "recorded.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("if this is meant: go test ./localstack/logview -update\n got\n%s\nwant\n%s", got, want)
	}
}

func entry(function, text string) Entry { return Entry{Function: function, At: noon, Text: text} }

func jsonLine(at, members string) string {
	return `{"time":"2026-11-22T12:00:` + at + `Z","level":"INFO","msg":"idempotency.reserve.replay",` + members + `}`
}

func TestRepeatedLinesAreOneWithTheirNumber(t *testing.T) {
	replay := `"operation":"payments.create","outcome":"replayed","operation_id":"op_a","took_ms":`
	for name, row := range map[string]struct {
		entries []Entry
		want    []string
	}{
		"equal but for time and duration": {
			[]Entry{entry("api", jsonLine("01", replay+"4")), entry("api", jsonLine("01.5", replay+"5")), entry("api", jsonLine("02.9", replay+"6"))},
			[]string{"12:00:01.000  INFO   api         payments.create       replayed      operation_id=op_a  4 ms  × 3"},
		},
		"in requests and traces of their own": {
			[]Entry{
				entry("api", jsonLine("01", replay+`4,"request_id":"1","gateway_request_id":"a=","trace_id":"0af","span_id":"b7"`)),
				entry("api", jsonLine("01.5", replay+`5,"request_id":"2","gateway_request_id":"b=","trace_id":"1bf","span_id":"c7"`)),
			},
			[]string{"12:00:01.000  INFO   api         payments.create       replayed      operation_id=op_a  4 ms  × 2"},
		},
		"of another operation": {
			[]Entry{entry("api", jsonLine("01", replay+"4")), entry("api", jsonLine("02", strings.Replace(replay, "op_a", "op_b", 1)+"5"))},
			[]string{
				"12:00:01.000  INFO   api         payments.create       replayed      operation_id=op_a  4 ms",
				"12:00:02.000  INFO   api         payments.create       replayed      operation_id=op_b  5 ms",
			},
		},
		"of another function": {
			[]Entry{entry("api", jsonLine("01", replay+"4")), entry("worker", jsonLine("02", replay+"4"))},
			[]string{
				"12:00:01.000  INFO   api         payments.create       replayed      operation_id=op_a  4 ms",
				"12:00:02.000  INFO   worker      payments.create       replayed      operation_id=op_a  4 ms",
			},
		},
		"with others between, for two seconds": {
			[]Entry{
				entry("api", jsonLine("01", replay+"4")), entry("api", jsonLine("02", `"outcome":"mismatch"`)), entry("api", jsonLine("02.5", replay+"5")),
				entry("api", jsonLine("03", replay+"4")),
			},
			[]string{
				"12:00:01.000  INFO   api         payments.create       replayed      operation_id=op_a  4 ms  × 2",
				"12:00:02.000  INFO   api         -                     mismatch",
				"12:00:03.000  INFO   api         payments.create       replayed      operation_id=op_a  4 ms",
			},
		},
		"that are no JSON": {
			[]Entry{entry("api", "disk full"), entry("api", "disk full")},
			[]string{"12:00:00.000  -      api         disk full  × 2"},
		},
	} {
		t.Run(name, func(t *testing.T) { same(t, (&View{}).Round(row.entries), row.want) })
	}
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What tells requests apart is never folded away, and what went wrong is told in full.
func TestIDsAndErrorsAreShownAndTheRestIsCounted(t *testing.T) {
	got := (&View{}).Round([]Entry{entry("api", `{"time":"2026-11-22T12:00:01Z","level":"ERROR","msg":"idempotency.store.error","request_id":"r-1",`+
		`"operation":"payments.create","outcome":"unavailable","key_hash":"abc","operation_id":"op_xyz","error":"throttled","tenant":"a","attempts":2}`)})
	same(t, got, []string{"12:00:01.000  ERROR  api         payments.create       idempotency.store.error: unavailable  operation_id=op_xyz  key_hash=abc  error=throttled  (+2)"})
}

// The event of an invocation may have the time when it began: lines go by their own time, over all functions.
func TestLinesAreInTheOrderOfTheirTimes(t *testing.T) {
	got := (&View{}).Round([]Entry{
		entry("worker", jsonLine("03", `"outcome":"third"`)), entry("api", jsonLine("01", `"outcome":"first"`)),
		entry("api", "fatal error: second"), entry("api", jsonLine("04", `"outcome":"fourth"`)),
	})
	for i, word := range []string{"first", "second", "third", "fourth"} {
		if len(got) != 4 || !strings.HasSuffix(strings.TrimSpace(got[i]), word) {
			t.Fatalf("line %d is not the %s:\n%s", i, word, strings.Join(got, "\n"))
		}
	}
}

// A line that was cut, in the middle of a member or of a character, is shown as it came.
func TestHalfALineIsShownAsText(t *testing.T) {
	whole := jsonLine("01", `"operation":"payments.create","reference":"Größe"`)
	for at := 1; at < len(whole); at++ {
		got := (&View{}).Round([]Entry{entry("api", whole[:at]), entry("api", whole[at:])})
		if len(got) != 2 || !strings.Contains(got[0], "-      api         {") || !strings.Contains(got[1], "-      api         ") {
			t.Fatalf("cut at %d:\n%s", at, strings.Join(got, "\n"))
		}
	}
}

func TestJSONThatIsNoLogLineIsShownAsText(t *testing.T) {
	for _, text := range []string{`{}`, `{"level":"INFO"}`, `[1,2]`, `"text"`, `12`, `null`, jsonLine("01", `"a":1`) + "{}"} {
		same(t, (&View{}).Round([]Entry{entry("api", text)}), []string{"12:00:00.000  -      api         " + text})
	}
}

func TestLongTextAndFieldsAreCut(t *testing.T) {
	got := (&View{}).Round([]Entry{entry("api", strings.Repeat("é", 1<<20))})
	same(t, got, []string{"12:00:00.000  -      api         " + strings.Repeat("é", textMax) + "… (+1048176 characters)"})
	got = (&View{}).Round([]Entry{entry("api", jsonLine("01", `"error":"`+strings.Repeat("x", fieldMax+1)+`"`))})
	if len(got) != 1 || !strings.HasSuffix(got[0], "error="+strings.Repeat("x", fieldMax)+"… (+1 characters)") {
		t.Errorf("got %s", got)
	}
}

// Whoever sends a request may have a word in its log line; a terminal must not obey it.
func TestControlCharactersDoNotReachTheTerminal(t *testing.T) {
	for _, text := range []string{"a\x1b[2Jb\r\ac\u009bd\u202ee", jsonLine("01", `"error":"a\u001b[2Jb\r\n\u0007c\u009bd\u202ee"`)} {
		for _, line := range (&View{Colour: true}).Round([]Entry{entry("api", text)}) {
			if strings.ContainsAny(line, "\x1b\r\n\a\u009b\u202e") {
				t.Errorf("%q", line)
			}
		}
	}
}

func TestColourMarksTheLevelOnlyWhereItIsAskedFor(t *testing.T) {
	warning := []Entry{entry("api", `{"level":"WARN","msg":"outbox.evidenced"}`)}
	same(t, (&View{}).Round(warning), []string{"12:00:00.000  WARN   api         -                     outbox.evidenced"})
	same(t, (&View{Colour: true}).Round(warning), []string{"12:00:00.000  \x1b[33mWARN \x1b[0m  api         -                     outbox.evidenced"})
}

func TestTimesAreThoseOfTheReader(t *testing.T) {
	view := View{Location: time.FixedZone("", 3600)}
	same(t, view.Round([]Entry{entry("api", "text")}), []string{"13:00:00.000  -      api         text"})
	same(t, (&View{}).Round([]Entry{{Function: "api", Text: "text"}}), []string{"------------  -      api         text"})
}
