package idemctl_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// A script stands in the place of xdg-open. The browser is given a file that its owner alone can read, and not the secret; the file is gone at the end.
func TestConsoleOpensTheBrowser(t *testing.T) {
	w := newWorld(t)
	folder := t.TempDir()
	// The opener waits for the page, as one does that ends with its browser.
	served, done := filepath.Join(folder, "served"), filepath.Join(folder, "done")
	w.ok(errors.Join(syscall.Mkfifo(served, 0o600), syscall.Mkfifo(done, 0o600)))
	script := "#!/bin/sh\nread word < " + served + "\nprintf '%s' \"$1\" > " + folder + "/asked.new\nstat -c %a \"$1\" > " + folder + "/mode\ncp \"$1\" " + folder + "/page\nmv " + folder + "/asked.new " + folder + "/asked\necho done > " + done + "\n"
	w.ok(os.WriteFile(filepath.Join(folder, "xdg-open"), []byte(script), 0o755))
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	line, end := w.serving("--open")
	jarOf(t, strings.TrimPrefix(line, "console: "))
	w.ok(os.WriteFile(served, []byte("it is\n"), 0o600))
	_, err := os.ReadFile(done)
	w.ok(err)
	asked, err := os.ReadFile(filepath.Join(folder, "asked"))
	w.ok(err)
	page, err := os.ReadFile(filepath.Join(folder, "page"))
	w.ok(err)
	mode, err := os.ReadFile(filepath.Join(folder, "mode"))
	w.ok(err)
	if strings.Contains(string(asked), "token") || !strings.Contains(string(page), strings.TrimPrefix(line, "console: ")) || strings.TrimSpace(string(mode)) != "600" {
		t.Errorf("asked for %s (%s): %s", asked, mode, page)
	}
	http.DefaultClient.CloseIdleConnections()
	if code := end(); code != idemctl.ExitOK {
		t.Errorf("exits with %d", code)
	}
	if _, err := os.Stat(string(asked)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}
