package telemetry

import (
	"log/slog"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// The units of the Embedded Metric Format that are used here.
const (
	unitCount        = "Count"
	unitMilliseconds = "Milliseconds"
)

// definition is a metric of a line.
type definition struct {
	Name string
	Unit string
	// attribute is the line's that holds the value; "" counts the line.
	attribute string
}

// metrics are those of each line, by its message.
var metrics = func() map[string][]definition {
	age := definition{metric.OutboxAge, unitMilliseconds, "age_ms"}
	all := map[string][]definition{
		metric.OutboxDelivered: {{metric.OutboxDelivered, unitCount, ""}, age},
		metric.OutboxDeclined:  {{metric.OutboxDeclined, unitCount, ""}, age},
		metric.OutboxDead: {
			{metric.OutboxDead, unitCount, ""}, {metric.OutboxDeadAge, unitMilliseconds, "age_ms"},
		},
		metric.ReconcileScheduled: {
			{metric.ReconcileScheduled, unitCount, ""}, {metric.OutboxUnknownAge, unitMilliseconds, "age_ms"},
		},
		metric.OutboxBacklog: {
			{metric.OutboxDue, unitCount, "due"}, {metric.OutboxDueAge, unitMilliseconds, "due_age_ms"},
			{metric.OutboxUnknownNow, unitCount, "unknown"}, {metric.OutboxDeadNow, unitCount, "dead"},
		},
	}
	for _, name := range []string{
		metric.ReserveCreated, metric.ReserveReplay, metric.ReserveInProgress, metric.ReserveKeyMisuse, metric.ReserveFailedRetry,
		metric.ReserveUnknown, metric.StoreError, metric.StoreRefused, metric.QuotaRejected, metric.Unprotected, metric.Observed, metric.ZombieKey,
		metric.ReconcileResolved, metric.ReconcileFailed, metric.RecordUnreadable,
		metric.RunMax, metric.SealNotAuthentic, metric.TimeoutShort, metric.WebhookContradicts, metric.WebhookFailed, metric.AuthDenied, metric.WebhookRefused,
		metric.DriftFound, metric.DriftFailed, metric.DriftLate, metric.SweepRun, metric.ReconcileRun, metric.DriftRun,
		metric.OutboxRetried, metric.OutboxUnauthorized, metric.OutboxUnsent, metric.OutboxUnknown, metric.OutboxAbandoned, metric.OutboxUnknownTopic, metric.OutboxEvidenced, metric.OutboxInlinePaused,
		metric.OutboxSettleFailed, metric.OutboxDeadLetterLost, metric.OutboxMessageGone, metric.OutboxEvidenceLate,
		metric.OutboxEvidenceDiffers, metric.OutboxEvidenceWeak, metric.OutboxRedriven, metric.OutboxClosed,
	} {
		all[name] = []definition{{name, unitCount, ""}}
	}
	return all
}()

// metadata is the member "_aws" (CloudWatch User Guide, "Specification: Embedded metric format").
type metadata struct {
	// Timestamp is in milliseconds since 1970.
	Timestamp         int64
	CloudWatchMetrics []directive
}

// directive tells CloudWatch which members of the line are metrics, and by which others it breaks them down.
type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []definition
}

// embed returns what makes a line a metric's: the metadata, then the members that it names. None, where the line has no
// metric.
func (h *Handler) embed(r slog.Record) []slog.Attr {
	found := metrics[r.Message]
	if len(found) == 0 || r.Time.IsZero() {
		return nil
	}
	told := directive{Namespace: h.cfg.Namespace, Dimensions: h.dimensions}
	members := make([]slog.Attr, 1, 2+len(found))
	if h.cfg.Service != "" {
		members = append(members, slog.String(metric.Service, h.cfg.Service))
	}
	for _, d := range found {
		if value, ok := d.value(r); ok {
			told.Metrics = append(told.Metrics, d)
			members = append(members, slog.Int64(d.Name, value))
		}
	}
	members[0] = slog.Any("_aws", metadata{r.Time.UnixMilli(), []directive{told}})
	return members
}

// value reads a metric from the line. An attribute that is no whole number is none.
func (d definition) value(r slog.Record) (value int64, ok bool) {
	if d.attribute == "" {
		return 1, true
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != d.attribute {
			return true
		}
		if v := a.Value.Resolve(); v.Kind() == slog.KindInt64 {
			value, ok = v.Int64(), true
		}
		return false
	})
	return value, ok
}
