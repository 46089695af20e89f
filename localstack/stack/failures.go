package stack

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// failure is a test that failed, with its package, and what it said: without the log of the code under test, whose lines are JSON.
type failure struct {
	test string
	said []string
}

// saidMax is how many of the last lines of a test are told again: a test that fails in a loop says the same many times.
const saidMax = 12

// failuresIn lists the tests that failed, from what go test told: those within another one as that one.
func failuresIn(folder string) (all []failure, err error) {
	err = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		all = append(all, failuresOf(bufio.NewReader(file))...)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) { // no test was begun
		err = nil
	}
	slices.SortFunc(all, func(a, b failure) int { return cmp.Compare(a.test, b.test) })
	return slices.CompactFunc(all, func(a, b failure) bool { return a.test == b.test }), err
}

// failuresOf are those of one run of go test.
func failuresOf(lines *bufio.Reader) (all []failure) {
	said, failed := map[string][]string{}, map[string]bool{}
	for {
		line, err := lines.ReadBytes('\n')
		var event testEvent
		if json.Unmarshal(line, &event) == nil && event.Test != "" {
			test, _, _ := strings.Cut(event.Test, "/")
			name := event.Package + " " + test
			switch event.Action {
			case "output":
				if says(event.Output) {
					said[name] = append(said[name], strings.TrimRight(event.Output, "\n"))
				}
			case "fail":
				failed[name] = true
			}
			if whole := test == event.Test; whole && (event.Action == "pass" || event.Action == "skip") {
				delete(said, name)
			}
		}
		if err != nil { // the end of the file
			break
		}
	}
	for name := range failed {
		of := said[name]
		all = append(all, failure{name, of[max(0, len(of)-saidMax):]})
	}
	return all
}

// says tells what a test says from what it logs, and from what go test says of it.
func says(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- PASS")
}
