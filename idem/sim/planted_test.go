//go:build prove

package sim

import (
	"testing"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/protocol/check"
)

func TestPlanted(t *testing.T) {
	defer func() { protocol.Planted = protocol.Rules{} }()
	for _, m := range check.Mutations() {
		if m.Change != nil {
			continue // it changes an assumption of a scenario, and no rule
		}
		protocol.Planted = m.Off
		steps, found := 0, false
		for seed := uint64(0); seed < *stories && !found; seed++ {
			story := tell(t, seed, nil, false)
			steps += story.Steps
			if found = len(story.Broken) > 0; found {
				t.Logf("%7d steps, seed %d: %s: %s", steps, seed, m.Name, story.Broken[0])
			}
		}
		if !found {
			t.Logf("%7d steps in vain: %s %s", steps, m.Name, m.Redundant)
		}
	}
}
