package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/idem-go/idem-aws/bench/price"
	"github.com/idem-go/idem-aws/infra/spec"
)

func writeJSON(out io.Writer, p Plan) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(p)
}

// sheet writes sections of aligned columns. The first error is kept.
type sheet struct {
	out     io.Writer
	rows    strings.Builder
	columns *tabwriter.Writer
	err     error
}

func (s *sheet) text(format string, arguments ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.out, format+"\n", arguments...)
	}
}

func (s *sheet) head(title string, columns ...string) {
	s.text("\n%s", title)
	s.rows.Reset()
	s.columns = tabwriter.NewWriter(&s.rows, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(columns) > 0 {
		s.row(columns...)
	}
}

// row right-aligns all but the first cell.
func (s *sheet) row(cells ...string) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.columns, "%-*s\t%s\t\n", nameWidth, cells[0], strings.Join(cells[1:], "\t"))
	}
}

// flush writes the rows, without the blanks of empty cells at their ends.
func (s *sheet) flush() {
	if s.err == nil {
		s.err = s.columns.Flush()
	}
	for row := range strings.Lines(s.rows.String()) {
		s.text("%s", strings.TrimRight(row, " \n"))
	}
}

// nameWidth holds every name of a row.
const nameWidth = 50

func writeText(out io.Writer, p Plan) error {
	s := &sheet{out: out}
	s.traffic(p.Traffic)
	s.units(p)
	s.throughput(p)
	s.lambda(p)
	s.quotas(p)
	s.costs(p)
	s.limits(p)
	return s.err
}

func (s *sheet) traffic(t Traffic) {
	s.text("%s payments/s; for each %s replays, %s look-ups, %s webhooks. Outbox by %s.", figure(t.Rate), figure(t.Replays), figure(t.Polls), figure(t.Webhooks), t.Outbox)
	s.text("In use: tenants %s, API keys %s, each held by a process of the authorizer for a minute.", figure(t.Tenants), figure(t.Keys))
	s.text("Everything is planned to be used to %s %%. Assumed latencies, not measured on AWS: api %s,", figure(t.Utilisation*100), t.API)
	s.text("authorizer %s, worker %s (a batch's slowest call to the provider), webhook %s, relay %s.", t.Authorizer, t.Worker, t.Webhook, t.Relay)
}

func (s *sheet) units(p Plan) {
	s.head("DynamoDB units by path (units of one from "+costFile+")", "", "W each", "R each", "times/s", "W/s", "R/s")
	var writes, reads float64
	for _, of := range p.Paths {
		if of.PerSecond == 0 {
			continue
		}
		s.row(of.Name, figure(of.Units.Writes()+of.Ledger), figure(of.Units.Reads), figure(of.PerSecond), figure(of.Writes), figure(of.Reads))
		writes, reads = writes+of.Writes, reads+of.Reads
	}
	s.row("all", "", "", "", figure(writes), figure(reads))
	s.flush()
}

func (s *sheet) throughput(p Plan) {
	s.head("Tables (1,000 W/s and 3,000 R/s a partition; while the drift job compares: R/s in bursts)", "", "W/s", "R/s", "in bursts", "partitions")
	for _, of := range p.Tables {
		s.row(of.Name, figure(of.Writes), figure(of.Reads), figure(of.ReadsAtOnce), figure(of.Partitions))
	}
	s.flush()
	s.head("Indexes (a shard is a partition)", "", "W/s", "R/s", "shards", "deployed")
	for _, of := range p.Indexes {
		s.row(of.Name, figure(of.Writes), figure(of.Reads), figure(of.Shards), figure(float64(of.Has)))
	}
	s.flush()
	s.head("Mappings (at once: batches of all shards)", "", "records/s", "shards", "at once", "batch", "carries/s")
	for _, of := range p.Mappings {
		shards := "-"
		if of.Sources > 0 {
			shards = figure(of.Sources)
		}
		s.row(of.Name, figure(of.PerSecond), shards, figure(of.Parallel), figure(of.Batch), figure(of.Carries))
	}
	s.flush()
}

func (s *sheet) lambda(p Plan) {
	s.head("Lambda", "", "invocations/s", "MiB", "executions", "planned")
	for _, of := range p.Functions {
		s.row(of.Name, figure(of.PerSecond), figure(of.MemoryMiB), figure(of.Concurrency), figure(of.Planned))
	}
	s.row("sweep, reconcile", "", "", "", figure(scheduled(p)))
	s.flush()
}

