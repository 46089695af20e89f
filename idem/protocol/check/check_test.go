//go:build prove

package check

import "testing"

func TestEveryScenarioHoldsWithAllRules(t *testing.T) {
	for _, sc := range Scenarios() {
		t.Run(sc.Name, func(t *testing.T) {
			if r := Explore(sc, 0); r.Violation != "" {
				t.Errorf("%s: %v", r.Violation, r.Story)
			}
		})
	}
}
