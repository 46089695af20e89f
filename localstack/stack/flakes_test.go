package stack

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/localstack/progress"
)

// What failed is told by go test's own events, once for each test; a run may be red without one.
func TestTheTableOfRunsNamesWhatFailed(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"unit.json": `{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: all is well\n"}
{"Action":"output","Package":"p","Test":"TestB/one","Output":"=== RUN   TestB/one\n"}
{"Action":"output","Package":"p","Test":"TestB/one","Output":"    b_test.go:7: it is wrong\n"}
{"Action":"output","Package":"p","Test":"TestB/one","Output":"{\"level\":\"INFO\"}\n"}
{"Action":"fail","Package":"p","Test":"TestB/one"}
{"Action":"fail","Package":"p","Test":"TestB/two"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
no event
`,
		"race.json": `{"Action":"fail","Package":"q","Test":"TestC"}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	failures, err := failuresIn(folder)
	if want := []failure{{"p TestB", []string{"    b_test.go:7: it is wrong"}}, {"q TestC", nil}}; err != nil || !reflect.DeepEqual(failures, want) {
		t.Fatalf("%q, %v, want %q", failures, err, want)
	}
	failed := []string{failures[0].test, failures[1].test}
	if none, err := failuresIn(filepath.Join(folder, "none")); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
	got := table([]repetition{
		{took: time.Minute, tally: tally{passed: 2}},
		{took: 2 * time.Minute, tally: tally{passed: 1, failed: 4}, failed: failed, err: ErrCheck},
		{took: time.Second, err: ErrCheck},
		{took: time.Minute, tally: tally{passed: 1, failed: 1}, failed: failed[:1], err: ErrCheck},
	})
	for _, line := range []string{
		"| 1 | 60 | 2 | 0 | 0 | green |", "| 2 | 120 | 1 | 4 | 0 | p TestB, q TestC |", "| 3 | 1 | 0 | 0 | 0 | red, and no test failed |",
		"3 of 4 runs are red.", "p TestB: in 2 of 4.", "q TestC: in 1 of 4.",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("there is no line %q:\n%s", line, got)
		}
	}
}

// On the same code everything has its turn within three runs, and each run plays other stories. These runs fail at once: where they
// run, there is nothing to check.
func TestEachRunIsTheCheckOfTheNextCommit(t *testing.T) {
	root, told := t.TempDir(), bytes.Buffer{}
	git(t, root, "init", "--quiet")
	var checks []*Check
	err := Flakes(t.Context(), root, turns, 0, func(out *progress.Printer) *Check {
		checks = append(checks, &Check{Root: root, Out: out})
		return checks[len(checks)-1]
	}, progress.New(&told))
	if !errors.Is(err, ErrCheck) || len(checks) != turns || !strings.Contains(told.String(), "3 of 3 runs are red.") {
		t.Fatalf("%v after %d runs, which told:\n%s", err, len(checks), told.String())
	}
	seeds, browser := map[string]bool{}, 0
	for _, c := range checks {
		seeds[c.firstSeed(t.Context())] = true
		if c.several = true; c.hasTurn(t.Context(), "the browser", browserReads...) {
			browser++
		}
	}
	if len(seeds) != turns || browser != len(browserReads) {
		t.Errorf("seeds %v, and the browser had %d turns", seeds, browser)
	}
}

// A test that passed in one run is run again in the next: go test would print its result a second time otherwise. The go command
// keeps in its cache from when on results count.
func TestEachRunOfTheChecksRunsItsTests(t *testing.T) {
	cache := t.TempDir() // not the cache of whoever runs this: it keeps its results
	t.Setenv("GOCACHE", cache)
	began := time.Now()
	if err := forgetResults(t.Context()); err != nil {
		t.Fatal(err)
	}
	from, err := os.ReadFile(filepath.Join(cache, "testexpire.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if at, err := strconv.ParseInt(strings.TrimSpace(string(from)), 10, 64); err != nil || at < began.UnixNano() {
		t.Errorf("results count from %q on, and the run began at %d: %v", from, began.UnixNano(), err)
	}
}
