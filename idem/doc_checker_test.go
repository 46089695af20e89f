package idem_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sentencesMin is how many sentences a package comment has at least: what the package is for, when to use it, and with
// what.
const sentencesMin = 3

var (
	// privateReference matches what a reader of pkg.go.dev cannot look up: a finding's number, a decision record, a page about how
	// this repository is built (of the contract and the manuals, which are written for users, the file may be named), the page
	// of failures seen in similar libraries, and the path of an internal package.
	privateReference = regexp.MustCompile(`\b[HP]\d{1,2}\b|peers\.md|\bADR\s+\d{4}\b|\bdocs/(adr|design|peers|states|style)\b|\binternal/[a-z]+`)
	// twiceRead matches words that a reader has to read twice: metaphors, and subjects that are not named.
	twiceRead = regexp.MustCompile(`(?i)\bwhoever\b|\bin vain\b|\bwants an? (person|human|operator)\b|\bleft lying\b|\bnot its to\b`)
	// mixedCaps matches an unexported name that can be no English word.
	mixedCaps   = regexp.MustCompile(`\b[a-z]+[A-Z]\w*`)
	sentenceEnd = regexp.MustCompile(`[.!?]["')]*(\s|$)`)
)

// A publicPackage is a package as pkg.go.dev shows it.
type publicPackage struct {
	doc        *doc.Package
	fset       *token.FileSet
	unexported map[string]bool // the unexported names that the package declares
	examples   []*doc.Example  // of the external test package, which is where users' code stands
}

func parsePackage(t *testing.T, dir string) publicPackage {
	t.Helper()
	p := publicPackage{fset: token.NewFileSet(), unexported: map[string]bool{}}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files, tests []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(p.fset, name, nil, parser.ParseComments)
		switch {
		case err != nil:
			t.Fatal(err)
		case !strings.HasSuffix(name, "_test.go"):
			files = append(files, file)
		case strings.HasSuffix(file.Name.Name, "_test"):
			tests = append(tests, file)
		}
	}
	if len(files) == 0 {
		t.Fatalf("%s has no Go files", dir)
	}
	for _, file := range files {
		p.addUnexported(file)
	}
	if p.doc, err = doc.NewFromFiles(p.fset, files, dir); err != nil {
		t.Fatal(err)
	}
	p.examples = doc.Examples(tests...)
	return p
}

func (p publicPackage) addUnexported(file *ast.File) {
	add := func(names ...*ast.Ident) {
		for _, name := range names {
			if !name.IsExported() {
				p.unexported[name.Name] = true
			}
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			add(decl.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					add(spec.Names...)
				case *ast.TypeSpec:
					add(spec.Name)
					if structure, ok := spec.Type.(*ast.StructType); ok {
						for _, field := range structure.Fields.List {
							add(field.Names...)
						}
					}
				}
			}
		}
	}
}

// packageProblems judges the package comment: its first words, and its length in sentences of prose.
func packageProblems(p publicPackage) []string {
	problems := p.commentProblems("the package", p.doc.Doc)
	if !strings.HasPrefix(p.doc.Doc, "Package "+p.doc.Name+" ") && !strings.HasPrefix(p.doc.Doc, "Package "+p.doc.Name+"\n") {
		problems = append(problems, fmt.Sprintf("the package comment must begin with \"Package %s\"", p.doc.Name))
	}
	if n := sentences(p.doc.Doc); n < sentencesMin {
		problems = append(problems, fmt.Sprintf("the package comment has %d sentences, at least %d are wanted", n, sentencesMin))
	}
	return problems
}

// audienceProblem wants a package to be for adopters, or to say that it is not.
func audienceProblem(p publicPackage, adopters bool) string {
	first, _, _ := strings.Cut(p.doc.Doc, "\n\n")
	first = strings.Join(strings.Fields(first), " ")
	own := slices.ContainsFunc([]string{"application", "tools"}, func(part string) bool {
		return strings.Contains(first, fmt.Sprintf(ownUse, part))
	})
	switch {
	case own && adopters:
		return "it is listed for adopters, and says that it is not for them"
	case !own && !adopters:
		return fmt.Sprintf("it can be imported: list it in besideTheLibrary, or say in the first paragraph of its comment that it %s", fmt.Sprintf(ownUse, "tools (or application)"))
	}
	return ""
}

// sentences counts those of a doc comment's paragraphs; code blocks, headings and lists have none.
func sentences(text string) int {
	var parser comment.Parser
	n := 0
	for _, block := range parser.Parse(text).Content {
		if paragraph, ok := block.(*comment.Paragraph); ok {
			n += len(sentenceEnd.FindAllString(plain(paragraph.Text), -1))
		}
	}
	return n
}

func plain(text []comment.Text) string {
	var b strings.Builder
	for _, part := range text {
		switch part := part.(type) {
		case comment.Plain:
			b.WriteString(string(part))
		case comment.Italic:
			b.WriteString(string(part))
		case *comment.Link:
			b.WriteString(plain(part.Text))
		case *comment.DocLink:
			b.WriteString(plain(part.Text))
		}
	}
	return b.String()
}

