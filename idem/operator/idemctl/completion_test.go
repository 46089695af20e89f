package idemctl

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/operator"
)

// ownGrammar is a command of an application's own.
type ownGrammar struct {
	Ready ownReady `cmd:"" help:"It's ready: \\ and 'quoted'."`
}

type ownReady struct {
	Told string `type:"existingfile" help:".A file that begins a line with a dot."`
}

// Run implements the command.
func (*ownReady) Run(*Desk) error { return nil }

// printed is what a command prints that needs no desk, of an application with a command of its own.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	app := App{
		Build:    func(context.Context) (*operator.Desk, error) { t.Error("a desk was made"); return nil, nil },
		Commands: []Command{{Name: "own", Help: "The application's own.", Grammar: &ownGrammar{}}},
	}
	if code := Run(t.Context(), app, args, &out, &errs); code != ExitOK || errs.Len() > 0 {
		t.Fatalf("%q exits with %d: %s", args, code, &errs)
	}
	return out.String()
}

// completed are lines, the last word of which is completed, and what must and must not be offered.
var completed = []struct{ line, offers, not string }{
	{"idemctl ", "inspect list resolve cache-bust refuse-before new own", "set ready"},
	{"idemctl li", "list", "inspect"},
	{"idemctl list ", "stuck unknown dead", "inspect"},
	{"idemctl --output json list ", "stuck unknown dead", "inspect"},
	{"idemctl list dead --", "--tenant --limit --output --utc", "--seen"},
	{"idemctl close op_1 --", "--seen --reason --write", "--delivered"},
	{"idemctl audit --output ", "json table", "--since"},
	{"idemctl refuse-before ", "set show", "inspect"},
	{"idemctl refuse-before set --", "--reason --write", "--tenant"},
	{"idemctl own ", "ready", "list"},
	{"idemctl own ready --", "--told", "--tenant"},
	{"idemctl own ready --told answer", "answer.json", "--told"},
}

// completes runs a shell for each line, which prints what is offered, one word a line.
func completes(t *testing.T, shell string, script func(file, line string) string) {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skipf("%s is not installed: its completions are not tried", shell)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "script")
	for name, text := range map[string]string{file: printed(t, "completion", shell), filepath.Join(folder, "answer.json"): "{}"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range completed {
		command := exec.CommandContext(t.Context(), shell, "-c", script(file, c.line))
		command.Dir = folder
		command.Env = append(os.Environ(), "HOME="+folder, "TERM=dumb")
		said, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", c.line, err, said)
		}
		var offered []string
		for line := range strings.Lines(string(said)) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			offered = append(offered, word)
		}
		for _, word := range strings.Fields(c.offers) {
			if !slices.Contains(offered, word) {
				t.Errorf("%q does not offer %s, but %q", c.line, word, offered)
			}
		}
		for _, word := range strings.Fields(c.not) {
			if slices.Contains(offered, word) {
				t.Errorf("%q offers %s", c.line, word)
			}
		}
	}
}

// typedWords are the words of a line, quoted; the last is empty where the line ends with a space.
func typedWords(line string) (quoted string, n int) {
	words := strings.Split(line, " ")
	for i, word := range words {
		words[i] = singleQuoted(word)
	}
	return strings.Join(words, " "), len(words)
}

func TestCompletesInBash(t *testing.T) {
	completes(t, "bash", func(file, line string) string {
		words, n := typedWords(line)
		return "source " + file + "; COMP_WORDS=(" + words + "); COMP_CWORD=" + string(rune('0'+n-1)) + "; _idemctl; printf '%s\\n' \"${COMPREPLY[@]}\""
	})
}

// zsh's own functions show menus; here they print.
func TestCompletesInZsh(t *testing.T) {
	completes(t, "zsh", func(file, line string) string {
		words, n := typedWords(line)
		return `compdef() { : }
offer() { for one in "$@"; do case "$one" in (${words[CURRENT]}*) print -r -- "$one";; esac; done }
compadd() { shift; offer "$@" }
_files() { offer * }
_describe() { offer ${${(P)2}%%:*} }
source ` + file + `; words=(` + words + `); CURRENT=` + string(rune('0'+n)) + `; _idemctl; true`
	})
}

func TestCompletesInFish(t *testing.T) {
	completes(t, "fish", func(file, line string) string {
		return "source " + file + "; complete -C " + singleQuoted(line)
	})
}

// The manual page has every command, flag and exit code, and no line that roff misreads.
func TestManualPage(t *testing.T) {
	page := printed(t, "man")
	for _, want := range []string{"idemctl close", "idemctl refuse\\-before set", "idemctl own ready", "\\-\\-seen", "\\-\\-told", ".SH EXIT STATUS", `\&.A file`, `\e and`, "IDEMCTL_ACTOR"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for line := range strings.Lines(page) {
		if macro, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(line, ".") && !slices.Contains([]string{".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".I"}, macro) {
			t.Errorf("a line that is no macro of man(7): %q", line)
		}
	}
}

// groff reads the page without a warning.
func TestGroffReadsTheManualPage(t *testing.T) {
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("groff is not installed: it does not read the page")
	}
	command := exec.CommandContext(t.Context(), "groff", "-man", "-Tutf8", "-ww", "-z")
	command.Stdin = strings.NewReader(printed(t, "man"))
	if said, err := command.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("groff: %v\n%s", err, said)
	}
}

// docs/operator.md and the manual page have the same exit codes.
func TestExitCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operator.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "### Exit codes\n")
	if !found {
		t.Fatal("docs/operator.md has no section of exit codes")
	}
	section, _, _ = strings.Cut(section, "\n### ")
	if rows := strings.Count(section, "\n| "); rows != len(exitCodes) {
		t.Errorf("docs/operator.md has %d exit codes, want %d", rows, len(exitCodes))
	}
	for _, code := range exitCodes {
		if !strings.Contains(section, "\n| "+string(rune('0'+code.code))+" | ") {
			t.Errorf("docs/operator.md lacks exit code %d", code.code)
		}
	}
}
