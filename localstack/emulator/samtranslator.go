package emulator

import (
	"bytes"
	"context"
	_ "embed" // requirements and program
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/idem-go/idem-aws/internal/localtool"
)

//go:embed sam-translator-requirements.txt
var samTranslatorRequirements []byte

//go:embed samtranslator.py
var samTranslatorProgram string

// samTranslatorPythonMinor is what its locked dependencies ask for: Python 3.10 or newer.
const samTranslatorPythonMinor = 10

// SAMTranslatorTool is AWS's own transform of SAM templates, aws-sam-translator, in a virtual environment. It is locked as
// schemathesis is.
func SAMTranslatorTool() Tool {
	return Tool{
		Tool: localtool.SAMTranslatorTool,
		Check: func(ctx context.Context) error {
			_, err := Python(ctx, samTranslatorPythonMinor)
			return err
		},
		Install: func(ctx context.Context, directory string) error {
			return hashedEnvironment(ctx, directory, samTranslatorPythonMinor, samTranslatorRequirements)
		},
	}
}

// TransformSAM returns the CloudFormation template that AWS makes of a SAM template in a Region. Parameters stay parameters. Code
// must be in S3 already, as it is after `sam deploy` has uploaded it. The error is a *localtool.NotInstalledError, or has what the
// translator refuses.
func TransformSAM(ctx context.Context, region string, template map[string]any) (map[string]any, error) {
	tool, err := localtool.SAMTranslatorTool.Find()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, filepath.Join(tool, "venv", "bin", "python"), "-c", samTranslatorProgram)
	command.Env = append(os.Environ(), "AWS_DEFAULT_REGION="+region)
	command.Stdin = bytes.NewReader(text)
	var refused bytes.Buffer
	command.Stderr = &refused
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("aws-sam-translator: %w: %s", err, refused.Bytes())
	}
	var made map[string]any
	if err := json.Unmarshal(out, &made); err != nil {
		return nil, fmt.Errorf("aws-sam-translator: %w: %.200s", err, out)
	}
	return made, nil
}
