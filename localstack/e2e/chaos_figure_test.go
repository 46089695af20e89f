//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// figures are what the kill loop counts, by table and line.
type figures struct {
	mu     sync.Mutex
	tables map[string]map[string]int
}

// The tables, in the order in which they are printed.
const (
	tableRequests   = "what clients sent and got"
	tableKills      = "processes killed, and more"
	tableProvider   = "faults that the provider served"
	tableDynamoDB   = "faults on the way to DynamoDB"
	tableRetries    = "what was sent again"
	tableLogs       = "what the functions logged"
	tableOperations = "operations, by answer"
	tableSpans      = "time, in ms"
	tableQueue      = "before an operator"
	tableChecks     = "checks"
)

var tables = []string{
	tableRequests, tableKills, tableProvider, tableDynamoDB, tableRetries, tableLogs, tableOperations, tableSpans, tableQueue, tableChecks,
}

// add counts n more.
func (f *figures) add(table, line string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tables == nil {
		f.tables = map[string]map[string]int{}
	}
	if f.tables[table] == nil {
		f.tables[table] = map[string]int{}
	}
	f.tables[table][line] += n
}

// spans adds how many there were of something that takes time, and the longest.
func (f *figures) spans(what string, all []time.Duration) {
	if len(all) > 0 {
		f.add(tableSpans, fmt.Sprintf("%s, the longest of %d", what, len(all)), int(max(0, slices.Max(all)).Milliseconds()))
	}
}

// sum of the lines of a table that begin like this.
func (f *figures) sum(table, prefix string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for line, counted := range f.tables[table] {
		if strings.HasPrefix(line, prefix) {
			n += counted
		}
	}
	return n
}

func (f *figures) print(out *progress.Printer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, table := range tables {
		if len(f.tables[table]) == 0 {
			continue
		}
		out.Line("%s", table)
		for _, line := range slices.Sorted(maps.Keys(f.tables[table])) {
			out.Line("  %-84s %7d", line, f.tables[table][line])
		}
	}
}

// logged are the lines that are counted: what became of messages, and what reconciler and sweep did.
var logged = []string{
	"idempotency.reconcile.scheduled", "idempotency.reconcile.resolved", "idempotency.reconcile.failed", "idempotency.zombie_key",
	"idempotency.store.error", "outbox.offered", "outbox.retried", "outbox.unknown", "outbox.dead", "outbox.abandoned",
	"outbox.claim_lost", "outbox.evidence_late", "webhook.received", "outbox.evidence_differs", "outbox.panic",
}

// readLogs counts what the functions have logged since a time. A killed process has logged what it did before.
func (f *figures) readLogs(ctx context.Context, since time.Time) error {
	for name, function := range deployed.variables {
		if !strings.HasPrefix(name, "FUNCTION_") {
			continue
		}
		lines, err := logOf(ctx, function)
		if err != nil {
			return err
		}
		for _, line := range lines {
			var entry struct {
				Time time.Time `json:"time"`
				Msg  string    `json:"msg"`
			}
			if json.Unmarshal([]byte(line), &entry) == nil && !entry.Time.Before(since) && slices.Contains(logged, entry.Msg) {
				f.add(tableLogs, entry.Msg, 1)
			}
		}
	}
	return nil
}

// ages are how long the messages of this run took from their making to their end.
func (f *figures) ages(messages []item, since time.Time) {
	all := map[bool][]time.Duration{}
	for _, m := range messages {
		if made, done := number(m, schema.CreatedAt), number(m, schema.DoneAt); made >= since.UnixMilli() && done > 0 {
			all[ignoresKeys(m)] = append(all[ignoresKeys(m)], time.Duration(done-made)*time.Millisecond)
		}
	}
	f.spans("age of a message at its end, keyed", all[false])
	f.spans("age of a message at its end, keyless", all[true])
}
