package docsite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// Every link of every document leads somewhere on GitHub, too.
func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	t.Parallel()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	all := documents(t, root)
	links := 0
	for _, d := range all {
		links += len(d.Links())
	}
	if len(all) < 50 || links < 120 {
		t.Fatalf("%d documents with %d links were found", len(all), links)
	}
	for _, wrong := range CheckLinks(root, all) {
		t.Error(wrong)
	}
}

// Every block of Go, shell and JSON in the documents is compiled, run or read.
func TestDocumentsHaveBlocksThatAreChecked(t *testing.T) {
	t.Parallel()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	all := documents(t, root)
	count := map[string]int{}
	for _, d := range all {
		blocks, err := d.Blocks()
		if err != nil && checkedFolder(d.Name) {
			t.Error(err)
		}
		for _, b := range blocks {
			if checkedFolder(d.Name) {
				count[b.Language]++
			}
		}
	}
	if count["go"] < 4 || count["sh"]+count[""] < 40 || count["json"] < 1 {
		t.Errorf("blocks by language: %v", count)
	}
	for _, wrong := range CheckBlocks(root, all) {
		t.Error(wrong)
	}
}

func TestLinkDefectsAreFound(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "docs/a.md", "")
	write(t, root, "docs/other.md", "# A heading, of `code` and [a link](other.md)\n\n## Twice\n\n## Twice\n")
	cases := map[string]struct{ text, want string }{
		"a document":               {"[x](other.md)", ""},
		"a heading":                {"[x](other.md#a-heading-of-code-and-a-link)", ""},
		"the second of that name":  {"[x](other.md#twice-1)", ""},
		"a link in a block":        {"```text\n[x](none.md)\n```\n", ""},
		"a link in code":           {"`[x](none.md)`", ""},
		"elsewhere":                {"[x](https://example.com/none.md)", ""},
		"no document":              {"[x](none.md)", "docs/a.md: none.md: no such file"},
		"no heading":               {"[x](other.md#none)", "docs/a.md: other.md#none: the document has no such heading"},
		"no heading of its own":    {"[x](#none)", "docs/a.md: #none: the document has no such heading"},
		"the third of that name":   {"[x](other.md#twice-2)", "docs/a.md: other.md#twice-2: the document has no such heading"},
		"outside of the checkout":  {"[x](../../etc/passwd)", "docs/a.md: ../../etc/passwd: no such file"},
		"a link over two lines":    {"[x\ny](none.md)", "docs/a.md: none.md: no such file"},
		"a link after a block":     {"```text\n```\n[x](none.md)", "docs/a.md: none.md: no such file"},
		"with a title":             {"[x](none.md \"Title\")", "docs/a.md: none.md: no such file"},
		"with brackets":            {"[x](none_(1).md)", "docs/a.md: none_(1).md: no such file"},
		"a definition":             {"[x][name]\n\n[name]: none.md", "docs/a.md: none.md: no such file"},
		"a link of HTML":           {`<a class="b" href="none.md">x</a>`, "docs/a.md: none.md: no such file"},
		"a picture of HTML":        {`<img alt="x" src="none.png">`, "docs/a.md: none.png: no such file"},
		"our own address":          {"[x](" + Repository + "/blob/main/docs/other.md#twice)", ""},
		"our own address of none":  {"[x](" + Repository + "/tree/main/docs/none)", "docs/a.md: " + Repository + "/tree/main/docs/none: no such file"},
		"no heading of ours":       {"[x](" + Repository + "/blob/main/docs/other.md#none)", "docs/a.md: " + Repository + "/blob/main/docs/other.md#none: the document has no such heading"},
		"a heading within a block": {"[x](#in)\n```text\n# In\n```\n", "docs/a.md: #in: the document has no such heading"},
	}
	other, err := os.ReadFile(filepath.Join(root, "docs", "other.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wrong := CheckLinks(root, []Document{{"docs/a.md", c.text}, {"docs/other.md", string(other)}})
			expect(t, wrong, c.want)
		})
	}
}

