//go:build prove

package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/protocol/check"
)

func TestPlanted(t *testing.T) {
	for _, m := range check.Mutations() {
		if m.Off == (protocol.Rules{}) {
			continue
		}
		if *only != "" && !strings.Contains(m.Name, *only) {
			continue
		}
		protocol.Planted = m.Off
		began := time.Now()
		steps := 0
		line := "NOT FOUND"
		for seed := *firstSeed; steps < *stepsLeast; seed++ {
			story := tell(t, seed, nil, false)
			steps += story.Steps
			if len(story.Broken) > 0 {
				line = fmt.Sprintf("seed %d: %s", seed, story.Broken[0])
				break
			}
		}
		fmt.Printf("%-90.90s %8d %6.1fs %s\n", m.Name, steps, time.Since(began).Seconds(), line)
	}
	protocol.Planted = protocol.Rules{}
}
