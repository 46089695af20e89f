package audit_test

import (
	"strings"
	"testing"

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
	for range 30 {
		l.Asked(calm)
		l.Asked(kill)
	}
	for range 3 {
		l.Unavailable(kill, "")
		l.Again(kill)
	}
	none(t, l.Broken())
	if text := l.String(); !strings.Contains(text, "30 requests,    3 without a store (at most 3),    3 sent again") {
		t.Error(text)
	}
	l.Unavailable(kill, "")
	one(t, l.Broken(), "4 of 30 requests found no store: kill loop allows 3, because processes die")
	var strict audit.Ledger
	strict.Asked(calm)
	strict.Unavailable(calm, "503 of a payment")
	if broken := strict.Broken(); len(broken) != 2 || !strings.Contains(broken[0], "1 of 1") || !strings.Contains(broken[1], "503 of a payment") {
		t.Errorf("%q", broken)
	}
}
