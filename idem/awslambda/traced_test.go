package awslambda

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/idem-go/idem-aws/idem/telemetry"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

const traceID = "0af7651916cd43dd8448eb211c80319c"

// tracer begins every span at the position of its parent.
type tracer struct{}

func (tracer) Begin(ctx context.Context, _ string, o trace.Options) (context.Context, trace.Recording) {
	return ctx, recording{o.Parent}
}

type recording struct{ at trace.Context }

func (r recording) Context() trace.Context { return r.at }
func (recording) Set(...trace.Attribute)   {}
func (recording) Link(trace.Context)       {}
func (recording) Fail(string)              {}
func (recording) End()                     {}

var parent = trace.Parse("00-"+traceID+"-b7ad6b7169203331-01", "")

// traced is the trace of the one line with the message.
func traced(t *testing.T, log *bytes.Buffer, message string) string {
	t.Helper()
	for text := range strings.Lines(log.String()) {
		var line struct {
			Message string `json:"msg"`
			Trace   string `json:"trace_id"`
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		if line.Message == message {
			return line.Trace
		}
	}
	t.Fatalf("no line %q: %s", message, log)
	return ""
}

// What is said of a record or a request after its span has ended names its trace all the same, and not that of another.
func TestLinesAboutWhatFailedNameItsTrace(t *testing.T) {
	log := &bytes.Buffer{}
	handler, err := telemetry.NewHandler(slog.NewJSONHandler(log, nil), telemetry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Logger: slog.New(handler)}
	queue := SQS(func(ctx context.Context, m events.SQSMessage) error {
		if m.MessageId == "m1" {
			return errStore // before anything was traced
		}
		_, span := trace.Begin(ctx, tracer{}, "deliver", trace.Options{Parent: parent})
		defer span.End()
		return errStore
	}, cfg)
	failures(t, t.Context(), queue, queueEvent(t, 1, ""))
	if got := traced(t, log, "record failed"); got != traceID {
		t.Errorf("a failed record: trace %q", got)
	}
	log.Reset()
	failures(t, t.Context(), queue, queueEvent(t, 2, ""))
	if n := strings.Count(log.String(), traceID); n != 1 {
		t.Errorf("%d of two failed records name the trace of the first: %s", n, log)
	}
	log.Reset()
	api := HTTP(trace.Handler(tracer{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })), cfg)
	event := bytes.Replace(sample(t, "api-http-payment"), []byte(`"headers": {`), []byte(`"headers": {"traceparent":"`+parent.Parent()+`",`), 1)
	if _, err := api(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	if got := traced(t, log, "handler panicked"); got != traceID {
		t.Errorf("a panic: trace %q", got)
	}
}
