package idem_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// besideTheLibrary lists the packages of this repository's other modules that applications import.
var besideTheLibrary = []string{"idem/telemetry/otelidem", "infra/idemconstruct"}

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
