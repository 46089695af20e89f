package trace_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

const (
	parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	state  = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
)

func TestContextIsWhatWasParsed(t *testing.T) {
	c := trace.Parse(parent, state)
	if c.Parent() != parent || c.State() != state || c.Flags() != 1 || len(c.Bytes()) != 25+len(state) {
		t.Errorf("%q %q %d, %d bytes", c.Parent(), c.State(), c.Flags(), len(c.Bytes()))
	}
	if again := trace.FromBytes(c.Bytes()); again != c {
		t.Errorf("stored and read it is %v", again)
	}
	if c.String() != parent+" "+state || c.WithoutState().String() != parent {
		t.Errorf("%s, %s", c, c.WithoutState())
	}
}

// What is malformed by "Trace Context" is none; a later version counts by its beginning.
func TestMalformedTraceparentIsNone(t *testing.T) {
	for _, bad := range []string{
		"", "00", strings.ToUpper(parent), parent[:54], parent + "-00", parent + " ", "ff" + parent[2:], "0g" + parent[2:],
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"01" + parent[2:] + "x", strings.ReplaceAll(parent, "-", "_"),
	} {
		if c := trace.Parse(bad, state); c != "" || c.Parent() != "" || c.TraceID() != "" || c.SpanID() != "" || c.State() != "" || c.Flags() != 0 {
			t.Errorf("%q is taken for %v", bad, c)
		}
	}
	if c := trace.Parse("cc"+parent[2:]+"-what-comes-later", ""); c.Parent() != parent {
		t.Errorf("a later version is %v", c)
	}
}

// A tracestate that can't be passed on is dropped, and its traceparent is kept.
func TestUnusableTracestateIsDropped(t *testing.T) {
	for _, bad := range []string{"a=" + strings.Repeat("x", trace.StateBytesMax), "a=\x00", "a=ä", "novalue", "a=", "a=1,b"} {
		if c := trace.Parse(parent, bad); c.Parent() != parent || c.State() != "" {
			t.Errorf("%q leaves %v", bad, c)
		}
	}
	if c := trace.Parse(parent, " a=1 , b=2,"); c.State() != "a=1 , b=2" {
		t.Errorf("a state with spaces is %q", c.State())
	}
}

func FuzzParse(f *testing.F) {
	f.Add(parent, state)
	f.Add("cc"+parent[2:]+"-x", "a=1,,b=2")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, parent, state string) {
		c := trace.Parse(parent, state)
		if c == "" {
			return
		}
		if len(c) > 25+trace.StateBytesMax || trace.FromBytes(c.Bytes()) != c || trace.Parse(c.Parent(), c.State()) != c {
			t.Errorf("%q, %q is %q", parent, state, string(c))
		}
	})
}

// Without a tracer nothing begins, nothing is sent, and nothing is allocated.
func TestWithoutATracerNothingBegins(t *testing.T) {
	ctx := t.Context()
	header := http.Header{}
	if n := testing.AllocsPerRun(100, func() {
		got, span := trace.Begin(ctx, nil, "name", trace.Options{Parent: ""})
		batch, whole := trace.BeginBatch(got, nil, "name")
		trace.Inject(batch, header)
		span.Link("")
		span.Fail("code")
		span.End()
		if got != ctx || batch != ctx || span != nil || whole != nil || span.Context() != "" {
			t.Error("something began")
		}
	}); n != 0 || len(header) != 0 {
		t.Errorf("%v allocations, sent %v", n, header)
	}
	next := http.NewServeMux()
	if trace.Handler(nil, next) != http.Handler(next) {
		t.Error("a handler without a tracer is wrapped")
	}
}

// seen is a tracer that keeps what it was told.
type seen struct {
	at         trace.Context
	name       string
	o          trace.Options
	attributes map[string]any
	failed     string
	ended      int
}

func (s *seen) Begin(ctx context.Context, name string, o trace.Options) (context.Context, trace.Recording) {
	s.name, s.o, s.attributes = name, o, map[string]any{}
	return ctx, s
}
func (s *seen) Context() trace.Context { return s.at }
func (s *seen) Set(attributes ...trace.Attribute) {
	for _, a := range attributes {
		s.attributes[a.Name] = a.Value
	}
}
func (s *seen) Link(trace.Context) {}
func (s *seen) Fail(code string)   { s.failed = code }
func (s *seen) End()               { s.ended++ }

func TestHandlerTellsOfTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		serve  http.HandlerFunc
		method string
		want   map[string]any
		failed string
	}{
		"no status":   {func(http.ResponseWriter, *http.Request) {}, "POST", map[string]any{"http.response.status_code": 200, "http.request.method": "POST"}, ""},
		"early hints": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(201) }, "GET", map[string]any{"http.response.status_code": 201}, ""},
		"a replay": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Idempotency-Status", "replayed")
			w.Header().Set("Idempotent-Replayed", "true")
			w.WriteHeader(409)
			_ = http.NewResponseController(w).Flush()
			w.(http.Flusher).Flush()
		}, "POST", map[string]any{"http.response.status_code": 409, "idem.status": "replayed", "idem.replayed": true}, ""},
		"a failure":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "POST", map[string]any{"http.response.status_code": 503}, "Service Unavailable"},
		"a panic":        {func(http.ResponseWriter, *http.Request) { panic("power cut") }, "POST", map[string]any{"http.response.status_code": 500}, "Internal Server Error"},
		"another method": {func(http.ResponseWriter, *http.Request) {}, "SECRET", map[string]any{"http.request.method": "_OTHER"}, ""},
	} {
		tracer := &seen{at: trace.Parse(parent, "")}
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/", nil)
		r.Header.Set("traceparent", parent)
		r.Header.Add("tracestate", "a=1")
		r.Header.Add("tracestate", "b=2")
		func() {
			defer func() { _ = recover() }()
			trace.Handler(tracer, c.serve).ServeHTTP(httptest.NewRecorder(), r)
		}()
		for attribute, want := range c.want {
			if tracer.attributes[attribute] != want {
				t.Errorf("%s: %s is %v, want %v", name, attribute, tracer.attributes[attribute], want)
			}
		}
		if tracer.ended != 1 || tracer.failed != c.failed || tracer.o.Parent != trace.Parse(parent, "a=1,b=2") || !tracer.o.Weak || tracer.o.Kind != trace.Server {
			t.Errorf("%s: %+v", name, tracer)
		}
	}
}

func TestInjectReplacesWhatIsThere(t *testing.T) {
	for _, state := range []string{"", "a=1"} {
		ctx, _ := trace.Begin(t.Context(), &seen{at: trace.Parse(parent, state)}, "name", trace.Options{})
		header := http.Header{"Traceparent": {"old"}, "Tracestate": {"old=1"}}
		trace.Inject(ctx, header)
		if header.Get("traceparent") != parent || header.Get("tracestate") != state {
			t.Errorf("sent %v", header)
		}
	}
}
