package idem_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func fixture(t *testing.T, name string) publicPackage {
	t.Helper()
	return parsePackage(t, filepath.Join("testdata", "documentation", name))
}

func TestCheckerAcceptsADocumentedPackage(t *testing.T) {
	p := fixture(t, "complete")
	for _, problem := range slices.Concat(packageProblems(p), nameProblems(p), fieldProblems(p), exampleProblems(p, "", "")) {
		t.Error(problem)
	}
}

func TestCheckerFindsEveryPlantedGap(t *testing.T) {
	p := fixture(t, "lacking")
	for name, c := range map[string]struct{ got, want []string }{
		"package": {packageProblems(p), []string{
			`the comment of the package refers to "H16"; say it in words`,
			`the package comment must begin with "Package lacking"`,
			"the package comment has 1 sentences, at least 3 are wanted",
		}},
		"names": {nameProblems(p), []string{
			"Bare has no doc comment",
			`the comment of Config refers to "ADR\n0007"; say it in words`,
			"Config.Method has no doc comment",
			"the comment of New refers to the unexported restOf",
			"Undocumented has no doc comment",
		}},
		"fields": {fieldProblems(p), []string{
			"Config.Bare has no doc comment",
			"Config.Below has no doc comment",
			"Config.Height has no doc comment",
			`the comment of Config.Private refers to "internal/clock"; say it in words`,
			`the comment of Config.Owner says "whoever"; say who, or what happens`,
			`the comment of Config.Decided refers to "docs/adr"; say it in words`,
			`the comment of Config.Designed refers to "docs/design"; say it in words`,
			"Doer.Do has no doc comment",
		}},
		"example": {exampleProblems(p, "", ""), []string{"it has no Example in its external test package"}},
	} {
		slices.Sort(c.got)
		slices.Sort(c.want)
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: found\n\t%s\nwant\n\t%s", name, strings.Join(c.got, "\n\t"), strings.Join(c.want, "\n\t"))
		}
	}
}

func TestCheckerWantsAPackageToSayWhomItIsFor(t *testing.T) {
	silent, own := fixture(t, "complete"), fixture(t, "own")
	for name, c := range map[string]struct {
		of       publicPackage
		adopters bool
		want     string
	}{
		"for adopters":                {silent, true, ""},
		"our own":                     {own, false, ""},
		"for nobody":                  {silent, false, "it can be imported: list it in besideTheLibrary, or say in the first paragraph"},
		"our own, and listed as such": {own, true, "it is listed for adopters, and says that it is not for them"},
	} {
		if got := audienceProblem(c.of, c.adopters); got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestCheckerWantsAnExceptionToBeStillNeeded(t *testing.T) {
	shown, bare := fixture(t, "complete"), fixture(t, "lacking")
	compiled := shown
	compiled.examples = slices.Clone(shown.examples)
	unchecked := *compiled.examples[0]
	unchecked.Output = ""
	compiled.examples[0] = &unchecked
	for name, c := range map[string]struct {
		got  []string
		want string
	}{
		"not run, and it is":                {exampleProblems(shown, "why", ""), "it has an Example with an output; remove its exception from exampleNotRun"},
		"without, and there is one":         {exampleProblems(shown, "", "why"), "it has an Example; remove its exception from withoutExample"},
		"both":                              {exampleProblems(bare, "why", "why"), "it is excepted twice"},
		"not run, and there is none":        {exampleProblems(bare, "why", ""), "it has no Example in its external test package"},
		"without, and there is none":        {exampleProblems(bare, "", "why"), ""},
		"compiled only":                     {exampleProblems(compiled, "", ""), "none of its Examples has an output that is checked"},
		"compiled only, and that is agreed": {exampleProblems(compiled, "why", ""), ""},
	} {
		if got := strings.Join(c.got, "; "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
