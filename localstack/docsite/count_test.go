package docsite

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// countsPage says what of the documentation is checked, and how much that is.
const countsPage = "docs/verify/site.md"

// countedRow is a row of a table of that page: what is counted, and how many there are.
var countedRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| (\d+) \|`)

// counted is how many there are of something.
type counted struct {
	what string
	n    int
}

// state prints counts, and compares the page with them. A page that is written changes most of them a little, so one that is off by at
// most a twentieth stands; with -update all are written.
func state(t *testing.T, root string, counts ...counted) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(countsPage))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, c := range counts {
		t.Logf("%s: %d", c.what, c.n)
		if c.n == 0 {
			t.Errorf("%s: none were found", c.what)
		}
		stated, found := 0, false
		page = countedRow.ReplaceAllStringFunc(page, func(row string) string {
			cells := countedRow.FindStringSubmatch(row)
			if cells[1] != c.what {
				return row
			}
			found = true
			_, _ = fmt.Sscan(cells[2], &stated) // the expression admits digits only
			return fmt.Sprintf("| %s | %d |", c.what, c.n)
		})
		off := max(stated-c.n, c.n-stated)
		switch {
		case !found:
			t.Errorf("%s has no row of %q", countsPage, c.what)
		case off*20 > c.n && !*update:
			t.Errorf("%s states %d for %q, there are %d; go test ./localstack/docsite -run 'Counted|OfThisCheckout' -update writes it", countsPage, stated, c.what, c.n)
		}
	}
	if *update && page != string(text) {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// kindOf is what a block is, by how it is checked.
func kindOf(b Block) string {
	switch {
	case b.Language == "mermaid":
		return "diagrams"
	case b.Language == "go":
		return "Go"
	case b.Directive == "run" || usedBy.MatchString(b.Argument):
		return "commands, run"
	case b.Language == "sh" || b.Language == "":
		return "commands, not run"
	case b.Directive == "output":
		return "output of commands"
	case b.Directive == "recorded":
		return "exchanges of HTTP, recorded"
	case b.Directive == "tested":
		return "exchanges and output, written by a guide's test"
	case b.Language == "json" || b.Language == "yaml":
		return "JSON and YAML"
	}
	return "text and Terraform"
}

// blockKinds are the rows of the page's table of blocks.
var blockKinds = []string{
	"Go", "commands, run", "commands, not run", "output of commands", "exchanges of HTTP, recorded", "exchanges and output, written by a guide's test",
	"JSON and YAML", "diagrams", "text and Terraform",
}

// What is checked of the documents is counted, and the page says how much that is.
func TestDocumentsAreCounted(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	all := documents(t, root)
	links, anchors := 0, 0
	kinds := map[string]int{}
	for _, d := range all {
		links, anchors = links+len(d.Links()), anchors+len(d.Anchors())
		if !checkedFolder(d.Name) {
			continue
		}
		blocks, err := d.Blocks()
		if err != nil {
			t.Error(err)
		}
		for _, b := range blocks {
			kind := kindOf(b)
			if kinds[kind]++; !slices.Contains(blockKinds, kind) {
				t.Errorf("the page has no row of %q", kind)
			}
		}
	}
	counts := []counted{{"documents", len(all)}, {"links in documents", links}, {"headings in documents", anchors}, {"tests in a browser", browserTests(t, root)}}
	for _, kind := range blockKinds {
		counts = append(counts, counted{kind, kinds[kind]})
	}
	state(t, root, counts...)
}

// browserTest begins a test that has a browser, or a part of one.
var browserTest = regexp.MustCompile(`(?m)^func TestBrowser\w+\(|\bt\.Run\("[^"]+", func\(t \*testing\.T\) \{ \w+\(newBrowser\(`)

// browserTests is how many tests read the site and the console in a browser: a test of several parts counts by its parts.
func browserTests(t *testing.T, root string) int {
	t.Helper()
	n := 0
	for _, file := range []string{"localstack/docsite/browser_test.go", "functions/cmd/idemctl/browser_test.go"} {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range browserTest.FindAllString(string(source), -1) {
			if !strings.Contains(found, "TestBrowserSite(") { // it has parts
				n++
			}
		}
	}
	return n
}

// countSite is what is checked of the built site.
func countSite(t *testing.T, root, site string) {
	t.Helper()
	pages, err := readPages(site)
	if err != nil {
		t.Fatal(err)
	}
	links, anchors, loads := 0, 0, 0
	for _, p := range pages {
		links, anchors, loads = links+len(p.links), anchors+len(p.anchors), loads+len(p.loads)
	}
	state(t, root, counted{"pages of the site", len(pages)}, counted{"links in pages, with the menus", links}, counted{"anchors in pages", anchors}, counted{"files that pages load", loads})
}

// pictureBytesMax is the most that a committed picture may have: whoever clones the repository gets each of them.
const pictureBytesMax = 150 << 10

func TestPicturesAreSmall(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	pictures := 0
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".png" {
			return err
		}
		pictures++
		info, err := entry.Info()
		if err == nil && info.Size() > pictureBytesMax {
			t.Errorf("%s has %d bytes, at most %d are taken", file, info.Size(), pictureBytesMax)
		}
		return err
	})
	if err != nil || pictures < 7 {
		t.Errorf("%d pictures, %v", pictures, err)
	}
}
