package telemetry

import (
	"cmp"
	"context"
	"encoding/hex"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// Config says where the metrics go. The zero value of each field means its default.
type Config struct {
	// Namespace is CloudWatch's, 1..255 of A-Z, a-z, 0-9 and . - _ / # : not beginning with "AWS/" or ":". Default "idem".
	Namespace string
	// Service is the value of the one dimension, "service": the name of the deployment whose metrics these are, so that
	// two in one account are told apart. 1..1024 visible ASCII characters. Default: the metrics have no dimension.
	Service string
	// Members are added to each line that is written with a context: what it says about the request that is handled, such as
	// awslambda.RequestMembers. It may be called concurrently. Default: none.
	Members func(context.Context) []slog.Attr
}

var (
	namespaceForm = regexp.MustCompile(`^[A-Za-z0-9._/#-][A-Za-z0-9._/#:-]{0,254}$`)
	serviceForm   = regexp.MustCompile(`^[!-~]+$`)
)

const (
	// reserved begins the namespaces of AWS's own services.
	reserved        = "AWS/"
	serviceBytesMax = 1024
)

func (c Config) validate() error {
	if !namespaceForm.MatchString(c.Namespace) || strings.HasPrefix(c.Namespace, reserved) {
		return &idem.ConfigError{Field: "Config.Namespace", Value: c.Namespace, Rule: `must be 1..255 of A-Z, a-z, 0-9 and . - _ / # : not beginning with "AWS/" or ":"`}
	}
	if c.Service != "" && (!serviceForm.MatchString(c.Service) || len(c.Service) > serviceBytesMax) {
		return &idem.ConfigError{Field: "Config.Service", Value: c.Service, Rule: "must be 1..1024 visible ASCII characters"}
	}
	return nil
}

// Names of the members that say where in a trace a line belongs: OpenTelemetry's for logs that are not OTLP.
const (
	memberTrace = "trace_id"
	memberSpan  = "span_id"
)

// Handler is a slog.Handler that adds the Embedded Metric Format to lines that are metrics, and the ids of trace and span to lines
// that are written while something traced is handled (package trace). It is safe for concurrent use.
type Handler struct {
	cfg        Config
	dimensions [][]string
	// next takes ordinary lines.
	next slog.Handler
	// root is next as it was before its first group, and grouped is what came since: what CloudWatch reads must be
	// members of the line itself ("Target members").
	root    slog.Handler
	grouped []func(slog.Handler) slog.Handler
}

// NewHandler returns a handler of metrics before next, or an [*idem.ConfigError]. next must write each record as one JSON
// object with the attributes' own names, such as slog.JSONHandler without ReplaceAttr does, and must take records below
// its level where its Handle is called all the same, which [slog.Handler] leaves to the caller.
func NewHandler(next slog.Handler, cfg Config) (*Handler, error) {
	if next == nil {
		return nil, &idem.ConfigError{Field: "next", Value: nil, Rule: "must be given"}
	}
	cfg.Namespace = cmp.Or(cfg.Namespace, metric.Namespace)
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	h := &Handler{cfg: cfg, dimensions: [][]string{{}}, next: next, root: next}
	if cfg.Service != "" {
		h.dimensions = [][]string{{metric.Service}}
	}
	return h, nil
}

// Enabled implements slog.Handler. Metrics' lines are at Info or above, so that level is enabled always: Handle tells them
// from the others.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler. A record without a time is no metric: CloudWatch would not know when it was.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	members := h.embed(r)
	if members == nil && !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	if at := trace.Position(ctx); at != "" {
		members = append(members, slog.String(memberTrace, hex.EncodeToString([]byte(at.TraceID()))), slog.String(memberSpan, hex.EncodeToString([]byte(at.SpanID()))))
	}
	if h.cfg.Members != nil {
		members = append(members, h.cfg.Members(ctx)...)
	}
	if members == nil {
		return h.next.Handle(ctx, r)
	}
	line := h.root.WithAttrs(members)
	for _, apply := range h.grouped {
		line = apply(line)
	}
	return line.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(len(h.grouped) > 0, func(next slog.Handler) slog.Handler { return next.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(true, func(next slog.Handler) slog.Handler { return next.WithGroup(name) })
}

func (h *Handler) with(grouped bool, apply func(slog.Handler) slog.Handler) *Handler {
	other := *h
	other.next = apply(h.next)
	if grouped {
		other.grouped = append(slices.Clip(h.grouped), apply)
	} else {
		other.root = other.next
	}
	return &other
}
