package client_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/client"
	"github.com/idem-go/idem-aws/idem/header"
)

// capture answers 201 to everything and remembers the last request and its body.
type capture struct {
	sent *http.Request
	body string
	n    int
}

func (c *capture) RoundTrip(r *http.Request) (*http.Response, error) {
	c.sent, c.n = r, c.n+1
	if r.Body != nil {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body.Close()
		c.body = string(raw)
	}
	return &http.Response{StatusCode: 201, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("ok"))}, nil
}

// semantics.md "On the wire": one RFC 9651 String; what the server reads is what the caller gave.
func TestKeysAreQuoted(t *testing.T) {
	for name, test := range map[string]struct {
		syntax       header.Syntax
		inContext    string
		lines        []string
		wire, parsed string
	}{
		"context":                {"", "order-17", nil, `"order-17"`, "order-17"},
		"bare header":            {"", "", []string{"order-17"}, `"order-17"`, "order-17"},
		"quoted header":          {"", "", []string{`"order-17"`}, `"order-17"`, "order-17"},
		"header and context":     {"", "order-17", []string{`"order-17"`}, `"order-17"`, "order-17"},
		"escapes":                {"", `a"b\c, d;e`, nil, `"a\"b\\c, d;e"`, `a"b\c, d;e`},
		"255 bytes":              {"", strings.Repeat(`"`, 255), nil, `"` + strings.Repeat(`\"`, 255) + `"`, strings.Repeat(`"`, 255)},
		"opaque context":         {header.SyntaxOpaque, "order-17", nil, "order-17", "order-17"},
		"opaque header, as is":   {header.SyntaxOpaque, "", []string{`"order-17"`}, `"order-17"`, `"order-17"`},
		"spaces around, a quote": {"", " a ", nil, `" a "`, " a "},
	} {
		t.Run(name, func(t *testing.T) {
			c := &capture{}
			transport, err := client.New(client.Config{Base: c, Syntax: test.syntax})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if test.inContext != "" {
				ctx = client.WithKey(ctx, test.inContext)
			}
			r := httptest.NewRequest("POST", "http://api.example/", nil).WithContext(ctx)
			r.Header["Idempotency-Key"] = test.lines
			res, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.sent.Header.Values("Idempotency-Key"); len(got) != 1 || got[0] != test.wire || client.KeyOf(res) != test.parsed {
				t.Errorf("sent %q, key %q, want %s", got, client.KeyOf(res), test.wire)
			}
			if got := r.Header["Idempotency-Key"]; len(got) != len(test.lines) {
				t.Errorf("the caller's request was changed: %q", got)
			}
		})
	}
}

// What can't be sent is refused before anything is, and never quoted in the error.
func TestKeysThatAreRefused(t *testing.T) {
	with := client.WithKey
	for name, test := range map[string]struct {
		syntax header.Syntax
		ctx    context.Context
		lines  []string
	}{
		"empty in context":        {"", with(t.Context(), ""), nil},
		"empty header":            {"", t.Context(), []string{""}},
		"two headers":             {"", t.Context(), []string{`"secret-4711"`, `"secret-4711"`}},
		"joined headers":          {"", t.Context(), []string{`"secret-4711", "secret-4711"`}},
		"parameters":              {"", t.Context(), []string{`"secret-4711";p=1`}},
		"not ASCII":               {"", with(t.Context(), "secret-4711-é"), nil},
		"control":                 {"", with(t.Context(), "secret-4711\n"), nil},
		"256 bytes":               {"", with(t.Context(), strings.Repeat("k", 256)), nil},
		"opaque, space around":    {header.SyntaxOpaque, with(t.Context(), " secret-4711"), nil},
		"header against context":  {"", with(t.Context(), "secret-4711"), []string{`"secret-4712"`}},
		"operation, no journal":   {"", client.WithOperation(t.Context(), "secret-4711"), nil},
		"a header without quotes": {header.SyntaxStrict, t.Context(), []string{`secret-4711`}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &capture{}
			transport, err := client.New(client.Config{Base: c, Syntax: test.syntax})
			if err != nil {
				t.Fatal(err)
			}
			body := &closing{Reader: strings.NewReader("x")}
			r := httptest.NewRequest("POST", "http://api.example/", body).WithContext(test.ctx)
			r.Header["Idempotency-Key"] = test.lines
			_, err = transport.RoundTrip(r)
			var refused *client.KeyError
			if !errors.As(err, &refused) || c.n != 0 || !body.closed || strings.Contains(err.Error(), "4711") {
				t.Errorf("%v; %d sent, body closed %v", err, c.n, body.closed)
			}
			// Only these can have been sent by an earlier call.
			if unknown := name == "header against context" || name == "operation, no journal"; errors.Is(err, client.ErrUnknown) != unknown {
				t.Errorf("%v, want that it is unknown: %v", err, unknown)
			}
		})
	}
}

