package stack

import (
	"context"
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
		return emulator.Run(ctx, root, nil, filepath.Join(tool.Directory(root), "golangci-lint"), arguments...)
	})
}
