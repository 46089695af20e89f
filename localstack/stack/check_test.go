package stack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// A test that is renamed would silently be run where it is too long, or not at all.
func TestWhatTheChecksNameExists(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	for folder, patterns := range map[string][]string{
		"functions/internal/payments": {crashes},
		"localstack/e2e":              {killLoop, againOnAnother, onLocalStack, document},
		"idem/operator/idemctl":       {inTerminal},
		"idem/dynamo":                 {alike},
		"idem/sim":                    {stories, planted},
	} {
		var names []string
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
				names = append(names, found[1])
			}
		}
		for _, pattern := range patterns {
			wanted, matched := 1+strings.Count(pattern, "|"), 0
			for _, name := range names {
				if regexp.MustCompile(pattern).MatchString(name) {
					matched++
				}
			}
			if matched < wanted {
				t.Errorf("%s names %d tests of %s, want %d", pattern, matched, folder, wanted)
			}
		}
	}
	for _, folder := range storeTests {
		output, err := exec.CommandContext(t.Context(), "grep", "-rl", "dynamotest.", filepath.Join(root, folder), "--include=*_test.go").Output()
		if err != nil || len(output) == 0 {
			t.Errorf("%s has no test on a DynamoDB endpoint: %v", folder, err)
		}
	}
}

// Within three commits everything has its turn, and a check says in a line each what it leaves out. A part that is asked for, and
// the whole, leave nothing to others.
func TestWhatTakesTurnsIsRunWithinThreeCommits(t *testing.T) {
	var told bytes.Buffer
	c := &Check{Root: t.TempDir(), Out: progress.New(&told), several: true}
	git(t, c.Root, "init", "--quiet")
	all := map[string][]int{"the emulator": secondEmulator, "the browser": browserReads, "the document": documentHolds, "the stores": storesOnLocal}
	ran := map[string]int{}
	for range turns {
		git(t, c.Root, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty", "--message", "b")
		told.Reset()
		for what, has := range all {
			if c.hasTurn(t.Context(), what, has...) {
				ran[what]++
			} else if strings.Count(told.String(), "left to other commits: "+what) != 1 {
				t.Errorf("a check without %s tells %q", what, told.String())
			}
			whole, alone := &Check{Root: c.Root, Out: c.Out, Whole: true, several: true}, &Check{Root: c.Root, Out: c.Out}
			if !whole.hasTurn(t.Context(), what, has...) || !alone.hasTurn(t.Context(), what, has...) {
				t.Errorf("%s is left out of the whole, or where it is asked for", what)
			}
		}
	}
	for what, has := range all {
		if ran[what] != len(has) || len(has) == 0 {
			t.Errorf("three commits ran %s %d times, want %d", what, ran[what], len(has))
		}
	}
}

// A checkout without a history has the first turn: nothing of the others is looked for, and nothing of it is missed.
func TestPartsAskWhoseTurnItIs(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CHROMIUM", "")
	for several, missed := range map[bool]int{true: 0, false: 2} {
		c := &Check{Root: t.TempDir(), Out: progress.New(io.Discard), several: several}
		if err := errors.Join(c.browser(t.Context()), c.dynamoDBLocal(t.Context())); err != nil || len(c.leftOut) != missed {
			t.Errorf("with other parts %t: %v, missed %q", several, err, c.leftOut)
		}
	}
}

// The linters would look at every template if the tests of the CDK app read another variable.
func TestTheLintersReadTheirPart(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(root, "infra", "lint", "table.go"))
	if err != nil || !strings.Contains(string(table), strconv.Quote(lintPart)) {
		t.Errorf("infra/lint/table.go does not read %s: %v", lintPart, err)
	}
	for _, folder := range []string{"stack", "idemconstruct"} {
		found, err := exec.CommandContext(t.Context(), "grep", "-rl", "lint.PartVariable", filepath.Join(root, "infra", folder)).Output()
		if err != nil || len(found) == 0 {
			t.Errorf("no test of infra/%s reads the part: %v", folder, err)
		}
	}
}

