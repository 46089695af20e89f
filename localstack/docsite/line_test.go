package docsite

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// columnsMax is how many columns a line of prose has at most (CONTRIBUTING.md "Write documentation").
const columnsMax = 100

// targetOfLink is what readers do not see of a link; an address can't be wrapped.
var targetOfLink = regexp.MustCompile(`\]\([^)]*\)`)

// prose says whether people write and read the document as prose. A decision is never rewritten, the changelog and results of
// measurements only grow.
func (d Document) prose() bool {
	switch path.Base(d.Name) {
	case "README.md", "CONTRIBUTING.md", "SECURITY.md":
		return !strings.HasPrefix(d.Name, "docs/adr/") && !strings.Contains(d.Name, "/testdata/")
	}
	return strings.HasPrefix(d.Name, "docs/") && !strings.HasPrefix(d.Name, "docs/adr/")
}

// wideLines are the lines of prose that have too many columns. Tables, code and comments can't be wrapped; nor can a line of one word.
func (d Document) wideLines() []string {
	var wide []string
	fence, before := false, ""
	for i, line := range strings.Split(d.text, "\n") {
		trimmed := strings.TrimSpace(line)
		code := strings.HasPrefix(line, "    ") && before == "" // indented; within a list it follows its item
		if strings.HasPrefix(trimmed, "```") {
			fence = !fence
		}
		if !code {
			before = trimmed
		}
		if fence || code || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "<!--") || !strings.Contains(trimmed, " ") {
			continue
		}
		if columns := utf8.RuneCountInString(targetOfLink.ReplaceAllString(line, "]()")); columns > columnsMax {
			wide = append(wide, fmt.Sprintf("%s:%d: the line has %d columns, at most %d can be read beside code: wrap it", d.Name, i+1, columns, columnsMax))
		}
	}
	return wide
}

func TestDocumentsHaveLinesThatFit(t *testing.T) {
	t.Parallel()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, d := range documents(t, root) {
		if !d.prose() {
			continue
		}
		seen++
		for _, wide := range d.wideLines() {
			t.Error(wide)
		}
	}
	if seen < 50 {
		t.Errorf("%d documents were looked at", seen)
	}
}

func TestWideLinesAreFound(t *testing.T) {
	t.Parallel()
	fits := strings.Repeat("word ", 19) + "words" // 100 columns
	for name, c := range map[string]struct {
		text string
		wide int
	}{
		"a line that fits":             {fits, 0},
		"one column too many":          {fits + "s", 1},
		"in letters, not bytes":        {strings.Repeat("wörd ", 19) + "wörds", 0},
		"a heading":                    {"## " + fits, 1},
		"an item":                      {"- " + fits, 1},
		"the second line of an item":   {"10. x\n    " + fits, 1},
		"after a block":                {"```sh\n" + fits + fits + "\n```\n" + fits + "s", 1},
		"in a block":                   {"```sh\n" + fits + "s\n```", 0},
		"in an indented block":         {"x:\n\n    " + fits + "\n    " + fits + "\n\nx", 0},
		"a table":                      {"| " + fits + " |", 0},
		"how a block is checked":       {"<!-- not run: " + fits + " -->", 0},
		"an address":                   {"[x y](https://example.com/" + strings.Repeat("a", 100) + ")", 0},
		"too many words beside a link": {fits + " [x](y.md)", 1},
		"one long word":                {strings.Repeat("a", 120), 0},
	} {
		if got := (Document{"docs/a.md", c.text}).wideLines(); len(got) != c.wide {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, want := range map[string]bool{
		"README.md": true, "infra/README.md": true, "docs/guides/chains.md": true, "CHANGELOG.md": false, "docs/adr/0001-x.md": false,
		"docs/adr/README.md": false, "bench/results/2026-11-21.md": false,
	} {
		if got := (Document{name, ""}).prose(); got != want {
			t.Errorf("%s is prose: %v", name, got)
		}
	}
}
