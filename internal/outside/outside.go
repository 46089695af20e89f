// Package outside builds a module of the checkout as a team elsewhere would: from a folder outside of the checkout, without go.work,
// and from nothing but its own go.mod and the versions that are on this machine. Tests use it.
package outside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Module is a copy of a module.
type Module struct{ folder string }

// Copy copies a module of the checkout at root into folder, which must be empty, and has what it replaces by folders of the checkout
// replaced by their absolute paths.
func Copy(ctx context.Context, root, module, folder string) (*Module, error) {
	from := filepath.Join(root, module)
	if err := os.CopyFS(folder, os.DirFS(from)); err != nil {
		return nil, err
	}
	m := &Module{folder}
	said, err := m.run(ctx, nil, "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var file struct {
		Replace []struct{ Old, New struct{ Path string } }
	}
	if err := json.Unmarshal(said, &file); err != nil {
		return nil, fmt.Errorf("go.mod of %s: %w", module, err)
	}
	edit := []string{"mod", "edit"}
	for _, replaced := range file.Replace {
		if strings.HasPrefix(replaced.New.Path, ".") {
			edit = append(edit, "-replace="+replaced.Old.Path+"="+filepath.Join(from, replaced.New.Path))
		}
	}
	_, err = m.run(ctx, nil, edit...)
	return m, err
}

// At is a module that stands in folder already, with what it replaces by absolute paths.
func At(folder string) *Module { return &Module{folder} }

// Check vets all packages of the module, and runs their tests.
func (m *Module) Check(ctx context.Context) error {
	if _, err := m.run(ctx, nil, "vet", "./..."); err != nil {
		return err
	}
	said, err := m.run(ctx, nil, "test", "./...")
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// Build builds a package of the module into the file output.
func (m *Module) Build(ctx context.Context, pkg, output string, environment ...string) error {
	_, err := m.run(ctx, environment, "build", "-o", output, pkg)
	return err
}

// run is the go command in the copy.
func (m *Module) run(ctx context.Context, environment []string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = m.folder
	// Modules that the checkout's other modules require are there; any other would be a mistake of go.mod.
	command.Env = slices.Concat(os.Environ(), []string{"GOWORK=off", "GOPROXY=off", "GOFLAGS=-mod=mod -buildvcs=false"}, environment)
	out, err := command.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("go %s: %w: %s", strings.Join(arguments, " "), err, exit.Stderr)
	}
	return out, err
}
