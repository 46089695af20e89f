package check

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var shownBlock = regexp.MustCompile("(?m)^(.*)\n```(?:http|text)$")

// What a guide shows of requests, answers and outputs was recorded by a test of the page, or printed by commands that a test runs.
func TestGuidesShowOnlyWhatATestRecorded(t *testing.T) {
	pages, err := filepath.Glob("../../../guides/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d guides, %v", len(pages), err)
	}
	tests, err := filepath.Glob("../../guides/*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, test := range tests {
		text, err := os.ReadFile(test)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range shownBlock.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(block[1], "<!-- tested: ") && !strings.HasPrefix(block[1], "<!-- output: ") {
				t.Errorf("%s: a block after %q shows what nobody recorded", page, block[1])
			}
		}
		recorded := strings.Contains(string(text), "<!-- tested: ")
		if tested := strings.Contains(source.String(), `check.NewPage(t, "`+filepath.Base(page)+`")`); recorded != tested {
			t.Errorf("%s: has recordings: %t, has a test that records: %t", page, recorded, tested)
		}
	}
}

func TestPageDefectsAreFound(t *testing.T) {
	const page = "<!-- tested: a -->\n```text\none\n```\n"
	for name, c := range map[string]struct {
		page     string
		recorded map[string]string
		want     string
	}{
		"what was recorded": {page, map[string]string{"a": "one\n"}, ""},
		"something else":    {page, map[string]string{"a": "two\n"}, `shows under "a"`},
		"what nobody did":   {page, map[string]string{}, `shows "a", which nobody recorded`},
		"what is not shown": {page, map[string]string{"a": "one", "b": "two"}, `does not show "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			written, wrong := compared(c.page, c.recorded, false)
			if written != c.page || (c.want == "") != (len(wrong) == 0) || len(wrong) > 0 && !strings.HasPrefix(wrong[0], c.want) {
				t.Errorf("%q, want %q", wrong, c.want)
			}
		})
	}
	if written, _ := compared(page, map[string]string{"a": "two"}, true); written != strings.Replace(page, "one", "two", 1) {
		t.Errorf("written: %q", written)
	}
}
