// Package localtool finds the tools that `make tools` installed into .local/tools of this checkout, and starts the
// emulators of AWS among them for tests. Package localstack/emulator installs them.
package localtool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Tool is a program with a pinned version. Each version has a folder of its own.
type Tool struct {
	Name, Version string
	// Holds are paths below the tool's folder, with slashes, that it can't work without. A link counts for what it leads to, which may be
	// outside of the folder, and be gone where the folder was kept: the interpreter of a virtual environment in a cache's copy.
	Holds []string
}

// EnvironmentPython is what a virtual environment holds: a link to an interpreter that is outside of it.
const EnvironmentPython = "venv/bin/python"

// The tools that tests of the library and of the CDK app use.
var (
	DynoxideTool      = Tool{Name: Dynoxide, Version: "1.2.1", Holds: []string{"node_modules/@dynoxide/" + NPMHost() + "/dynoxide"}}
	DynamoDBLocalTool = Tool{Name: DynamoDBLocal, Version: "2.5.2", Holds: []string{"lib"}}
	MinistackTool     = Tool{Name: Ministack, Version: "1.5.33", Holds: []string{EnvironmentPython}}
	TypeScriptTool    = Tool{Name: "typescript", Version: "7.0.2", Holds: []string{"node_modules/typescript/bin/tsc"}}
	PythonClientTool  = Tool{Name: "python-client", Version: "httpx0.28.1-mypy2.4.1", Holds: []string{EnvironmentPython, "wheels"}}
	CfnLintTool       = Tool{Name: "cfn-lint", Version: "1.58.0", Holds: []string{EnvironmentPython}}
	SAMTranslatorTool = Tool{Name: "aws-sam-translator", Version: "1.115.0", Holds: []string{EnvironmentPython}}
	CDKNagTool        = Tool{Name: "cdk-nag", Version: "3.0.2", Holds: []string{"node_modules/cdk-nag"}}
	AxeTool           = Tool{Name: "axe-core", Version: "4.14.1", Holds: []string{"node_modules/axe-core/axe.min.js"}}
)

// stamp is the file whose presence says that the installation of a tool was complete.
const stamp = ".installed"

// Directory is where t is installed under root, the checkout.
func (t Tool) Directory(root string) string {
	return filepath.Join(root, ".local", "tools", t.Name+"-"+t.Version)
}

// Installed tells whether t is completely there: it was, and what it holds still is.
func (t Tool) Installed(root string) bool {
	_, err := os.Stat(filepath.Join(t.Directory(root), stamp))
	return err == nil && t.complete(root) == nil
}

// Stamp says that t is completely there. The error names what it should hold and does not.
func (t Tool) Stamp(root string) error {
	if err := t.complete(root); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.Directory(root), stamp), nil, 0o644)
}

func (t Tool) complete(root string) error {
	for _, path := range t.Holds {
		if _, err := os.Stat(filepath.Join(t.Directory(root), filepath.FromSlash(path))); err != nil {
			return fmt.Errorf("%s %s is not complete: %w", t.Name, t.Version, err)
		}
	}
	return nil
}

// NotInstalledError says that a tool is to be installed first.
type NotInstalledError struct {
	// Tool that is missing.
	Tool Tool
}

// Error names the tool and the command that installs it.
func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("%s %s is not installed: run `make tools`", e.Tool.Name, e.Tool.Version)
}

// Require returns a *NotInstalledError where t is not installed.
func (t Tool) Require(root string) error {
	if !t.Installed(root) {
		return &NotInstalledError{Tool: t}
	}
	return nil
}

// Find returns the folder of t in the checkout that holds the working directory. Its errors are ErrNoCheckout and
// *NotInstalledError.
func (t Tool) Find() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	return t.Directory(root), t.Require(root)
}

// Excuses tells whether a test may be skipped for an error: a tool of this checkout is not installed, and CI=true does not ask
// for every test. Plain `go test ./...` then passes in a fresh clone.
func Excuses(err error) bool {
	var missing *NotInstalledError
	return os.Getenv("CI") != "true" && errors.As(err, &missing)
}

// ErrNoCheckout says that the working directory is not in a checkout of this project.
var ErrNoCheckout = errors.New("not in a checkout of idem-aws")

// Root returns the checkout that holds the working directory: the nearest folder upwards that has both go.work and
// localstack/. Tests run in their package's folder and find the tools this way. Outside of one it returns ErrNoCheckout.
func Root() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for !isRoot(directory) {
		parent := filepath.Dir(directory)
		if parent == directory {
			return "", ErrNoCheckout
		}
		directory = parent
	}
	return directory, nil
}

func isRoot(directory string) bool {
	for _, name := range []string{"go.work", filepath.Join("localstack", "go.mod")} {
		if _, err := os.Stat(filepath.Join(directory, name)); errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// NPMHost is the host in the words of npm packages: "linux-x64".
func NPMHost() string {
	architecture := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if architecture == "" {
		architecture = runtime.GOARCH
	}
	return runtime.GOOS + "-" + architecture
}
