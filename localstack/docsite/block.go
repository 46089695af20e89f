package docsite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Block is a fenced block of a document.
type Block struct {
	// Document has it, and Line is where it begins, from 1.
	Document string
	Line     int
	// Language is the word after the fence. Without one the block is commands of a shell.
	Language string
	// Directive is what the comment on the line before the fence says, or "":
	//
	//	<!-- code: docs/examples/start/memory/main.go -->   the lines stand in this file, which is compiled
	//	<!-- run: memory -->                                a test runs the commands, and those of the same name after them
	//	<!-- output: memory -->                             what they print
	//	<!-- not run: why -->                               nobody runs the commands
	//	<!-- recorded: localstack/e2e/testdata/recorded.http, in-flight duplicate -->
	//	                                                    a test records this exchange, and compares it with that file
	//	<!-- tested: another amount -->                     in docs/guides: the page's own test compares the block with what it sees
	Directive, Argument string
	// Text is what stands between the fences, without their indentation.
	Text string
	// pageReason is why nobody runs any command of the document: "not run on this page".
	pageReason string
}

// BlockError is a block that is not what it says.
type BlockError struct {
	// Document and Line are where the block begins.
	Document string
	Line     int
	// Why it is wrong.
	Why string
}

// Error names the place and the reason.
func (e *BlockError) Error() string { return fmt.Sprintf("%s:%d: %s", e.Document, e.Line, e.Why) }

var (
	fence = regexp.MustCompile("^( *)```([a-z]*) *$")
	// otherFence opens a block that readers see and fence does not find.
	otherFence    = regexp.MustCompile("^[\\s>]*(?:[-*+] +|[0-9]+[.)] +)?(?:```|~~~)")
	directive     = regexp.MustCompile(`^ *<!-- (code|run|output|not run|json|recorded|tested): (.+?) -->$`)
	pageDirective = regexp.MustCompile(`(?m)^<!-- not run on this page: (.+?) -->$`)
)

// Blocks are the fenced blocks of the document. A fence that is not closed, or is written in another way, is a *BlockError.
func (d Document) Blocks() ([]Block, error) {
	var blocks []Block
	var open *Block
	var reason, indent, before string
	if match := pageDirective.FindStringSubmatch(d.text); match != nil {
		reason = match[1]
	}
	for i, line := range strings.Split(d.text, "\n") {
		match := fence.FindStringSubmatch(line)
		switch {
		case open == nil && match != nil:
			indent = match[1]
			open = &Block{Document: d.Name, Line: i + 1, Language: match[2], pageReason: reason}
			if said := directive.FindStringSubmatch(before); said != nil {
				open.Directive, open.Argument = said[1], said[2]
			}
		case open != nil && match != nil && match[2] == "":
			blocks = append(blocks, *open)
			open = nil
		case open == nil && otherFence.MatchString(line):
			return nil, &BlockError{d.Name, i + 1, "a block must begin with three backticks and one of the languages, on a line of its own behind nothing but spaces"}
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent) + "\n"
		}
		before = line
	}
	if open != nil {
		return nil, &BlockError{d.Name, open.Line, "the block is not closed"}
	}
	return blocks, nil
}

// checkedElsewhere are the documents outside of docs/ whose blocks are checked. Those of the published clients are not: their
// commands are for a release.
var checkedElsewhere = []string{
	"README.md", "CONTRIBUTING.md", "SECURITY.md", "infra/README.md", "localstack/README.md", "localstack/provider/README.md", "bench/README.md",
}

// checkedFolder tells whether the blocks of a document are checked.
func checkedFolder(name string) bool {
	return strings.HasPrefix(name, "docs/") || slices.Contains(checkedElsewhere, name)
}

// languages are what a block may be written in. Those without a check of their own hold no code, or are said to be by whom they
// are checked.
var languages = map[string]func(root string, b Block) string{
	"go": checkGo, "sh": checkShell, "": checkShell, "json": checkJSON,
	"http": checkHTTP, "text": unchecked, "mermaid": unchecked, "yaml": checkYAML, "hcl": unchecked,
}

func unchecked(string, Block) string { return "" }

// CheckBlocks checks every block of the documents. It returns a *BlockError for each that is wrong: Go that stands in no file which
// is compiled, commands that nobody runs and nobody says why, names of commands that are not there, exchanges of HTTP that nobody
// recorded, and JSON and YAML that can't be read.
func CheckBlocks(root string, documents []Document) []error {
	var wrong []error
	for _, d := range documents {
		if !checkedFolder(d.Name) {
			continue
		}
		blocks, err := d.Blocks()
		if err != nil {
			wrong = append(wrong, err)
		}
		for _, b := range blocks {
			why := "the language must be one of go, sh, json, text, mermaid, http, yaml, hcl, or none for commands"
			if check, ok := languages[b.Language]; ok {
				why = check(root, b)
			}
			if why != "" {
				wrong = append(wrong, &BlockError{b.Document, b.Line, why})
			}
		}
	}
	return wrong
}

