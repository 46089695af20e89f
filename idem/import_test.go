package idem_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/idem-go/idem-aws/"

// mayImport lists, for each package of the library, what of this module it may import (docs/design.md "Who may import
// whom"). A package that is not listed fails the test, so that its place is decided and not drifted into.
var mayImport = map[string][]string{
	"idem":                          {"idem/canonical", "idem/header", "idem/internal/cutover", "idem/internal/flight", "idem/internal/front", "idem/internal/principal", "idem/internal/timers", "idem/internal/translation", "idem/protocol", "idem/storage", "idem/telemetry/trace"},
	"idem/canonical":                {},
	"idem/storage":                  {"idem/canonical", "idem/protocol", "idem/telemetry/trace"},
	"idem/protocol":                 {},
	"idem/guard":                    {"idem", "idem/internal/lastlook"},
	"idem/protocol/check":           {"idem/protocol"},
	"idem/protocol/check/cmd/prove": {"idem/protocol/check"},
	"idem/header":                   {},
	"idem/sdkhttp":                  {"idem/internal/bodies"},
	"idem/codec":                    {},
	"idem/conform":                  {"idem", "idem/header"},
	"idem/dynamo":                   {"idem", "idem/canonical", "idem/codec", "idem/dynamo/schema", "idem/internal/bodies", "idem/storage", "idem/telemetry/metric", "idem/telemetry/trace", "internal/clock"},
	"idem/dynamo/schema":            {},
	"idem/dynamo/dynamotest":        {"idem/dynamo/schema", "idem/sdkhttp", "internal/localtool"},
	"idem/telemetry":                {"idem", "idem/telemetry/metric", "idem/telemetry/trace"},
	"idem/telemetry/metric":         {},
	"idem/telemetry/trace":          {},
	"idem/memstore":                 {"idem/storage", "internal/clock"},
	"idem/storetest":                {"idem", "idem/canonical", "idem/outbox", "idem/storage", "idem/telemetry/trace"},
	"idem/storetest/faulty":         {"idem/outbox", "idem/storage"},
	"idem/storetest/sequences":      {"idem", "idem/canonical", "idem/outbox", "idem/outbox/memqueue", "idem/storage", "idem/storetest", "idem/storetest/faulty"},
	"idem/idemtest":                 {"idem", "idem/memstore", "idem/outbox", "idem/outbox/memqueue", "idem/storage", "idem/storetest/faulty"},
	"idem/middleware":               {"idem", "idem/canonical", "idem/header", "idem/internal/principal", "idem/storage", "idem/telemetry/trace", "internal/bounded"},
	"idem/middleware/audit":         {"idem", "idem/middleware"},
	"idem/middleware/cors":          {"idem", "idem/header"},
	"idem/awslambda":                {"idem/internal/front", "idem/telemetry/trace"},
	"idem/lambdaapp":                {"idem", "idem/awslambda", "idem/breaker", "idem/dynamo", "idem/dynamo/schema", "idem/lambdaapp/environment", "idem/outbox", "idem/outbox/sqsqueue", "idem/sdkhttp", "idem/storage", "idem/telemetry", "idem/telemetry/metric"},
	"idem/lambdaapp/environment":    {},
	"idem/lambdaapp/secret":         {"idem/lambdaapp/environment"},
	"idem/function":                 {"idem", "idem/canonical", "idem/header", "idem/storage", "idem/telemetry/trace"},
	"idem/function/jmespath":        {"idem/function"},
	"idem/breaker":                  {"idem", "idem/internal/timers", "idem/outbox", "idem/storage", "internal/clock"},
	"idem/quota":                    {"idem", "internal/clock"},
	"idem/quota/dynamoquota":        {"idem", "idem/dynamo/schema"},
	"idem/cache":                    {"idem", "idem/storage", "internal/clock"},
	"idem/client":                   {"idem", "idem/header", "idem/storage", "internal/bounded"},
	"idem/webhook":                  {"idem", "internal/bounded", "internal/clock"},
	"idem/seal":                     {"idem", "idem/codec", "idem/outbox", "idem/storage", "internal/clock"},
	"idem/seal/awskms":              {"idem"},
	"idem/seal/tablekeys":           {"idem", "idem/dynamo/schema", "idem/seal", "idem/storage"},
	"idem/internal/bodies":          {},
	"idem/internal/flight":          {},
	"idem/internal/front":           {},
	"idem/internal/principal":       {},
	"idem/internal/lastlook":        {},
	"idem/internal/timers":          {},
	"idem/internal/cutover":         {"idem/internal/flight", "internal/clock"},
	"idem/outbox":                   {"idem", "idem/header", "idem/internal/cutover", "idem/internal/front", "idem/internal/timers", "idem/internal/translation", "idem/protocol", "idem/storage", "idem/telemetry/trace"},
	"idem/internal/translation":     {"idem/protocol", "idem/storage"},
	"idem/outbox/call":              {"idem", "idem/internal/lastlook", "idem/outbox", "idem/telemetry/trace", "internal/bounded", "internal/clock"},
	"idem/outbox/sqsqueue":          {"idem", "idem/outbox"},
	"idem/outbox/memqueue":          {"idem", "idem/outbox"},
	"idem/container":                {"idem", "idem/outbox"},
	"idem/operator":                 {"idem", "idem/outbox", "idem/storage"},
	"idem/operator/auditlog":        {"idem", "idem/dynamo/schema", "idem/operator"},
	"idem/operator/memlog":          {"idem/operator"},
	"idem/operator/console":         {"idem", "idem/operator", "idem/outbox", "idem/storage"},
	"idem/operator/awsctl":          {"idem", "idem/dynamo", "idem/dynamo/schema", "idem/internal/timers", "idem/lambdaapp", "idem/lambdaapp/environment", "idem/operator", "idem/operator/auditlog", "idem/operator/console", "idem/operator/idemctl", "idem/outbox", "idem/outbox/sqsqueue", "idem/seal", "idem/seal/awskms", "idem/seal/tablekeys", "idem/storage"},
	"idem/operator/idemctl":         {"idem", "idem/conform", "idem/operator", "idem/operator/console", "idem/outbox", "idem/scaffold", "idem/storage", "internal/plaintext", "internal/shellvalue"},
	"idem/cmd/idemctl":              {"idem/operator/idemctl"},
	"idem/scaffold":                 {},

	"idem/dynamo/dynamotest/wirefault": {"idem/internal/timers", "idem/sdkhttp", "internal/refusal"},
	"idem/sim":                         {"idem", "idem/canonical", "idem/memstore", "idem/outbox", "idem/storage", "idem/storetest/faulty"},
}