// nameProblems judges the comments of the exported functions, methods, types, constants and variables.
func nameProblems(p publicPackage) []string {
	problems := slices.Concat(p.valueProblems(p.doc.Consts), p.valueProblems(p.doc.Vars), p.funcProblems("", p.doc.Funcs))
	for _, typ := range p.doc.Types {
		problems = slices.Concat(problems, p.commentProblems(typ.Name, typ.Doc), p.valueProblems(typ.Consts),
			p.valueProblems(typ.Vars), p.funcProblems("", typ.Funcs), p.funcProblems(typ.Name+".", typ.Methods))
	}
	return problems
}

func (p publicPackage) funcProblems(receiver string, funcs []*doc.Func) []string {
	var problems []string
	for _, f := range funcs {
		problems = append(problems, p.commentProblems(receiver+f.Name, f.Doc, parameters(f.Decl.Type)...)...)
	}
	return problems
}

// valueProblems accepts a comment on the group or on each exported name of it.
func (p publicPackage) valueProblems(groups []*doc.Value) []string {
	var problems []string
	for _, group := range groups {
		if group.Doc != "" {
			problems = append(problems, p.commentProblems(group.Names[0], group.Doc)...)
		}
		for _, spec := range group.Decl.Specs {
			value := spec.(*ast.ValueSpec)
			text := value.Doc.Text() + value.Comment.Text()
			if group.Doc == "" || text != "" {
				problems = append(problems, p.commentProblems(value.Names[0].Name, text)...)
			}
		}
	}
	return problems
}

// fieldProblems wants a comment on every exported field of an exported struct, and on every method of an exported
// interface. A group's comment counts for each field of the lines directly below it that it names.
func fieldProblems(p publicPackage) []string {
	var problems []string
	for _, typ := range p.doc.Types {
		for _, spec := range typ.Decl.Specs {
			switch of := spec.(*ast.TypeSpec).Type.(type) {
			case *ast.StructType:
				problems = append(problems, p.memberProblems(typ, of.Fields)...)
			case *ast.InterfaceType:
				problems = append(problems, p.memberProblems(typ, of.Methods)...)
			}
		}
	}
	return problems
}

func (p publicPackage) memberProblems(typ *doc.Type, members *ast.FieldList) []string {
	var problems []string
	group, lastLine := "", 0
	for _, member := range members.List {
		own := member.Doc.Text() + member.Comment.Text()
		switch {
		case member.Doc != nil:
			group = member.Doc.Text()
		case p.fset.Position(member.Pos()).Line != lastLine+1:
			group = ""
		}
		lastLine = p.fset.Position(member.End()).Line
		for _, name := range member.Names { // an embedded type has none: its own comment is shown
			if !name.IsExported() {
				continue
			}
			text := own
			if text == "" && names(group, name.Name) {
				text = group
			}
			problems = append(problems, p.commentProblems(typ.Name+"."+name.Name, text, parameters(member.Type)...)...)
		}
	}
	return problems
}

// names says whether a comment has the name as a word of its own.
func names(text, name string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(text)
}

// exampleProblems wants an Example whose output is checked. Where notRun or without says why there is none, it wants that
// to be still so.
func exampleProblems(p publicPackage, notRun, without string) []string {
	checked := slices.ContainsFunc(p.examples, func(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput })
	switch {
	case notRun != "" && without != "":
		return []string{"it is excepted twice"}
	case without != "" && len(p.examples) > 0:
		return []string{"it has an Example; remove its exception from withoutExample"}
	case without != "":
		return nil
	case len(p.examples) == 0:
		return []string{"it has no Example in its external test package"}
	case notRun != "" && checked:
		return []string{"it has an Example with an output; remove its exception from exampleNotRun"}
	case notRun == "" && !checked:
		return []string{"none of its Examples has an output that is checked"}
	}
	return nil
}

// parameters lists the names of a function's parameters and results, which its comment may use.
func parameters(of ast.Expr) []string {
	function, ok := of.(*ast.FuncType)
	if !ok {
		return nil
	}
	fields := function.Params.List
	if function.Results != nil {
		fields = slices.Concat(fields, function.Results.List)
	}
	var found []string
	for _, field := range fields {
		for _, name := range field.Names {
			found = append(found, name.Name)
		}
	}
	return found
}

// commentProblems judges one comment. The known names are those that its reader sees beside it.
func (p publicPackage) commentProblems(name, text string, known ...string) []string {
	if strings.TrimSpace(text) == "" {
		return []string{name + " has no doc comment"}
	}
	var problems []string
	if found := privateReference.FindString(text); found != "" {
		problems = append(problems, fmt.Sprintf("the comment of %s refers to %q; say it in words", name, found))
	}
	if found := twiceRead.FindString(text); found != "" {
		problems = append(problems, fmt.Sprintf("the comment of %s says %q; say who, or what happens", name, found))
	}
	for _, word := range mixedCaps.FindAllString(text, -1) {
		if p.unexported[word] && !slices.Contains(known, word) {
			problems = append(problems, fmt.Sprintf("the comment of %s refers to the unexported %s", name, word))
		}
	}
	return problems
}
