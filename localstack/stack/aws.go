package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// Target is a stack in AWS, in the account and Region of the caller's credentials.
type Target struct {
	// Root is the checkout.
	Root string
	// Name of the CloudFormation stack.
	Name string
	// Context are CDK context values: providerUrl, alarmTopic, api, auth, arch, …
	Context map[string]string
}

// defaultArchitecture is the functions' in AWS, as infra has it.
const defaultArchitecture = "arm64"

// Deploy builds the functions and deploys the CDK app to AWS. The account must have been bootstrapped for CDK. It refuses
// to run where an AWS_ENDPOINT_URL variable would send a part of it elsewhere. The CDK asks before it widens permissions.
func Deploy(ctx context.Context, out *progress.Printer, target Target) error {
	if target.Context["providerUrl"] == "" {
		return fmt.Errorf("deploy: name the payment provider, as PROVIDER_URL=https://provider.example")
	}
	if target.Context["alarmTopic"] == "" {
		return fmt.Errorf("deploy: say where alarms go, as ALARM_TOPIC=arn:aws:sns:…, or ALARM_TOPIC=none to have them only show")
	}
	architecture := target.Context["arch"]
	if architecture == "" {
		architecture = defaultArchitecture
	}
	return target.run(ctx, out, architecture, "deploy")
}

// Destroy removes the stack from AWS. What has RETAIN as its removal policy stays.
func Destroy(ctx context.Context, out *progress.Printer, target Target) error {
	if target.Context["providerUrl"] == "" {
		target.Context["providerUrl"] = "https://provider.invalid" // the app does not synthesize without one
	}
	if target.Context["alarmTopic"] == "" {
		target.Context["alarmTopic"] = "none" // nor without this
	}
	return target.run(ctx, out, defaultArchitecture, "destroy")
}

func (t Target) run(ctx context.Context, out *progress.Printer, architecture, command string) error {
	if err := RefuseEndpoints(os.Environ()); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	cdk, err := emulator.CDKTool(t.Root)
	if err != nil {
		return err
	}
	if err := emulator.Install(ctx, t.Root, out, cdk); err != nil {
		return err
	}
	err = out.Step("build functions for "+architecture, func() error { return BuildFunctions(ctx, t.Root, architecture) })
	if err != nil {
		return err
	}
	if err := out.Step("build CDK app", func() error { return buildInfra(ctx, t.Root) }); err != nil {
		return err
	}
	infra := filepath.Join(t.Root, "infra")
	arguments := []string{command, t.Name, "--context", "stack=" + t.Name}
	for name, value := range t.Context {
		arguments = append(arguments, "--context", name+"="+value)
	}
	out.Line("cdk %s", strings.Join(arguments, " "))
	child := exec.CommandContext(ctx, filepath.Join(infra, "node_modules", ".bin", "cdk"), arguments...)
	child.Dir = infra
	child.Env = slices.Concat(os.Environ(), quietNode)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := child.Run(); err != nil {
		return fmt.Errorf("cdk %s: %w", command, err)
	}
	return nil
}
