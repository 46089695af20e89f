package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mutant is one change of one file.
type Mutant struct {
	// Name says what the code does then.
	Name string
	// File is the file, from the checkout's root.
	File string
	// Old is code that stands in the file once, and New what stands there instead.
	Old, New string
	// Tests should notice. They run in this order until one fails.
	Tests []Tests
	// Survives says why no test can notice: the change makes no difference, or none that anybody could see.
	Survives string
	// at is where Old begins, for one that was made by rule; such code may stand in the file several times.
	at   int
	made bool
}

// Tests are tests of some packages.
type Tests struct {
	// Packages are as the go command takes them, from the checkout's root.
	Packages string
	// Run chooses tests as go test -run does, "" is all; Skip leaves some out as go test -skip does. Flags are further arguments, one a
	// word.
	Run, Skip, Flags string
}

// file is the changed file's content.
func (m Mutant) file(root string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, err
	}
	text, at := string(raw), m.at
	if !m.made {
		if n := strings.Count(text, m.Old); n != 1 {
			return nil, fmt.Errorf("mutants: %q: its code stands in %s %d times, must be once", m.Name, m.File, n)
		}
		at = strings.Index(text, m.Old)
	}
	return []byte(text[:at] + m.New + text[at+len(m.Old):]), nil
}

// diff shows the change.
func (m Mutant) diff() string {
	lines := []string{"    " + m.File}
	for _, line := range strings.Split(m.Old, "\n") {
		lines = append(lines, "    - "+line)
	}
	for _, line := range strings.Split(m.New, "\n") {
		lines = append(lines, "    + "+line)
	}
	return strings.Join(lines, "\n")
}
