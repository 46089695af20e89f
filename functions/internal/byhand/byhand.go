// Package byhand counts what people change with idemctl or its console. These write their log lines to the operator's terminal, where no
// metric is made of a line, and each change to the audit log. So the sweep reads that log, and writes the lines that the alarms
// OutboxRedriven and OutboxClosed count.
package byhand

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

const (
	// LookBack is how old an entry may be that is still told of: for so long the sweep may fail, or a person's clock be behind.
	LookBack = 15 * time.Minute
	// ClockAhead is how far a person's clock may be ahead.
	ClockAhead = time.Minute
	// EntriesMax bounds the entries that a run reads, the newest ones.
	EntriesMax = 100
	// openFor is for how long a change may be under way. One that has no end after that may have happened.
	openFor = time.Minute
)

// Watch tells of each change once. Another process, or this one started anew, tells of those of the last LookBack again. It is not safe
// for concurrent use.
type Watch struct {
	Audit  operator.AuditLog
	Logger *slog.Logger
	Now    func() time.Time

	// told are the entries of the last run that have their line.
	told map[string]bool
}

// Run looks at the entries of the last LookBack.
func (w *Watch) Run(ctx context.Context) error {
	now := w.Now()
	entries, err := w.Audit.Entries(ctx, now.Add(-LookBack), now.Add(ClockAhead), "", EntriesMax)
	if err != nil {
		return fmt.Errorf("count changes by hand: %w", err)
	}
	w.forget(entries)
	for _, e := range entries {
		if w.told[e.ID] || e.State == operator.EntryRefused || e.State == operator.EntryIntended && now.Sub(e.At) < openFor {
			continue
		}
		switch e.Action {
		case "redrive":
			w.tell(ctx, metric.OutboxRedriven, e)
		case "close":
			w.tell(ctx, metric.OutboxClosed, e)
		}
	}
	return nil
}

// tell writes the line of a change.
func (w *Watch) tell(ctx context.Context, line string, e operator.Entry) {
	w.told[e.ID] = true
	w.Logger.ErrorContext(ctx, line, "alarm", true, "message_id", e.Subject, "tenant", e.Tenant, "entry", e.ID, "actor", e.Actor, "at", e.At, "state", e.State)
}

// forget drops the entries that are not read any more.
func (w *Watch) forget(read []operator.Entry) {
	told := map[string]bool{}
	for _, e := range read {
		if w.told[e.ID] {
			told[e.ID] = true
		}
	}
	w.told = told
}
