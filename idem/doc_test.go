package idem_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// besideTheLibrary lists the packages of this repository's other modules that applications import.
var besideTheLibrary = []string{"idem/telemetry/otelidem", "infra/idemconstruct", "infra/spec"}

// published are the folders of the other modules that a release has, but for otelidem, which is one package.
var published = []string{"functions", "infra", "localstack"}

// ownUse is what the first paragraph of a package says that can be imported and is not meant to be.
const ownUse = "belongs to this repository's %s and has no compatibility promise"

// exampleNotRun lists the packages whose Examples are compiled and not run, with the reason. An entry whose package has
// an Example with a checked output fails the test.
var exampleNotRun = map[string]string{
	"idem/dynamo/dynamotest":           needsT,
	"idem/dynamo/dynamotest/wirefault": needsT,
	"idem/storetest":                   needsT,
	"idem/storetest/sequences":         needsT,
	"idem/operator/auditlog":           "it needs a DynamoDB table",
	"idem/quota/dynamoquota":           "it needs a DynamoDB table",
	"idem/seal/tablekeys":              "it needs a DynamoDB table",
	"idem/seal/awskms":                 "it needs a KMS key",
	"idem/lambdaapp":                   "it needs a deployment's variables and tables, and Lambda's runtime",
	"infra/idemconstruct":              "the CDK starts Node",
}

const needsT = "its functions take the *testing.T of a test, which an Example has not"

// withoutExample lists the packages that have nothing to show in an Example, with the reason. An entry whose package
// has an Example fails the test.
var withoutExample = map[string]string{
	"idem/protocol/check": "it is empty without the build tag prove, and is run by a command",
	"idem/sim":            "its stories are run by its own tests",
}

func TestPublicPackagesAreDocumentedForTheirReaders(t *testing.T) {
	packages := documentedPackages()
	for _, dir := range packages {
		p := parsePackage(t, filepath.Join("..", filepath.FromSlash(dir)))
		problems := slices.Concat(packageProblems(p), nameProblems(p), fieldProblems(p),
			exampleProblems(p, exampleNotRun[dir], withoutExample[dir]))
		for _, problem := range problems {
			t.Errorf("%s: %s", dir, problem)
		}
	}
	for _, exceptions := range []map[string]string{exampleNotRun, withoutExample} {
		for dir := range exceptions {
			if !slices.Contains(packages, dir) {
				t.Errorf("%s is excepted, and is no public package", dir)
			}
		}
	}
}

// Every package of a published module that can be imported is for adopters, and documented for them, or says in its first
// paragraph whose it is.
func TestPublicPackagesSayWhomTheyAreFor(t *testing.T) {
	found := 0
	for _, module := range published {
		for _, dir := range importable(t, module) {
			found++
			if problem := audienceProblem(parsePackage(t, filepath.Join("..", dir)), slices.Contains(besideTheLibrary, dir)); problem != "" {
				t.Errorf("%s: %s", dir, problem)
			}
		}
	}
	for dir := range mayImport {
		if !strings.Contains(dir, "/internal/") && !strings.Contains(dir, "/cmd/") {
			if problem := audienceProblem(parsePackage(t, filepath.Join("..", dir)), true); problem != "" {
				t.Errorf("%s: %s", dir, problem)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d packages", found)
	}
}

// importable lists the packages of a module that another module can import: no command, nothing internal, no test data.
func importable(t *testing.T, module string) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(filepath.Join("..", module), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if base := entry.Name(); base == "internal" || base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") && base != ".." {
			return fs.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(name, "*.go"))
		if err != nil || !slices.ContainsFunc(files, isLibrary) {
			return err
		}
		dir, err := filepath.Rel("..", name)
		dirs = append(dirs, filepath.ToSlash(dir))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// isLibrary tells whether a file is of a package that can be imported.
func isLibrary(file string) bool {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
	return err == nil && !strings.HasSuffix(file, "_test.go") && parsed.Name.Name != "main"
}

// documentedPackages lists what pkg.go.dev shows to users of the library: every package that is neither internal nor a
// command.
func documentedPackages() []string {
	packages := slices.Clone(besideTheLibrary)
	for dir := range mayImport {
		if !strings.Contains(dir, "/internal/") && !strings.Contains(dir, "/cmd/") {
			packages = append(packages, dir)
		}
	}
	slices.Sort(packages)
	return packages
}
