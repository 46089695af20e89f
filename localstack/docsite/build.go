package docsite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
)

// Build builds the site of the checkout at root into the folder out, turns links to files that are not in the site into links
// to GitHub, and checks all links. The tool must be installed (emulator.MkDocsTool). The error lists everything that is wrong:
// what MkDocs warns of, and what [Check] finds.
func Build(ctx context.Context, root, out string) error {
	tool := emulator.MkDocsTool()
	if err := tool.Require(root); err != nil {
		return err
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	directory := tool.Directory(root)
	// Never with --quiet: MkDocs then counts no warnings, and --strict finds nothing.
	command := exec.CommandContext(ctx, filepath.Join(directory, "venv", "bin", "mkdocs"), "build", "--strict", "--clean", "--site-dir", out)
	command.Dir = root
	command.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "localstack", "docsite", "markdown"), "NO_MKDOCS_2_WARNING=1", "PYTHONDONTWRITEBYTECODE=1")
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("mkdocs: %w\n%s", err, warnings(string(said)))
	}
	if err := copyFile(filepath.Join(directory, "mermaid.min.js"), filepath.Join(out, "assets", "mermaid.min.js")); err != nil {
		return err
	}
	return errors.Join(toGitHub(root, out), Check(out))
}

// warnings are the lines of MkDocs's output that say what is wrong; all of it, where none does.
func warnings(said string) string {
	var wrong []string
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "INFO") {
			wrong = append(wrong, strings.TrimSpace(line))
		}
	}
	if len(wrong) == 0 {
		return localtool.Tail(said)
	}
	return strings.Join(wrong, "\n")
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}
