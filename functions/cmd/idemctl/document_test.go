package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/config"
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

// needsNoTable are the commands that need no environment, and are not to be run here: they write files, or call what the page names.
var needsNoTable = []string{"new", "conform", "completion", "man"}

// missingIn is what a documented command line lacks, or has in a wrong form; "" where idemctl takes it as it stands. It is run
// up to the tables, which the environment must not name.
func missingIn(t *testing.T, args []string) string {
	t.Helper()
	if slices.Contains(needsNoTable, args[0]) || len(args) == 2 && args[0] == "--env-file" { // any command follows
		return ""
	}
	for i, arg := range args {
		if arg == "op_…" {
			args[i] = "op_p78UFAa-ruN106TdRjb3-dM6gCOPc0qFdPYjMm4xNvkEQnyQU9mmZ75UTBTmn6SC"
		}
	}
	var said bytes.Buffer
	idemctl.Run(t.Context(), app(), args, &said, &said)
	if strings.Contains(said.String(), "next: Set the variables in the environment") {
		return ""
	}
	return said.String()
}

// nameNoTable takes everything from the environment that a deployment has named: a documented change may not be made by a test.
func nameNoTable(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasSuffix(name, "_TABLE") || strings.HasSuffix(name, "_URL") || strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("IDEMCTL_ACTOR", "ada")
}

// The command lines of the runbooks have commands and flags that exist, and nothing is missing of them.
func TestDocumentedCommandLinesAreKnown(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	nameNoTable(t)
	t.Chdir(t.TempDir())
	// Files that a page has the reader make first.
	for name, text := range map[string]string{"told": "{}\n", "my.env": "", "body.json": "", "a.txt": "", "b.txt": ""} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
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
			why := refusedLine(t, slices.Clone(args))
			if why == "" {
				why = missingIn(t, args)
			}
			if why != "" {
				t.Errorf("%s: idemctl %s: %s", name, strings.Join(args, " "), why)
			}
		}
	}
	if count < 40 {
		t.Errorf("%d command lines were found", count)
	}
}

// docs/recovery.md "Write a row by hand": of two persons who write the same row the second one is refused, so that no row is written over that
// has ended meanwhile.
func TestARowIsWrittenByHandOnlyWhereItIsNotThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "recovery.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`aws dynamodb put-item(?:.*\\\n)*.*`).FindAllString(string(text), -1)
	if len(lines) == 0 {
		t.Error("the page has no command that writes a row")
	}
	for _, line := range lines {
		if !strings.Contains(line, "--condition-expression 'attribute_not_exists(pk)'") {
			t.Errorf("%s\nwrites over a row that is there", line)
		}
	}
}

