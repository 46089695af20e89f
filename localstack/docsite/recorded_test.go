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
