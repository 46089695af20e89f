package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/idem/outbox"
)

// SweepError says that a sweep could not deal with all that it came to. Each error is in the log of the outbox. What the sweep did is done, and
// what it could not do is due still.
type SweepError struct {
	// Report is what it did, and how much of it failed.
	Report outbox.Report
}

func (e *SweepError) failed() int { return e.Report.Messages.Errors + e.Report.Records.Errors }

// OfOtherRelease says that all that failed was written by another release, which can deal with it.
func (e *SweepError) OfOtherRelease() bool {
	failed := e.failed()
	return failed > 0 && e.Report.Messages.OtherRelease+e.Report.Records.OtherRelease == failed
}

// Error implements error.
func (e *SweepError) Error() string {
	failed := e.failed()
	if e.OfOtherRelease() {
		return fmt.Sprintf("operator: the sweep came to %d that another release wrote, and left them as they are. In all: %s", failed, InWords(asOutcome(e.Report)))
	}
	return fmt.Sprintf("operator: %d of what the sweep came to could not be listed or dealt with; the log has each error. In all: %s", failed, InWords(asOutcome(e.Report)))
}

// Sweep looks now at everything that is due, as the schedule does every minute. It is a [*SweepError] where a part of that failed.
func (d *Desk) Sweep(ctx context.Context, ch Change) (Result, error) {
	return d.carry(ctx, ch, action{
		name: "sweep", subject: "all", would: "offer, cancel and park what is due", judge: d.listable,
		act: func(ctx context.Context) (string, error) {
			did, err := d.runner.Sweep(ctx)
			switch {
			case err != nil:
				return "", err
			case did.Messages.Errors > 0 || did.Records.Errors > 0:
				return "", &SweepError{did}
			}
			return asOutcome(did), nil
		},
	})
}

// asOutcome is a report as the audit log keeps it.
func asOutcome(did outbox.Report) string {
	said, err := json.Marshal(did)
	if err != nil { // counts always encode
		panic(err)
	}
	return string(said)
}

// InWords is the outcome of a change for a person: the counts of a sweep, whose outcome is an [outbox.Report] as JSON, in words. Any other
// outcome stays as it is.
func InWords(outcome string) string {
	var counts map[string]map[string]any
	if json.Unmarshal([]byte(outcome), &counts) != nil || counts["messages"] == nil || counts["records"] == nil {
		return outcome
	}
	var words []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		for _, did := range slices.Sorted(maps.Keys(counts[what])) {
			switch n := counts[what][did].(type) {
			case float64:
				words = append(words, fmt.Sprintf("%s %s: %d", what, strings.ReplaceAll(did, "_", " "), int(n)))
			case bool: // of unfinished
				words = append(words, "more "+what+" are due")
			default:
				return outcome
			}
		}
	}
	if len(words) == 0 {
		return "nothing was due"
	}
	return strings.Join(words, ", ")
}
