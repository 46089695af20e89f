package idemctl_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// A script stands in the place of xdg-open. The browser is given a file that its owner alone can read, and not the secret; the file is gone at the end.
func TestConsoleOpensTheBrowser(t *testing.T) {
	w := newWorld(t)
	folder := t.TempDir()
	script := "#!/bin/sh\nprintf '%s' \"$1\" > " + folder + "/asked.new\nstat -c %a \"$1\" > " + folder + "/mode\ncp \"$1\" " + folder + "/page\nmv " + folder + "/asked.new " + folder + "/asked\n"
	w.ok(os.WriteFile(filepath.Join(folder, "xdg-open"), []byte(script), 0o755))
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	line, end := w.serving("--open")
	jarOf(t, strings.TrimPrefix(line, "console: ")) // it is served once the browser was asked
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
