package stack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCollectorCountsAndKeepsWhatFailed(t *testing.T) {
	c := collector{output: map[string][]string{}}
	for line := range strings.Lines(`{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"fine\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"wrong\n"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Output":"FAIL p\n"}
{"Action":"fail","Package":"p"}
{"ImportPath":"q","Action":"build-output","Output":"q.go:1: no\n"}
{"ImportPath":"q","Action":"build-fail"}
go: something else
`) {
		c.take([]byte(strings.TrimSpace(line)))
	}
	if want := (tally{passed: 1, failed: 1, skipped: 1}); c.tally != want {
		t.Errorf("tally = %v, want %v", c.tally, want)
	}
	got, want := strings.Join(c.failed, ""), "wrong\nskipped: p TestC\nFAIL p\nq.go:1: no\ngo: something else\n"
	if got != want {
		t.Errorf("kept:\n%swant:\n%s", got, want)
	}
}

// A lane whose pattern matches no test any more is not green.
func TestALaneWithoutTestsFails(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module x\n\ngo 1.26.0\n", "x_test.go": "package x\n\nimport \"testing\"\n\nfunc TestX(*testing.T) {}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, fails := range map[string]bool{"^TestX$": false, "^TestRenamed$": true} {
		run := testRun{directory: folder, environment: []string{"GOWORK=off"}, arguments: []string{"-run", pattern, "./..."},
			events: filepath.Join(folder, "events", "x.json")}
		if counted, err := goTest(t.Context(), run); (err != nil) != fails || counted.processor <= 0 {
			t.Errorf("%s: %v in %s, %v", pattern, counted, counted.processor, err)
		}
		if told, err := os.ReadFile(run.events); err != nil || strings.Contains(string(told), `"Test":"TestX","Elapsed"`) == fails {
			t.Errorf("%s: %v, kept:\n%s", pattern, err, told)
		}
	}
}
