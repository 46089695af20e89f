package stack

import (
	"errors"
	"slices"
	"testing"
)

// The console works on the stack that it is started with, as somebody, and on nothing beyond this machine.
func TestConsoleSeesItsOwnStack(t *testing.T) {
	t.Setenv("IDEMCTL_ACTOR", "")
	t.Setenv("USER", "")
	inherited := []string{"HOME=/home/ada", "IDEMPOTENCY_TABLE=production", "AWS_PROFILE=production"}
	environment, err := consoleEnvironment(inherited, Variables{"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "IDEMPOTENCY_TABLE": "local"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HOME=/home/ada", "IDEMPOTENCY_TABLE=local", "AWS_ENDPOINT_URL=http://127.0.0.1:4566", "IDEMCTL_ACTOR=local"} {
		if !slices.Contains(environment, want) {
			t.Errorf("no %s in %q", want, environment)
		}
	}
	for _, other := range []string{"IDEMPOTENCY_TABLE=production", "AWS_PROFILE=production"} {
		if slices.Contains(environment, other) {
			t.Errorf("%s is in %q", other, environment)
		}
	}
	var beyond *NotLocalError
	if _, err := consoleEnvironment(nil, Variables{"AWS_ENDPOINT_URL": "https://dynamodb.eu-west-1.amazonaws.com"}); !errors.As(err, &beyond) {
		t.Errorf("%v", err)
	}
}
