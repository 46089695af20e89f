package localtool_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// What was installed completely, and is not any more, is not installed: a cache keeps a folder, and not what its links lead to.
func TestAToolIsInstalledForAsLongAsItHoldsWhatItNeeds(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	tool := localtool.Tool{Name: "saw", Version: "1", Holds: []string{"venv/bin/python", "lib"}}
	interpreter, link := filepath.Join(outside, "python3"), filepath.Join(tool.Directory(root), "venv", "bin", "python")
	for _, folder := range []string{filepath.Dir(link), filepath.Join(tool.Directory(root), "lib")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(interpreter, link); err != nil {
		t.Fatal(err)
	}
	if err := tool.Stamp(root); err == nil || tool.Installed(root) {
		t.Errorf("without its interpreter: Stamp = %v, and it is installed: %t", err, tool.Installed(root))
	}
	if err := os.WriteFile(interpreter, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if tool.Installed(root) {
		t.Error("it is installed before it is stamped")
	}
	if err := tool.Stamp(root); err != nil || !tool.Installed(root) || tool.Require(root) != nil {
		t.Errorf("complete: Stamp = %v, Require = %v", err, tool.Require(root))
	}
	if err := os.Remove(interpreter); err != nil {
		t.Fatal(err)
	}
	if tool.Installed(root) || tool.Require(root) == nil {
		t.Error("it is installed although its interpreter is gone")
	}
}
