package docsite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/internal/recording"
)

// recordings are the files of which every exchange stands in some page.
var recordings = []string{"localstack/e2e/testdata/recorded.http", "docs/examples/policies/testdata/recorded.http"}

// Every recorded exchange stands in a page, as it was recorded. With -update the blocks of the pages are written.
func TestPagesShowWhatWasRecorded(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, d := range documents(t, root) {
		if !checkedFolder(d.Name) {
			continue
		}
		blocks, err := d.Blocks()
		if err != nil {
			t.Fatal(err)
		}
		text := d.text
		for _, b := range blocks {
			if b.Language != "http" || b.testedByItsGuide() {
				continue
			}
			shown[b.Argument] = true
			want, err := recorded(root, b)
			if err != nil {
				t.Error(&BlockError{b.Document, b.Line, err.Error()})
				continue
			}
			before := "<!-- recorded: " + b.Argument + " -->\n```http\n"
			text = strings.Replace(text, before+b.Text+"```", before+want+"```", 1)
		}
		switch {
		case text == d.text:
		case *update:
			if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(d.Name)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s shows other exchanges than the recorded ones; go test ./localstack/docsite -run %s -update writes them", d.Name, t.Name())
		}
	}
	for _, file := range recordings {
		exchanges, err := recording.Read(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range exchanges {
			if !shown[file+", "+e.Name] {
				t.Errorf("no page shows the exchange %q of %s", e.Name, file)
			}
		}
	}
}

// Where exchanges were recorded, as a page with any of them says it.
const (
	recordedOnBoth = "Those of the payments API (paths with `/v1/`) are from the\ndeployed stack, through API Gateway; their times are replaced by fixed ones. All others are from a\nservice within a test, on an emulator of DynamoDB."
	recordedInTest = "They are from a service within a test, on an emulator of\nDynamoDB, not from the deployed stack."
)

// Each page with recorded exchanges says where they were recorded: no reader takes those of a test for those of a deployed stack.
func TestPagesSayWhereExchangesWereRecorded(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, d := range documents(t, root) {
		blocks, err := d.Blocks()
		if err != nil && checkedFolder(d.Name) {
			t.Fatal(err)
		}
		from := map[bool]int{}
		for _, b := range blocks {
			if b.Directive != "recorded" {
				continue
			}
			stack := strings.HasPrefix(b.Argument, "localstack/e2e/")
			asked, _, _ := strings.Cut(b.Text, "\n")
			if from[stack]++; stack != strings.Contains(asked, " /v1/") {
				t.Error(&BlockError{b.Document, b.Line, "paths with /v1/ are recorded on the stack, and no others"})
			}
		}
		says := recordedOnBoth
		if from[true] == 0 {
			says = recordedInTest
		}
		if from[true]+from[false] == 0 {
			continue
		}
		if pages++; !strings.Contains(d.text, says) {
			t.Errorf("%s has %d exchanges of the stack and %d of a test, and does not say %q", d.Name, from[true], from[false], says)
		}
	}
	if pages < 10 {
		t.Errorf("%d pages with recorded exchanges", pages)
	}
}
