package stack

import (
	"go/build/constraint"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// Each file that has a build constraint is looked at by vet and staticcheck, in one of their two runs.
func TestLintersSeeEveryBuildTag(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	line, found := regexp.MustCompile(`(?m)^//go:build .*`), map[string]int{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{".git", ".local", "node_modules", "testdata"}, entry.Name()) {
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		built := line.FindString(string(source))
		if built == "" {
			return nil
		}
		expression, err := constraint.Parse(built)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		found[built]++
		if with := func(tags string) bool {
			return expression.Eval(func(tag string) bool { return tag == "linux" || slices.Contains(strings.Split(tags, ","), tag) })
		}; !with(everything()[1]) && !(with(proved[1]) && within(filepath.ToSlash(folder), proved[2:])) && built != "//go:build !linux" {
			t.Errorf("%s: neither vet nor staticcheck sees a file with %q", path, built)
		}
		return err
	})
	if err != nil || found["//go:build prove"] == 0 || found["//go:build e2e"] == 0 || found["//go:build browser"] == 0 {
		t.Errorf("found %v: %v", found, err)
	}
}

// within tells whether one of the patterns has the folder's package.
func within(folder string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		above, below := strings.CutSuffix(strings.TrimPrefix(pattern, "./"), "/...")
		return folder == above || below && strings.HasPrefix(folder, above+"/")
	})
}
