package stack

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// tally counts tests and subtests by result, and how much processor time they took, with the build of them.
type tally struct {
	passed, failed, skipped int
	processor               time.Duration
}

func (t *tally) add(other tally) {
	t.passed += other.passed
	t.failed += other.failed
	t.skipped += other.skipped
	t.processor += other.processor
}

// String is as in "12 passed, 0 failed, 0 skipped".
func (t tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

// testEvent is a line of `go test -json` (go doc test2json).
type testEvent struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// collector turns test events into a tally and the output of what failed.
type collector struct {
	tally  tally
	output map[string][]string // by package and test, until it ended
	failed []string            // output of what failed, in the order of failure
}

// take takes one line. A line that is no event is output of the go command itself.
func (c *collector) take(line []byte) {
	var event testEvent
	if json.Unmarshal(line, &event) != nil || event.Action == "" {
		c.failed = append(c.failed, string(line)+"\n")
		return
	}
	name := event.Package + event.ImportPath + " " + event.Test
	switch event.Action {
	case "output", "build-output":
		c.output[name] = append(c.output[name], event.Output)
		return
	case "fail", "build-fail":
		c.failed = append(c.failed, c.output[name]...)
	case "skip":
		if event.Test != "" {
			c.failed = append(c.failed, fmt.Sprintf("skipped: %s\n", name))
		}
	case "pass":
	default:
		return
	}
	delete(c.output, name)
	if event.Test != "" {
		c.tally.count(event.Action)
	}
}

func (t *tally) count(action string) {
	switch action {
	case "pass":
		t.passed++
	case "fail":
		t.failed++
	case "skip":
		t.skipped++
	}
}

// childGrace is how long an interrupted child may take to clean up.
const childGrace = 20 * time.Second

// testMax is how long the tests of one package may take: go's own 10 minutes are too few for crashes at every call under -race,
// on a machine that does something else besides.
const testMax = "25m"

// testRun is one run of go test.
type testRun struct {
	directory   string
	environment []string
	arguments   []string
	// timed has it run at the priority of the stacks. All else yields to them: see behind.
	timed bool
	// events is the file that gets what go test told of every test, how long each took among it.
	events string
}

// kept is where the events of the run go.
func (run testRun) kept() (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(run.events), 0o755); err != nil {
		return nil, err
	}
	return os.Create(run.events)
}

// behind makes a command yield the processors to the stacks, whose clients, functions and emulators have time-outs.
func behind(name string, arguments ...string) (string, []string) {
	return "nice", append([]string{"-n", "10", name}, arguments...)
}

// goTest runs `go test -json` and returns what was counted. Its error carries the output of what failed; a skipped test counts as
// one, because a test that does not run shows nothing, and so does a run without any test. Vet is a step of its own, for all of the
// code.
func goTest(ctx context.Context, run testRun) (counted tally, err error) {
	// Nobody debugs these binaries: without symbols, linking a hundred of them takes 42 s of processor time in place of 97 s.
	name, arguments := "go", append([]string{"test", "-json", "-vet=off", "-ldflags=-s -w", "-timeout", testMax}, run.arguments...)
	if !run.timed {
		name, arguments = behind(name, arguments...)
	}
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = run.directory
	command.Env = append(localtool.WithoutAWS(os.Environ()), run.environment...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = childGrace
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		return tally{}, err
	}
	events, err := run.kept()
	if err != nil {
		return tally{}, err
	}
	defer func() { err = errors.Join(err, events.Close()) }()
	if err := command.Start(); err != nil {
		return tally{}, err
	}
	c := collector{output: map[string][]string{}}
	reader := bufio.NewReader(io.TeeReader(stdout, events))
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			c.take([]byte(strings.TrimRight(string(line), "\n")))
		}
		if err != nil {
			break // the end of the output; what ended it, Wait knows
		}
	}
	err = command.Wait()
	ran := c.tally != tally{}
	c.tally.processor = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	switch {
	case err == nil && c.tally.skipped > 0:
		err = fmt.Errorf("%d tests were skipped", c.tally.skipped)
	case err == nil && !ran: // go test finds no fault with names that no test has
		err = errors.New("no tests were run")
	}
	if err != nil {
		err = errors.Join(errors.New(strings.Join(slices.Compact(c.failed), "")), fmt.Errorf("go test %s: %w", strings.Join(run.arguments, " "), err))
	}
	return c.tally, err
}
