package call_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/call"
)

const key = "op_abc.1"

// statuses class every status that must be, each class at least once.
func statuses() map[int]call.Class {
	return map[int]call.Class{
		400: call.Refused, 401: call.Unauthorized, 402: call.Declined, 403: call.NotExecuted, 404: call.Ambiguous, 409: call.Unproven,
		422: call.Refused, 423: call.Ambiguous, 429: call.NotExecuted,
	}
}

func newClient(t *testing.T, cfg call.Config) *call.Client {
	t.Helper()
	if cfg.Statuses == nil {
		cfg.Statuses = statuses()
	}
	client, err := call.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func request(url string) call.Request {
	return call.Request{
		URL: url, Key: key, Body: []byte(`{"amount":1999}`),
		Reference: func(body []byte) (string, error) {
			if !strings.Contains(string(body), "ch_1") {
				return "", errors.New("no id")
			}
			return "ch_1", nil
		},
	}
}

// Only a refusal that proves that nothing happened, and that arrived whole, may be an answer to the client.
func TestPostTakesARefusalOfTheClientsDataForAnAnswer(t *testing.T) {
	about := `{"error":{"param":"source"}}`
	for name, c := range map[string]struct {
		status int
		body   string
		want   outbox.Outcome
	}{
		"the client's data":        {400, about, outbox.Refused{Answer: []byte(about)}},
		"the client's data, too":   {422, about, outbox.Refused{Answer: []byte(about)}},
		"something else":           {400, `{"error":{}}`, outbox.Refused{}},
		"no body":                  {400, "", outbox.Refused{}},
		"too large":                {400, about + strings.Repeat(" ", 2000), outbox.Refused{}},
		"not proven":               {409, about, outbox.Refused{Unproven: true}},
		"ambiguous":                {404, about, outbox.Ambiguous{}},
		"it may come to something": {429, about, outbox.NotExecuted{}},
		"an error":                 {500, about, outbox.Ambiguous{}},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		r := request(srv.URL)
		r.Rejects = func(body []byte) bool { return strings.Contains(string(body), "param") }
		got := kind(t, newClient(t, call.Config{BodyBytesMax: 1000}).Post(t.Context(), r))
		srv.Close()
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %#v, want %#v", name, got, c.want)
		}
	}
}

// kind strips an outcome of its cause, which every one without evidence has.
func kind(t *testing.T, o outbox.Outcome) outbox.Outcome {
	t.Helper()
	var cause error
	switch outcome := o.(type) {
	case outbox.NotExecuted:
		cause, outcome.Cause = outcome.Cause, nil
		o = outcome
	case outbox.Ambiguous:
		cause, outcome.Cause = outcome.Cause, nil
		o = outcome
	case outbox.Refused:
		cause, outcome.Cause = outcome.Cause, nil
		o = outcome
	default:
		return o
	}
	if cause == nil {
		t.Errorf("%s has no cause", o.Name())
	} else if strings.Contains(cause.Error(), "1999") {
		t.Errorf("the cause tells the payload: %v", cause)
	}
	return o
}

