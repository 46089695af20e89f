package idemctl_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// new needs no application, says where it has written, and what to run next; the second time it refuses, and nothing changes.
func TestNewWritesAService(t *testing.T) {
	w := newWorld(t)
	w.app = idemctl.App{}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	w.ok(err)
	folder := filepath.Join(t.TempDir(), "orders")
	args := []string{"new", "github.com/acme/orders", "--into", folder, "--library", root}
	out, _ := w.types(0, append(args, "--output", "json")...)
	var written struct {
		Module, Folder string
		Files, Next    []string
	}
	w.ok(json.Unmarshal([]byte(out), &written))
	if written.Module != "github.com/acme/orders" || written.Folder != folder || len(written.Files) < 12 || written.Next[0] != "cd "+folder {
		t.Errorf("%+v", written)
	}
	for _, name := range written.Files {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	if _, errs := w.types(idemctl.ExitUsage, args...); !strings.Contains(errs, "is not empty") || !strings.Contains(errs, "next: Choose another one") {
		t.Errorf("%s", errs)
	}
	t.Chdir(t.TempDir())
	if out, _ := w.types(0, "new", "orders", "--release", "v1.2.3"); !strings.Contains(out, "go mod tidy") || !strings.Contains(out, "orders\n") {
		t.Errorf("%s", out)
	}
	w.types(idemctl.ExitUsage, "new", "Orders", "--release", "v1.2.3")
	w.types(idemctl.ExitUsage, "new", "bills", "--into", "orders", "--release", "v1.2.3")
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 1 {
		t.Errorf("written: %v (%v)", entries, err)
	}
}

// What is to be typed next goes to the folder, however it is named, and does nothing else.
func TestNewSaysHowToGetToTheFolder(t *testing.T) {
	w := newWorld(t)
	w.app = idemctl.App{}
	folder := filepath.Join(t.TempDir(), "an owner's $(touch made) `touch made`")
	out, _ := w.types(0, "new", "orders", "--release", "v1.2.3", "--into", folder, "--output", "json")
	var written struct{ Next []string }
	w.ok(json.Unmarshal([]byte(out), &written))
	shell := exec.CommandContext(t.Context(), "sh", "-c", written.Next[0]+" && pwd")
	shell.Dir = t.TempDir()
	if said, err := shell.CombinedOutput(); err != nil || strings.TrimSpace(string(said)) != folder {
		t.Errorf("%s leads to %s (%v), want %s", written.Next[0], said, err, folder)
	}
}

// Without an application nothing is read, and the command says whose idemctl does.
func TestNoApplication(t *testing.T) {
	w := newWorld(t)
	w.app = idemctl.App{}
	for _, args := range [][]string{{"list", "dead"}, {"inspect", "op_1"}, {"audit"}, {"console"}, {"sweep", ticket, "--write"}} {
		if out, errs := w.types(idemctl.ExitUsage, args...); out != "" || !strings.Contains(errs, "linked with no application") {
			t.Errorf("%q: %s%s", args, out, errs)
		}
	}
}
