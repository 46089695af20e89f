package docsite

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

var firstCell = regexp.MustCompile(`(?m)^\| ([^|]+?) \|`)

// words are the first cells of the table below a heading of a document, without its head.
func words(t *testing.T, root, name, heading string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("docs/%s has no %s", name, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var found []string
	for _, row := range firstCell.FindAllStringSubmatch(section, -1)[1:] {
		found = append(found, row[1])
	}
	return found
}

// The glossary has the contract's words, in the contract's order; its own ones are sorted.
func TestGlossaryHasTheWordsOfTheContract(t *testing.T) {
	t.Parallel()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	contract := words(t, root, "semantics.md", "## Terms")
	glossary := words(t, root, "reference/glossary.md", "## In the contract")
	if len(contract) < 15 || !slices.Equal(contract, glossary) {
		t.Errorf("the contract has the words\n%q, the glossary\n%q", contract, glossary)
	}
	if beside := words(t, root, "reference/glossary.md", "## Beside it"); len(beside) < 10 || !slices.IsSorted(beside) {
		t.Errorf("the other words are not sorted: %q", beside)
	}
}