// What the race detector gets at a smaller size, or not at all, runs at its full size without it.
func TestWhatTheDetectorShortensRunsInFull(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	shortens := regexp.MustCompile(`testing\.Short\(\)|Sized\(`)
	declared, leftOut := regexp.MustCompile(`(?m)^func (Test\w+)\(`), regexp.MustCompile(otherPrograms+"|"+oneGoroutine)
	found := 0
	err = filepath.WalkDir(filepath.Join(root, "idem"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		runs := shortens.Match(source)
		for _, test := range declared.FindAllStringSubmatch(string(source), -1) {
			runs = runs || leftOut.MatchString(test[1])
		}
		if err != nil || !runs {
			return err
		}
		found++
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if pattern := "./" + filepath.ToSlash(folder); !slices.Contains(slices.Concat(fullSize, sequential), pattern) {
			t.Errorf("the detector does not see all of %s, and neither fullSize nor sequential names its package", path)
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d files with such tests: %v", found, err)
	}
}

// Tasks run to their end after another one failed, and every failure is told.
func TestEveryTaskRunsAfterAFailure(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	fails := func(err error) task { return func(context.Context) error { return err } }
	if err := inLanes(t.Context(), 2, fails(first), fails(nil), fails(nil), fails(second)); !errors.Is(err, first) || !errors.Is(err, second) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := inLanes(ended, 2, fails(nil), fails(second)); !errors.Is(err, context.Canceled) || errors.Is(err, second) {
		t.Errorf("%v, want only that it was interrupted", err)
	}
}

// A lane that is free takes the next task, and the longest ones of all parts are begun before the others.
func TestAFreeLaneTakesTheNextTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began []string
		takes := func(name string, minutes time.Duration) task {
			return func(context.Context) error {
				began = append(began, name) // there is one lane
				time.Sleep(minutes * time.Minute)
				return nil
			}
		}
		parts := [][]task{{takes("long", 10)}, {takes("short", 1), takes("its second", 7)}, {takes("middle", 4)}}
		start := time.Now()
		if err := inLanes(t.Context(), 1, byTurns(parts)...); err != nil || time.Since(start) != 22*time.Minute ||
			!slices.Equal(began, []string{"long", "short", "middle", "its second"}) {
			t.Errorf("%v: %q in %v", err, began, time.Since(start))
		}
		start, parts = time.Now(), [][]task{{wait(10)}, {wait(1), wait(7)}, {wait(4)}}
		if err := inLanes(t.Context(), 2, byTurns(parts)...); err != nil || time.Since(start) != 12*time.Minute {
			t.Errorf("%v: two lanes took %v, want 12 minutes: 10, and beside it 1, 4 and 7", err, time.Since(start))
		}
	})
}

func wait(minutes time.Duration) task {
	return func(context.Context) error { time.Sleep(minutes * time.Minute); return nil }
}

// Each commit plays other stories and other second cuts, and the same commit the same ones: what was red once can be played again.
func TestEachCommitPlaysOtherStories(t *testing.T) {
	c := &Check{Root: t.TempDir()}
	if seed := c.firstSeed(t.Context()); seed != "0" {
		t.Errorf("seed %s without a history, want 0", seed)
	}
	git(t, c.Root, "init", "--quiet")
	for n := 1; n <= 3; n++ {
		git(t, c.Root, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty", "--message", "b")
		for range 2 {
			if seed, want := c.firstSeed(t.Context()), strconv.Itoa(n*seedsApart); seed != want {
				t.Errorf("seed %s after %d commits, want %s", seed, n, want)
			}
			if got, want := strings.Join(c.part(t.Context(), "sim", 2), " "), "-sim.every 2 -sim.skipped "+strconv.Itoa(n%2); got != want {
				t.Errorf("%s after %d commits, want %s", got, n, want)
			}
		}
	}
}
