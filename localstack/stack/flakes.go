package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/localstack/progress"
)

// flakesFolder has what each run of the checks printed.
var flakesFolder = filepath.Join(".local", "flakes")

// repetition is what came of one run of the checks.
type repetition struct {
	took   time.Duration
	tally  tally
	failed []string // tests, each with its package
	err    error
}

// Flakes runs the whole check so many times, one after the other, on the same code, and prints which tests failed in which run. Each
// is the check of the next commit, so that everything has its turn, and each plays other stories. None takes go's word for a test
// that an earlier run passed. What a run prints itself is in .local/flakes. With freeze the processes of each run stand now and then, one
// or two at a time, for half of that to all of it; which, and when, is beside what the run prints. The error is [ErrCheck] where a run
// failed.
func Flakes(ctx context.Context, root string, runs int, freeze time.Duration, check func(out *progress.Printer) *Check, out *progress.Printer) error {
	folder := filepath.Join(root, flakesFolder)
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	var all []repetition
	for n := range runs {
		var r repetition
		name := filepath.Join(folder, fmt.Sprintf("%d.log", n+1))
		err := out.Step(fmt.Sprintf("run %d of %d, which prints to %s", n+1, runs, name), func() (err error) {
			r, err = repeated(ctx, root, name, n, freeze, check)
			return err
		})
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
		all = append(all, r)
	}
	out.Line("\n%s", table(all))
	if slices.ContainsFunc(all, func(r repetition) bool { return r.err != nil }) {
		return ErrCheck
	}
	return ctx.Err()
}

// repeated is one run.
func repeated(ctx context.Context, root, name string, ahead int, freeze time.Duration, check func(out *progress.Printer) *Check) (r repetition, err error) {
	file, err := os.Create(name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := forgetResults(ctx); err != nil {
		return r, err
	}
	c, began := check(progress.New(file)), time.Now()
	c.Ahead = ahead
	err = frozen(ctx, freeze, uint64(ahead), strings.TrimSuffix(name, ".log")+".frozen", func() { r.err = c.Run(ctx, AllParts()...) })
	r.took, r.tally = time.Since(began), c.tally
	failures, unread := failuresIn(filepath.Join(root, eventsFolder))
	for _, f := range failures {
		r.failed = append(r.failed, f.test)
	}
	return r, errors.Join(err, unread)
}

// forgetResults has go test run again what it has seen pass: of the same code it would only say so.
func forgetResults(ctx context.Context) error {
	if said, err := exec.CommandContext(ctx, "go", "clean", "-testcache").CombinedOutput(); err != nil {
		return fmt.Errorf("go clean -testcache: %w: %s", err, said)
	}
	return nil
}

// table has a line for each run, and one for each test that failed in any.
func table(all []repetition) string {
	var text strings.Builder
	text.WriteString("| run | seconds | passed | failed | skipped | |\n|---|---|---|---|---|---|\n")
	times, red := map[string]int{}, 0
	for n, r := range all {
		verdict := "green"
		if r.err != nil {
			red++
			verdict = cmp.Or(strings.Join(r.failed, ", "), "red, and no test failed")
		}
		for _, test := range r.failed {
			times[test]++
		}
		fmt.Fprintf(&text, "| %d | %.0f | %d | %d | %d | %s |\n", n+1, r.took.Seconds(), r.tally.passed, r.tally.failed, r.tally.skipped, verdict)
	}
	fmt.Fprintf(&text, "\n%d of %d runs are red.\n", red, len(all))
	for _, test := range slices.Sorted(maps.Keys(times)) {
		fmt.Fprintf(&text, "%s: in %d of %d.\n", test, times[test], len(all))
	}
	return text.String()
}
