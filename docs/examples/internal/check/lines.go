// Package check is what the tests of the examples have in common.
package check

import (
	"os"
	"strings"
	"testing"
)

// Lines counts the lines between the markers "// idem: begin" and "// idem: end" of a file, imports included, and fails
// where there are none, or more than most.
func Lines(t *testing.T, file string, most int) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	added, inside := 0, false
	for line := range strings.Lines(string(source)) {
		switch line = strings.TrimSpace(line); {
		case line == "// idem: begin":
			inside = true
		case line == "// idem: end":
			inside = false
		case inside && line != "":
			added++
		}
	}
	if inside || added == 0 || added > most {
		t.Errorf("%s has %d lines between the markers, want 1 to %d", file, added, most)
	}
	t.Logf("%s: %d lines of idem", file, added)
}