func TestPostClassifies(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	object := []byte(`{"id":"ch_1"}`)
	for _, c := range []struct {
		name       string
		status     int
		body       string
		retryAfter string
		want       outbox.Outcome
	}{
		{"created", 201, string(object), "", outbox.Delivered{Reference: "ch_1", Evidence: object}},
		{"repeated", 200, string(object), "", outbox.Delivered{Reference: "ch_1", Evidence: object}},
		{"declined", 402, string(object), "", outbox.Declined{Reference: "ch_1", Evidence: object}},
		{"created, unreadable", 201, "<html>", "", outbox.Ambiguous{}},
		{"declined, unreadable", 402, "", "", outbox.Ambiguous{}},
		{"created, too large", 201, "ch_1" + strings.Repeat("x", 2000), "", outbox.Ambiguous{}},
		{"rate limited", 429, "", "", outbox.NotExecuted{}},
		{"rate limited, seconds", 429, "", "7", outbox.NotExecuted{RetryAfter: 7 * time.Second}},
		{"rate limited, date", 429, "", "Sat, 21 Nov 2026 12:01:00 GMT", outbox.NotExecuted{RetryAfter: time.Minute}},
		{"rate limited, past date", 429, "", "Sat, 21 Nov 2026 11:00:00 GMT", outbox.NotExecuted{}},
		{"rate limited, nonsense", 429, "", "-5", outbox.NotExecuted{}},
		{"rate limited for ever", 429, "", "18446744073709551615", outbox.NotExecuted{RetryAfter: 24 * time.Hour}},
		{"rate limited beyond numbers", 429, "", "99999999999999999999999", outbox.NotExecuted{}},
		{"listed as refused", 400, "", "", outbox.Refused{}},
		{"listed as refused, too", 422, "", "", outbox.Refused{}},
		{"listed as unauthorized", 401, "", "", outbox.NotExecuted{Unauthorized: true}},
		{"listed as unauthorized, later", 401, "", "7", outbox.NotExecuted{Unauthorized: true, RetryAfter: 7 * time.Second}},
		{"listed as not executed, later", 403, "", "9", outbox.NotExecuted{RetryAfter: 9 * time.Second}},
		{"listed as unproven", 409, "", "", outbox.Refused{Unproven: true}},
		{"listed as ambiguous", 404, "", "", outbox.Ambiguous{}},
		{"listed as ambiguous, too", 423, "", "", outbox.Ambiguous{}},
		{"not listed: method not allowed", 405, "", "", outbox.Ambiguous{}},
		{"not listed: request time-out", 408, "", "", outbox.Ambiguous{}},
		{"not listed: gone", 410, "", "", outbox.Ambiguous{}},
		{"not listed: body too large", 413, "", "", outbox.Ambiguous{}},
		{"not listed: too early", 425, "", "3", outbox.Ambiguous{}},
		{"not listed: no status of any RFC", 499, "", "", outbox.Ambiguous{}},
		{"error", 500, string(object), "", outbox.Ambiguous{}},
		{"unavailable", 503, "", "5", outbox.Ambiguous{}},
		{"moved for good", 301, "", "", outbox.Ambiguous{}},
		{"found elsewhere", 302, string(object), "", outbox.Ambiguous{}},
		{"see other", 303, string(object), "", outbox.Ambiguous{}},
		{"redirect", 307, "", "", outbox.Ambiguous{}},
		{"redirect for good", 308, "", "", outbox.Ambiguous{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var requests atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				body, err := io.ReadAll(r.Body)
				if err != nil || string(body) != `{"amount":1999}` || r.Method != http.MethodPost {
					t.Errorf("%s %q, %v", r.Method, body, err)
				}
				if r.Header.Get("Idempotency-Key") != key || r.Header.Get("Content-Type") != "application/json" {
					t.Errorf("header %v", r.Header)
				}
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				if c.status/100 == 3 {
					w.Header().Set("Location", "/elsewhere")
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			defer srv.Close()
			client := newClient(t, call.Config{BodyBytesMax: 1000, Now: func() time.Time { return now }})
			if got := kind(t, client.Post(t.Context(), request(srv.URL))); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %s %+v, want %s %+v", got.Name(), got, c.want.Name(), c.want)
			}
			if requests.Load() != 1 {
				t.Errorf("%d requests, want 1", requests.Load())
			}
		})
	}
}

