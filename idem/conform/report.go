package conform

import "fmt"

// Verdict is what a check found.
type Verdict string

// The verdicts.
const (
	// Holds: the answers are what the clause says.
	Holds Verdict = "holds"
	// Differs: they are not.
	Differs Verdict = "differs"
	// NotTold: the service does not say enough to judge it, as one without this library's headers.
	NotTold Verdict = "not told"
	// Skipped: something is missing that the check needs, as another tenant's credentials.
	Skipped Verdict = "skipped"
)

// Finding is what a check found.
type Finding struct {
	// Check names the check. Names stay the same from release to release.
	Check string `json:"check"`
	// Clause is what the contract says, in short.
	Clause string `json:"clause"`
	// Verdict is one of the four.
	Verdict Verdict `json:"verdict"`
	// Saw says why it is no Holds.
	Saw string `json:"saw,omitempty"`
}

// Report is what all checks found.
type Report struct {
	// Policy is the name of the target's.
	Policy string `json:"policy"`
	// Findings has one of each check, in the order in which a reader wants to know.
	Findings []Finding `json:"findings"`
	// Requests is how many requests were sent, and Executed how many executions of the endpoint they may have caused: those that ought to
	// execute, and those whose answers do not show that they did not.
	Requests int `json:"requests"`
	Executed int `json:"executed"`
}

// Conforms says that nothing differs.
func (r Report) Conforms() bool {
	for _, f := range r.Findings {
		if f.Verdict == Differs {
			return false
		}
	}
	return true
}

// finding is the answer of a check.
type finding struct {
	verdict Verdict
	saw     string
}

func holds() finding { return finding{verdict: Holds} }

func differs(format string, values ...any) finding {
	return finding{Differs, fmt.Sprintf(format, values...)}
}

func notTold(format string, values ...any) finding {
	return finding{NotTold, fmt.Sprintf(format, values...)}
}

func skipped(why string) finding { return finding{Skipped, why} }

// all is the first finding that is not Holds; what differs comes before what is not told.
func all(findings ...finding) finding {
	found := holds()
	for _, f := range findings {
		if f.verdict == Differs {
			return f
		}
		if found.verdict == Holds {
			found = f
		}
	}
	return found
}