// closing is a body without GetBody that says whether it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

// onRead does something before each read.
type onRead struct {
	io.ReadCloser
	do func()
}

func (r *onRead) Read(p []byte) (int, error) {
	r.do()
	return r.ReadCloser.Read(p)
}

func TestBodies(t *testing.T) {
	for name, test := range map[string]struct {
		body    string
		length  int64
		refused bool
	}{
		"none":                    {"", 0, false},
		"known length":            {"12345678", 8, false},
		"unknown length":          {"12345678", -1, false},
		"empty, unknown length":   {"", -1, false},
		"too long":                {"123456789", 9, true},
		"too long, unknown":       {"123456789", -1, true},
		"shorter than it says":    {"1234", 5, true},
		"longer than its length":  {"12345", 4, true},
		"far too long, unread":    {"", 1 << 40, true},
		"unknown to the last bit": {"1234567", -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &capture{}
			transport, err := client.New(client.Config{Base: c, BodyBytesMax: 8})
			if err != nil {
				t.Fatal(err)
			}
			body := &closing{Reader: strings.NewReader(test.body)}
			r := httptest.NewRequest("POST", "http://api.example/", body)
			r.ContentLength = test.length
			_, err = transport.RoundTrip(r)
			var refused *client.BodyError
			if errors.As(err, &refused) != test.refused || (err != nil) != test.refused || !body.closed {
				t.Fatalf("%v, closed %v", err, body.closed)
			}
			if !test.refused && (c.body != test.body || c.sent.ContentLength != int64(len(test.body)) || c.sent.GetBody != nil) {
				t.Errorf("sent %q of %d bytes", c.body, c.sent.ContentLength)
			}
			if test.refused && c.n != 0 {
				t.Error("sent all the same")
			}
		})
	}
	// One that breaks, or whose context ends while it is read, is not sent.
	for name, test := range map[string]struct {
		end  bool
		body io.Reader
	}{"breaks": {false, iotest.ErrReader(errors.New("the disk is gone"))}, "the context ends": {true, nil}} {
		c := &capture{}
		transport, err := client.New(client.Config{Base: c})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if test.end {
			stuck, _ := io.Pipe() // reads block until it is closed
			test.body = &onRead{stuck, cancel}
		}
		_, err = transport.RoundTrip(httptest.NewRequest("POST", "http://api.example/", test.body).WithContext(ctx))
		var refused *client.BodyError
		if !errors.As(err, &refused) || c.n != 0 || errors.Is(err, context.Canceled) != test.end {
			t.Errorf("%s: %v, %d sent", name, err, c.n)
		}
	}
	// A bound that is none bounds nothing.
	c := &capture{}
	transport, err := client.New(client.Config{Base: c, BodyBytesMax: math.MaxInt64})
	if err != nil {
		t.Fatal(err)
	}
	unbounded := httptest.NewRequest("POST", "http://api.example/", io.MultiReader(strings.NewReader("12345678")))
	if _, err := transport.RoundTrip(unbounded); err != nil || c.body != "12345678" || c.sent.ContentLength != 8 {
		t.Errorf("without a bound: %v, sent %q", err, c.body)
	}
	// One with a GetBody is not buffered, whatever its size.
	c = &capture{}
	transport, err = client.New(client.Config{Base: c, BodyBytesMax: 8})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest("POST", "http://api.example/", strings.NewReader(strings.Repeat("x", 100)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transport.RoundTrip(r); err != nil || len(c.body) != 100 || c.sent.ContentLength != 100 {
		t.Errorf("%v, %d bytes", err, len(c.body))
	}
}

// An answer above the bound is streamed to the caller, whole; a bound that is none bounds nothing.
func TestLongAnswersAreWhole(t *testing.T) {
	long := strings.Repeat("0123456789", 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long) }))
	defer server.Close()
	for _, bytesMax := range []int64{100, math.MaxInt64} {
		transport, err := client.New(client.Config{Base: server.Client().Transport, AnswerBytesMax: bytesMax})
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: transport}).Post(server.URL, "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil || string(body) != long {
			t.Errorf("of at most %d bytes: %d, %v", bytesMax, len(body), err)
		}
	}
}

