// Package emulator installs and runs the local stand-ins for AWS: dynoxide and DynamoDB Local for the store's tests,
// ministack for the whole stack; and it installs the other tools that the project pins.
//
// Everything lands in .local/tools of the checkout, one folder per tool and version. Nothing is installed globally.
package emulator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/localstack/progress"
)

// Tool is one pinned thing to install.
type Tool struct {
	// Name of the tool, also the start of its folder's name.
	Name string
	// Version that is installed; another version is another folder.
	Version string
	// Check returns a *MissingError where a prerequisite is missing. It changes nothing.
	Check func(ctx context.Context) error
	// Install fills the empty folder directory.
	Install func(ctx context.Context, directory string) error
}

// stamp is the file whose presence says that a tool's folder is complete.
const stamp = ".installed"

// Directory is where t is installed under root, the checkout.
func (t Tool) Directory(root string) string {
	return filepath.Join(root, ".local", "tools", t.Name+"-"+t.Version)
}

// Installed tells whether t is completely there.
func (t Tool) Installed(root string) bool {
	_, err := os.Stat(filepath.Join(t.Directory(root), stamp))
	return err == nil
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

// Install installs those of the tools that are not there, in parallel, and prints each with its time. It may run in
// several processes at once: one installs, the others wait for it. The error joins what failed; a *MissingError in it
// names a prerequisite.
func Install(ctx context.Context, root string, out *progress.Printer, tools ...Tool) error {
	var group errgroup.Group
	failed := make([]error, len(tools))
	for i, tool := range tools {
		if tool.Installed(root) {
			continue
		}
		group.Go(func() error {
			failed[i] = out.Step(fmt.Sprintf("install %s %s", tool.Name, tool.Version), func() error {
				return install(ctx, root, tool)
			})
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return errors.Join(failed...)
}

func install(ctx context.Context, root string, tool Tool) error {
	if err := tool.Check(ctx); err != nil {
		return fmt.Errorf("install %s: %w", tool.Name, err)
	}
	directory := tool.Directory(root)
	if err := os.MkdirAll(filepath.Dir(directory), 0o755); err != nil {
		return fmt.Errorf("install %s: %w", tool.Name, err)
	}
	unlock, err := lock(directory + ".lock")
	if err != nil {
		return fmt.Errorf("install %s: %w", tool.Name, err)
	}
	defer unlock()
	if tool.Installed(root) {
		return nil // by another process, while this one waited
	}
	if err := os.RemoveAll(directory); err != nil {
		return fmt.Errorf("install %s: remove what an interrupted install left: %w", tool.Name, err)
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("install %s: %w", tool.Name, err)
	}
	if err := tool.Install(ctx, directory); err != nil {
		return fmt.Errorf("install %s: %w", tool.Name, err)
	}
	return os.WriteFile(filepath.Join(directory, stamp), nil, 0o644)
}

// Run executes a command of an installation in directory. Its error carries the end of what the command printed.
func Run(ctx context.Context, directory string, environment []string, name string, arguments ...string) error {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = directory
	command.Env = append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, tail(string(output)))
	}
	return nil
}

const tailLines = 20

// tail is the last lines of a text: where tools put what went wrong.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// Root returns the checkout that holds the working directory: the nearest folder upwards that has both go.mod and
// localstack/. Tests run in their package's folder and find the tools this way.
func Root() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if isRoot(directory) {
			return directory, nil
		}
		parent := filepath.Dir(directory)
		if parent == directory {
			return "", fmt.Errorf("find the checkout: %w", fs.ErrNotExist)
		}
		directory = parent
	}
}

func isRoot(directory string) bool {
	for _, name := range []string{"go.mod", filepath.Join("localstack", "emulator")} {
		if _, err := os.Stat(filepath.Join(directory, name)); err != nil {
			return false
		}
	}
	return true
}

// npmHost is the host in the words of npm packages: "linux-x64".
func npmHost() string {
	architecture := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if architecture == "" {
		architecture = runtime.GOARCH
	}
	return runtime.GOOS + "-" + architecture
}
