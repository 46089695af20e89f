package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"regexp"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/telemetry"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// logger writes JSON lines into the buffer, at Info.
func logger(t *testing.T, cfg telemetry.Config) (*slog.Logger, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	h, err := telemetry.NewHandler(slog.NewJSONHandler(log, nil), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return slog.New(h), log
}

// lines decodes what was logged, with numbers as they are written.
func lines(t *testing.T, log *bytes.Buffer) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(log.String()) {
		var one map[string]any
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.UseNumber()
		if err := decoder.Decode(&one); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, one)
	}
	return all
}

var (
	units   = regexp.MustCompile(`^(Seconds|Microseconds|Milliseconds|Bytes|Count|Percent|None)$`)
	integer = regexp.MustCompile(`^-?[0-9]+$`)
)

// embedded checks a line by the JSON schema of "Specification: Embedded metric format" and by the rules of its text, and
// returns the metrics that CloudWatch extracts, by name.
func embedded(t *testing.T, line map[string]any) map[string]string {
	t.Helper()
	meta, ok := line["_aws"].(map[string]any)
	if !ok {
		return nil
	}
	for name := range meta {
		if name != "Timestamp" && name != "CloudWatchMetrics" {
			t.Errorf("_aws has a member %q", name)
		}
	}
	if at, ok := meta["Timestamp"].(json.Number); !ok || !integer.MatchString(at.String()) || len(at) != 13 {
		t.Errorf("Timestamp %v: want milliseconds", meta["Timestamp"])
	}
	found := map[string]string{}
	directives, _ := meta["CloudWatchMetrics"].([]any)
	if len(directives) != 1 {
		t.Fatalf("%d directives: %v", len(directives), meta)
	}
	directive := directives[0].(map[string]any)
	if namespace, _ := directive["Namespace"].(string); len(directive) != 3 || len(namespace) < 1 || len(namespace) > 1024 {
		t.Errorf("directive %v", directive)
	}
	checkDimensions(t, line, directive["Dimensions"])
	definitions, _ := directive["Metrics"].([]any)
	if len(definitions) < 1 || len(definitions) > 100 {
		t.Errorf("%d metrics", len(definitions))
	}
	for _, d := range definitions {
		definition := d.(map[string]any)
		name, _ := definition["Name"].(string)
		unit, _ := definition["Unit"].(string)
		value, numeric := line[name].(json.Number) // a target is a member of the root, its dots and all
		if len(definition) != 2 || len(name) < 1 || len(name) > 255 || !units.MatchString(unit) || !numeric {
			t.Errorf("metric %v has the value %v", definition, line[name])
		}
		found[name] = value.String() + " " + unit
	}
	return found
}

func checkDimensions(t *testing.T, line map[string]any, dimensions any) {
	t.Helper()
	sets, _ := dimensions.([]any)
	if len(sets) != 1 {
		t.Fatalf("dimensions %v: want one set, or each costs its own metrics", dimensions)
	}
	set, ok := sets[0].([]any)
	if !ok || len(set) > 30 {
		t.Errorf("dimension set %v", sets[0])
	}
	for _, name := range set {
		if value, ok := line[name.(string)].(string); !ok || value == "" || len(value) > 1024 || name != metric.Service {
			t.Errorf("dimension %v has the value %v", name, line[name.(string)])
		}
	}
}

// every is the list of semantics.md "Metrics", with the two of keys that are not used.
var every = []string{
	"idempotency.reserve.created", "idempotency.reserve.replay", "idempotency.reserve.in_progress", "idempotency.reserve.key_misuse",
	"idempotency.reserve.failed_retry", "idempotency.reserve.unknown", "idempotency.store.error", "idempotency.store.refused", "idempotency.zombie_key",
	"idempotency.reconcile.scheduled", "idempotency.reconcile.resolved", "idempotency.reconcile.failed", "idempotency.quota.rejected",
	"idempotency.record_unreadable",
	"outbox.delivered", "outbox.declined", "outbox.retried", "outbox.unauthorized", "outbox.unsent", "outbox.unknown", "outbox.dead", "outbox.abandoned", "outbox.unknown_topic", "outbox.evidenced",
	"idempotency.unprotected", "idempotency.observed", "drift.found", "drift.failed",
	"sweep.run", "reconcile.run", "drift.run",
	"idempotency.run_max", "seal.not_authentic", "function.timeout_short", "webhook.contradicts", "webhook.failed",
	"outbox.settle_failed", "outbox.dead_letter_lost", "outbox.message_gone", "outbox.evidence_late", "outbox.evidence_differs",
	"outbox.evidence_weak", "outbox.redriven", "outbox.closed", "outbox.inline_paused",
}

