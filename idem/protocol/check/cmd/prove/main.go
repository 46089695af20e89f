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
	only := flag.String("run", "", "only scenarios whose name contains this, and rules of those scenarios")
	large := flag.Bool("large", false, "the large scenarios too")
	flag.Parse()
	failed := false
	for _, sc := range check.Scenarios() {
		if !strings.Contains(sc.Name, *only) || sc.Large && !*large {
			continue
		}
		r := check.Explore(sc, 0)
		verdict := "holds"
		if r.Violation != "" {
			verdict, failed = r.Violation, true
		}
		if r.Truncated {
			verdict += " (truncated)"
		}
		fmt.Printf("%-45s %9d states %10d transitions depth %2d %6.1fs %5d MiB  %s\n", sc.Name, r.States, r.Transitions, r.Depth, r.Took.Seconds(), r.HeapMiB, verdict)
		for k, line := range r.Story {
			fmt.Printf("   %2d. %s\n", k+1, line)
		}
	}
	if failed {
		os.Exit(1)
	}
}