// A status is not all of an answer: what the body tells of the effect must be the same.
func TestAnAnswerThatContradictsItselfIsAmbiguous(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		state  string
		want   outbox.Outcome
	}{
		"made":                   {201, "succeeded", outbox.Delivered{}},
		"made, not yet":          {201, "processing", outbox.Ambiguous{}},
		"accepted":               {202, "processing", outbox.Ambiguous{}},
		"repeated, declined":     {200, "declined", outbox.Ambiguous{}},
		"declined":               {402, "declined", outbox.Declined{}},
		"declined, and yet made": {402, "succeeded", outbox.Ambiguous{}},
		"refused":                {400, "succeeded", outbox.Refused{}}, // no evidence, so nothing to hold against it
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, "ch_1 "+c.state)
		}))
		r := request(server.URL)
		r.Check = func(declined bool, body []byte) error {
			if state := strings.TrimPrefix(string(body), "ch_1 "); state != map[bool]string{true: "declined", false: "succeeded"}[declined] {
				return errors.New("it tells another state")
			}
			return nil
		}
		if got := newClient(t, call.Config{}).Post(t.Context(), r); got.Name() != c.want.Name() {
			t.Errorf("%s: %s, want %s", name, got.Name(), c.want.Name())
		}
		server.Close()
	}
}

// Package net/http sends a POST again when a reused connection drops, because of its Idempotency-Key. We don't.
func TestOneCallIsOneRequest(t *testing.T) {
	var charges atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return // makes the connection a reused one
		}
		if charges.Add(1) == 1 { // charged, then the connection closes without an answer
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		}
	}))
	defer srv.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	post := func(send func() bool) int32 {
		charges.Store(0)
		res, err := (&http.Client{Transport: transport}).Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if !send() {
			t.Error("wrong outcome")
		}
		return charges.Load()
	}
	plain := post(func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", key)
		res, err := (&http.Client{Transport: transport}).Do(req)
		return err == nil && res.Body.Close() == nil
	})
	ours := post(func() bool {
		_, ambiguous := newClient(t, call.Config{Transport: transport}).Post(t.Context(), request(srv.URL)).(outbox.Ambiguous)
		return ambiguous
	})
	if plain != 2 || ours != 1 {
		t.Errorf("net/http alone sent %d requests and we %d, want 2 (or this test proves nothing) and 1", plain, ours)
	}
}

// roundTripper makes one of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Of net/http's own transport, and of what wraps it, it is known that nothing was sent wherever there was no connection.
func TestPostKnowsWhatWasNeverSent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer refuses.Close()
	by := func(change func(*http.Transport)) http.RoundTripper {
		transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
		change(transport)
		return transport
	}
	proxied := func(proxy string) http.RoundTripper {
		return by(func(tr *http.Transport) { tr.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy) } })
	}
	plain := by(func(*http.Transport) {})
	for name, c := range map[string]struct {
		url       string
		transport http.RoundTripper
		header    http.Header
		bound     time.Duration
	}{
		"refused connection":           {closed, plain, nil, 0},
		"the same, default transport":  {closed, nil, nil, 0},
		"failed handshake":             {secure.URL, plain, nil, 0}, // its certificate is not trusted
		"failed handshake of HTTP/2":   {secure.URL, by(func(tr *http.Transport) { tr.ForceAttemptHTTP2 = true }), nil, 0},
		"unknown scheme":               {"gopher://localhost", plain, nil, 0},
		"header that can't be sent":    {closed, plain, http.Header{"X-Other": {"a\nb"}}, 0},
		"proxy that refuses to tunnel": {"https://provider.invalid", proxied(refuses.URL), nil, 0},
		"proxy that is not there":      {"https://provider.invalid", proxied(closed), nil, 0},
		"the same, behind a wrapper":   {"https://provider.invalid", roundTripper(proxied(closed).RoundTrip), nil, 0},
		"proxy that nobody knows":      {"https://provider.invalid", proxied("http://[::1"), nil, 0},
		"unknown name": {"http://provider.invalid", by(func(tr *http.Transport) {
			nobody := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no resolver") }}
			tr.DialContext = (&net.Dialer{Resolver: nobody}).DialContext
		}), nil, 0},
		"time over before the call": {closed, plain, nil, -1},
		"the same, another library": {closed, roundTripper(func(*http.Request) (*http.Response, error) { t.Error("called"); return nil, errors.New("sent") }), nil, -1},
		"time over while dialling": {"http://provider.invalid", by(func(tr *http.Transport) {
			tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}), nil, 20 * time.Millisecond},
		"a wrapper that reads the body first": {closed, roundTripper(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(body))
			return plain.RoundTrip(r)
		}), nil, 0},
		"the same, at the port of its scheme": {"http://127.0.0.1", roundTripper(func(r *http.Request) (*http.Response, error) {
			if _, err := io.ReadAll(r.Body); err != nil {
				return nil, err
			}
			return by(func(tr *http.Transport) {
				tr.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
			}).RoundTrip(r)
		}), nil, 0},
		"a transport that says so": {closed, roundTripper(func(*http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("no credential: %w", call.ErrNotSent)
		}), nil, 0},
	} {
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if c.bound != 0 {
			ctx, cancel = context.WithTimeout(ctx, c.bound)
		}
		r := request(c.url)
		r.Header = c.header
		got, _ := newClient(t, call.Config{Transport: c.transport}).Post(ctx, r).(outbox.NotExecuted)
		if cancel(); !got.Unsent {
			t.Errorf("%s: %+v, want it never sent", name, got)
		}
	}
}

