package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/internal/stageplan"
	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// awsExternal is the world as it is.
func awsExternal(root string, out *progress.Printer) external {
	return external{
		environment: os.Environ(),
		plan: func(ctx context.Context, path string) (stageplan.Plan, error) {
			if err := out.Step("build CDK app", func() error { return buildInfra(ctx, root) }); err != nil {
				return stageplan.Plan{}, err
			}
			return readPlan(ctx, buildDirectory(root, "infra"), path)
		},
		identify: identify,
		install: func(ctx context.Context) error {
			_, err := InstallCDK(ctx, root, out)
			return err
		},
		build: func(ctx context.Context, architecture string) error {
			return out.Step("build functions for "+architecture, func() error { return BuildFunctions(ctx, root, architecture) })
		},
		cdk: func(ctx context.Context, environment []string, arguments ...string) error {
			program, err := emulator.CDKProgram(root)
			if err != nil {
				return err
			}
			child := exec.CommandContext(ctx, program, arguments...)
			child.Dir, child.Env = filepath.Join(root, "infra"), slices.Concat(environment, quietNode)
			child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
			return child.Run()
		},
	}
}

// readPlan has the CDK app check a stage's file: it alone knows every context and its rule, and this command does not link
// the CDK.
func readPlan(ctx context.Context, app, path string) (stageplan.Plan, error) {
	var plan stageplan.Plan
	var said bytes.Buffer
	child := exec.CommandContext(ctx, app, "stage", path)
	child.Stderr = &said
	answer, err := child.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return plan, errors.New(strings.TrimSpace(said.String()))
	}
	if err != nil {
		return plan, err
	}
	if err := json.Unmarshal(answer, &plan); err != nil {
		return plan, fmt.Errorf("the CDK app's answer about %s: %w", path, err)
	}
	return plan, nil
}
