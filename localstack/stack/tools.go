package stack

import (
	"context"
	"errors"

	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/localstackhost"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// InstallTools installs every pinned tool. What needs Java, Maven or a newer Python than ministack is optional: where they
// are missing, one line says what is left out. Anything else that is missing is an error that names it.
func InstallTools(ctx context.Context, root string, out *progress.Printer) error {
	tools, err := requiredTools(root)
	if err != nil {
		return err
	}
	for _, optional := range optionalTools() {
		missing := missingFor(ctx, root, optional)
		if missing != nil {
			out.Line("           %s %s left out: %v", optional.Name, optional.Version, missing)
			continue
		}
		tools = append(tools, optional)
	}
	if err := emulator.Install(ctx, root, out, tools...); err != nil {
		return err
	}
	for _, tool := range tools {
		out.Line("           %s %s", tool.Name, tool.Version)
	}
	return nil
}

func requiredTools(root string) ([]emulator.Tool, error) {
	cdk, err := emulator.CDKTool(root)
	return []emulator.Tool{
		emulator.DynoxideTool(), emulator.MinistackTool(), cdk, emulator.StaticcheckTool(), emulator.ActionlintTool(), emulator.TypeScriptTool(),
		emulator.PythonClientTool(), emulator.CfnLintTool(), emulator.CDKNagTool(), emulator.SAMTranslatorTool(), emulator.AxeTool(),
	}, err
}

func optionalTools() []emulator.Tool {
	return []emulator.Tool{emulator.DynamoDBLocalTool(), emulator.SchemathesisTool(), emulator.MkDocsTool(), localstackhost.Tool()}
}

// InstallCDK installs the CDK's command line where it is missing, and returns its path.
func InstallCDK(ctx context.Context, root string, out *progress.Printer) (string, error) {
	cdk, err := emulator.CDKTool(root)
	if err != nil {
		return "", err
	}
	if err := emulator.Install(ctx, root, out, cdk); err != nil {
		return "", err
	}
	return emulator.CDKProgram(root)
}

// missingFor is the prerequisite that an optional tool lacks, or nil.
func missingFor(ctx context.Context, root string, tool emulator.Tool) error {
	if tool.Installed(root) {
		return nil
	}
	var missing *emulator.MissingError
	if err := tool.Check(ctx); errors.As(err, &missing) {
		return missing
	}
	return nil
}