func (s *sheet) quotas(p Plan) {
	s.head("Quotas of the account (sources: docs/platform.md)", "", "default", "needed", "")
	for _, of := range p.Quotas {
		verdict := ""
		if of.Raise {
			verdict = "raise"
		}
		s.row(of.Name, figure(of.Default), figure(of.Needed), verdict)
	}
	s.flush()
}

func (s *sheet) costs(p Plan) {
	s.head("A month at this rate, at list prices of us-east-1 (bench/price)", "", "quantity", "$")
	for _, of := range p.Costs {
		s.row(of.What, figure(of.Quantity), figure(math.Round(of.Dollars)))
	}
	s.total(p, "all; without storage, alarms, KMS and traffic", p.Dollars)
	s.flush()
	s.head("The same with provisioned tables, used to "+figure(p.Traffic.Utilisation*100)+" % all month", "", "quantity", "$")
	for _, of := range p.Provisioned {
		s.row(of.What, figure(of.Quantity), figure(math.Round(of.Dollars)))
	}
	s.row("what is not DynamoDB's, as above", "", figure(math.Round(p.Dollars-p.Costs[writesCost].Dollars-p.Costs[readsCost].Dollars)))
	s.total(p, "all", p.ProvisionedDollars)
	s.flush()
	if p.ProvisionedContexts == nil {
		s.text("\nThe stack takes no such range: it is at most %s payments/s of its own mix.", figure(spec.OperationsMax))
		return
	}
	s.text("\nWith provisioned tables, instead of the warmThroughput below:")
	s.lines(p.ProvisionedContexts)
}

// lines are contexts, one a line.
func (s *sheet) lines(contexts map[string]any) {
	lines, err := contextsOf(contexts)
	if s.err == nil {
		s.err = err
	}
	for _, line := range lines {
		s.text("  %s", line)
	}
}

func (s *sheet) total(p Plan, of string, dollars float64) {
	s.row(of, "", figure(math.Round(dollars)))
	s.row("per million payments", "", fmt.Sprintf("%.2f", dollars/(p.Traffic.Rate*price.MonthSeconds)*1e6))
}

// provided is what has to be so, and is not told by the limits.
const provided = `, once the quotas of the account are raised.
Not counted: requests that wait (Prefer: wait), the quotas of KMS, and what the provider carries.`

func (s *sheet) limits(p Plan) {
	s.head("Limits of a stack that is deployed with outbox="+p.Traffic.Outbox+" and defaults, used to "+figure(p.Traffic.Utilisation*100)+" %", "", "payments/s", "")
	missing := 0
	for _, of := range p.Limits {
		verdict := ""
		if !of.Enough {
			verdict = "too little"
			missing++
		}
		s.row(of.What, figure(of.Carries), verdict)
	}
	s.flush()
	if missing == 0 {
		s.text("\nThe stack as deployed carries this rate%s", provided)
		return
	}
	s.text("\nThe stack as deployed does not carry this yet:")
	for _, of := range p.Limits {
		if !of.Enough {
			s.text("  %s carries %s payments/s:\n    %s", of.What, figure(of.Carries), of.Remedy)
		}
	}
	s.contexts(p)
}

// contexts are what to deploy with, and whether that is enough.
func (s *sheet) contexts(p Plan) {
	s.text("\nThese contexts, for the file of a stage with outbox=%s, raise what can be raised:", p.Traffic.Outbox)
	s.lines(p.Contexts)
	missing := 0
	for _, of := range p.WithContexts {
		if !of.Enough {
			s.text("\nIt still lacks: %s carries %s payments/s:\n    %s", of.What, figure(of.Carries), of.Remedy)
			missing++
		}
	}
	if missing == 0 {
		s.text("\nDeployed with them the stack carries this rate%s", provided)
	}
}

// figure has two decimals at most, none from 100 on, and commas between thousands.
func figure(n float64) string {
	if n < 100 {
		return strconv.FormatFloat(math.Round(n*100)/100, 'f', -1, 64)
	}
	digits := strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	var grouped []string
	for len(digits) > 3 {
		grouped = append([]string{digits[len(digits)-3:]}, grouped...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, grouped...), ",")
}
