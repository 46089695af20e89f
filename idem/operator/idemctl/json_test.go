package idemctl

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/conform"
	"github.com/idem-go/idem-aws/idem/operator"
)

// answers are the types of the answers, by their section of docs/reference/idemctl-json.md.
var answers = map[string]reflect.Type{
	"story": reflect.TypeFor[operator.Story](), "record": reflect.TypeFor[operator.RecordView](), "message": reflect.TypeFor[operator.MessageView](),
	"list": reflect.TypeFor[operator.List](), "listed": reflect.TypeFor[operator.Listed](), "result": reflect.TypeFor[operator.Result](),
	"loss": reflect.TypeFor[operator.Loss](), "entry": reflect.TypeFor[operator.Entry](), "address": reflect.TypeFor[addressed](), "service": reflect.TypeFor[written](),
	"conformed": reflect.TypeFor[conformed](), "finding": reflect.TypeFor[conform.Finding](),
}

// commandAnswers are the sections of the commands' answers; "[]" is an array of them.
var commandAnswers = map[string]string{
	"inspect": "story", "list": "list", "audit": "[]entry", "refuse-before": "loss", "new": "service", "conform": "conformed", "console": "address",
	"resolve": "result", "close": "result", "release": "result", "cache-bust": "result", "redrive": "result", "reconcile": "result", "sweep": "result",
}

// documented is a field as the page has it: its type, and whether it is always there.
type documented struct{ kind, there string }

var (
	section = regexp.MustCompile(`(?m)^## (\w+)\n\| field \| type \| there \| meaning \|\n\|[-|]+\|\n((?:\|.*\n)+)`)
	fieldOf = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]+) \\| (always|if any) \\| [^|]{3,} \\|$")
	linked  = regexp.MustCompile(`\[(\w+)\]\(#\w+\)`)
)

// schema is docs/reference/idemctl-json.md: the fields of each section.
func schema(t *testing.T) map[string]map[string]documented {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "idemctl-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]map[string]documented{}
	for _, found := range section.FindAllStringSubmatch(string(text), -1) {
		fields := map[string]documented{}
		for _, f := range fieldOf.FindAllStringSubmatch(found[2], -1) {
			fields[f[1]] = documented{linked.ReplaceAllString(f[2], "$1"), f[3]}
		}
		if rows := strings.Count(found[2], "\n"); rows != len(fields) {
			t.Errorf("section %s has %d rows, of which %d are fields", found[1], rows, len(fields))
		}
		sections[strings.ToLower(found[1])] = fields
	}
	return sections
}

// kindOf is a type in the page's words.
func kindOf(typ reflect.Type) string {
	for name, answer := range answers {
		if typ == answer {
			return name
		}
	}
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return "time"
	case typ.Kind() == reflect.Interface:
		return "any"
	case typ.Kind() == reflect.Slice:
		return "array of " + kindOf(typ.Elem())
	case typ.Kind() == reflect.Pointer:
		return kindOf(typ.Elem()) + " or null"
	case typ.Kind() == reflect.String:
		return "string"
	case typ.Kind() == reflect.Bool:
		return "boolean"
	case typ.Kind() == reflect.Int, typ.Kind() == reflect.Int64:
		return "integer"
	}
	return "nothing that the page has a word for: " + typ.String()
}

// fieldsOf are a type's fields as JSON has them.
func fieldsOf(typ reflect.Type) map[string]documented {
	fields := map[string]documented{}
	for _, f := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		d := documented{kindOf(f.Type), "always"}
		if options != "" {
			d = documented{strings.TrimSuffix(d.kind, " or null"), "if any"}
		}
		fields[name] = d
	}
	return fields
}

// The page has every field of every answer, with its type, and no other.
func TestJSONPageIsTheCode(t *testing.T) {
	pages := schema(t)
	for name, typ := range answers {
		if want := fieldsOf(typ); !reflect.DeepEqual(pages[name], want) {
			t.Errorf("section %s of docs/reference/idemctl-json.md\nhas  %v\nwant %v", name, pages[name], want)
		}
	}
	if len(pages) != len(answers) {
		t.Errorf("the page has %d sections of fields, want %d", len(pages), len(answers))
	}
}

