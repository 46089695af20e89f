package stack

import (
	"path/filepath"
	"slices"
)

// infraModule is the CDK app, whose tests are a part of the check by themselves: they run Node.
const infraModule = "infra"

// modules are the folders of the Go modules, which go.work joins; "." is the library.
var modules = []string{".", "bench", "docs/examples", "functions", "idem/telemetry/otelidem", infraModule, "localstack"}

// collectorModule is a module that go.work does not join: its hundred dependencies would choose versions for the others.
const collectorModule = "localstack/collector"

// outsideModules are tidied and vetted by themselves: the collector, and the examples of stacks of a team's own, which are built as
// a module outside of the checkout would be.
var outsideModules = []string{collectorModule, "docs/examples/ownstack", "docs/examples/start/lambda"}

// unitModules are all but the CDK app.
func unitModules() []string {
	return slices.DeleteFunc(slices.Clone(modules), func(module string) bool { return module == infraModule })
}

// packages are the patterns of all packages of the modules, for a go command that runs in the checkout's folder: there
// "./..." alone is the library's.
func packages(modules ...string) []string {
	var patterns []string
	for _, module := range modules {
		patterns = append(patterns, "./"+filepath.Join(module, "..."))
	}
	return patterns
}
