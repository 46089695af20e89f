package stack

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// What is left out where a program is missing must be a test that there is.
func TestEachTerminalProgramHasItsTest(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, "idem", "operator", "idemctl", "completion_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range terminalPrograms {
		if !strings.Contains(string(source), "func "+p.test+"(") {
			t.Errorf("%s: there is no %s", p.program, p.test)
		}
		if !regexp.MustCompile(inTerminal).MatchString(p.test) {
			t.Errorf("%s is not among %s", p.test, inTerminal)
		}
	}
}