// transcribed finds what was typed, and what was answered.
var transcribed = regexp.MustCompile(`(?ms)^\$ idemctl ([^\n]+)\n(.*?)^\[(\d)\]$`)

// The recorded answers are as the page says.
func TestJSONPageIsWhatIsPrinted(t *testing.T) {
	pages := schema(t)
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range transcribed.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(found[1], "--output json") || found[3] != "0" {
				continue
			}
			command, _, _ := strings.Cut(found[1], " ")
			name := commandAnswers[command]
			if strings.HasPrefix(found[1], "refuse-before set") {
				name = "result"
			}
			var printed any
			if err := json.Unmarshal([]byte(found[2]), &printed); err != nil {
				t.Fatalf("%s: %s: %v", file, found[1], err)
			}
			checked[name]++
			for _, wrong := range mismatches(pages, strings.Replace(name, "[]", "array of ", 1), printed) {
				t.Errorf("%s: %s: %s", file, found[1], wrong)
			}
		}
	}
	for _, name := range []string{"story", "list", "result", "loss", "[]entry"} {
		if checked[name] == 0 {
			t.Errorf("no recorded answer is a %s", name)
		}
	}
}

// mismatches are where a value is not of a kind of the page.
func mismatches(pages map[string]map[string]documented, kind string, value any) (wrong []string) {
	if bare, ok := strings.CutSuffix(kind, " or null"); ok {
		if value == nil {
			return nil
		}
		kind = bare
	}
	if of, ok := strings.CutPrefix(kind, "array of "); ok {
		all, ok := value.([]any)
		if !ok {
			return []string{fmt.Sprintf("%v is no array", value)}
		}
		for _, one := range all {
			wrong = append(wrong, mismatches(pages, of, one)...)
		}
		return wrong
	}
	if fields, ok := pages[kind]; ok {
		return objectMismatches(pages, kind, fields, value)
	}
	right := false
	switch typed := value.(type) {
	case string:
		_, err := time.Parse(time.RFC3339, typed)
		right = kind == "string" || kind == "time" && err == nil && strings.HasSuffix(typed, "Z")
	case float64:
		right = kind == "integer" && typed == float64(int64(typed))
	case bool:
		right = kind == "boolean"
	}
	if !right && kind != "any" {
		return []string{fmt.Sprintf("%v is no %s", value, kind)}
	}
	return nil
}

func objectMismatches(pages map[string]map[string]documented, kind string, fields map[string]documented, value any) (wrong []string) {
	object, ok := value.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%v is no %s", value, kind)}
	}
	for name, one := range object {
		f, ok := fields[name]
		if !ok {
			wrong = append(wrong, kind+" has "+name)
			continue
		}
		for _, w := range mismatches(pages, f.kind, one) {
			wrong = append(wrong, kind+"."+name+": "+w)
		}
	}
	for name, f := range fields {
		if _, ok := object[name]; !ok && f.there == "always" {
			wrong = append(wrong, kind+" lacks "+name)
		}
	}
	return wrong
}

func TestJSONMismatchesAreFound(t *testing.T) {
	pages := schema(t)
	for text, want := range map[string]int{
		`{"rows":[]}`: 0, `{"rows":[],"next":"x"}`: 0, `{}`: 1, `[]`: 1, `{"rows":null}`: 1, `{"rows":[],"more":1}`: 1, `{"rows":[],"next":1}`: 1,
		`{"rows":[{"at":"noon","tenant":"t"}]}`: 1, `{"rows":[{"at":"2026-11-21T12:00:00Z","tenant":"t"}]}`: 0,
		`{"rows":[{"at":"2026-11-21T13:00:00+01:00","tenant":"t"}]}`: 1,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if wrong := mismatches(pages, "list", value); len(wrong) != want {
			t.Errorf("%s: %v, want %d", text, wrong, want)
		}
	}
}

// The page names every command of the library.
func TestJSONPageHasEveryCommand(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "idemctl-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `.*$").FindAllString(strings.Split(string(text), "## Story")[0], -1)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[commands]()) {
		if _, isCommand := f.Tag.Lookup("cmd"); !isCommand {
			continue
		}
		name := f.Tag.Get("name")
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		if !slices.ContainsFunc(rows, func(row string) bool { return strings.Contains(row, "`"+name) }) {
			t.Errorf("the table of answers lacks %s", name)
		}
	}
}
