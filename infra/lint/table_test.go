package lint

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// finding is a linter that finds one thing in each template, at its resource.
func finding(rule string) linter {
	return func(_ context.Context, folder string, templates Templates) (all []Finding, err error) {
		paths, err := templates.write(folder)
		for _, path := range paths {
			all = append(all, Finding{Template: path, Rule: rule, Resource: "Queue", Text: "of " + filepath.Base(path)})
		}
		return all, err
	}
}

func accepting(rules ...string) map[string]any {
	reasons := map[string]any{}
	for _, rule := range rules {
		reasons[rule] = "known"
	}
	return map[string]any{"Resources": map[string]any{"Queue": map[string]any{"Metadata": map[string]any{metadata: reasons}}}}
}

// Three commits that follow each other look at each template once, and a template that is not the table's has all looked at.
func TestPartsOfTheTemplates(t *testing.T) {
	folder := t.TempDir()
	check := func(part int, change func(*Check)) Report {
		t.Helper()
		c := Check{
			AWS:   Templates{"a": accepting("E1", "N1"), "b": accepting("E1", "N1"), "c": accepting("E1", "N1"), "d": accepting("E1", "N1")},
			Local: Templates{"e": accepting("E1")},
			Table: filepath.Join(folder, "table.txt"), Part: Part{Number: part, Of: 3}, cfnLint: finding("E1"), cdkNag: finding("N1"),
		}
		change(&c)
		report, err := c.Run(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	same := func(*Check) {}
	if r := check(0, func(c *Check) { c.Update = true }); len(r.Looked) != 5 || len(r.Wrong) != 0 || r.Linted != 4 || r.Nagged != 4 {
		t.Errorf("the whole: %+v", r)
	}
	var looked []string
	for part := range 3 {
		r := check(part, same)
		looked = append(looked, r.Looked...)
		if len(r.Wrong) != 0 || r.Linted != 4 || r.Nagged != 4 {
			t.Errorf("part %d: %+v", part, r)
		}
	}
	if slices.Sort(looked); !slices.Equal(looked, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("three parts looked at %q", looked)
	}
	for name, c := range map[string]struct {
		change func(*Check)
		looked int
		want   string
	}{
		"an explanation less": {func(c *Check) { c.AWS["b"] = accepting("E1") }, 5, "N1: Queue"},
		"one more":            {func(c *Check) { c.AWS["b"] = accepting("E1", "N1", "N2") }, 5, "nothing needs the explanation of N2 of Queue"},
		"a template less":     {func(c *Check) { delete(c.AWS, "b") }, 4, "-update"},
		"no table":            {func(c *Check) { c.Table += ".none" }, 5, "-update"},
		"other findings":      {func(c *Check) { c.cdkNag = finding("N2") }, 2, "N2: Queue"},
		"no findings": {func(c *Check) {
			c.cfnLint = func(context.Context, string, Templates) ([]Finding, error) { return nil, nil }
		}, 2, "-update"},
	} {
		r := check(0, c.change)
		if len(r.Looked) != c.looked || !strings.Contains(strings.Join(r.Wrong, "\n"), c.want) {
			t.Errorf("%s: %+v, want %q after %d templates", name, r, c.want, c.looked)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "table.txt"), []byte("# by other code\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := check(0, same); len(r.Looked) != 5 || len(r.Wrong) != 1 {
		t.Errorf("by other code: %+v", r)
	}
}

func TestPartIsReadFromText(t *testing.T) {
	for text, want := range map[string]Part{"": {Of: 1}, "0/1": {Of: 1}, "2/3": {Number: 2, Of: 3}} {
		if got, err := ParsePart(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"3/3", "-1/3", "1", "x", "0/0"} {
		if got, err := ParsePart(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