// A transport that does not tell of its connections may have sent what it failed at: it is ambiguous, not never sent. Called again,
// it is a second charge at a provider without keys.
func TestWhatATransportOfAnotherLibrarySentIsNotNeverSent(t *testing.T) {
	charges := 0
	lost := func(reads bool) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			if reads {
				io.Copy(io.Discard, r.Body)
			}
			charges++
			return nil, io.ErrUnexpectedEOF
		}
	}
	registered := &http.Transport{}
	registered.RegisterProtocol("h3", lost(true))
	usual := http.DefaultTransport
	defer func() { http.DefaultTransport = usual }()
	http.DefaultTransport = lost(false)
	for name, c := range map[string]struct {
		url       string
		transport http.RoundTripper
	}{
		"adapter of another library":       {"http://provider.invalid", lost(true)},
		"double that leaves the body":      {"http://provider.invalid", lost(false)},
		"http.DefaultTransport, replaced":  {"http://provider.invalid", nil},
		"protocol of net/http's transport": {"h3://provider.invalid", registered},
		"one that was connected": {"http://provider.invalid", roundTripper(func(r *http.Request) (*http.Response, error) {
			charges++
			httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
			return nil, call.ErrNotSent // what it had a connection for may be sent, whatever it says
		})},
		"one that gets no token first": {"http://provider.invalid", roundTripper(func(r *http.Request) (*http.Response, error) {
			token, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://token.invalid", http.NoBody)
			if err != nil {
				return nil, err
			}
			refused := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }}
			if response, err := refused.RoundTrip(token); err == nil {
				response.Body.Close()
				t.Error("it got a token: this shows nothing")
			}
			return lost(true)(r)
		})},
	} {
		charges = 0
		got := newClient(t, call.Config{Transport: c.transport}).Post(t.Context(), request(c.url))
		if _, ok := got.(outbox.Ambiguous); !ok || charges != 1 {
			t.Errorf("%s: %+v after %d charges, want ambiguous", name, got, charges)
		}
	}
}

