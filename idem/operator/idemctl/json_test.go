package idemctl

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/conform"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/internal/jsonpage"
)

// answers are the types of the answers, by their section of docs/reference/idemctl-json.md.
var answers = jsonpage.Types{
	"story": reflect.TypeFor[operator.Story](), "record": reflect.TypeFor[operator.RecordView](), "message": reflect.TypeFor[operator.MessageView](),
	"list": reflect.TypeFor[operator.List](), "listed": reflect.TypeFor[operator.Listed](), "result": reflect.TypeFor[operator.Result](),
	"loss": reflect.TypeFor[operator.Loss](), "entry": reflect.TypeFor[operator.Entry](), "address": reflect.TypeFor[addressed](), "service": reflect.TypeFor[written](),
	"conformed": reflect.TypeFor[conformed](), "check": reflect.TypeFor[conform.Finding](),
}

// commandAnswers are the sections of the commands' answers; "[]" is an array of them.
var commandAnswers = map[string]string{
	"inspect": "story", "list": "list", "audit": "[]entry", "refuse-before": "loss", "new": "service", "conform": "conformed", "console": "address",
	"resolve": "result", "close": "result", "release": "result", "cache-bust": "result", "redrive": "result", "reconcile": "result", "sweep": "result",
}

// jsonPage is the library's part of docs/reference/idemctl-json.md, and the fields of its sections.
func jsonPage(t *testing.T) (string, jsonpage.Page) {
	t.Helper()
	library, _, err := jsonpage.Read(filepath.Join("..", "..", "..", "docs", "reference", "idemctl-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections, err := jsonpage.Parse(library)
	if err != nil {
		t.Fatal(err)
	}
	return library, sections
}

// The page has every field of every answer, with its type, and no other.
func TestJSONPageIsTheCode(t *testing.T) {
	_, pages := jsonPage(t)
	for name, typ := range answers {
		if want := answers.Fields(typ); !reflect.DeepEqual(pages[name], want) {
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
	_, pages := jsonPage(t)
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
			for _, wrong := range pages.Mismatches(strings.Replace(name, "[]", "array of ", 1), printed) {
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

// The page names every command of the library.
func TestJSONPageHasEveryCommand(t *testing.T) {
	text, _ := jsonPage(t)
	rows := regexp.MustCompile("(?m)^\\| `.*$").FindAllString(strings.Split(text, "## Story")[0], -1)
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
