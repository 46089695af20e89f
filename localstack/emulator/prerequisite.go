package emulator

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// MissingError says that a program which is not installed by this package is absent or too old.
type MissingError struct {
	// Program is what is missing, as a person calls it: "Node".
	Program string
	// Wanted is the version wanted: "20 or newer".
	Wanted string
	// Found is what was found instead; empty when nothing was.
	Found string
}

// Error names the program, the version wanted and what was found.
func (e *MissingError) Error() string {
	found := "not found"
	if e.Found != "" {
		found = "found " + e.Found
	}
	return fmt.Sprintf("%s %s is needed (%s)", e.Program, e.Wanted, found)
}

// prerequisite is a program that has to be on the machine already.
type prerequisite struct {
	program string
	command []string // prints the version
	pattern *regexp.Regexp
	major   int
	minor   int
}

var (
	nodeWanted  = prerequisite{"Node", []string{"node", "--version"}, regexp.MustCompile(`v(\d+)\.(\d+)`), 20, 0}
	javaWanted  = prerequisite{"Java", []string{"java", "-version"}, regexp.MustCompile(`version "(\d+)(?:\.(\d+))?`), 17, 0}
	javacWanted = prerequisite{"Java (JDK)", []string{"javac", "-version"}, regexp.MustCompile(`javac (\d+)(?:\.(\d+))?`), 17, 0}
	mavenWanted = prerequisite{"Maven", []string{"mvn", "--version"}, regexp.MustCompile(`Apache Maven (\d+)\.(\d+)`), 3, 6}
	goWanted    = prerequisite{"Go", []string{"go", "version"}, regexp.MustCompile(`go(\d+)\.(\d+)`), 1, 26}
)

// RequireNode returns a *MissingError where Node 20 or newer is missing.
func RequireNode(ctx context.Context) error { return nodeWanted.check(ctx) }

// RequireGo returns a *MissingError where Go 1.26 or newer is missing.
func RequireGo(ctx context.Context) error { return goWanted.check(ctx) }

// RequireJava returns a *MissingError where Java 17 or newer or Maven 3.6 or newer is missing.
func RequireJava(ctx context.Context) error {
	if err := javaWanted.check(ctx); err != nil {
		return err
	}
	return mavenWanted.check(ctx)
}

// RequireJDK is RequireJava for what also compiles Java.
func RequireJDK(ctx context.Context) error {
	if err := RequireJava(ctx); err != nil {
		return err
	}
	return javacWanted.check(ctx)
}

func (p prerequisite) check(ctx context.Context) error {
	output, err := exec.CommandContext(ctx, p.command[0], p.command[1:]...).CombinedOutput()
	if err != nil {
		return &MissingError{Program: p.program, Wanted: p.wanted()}
	}
	return p.judge(string(output))
}

// judge compares the version in output with the one wanted.
func (p prerequisite) judge(output string) error {
	found := p.pattern.FindStringSubmatch(output)
	if found == nil {
		return &MissingError{Program: p.program, Wanted: p.wanted(), Found: strings.TrimSpace(output)}
	}
	major, _ := strconv.Atoi(found[1]) // the pattern admits digits only; a missing minor counts as 0
	minor, _ := strconv.Atoi(found[2])
	if major < p.major || major == p.major && minor < p.minor {
		return &MissingError{Program: p.program, Wanted: p.wanted(), Found: found[0]}
	}
	return nil
}

func (p prerequisite) wanted() string {
	if p.minor == 0 {
		return fmt.Sprintf("%d or newer", p.major)
	}
	return fmt.Sprintf("%d.%d or newer", p.major, p.minor)
}

// Python returns the path of a Python 3 interpreter of at least the given minor version that can make virtual
// environments. The variable PYTHON names one to try first. It returns a *MissingError where there is none.
func Python(ctx context.Context, minor int) (string, error) {
	probe := fmt.Sprintf("import sys, ensurepip, venv; sys.exit(sys.version_info < (3, %d))", minor)
	for _, candidate := range pythonCandidates(minor) {
		if exec.CommandContext(ctx, candidate, "-c", probe).Run() == nil {
			return candidate, nil
		}
	}
	return "", &MissingError{Program: "Python", Wanted: fmt.Sprintf("3.%d or newer with its venv module", minor)}
}

// newestPythonMinor bounds the names that are tried on PATH.
const newestPythonMinor = 16

func pythonCandidates(minor int) []string {
	var candidates []string
	if named := os.Getenv("PYTHON"); named != "" {
		candidates = append(candidates, named)
	}
	candidates = append(candidates, "python3")
	for m := minor; m <= newestPythonMinor; m++ {
		candidates = append(candidates, fmt.Sprintf("python3.%d", m))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return candidates
	}
	for m := minor; m <= newestPythonMinor; m++ {
		managed, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", fmt.Sprintf("3.%d.*", m), "bin", "python3"))
		candidates = append(candidates, managed...)
	}
	return candidates
}
