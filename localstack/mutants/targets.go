package mutants

import (
	_ "embed"
	"fmt"
	"strings"
)

// Targets are the packages that are changed by rule.
func Targets() []Target {
	return []Target{
		{"idem/protocol", ofProtocol},
		{"idem/dynamo", ofStore},
		{"idem/canonical", ofFingerprint},
		{"idem/webhook", ofWebhook},
		{"idem/quota", ofQuota},
		{"idem/outbox/call", ofCall},
	}
}

// accepted are the survivors among generated mutants that were looked at: the name, and on the next line, indented, why no test can
// notice.
//
//go:embed accepted.txt
var accepted string

// Accepted are survivors among generated mutants with the reason, by name.
func Accepted() (map[string]string, error) { return parseAccepted(accepted) }

func parseAccepted(text string) (map[string]string, error) {
	reasons := map[string]string{}
	name := ""
	for number, line := range strings.Split(text, "\n") {
		reason := strings.TrimSpace(line)
		switch indented := strings.HasPrefix(line, "\t"); {
		case reason == "":
		case indented && name != "":
			reasons[name], name = reason, ""
		case indented || name != "":
			return nil, fmt.Errorf("mutants: accepted.txt, line %d: each name needs one reason, on the next line and indented", number+1)
		default:
			name = line
		}
	}
	if name != "" {
		return nil, fmt.Errorf("mutants: accepted.txt: %q has no reason", name)
	}
	return reasons, nil
}
