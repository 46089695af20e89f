package docsite

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// source is a link to public documentation, or to a page, a test or a measurement of this repository.
var sourceLink = regexp.MustCompile(`\]\((https://|\.\./)[^)]+\)`)

// Every fact of a comparison names its source, one for what is said of the other where that is no measurement of ours. Every
// comparison says where the other is better.
func TestEachFactOfAComparisonHasItsSource(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "why", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	facts := 0
	for _, page := range pages {
		if filepath.Base(page) == "compare.md" {
			continue // leads to the others
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^## Where .+ (is|are) better$`).Match(text) {
			t.Errorf("%s does not say where the other is better", page)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| source |") {
				continue
			}
			facts++
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			last := cells[len(cells)-1]
			measured := strings.Contains(last, "measured") || strings.Contains(last, "reproduced")
			if len(cells) != 4 || !sourceLink.MatchString(last) || !measured && !strings.Contains(last, "https://") {
				t.Errorf("%s: a fact without its source:\n%s", page, line)
			}
		}
	}
	if len(pages) < 5 || facts < 25 {
		t.Errorf("%d pages with %d facts", len(pages), facts)
	}
}
