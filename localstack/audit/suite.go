package audit

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Suite is a part of a run whose requests meet the same faults.
type Suite struct {
	Name string
	// Most is how many of its requests may find no store, and OfHundred how many of a hundred of them: the larger number counts.
	Most, OfHundred int
	// Stalls, in place of these where no fault is injected, is how often requests may find no store all the same. Those that began within
	// stall of the first one count once: an emulator that stalls meets all that are under way, be it one or forty. An answer that was there
	// sooner than any function gives a stalled emulator up has another cause, and fails the run.
	// Where all three are 0 every such answer fails the run.
	Stalls int
	// Breaker says that a circuit breaker stands before its store: one that a stall has opened answers at once.
	Breaker bool
	// Why says what answers them.
	Why string
}

// stall is longer than an emulator stalls on a busy machine, with the time that a function waits for it.
const stall = 10 * time.Second

// stallMin is the least time that a function waits for an emulator which stalls.
const stallMin = time.Second

// Tolerates says that some of the suite's requests may find no store.
func (s Suite) Tolerates() bool { return s.Most > 0 || s.OfHundred > 0 || s.Stalls > 0 }

// figures are what became of a suite's requests.
type figures struct {
	asked, again int
	unavailable  []unavailable
}

// unavailable is an answer that says that there is no store or no time.
type unavailable struct {
	answer string
	began  time.Time
	took   time.Duration
}

// prompt says that the answer was there sooner than any function gives a stalled emulator up.
func (s Suite) prompt(u unavailable) bool { return s.Stalls > 0 && u.took < stallMin }

// stalls are when the first request that met each was sent.
func (s Suite) stalls(f figures) (stalls []time.Time) {
	for _, u := range slices.SortedFunc(slices.Values(f.unavailable), func(a, b unavailable) int { return a.began.Compare(b.began) }) {
		if !s.prompt(u) && !during(stalls, u.began) {
			stalls = append(stalls, u.began)
		}
	}
	return stalls
}

// during says that a request which was sent then may have met one of the stalls, or what it left behind.
func during(stalls []time.Time, began time.Time) bool {
	return slices.ContainsFunc(stalls, func(at time.Time) bool { return !began.Before(at) && began.Sub(at) <= stall })
}

// allows says how much the suite allows, and whether it met more.
func (s Suite) allows(f figures) (allows string, broken bool) {
	if s.Stalls > 0 {
		return fmt.Sprintf("%d stalls", s.Stalls), len(s.stalls(f)) > s.Stalls
	}
	most := max(s.Most, f.asked*s.OfHundred/100)
	return fmt.Sprint(most), len(f.unavailable) > most
}

// unexplained are the answers that no number allows. They are judged when all are known: a request that met a stall is answered after one
// that an open circuit breaker has refused.
func (s Suite) unexplained(f figures) (met []string) {
	stalls := s.stalls(f)
	for _, u := range f.unavailable {
		switch {
		case !s.Tolerates():
			met = append(met, fmt.Sprintf("%s: %s", s.Name, u.answer))
		case s.prompt(u) && !(s.Breaker && during(stalls, u.began)):
			met = append(met, fmt.Sprintf("%s: after %s, which is no stall: %s", s.Name, u.took.Round(time.Millisecond), u.answer))
		}
	}
	return met
}

// Ledger counts by suite how many requests there were, how many were answered that there is no store or no time, and how many were
// sent again for that. Its zero value is empty and safe for concurrent use.
type Ledger struct {
	mu     sync.Mutex
	suites map[Suite]figures
}

// metMax bounds how many of the answers that nothing explains are told.
const metMax = 20

// Asked counts a request of the suite.
func (l *Ledger) Asked(s Suite) {
	l.change(s, func(f *figures) { f.asked++ })
}

// Unavailable counts an answer that says that there is no store or no time, to a request that was sent then and answered so much later.
func (l *Ledger) Unavailable(s Suite, answer string, began time.Time, took time.Duration) {
	l.change(s, func(f *figures) { f.unavailable = append(f.unavailable, unavailable{answer, began, took}) })
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

// Broken says which suites met more than they allow, and what nothing explains.
func (l *Ledger) Broken() (broken []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var met []string
	for s, f := range l.suites {
		if most, more := s.allows(f); more {
			broken = append(broken, fmt.Sprintf("%d of %d requests found no store, in %d stalls: %s allows %s, because %s",
				len(f.unavailable), f.asked, len(s.stalls(f)), s.Name, most, s.Why))
		}
		met = append(met, s.unexplained(f)...)
	}
	slices.Sort(broken)
	slices.Sort(met)
	return slices.Concat(broken, met[:min(len(met), metMax)])
}

// String is a line for each suite.
func (l *Ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for s, f := range l.suites {
		most, _ := s.allows(f)
		lines = append(lines, fmt.Sprintf("%-32s %6d requests, %4d without a store in %d stalls (at most %s), %4d sent again", s.Name, f.asked,
			len(f.unavailable), len(s.stalls(f)), most, f.again))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
