package docsite

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

const configurationProse = `# Configuration
<!-- Generated from the code: go test ./localstack/docsite -run TestConfigurationIsDocumented -update -->
This page is generated from the comments of the code, and a test fails as soon as they differ.

- [In Go](#in-go): the fields of each type that you fill in, such as a package's Config. Zero means
  the default.
- [Variables of an application's functions](#variables-of-an-applications-functions): what the
  construct, the SAM template and the Terraform module set, and package lambdaapp reads. Set none of
  them by hand.
- [Variables of the payments application](#variables-of-the-payments-application): what its CDK app
  sets. Choose by the contexts of [infra](../../infra/README.md).

Durations are written as Go writes them: ` + "`28s`, `5m`, `24h`" + `. A variable that is missing or
malformed ends the start with an error that names it.
`

// structure is a type of a package, by its folder.
type structure struct{ folder, name string }

// configured are the types that an application fills in, those of most applications first.
var configured = []structure{
	{"idem", "Config"}, {"idem", "Operation"}, {"idem/middleware", "Config"}, {"idem/middleware", "Route"}, {"idem/middleware/cors", "Config"},
	{"idem/canonical", "Config"}, {"idem/dynamo", "Config"}, {"idem/breaker", "Config"}, {"idem/cache", "Config"},
	{"idem/outbox", "Topic"}, {"idem/outbox/call", "Config"}, {"idem/outbox", "Config"}, {"idem/outbox", "RunConfig"},
	{"idem/outbox/sqsqueue", "ConsumerConfig"},
	{"idem/lambdaapp", "Config"}, {"idem/container", "Config"}, {"idem/function", "Config"}, {"idem/awslambda", "Config"}, {"idem/webhook", "Config"},
	{"idem/quota", "Config"}, {"idem/quota", "Limits"}, {"idem/seal", "Config"}, {"idem/seal/tablekeys", "Config"}, {"idem/telemetry", "Config"},
	{"idem/operator/awsctl", "Lambda"}, {"idem/operator/awsctl", "Config"}, {"idem/operator", "Config"}, {"idem/operator", "ClerkConfig"},
	{"idem/operator/console", "Config"}, {"idem/memstore", "Config"}, {"idem/client", "Config"},
}

// Whatever type of the library has the name of a configuration is on the page.
func TestEveryConfigurationIsListed(t *testing.T) {
	t.Parallel()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir(filepath.Join(root, "idem"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if slices.Contains([]string{"internal", "testdata", "protocol"}, entry.Name()) { // what no application imports
			return filepath.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		for _, file := range files {
			source, failed := os.ReadFile(file)
			err = errors.Join(err, failed)
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, name := range configuration.FindAllStringSubmatch(string(source), -1) {
				folder, failed := filepath.Rel(root, path)
				err = errors.Join(err, failed)
				if found++; !slices.Contains(configured, structure{filepath.ToSlash(folder), name[1]}) {
					t.Errorf("%s of %s is not on the page", name[1], folder)
				}
			}
		}
		return err
	})
	if err != nil || found < 28 {
		t.Errorf("%d types, %v", found, err)
	}
}

// configuration finds a type that an application fills in, by its name.
var configuration = regexp.MustCompile(`(?m)^type ((?:[A-Z]\w*)?Config|Topic|Route|Limits) struct`)

// The page of the configuration has every field and every variable, as the code's own comments explain them.
func TestConfigurationIsDocumented(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(configurationProse)
	b.WriteString("\n## In Go\n")
	rows := 0
	for _, c := range configured {
		fmt.Fprintf(&b, "### %s.%s\n| field | |\n|---|---|\n", filepath.Base(c.folder), c.name)
		for _, row := range fieldsOf(t, filepath.Join(root, filepath.FromSlash(c.folder)), c.name) {
			rows++
			fmt.Fprintf(&b, "| %s | %s |\n", row.names(), row.text)
		}
		b.WriteString("\n")
	}
	b.WriteString("## Variables of an application's functions\n| variable | |\n|---|---|\n")
	for _, row := range constantsOf(t, filepath.Join(root, "idem", "lambdaapp", "environment")) {
		rows++
		fmt.Fprintf(&b, "| %s | %s |\n", row.names(), row.text)
	}
	b.WriteString("\n## Variables of the payments application\n| variable | default | |\n|---|---|---|\n")
	for _, row := range variablesOf(t, filepath.Join(root, "functions", "internal", "config")) {
		rows++
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.names(), row.value, row.text)
	}
	if rows < 100 {
		t.Errorf("%d rows", rows)
	}
	page := filepath.Join(root, "docs", "reference", "configuration.md")
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != b.String() {
		t.Errorf("%s differs from the code; go test ./localstack/docsite -run %s -update writes it", page, t.Name())
	}
}