// A stream of a connection of HTTP/2 that others use, too, may have been executed when it ends without an answer.
func TestALostStreamOfASharedConnectionIsAmbiguous(t *testing.T) {
	var charges atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if charges.Add(1); r.URL.Path == "/lost" {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"id":"ch_1"}`)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	client := newClient(t, call.Config{Transport: srv.Client().Transport})
	if got := client.Post(t.Context(), request(srv.URL)); got.Name() != (outbox.Delivered{}).Name() {
		t.Fatalf("%+v", got)
	}
	if got, ok := client.Post(t.Context(), request(srv.URL+"/lost")).(outbox.Ambiguous); !ok || charges.Load() != 2 {
		t.Errorf("%+v, %d charges; want ambiguous, and 2", got, charges.Load())
	}
}

func TestPostIsAmbiguousWithoutAnAnswer(t *testing.T) {
	over := make(chan struct{})
	ctx, end := context.WithCancel(t.Context())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/hang": // until the caller gives up, which it does only once the request is here
			end()
			<-over
		case "/half": // a definite status, but half an answer
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, `{"id":"ch_1"`)
		case "/drop":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
		}
	}))
	defer srv.Close()
	defer close(over)
	for _, path := range []string{"/half", "/drop", "/hang"} {
		got := newClient(t, call.Config{}).Post(ctx, request(srv.URL+path))
		if _, ok := got.(outbox.Ambiguous); !ok {
			t.Errorf("%s: %s, want ambiguous", path, got.Name())
		}
	}
}

// A bound that is none bounds nothing: what the provider said is kept.
func TestPostReadsAnswersWithoutABound(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusBadRequest)
		}
		io.WriteString(w, `{"id":"ch_1"}`)
	}))
	defer srv.Close()
	client := newClient(t, call.Config{BodyBytesMax: math.MaxInt64})
	if got, ok := client.Post(t.Context(), request(srv.URL)).(outbox.Delivered); !ok || string(got.Evidence) != `{"id":"ch_1"}` {
		t.Errorf("%+v", got)
	}
	refused := request(srv.URL + "/refuse")
	refused.Rejects = func([]byte) bool { return true }
	if got, ok := client.Post(t.Context(), refused).(outbox.Refused); !ok || string(got.Answer) != `{"id":"ch_1"}` {
		t.Errorf("%+v", got)
	}
}

func TestPostRefusesWhatItCannotSendOnce(t *testing.T) {
	client := newClient(t, call.Config{})
	empty := request("http://127.0.0.1:1")
	empty.Body = nil
	for name, r := range map[string]call.Request{"no body": empty, "no url": request("http://127.0.0.1:port")} {
		if got := kind(t, client.Post(t.Context(), r)); !reflect.DeepEqual(got, outbox.Refused{}) {
			t.Errorf("%s: %+v, want refused", name, got)
		}
	}
}

// A 429 means what the provider's list says, too.
func TestTooManyRequestsMeansWhatIsListed(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	defer srv.Close()
	listed := statuses()
	listed[http.StatusTooManyRequests] = call.Ambiguous
	if got := kind(t, newClient(t, call.Config{Statuses: listed}).Post(t.Context(), request(srv.URL))); got != (outbox.Ambiguous{}) {
		t.Errorf("got %s, want ambiguous", got.Name())
	}
}

// What a status means is written down before the first call: a status that is not listed stops the start.
func TestNewNamesTheStatusThatIsNotListed(t *testing.T) {
	cases := map[string]map[int]call.Class{"Config.Statuses[400]": nil}
	for status := range map[int]bool{400: true, 401: true, 403: true, 404: true, 409: true, 422: true, 429: true} {
		listed := statuses()
		delete(listed, status)
		cases[fmt.Sprintf("Config.Statuses[%d]", status)] = listed
	}
	for status, class := range map[int]call.Class{410: "perhaps", 451: "", 200: call.Declined, 302: call.Refused, 503: call.NotExecuted} {
		listed := statuses()
		listed[status] = class
		cases[fmt.Sprintf("Config.Statuses[%d]", status)] = listed
	}
	for field, listed := range cases {
		var rejected *idem.ConfigError
		if _, err := call.New(call.Config{Statuses: listed}); !errors.As(err, &rejected) || rejected.Field != field {
			t.Errorf("got %v, want %s rejected", err, field)
		}
	}
}

// The downstream key is the message's, whatever else the topic sends: under any other key a repetition is a second effect.
func TestATopicsOwnHeaderDoesNotReplaceTheDownstreamKey(t *testing.T) {
	for _, name := range []string{"Idempotency-Key", "idempotency-key", "IDEMPOTENCY-KEY"} {
		var got []string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Values("Idempotency-Key")
			io.WriteString(w, "ch_1")
		}))
		r := request(srv.URL)
		r.Header = http.Header{name: {"the topic's", "another"}, "X-Other": {"kept"}}
		outcome := newClient(t, call.Config{}).Post(t.Context(), r)
		srv.Close()
		if len(got) != 1 || got[0] != key {
			t.Errorf("%s: sent %q, want only %q; %s", name, got, key, outcome.Name())
		}
		if r.Header[name][0] != "the topic's" {
			t.Errorf("%s: the caller's header was changed", name)
		}
	}
}

func ExampleClient_Post() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			w.WriteHeader(http.StatusGone)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":"ch_1","key":%q}`, r.Header.Get("Idempotency-Key"))
	}))
	defer provider.Close()
	client, err := call.New(call.Config{Statuses: map[int]call.Class{
		http.StatusBadRequest:          call.Refused,
		http.StatusUnauthorized:        call.Unauthorized, // our credential: it can be mended
		http.StatusPaymentRequired:     call.Declined,
		http.StatusForbidden:           call.Unauthorized,
		http.StatusNotFound:            call.Refused,
		http.StatusConflict:            call.Unproven, // the key was used with another body
		http.StatusUnprocessableEntity: call.Refused,
		http.StatusTooManyRequests:     call.NotExecuted,
	}})
	if err != nil {
		panic(err)
	}
	request := call.Request{URL: provider.URL, Key: "op_abc.1", Body: []byte(`{"amount":1999}`)}
	outcome := client.Post(context.Background(), request)
	fmt.Printf("%s %s\n", outcome.Name(), outcome.(outbox.Delivered).Evidence)
	request.URL += "/gone" // 410 is not listed
	fmt.Println(client.Post(context.Background(), request).Name())
	// Output:
	// delivered {"id":"ch_1","key":"op_abc.1"}
	// ambiguous
}

