package conform

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
)

// check is one question to the service.
type check struct {
	name, clause string
	ask          func(*session) (finding, error)
}

// checks are in the order in which a reader wants to know.
func checks() []check {
	return []check{
		{"first", "a new key executes, and says so", first},
		{"replay", "the same key replays the same answer, byte for byte", replay},
		{"expires", "a final answer says until when its key answers, and a replay says the same", expires},
		{"respelled", "a JSON body counts in canonical form", respelled},
		{"bare_key", "a bare key is the quoted one, unless the policy is strict or opaque", bareKey},
		{"other_payload", "another payload under the same key gets what the policy says, and the first answer stays", otherPayload},
		{"other_query", "another query under the same key is another request, unless the route leaves it out", otherQuery},
		{"missing_key", "a missing key gets what the policy says", missingKey},
		{"empty_key", "an empty key gets what the policy says", emptyKey},
		{"invalid_key", "a key that is none is refused with 400", invalidKey},
		{"two_keys", "two lines of the header are refused with 400", twoKeys},
		{"in_flight", "of requests at the same moment one executes; each gets the policy's answer, and in the end the same one", inFlight},
		{"invalid_body", "a body that can't be read is refused with 400, and its key stays free", invalidBody},
		{"duplicate_names", "a JSON object with a name twice is refused with 400", duplicateNames},
		{"first_sent_invalid", "a first-sent time that can't be read, or is in the future, is refused with 400", firstSentInvalid},
		{"first_sent_old", "a request that was first sent before the retention, and has no record, gets 412", firstSentOld},
		{"first_sent_live", "a live record wins over a first-sent time that is too old", firstSentLive},
		{"no_credentials", "without credentials nothing is answered, replays neither, and the key stays free", noCredentials},
		{"other_tenant", "another tenant's key is another key", otherTenant},
		{"retry_after", "each 202, 409 and 503 says when to come back", retryAfter},
		{"no_echo", "no error contains the key", noEcho},
	}
}

// Check asks the target everything, one check after the other. An error means that the target could not be asked to the end, or that it is
// refused ([*idem.ConfigError]); the report has what was found before.
func Check(ctx context.Context, t Target) (Report, error) {
	t, err := t.filled()
	if err != nil {
		return Report{}, err
	}
	var run [5]byte
	if _, err := io.ReadFull(t.Random, run[:]); err != nil {
		return Report{}, fmt.Errorf("conform: make keys: %w", err)
	}
	s := &session{Target: t, ctx: ctx, run: hex.EncodeToString(run[:])}
	report := Report{Policy: t.Policy.Name, Findings: []Finding{}}
	for _, c := range checks() {
		found, err := c.ask(s)
		report.Requests, report.Executed = s.requests, s.executed
		if err != nil {
			return report, fmt.Errorf("%s: %w", c.name, err)
		}
		report.Findings = append(report.Findings, Finding{Check: c.name, Clause: c.clause, Verdict: found.verdict, Saw: found.saw})
	}
	return report, nil
}

// retryAfter and noEcho are about every answer of the run.
func retryAfter(s *session) (finding, error) {
	if len(s.bare) == 0 {
		return holds(), nil
	}
	if s.Foreign {
		return notTold("%d answers without Retry-After, as %s", len(s.bare), s.bare[0]), nil
	}
	return differs("%d answers without Retry-After, as %s", len(s.bare), s.bare[0]), nil
}

func noEcho(s *session) (finding, error) {
	if len(s.echoes) > 0 {
		return differs("%s", slices.Min(s.echoes)), nil
	}
	return holds(), nil
}
