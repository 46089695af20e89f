package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Fate is what became of a mutant.
type Fate string

// The fates.
const (
	Killed    Fate = "killed"    // a test failed
	Survived  Fate = "survived"  // no test noticed
	Hung      Fate = "hung"      // the tests did not end in time, which somebody notices
	NotBuilt  Fate = "not built" // it does not compile, so it is no mutant
	Unhealthy Fate = "unhealthy" // the tests could not be run
)

// Config is how mutants are run.
type Config struct {
	// Root is the checkout.
	Root string
	// Jobs is how many run side by side. Default 1.
	Jobs int
	// Patience bounds the tests of one mutant. Default 4 min.
	Patience time.Duration
	// Out is told of each.
	Out io.Writer
}

// Report is what became of all.
type Report struct {
	Killed, NotBuilt int
	// Wrong are survivors that nobody has explained, explained ones that a test killed, and what could not be run.
	Wrong []string
	// Explained are survivors with a reason.
	Explained int
}

// Score is the share of mutants that were killed, in percent.
func (r Report) Score() float64 {
	all := r.Killed + r.Explained + len(r.Wrong)
	if all == 0 {
		return 0
	}
	return 100 * float64(r.Killed) / float64(all)
}

// String is as in "118 killed of 120 (98.3 %), 2 survivors explained, 0 wrong, 3 that do not compile".
func (r Report) String() string {
	return fmt.Sprintf("%d killed of %d (%.1f %%), %d survivors explained, %d wrong, %d that do not compile",
		r.Killed, r.Killed+r.Explained+len(r.Wrong), r.Score(), r.Explained, len(r.Wrong), r.NotBuilt)
}

// Run runs the tests on each mutant.
func Run(ctx context.Context, cfg Config, all []Mutant) (report Report, err error) {
	directory, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	var (
		mu    sync.Mutex
		group errgroup.Group
	)
	group.SetLimit(max(cfg.Jobs, 1))
	for i, m := range all {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			began := time.Now()
			fate, output, err := cfg.try(ctx, filepath.Join(directory, fmt.Sprint(i)), m)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			report.add(m, fate, output)
			_, err = fmt.Fprintf(cfg.Out, "%-9s %5.1f s  %s\n", fate, time.Since(began).Seconds(), m.Name)
			return err
		})
	}
	return report, group.Wait()
}

func (r *Report) add(m Mutant, fate Fate, output string) {
	explained := m.Survives != ""
	switch {
	case fate == NotBuilt && m.made:
		r.NotBuilt++
	case fate == NotBuilt, fate == Unhealthy:
		r.Wrong = append(r.Wrong, fmt.Sprintf("%s: %s\n%s\n%s", fate, m.Name, m.diff(), output))
	case fate == Survived && explained:
		r.Explained++
	case fate == Survived:
		r.Wrong = append(r.Wrong, fmt.Sprintf("survived: %s\n%s", m.Name, m.diff()))
	case explained:
		r.Wrong = append(r.Wrong, fmt.Sprintf("%s, and the list says that it survives: %s", fate, m.Name))
	default:
		r.Killed++
	}
}

// try runs the mutant's tests until one fails.
func (c Config) try(ctx context.Context, directory string, m Mutant) (Fate, string, error) {
	overlay, err := c.overlay(directory, m)
	if err != nil {
		return "", "", err
	}
	patience := c.Patience
	if patience == 0 {
		patience = 4 * time.Minute
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, tests := range m.Tests {
		fate, output := c.test(bounded, overlay, tests)
		if ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		if fate != Survived {
			return fate, output, nil
		}
	}
	return Survived, "", nil
}

// overlay writes the changed file, and what tells the go command of it.
func (c Config) overlay(directory string, m Mutant) (string, error) {
	content, err := m.file(c.Root)
	if err != nil {
		return "", err
	}
	root, err := filepath.Abs(c.Root)
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(directory, 0o700); err != nil {
		return "", err
	}
	changed := filepath.Join(directory, filepath.Base(m.File))
	if err := os.WriteFile(changed, content, 0o600); err != nil {
		return "", err
	}
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.File): changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(directory, "overlay.json")
	return overlay, os.WriteFile(overlay, raw, 0o600)
}

// test runs some tests on the changed code.
func (c Config) test(ctx context.Context, overlay string, tests Tests) (Fate, string) {
	arguments := []string{"test", "-overlay", overlay, "-vet=off", "-failfast", "-short", "-count=1", "-timeout=10m"}
	if tests.Run != "" {
		arguments = append(arguments, "-run", tests.Run)
	}
	arguments = append(arguments, strings.Fields(tests.Packages)...)
	arguments = append(arguments, strings.Fields(tests.Flags)...)
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = c.Root
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	output, err := command.CombinedOutput()
	return fateOf(ctx, output, err), tail(output)
}

func fateOf(ctx context.Context, output []byte, err error) Fate {
	switch {
	case ctx.Err() != nil:
		return Hung
	case bytes.Contains(output, []byte("no tests to run")) && !bytes.Contains(output, []byte("FAIL")):
		return Unhealthy // nothing was tested
	case err == nil:
		return Survived
	case bytes.Contains(output, []byte("[build failed]")), bytes.Contains(output, []byte("[setup failed]")):
		return NotBuilt
	case bytes.Contains(output, []byte("FAIL")):
		return Killed
	}
	return Unhealthy
}

// tail is the end of what a command printed.
func tail(output []byte) string {
	const most = 2000
	return string(output[max(0, len(output)-most):])
}
