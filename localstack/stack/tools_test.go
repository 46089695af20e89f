package stack

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
)

// linksOut are the links below a folder that lead out of it, from the folder.
func linksOut(t *testing.T, folder string) (links []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink == 0 {
			return err
		}
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		if !strings.HasPrefix(to, folder+string(filepath.Separator)) {
			below, err := filepath.Rel(folder, path)
			links = append(links, below)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return links
}

// followed tells whether what a tool holds leads through a link.
func followed(t *testing.T, folder string, tool emulator.Tool, link string) bool {
	t.Helper()
	for _, held := range tool.Holds {
		path := filepath.Join(folder, filepath.FromSlash(held))
		for range 10 {
			if path == filepath.Join(folder, link) {
				return true
			}
			to, err := os.Readlink(path)
			if err != nil {
				break // no link: the end of the way
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(path), to)
			}
			path = to
		}
	}
	return false
}

// A cache of .local/tools is laid into a fresh checkout on another machine. What a tool there links to outside of its folder may not be
// there: that tool must not count as installed.
func TestToolsHoldWhatTheyLinkToOutside(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	tools, err := requiredTools(root)
	if err != nil {
		t.Fatal(err)
	}
	tools = append(tools, optionalTools()...)
	tools = append(tools, emulator.GolangciLintTool())
	seen := 0
	for _, tool := range tools {
		if len(tool.Holds) == 0 {
			t.Errorf("%s %s: a stamp alone says that it is installed", tool.Name, tool.Version)
		}
		if !tool.Installed(root) {
			continue
		}
		seen++
		for _, link := range linksOut(t, tool.Directory(root)) {
			if !followed(t, tool.Directory(root), tool, link) {
				t.Errorf("%s %s: %s leads out of its folder, and Holds does not have it", tool.Name, tool.Version, link)
			}
		}
	}
	if seen == 0 && os.Getenv("CI") == "true" {
		t.Error("no tool is installed")
	}
}

func TestLinksThatLeadOutAreFound(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	tool := emulator.Tool{Tool: localtool.Tool{Name: "saw", Version: "1", Holds: []string{"bin/python"}}}
	folder := tool.Directory(root)
	for link, to := range map[string]string{"bin/python": "python3", "bin/python3": filepath.Join(outside, "python3"), "java": outside, "bin/up": "../../other", "bin/in": "../file"} {
		path := filepath.Join(folder, link)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]bool{}
	for _, link := range linksOut(t, folder) {
		got[link] = followed(t, folder, tool, link)
	}
	if len(got) != 3 || !got["bin/python3"] || got["java"] || got["bin/up"] {
		t.Errorf("found %v", got)
	}
}
