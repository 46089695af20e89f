package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/idem-go/idem-aws/bench/price"
)

var legend = fmt.Sprintf(`Calls to DynamoDB and what they consume, by path of a request. Every operation but the wrapped one writes
one business row; what a wrapped handler writes for itself is not counted.
W and R are write and read units by DynamoDB's documented rules, indexes included; "reported" is what the endpoint said,
which says nothing of a call that lost a condition. $ is the price of a million, on demand, us-east-1: %g W + %g R.
"record" is the record's size afterwards, in bytes. conflict: a duplicate while the first one runs; where there is no
lease (optimistic, deferred) both run, and the figures are the loser's.
`, price.Writes, price.Reads)

// render writes the rows as a table, by operation and response.
func render(out io.Writer, rows []row) error {
	if _, err := io.WriteString(out, legend); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var group string
	for _, r := range rows {
		if head := strings.TrimPrefix(r.operation, "bench.") + ", " + r.response; head != group {
			group = head
			fmt.Fprintf(w, "\n%s\trecords\tmessages\tindexes\tbusiness\tW\tR\t$\treported\trecord\tcalls\n", head)
		}
		u := r.ruled()
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%.3f\t%s\t%d\t%s\n", r.path, number(u.Records), number(u.Messages),
			number(u.Indexes), number(u.Business), number(u.Writes()), number(u.Reads), u.Dollars(), r.reported(), r.recordBytes, r.names())
	}
	return w.Flush()
}

func number(n float64) string {
	if n == 0 {
		return "."
	}
	return fmt.Sprint(n)
}

// reported sums up what the endpoint said; calls that it said nothing of are counted.
func (r row) reported() string {
	var reads, writes float64
	lost := 0
	for _, c := range r.calls {
		reads, writes = reads+c.ReportedReads, writes+c.ReportedWrites
		if c.Lost {
			lost++
		}
	}
	var parts []string
	if writes > 0 {
		parts = append(parts, fmt.Sprintf("%gW", writes))
	}
	if reads > 0 {
		parts = append(parts, fmt.Sprintf("%gR", reads))
	}
	if lost > 0 {
		parts = append(parts, fmt.Sprintf("%d lost", lost))
	}
	return strings.Join(parts, " ")
}

func (r row) names() string {
	names := make([]string, len(r.calls))
	for i, c := range r.calls {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}