// docs/recovery.md "End a row by hand": a row is ended only while it is pending, so that no end is written over the worker's. A balance that is
// changed by hand is in no total, and the comparison would change it once more.
func TestARowIsEndedByHandOnlyWhileItIsPending(t *testing.T) {
	root := filepath.Join("..", "..", "..", "docs")
	text, err := os.ReadFile(filepath.Join(root, "recovery.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### End a row by hand\n")
	section, _, _ = strings.Cut(section, "\n### ")
	lines := regexp.MustCompile(`aws dynamodb update-item(?:.*\\\n)*.*`).FindAllString(section, -1)
	if len(lines) == 0 {
		t.Error("the page has no command that ends a row")
	}
	for _, line := range lines {
		if !strings.Contains(line, "--condition-expression 'st = :pending'") || regexp.MustCompile(`\b(bal|rfd)\b`).MatchString(line) {
			t.Errorf("%s\nwrites over an end, or changes a sum", line)
		}
	}
	if !regexp.MustCompile(`(?m)^idemctl .*account compare acct_1 .*--correct --reason .* --write$`).MatchString(section) {
		t.Error("the page has no command that gives the money back")
	}
	manual, err := os.ReadFile(filepath.Join(root, "operator.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(manual), "](recovery.md#end-a-row-by-hand)"); n < 3 {
		t.Errorf("%d runbooks of operator.md lead to it, want those of erased keys, of a settlement that fails, and of a state that differs", n)
	}
}

// docs/recovery.md "Fail-over to another Region": a window that begins at the latest of the three backups hides what one of the others lacks.
func TestAFailOverComparesFromTheEarliestBackupOn(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "recovery.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Fail-over to another Region\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if section = strings.Join(strings.Fields(section), " "); !strings.Contains(section, "earliest of the three backups") || !strings.Contains(section, "without `--from`") {
		t.Error("the page does not say from when on it is compared")
	}
}

// docs/operator.md "missing_here": an object that reached the provider after the cut-over may be of an operation from before it. What became of
// the operation decides, and not when the object was made: before anything is refunded, it is made again.
func TestAnObjectOfALostOperationIsMadeAgainBeforeItIsRefunded(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operator.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n#### missing_here\n")
	_, step, _ := strings.Cut(section, "\n4. ")
	step, rest, _ := strings.Cut(step, "\n5. ")
	if !strings.Contains(step, "missing restore --operation") || !strings.Contains(step, "idempotency.reserve.created") || !strings.HasPrefix(rest, "Otherwise refund it") {
		t.Errorf("step 4 is %q", step)
	}
}

// commandOf is the command of a line, without its arguments and the flags before it.
func commandOf(args []string) string {
	if args[0] == "--within" {
		args = args[2:]
	}
	most := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") })
	if most < 0 {
		most = len(args)
	}
	return strings.Join(args[:min(most, 2)], " ")
}

// docs/recovery.md: a block is pasted as a whole, and nobody looks at anything between its lines. So a dry run and what it is the dry run of
// stand in two blocks. Those that compare a whole table have the time for it.
func TestADryRunStandsInABlockOfItsOwn(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "recovery.md"))
	if err != nil {
		t.Fatal(err)
	}
	long := 0
	for i, block := range strings.Split(string(text), "```") {
		if i%2 == 0 { // between two blocks
			continue
		}
		writes := map[string]bool{}
		for _, args := range commandsIn(block) {
			command, write := commandOf(args), slices.Contains(args, "--write")
			if before, there := writes[command]; there && before != write {
				t.Errorf("one block has the dry run of %s, and what it does:%s", command, block)
			}
			writes[command] = write
			if slices.Contains([]string{"missing restore", "account compare", "drift"}, command) {
				if long++; args[0] != "--within" {
					t.Errorf("without --within: idemctl %s", strings.Join(args, " "))
				}
			}
		}
	}
	if long < 8 {
		t.Errorf("%d commands that compare were found", long)
	}
}

func TestIncompleteCommandLinesAreFound(t *testing.T) {
	nameNoTable(t)
	for line, want := range map[string]string{
		"idemctl list unknown --tenant a": "",
		"idemctl resolve op_….1 --delivered ch_1 --seen … --reason \"ticket 17\" --write": "",
		"idemctl resolve op_….1 --delivered ch_1 --seen …":                                "--reason",
		"idemctl close op_….1 --reason \"ticket 17\"":                                     "--seen",
		"idemctl resolve op_….1 --seen … --reason \"ticket 17\"":                          "needs to know what happened",
		"idemctl list lost": "must be one of",
		"idemctl refuse-before set yesterday --reason \"ticket 17\"":                       "yesterday",
		"idemctl redrive --reason \"ticket 17\"":                                           "needs the id of a message",
		"idemctl missing restore --from … --to … --operation op_17 --reason \"ticket 17\"": "not an operation id",
	} {
		why := missingIn(t, commandsIn(line + "\n")[0])
		if want == "" && why != "" || !strings.Contains(why, want) {
			t.Errorf("%s: %q, want %q", line, why, want)
		}
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

// adviceTexts are the source of what idemctl says to do about an error.
const adviceTexts = "idem/operator/idemctl/advice.go"

// docs/operator.md "Variables": what the command demands, and what an error says to set, stands in the table that the error links to.
func TestVariablesThatAreAskedForAreDocumented(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	manual, err := os.ReadFile(filepath.Join(root, "docs", "operator.md"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(adviceTexts)))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(manual), "\n### Variables\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented strings.Builder
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(section, -1) {
		documented.WriteString(row[1] + "\n")
	}
	wanted := regexp.MustCompile(`\b[A-Z]+(?:_[A-Z]+)+\b`).FindAllString(string(source), -1)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config.Operator]()) {
		if name, rule, _ := strings.Cut(f.Tag.Get("env"), ","); strings.Contains(rule, "notEmpty") {
			wanted = append(wanted, name)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config.Scopes]()) { // "Give this command the scope secret that the functions have."
		wanted = append(wanted, f.Tag.Get("env"))
	}
	for _, name := range wanted {
		if name != "IDEMCTL_ACTOR" && !regexp.MustCompile(`\b`+name+`\b`).MatchString(documented.String()) { // who acts is told beside --actor
			t.Errorf("the table of variables lacks %s", name)
		}
	}
	if len(wanted) < 10 {
		t.Errorf("only %q were looked for", wanted)
	}
}
