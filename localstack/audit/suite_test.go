package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/localstack/audit"
)

// one fails the test unless exactly one thing is broken, and is said in these words.
func one(t *testing.T, broken []string, want string) {
	t.Helper()
	if len(broken) != 1 || !strings.Contains(broken[0], want) {
		t.Errorf("broken: %q, want one that says %q", broken, want)
	}
}

func none(t *testing.T, broken []string) {
	t.Helper()
	if len(broken) > 0 {
		t.Errorf("broken: %q, want nothing", broken)
	}
}

func TestASuiteAllowsWhatItSays(t *testing.T) {
	calm := audit.Suite{Name: "without faults", Why: "nothing is injected"}
	kill := audit.Suite{Name: "kill loop", Most: 2, OfHundred: 10, Why: "processes die"}
	var l audit.Ledger
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for range 30 {
		l.Asked(calm)
		l.Asked(kill)
	}
	for range 3 {
		l.Unavailable(kill, "", noon, 0)
		l.Again(kill)
	}
	none(t, l.Broken())
	if text := l.String(); !strings.Contains(text, "30 requests,    3 without a store in 1 stalls (at most 3),    3 sent again") {
		t.Error(text)
	}
	l.Unavailable(kill, "", noon, 0)
	one(t, l.Broken(), "4 of 30 requests found no store, in 1 stalls: kill loop allows 3, because processes die")
	var strict audit.Ledger
	strict.Asked(calm)
	strict.Unavailable(calm, "503 of a payment", noon, 5*time.Second)
	if broken := strict.Broken(); len(broken) != 2 || !strings.Contains(broken[0], "1 of 1") || !strings.Contains(broken[1], "503 of a payment") {
		t.Errorf("%q", broken)
	}
}

// An emulator that stalls meets all requests that are under way: that is one stall, however many they are. More stalls than a few are
// something else.
func TestAStallCountsOnce(t *testing.T) {
	calm := audit.Suite{Name: "without faults", Stalls: 2, Why: "an emulator stalls"}
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var l audit.Ledger
	for range 100 {
		l.Asked(calm)
	}
	for i := range 40 {
		l.Unavailable(calm, "", noon.Add(time.Duration(i*7%40)*200*time.Millisecond), time.Second) // answers come in any order
	}
	l.Unavailable(calm, "", noon.Add(-time.Second), 4*time.Second)
	l.Unavailable(calm, "", noon.Add(time.Minute), 4*time.Second)
	none(t, l.Broken())
	if text := l.String(); !strings.Contains(text, "42 without a store in 2 stalls (at most 2 stalls)") {
		t.Error(text)
	}
	l.Unavailable(calm, "", noon.Add(2*time.Minute), 4*time.Second)
	one(t, l.Broken(), "43 of 100 requests found no store, in 3 stalls: without faults allows 2 stalls, because an emulator stalls")
}

// Where no fault is injected, an engine that gives up at once is not told from a stall by how often it does: by how soon. An open circuit
// breaker alone answers so, after the stall that has opened it.
func TestAnAnswerThatIsThereTooSoonIsNoStall(t *testing.T) {
	calm := audit.Suite{Name: "without faults", Stalls: 10, Why: "an emulator stalls"}
	shops := audit.Suite{Name: "shops", Stalls: 10, Breaker: true, Why: "an emulator stalls"}
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		of    audit.Suite
		began time.Duration // after the stall's
		want  string        // "" = nothing is broken
	}{
		"a minute after a stall":             {calm, time.Minute, "without faults: after 999ms, which is no stall: 503 of a transfer"},
		"during a stall":                     {calm, 5 * time.Second, "without faults: after 999ms, which is no stall: 503 of a transfer"},
		"with a breaker, after it opened":    {shops, 5 * time.Second, ""},
		"with a breaker, at once":            {shops, 0, ""},
		"with a breaker, before the stall":   {shops, -5 * time.Second, "shops: after 999ms, which is no stall: 503 of a transfer"},
		"with a breaker that is shut by now": {shops, 11 * time.Second, "shops: after 999ms, which is no stall: 503 of a transfer"},
	} {
		for _, promptFirst := range []bool{false, true} { // answers come in any order
			t.Run(fmt.Sprintf("%s, heard first: %t", name, promptFirst), func(t *testing.T) {
				var l audit.Ledger
				l.Asked(c.of)
				prompt := func() { l.Unavailable(c.of, "503 of a transfer", noon.Add(c.began), 999*time.Millisecond) }
				if promptFirst {
					prompt()
				}
				l.Unavailable(c.of, "503 of a payment", noon, time.Second)
				if !promptFirst {
					prompt()
				}
				if c.want == "" {
					none(t, l.Broken())
				} else {
					one(t, l.Broken(), c.want)
				}
			})
		}
	}
}
