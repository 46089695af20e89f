package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

var (
	documentedLine = regexp.MustCompile(`(?m)^\s*(?:idemctl (.+)|go run \./(?:functions|idem)/cmd/idemctl (.+)|make idemctl .*ARGS="([^"]+)".*|make (console .*))$`)
	// consoleOfMake are the words of make console that are no command line by themselves.
	consoleOfMake = strings.NewReplacer("WRITE=1", "--write", `ARGS="`, "", `"`, "", "STAGE=prod", "", "LOCAL=1", "")
	comment       = regexp.MustCompile(`\s+#.*$`)
	elsewhere     = regexp.MustCompile(`\s+[>|].*$`) // what the shell does with the answer
	word          = regexp.MustCompile(`(?:[^\s"']|"[^"]*"|'[^']*')+`)
)

// commandsIn are the command lines of idemctl in a document, each in its words.
func commandsIn(text string) [][]string {
	var lines [][]string
	for _, found := range documentedLine.FindAllStringSubmatch(text, -1) {
		line := elsewhere.ReplaceAllString(comment.ReplaceAllString(found[1]+found[2]+found[3]+consoleOfMake.Replace(found[4]), ""), "")
		if strings.HasPrefix(line, "--env-file") {
			line = strings.TrimSuffix(line, " …") // any command
		}
		var args []string
		for _, part := range word.FindAllString(line, -1) {
			if part == "…" { // whatever the reader fills in; only times have a form
				part = "2026-11-21T09:00:00Z"
			}
			args = append(args, strings.NewReplacer(`"`, "", "'", "").Replace(part))
		}
		lines = append(lines, args)
	}
	return lines
}

// refusedLine is what idemctl says about a command line that it does not know; "" where it knows command and flags. Nothing is run.
func refusedLine(t *testing.T, args []string) string {
	t.Helper()
	var said bytes.Buffer
	if idemctl.Run(t.Context(), app(), append(args, "--help"), &said, &said) == idemctl.ExitOK {
		return ""
	}
	return said.String()
}

// The commands and flags of the runbooks exist.
func TestDocumentedCommandLinesAreKnown(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"told", "my.env", "body.json", "a.txt", "b.txt"} { // files that a page has the reader make first
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	count := 0
	for _, name := range []string{"README.md", "docs/operate/console.md", "docs/operate/own-service.md", "docs/operator.md", "docs/payments-api.md", "docs/recovery.md", "docs/start/new.md", "docs/verify/conform.md", "infra/README.md"} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range commandsIn(string(text)) {
			count++
			if why := refusedLine(t, args); why != "" {
				t.Errorf("%s: idemctl %s: %s", name, strings.Join(args, " "), why)
			}
		}
	}
	if count < 40 {
		t.Errorf("%d command lines were found", count)
	}
}

func TestUnknownCommandLinesAreFound(t *testing.T) {
	text := "idemctl lst unknown\nidemctl list unknown --tennant a   # a comment\nmake idemctl STAGE=prod ARGS=\"resolv op_…\"\nidemctl list unknown --tenant a\n"
	var wrong int
	for _, args := range commandsIn(text) {
		if refusedLine(t, args) != "" {
			wrong++
		}
	}
	if wrong != 3 {
		t.Errorf("%d of the command lines were refused, want 3", wrong)
	}
}