// aged are the metrics of ages, by the line that carries them.
var aged = map[string]string{
	"outbox.delivered": "outbox.age", "outbox.declined": "outbox.age",
	"outbox.dead": "outbox.backlog.dead_age", "idempotency.reconcile.scheduled": "outbox.backlog.unknown_age",
}

// What waits is counted by one line, which is no metric itself.
func TestBacklogIsEmbedded(t *testing.T) {
	log, out := logger(t, telemetry.Config{Service: "payments"})
	log.Info("outbox.backlog", "due", 3, "due_age_ms", int64(61000), "unknown", 2, "dead", 0, "more", false)
	want := map[string]string{
		"outbox.backlog.due": "3 Count", "outbox.backlog.due_age": "61000 Milliseconds", "outbox.backlog.unknown": "2 Count", "outbox.backlog.dead": "0 Count",
	}
	if got := embedded(t, lines(t, out)[0]); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestEveryMetricIsEmbedded(t *testing.T) {
	for _, cfg := range []telemetry.Config{{}, {Namespace: "shop/idem", Service: "payments"}} {
		log, out := logger(t, cfg)
		for _, name := range every {
			log.Info(name, "operation", "orders.create", "tenant", "acme", "key_hash", "h", "age_ms", int64(1234))
			line := lines(t, out)[0]
			want := map[string]string{name: "1 Count"}
			if age := aged[name]; age != "" {
				want[age] = "1234 Milliseconds"
			}
			if got := embedded(t, line); !maps.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
			if line["tenant"] != "acme" || line["msg"] != name || line["key_hash"] != "h" {
				t.Errorf("Contributor Insights needs the attributes at the root: %v", line)
			}
			out.Reset()
		}
	}
}

func TestWhereMetricsGo(t *testing.T) {
	for want, cfg := range map[string]telemetry.Config{
		`{"Namespace":"idem","Dimensions":[[]],`:               {},
		`{"Namespace":"shop/idem","Dimensions":[["service"]],`: {Namespace: "shop/idem", Service: "payments"},
	} {
		log, out := logger(t, cfg)
		log.Info("idempotency.reserve.replay")
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s, want %s", out, want)
		}
		if service, ok := lines(t, out)[0]["service"]; ok != (cfg.Service != "") || ok && service != cfg.Service {
			t.Errorf("service %v, want %q", service, cfg.Service)
		}
	}
}