// semantics.md "On the wire": Idempotency-First-Sent is when the key was first used; of a caller's own key that is not known.
func TestFirstSent(t *testing.T) {
	journal, err := client.NewMemoryJournal(0)
	if err != nil {
		t.Fatal(err)
	}
	now := epoch
	c := &capture{}
	transport, err := client.New(client.Config{Base: c, Journal: journal, SendFirstSent: true, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		ctx  context.Context
		at   time.Time
		want string
	}{
		{t.Context(), epoch, "2026-11-21T12:00:00Z"},
		{client.WithOperation(t.Context(), "order-17"), epoch, "2026-11-21T12:00:00Z"},
		{client.WithOperation(t.Context(), "order-17"), epoch.Add(time.Hour), "2026-11-21T12:00:00Z"},
		{client.WithKey(t.Context(), "order-18"), epoch.Add(time.Hour), ""},
	} {
		now = test.at
		if _, err := transport.RoundTrip(httptest.NewRequest("POST", "http://api.example/", nil).WithContext(test.ctx)); err != nil {
			t.Fatal(err)
		}
		if got := c.sent.Header.Get("Idempotency-First-Sent"); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// Without randomness there is no key, and nothing is sent; with a key of the caller's there is just no jitter.
func TestNoRandomness(t *testing.T) {
	c := &capture{}
	transport, err := client.New(client.Config{Base: c, Random: iotest.ErrReader(errors.New("no entropy"))})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "http://api.example/", nil)
	var refused *client.KeyError
	if _, err := transport.RoundTrip(r); !errors.As(err, &refused) || c.n != 0 {
		t.Errorf("%v", err)
	}
	w := open(t)
	w.proxy.spoil(dropAfter)
	transport = w.transport(client.Config{Random: iotest.ErrReader(errors.New("no entropy"))})
	if res, err := w.post(client.WithKey(t.Context(), "order-17"), transport, "/orders", "{}"); err != nil || res.body != `{"run":1}` || w.clock.paused()[0] != 0 {
		t.Errorf("%v, %v", res, err)
	}
	w.ran(1)
}

func TestConfigurationIsChecked(t *testing.T) {
	for name, cfg := range map[string]client.Config{
		"attempts":    {AttemptsMax: -1},
		"bytes":       {AnswerBytesMax: -1},
		"backoff":     {BackoffBase: time.Minute, BackoffMax: time.Second},
		"key age":     {KeyAgeMax: time.Minute},
		"no end":      {ElapsedMax: math.MaxInt64},
		"no end, too": {AttemptTimeout: math.MaxInt64},
		"syntax":      {Syntax: "bare"},
		"base":        {BaseURL: "api.example"},
		"base, slash": {BaseURL: "https://api.example/prod/"},
		"base, query": {BaseURL: "https://api.example/prod?"},
		"base, place": {BaseURL: "https://api.example/prod#"},
	} {
		var refused *idem.ConfigError
		if _, err := client.New(cfg); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// style.md: logs and errors show a key as its hash, and no body, no token.
func TestLogsAndErrorsHoldNoSecrets(t *testing.T) {
	w := open(t)
	w.proxy.spoil(dropAfter, status(503, ""), torn, status(500, ""))
	ctx := client.WithKey(t.Context(), "secret-key")
	transport := w.transport(client.Config{})
	if _, err := w.post(ctx, transport, "/orders", `"secret-body"`); err != nil {
		t.Fatal(err)
	}
	_, err := w.post(ctx, transport, "/orders", `"another secret-body"`)
	malformed := roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, errors.New(`malformed HTTP response "secret-body"`)
	})
	_, gaveUp := w.post(ctx, w.transport(client.Config{Base: malformed}), "/orders", "")
	text := w.log.String() + err.Error() + gaveUp.Error()
	if strings.Contains(text, "secret-") {
		t.Errorf("%s", text)
	}
	for _, attribute := range []string{`"key_hash":"#`, `"attempts":5`, `"sends":5`, `"status":503`, `"method":"POST"`, `"pause":`, `"error":`, "retrying", "answered", "no answer"} {
		if !strings.Contains(text, attribute) {
			t.Errorf("the log has no %s: %s", attribute, text)
		}
	}
}
