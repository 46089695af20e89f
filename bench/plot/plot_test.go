package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

var update = flag.Bool("update", false, "write the pictures of docs/assets/plots")

// The committed pictures are what is drawn from the newest figures, and the page of measurements shows each of them.
func TestPicturesAreThoseOfTheFigures(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := run(t.Output()); err != nil {
			t.Fatal(err)
		}
	}
	pictures, err := Draw(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "measurements.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pictures {
		got, err := os.ReadFile(filepath.Join(root, folder, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what is drawn now (%v); go run ./bench/plot writes it", name, err)
		}
		if !strings.Contains(string(page), "](../assets/plots/"+name+")") {
			t.Errorf("docs/reference/measurements.md does not show %s", name)
		}
	}
	there, err := filepath.Glob(filepath.Join(root, folder, "*"))
	if err != nil || len(there) != len(pictures) {
		t.Errorf("%s has %d files, want the %d pictures (%v)", folder, len(there), len(pictures), err)
	}
}

// A table that has lost a row, a column or a figure is an error, and no picture of what is left.
func TestFiguresThatAreMissingAreErrors(t *testing.T) {
	table := source{"t", "\n## A\n| a | b |\n|---|---|\n| x | 1,234 µs |\n| y | ? |\n| z |\n\n## B\n"}
	part, err := table.after("\n## A\n", "\n## ")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := part.cells()
	if err != nil || len(rows) != 3 {
		t.Fatal(rows, err)
	}
	if value, err := part.number(rows[0], 1); value != 1234 || err != nil {
		t.Errorf("%v %v", value, err)
	}
	for name, failed := range map[string]error{
		"no number":  second(part.number(rows[1], 1)),
		"no column":  second(part.number(rows[2], 1)),
		"no row":     second(part.row(rows, "none")),
		"no heading": second(table.after("\n## C\n", "\n")),
		"no table":   second(source{"t", "text\n"}.cells()),
		"no result":  second(newest(t.TempDir(), "x")),
	} {
		if failed == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }
