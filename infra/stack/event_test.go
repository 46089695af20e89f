package stack_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sources are where the log lines are that functions write.
var sources = []string{"../../idem", "../../functions"}

// eventForm is the message of an event line: words with dots between.
var eventForm = regexp.MustCompile(`^[a-z_]+(\.[a-z_]+)+$`)

// alarmLines reads from the source the message of every log line that has alarm=true, by a literal, a constant of its package, or
// what the callers of a helper give it. It fails the test for one whose message can't be read.
func alarmLines(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, root := range sources {
		for _, files := range packagesBelow(t, root) {
			events, err := alarmEvents(files)
			if err != nil {
				t.Error(err)
			}
			for _, event := range events {
				found[event] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// packagesBelow parses everything but tests, by folder.
func packagesBelow(t *testing.T, root string) map[string][]*ast.File {
	t.Helper()
	packages, set := map[string][]*ast.File{}, token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// source is one package.
type source struct {
	files     []*ast.File
	constants map[string]string
}

// alarmEvents are the messages of a package's lines with alarm=true.
func alarmEvents(files []*ast.File) ([]string, error) {
	s := source{files: files, constants: map[string]string{}}
	for _, file := range files {
		ast.Inspect(file, s.constant)
	}
	var events []string
	for _, file := range files {
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok {
				if hasAlarm(declared) {
					return nil, fmt.Errorf(`"alarm" in a declaration: it is not known which line has it`)
				}
				continue
			}
			for _, line := range linesWithAlarm(function) {
				named, err := s.messages(function, line, func(e ast.Expr) bool { return true })
				if err != nil {
					return nil, err
				}
				events = append(events, named...)
			}
		}
	}
	return events, nil
}

func (s source) constant(n ast.Node) bool {
	spec, ok := n.(*ast.ValueSpec)
	if !ok {
		return true
	}
	for i, name := range spec.Names {
		if i < len(spec.Values) {
			if text, ok := literal(spec.Values[i]); ok {
				s.constants[name.Name] = text
			}
		}
	}
	return true
}

func literal(e ast.Expr) (string, bool) {
	basic, ok := e.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}

// linesWithAlarm are the outermost calls of a function that have "alarm" among their arguments, however deep.
func linesWithAlarm(function *ast.FuncDecl) (lines []*ast.CallExpr) {
	ast.Inspect(function, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		for _, argument := range call.Args {
			if hasAlarm(argument) {
				lines = append(lines, call)
				return false
			}
		}
		return true
	})
	return lines
}

func hasAlarm(in ast.Node) (has bool) {
	ast.Inspect(in, func(n ast.Node) bool {
		if _, body := n.(*ast.FuncLit); body {
			return false // a line of its own
		}
		if e, ok := n.(ast.Expr); ok {
			text, _ := literal(e)
			has = has || text == "alarm"
		}
		return !has
	})
	return has
}

// messages are what the arguments of a call say that are an event's name: directly, by a constant, by a parameter whose values are
// the callers', or by a variable, whose values are the literals of its function.
func (s source) messages(in *ast.FuncDecl, call *ast.CallExpr, consider func(ast.Expr) bool) ([]string, error) {
	for _, argument := range call.Args {
		if !consider(argument) {
			continue
		}
		if text, ok := s.text(argument); ok && eventForm.MatchString(text) {
			return []string{text}, nil
		}
		if at := parameter(in, argument); at >= 0 {
			return s.given(in.Name.Name, at)
		}
	}
	return nil, fmt.Errorf("%s: a line with alarm=true whose message can't be read: a literal, a constant or a parameter is needed", in.Name.Name)
}

func (s source) text(e ast.Expr) (string, bool) {
	if name, ok := e.(*ast.Ident); ok {
		text, ok := s.constants[name.Name]
		return text, ok
	}
	return literal(e)
}

// parameter is the place of a string among the parameters of a function, or -1.
func parameter(in *ast.FuncDecl, e ast.Expr) int {
	name, ok := e.(*ast.Ident)
	if !ok {
		return -1
	}
	at := 0
	for _, field := range in.Type.Params.List {
		kind, _ := field.Type.(*ast.Ident)
		for _, p := range field.Names {
			if p.Name == name.Name && kind != nil && kind.Name == "string" {
				return at
			}
			at++
		}
	}
	return -1
}

// given are the values of a helper's parameter at all its callers.
func (s source) given(helper string, at int) (events []string, err error) {
	for _, file := range s.files {
		for _, declared := range file.Decls {
			in, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(in, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || called(call) != helper || at >= len(call.Args) {
					return true
				}
				asked := call.Args[at]
				if _, field := asked.(*ast.SelectorExpr); field {
					events = append(events, literals(in)...)
					return true
				}
				named, failed := s.messages(in, call, func(e ast.Expr) bool { return e == asked })
				if failed != nil {
					err = failed
				}
				events = append(events, named...)
				return true
			})
		}
	}
	return events, err
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// literals are all event names that a function has.
func literals(in *ast.FuncDecl) (events []string) {
	ast.Inspect(in, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if text, ok := literal(e); ok && eventForm.MatchString(text) {
				events = append(events, text)
			}
		}
		return true
	})
	return events
}

// The reader finds a line in every form that a line is written in, and refuses one that it can't read.
func TestAlarmLinesAreRead(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"literal":       {`func f() { log.ErrorContext(ctx, "a.literal", "alarm", true) }`, "[a.literal]"},
		"constant":      {`const event = "a.constant"; func f() { log.LogAttrs(ctx, level, event, slog.Bool("alarm", true)) }`, "[a.constant]"},
		"helper":        {`func (d *desk) tell(ctx C, event string, args ...any) { d.log(ctx, event, append(args, "alarm", true)...) }; func f() { d.tell(ctx, "a.helper") }; func g() { d.tell(ctx, "b.helper", "x", 1) }`, "[a.helper b.helper]"},
		"field":         {`func tell(event string) { log.Error(event, "alarm", true) }; func f() { for _, a := range []struct{ event string }{{"a.field"}, {"b.field"}} { tell(a.event) } }`, "[a.field b.field]"},
		"in a function": {`func f() { go run(func() { log.Error("a.closure", "alarm", true) }) }`, "[a.closure]"},
		"unreadable":    {`func f() { log.Error(name(), "alarm", true) }`, "error"},
		"declaration":   {`const key = "alarm"; func f() { log.Error("a.line", key, true) }`, "error"},
		"none":          {`func f() { log.Error("a.line", "error", err) }`, "[]"},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n"+c.source, 0)
		if err != nil {
			t.Fatal(err)
		}
		events, err := alarmEvents([]*ast.File{file})
		if got := fmt.Sprint(events); (err != nil) != (c.want == "error") || err == nil && got != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
	}
}

// StoreRefused counts what DynamoDB refuses of any function and table: a client that tells nobody would be a table that nobody hears of.
func TestEveryFunctionsClientTellsWhatIsRefused(t *testing.T) {
	clients := 0
	for folder, files := range packagesBelow(t, "../../functions") {
		if strings.HasPrefix(folder, "../../functions/cmd/") { // a person sees it
			continue
		}
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || types.ExprString(call.Fun) != "dynamodb.NewFromConfig" {
					return true
				}
				if clients++; len(call.Args) != 2 || !strings.HasPrefix(types.ExprString(call.Args[1]), "dynamo.LogRefused(") {
					t.Errorf("%s: %s", folder, types.ExprString(call))
				}
				return true
			})
		}
	}
	if clients < 4 {
		t.Errorf("only %d clients found", clients)
	}
}
