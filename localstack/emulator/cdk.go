package emulator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// cdkManifests are the files of infra that pin the CDK command line.
var cdkManifests = []string{"package.json", "package-lock.json"}

// cdkProgram is the command line, below the tool's folder.
const cdkProgram = "node_modules/.bin/cdk"

// CDKTool is the CDK command line that infra/package-lock.json of the checkout at root pins. Its version is a hash of what pins it, so
// that a branch that pins another one has a folder of its own. The error says that a file is unreadable.
func CDKTool(root string) (Tool, error) {
	pinned, hash := map[string][]byte{}, sha256.New()
	for _, name := range cdkManifests {
		text, err := os.ReadFile(filepath.Join(root, "infra", name))
		if err != nil {
			return Tool{}, fmt.Errorf("CDK command line: %w", err)
		}
		pinned[name] = text
		fmt.Fprintf(hash, "%d ", len(text))
		hash.Write(text)
	}
	return Tool{
		Tool:  localtool.Tool{Name: "aws-cdk", Version: hex.EncodeToString(hash.Sum(nil)[:4]), Holds: []string{cdkProgram}},
		Check: RequireNode,
		Install: func(ctx context.Context, directory string) error {
			for name, text := range pinned {
				if err := os.WriteFile(filepath.Join(directory, name), text, 0o644); err != nil {
					return err
				}
			}
			return Run(ctx, directory, nil, "npm", "ci", "--no-audit", "--no-fund")
		},
	}, nil
}

// CDKProgram is the path of the CDK command line of the checkout at root. Install with CDKTool puts it there.
func CDKProgram(root string) (string, error) {
	tool, err := CDKTool(root)
	if err != nil {
		return "", err
	}
	return filepath.Join(tool.Directory(root), filepath.FromSlash(cdkProgram)), nil
}
