package release

import (
	"path"
	"slices"
	"strings"
)

// Repository is the path of the root module. Every other module's path is below it.
const Repository = "github.com/idem-go/idem-aws"

// Module is a Go module of the checkout that is published.
type Module string

// Modules are the published modules as folders of the checkout, each after those that it requires. All of them have the same
// version. The others hold examples and benchmarks, and nobody imports them.
func Modules() []Module {
	return []Module{".", "idem/telemetry/otelidem", "localstack", "functions", "infra"}
}

// Path is what others import the module by.
func (m Module) Path() string { return path.Join(Repository, string(m)) }

// Tag is the Git tag of a version of the module, as the go command looks for it: functions/v0.1.0.
func (m Module) Tag(version string) string { return path.Join(string(m), version) }

// own tells whether a module path is one of this repository.
func own(modulePath string) bool {
	return modulePath == Repository || strings.HasPrefix(modulePath, Repository+"/")
}

// published tells whether a module path is one of [Modules].
func published(modulePath string) bool {
	return slices.ContainsFunc(Modules(), func(m Module) bool { return m.Path() == modulePath })
}