// explained are names that share a comment.
type explained struct {
	known []string
	value string
	text  string
}

func (e explained) names() string { return "`" + strings.Join(e.known, "`, `") + "`" }

var oneWord = regexp.MustCompile(`[A-Z]([a-z]+|[A-Z]+)`)

var docLink = regexp.MustCompile(`\[(\*?[A-Za-z][A-Za-z0-9.]*)\]`)

// prose is a comment as a cell of a table, without the names that it begins with: what it explains stands beside it.
func prose(comment *ast.CommentGroup, names ...string) string {
	text := strings.Join(strings.Fields(comment.Text()), " ")
	text = docLink.ReplaceAllString(text, "`$1`")
	text = strings.ReplaceAll(text, "|", `\|`)
	text = strings.ReplaceAll(text, "<", "&lt;")
	for _, name := range names { // "X and Y are" keeps its names
		if rest, ok := strings.CutPrefix(text, name+" "); ok && !strings.HasPrefix(rest, "and ") {
			text = strings.TrimPrefix(strings.TrimPrefix(rest, "is "), "are ")
		}
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// inspect calls visit with each node of the package's own files.
func inspect(t *testing.T, folder string, visit func(ast.Node) bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files (%v)", folder, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, visit)
	}
}

// fieldsOf are the exported fields of a struct. A field without a comment shares that of the field before it, which names it.
func fieldsOf(t *testing.T, folder, name string) []explained {
	t.Helper()
	var rows []explained
	inspect(t, folder, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			for i, exported := range field.Names {
				switch {
				case !exported.IsExported():
				case (field.Doc == nil || i > 0) && len(rows) > 0 && strings.Contains(rows[len(rows)-1].text, exported.Name):
					rows[len(rows)-1].known = append(rows[len(rows)-1].known, exported.Name)
				case field.Doc == nil:
					t.Errorf("%s.%s of %s has no comment", name, exported.Name, folder)
				default:
					rows = append(rows, explained{known: []string{exported.Name}, text: prose(field.Doc, exported.Name)})
				}
			}
		}
		return false
	})
	if len(rows) == 0 {
		t.Fatalf("%s has no struct %s", folder, name)
	}
	return rows
}

// constantsOf are the values of the package's text constants of the first group: the names of variables.
func constantsOf(t *testing.T, folder string) []explained {
	t.Helper()
	var rows []explained
	var inGo []string
	inspect(t, folder, func(node ast.Node) bool {
		group, ok := node.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST || group.Doc == nil || !strings.HasPrefix(group.Doc.Text(), "Variables") {
			return true
		}
		for _, spec := range group.Specs {
			constant := spec.(*ast.ValueSpec)
			value, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if name := constant.Names[0].Name; oneWord.FindString(name) != name {
				inGo = append(inGo, name, value)
			}
			if constant.Doc == nil {
				rows[len(rows)-1].known = append(rows[len(rows)-1].known, value)
				continue
			}
			rows = append(rows, explained{known: []string{value}, text: prose(constant.Doc, constant.Names[0].Name)})
		}
		return false
	})
	return byVariable(rows, inGo)
}

// variablesOf are the variables that the structs of a package name in their tags.
func variablesOf(t *testing.T, folder string) []explained {
	t.Helper()
	var rows []explained
	seen, inGo := map[string]bool{}, []string{}
	inspect(t, folder, func(node ast.Node) bool {
		structure, ok := node.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range structure.Fields.List {
			if field.Tag == nil || len(field.Names) == 0 {
				continue
			}
			tag, err := strconv.Unquote(field.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			variable, option, _ := strings.Cut(reflect.StructTag(tag).Get("env"), ",")
			if variable == "" || seen[variable] {
				continue
			}
			seen[variable] = true
			if name := field.Names[0].Name; oneWord.FindString(name) != name { // one word is a word of the prose, too
				inGo = append(inGo, name, variable)
			}
			row := explained{known: []string{variable}, value: "`" + reflect.StructTag(tag).Get("envDefault") + "`"}
			switch {
			case option == "notEmpty":
				row.value = "required"
			case row.value == "``":
				row.value = "none"
			}
			if field.Doc != nil {
				row.text = prose(field.Doc, field.Names[0].Name)
			}
			rows = append(rows, row)
		}
		return true
	})
	return byVariable(rows, inGo)
}

// byVariable has the comments name variables, where they name what they are called in Go: pairs of the two.
func byVariable(rows []explained, inGo []string) []explained {
	for i := range rows {
		for j := 0; j < len(inGo); j += 2 {
			rows[i].text = regexp.MustCompile(`\b`+inGo[j]+`\b`).ReplaceAllString(rows[i].text, "`"+inGo[j+1]+"`")
		}
	}
	return rows
}