// elided stands for lines of the file that the document leaves out.
const elided = "// …"

// checkGo compares a block with the file that it names: a part between two elided lines must stand there in one piece, however it
// is indented, and the parts in their order.
func checkGo(root string, b Block) string {
	if b.Directive != "code" {
		return "Go needs <!-- code: file --> before it: the file of a package that has these lines"
	}
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(b.Argument)))
	if err != nil || path.Ext(b.Argument) != ".go" {
		return b.Argument + " is no Go file of this checkout"
	}
	if constrained.Match(source) {
		return b.Argument + " has a build constraint: the tests may not compile it"
	}
	if name := internalName(source, b.Text); name != "" {
		return "the package " + name + " is internal to the examples: a reader who pastes these lines does not have it"
	}
	rest := dedented(string(source))
	for _, part := range strings.Split("\n"+dedented(b.Text), "\n"+elided) {
		part = strings.Trim(part, "\n")
		_, after, found := strings.Cut("\n"+rest, "\n"+part+"\n")
		if !found {
			return fmt.Sprintf("%s does not have these lines:\n%s", b.Argument, part)
		}
		rest = after
	}
	return ""
}

// constrained finds a build constraint.
var constrained = regexp.MustCompile(`(?m)^//go:build `)

// internalName returns the name of an internal package that the source imports and the block uses, or "".
func internalName(source []byte, block string) string {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ImportsOnly)
	if err != nil {
		return "" // the compiler says so
	}
	for _, imported := range file.Imports {
		from, err := strconv.Unquote(imported.Path.Value)
		if err != nil || !strings.Contains(from, "/internal/") {
			continue
		}
		name := path.Base(from)
		if imported.Name != nil {
			name = imported.Name.Name
		}
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\.`).MatchString(block) {
			return name
		}
	}
	return ""
}

// dedented is a text whose lines have no indentation, and no empty lines at its ends.
func dedented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

func checkJSON(_ string, b Block) string {
	var value any
	if err := json.Unmarshal([]byte(b.Text), &value); err != nil {
		return "JSON: " + err.Error()
	}
	return ""
}

func checkYAML(_ string, b Block) string {
	var value yaml.Node // tags such as !Ref are the reader's
	if err := yaml.Unmarshal([]byte(b.Text), &value); err != nil {
		return "YAML: " + err.Error()
	}
	return ""
}

var (
	makeCall   = regexp.MustCompile(`(?m)(?:^|&&|\|\||;)\s*(?:[A-Z0-9_]+=\S+ )*make ([a-z][a-z0-9-]*)`)
	goPackage  = regexp.MustCompile(`(?m)(?:^|&&|\|\||;)\s*(?:[A-Z0-9_]+=\S+ )*go (?:run|test|build|vet) (?:-(?:tags|run) \S+ |-[a-z]+(?:=\S+)? )*(\./[a-zA-Z0-9_/.-]+)`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):.*## `)
)

// checkShell looks at commands that nobody runs: bash must be able to read them, and what they call must be there. Those that a test
// runs are looked at, too.
func checkShell(root string, b Block) string {
	if b.Directive == "not run" && len(b.Argument) < 10 || b.Directive != "run" && b.Directive != "not run" && b.pageReason == "" {
		return "commands need <!-- run: session --> or <!-- not run: why --> before them"
	}
	read := exec.Command("bash", "-n")
	read.Stdin = strings.NewReader(b.Text)
	if said, err := read.CombinedOutput(); err != nil {
		return fmt.Sprintf("bash can't read it: %s", bytes.TrimSpace(said))
	}
	targets, err := makeTargets(root, b.Document)
	if err != nil {
		return err.Error()
	}
	for _, call := range makeCall.FindAllStringSubmatch(b.Text, -1) {
		if !slices.Contains(targets, call[1]) {
			return "make has no target " + call[1]
		}
	}
	if !strings.Contains(b.Text, "cd ") {
		for _, called := range goPackage.FindAllStringSubmatch(b.Text, -1) {
			if folder := strings.TrimSuffix(called[1], "..."); b.pageReason == "" && !isFolder(filepath.Join(root, folder)) {
				return "there is no package " + called[1]
			}
		}
	}
	return ""
}

// writtenService is the folder of what `idemctl new` writes, and the page about it, on which make is that service's.
const writtenService, newPage = "docs/examples/ownstack", "docs/start/new.md"

// makeTargets are the targets of make on a page.
func makeTargets(root, page string) (targets []string, err error) {
	folders := []string{"."}
	if page == newPage {
		folders = append(folders, writtenService)
	}
	for _, folder := range folders {
		makefile, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(folder), "Makefile"))
		if err != nil {
			return nil, err
		}
		for _, target := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
			targets = append(targets, target[1])
		}
	}
	return targets, nil
}

func isFolder(name string) bool {
	found, err := os.Stat(name)
	return err == nil && found.IsDir()
}
