package stack

import (
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
