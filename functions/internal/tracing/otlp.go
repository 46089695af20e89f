package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/idem-go/idem-aws/functions/internal/config"
)

// exporter sends spans as OTLP over HTTP, encoded as JSON, which every collector takes. OpenTelemetry's own exporter brings
// gRPC and protocol buffers along: 9.8 MB of each function's binary, which every cold start would read (ADR 0039).
//
// It sends each batch once. A function is frozen between invocations, so that what was not sent could only be late.
type exporter struct {
	url     string
	headers http.Header
	client  *http.Client
}

const tracesPath = "/v1/traces"

func newExporter(cfg config.Tracing) (*exporter, error) {
	e := &exporter{url: cfg.OTLPTracesEndpoint, headers: http.Header{}, client: &http.Client{Timeout: cfg.TracesFlushMax}}
	if e.url == "" {
		e.url = strings.TrimRight(cfg.OTLPEndpoint, "/") + tracesPath
	}
	if parsed, err := url.Parse(e.url); err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, fmt.Errorf("configuration: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: %q must be an absolute http or https URL", e.url)
	}
	for pair := range strings.SplitSeq(cfg.OTLPHeaders, ",") {
		if pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, fmt.Errorf("configuration: OTEL_EXPORTER_OTLP_HEADERS (%d bytes): must be name=value, separated by commas", len(cfg.OTLPHeaders))
		}
		e.headers.Set(strings.TrimSpace(name), decoded)
	}
	return e, nil
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	body, err := json.Marshal(encode(spans))
	if err != nil {
		return fmt.Errorf("tracing: encode %d spans: %w", len(spans), err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	req.Header = e.headers.Clone()
	req.Header.Set("Content-Type", "application/json")
	res, err := e.client.Do(req)
	if err != nil {
		return fmt.Errorf("tracing: send %d spans: %w", len(spans), err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection is used again
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("tracing: send %d spans: the collector answered with status %d", len(spans), res.StatusCode)
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

// The types are the messages of OTLP in their JSON form: ids in hex, 64-bit numbers as strings.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource struct {
			Attributes []keyValue `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	scopeSpans struct {
		Scope struct {
			Name string `json:"name"`
		} `json:"scope"`
		Spans []span `json:"spans"`
	}
	span struct {
		TraceID       string      `json:"traceId"`
		SpanID        string      `json:"spanId"`
		ParentSpanID  string      `json:"parentSpanId,omitempty"`
		TraceState    string      `json:"traceState,omitempty"`
		Flags         uint32      `json:"flags"`
		Name          string      `json:"name"`
		Kind          int         `json:"kind"`
		Start         string      `json:"startTimeUnixNano"`
		End           string      `json:"endTimeUnixNano"`
		Attributes    []keyValue  `json:"attributes,omitempty"`
		AttributesOut int         `json:"droppedAttributesCount,omitempty"`
		Links         []link      `json:"links,omitempty"`
		LinksOut      int         `json:"droppedLinksCount,omitempty"`
		Status        *spanStatus `json:"status,omitempty"`
	}
	link struct {
		TraceID    string `json:"traceId"`
		SpanID     string `json:"spanId"`
		TraceState string `json:"traceState,omitempty"`
		Flags      uint32 `json:"flags"`
	}
	spanStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	keyValue struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// encode groups the spans by their scope. All are of one provider, and so of one resource.
func encode(spans []sdktrace.ReadOnlySpan) request {
	if len(spans) == 0 {
		return request{}
	}
	of := resourceSpans{}
	of.Resource.Attributes = attributesOf(spans[0].Resource().Attributes())
	place := map[string]int{}
	for _, s := range spans {
		name := s.InstrumentationScope().Name
		at, ok := place[name]
		if !ok {
			at = len(of.ScopeSpans)
			place[name] = at
			of.ScopeSpans = append(of.ScopeSpans, scopeSpans{})
			of.ScopeSpans[at].Scope.Name = name
		}
		of.ScopeSpans[at].Spans = append(of.ScopeSpans[at].Spans, spanOf(s))
	}
	return request{[]resourceSpans{of}}
}

func spanOf(s sdktrace.ReadOnlySpan) span {
	c := s.SpanContext()
	out := span{
		TraceID: c.TraceID().String(), SpanID: c.SpanID().String(), TraceState: c.TraceState().String(), Flags: flagsOf(c, s.Parent().IsRemote()),
		Name: s.Name(), Kind: int(s.SpanKind()), Start: nanos(s.StartTime().UnixNano()), End: nanos(s.EndTime().UnixNano()),
		Attributes: attributesOf(s.Attributes()), AttributesOut: s.DroppedAttributes(), LinksOut: s.DroppedLinks(),
	}
	if s.Parent().SpanID().IsValid() {
		out.ParentSpanID = s.Parent().SpanID().String()
	}
	for _, l := range s.Links() {
		c := l.SpanContext
		out.Links = append(out.Links, link{c.TraceID().String(), c.SpanID().String(), c.TraceState().String(), flagsOf(c, c.IsRemote())})
	}
	switch s.Status().Code {
	case codes.Error:
		out.Status = &spanStatus{2, s.Status().Description}
	case codes.Ok:
		out.Status = &spanStatus{Code: 1}
	case codes.Unset: // left out
	}
	return out
}

// Bits of OTLP's flags beside the trace's own: whether it is known that the parent is remote, and whether it is.
const (
	remoteKnown = 0x100
	remote      = 0x200
)

func flagsOf(c oteltrace.SpanContext, isRemote bool) uint32 {
	flags := uint32(c.TraceFlags()) | remoteKnown
	if isRemote {
		flags |= remote
	}
	return flags
}

func nanos(n int64) string { return strconv.FormatInt(n, 10) }

func attributesOf(all []attribute.KeyValue) []keyValue {
	out := make([]keyValue, len(all))
	for i, a := range all {
		value := map[string]any{}
		switch a.Value.Type() {
		case attribute.BOOL:
			value["boolValue"] = a.Value.AsBool()
		case attribute.INT64:
			value["intValue"] = nanos(a.Value.AsInt64())
		case attribute.FLOAT64:
			value["doubleValue"] = a.Value.AsFloat64()
		default:
			value["stringValue"] = a.Value.String()
		}
		out[i] = keyValue{string(a.Key), value}
	}
	return out
}
