package docsite

import (
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// twiceRead matches words that a reader has to read twice: metaphors, and subjects that are not named. A test of package idem
// looks for the same in the comments of public packages.
var twiceRead = regexp.MustCompile(`(?i)\bwhoever\b|\bin vain\b|\bwants an? (person|human|operator)\b|\bleft lying\b|\bnot its to\b`)

// No document but a decision, which is never rewritten, has such a word.
func TestDocumentsNameWhoActs(t *testing.T) {
	t.Parallel()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, d := range documents(t, root) {
		if strings.HasPrefix(d.Name, "docs/adr/") {
			continue
		}
		looked++
		for i, line := range strings.Split(d.text, "\n") {
			if found := twiceRead.FindString(line); found != "" {
				t.Errorf("%s:%d: %q: say who, or what happens", d.Name, i+1, found)
			}
		}
	}
	if looked < 60 {
		t.Errorf("%d documents", looked)
	}
}
