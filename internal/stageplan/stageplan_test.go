package stageplan_test

import (
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/stageplan"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"prod", "staging-2", "p", strings.Repeat("a", 20)} {
		if err := stageplan.CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"": "STAGE=prod", "run": ".local/run.env", "Prod": "lower-case", "../prod": "lower-case", "1st": "lower-case",
		strings.Repeat("a", 21): "up to 19",
	} {
		if err := stageplan.CheckName(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", name, err, want)
		}
	}
}
