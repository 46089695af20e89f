package middleware_test

import (
	"os"
	"strings"
	"testing"
)

// The README's adoption example is the one that this package compiles and runs.
func TestReadmeExampleIsTheCompiledOne(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	code, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("the README has no Go example")
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(code, "\n"); lines > 12 {
		t.Errorf("the ten-line example has %d lines", lines)
	}
	if !strings.Contains(unindented(string(example)), unindented(code)) {
		t.Errorf("example_test.go does not contain the README's example:\n%s", code)
	}
}

func unindented(code string) string {
	lines := strings.Split(strings.TrimSpace(code), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}