// A frozen process is held up between its decision and the wire, while its timers stand still. Meanwhile others may have taken
// its absence for proof, and called. A provider may act on a request's head alone, which net/http sends before the body.
func TestACallThatWasFrozenNeverLeaves(t *testing.T) {
	const dialling, writing = "dialling", "writing the head"
	for name, c := range map[string]struct {
		frozen       time.Duration
		while        string
		http2        bool
		heads, whole int32
		want         outbox.Outcome
	}{
		"past its deadline":                         {time.Hour, dialling, false, 0, 0, outbox.Ambiguous{}},
		"past its deadline, later":                  {time.Hour, writing, false, 0, 0, outbox.Ambiguous{}},
		"for a while":                               {time.Second, dialling, false, 1, 1, outbox.Delivered{}},
		"HTTP/2, past its deadline":                 {time.Hour, dialling, true, 0, 0, outbox.Ambiguous{}},
		"HTTP/2, past its deadline, later: no body": {time.Hour, writing, true, 1, 0, outbox.Ambiguous{}},
		"HTTP/2, for a while":                       {time.Second, writing, true, 1, 1, outbox.Delivered{}},
	} {
		t.Run(name, func(t *testing.T) {
			var heads, whole, ahead, open, closed atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if heads.Add(1); (r.ProtoMajor == 2) != c.http2 {
					t.Errorf("called by %s", r.Proto)
				}
				if _, err := io.ReadAll(r.Body); err != nil {
					return
				}
				whole.Add(1)
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, `{"id":"ch_1"}`)
			}))
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				switch state {
				case http.StateNew:
					open.Add(1)
				case http.StateClosed:
					closed.Add(1)
				default:
				}
			}
			if server.EnableHTTP2 = c.http2; c.http2 {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			freeze := func(at string) {
				if at == c.while {
					ahead.Store(int32(c.frozen / time.Second))
				}
			}
			transport := server.Client().Transport.(*http.Transport).Clone()
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				freeze(dialling)
				return new(net.Dialer).DialContext(ctx, network, address)
			}
			client := newClient(t, call.Config{Transport: transport, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { freeze(writing) }})
			got := client.Post(ctx, request(server.URL))
			for range 1000 { // until the server has seen all that was sent
				if transport.CloseIdleConnections(); open.Load() > 0 && open.Load() == closed.Load() {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			server.Close()
			if reflect.TypeOf(got) != reflect.TypeOf(c.want) || heads.Load() > c.heads || whole.Load() != c.whole {
				t.Errorf("%T (%v) after %d requests, %d of them whole; want %T after %d, %d", got, got, heads.Load(), whole.Load(), c.want, c.heads, c.whole)
			}
		})
	}
}

