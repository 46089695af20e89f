package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
)

// nothing are the counts of a report that are zero: what did not happen.
var nothing = regexp.MustCompile(` ?\w+:(0|false)| ?\w+:\{\}`)

// render writes the stages as a table. W and R are write and read units as the endpoint reports them, indexes included.
func render(out io.Writer, rows int, stages []stage) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d rows, %d of them stuck\tdid\tR\tW\tcalls\n", rows, stuckRecords+stuckMessages)
	for _, s := range stages {
		fmt.Fprintf(w, "  %s\t%s\t%g\t%g\t%s\n", s.name, s.brief(), s.reads, s.writes, s.told())
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// brief is the report without what did not happen.
func (s stage) brief() string {
	did := s.did
	for range 2 { // what is left of a group, once its counts are gone
		did = strings.ReplaceAll(nothing.ReplaceAllString(did, ""), "{ ", "{")
	}
	return strings.TrimSuffix(strings.TrimPrefix(did, "{"), "}")
}
