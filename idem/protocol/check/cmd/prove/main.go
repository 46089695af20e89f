//go:build prove

// Command prove explores the machines of idem/protocol: every scenario with all rules, then with each rule removed.
//
//	go run -tags prove ./idem/protocol/check/cmd/prove [-run name] [-large] [-rules] [-stories=false]
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/idem-go/idem-aws/idem/protocol/check"
)

func main() {
	only := flag.String("run", "", "only scenarios whose name contains this, and rules of those scenarios or with such a name")
	large := flag.Bool("large", false, "scenarios with one more fault and two more units of time: measured at 14 minutes on two cores, and 8.5 GiB")
	rules := flag.Bool("rules", false, "only with a rule removed")
	stories := flag.Bool("stories", true, "print the story of each rule")
	flag.Parse()
	failed, explored := false, 0
	byName := map[string]check.Scenario{}
	for _, sc := range check.Scenarios() {
		byName[sc.Name] = sc
		if *rules || !strings.Contains(sc.Name, *only) {
			continue
		}
		if *large {
			sc = sc.Enlarged()
		}
		explored++
		r := check.Explore(sc, check.Mutation{}.Off)
		failed = failed || r.Violation != "" || r.Truncated
		tell("", sc.Name, r, true)
	}
	for _, m := range check.Mutations() {
		if *large || !strings.Contains(m.Scenario, *only) && !strings.Contains(m.Name, *only) {
			continue
		}
		explored++
		r := check.Explore(m.In(byName[m.Scenario]), m.Off)
		failed = failed || (r.Violation == "") != (m.Redundant != "")
		tell(m.Name, m.Scenario, r, *stories)
	}
	if explored == 0 {
		fmt.Fprintf(os.Stderr, "prove: nothing was explored: no scenario and no rule has %q in its name\n", *only)
		failed = true
	}
	if failed {
		os.Exit(1)
	}
}

// tell prints what an exploration found.
func tell(rule, scenario string, r check.Report, story bool) {
	verdict := r.Violation
	if verdict == "" {
		verdict = "holds"
	}
	if r.Truncated {
		verdict += " (truncated)"
	}
	if rule != "" {
		fmt.Printf("If %s:\n  ", rule)
	}
	fmt.Printf("%-40s %8d states %9d transitions depth %2d %6.1fs %5d MiB  %s\n", scenario, r.States, r.Transitions, r.Depth, r.Took.Seconds(), r.HeapMiB, verdict)
	if !story {
		return
	}
	for k, line := range r.Story {
		fmt.Printf("   %2d. %s\n", k+1, line)
	}
}