// writes is a connection that tells of what was written to it.
type writes struct {
	net.Conn
	wrote func([]byte)
}

func (c writes) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.wrote(p[:n])
	return n, err
}

// A long body leaves in pieces. Of a process that is frozen between two of them the rest stays here: a provider that has the whole of it
// acts, and others may have called meanwhile.
func TestTheRestOfALongBodyStaysOnceItsCallIsOver(t *testing.T) {
	for frozen, want := range map[time.Duration]outbox.Outcome{time.Second: outbox.Delivered{}, time.Hour: outbox.Ambiguous{}} {
		var whole, ahead atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				return
			}
			whole.Add(1)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"id":"ch_1"}`)
		}))
		const piece = "piece"
		transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return writes{conn, func(p []byte) {
				if bytes.HasPrefix(p, []byte(piece)) {
					ahead.Store(int32(frozen / time.Second))
				}
			}}, err
		}}
		client := newClient(t, call.Config{Transport: transport, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r := request(server.URL)
		r.Body = bytes.Repeat([]byte(piece), 200<<10/len(piece))
		got := client.Post(ctx, r)
		cancel()
		transport.CloseIdleConnections()
		server.Close() // waits for what it serves
		made := int32(0)
		if frozen < time.Minute {
			made = 1
		}
		if reflect.TypeOf(got) != reflect.TypeOf(want) || whole.Load() != made || ahead.Load() == 0 {
			t.Errorf("frozen for %v: %T (%v), %d whole requests; want %T and %d", frozen, got, got, whole.Load(), want, made)
		}
	}
}

// A late call over HTTP/2 ends alone: others use its connection at the same time.
func TestALateCallLeavesItsConnectionToOthers(t *testing.T) {
	var open, ahead atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"ch_1"}`)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			open.Add(1)
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := newClient(t, call.Config{Transport: server.Client().Transport, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }})
	for _, c := range []struct {
		frozen int32
		want   outbox.Outcome
	}{{0, outbox.Delivered{}}, {3600, outbox.Ambiguous{}}, {0, outbox.Delivered{}}} {
		ahead.Store(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { ahead.Store(c.frozen) }})
		if got := client.Post(ctx, request(server.URL)); reflect.TypeOf(got) != reflect.TypeOf(c.want) {
			t.Errorf("frozen for %d s: %T (%v), want %T", c.frozen, got, got, c.want)
		}
		cancel()
	}
	if open.Load() != 1 {
		t.Errorf("%d connections, want one", open.Load())
	}
}

// Who was frozen before it looked for a connection has sent nothing.
func TestACallThatWasFrozenBeforeItsConnectionWasNeverSent(t *testing.T) {
	transport := roundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("called")
		return nil, errors.New("sent")
	})
	client := newClient(t, call.Config{Transport: transport, Now: func() time.Time { return time.Now().Add(time.Hour) }})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if got, ok := client.Post(ctx, request("http://provider.example")).(outbox.NotExecuted); !ok || !got.Unsent {
		t.Errorf("got %+v, want it never sent", got)
	}
}
