package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/localstackhost"
)

// lint checks the formatting, that each go.mod names what its module needs, and that the compose file is YAML; and it runs
// vet, staticcheck and, over the workflows, actionlint.
func (c *Check) lint(ctx context.Context) error {
	staticcheck := filepath.Join(emulator.StaticcheckTool().Directory(c.Root), "staticcheck")
	python := filepath.Join(emulator.MinistackTool().Directory(c.Root), "venv", "bin", "python")
	steps := []struct {
		name string
		work func() error
	}{
		{"gofmt", func() error { return c.formatted(ctx) }},
		{"go mod tidy", func() error { return c.tidy(ctx) }},
		{"go vet", func() error {
			return errors.Join(c.yielding(ctx, "go", slices.Concat([]string{"vet"}, everything())...), c.yielding(ctx, "go", slices.Concat([]string{"vet"}, proved)...))
		}},
		{"go vet, modules by themselves", func() error {
			var failed []error
			for _, module := range outsideModules {
				failed = append(failed, emulator.Run(ctx, filepath.Join(c.Root, module), []string{"GOWORK=off"}, "go", "vet", "./..."))
			}
			return errors.Join(failed...)
		}},
		{"staticcheck", func() error {
			return errors.Join(c.yielding(ctx, staticcheck, everything()...), c.yielding(ctx, staticcheck, proved...))
		}},
		{"actionlint", func() error {
			return emulator.Run(ctx, c.Root, nil, filepath.Join(emulator.ActionlintTool().Directory(c.Root), "actionlint"))
		}},
		{"compose file", func() error {
			return emulator.Run(ctx, c.Root, nil, python, "-c", composeCheck, "localstack/compose.yaml", localstackhost.Version)
		}},
	}
	var failed []error
	for _, step := range steps {
		failed = append(failed, c.Out.Step(step.name, step.work))
	}
	return errors.Join(failed...)
}

// everything is what vet and staticcheck look at, and proved what only the build has whose rules have switches. With that tag on
// everything, each package of the library and all that import it would be compiled once more, for the linters alone: without it
// they take what the tests compile.
func everything() []string { return append([]string{"-tags", "e2e,browser"}, packages(modules...)...) }

var proved = []string{"-tags", "prove", "./idem/protocol/...", "./idem/sim"}

// yielding runs a command of the checkout behind the stacks.
func (c *Check) yielding(ctx context.Context, name string, arguments ...string) error {
	name, arguments = behind(name, arguments...)
	return emulator.Run(ctx, c.Root, calm, name, arguments...)
}

// composeCheck holds the compose file against what the stack expects of it: the version, and an address of this machine.
const composeCheck = `
import sys, yaml
service = yaml.safe_load(open(sys.argv[1]))["services"]["localstack"]
assert service["image"].endswith(":" + sys.argv[2]), service["image"]
assert service["environment"]["GATEWAY_LISTEN"].startswith("127.0.0.1:"), service["environment"]
`

// tidy fails with what `go mod tidy` would change. Each module is looked at without go.work, as those who require it do.
func (c *Check) tidy(ctx context.Context) error {
	var failed []error
	for _, module := range append(slices.Clone(modules), outsideModules...) {
		err := emulator.Run(ctx, filepath.Join(c.Root, module), []string{"GOWORK=off"}, "go", "mod", "tidy", "-diff")
		if err != nil {
			failed = append(failed, fmt.Errorf("module %s: %w", module, err))
		}
	}
	return errors.Join(failed...)
}

// formatted fails with the names of files that gofmt would change.
func (c *Check) formatted(ctx context.Context) error {
	var files []string
	err := filepath.WalkDir(c.Root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{".git", ".local", "node_modules"}, entry.Name()) {
			return fs.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".go" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, "gofmt", append([]string{"-l"}, files...)...).CombinedOutput()
	if err != nil || len(output) > 0 {
		return fmt.Errorf("gofmt would change:\n%s", output)
	}
	return nil
}