func TestBlockDefectsAreFound(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "Makefile", "test: ## every check\n")
	write(t, root, "helped.go", "package main\n\nimport \"example.org/shop/internal/check\"\n\nfunc main() {\n\tcheck.Get()\n\trecheck.Get()\n}\n")
	write(t, root, "main.go", "package main\n\nfunc main() {\n\tfirst()\n\tsecond()\n\n\tthird()\n}\n")
	write(t, root, "left.go", "//go:build ignore\n\npackage main\n\nfunc main() {}\n")
	const reason = "<!-- not run: it needs an AWS account -->\n"
	const code = "<!-- code: main.go -->\n```go\n"
	const exchange = "<!-- recorded: kept.http, in-flight 409 -->\n```http\n"
	write(t, root, "kept.http", "=== in-flight 409 ===\nPOST / HTTP/1.1\n\nHTTP/1.1 409 Conflict\n\n")
	cases := map[string]struct{ text, want string }{
		"an exchange":                    {exchange + "POST / HTTP/1.1\n\nHTTP/1.1 409 Conflict\n```", ""},
		"another answer":                 {exchange + "POST / HTTP/1.1\n\nHTTP/1.1 200 OK\n```", "docs/a.md:2: the exchange is not the recorded one"},
		"a part of an exchange":          {exchange + "POST / HTTP/1.1\n```", "docs/a.md:2: the exchange is not the recorded one"},
		"an exchange of no file":         {"<!-- recorded: none.http, x -->\n```http\n```", "docs/a.md:2: open "},
		"an exchange without a name":     {"<!-- recorded: kept.http -->\n```http\n```", "docs/a.md:2: an exchange needs"},
		"an exchange nobody recorded":    {"```http\nGET / HTTP/1.1\n```", "docs/a.md:1: an exchange needs"},
		"an exchange of no guide's test": {"<!-- tested: x -->\n```http\nGET / HTTP/1.1\n```", "docs/a.md:2: an exchange needs"},
		"an exchange of another name":    {"<!-- recorded: kept.http, x -->\n```http\n```", `docs/a.md:2: kept.http has no exchange "x"`},
		"lines of a file":                {code + "first()\nsecond()\n```", ""},
		"with lines left out":            {code + "func main() {\n    first()\n    // …\n    third()\n}\n```", ""},
		"commands that a test runs":      {"<!-- run: x -->\n```sh\nmake test\n```", ""},
		"commands that nobody runs":      {reason + "```sh\naws s3 ls\n```", ""},
		"for the whole page":             {"<!-- not run on this page: they need an account -->\n\n```\naws s3 ls\n```", ""},
		"JSON":                           {"```json\n{\"a\": [1]}\n```", ""},
		"Go without a file":              {"```go\nfirst()\n```", "docs/a.md:1: Go needs <!-- code: file -->"},
		"Go of a file that is not":       {"<!-- code: none.go -->\n```go\nfirst()\n```", "docs/a.md:2: none.go is no Go file"},
		"Go that is not compiled":        {"<!-- code: left.go -->\n```go\nfunc main() {}\n```", "docs/a.md:2: left.go has a build constraint"},
		"Go of a document":               {"<!-- code: Makefile -->\n```go\ntest:\n```", "docs/a.md:2: Makefile is no Go file"},
		"Go with a helper of our own":    {"<!-- code: helped.go -->\n```go\ncheck.Get()\n```", "docs/a.md:2: the package check is internal to the examples"},
		"Go beside a helper of our own":  {"<!-- code: helped.go -->\n```go\nrecheck.Get()\n```", ""},
		"a line that is not there":       {code + "fourth()\n```", "docs/a.md:2: main.go does not have these lines:\nfourth()"},
		"a part of a line":               {code + "irst()\n```", "docs/a.md:2: main.go does not have these lines"},
		"lines left out, not said so":    {code + "first()\nthird()\n```", "docs/a.md:2: main.go does not have these lines"},
		"parts in another order":         {code + "third()\n// …\nfirst()\n```", "docs/a.md:2: main.go does not have these lines:\nfirst()"},
		"commands without a word":        {"```sh\nls\n```", "docs/a.md:1: commands need"},
		"commands without a language":    {"```\nls\n```", "docs/a.md:1: commands need"},
		"commands without a reason":      {"<!-- not run: no -->\n```sh\nls\n```", "docs/a.md:2: commands need"},
		"what bash can't read":           {reason + "```sh\nls (\n```", "docs/a.md:2: bash can't read it"},
		"a target that is not there":     {reason + "```sh\nmake coffee\n```", "docs/a.md:2: make has no target coffee"},
		"a package that is not there":    {reason + "```sh\ngo run ./cmd/none\n```", "docs/a.md:2: there is no package ./cmd/none"},
		"JSON that is none":              {"```json\n{\"a\": 1,}\n```", "docs/a.md:1: JSON: "},
		"YAML":                           {"```yaml\na: !Ref B\n```", ""},
		"YAML that is none":              {"```yaml\na: [1\n```", "docs/a.md:1: YAML: "},
		"a language that nobody checks":  {"```python\npass\n```", "docs/a.md:1: the language must be"},
		"a fence of tildes":              {"~~~go\nnone()\n~~~", "docs/a.md:1: a block must begin with three backticks"},
		"a fence of four":                {"````go\nnone()\n````", "docs/a.md:1: a block must begin with three backticks"},
		"a block in a quote":             {"> ```go\n> none()\n> ```", "docs/a.md:1: a block must begin with three backticks"},
		"a fence behind a tab":           {"\t```go\n\tnone()\n\t```", "docs/a.md:1: a block must begin with three backticks"},
		"a fence with a title":           {"```go title=\"x\"\nnone()\n```", "docs/a.md:1: a block must begin with three backticks"},
		"a fence in a list's line":       {"- ```go\n  none()\n  ```", "docs/a.md:1: a block must begin with three backticks"},
		"lines that end as on Windows":   {"```go\r\nnone()\r\n```\r\n", "docs/a.md:1: a block must begin with three backticks"},
		"a target behind a command":      {reason + "```sh\ncd x && STAGE=prod make coffee\n```", "docs/a.md:2: make has no target coffee"},
		"a package behind a flag":        {reason + "```sh\ngo run -tags prove ./cmd/none\n```", "docs/a.md:2: there is no package ./cmd/none"},
		"a block that is not closed":     {"```sh\nls\n", "docs/a.md:1: the block is not closed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, CheckBlocks(root, []Document{{"docs/a.md", c.text}}), c.want)
		})
	}
}

// expect fails where nothing, or something else, is wrong.
func expect(t *testing.T, wrong []error, want string) {
	t.Helper()
	switch {
	case want == "" && len(wrong) > 0:
		t.Errorf("got %v, want nothing", wrong)
	case want != "" && (len(wrong) != 1 || !strings.Contains(wrong[0].Error(), want)):
		t.Errorf("got %v, want %q", wrong, want)
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
