package idem_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sdk is the AWS SDK's core; its internal modules come with it.
const sdk = "aws/aws-sdk-go-v2"

var (
	majorVersion = regexp.MustCompile(`/v[0-9]+$`)
	sdkInternal  = regexp.MustCompile(`^` + sdk + `/(service/)?internal/`)
	quoted       = regexp.MustCompile("`([a-z/]+)`")
)

// modulesOf are the modules besides this project's that a package of the library needs, by the names that README.md has for them.
func modulesOf(t *testing.T, name string) []string {
	t.Helper()
	folder := filepath.FromSlash(name)
	if name == "idem" {
		folder = "."
	}
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	list.Dir = folder
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list of %s: %v", name, err)
	}
	var all []string
	for _, path := range strings.Fields(string(out)) {
		if strings.HasPrefix(path+"/", module) {
			continue
		}
		short := majorVersion.ReplaceAllString(strings.TrimPrefix(path, "github.com/"), "")
		if sdkInternal.MatchString(short) {
			short = sdk
		}
		all = append(all, short)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// README.md says what an import pulls in, as go list has it.
func TestReadmeSaysWhatAnImportPullsIn(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## What an import pulls in\n")
	if !found {
		t.Fatal("README.md has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	packages := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		var want []string
		if told := strings.TrimSpace(cells[2]); told != "none" {
			want = strings.Split(told, ", ")
		}
		slices.Sort(want)
		for _, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
			packages++
			if got := modulesOf(t, name[1]); !slices.Equal(got, want) {
				t.Errorf("%s pulls in %s, README.md says %s", name[1], strings.Join(got, ", "), strings.Join(want, ", "))
			}
		}
	}
	if packages < 20 {
		t.Errorf("%d packages are in the table, want those of the library", packages)
	}
}
