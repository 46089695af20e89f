package mutants

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/internal/clients"
	"github.com/idem-go/idem-aws/internal/localtool"
)

// Fate is what became of a mutant.
type Fate string

// The fates.
const (
	Killed    Fate = "killed"    // a test failed
	Stuck     Fate = "stuck"     // the tests did not end in ten times what they take otherwise, which somebody notices
	Hung      Fate = "hung"      // the tests did not end in time, and they are slow anyway: nobody knows what they would have said
	Survived  Fate = "survived"  // no test noticed
	NotBuilt  Fate = "not built" // it does not compile, so it is no mutant
	Unhealthy Fate = "unhealthy" // the tests could not be run, or failed once and not again
)

// Config is how mutants are run.
type Config struct {
	// Root is the checkout.
	Root string
	// Jobs is how many run side by side. Default 1.
	Jobs int
	// Patience bounds each set of tests of a mutant. What the set takes on the clean code is measured once: patience ends at ten times
	// that, but after a minute at the earliest and after Patience at the latest. Default 10 min.
	Patience time.Duration
	// Out is told of each.
	Out io.Writer
}

// Report is what became of all.
type Report struct {
	Killed, NotBuilt int
	// Wrong are survivors that nobody has explained, explained ones that a test killed, and those whose tests could not be run or did
	// not end.
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

// Markdown is the report of a run with this seed, for a page that is kept.
func (r Report) Markdown(seed uint64) string {
	text := fmt.Sprintf("### Mutants of seed %d\n\n%v\n", seed, r)
	for _, wrong := range r.Wrong {
		text += "\n```text\n" + wrong + "\n```\n"
	}
	return text
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
		lab   = &laboratory{Config: cfg}
	)
	group.SetLimit(max(cfg.Jobs, 1))
	for i, m := range all {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			began := time.Now()
			fate, output, err := lab.try(ctx, filepath.Join(directory, fmt.Sprint(i)), m)
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
	case fate == NotBuilt, fate == Unhealthy, fate == Hung:
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

// laboratory runs tests, and knows what they take on the clean code.
type laboratory struct {
	Config
	mu    sync.Mutex
	clean map[Tests]*clean
}

// clean is what became of a set of tests on the clean code.
type clean struct {
	once   sync.Once
	fate   Fate
	output string
	took   time.Duration
}

// times is how much longer than on the clean code tests may take before they count as stuck, patienceMin the least that they get.
const (
	times       = 10
	patienceMin = time.Minute
)

func (l *laboratory) patienceMax() time.Duration { return cmp.Or(l.Patience, 10*time.Minute) }

// patience is how long a set of tests gets on a mutant, and sure whether that is far more than it should need.
func (l *laboratory) patience(took time.Duration) (patience time.Duration, sure bool) {
	patience = min(max(times*took, patienceMin), l.patienceMax())
	return patience, patience >= times*took
}

// try runs the mutant's tests until one fails.
func (l *laboratory) try(ctx context.Context, directory string, m Mutant) (fate Fate, output string, err error) {
	overlay, err := l.overlay(directory, m)
	if err != nil {
		return "", "", err
	}
	fate = Survived
	for _, tests := range m.Tests {
		c := l.measure(ctx, tests)
		if c.fate != Survived {
			return Unhealthy, fmt.Sprintf("on the clean code its tests end so: %s\n%s", c.fate, tail(c.output)), ctx.Err()
		}
		patience, sure := l.patience(c.took)
		became, said := l.test(ctx, overlay, tests, patience)
		switch {
		case ctx.Err() != nil:
			return "", "", ctx.Err()
		case became == Hung && sure:
			return Stuck, tail(said), nil
		case became == Hung: // the next tests may say more
			fate, output = Hung, fmt.Sprintf("the tests of %s did not end in %v; on the clean code they take %v\n%s", tests.Packages, patience, c.took, tail(said))
		case became == Killed && !l.kills(ctx, overlay, tests, said, patience): // so may the next tests
			fate, output = Unhealthy, fmt.Sprintf("the tests of %s failed once, and not again\n%s", tests.Packages, tail(said))
		case became != Survived:
			return became, tail(said), nil
		}
	}
	return fate, output, nil
}

// failedTest is a line that says which test failed.
var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// kills runs the tests that failed on the changed code once more: a test that fails now and then, or on a busy machine, is no witness.
// Where it isn't said which failed, all are run.
func (l *laboratory) kills(ctx context.Context, overlay string, tests Tests, said string, patience time.Duration) bool {
	var names []string
	for _, failed := range failedTest.FindAllStringSubmatch(said, -1) {
		names = append(names, failed[1])
	}
	if len(names) > 0 {
		_, part, _ := strings.Cut(tests.Run+"/", "/") // of a test of which a part was run, that part again
		tests.Run = strings.TrimSuffix("^("+strings.Join(names, "|")+")$/"+part, "/")
	}
	again, _ := l.test(ctx, overlay, tests, patience)
	return again == Killed
}

// measure runs a set of tests on the clean code, once; where that fails, once more: a busy machine is no reason to judge nothing.
func (l *laboratory) measure(ctx context.Context, tests Tests) *clean {
	l.mu.Lock()
	c, ok := l.clean[tests]
	if !ok {
		if l.clean == nil {
			l.clean = map[Tests]*clean{}
		}
		c = &clean{}
		l.clean[tests] = c
	}
	l.mu.Unlock()
	c.once.Do(func() {
		for range 2 {
			began := time.Now()
			c.fate, c.output = l.test(ctx, "", tests, l.patienceMax())
			if c.took = time.Since(began); c.fate == Survived {
				return
			}
		}
	})
	return c
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

// test runs some tests, on the changed code where there is an overlay, and returns what they printed.
func (c Config) test(ctx context.Context, overlay string, tests Tests, patience time.Duration) (Fate, string) {
	arguments := []string{"test", "-vet=off", "-failfast", "-short", "-count=1", "-timeout=" + patience.String()}
	if overlay != "" {
		arguments = append(arguments, "-overlay", overlay)
	}
	if tests.Run != "" {
		arguments = append(arguments, "-run", tests.Run)
	}
	if tests.Skip != "" {
		arguments = append(arguments, "-skip", tests.Skip)
	}
	arguments = append(arguments, strings.Fields(tests.Packages)...)
	arguments = append(arguments, strings.Fields(tests.Flags)...)
	bounded, cancel := context.WithTimeout(ctx, 2*patience+patienceMin) // the go command ends the tests itself; building takes time, too
	defer cancel()
	// A check runs stacks beside, whose clients and functions have time-outs: they go first.
	command := exec.CommandContext(bounded, "nice", append([]string{"-n", "10", "go"}, arguments...)...)
	command.Dir, command.Env = c.Root, append(localtool.WithoutAWS(os.Environ()), clients.OverlayVariable+"="+overlay)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that the tests that it started end with it
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 10 * time.Second
	output, err := command.CombinedOutput()
	return fateOf(bounded, output, err), string(output)
}

// timedOut is how the testing package says that its own -timeout ended the tests.
var timedOut = []byte("panic: test timed out after ")

func fateOf(ctx context.Context, output []byte, err error) Fate {
	switch {
	case ctx.Err() != nil, bytes.Contains(output, timedOut):
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
func tail(output string) string {
	const most = 2000
	return output[max(0, len(output)-most):]
}
