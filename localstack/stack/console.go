package stack

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/localstack/emulator"
)

// Console serves the operator's console over the running stack until ctx ends, and prints its address. It admits changes: what
// it changes is an emulator's.
func (s *Stack) Console(ctx context.Context) error {
	variables, err := ReadVariables(s.options.EnvFile)
	if err != nil {
		return err
	}
	environment, err := consoleEnvironment(os.Environ(), variables)
	if err != nil {
		return err
	}
	binary := filepath.Join(s.options.Root, ".local", "build", "bin", "idemctl")
	if err := emulator.Run(ctx, s.options.Root, nil, "go", "build", "-o", binary, "./functions/cmd/idemctl"); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, binary, "console", "--write")
	command.Dir, command.Env, command.Stdout, command.Stderr = s.options.Root, environment, os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = childGrace
	return command.Run()
}

// consoleEnvironment is what the console sees: the stack's variables win over those of the environment, which may be another
// stack's.
func consoleEnvironment(inherited []string, variables Variables) ([]string, error) {
	environment, err := LocalEnvironment(inherited, variables[variableEndpoint])
	if err != nil {
		return nil, err
	}
	environment = slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		_, own := variables[name]
		return own
	})
	for name, value := range variables {
		environment = append(environment, name+"="+value)
	}
	return append(environment, "IDEMCTL_ACTOR="+cmp.Or(os.Getenv("IDEMCTL_ACTOR"), os.Getenv("USER"), "local")), nil
}
