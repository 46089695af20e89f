//go:build browser

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// documented demands that a picture of the documents shows what the browser shows: the text that it was taken with lies
// beside it, without what differs from run to run. With -update both are written anew.
func (s *screen) documented(name string) {
	s.Helper()
	root, err := localtool.Root()
	s.ok(err)
	file := filepath.Join(root, "docs", name)
	shown := constant(s.read())
	if *update {
		s.ok(os.WriteFile(file+".png", s.screenshot(), 0o644))
		s.ok(os.WriteFile(file+".txt", []byte(shown), 0o644))
		return
	}
	taken, err := os.ReadFile(file + ".txt")
	if !errors.Is(err, fs.ErrNotExist) {
		s.ok(err)
	}
	if string(taken) != shown {
		s.Errorf("docs/%s.png is of another page; go test -tags browser ./functions/cmd/idemctl -run %s -update takes it anew. It shows\n%s\nand the page\n%s",
			name, s.Name(), taken, shown)
	}
}

// withoutDrawings is what a person reads of the page. The columns of the timeline are left out: which moments share one
// differs from run to run, and the list below it has them all.
const withoutDrawings = `(() => {
	const drawings = [...document.querySelectorAll("svg")];
	drawings.forEach(d => d.style.display = "none");
	const text = document.body.innerText;
	drawings.forEach(d => d.style.display = "");
	return text;
})()`

func (s *screen) read() string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](withoutDrawings))
	s.ok(err)
	return text
}

// differing matches what no two runs have in common, and what stands for it.
var differing = []struct {
	is  *regexp.Regexp
	put string
}{
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d+)? UTC`), "TIME"},
	{regexp.MustCompile(`\d+(\.\d+)? (ms|s|min|h)\b( \d+ (ms|s|min|h)\b)*`), "SPAN"},
	{regexp.MustCompile(`\b(op|pay|ch|au)_[A-Za-z0-9_-]{20,}`), "${1}_…"},
	{regexp.MustCompile(`\b(pending|unknown)\.(\d+)\.[0-9a-f]{16}\b`), "$1.$2.…"},
	{regexp.MustCompile(`\bstage-\d+-`), "stage-"},
	{regexp.MustCompile(`\b\d+ bytes\b`), "BYTES"},
	{regexp.MustCompile(`\bSHA-256 [0-9a-f]{64}\b`), "SHA-256 …"},
}

// constant is a text without what differs from run to run, and without empty lines.
func constant(text string) string {
	for _, d := range differing {
		text = d.is.ReplaceAllString(text, d.put)
	}
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines.WriteString(line + "\n")
		}
	}
	return lines.String()
}

// A word that changed is seen, and an id, a time or a span that changed is not.
func TestBrowserPicturesDifferByTheirWords(t *testing.T) {
	const page = "Operation op_OgdvUAsKuh2WLBAAbiTjo_ODIpHvs.1\n\nunknown.1.2dfd0fe230ef9541, possible from 2026-11-24 17:18:26 UTC (in 1 min 9 s) on\n"
	for name, c := range map[string]struct {
		other string
		same  bool
	}{
		"the same page later": {strings.NewReplacer("17:18:26", "17:18:27.003", "1 min 9 s", "9.5 s", "KuhW", "KuhX", "2dfd", "0000").Replace(page), true},
		"another word":        {strings.Replace(page, "possible", "may be done", 1), false},
		"another state":       {strings.Replace(page, "unknown.1", "unknown.2", 1), false},
		"another message":     {strings.Replace(page, "Hvs.1", "Hvs.2", 1), false},
	} {
		if same := constant(c.other) == constant(page); same != c.same {
			t.Errorf("%s: same %t, want %t: %q and %q", name, same, c.same, constant(c.other), constant(page))
		}
	}
}
