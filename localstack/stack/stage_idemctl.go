package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/internal/stageplan"
)

// Idemctl runs the operator's command on a deployed stage, with the variables that Deploy wrote.
func Idemctl(ctx context.Context, root, stage string, arguments []string) error {
	command, err := idemctlCommand(ctx, root, stage, os.Environ(), arguments)
	if err != nil {
		return err
	}
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}

// idemctlCommand is the command to run. The stage's variables win over the environment's, which may still be the local
// stack's: idemctl itself takes from a file only what the environment does not have.
func idemctlCommand(ctx context.Context, root, stage string, environment, arguments []string) (*exec.Cmd, error) {
	if err := stageplan.CheckName(stage); err != nil {
		return nil, err
	}
	if err := RefuseEndpoints(environment); err != nil {
		return nil, err
	}
	file := stageFile(root, stage)
	variables, err := ReadVariables(file)
	if err != nil {
		return nil, err
	}
	if len(variables) == 0 {
		return nil, fmt.Errorf("there is no %s: make deploy STAGE=%s writes it", file, stage)
	}
	command := exec.CommandContext(ctx, "go", append([]string{"run", "./functions/cmd/idemctl", "--env-file", file}, arguments...)...)
	command.Dir = root
	command.Env = slices.DeleteFunc(slices.Clone(environment), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		_, ofStage := variables[name]
		return ofStage
	})
	return command, nil
}
