//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// span is one span as the collector exports it: OTLP in JSON.
type span struct {
	TraceID string `json:"traceId"`
	ID      string `json:"spanId"`
	Parent  string `json:"parentSpanId"`
	Name    string `json:"name"`
	Links   []struct {
		TraceID string `json:"traceId"`
		ID      string `json:"spanId"`
	} `json:"links"`
	Attributes []struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	} `json:"attributes"`
	// Service is the function that recorded it.
	Service string `json:"-"`
}

// says is the text of an attribute, "" for none.
func (s span) says(name string) string {
	for _, a := range s.Attributes {
		if a.Key == name {
			for _, value := range a.Value {
				return fmt.Sprint(value)
			}
		}
	}
	return ""
}

func (s span) linksTo(other span) bool {
	return slices.ContainsFunc(s.Links, func(l struct {
		TraceID string `json:"traceId"`
		ID      string `json:"spanId"`
	}) bool {
		return l.ID == other.ID && l.TraceID == other.TraceID
	})
}

// collected are all the spans that the collector has exported.
func collected(t *testing.T) []span {
	t.Helper()
	url := deployed.variables["COLLECTOR_URL"]
	if url == "" {
		t.Fatal("the stack has no collector: bring it up with TRACES=on")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/control/spans", nil)
	must(t, err)
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	var all []span
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var batch struct {
			ResourceSpans []struct {
				Resource   span `json:"resource"`
				ScopeSpans []struct {
					Spans []span `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		must(t, json.Unmarshal(lines.Bytes(), &batch))
		for _, of := range batch.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				for _, s := range scope.Spans {
					s.Service = of.Resource.says("service.name")
					all = append(all, s)
				}
			}
		}
	}
	must(t, lines.Err())
	return all
}

// ofTrace are the spans of a trace.
func ofTrace(all []span, id string) []span {
	return slices.DeleteFunc(slices.Clone(all), func(s span) bool { return s.TraceID != id })
}

// tree shows a trace as lines: each span below its parent, children by name. A call of the store is one line for all alike.
func tree(spans []span, root string) []string {
	var lines []string
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		children := slices.DeleteFunc(slices.Clone(spans), func(s span) bool { return s.Parent != parent })
		slices.SortStableFunc(children, func(a, b span) int { return strings.Compare(a.Name, b.Name) })
		for _, s := range children {
			name := s.Name
			if strings.HasPrefix(name, "dynamodb.") {
				name = "dynamodb"
			}
			if line := strings.Repeat("  ", depth) + name; len(lines) == 0 || lines[len(lines)-1] != line || name != "dynamodb" {
				lines = append(lines, line)
			}
			walk(s.ID, depth+1)
		}
	}
	walk(root, 0)
	return lines
}

// tracedTenant is a tenant whose requests are recorded: a span for each, whose traceparent is sent.
func tracedTenant(t *testing.T) (api, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	tenant := newAPI(deployed.tenantA.url, deployed.tenantA.token, deployed.tenantA.tenant)
	tenant.http.Transport = otelhttp.NewTransport(tenant.http.Transport,
		otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagation.TraceContext{}))
	return tenant, spans
}
