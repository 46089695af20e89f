package audit_test

import (
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/localstack/audit"
)

// An audit that had nothing before it fails the run, and says which one it was; a run of one small test may have nothing.
func TestAnAuditThatSawNothingFailsTheRun(t *testing.T) {
	whole := audit.Seen{
		Answers: audit.AnswerCounts{Keys: 300, Executed: 250, Pending: 200, Final: 240, Stored: 150}, Tenants: audit.TenantCounts{IDs: 700, Foreign: 8, Rows: 90},
		Writes: audit.WriteCounts{Rows: 300, Writes: 900, Steps: 600, FromUnknown: 5}, Messages: 100, Whole: true,
	}
	for name, c := range map[string]struct {
		change func(*audit.Seen)
		want   []string
	}{
		"all":                           {func(*audit.Seen) {}, nil},
		"records under other keys":      {func(s *audit.Seen) { s.Answers.Stored = 0 }, []string{"I4: "}},
		"messages of other records":     {func(s *audit.Seen) { s.Tenants.Rows = 0 }, []string{"I5: "}},
		"ids under another name":        {func(s *audit.Seen) { s.Tenants.IDs = 0 }, []string{"I5: "}},
		"nobody asks for another's":     {func(s *audit.Seen) { s.Tenants.Foreign = 0 }, []string{"I5: "}},
		"some tests, nobody does":       {func(s *audit.Seen) { s.Tenants.Foreign, s.Whole = 0, false }, nil},
		"no journal":                    {func(s *audit.Seen) { s.Writes = audit.WriteCounts{} }, []string{"I7, I8: ", "I7: "}},
		"states under another name":     {func(s *audit.Seen) { s.Writes.FromUnknown = 0 }, []string{"I7: "}},
		"some tests, nothing unknown":   {func(s *audit.Seen) { s.Writes.FromUnknown, s.Whole = 0, false }, nil},
		"transfers only":                {func(s *audit.Seen) { s.Tenants.Rows, s.Messages = 0, 0 }, nil},
		"one test that is refused only": {func(s *audit.Seen) { *s = audit.Seen{Answers: audit.AnswerCounts{Keys: 30}} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			seen := whole
			c.change(&seen)
			broken := seen.Nothing()
			if len(broken) != len(c.want) {
				t.Fatalf("%q, want %q", broken, c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(broken[i], want) {
					t.Errorf("%q, want %q", broken[i], want)
				}
			}
		})
	}
}