// What no metric is made of stays as it is, byte for byte.
func TestOtherLinesPass(t *testing.T) {
	log, out := logger(t, telemetry.Config{Service: "payments"})
	plain := &bytes.Buffer{}
	record := slog.NewRecord(time.UnixMilli(1795228800000), slog.LevelWarn, "idempotency.refused", 0)
	record.Add("outcome", "no_time", "age_ms", 3)
	for _, h := range []slog.Handler{log.Handler(), slog.NewJSONHandler(plain, nil)} {
		if err := h.WithAttrs([]slog.Attr{slog.Int("a", 1)}).WithGroup("g").Handle(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != plain.String() || out.Len() == 0 {
		t.Errorf("%s, want %s", out, plain)
	}
}

// LOG_LEVEL decides about lines, never about metrics.
func TestMetricsSurviveTheLevel(t *testing.T) {
	out := &bytes.Buffer{}
	h, err := telemetry.NewHandler(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelError}), telemetry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(h)
	log.Info("swept")
	log.Warn("release failed")
	if out.Len() > 0 {
		t.Errorf("below the level: %s", out)
	}
	log.Info("outbox.delivered", "age_ms", 5)
	log.Error("failed")
	if all := lines(t, out); len(all) != 2 || embedded(t, all[0])["outbox.age"] != "5 Milliseconds" || all[1]["msg"] != "failed" {
		t.Errorf("%s", out)
	}
	if h.Enabled(t.Context(), slog.LevelDebug) || !h.Enabled(t.Context(), slog.LevelInfo) {
		t.Error("Debug is for the level alone to decide, Info is not")
	}
}

// What CloudWatch reads stands at the root, whatever groups the logger is in.
func TestMetricsAreMembersOfTheRoot(t *testing.T) {
	log, out := logger(t, telemetry.Config{Service: "payments"})
	log = log.With("function", "api").WithGroup("request").With("id", 7).WithGroup("inner").WithGroup("")
	log.Info("outbox.delivered", "age_ms", 5)
	line := lines(t, out)[0]
	if got := embedded(t, line); got["outbox.delivered"] != "1 Count" || got["outbox.age"] != "5 Milliseconds" {
		t.Errorf("%v", got)
	}
	request, _ := line["request"].(map[string]any)
	inner, _ := request["inner"].(map[string]any)
	if line["function"] != "api" || request["id"] != json.Number("7") || inner["age_ms"] != json.Number("5") {
		t.Errorf("%s", out)
	}
}

// A value that is no number is no value: CloudWatch would refuse the whole line.
func TestAgeMustBeANumber(t *testing.T) {
	for _, args := range [][]any{{}, {"age_ms", "5"}, {"age_ms", 5.5}, {"age_ms", nil}} {
		log, out := logger(t, telemetry.Config{})
		log.Info("outbox.delivered", args...)
		if got := embedded(t, lines(t, out)[0]); len(got) != 1 || got["outbox.delivered"] != "1 Count" {
			t.Errorf("%v: %v", args, got)
		}
	}
}

// A metric without an instant would be nowhere.
func TestRecordWithoutTimeIsNoMetric(t *testing.T) {
	log, out := logger(t, telemetry.Config{})
	if err := log.Handler().Handle(t.Context(), slog.NewRecord(time.Time{}, slog.LevelInfo, "outbox.dead", 0)); err != nil {
		t.Fatal(err)
	}
	if line := lines(t, out)[0]; line["_aws"] != nil || line["msg"] != "outbox.dead" {
		t.Errorf("%v", line)
	}
}

// failing is a handler whose lines can't be written.
type failing struct{ slog.Handler }

var errFull = errors.New("disk full")

func (failing) Enabled(context.Context, slog.Level) bool  { return true }
func (failing) Handle(context.Context, slog.Record) error { return errFull }
func (f failing) WithAttrs([]slog.Attr) slog.Handler      { return f }

func TestErrorsOfTheHandlerBehindPass(t *testing.T) {
	h, err := telemetry.NewHandler(failing{}, telemetry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, msg := range []string{"outbox.dead", "other"} {
		if err := h.Handle(t.Context(), slog.NewRecord(time.UnixMilli(1), slog.LevelInfo, msg, 0)); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", msg, err)
		}
	}
}

func TestHandlerIsASlogHandler(t *testing.T) {
	out := &bytes.Buffer{}
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		out.Reset()
		h, err := telemetry.NewHandler(slog.NewJSONHandler(out, nil), telemetry.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}, func(t *testing.T) map[string]any {
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		return line
	})
}

func TestNewHandlerRefuses(t *testing.T) {
	for _, c := range []struct {
		cfg   telemetry.Config
		field string
	}{
		{telemetry.Config{Namespace: "AWS/Lambda"}, "Config.Namespace"},
		{telemetry.Config{Namespace: ":idem"}, "Config.Namespace"},
		{telemetry.Config{Namespace: "my idem"}, "Config.Namespace"},
		{telemetry.Config{Namespace: strings.Repeat("n", 256)}, "Config.Namespace"},
		{telemetry.Config{Service: "my service"}, "Config.Service"},
		{telemetry.Config{Service: "zahlungen-für-alle"}, "Config.Service"},
		{telemetry.Config{Service: strings.Repeat("s", 1025)}, "Config.Service"},
	} {
		_, err := telemetry.NewHandler(slog.DiscardHandler, c.cfg)
		var refused *idem.ConfigError
		if !errors.As(err, &refused) || refused.Field != c.field {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
	if _, err := telemetry.NewHandler(nil, telemetry.Config{}); err == nil {
		t.Error("accepted without a handler behind it")
	}
	if _, err := telemetry.NewHandler(slog.DiscardHandler, telemetry.Config{Namespace: strings.Repeat("n", 255), Service: "a"}); err != nil {
		t.Error(err)
	}
}

func BenchmarkHandler(b *testing.B) {
	h, err := telemetry.NewHandler(slog.NewJSONHandler(&bytes.Buffer{}, nil), telemetry.Config{Service: "payments"})
	if err != nil {
		b.Fatal(err)
	}
	for name, msg := range map[string]string{"metric": "idempotency.reserve.replay", "other": "swept"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			record := slog.NewRecord(time.UnixMilli(1795228800000), slog.LevelInfo, msg, 0)
			record.Add("operation", "orders.create", "tenant", "acme")
			for b.Loop() {
				if err := h.Handle(b.Context(), record); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
