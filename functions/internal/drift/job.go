package drift

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// WindowMax is the longest window of one run.
const WindowMax = 31 * 24 * time.Hour

// Config is what a Job reads, and by which rules it classifies. Client, the tables and ProviderURL are required.
type Config struct {
	Client                                       *dynamodb.Client
	IdempotencyTable, OutboxTable, PaymentsTable string
	// ProviderURL is an absolute http or https URL.
	ProviderURL string
	// Authorize puts the provider's credential on each request of a transport. Default: none is sent.
	Authorize func(http.RoundTripper) http.RoundTripper
	// ProviderTimeout bounds one call to the provider. Default 5 s.
	ProviderTimeout time.Duration
	// Window is how long the window is of which nobody says where it begins. Default 2 h, at most [WindowMax].
	Window time.Duration
	// Grace is how long before now a window ends at the latest: what is younger is on its way through indexes and
	// listings. Default 15 min. It must not be shorter than ListingDelay.
	Grace time.Duration
	// ListingDelay is the longest until what the provider has made is listed. Default 0.
	ListingDelay time.Duration
	// Retention is how long a final record answers; after it native TTL removes the record, and a day later its messages.
	// Rows older than that may have neither. Default 24 h.
	Retention time.Duration
	// WorkMax is how long a message may be worked on before it counts as stuck: the topics' AgeMax, and what a last attempt
	// takes. Default 25 h.
	WorkMax time.Duration
	// LedgerShards is how many partitions an hour of the ledger index has at least: where rows were written with more, those are read
	// too. Default table.LedgerShards.
	LedgerShards int
	// ObjectsMax is how many of the provider's objects wait for their rows in memory, about 400 bytes each. Default 50,000.
	ObjectsMax int
	// OlderReadsMax is how often [Job.CheckLast] reads the ledger's index for rows that are more than WorkMax older than their objects,
	// each time that it looks for some: such a row is of a message that an operator has redriven. With fewer shards than 7 that is a
	// month, where no hour of a shard has more than a megabyte of keys. What it does not find so counts as missing. Default 5,000, a minute or two. [Job.Check] reads a month always.
	OlderReadsMax int
	// Now is the clock, default time.Now. Pause waits, or returns the context's error; default a timer.
	Now   func() time.Time
	Pause func(context.Context, time.Duration) error
	// Logger gets a line for each drift, which is its metric, and one for each run. Default: none.
	Logger *slog.Logger
}

// Window is a span of creation times, From inclusive and To not.
type Window struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Tenant restricts the comparison to one tenant; objects of the provider that can't be attributed to any are left out
	// then. Default: all.
	Tenant string `json:"tenant,omitempty"`
}

// Job compares. It is safe for concurrent use.
type Job struct {
	cfg      Config
	tables   tables
	provider provider
}

// New checks the configuration, or returns an [*idem.ConfigError].
func New(cfg Config) (*Job, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	store, err := dynamo.New(cfg.Client, dynamo.Config{
		IdempotencyTable: cfg.IdempotencyTable, OutboxTable: cfg.OutboxTable, Translate: payments.Items(cfg.PaymentsTable, cfg.LedgerShards),
	})
	if err != nil {
		return nil, err
	}
	return &Job{
		cfg:      cfg,
		tables:   tables{cfg: cfg, store: store},
		provider: newProvider(strings.TrimRight(cfg.ProviderURL, "/"), cfg.ProviderTimeout, cfg.Authorize, cfg.Pause),
	}, nil
}