// mayUseAWS lists the packages that may import AWS modules; the core and its logic stay free of them.
var mayUseAWS = []string{"idem/quota/dynamoquota", "idem/dynamo", "idem/dynamo/dynamotest", "idem/dynamo/dynamotest/wirefault", "idem/awslambda", "idem/lambdaapp", "idem/lambdaapp/secret", "idem/outbox/sqsqueue", "idem/operator/auditlog", "idem/operator/awsctl", "idem/sdkhttp", "idem/seal/awskms", "idem/seal/tablekeys"}

// testSupport lists the packages that only tests use.
var testSupport = []string{"idem/protocol/check", "idem/storetest", "idem/storetest/sequences", "idem/idemtest", "idem/sim", "idem/dynamo/dynamotest", "idem/dynamo/dynamotest/wirefault"}

// standsInForTime lists the packages that take the place of a part of package time, and need its clock for that.
var standsInForTime = []string{"idem/internal/timers"}

// sources parses every file of the library that is not a test.
func sources(t *testing.T, visit func(pkg, path string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (ofAnotherModule(path) || entry.Name() == "testdata") { // as the go command does
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		visit(strings.TrimSuffix("idem/"+filepath.ToSlash(filepath.Dir(path)), "/."), path, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ofAnotherModule says that a folder is a module of its own: what it imports is no concern of the library's users.
func ofAnotherModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

func TestImportsFollowTheDesign(t *testing.T) {
	sources(t, func(pkg, path string, file *ast.File) {
		allowed, listed := mayImport[pkg]
		if !listed {
			t.Errorf("%s: package %s has no place in mayImport", path, pkg)
		}
		for _, spec := range file.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if own, ok := strings.CutPrefix(name, module); ok && !slices.Contains(allowed, own) {
				t.Errorf("%s imports %s, which %s may not", path, own, pkg)
			}
			if strings.HasPrefix(name, "github.com/aws/") && !slices.Contains(mayUseAWS, pkg) {
				t.Errorf("%s imports %s: %s stays free of AWS", path, name, pkg)
			}
		}
	})
}

// The library's module requires nothing of OpenTelemetry: whoever wants its spans takes the module that has them.
func TestLibraryRequiresNothingOfOpenTelemetry(t *testing.T) {
	requirements, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(requirements), "go.opentelemetry.io") {
		t.Errorf("go.mod requires OpenTelemetry:\n%s", requirements)
	}
}

// withoutAWS are packages whose users see no AWS module in their builds.
var withoutAWS = []string{".", "./storage", "./memstore", "./middleware", "./outbox", "./client", "./function", "./webhook", "./operator", "./operator/console", "./idemtest", "./storetest/faulty", "./storetest/sequences"}

func TestUsersOfTheMemoryStoreSeeNoAWSModule(t *testing.T) {
	arguments := append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}, withoutAWS...)
	output, err := exec.CommandContext(t.Context(), "go", arguments...).Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := slices.Compact(slices.Sorted(strings.FieldsSeq(string(output))))
	if !slices.Contains(modules, strings.TrimSuffix(module, "/")) {
		t.Fatalf("the list lacks this module: %v", modules)
	}
	for _, name := range modules {
		if strings.HasPrefix(name, "github.com/aws/") {
			t.Errorf("one of %v pulls in %s", withoutAWS, name)
		}
	}
}

// What an application meets stays small enough to be read: everything that only a store needs is in package storage.
func TestPackageIdemExportsAtMostAHundredNames(t *testing.T) {
	count := 0
	sources(t, func(pkg, _ string, file *ast.File) {
		if pkg != "idem" {
			return
		}
		for name, object := range file.Scope.Objects {
			if ast.IsExported(name) && object.Kind != ast.Bad {
				count++
			}
		}
	})
	if count == 0 || count > 100 {
		t.Errorf("package idem exports %d names, at most 100 are wanted", count)
	}
}

// Clocks and randomness are injected, so that time and chance are the test's. time.Now without a call is how a default
// is given.
func TestLibraryHasNoClockAndNoRandomnessOfItsOwn(t *testing.T) {
	forbidden := map[string][]string{"time": {"Now", "Sleep", "After", "Tick"}, "rand": nil}
	sources(t, func(pkg, path string, file *ast.File) {
		if slices.Contains(testSupport, pkg) || slices.Contains(standsInForTime, pkg) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := selector.X.(*ast.Ident)
			if !ok {
				return true
			}
			if names, is := forbidden[pkg.Name]; is && (names == nil || slices.Contains(names, selector.Sel.Name)) {
				t.Errorf("%s calls %s.%s", path, pkg.Name, selector.Sel.Name)
			}
			return true
		})
	})
}
