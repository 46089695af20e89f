package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/internal/stageplan"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// Stage is a stage in AWS, as infra/stages/<stage>.json describes it. Its commands use the caller's credentials.
type Stage struct {
	root     string
	out      *progress.Printer
	plan     stageplan.Plan
	external external
}

// external is what a stage needs from outside of this process. Tests replace it: nothing in it can run without AWS.
type external struct {
	// environment is this process's.
	environment []string
	// plan checks a stage's file.
	plan func(ctx context.Context, path string) (stageplan.Plan, error)
	// identify asks AWS in a Region whose the credentials are.
	identify func(ctx context.Context, region string) (caller, error)
	// install installs the CDK command line, and build builds the functions.
	install func(ctx context.Context) error
	build   func(ctx context.Context, architecture string) error
	// cdk runs the CDK command line in infra/.
	cdk func(ctx context.Context, environment []string, arguments ...string) error
}

// OpenStage reads the stage's file and compares it with the credentials. It refuses where an AWS_ENDPOINT_URL variable would
// send a part of a command elsewhere, where the file is refused, and where the credentials are of another account, partition
// or Region than the file names.
func OpenStage(ctx context.Context, root, name string, out *progress.Printer) (*Stage, error) {
	return openStage(ctx, root, name, out, awsExternal(root, out))
}

func openStage(ctx context.Context, root, name string, out *progress.Printer, external external) (*Stage, error) {
	if err := stageplan.CheckName(name); err != nil {
		return nil, err
	}
	if err := RefuseEndpoints(external.environment); err != nil {
		return nil, err
	}
	plan, err := external.plan(ctx, stageplan.File(root, name))
	if err != nil {
		return nil, err
	}
	who, err := external.identify(ctx, plan.Region)
	if err != nil {
		return nil, fmt.Errorf("stage %s: ask AWS in %s whose the credentials are: %w", name, plan.Region, err)
	}
	if err := who.check(plan); err != nil {
		return nil, err
	}
	out.Line("stage %s: account %s, %s, as %s", plan.Stage, plan.Account, plan.Region, who.arn)
	return &Stage{root: root, out: out, plan: plan, external: external}, nil
}

// Bootstrap prepares the stage's account and Region for CDK deployments, once. The bootstrap stack is protected from
// termination: without it nothing in the Region can be deployed.
func (s *Stage) Bootstrap(ctx context.Context) error {
	if err := s.external.install(ctx); err != nil {
		return err
	}
	return s.cdk(ctx, "bootstrap", "aws://"+s.plan.Account+"/"+s.plan.Region, "--termination-protection", "--app", "")
}

// Deploy builds the functions, deploys the stack and writes the stage's variables. The CDK asks before it widens permissions.
// Where it fails half-way it can be repeated: a deployment without a change writes the variables too.
func (s *Stage) Deploy(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	file := filepath.Join(s.root, ".local", s.plan.Stage+".outputs.json")
	// The outputs of an earlier deployment must not be taken for this one's.
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.cdk(ctx, "deploy", s.withContext("--outputs-file", file)...); err != nil {
		return err
	}
	result, err := readOutputs(file, s.plan.Stack)
	if err != nil {
		return err
	}
	return s.writeVariables(result)
}

// DeployNow deploys as Deploy does, and moves all calls at once (context deployment=now): for the release that ends an alarm which would
// end every deployment. It changes nothing else of the stage, and nothing is left in the file for the next deployment.
func (s *Stage) DeployNow(ctx context.Context) error {
	s.plan.Context = maps.Clone(s.plan.Context)
	s.plan.Context["deployment"] = "now"
	return s.Deploy(ctx)
}

// Diff shows what Deploy would change.
func (s *Stage) Diff(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	return s.cdk(ctx, "diff", s.withContext()...)
}

// Destroy removes the stack. It refuses while the file protects the stack from termination; while the stack as deployed is
// protected, CloudFormation refuses. What has RETAIN as its removal policy stays.
func (s *Stage) Destroy(ctx context.Context) error {
	if s.plan.Protected {
		return fmt.Errorf(`destroy: the stack %s is protected from termination. To remove it:
  1. in infra/stages/%s.json, add "terminationProtection": false to context; "production" must be false then. Do not deploy that:
     without "production" a stage has other defaults
  2. aws cloudformation update-termination-protection --no-enable-termination-protection --region %s --stack-name %s
  3. make destroy STAGE=%s
Tables, their KMS key, backups, logs and the dead-letter queue stay`, s.plan.Stack, s.plan.Stage, s.plan.Region, s.plan.Stack, s.plan.Stage)
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	return s.cdk(ctx, "destroy", s.withContext()...)
}

// prepare makes what the CDK app needs to be synthesized.
func (s *Stage) prepare(ctx context.Context) error {
	if err := s.external.install(ctx); err != nil {
		return err
	}
	return s.external.build(ctx, s.plan.Arch)
}

// withContext is the stack's name, the arguments and the whole context.
func (s *Stage) withContext(arguments ...string) []string {
	all := append([]string{s.plan.Stack}, arguments...)
	for _, name := range slices.Sorted(maps.Keys(s.plan.Context)) {
		all = append(all, "--context", name+"="+s.plan.Context[name])
	}
	return all
}

// cdk runs a command of the CDK's in the stage's Region.
func (s *Stage) cdk(ctx context.Context, command string, arguments ...string) error {
	all := append([]string{command}, arguments...)
	s.out.Line("cdk %s", strings.Join(all, " "))
	environment := slices.Concat(s.external.environment, []string{"AWS_REGION=" + s.plan.Region, "AWS_DEFAULT_REGION=" + s.plan.Region})
	if err := s.external.cdk(ctx, environment, all...); err != nil {
		return fmt.Errorf("cdk %s: %w", command, err)
	}
	return nil
}
