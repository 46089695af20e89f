package protocol

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown is a table in the design document: the file, its section, and what is shown.
var shown = regexp.MustCompile("(?s)<!-- table: ([a-z_]+\\.txt): ([^\n]+?) -->\n```text\n(.*?)```\n")

// section is the part of a table under a heading, without it.
func section(t *testing.T, file, heading string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(raw), "\n\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", file, heading)
	}
	rows, _, _ := strings.Cut(rest, "\n\n")
	return strings.TrimSuffix(strings.ReplaceAll("\n"+rows, "\n  ", "\n")[1:], "\n") + "\n"
}

// TestDesignShowsTheTables holds the tables of docs/design.md against the machines' own.
func TestDesignShowsTheTables(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "design.md")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	want := shown.ReplaceAllStringFunc(string(raw), func(block string) string {
		tables++
		part := shown.FindStringSubmatch(block)
		return "<!-- table: " + part[1] + ": " + part[2] + " -->\n```text\n" + section(t, part[1], part[2]) + "```\n"
	})
	switch {
	case tables < 5:
		t.Fatalf("docs/design.md shows %d tables", tables)
	case want == string(raw):
	case *update:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/design.md shows tables that the machines don't have; -update writes them")
	}
}

// TestDesignNamesWhatExists: a reader follows the functions that the document names.
func TestDesignNamesWhatExists(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	steps := regexp.MustCompile("(?m)^[0-9]\\. `([a-zA-Z]+)`").FindAllStringSubmatch(string(raw), -1)
	if len(steps) < 10 {
		t.Fatalf("docs/design.md names %d steps", len(steps))
	}
	for _, step := range steps {
		if !strings.Contains(source.String(), ") "+step[1]+"(") {
			t.Errorf("docs/design.md names %s, which does not exist", step[1])
		}
	}
}
