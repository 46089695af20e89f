package stack

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// LintAll runs the linters of .golangci.yml over the modules that go.work joins. It installs them where they are missing.
func LintAll(ctx context.Context, root string, out *progress.Printer) error {
	tool := emulator.GolangciLintTool()
	if err := emulator.Install(ctx, root, out, tool); err != nil {
		return err
	}
	arguments := append([]string{"run", "--show-stats=false"}, packages(modules...)...)
	return out.Step("golangci-lint", func() error {
		command := exec.CommandContext(ctx, filepath.Join(tool.Directory(root), "golangci-lint"), arguments...)
		command.Dir = root
		if findings, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("golangci-lint: %w\n%s", err, findings) // all of them, however many
		}
		return nil
	})
}
