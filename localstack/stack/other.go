package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Other is another CDK app's stack on the emulator of a local stack that is up.
type Other struct {
	// Name of the CloudFormation stack.
	Name string
	// App is the program that synthesizes it.
	App string
	// Environment is for App, beside what a local command has: "NAME=value".
	Environment []string
}

// DeployOther deploys another stack beside the payments stack, and returns its outputs.
func (s *Stack) DeployOther(ctx context.Context, other Other) (map[string]string, error) {
	file := s.path(other.Name + ".outputs.json")
	// The outputs of an earlier deployment must not be taken for this one's.
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err := s.other(ctx, other, "deploy", "--require-approval", "never", "--method", "direct", "--progress", "events", "--outputs-file", file)
	if err != nil {
		return nil, err
	}
	return readOutputs(file, other.Name)
}

// DestroyOther deletes it.
func (s *Stack) DestroyOther(ctx context.Context, other Other) error {
	return s.other(ctx, other, "destroy", "--force")
}

func (s *Stack) other(ctx context.Context, other Other, command string, arguments ...string) error {
	running, alive, err := readDaemon(s.options.State, daemonEmulator)
	switch {
	case err != nil:
		return err
	case !alive:
		return fmt.Errorf("%s %s: the emulator of %s does not run", command, other.Name, s.options.State)
	}
	environment, err := LocalEnvironment(append(os.Environ(), other.Environment...), running.URL())
	if err != nil {
		return err
	}
	all := append([]string{command, other.Name, "--app", other.App, "--output", s.path("cdk.out." + other.Name)}, arguments...)
	return s.cdk(ctx, environment, command+"."+other.Name, all...)
}

// LocalAPI is where the emulator at the endpoint serves the API Gateway whose URL a stack's output has.
func LocalAPI(endpoint, url string) (string, error) { return localAPI(endpoint, url) }
