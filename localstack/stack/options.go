package stack

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/idem-go/idem-aws/localstack/progress"
)

// Emulator is what the stack is deployed to.
type Emulator string

// The emulators. LocalStack runs in Docker where a daemon answers and as a process of this machine elsewhere.
const (
	Ministack  Emulator = "ministack"
	LocalStack Emulator = "localstack"
)

// api and auth are the CDK contexts that the emulator can serve: LocalStack's community edition has neither HTTP APIs
// nor authorizers.
func (e Emulator) api() string {
	if e == LocalStack {
		return "rest"
	}
	return "http"
}

func (e Emulator) auth() string {
	if e == LocalStack {
		return "function"
	}
	return "gateway"
}

// How new messages reach the worker. A production stage has OutboxSQS by default, a team's own local stack OutboxStreams.
const (
	OutboxStreams = "streams"
	OutboxSQS     = "sqs"
)

// Origin is the one whose pages may call the API of a local stack.
const Origin = "https://shop.example"

// Options say which stack, and where. New fills in nothing: the command line has the defaults.
type Options struct {
	// Root is the checkout, an absolute path.
	Root string
	// State is the stack's folder.
	State string
	// EnvFile is where the variables for clients and tests are written.
	EnvFile string
	// Checkout is another checkout, whose functions and CDK app are deployed: an earlier release. Default: Root.
	Checkout string
	// Emulator to deploy to.
	Emulator Emulator
	// IAM has ministack deny what no policy of a role allows, as AWS does. The credentials of LocalEnvironment are the root user's.
	IAM bool
	// Port of the emulator on 127.0.0.1; 0 takes a free one.
	Port int
	// ProviderPort is the provider simulator's; 0 takes a free one.
	ProviderPort int
	// FaultProxy puts the fault proxy between the functions and DynamoDB, on a free port.
	FaultProxy bool
	// Traces starts an OpenTelemetry collector on a free port, and has the functions send it their traces.
	Traces bool
	// Encryption encrypts stored responses and payloads per tenant.
	Encryption bool
	// ProviderURL is a provider simulator that runs already: another stack's. Empty starts one of the stack's own.
	ProviderURL string
	// Contexts are more contexts of the CDK app's, which win over the stack's own.
	Contexts map[string]string
	// Outbox says how new messages reach the worker, as the CDK context of this name; empty is the context's default.
	Outbox string
}

// Stack is one local stack. Its methods are not safe for concurrent use with each other.
type Stack struct {
	options Options
	out     *progress.Printer
}

// New returns the stack that options describe, with its folders made. Nothing is started.
func New(options Options, out *progress.Printer) (*Stack, error) {
	for _, path := range []*string{&options.State, &options.EnvFile} {
		if !filepath.IsAbs(*path) {
			*path = filepath.Join(options.Root, *path)
		}
	}
	for _, directory := range []string{options.State, filepath.Dir(options.EnvFile)} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return nil, fmt.Errorf("stack: %w", err)
		}
	}
	return &Stack{options: options, out: out}, nil
}

func (s *Stack) path(names ...string) string {
	return filepath.Join(append([]string{s.options.State}, names...)...)
}

// buildDirectory is shared by all stacks of a checkout.
func buildDirectory(root string, names ...string) string {
	return filepath.Join(append([]string{root, ".local", "build"}, names...)...)
}

// program is the path of one of the project's own commands.
func (s *Stack) program(name string) string { return buildDirectory(s.options.Root, "bin", name) }

// infraProgram is the CDK app, where infra/cdk.json expects it.
func (s *Stack) infraProgram() string { return buildDirectory(s.checkout(), "infra") }

// checkout is where functions and CDK app are from.
func (s *Stack) checkout() string { return cmp.Or(s.options.Checkout, s.options.Root) }

// hostArchitecture is what functions are built for locally: emulators run them as processes of this machine.
const hostArchitecture = runtime.GOARCH
