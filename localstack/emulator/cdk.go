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

// CDKTool is the CDK command line that infra/package-lock.json pins. npm puts it into infra/node_modules; the folder in
// .local/tools only remembers that it did, under a hash of the lock file. The error says that the lock file is unreadable.
func CDKTool(root string) (Tool, error) {
	infra := filepath.Join(root, "infra")
	locked, err := os.ReadFile(filepath.Join(infra, "package-lock.json"))
	if err != nil {
		return Tool{}, fmt.Errorf("CDK command line: %w", err)
	}
	hash := sha256.Sum256(locked)
	return Tool{
		Tool: localtool.Tool{Name: "aws-cdk", Version: hex.EncodeToString(hash[:4])}, Check: RequireNode,
		Install: func(ctx context.Context, directory string) error {
			if err := Run(ctx, infra, nil, "npm", "ci", "--no-audit", "--no-fund"); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(infra, "node_modules", ".bin", "cdk"), filepath.Join(directory, "cdk"))
		},
	}, nil
}
