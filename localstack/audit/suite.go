package audit

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Suite is a part of a run whose requests meet the same faults.
type Suite struct {
	Name string
	// Most is how many of its requests may find no store, and OfHundred how many of a hundred of them: the larger number counts.
	// Both are 0 where no fault is injected: every such answer fails the run.
	Most, OfHundred int
	// Why says what answers them.
	Why string
}

// figures are what became of a suite's requests.
type figures struct{ asked, unavailable, again int }

// Ledger counts by suite how many requests there were, how many were answered that there is no store or no time, and how many were
// sent again for that. Its zero value is empty and safe for concurrent use.
type Ledger struct {
	mu     sync.Mutex
	suites map[Suite]figures
	met    []string
}

// metMax bounds how many of the answers that nothing explains are told.
const metMax = 20

// Asked counts a request of the suite.
func (l *Ledger) Asked(s Suite) {
	l.change(s, func(f *figures) { f.asked++ })
}

// Unavailable counts an answer that says that there is no store or no time.
func (l *Ledger) Unavailable(s Suite, answer string) {
	l.change(s, func(f *figures) {
		f.unavailable++
		if s.Most == 0 && s.OfHundred == 0 && len(l.met) < metMax {
			l.met = append(l.met, fmt.Sprintf("%s: %s", s.Name, answer))
		}
	})
}

// Again counts a request that is sent again for such an answer.
func (l *Ledger) Again(s Suite) {
	l.change(s, func(f *figures) { f.again++ })
}

func (l *Ledger) change(s Suite, by func(*figures)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.suites == nil {
		l.suites = map[Suite]figures{}
	}
	f := l.suites[s]
	by(&f)
	l.suites[s] = f
}

// Broken says which suites met more than they allow.
func (l *Ledger) Broken() (broken []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, f := range l.suites {
		if most := max(s.Most, f.asked*s.OfHundred/100); f.unavailable > most {
			broken = append(broken, fmt.Sprintf("%d of %d requests found no store: %s allows %d, because %s", f.unavailable, f.asked, s.Name, most, s.Why))
		}
	}
	slices.Sort(broken)
	return slices.Concat(broken, l.met)
}

// String is a line for each suite.
func (l *Ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for s, f := range l.suites {
		lines = append(lines, fmt.Sprintf("%-32s %6d requests, %4d without a store (at most %d), %4d sent again", s.Name, f.asked, f.unavailable,
			max(s.Most, f.asked*s.OfHundred/100), f.again))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