func (c Config) withDefaults() Config {
	c.ProviderTimeout = cmp.Or(c.ProviderTimeout, 5*time.Second)
	c.Window = cmp.Or(c.Window, 2*time.Hour)
	c.Grace = cmp.Or(c.Grace, 15*time.Minute)
	c.Retention = cmp.Or(c.Retention, 24*time.Hour)
	c.WorkMax = cmp.Or(c.WorkMax, 25*time.Hour)
	c.LedgerShards = cmp.Or(c.LedgerShards, table.LedgerShards)
	c.ObjectsMax = cmp.Or(c.ObjectsMax, 50_000)
	c.OlderReadsMax = cmp.Or(c.OlderReadsMax, 5_000)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Pause == nil {
		c.Pause = idem.Pause
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	broken := func(field string, value any, rule string) error {
		return &idem.ConfigError{Field: "Config." + field, Value: value, Rule: rule}
	}
	parsed, err := url.Parse(c.ProviderURL)
	switch {
	case c.Client == nil:
		return broken("Client", nil, "must be given")
	case c.IdempotencyTable == "" || c.OutboxTable == "" || c.PaymentsTable == "":
		return broken("IdempotencyTable, OutboxTable, PaymentsTable", c.IdempotencyTable+", "+c.OutboxTable+", "+c.PaymentsTable, "must be given")
	case err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https":
		return broken("ProviderURL", c.ProviderURL, "must be an absolute http or https URL")
	case c.ProviderTimeout < 0:
		return broken("ProviderTimeout", c.ProviderTimeout, "must not be negative")
	case c.Window < 0 || c.Window > WindowMax:
		return broken("Window", c.Window, fmt.Sprintf("must be above 0 and at most %v", WindowMax))
	case c.ListingDelay < 0:
		return broken("ListingDelay", c.ListingDelay, "must not be negative")
	case c.Grace < c.ListingDelay || c.Grace < 0:
		return broken("Grace", c.Grace, fmt.Sprintf("must be at least ListingDelay = %v", c.ListingDelay))
	case c.Retention < 0:
		return broken("Retention", c.Retention, "must not be negative")
	case c.ObjectsMax < 2:
		return broken("ObjectsMax", c.ObjectsMax, "must be 2 or more")
	case c.OlderReadsMax < 0:
		return broken("OlderReadsMax", c.OlderReadsMax, "must not be negative")
	case c.LedgerShards < 1 || c.LedgerShards > table.LedgerShardsMax:
		return broken("LedgerShards", c.LedgerShards, fmt.Sprintf("must be 1 to %d", table.LedgerShardsMax))
	case c.WorkMax < 0:
		return broken("WorkMax", c.WorkMax, "must not be negative")
	}
	return nil
}

// Check compares the window. A zero To is now less the grace, a zero From that less Config.Window; a To that is later than
// now less the grace is moved there, and the report says so. A window that can't be is an [*idem.ConfigError]. Rows that can't be
// read are an [*UnreadableError], with a report of all others. Any other error, the context's among them, comes with a report of
// what was compared before. With any error the report says that it is unfinished.
func (j *Job) Check(ctx context.Context, w Window) (Report, error) {
	now := j.cfg.Now()
	w, err := j.window(w, now)
	if err != nil {
		return notCompared(w), err
	}
	report, err := j.compare(ctx, newRun(j, w, now, j.tell(ctx)))
	if err == nil && report.Unreadable > 0 {
		err = &UnreadableError{report.Unreadable}
		report.Unfinished = true
	}
	if err != nil {
		j.cfg.Logger.ErrorContext(ctx, metric.DriftFailed, "error", err)
	}
	return report, err
}

// notCompared is the report of a window that can't be compared.
func notCompared(w Window) Report {
	r := newReport(w)
	r.Unfinished = true
	return r
}

// CheckLast compares the end of a window, and says where it stopped: the report's window begins there, and all of that is
// compared. It stops at the window's beginning, or at the first page after which enough says so; enough gets the number of rows so
// far. Findings whose [Drift.ID] is known are not reported again. What can't be read, or is not answered about, is in the report and
// in the log, and is no error. With an error nothing counts as compared, although findings are in the log. again says that the
// window's objects were compared before, in the days in which their messages were there: the rows of those whose messages and records
// are removed are not looked for again, unless data was lost.
func (j *Job) CheckLast(ctx context.Context, w Window, known []string, again bool, enough func(rows int) bool) (Report, error) {
	now := j.cfg.Now()
	w, err := j.window(w, now)
	if err != nil {
		return notCompared(w), err
	}
	r := newRun(j, w, now, j.tell(ctx), known...)
	r.enough, r.olderReadsMax, r.again = enough, j.cfg.OlderReadsMax, again
	report, err := j.compare(ctx, r)
	switch {
	case err != nil:
		j.cfg.Logger.ErrorContext(ctx, metric.DriftFailed, "error", err)
	case report.Unreadable > 0:
		j.cfg.Logger.ErrorContext(ctx, metric.DriftFailed, "error", &UnreadableError{report.Unreadable})
	}
	return report, err
}

// compare runs, and logs what it finds.
func (j *Job) compare(ctx context.Context, r *run) (Report, error) {
	var err error
	r.tables.ledgerShards, err = j.ledgerShards(ctx)
	if err == nil {
		r.rules.lost, err = j.tables.store.RefuseBefore(ctx)
	}
	if err == nil {
		err = r.all(ctx)
	}
	report := r.finish(err != nil)
	for _, d := range report.Drifts {
		r.tell(d)
	}
	if err == nil && report.Unanswered > 0 {
		j.cfg.Logger.ErrorContext(ctx, metric.DriftFailed, "error", "the provider did not answer about all rows", "unanswered", report.Unanswered)
	}
	return report, err
}

// ledgerShards is how many shards a comparison reads. Each asks anew: while a deployment raises the number, a process of the release
// before it may go on.
func (j *Job) ledgerShards(ctx context.Context) (int, error) {
	return payments.LedgerShards{Client: j.cfg.Client, Table: j.cfg.PaymentsTable, Number: j.cfg.LedgerShards}.Written(ctx)
}

// tell logs a finding, which is its metric.
func (j *Job) tell(ctx context.Context) func(Drift) {
	return func(d Drift) {
		j.cfg.Logger.WarnContext(ctx, metric.DriftFound, "kind", d.Kind, "tenant", d.Tenant, "entry", d.Entry, "sides", d.Sides)
	}
}

// UnreadableError says that rows were left out of a comparison whose report is complete beside that.
type UnreadableError struct {
	// Count is how many.
	Count int
}

// Error implements error.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("drift: %d rows, messages or records can't be read: they are malformed, or were written by a newer release", e.Count)
}

func (j *Job) window(w Window, now time.Time) (Window, error) {
	latest := now.Add(-j.cfg.Grace)
	if w.To.IsZero() || w.To.After(latest) {
		w.To = latest
	}
	if w.From.IsZero() {
		w.From = w.To.Add(-j.cfg.Window)
	}
	w.From, w.To = w.From.UTC().Truncate(time.Millisecond), w.To.UTC().Truncate(time.Millisecond)
	if length := w.To.Sub(w.From); length <= 0 || length > WindowMax {
		return w, &idem.ConfigError{
			Field: "Window", Value: fmt.Sprintf("%s to %s", w.From.Format(time.RFC3339), w.To.Format(time.RFC3339)),
			Rule: fmt.Sprintf("must be above 0 and at most %v long, and begin before now less the grace of %v", WindowMax, j.cfg.Grace),
		}
	}
	return w, nil
}
