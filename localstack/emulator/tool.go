// Package emulator installs the tools that the project pins: the emulators of AWS, which package localtool starts for tests
// and package stack for the whole stack, and the programs that check and build. The package belongs to this repository's
// tools and has no compatibility promise.
//
// Everything lands in .local/tools of the checkout, one folder per tool and version. Nothing is installed globally.
package emulator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// Tool is one pinned thing to install.
type Tool struct {
	localtool.Tool
	// Check returns a *MissingError where a prerequisite is missing. It changes nothing.
	Check func(ctx context.Context) error
	// Install fills the empty folder directory.
	Install func(ctx context.Context, directory string) error
}

// Install installs those of the tools that are not there, in parallel, and prints each with its time. It may run in
// several processes at once: one installs, the others say so and wait for it, until ctx ends. The error joins what failed; a *MissingError in it
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
				return install(ctx, root, out, tool)
			})
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// OpenDynamoDB starts an emulator of DynamoDB, which it installs where it is missing; see [localtool.Open].
func OpenDynamoDB(ctx context.Context, name string, out *progress.Printer) (*localtool.Endpoint, error) {
	root, err := localtool.Root()
	if err != nil {
		return nil, err
	}
	tool := DynoxideTool()
	if name == localtool.DynamoDBLocal {
		tool = DynamoDBLocalTool()
	}
	if err := Install(ctx, root, out, tool); err != nil {
		return nil, err
	}
	return localtool.Open(ctx, name)
}

func install(ctx context.Context, root string, out *progress.Printer, tool Tool) error {
	if err := tool.Check(ctx); err != nil {
		return fmt.Errorf("install %s: %w", tool.Name, err)
	}
	directory := tool.Directory(root)
	if err := os.MkdirAll(filepath.Dir(directory), 0o755); err != nil {
		return fmt.Errorf("install %s: %w", tool.Name, err)
	}
	unlock, err := lock(ctx, directory+".lock", func() { out.Line("      …   wait for another process to install %s %s", tool.Name, tool.Version) })
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
	return tool.Stamp(root)
}

// Run executes a command of an installation in directory. Its error carries the end of what the command printed.
func Run(ctx context.Context, directory string, environment []string, name string, arguments ...string) error {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = directory
	command.Env = append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, localtool.Tail(string(output)))
	}
	return nil
}
