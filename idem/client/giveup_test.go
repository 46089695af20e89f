package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/client"
)

// Retry-After in seconds and as an HTTP date (RFC 9110 section 10.2.3), to the nanosecond; a longer one than allowed is not waited for.
func TestRetryAfterIsHonouredExactly(t *testing.T) {
	for name, test := range map[string]struct {
		value string
		want  time.Duration
		reach client.Reason
	}{
		"seconds":            {"7", 7 * time.Second, ""},
		"date":               {epoch.Add(9 * time.Second).Format(http.TimeFormat), 9 * time.Second, ""},
		"the longest":        {"60", time.Minute, ""},
		"too long":           {"61", time.Minute + time.Second, client.ReasonRetryAfter},
		"too long a date":    {epoch.Add(time.Hour).Format(http.TimeFormat), time.Hour, client.ReasonRetryAfter},
		"too large a number": {"99999999999999999999", (1 << 31) * time.Second, client.ReasonRetryAfter},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.proxy.spoil(status(503, test.value))
			res, err := w.post(t.Context(), w.transport(client.Config{}), "/orders", `{}`)
			if test.reach == "" {
				if err != nil || res.StatusCode != 201 || !slices.Equal(w.clock.paused(), []time.Duration{test.want}) {
					t.Errorf("%v, pauses %v, want %v", err, w.clock.paused(), test.want)
				}
				return
			}
			var gaveUp *client.GaveUpError
			if !errors.As(err, &gaveUp) || gaveUp.Reason != test.reach || gaveUp.RetryAfter != test.want || gaveUp.Status != 503 || len(w.clock.paused()) != 0 {
				t.Errorf("%+v: %v, pauses %v", gaveUp, err, w.clock.paused())
			}
		})
	}
	for name, value := range map[string]string{"past": epoch.Add(-time.Hour).Format(http.TimeFormat), "zero": "0", "words": "soon", "signed": "-5"} {
		w := open(t)
		w.proxy.spoil(status(503, value))
		if _, err := w.post(t.Context(), w.transport(client.Config{}), "/orders", `{}`); err != nil || w.clock.paused()[0] > 200*time.Millisecond {
			t.Errorf("%s: %v, pauses %v", name, err, w.clock.paused())
		}
	}
}

// clients.md "What an answer means": after a lost attempt an answer from 300 on that is not stored says nothing about that attempt. To
// the first attempt of a new key it is an answer.
func TestAnAnswerThatIsNotStoredSaysNothingAboutALostAttempt(t *testing.T) {
	for name, test := range map[string]struct {
		header http.Header
		body   string
		proves bool
	}{
		"executed":                  {http.Header{"Idempotency-Status": {"executed"}}, `{}`, false},
		"executed and stored":       {http.Header{"Idempotency-Status": {"executed"}, "Idempotency-Expires": {"2026-11-22T12:00:00Z"}}, `{}`, true},
		"replayed":                  {http.Header{"Idempotency-Status": {"replayed"}}, `{}`, true},
		"the response is too large": {http.Header{}, `{"code":"idempotency_response_too_large"}`, false},
		"the response is not kept":  {http.Header{}, `{"code":"idempotency_response_not_kept"}`, true},
		"the key protects nothing":  {http.Header{"Idempotency-Status": {"unprotected"}}, `{}`, false},
		"the key is ignored":        {http.Header{"Idempotency-Status": {"ignored"}}, `{}`, false},
		"ignored behind the server": {http.Header{"Idempotency-Status": {"executed", "ignored"}}, `{}`, false},
	} {
		for _, code := range []int{303, 403, 404, 409, 422, 501} {
			for lost := range 2 {
				t.Run(fmt.Sprintf("%s, %d after %d lost", name, code, lost), func(t *testing.T) {
					asked := 0
					base := roundTripper(func(r *http.Request) (*http.Response, error) {
						if asked++; asked <= lost {
							return nil, io.ErrUnexpectedEOF
						}
						header := test.header.Clone()
						header.Set("Content-Type", "application/problem+json")
						return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(test.body)), Request: r}, nil
					})
					w := open(t)
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+"/orders", strings.NewReader("{}"))
					if err != nil {
						t.Fatal(err)
					}
					res, err := w.transport(client.Config{Base: base}).RoundTrip(req)
					if test.proves || lost == 0 {
						if err != nil || res.StatusCode != code {
							t.Errorf("%v, want the %d", err, code)
						}
						return
					}
					var gaveUp *client.GaveUpError
					if !errors.As(err, &gaveUp) || gaveUp.Status != code || gaveUp.Attempts != 2 || !errors.Is(err, client.ErrUnknown) {
						t.Errorf("%v, want a GaveUpError with the %d", err, code)
					} else if marked := test.header.Values("Idempotency-Status"); (gaveUp.Reason == client.ReasonUnprotected) != (slices.Contains(marked, "unprotected") || slices.Contains(marked, "ignored")) {
						t.Errorf("an answer marked %q is told as %q", marked, err)
					}
				})
			}
		}
	}
}

// reads is a body that is read by a function.
type reads func([]byte) (int, error)

func (f reads) Read(p []byte) (int, error) { return f(p) }

// clients.md "What an answer means": the head of an answer says that the key protects nothing, and its body does not come whole. Another
// attempt would be executed beside this one, so the client makes none by itself.
func TestATornAnswerWhoseKeyProtectsNothingIsNotSentAgain(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context, leave func()) error{
		"it breaks off":   func(context.Context, func()) error { return io.ErrUnexpectedEOF },
		"it stays away":   func(ctx context.Context, _ func()) error { <-ctx.Done(); return ctx.Err() },
		"its caller goes": func(ctx context.Context, leave func()) error { leave(); <-ctx.Done(); return ctx.Err() },
	} {
		for _, said := range []string{"unprotected", "ignored"} {
			t.Run(name+", "+said, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				asked := 0
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					asked++
					read := reads(func([]byte) (int, error) { return 0, body(r.Context(), leave) })
					return &http.Response{StatusCode: 201, Header: http.Header{"Idempotency-Status": {said}}, Body: io.NopCloser(read), Request: r}, nil
				})
				w := open(t)
				_, err := w.post(ctx, w.transport(client.Config{Base: base, AttemptTimeout: 20 * time.Millisecond}), "/orders", "{}")
				var gaveUp *client.GaveUpError
				if !errors.As(err, &gaveUp) || gaveUp.Reason != client.ReasonUnprotected || gaveUp.Status != 201 || asked != 1 || len(w.clock.paused()) != 0 {
					t.Errorf("%v after %d requests, want that the key protects nothing after one", err, asked)
				}
				if errors.Is(err, context.Canceled) != (name == "its caller goes") {
					t.Errorf("%v, want what ended it", err)
				}
			})
		}
	}
}

// The redirect of an operation whose key protects nothing leads nowhere: the error does not say that the key may be sent again.
func TestAnUnprotectedRedirectThatLeadsNowhereIsNotSentAgain(t *testing.T) {
	for name, place := range map[string]string{"to no URL": "http://[::1", "to a page that breaks off": "/elsewhere"} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				if asked++; asked > 1 {
					return nil, io.ErrUnexpectedEOF
				}
				header := http.Header{"Location": {place}, "Idempotency-Status": {"unprotected"}}
				return &http.Response{StatusCode: 303, Header: header, Body: http.NoBody, Request: r}, nil
			})
			w := open(t)
			_, err := (&http.Client{Transport: w.transport(client.Config{Base: base})}).Post(w.server.URL+"/orders", "application/json", strings.NewReader("{}"))
			var gaveUp *client.GaveUpError
			if !errors.As(err, &gaveUp) || gaveUp.Reason != client.ReasonUnprotected || gaveUp.Status != 303 {
				t.Errorf("%v, want that the key protects nothing", err)
			}
		})
	}
}

func TestGivesUpClearly(t *testing.T) {
	always := slices.Repeat([]fault{status(503, "20")}, 100)
	for name, test := range map[string]struct {
		cfg    client.Config
		faults []fault
		want   client.GaveUpError
	}{
		"attempts": {client.Config{AttemptsMax: 3}, always, client.GaveUpError{Reason: client.ReasonAttempts, Attempts: 3, Sends: 3, Elapsed: 40 * time.Second, Status: 503, RetryAfter: 20 * time.Second}},
		"time":     {client.Config{AttemptsMax: 99, ElapsedMax: 50 * time.Second}, always, client.GaveUpError{Reason: client.ReasonElapsed, Attempts: 3, Sends: 3, Elapsed: 40 * time.Second, Status: 503, RetryAfter: 20 * time.Second}},
		"drops":    {client.Config{AttemptsMax: 1}, []fault{dropAfter}, client.GaveUpError{Reason: client.ReasonAttempts, Attempts: 1, Sends: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.proxy.spoil(test.faults...)
			_, err := w.post(t.Context(), w.transport(test.cfg), "/orders", `{}`)
			var got *client.GaveUpError
			if !errors.As(err, &got) || !errors.Is(err, client.ErrUnknown) {
				t.Fatal(err)
			}
			key := got.Key
			if (got.Cause == nil) != (got.Status != 0) {
				t.Errorf("cause %v of status %d", got.Cause, got.Status)
			}
			compared := *got
			compared.Key, compared.Cause = "", nil
			if compared != test.want {
				t.Errorf("got %+v\nwant %+v", compared, test.want)
			}
			// The key is what the caller asks again with.
			w.proxy.spoil()
			if res, err := w.post(client.WithKey(t.Context(), key), w.transport(client.Config{}), "/orders", `{}`); err != nil || res.body != `{"run":1}` {
				t.Errorf("%v, %v", res, err)
			}
			w.ran(1)
		})
	}
}

func TestEndOfContextStopsRetrying(t *testing.T) {
	w := open(t)
	w.proxy.spoil(dropAfter, dropAfter, dropAfter)
	ctx, cancel := context.WithCancel(t.Context())
	w.clock.meanwhile = func(n int, _ time.Duration) {
		if n == 2 {
			cancel()
		}
	}
	_, err := w.post(ctx, w.transport(client.Config{}), "/orders", `{}`)
	var gaveUp *client.GaveUpError
	if !errors.As(err, &gaveUp) || !errors.Is(err, context.Canceled) || !errors.Is(err, client.ErrUnknown) || gaveUp.Reason != client.ReasonCanceled || gaveUp.Attempts != 2 || gaveUp.Key == "" {
		t.Fatalf("%+v: %v", gaveUp, err)
	}
	if len(w.proxy.arrived()) != 2 {
		t.Errorf("%d requests", len(w.proxy.arrived()))
	}
	w.proxy.spoil()
	if res, err := w.post(client.WithKey(t.Context(), gaveUp.Key), w.transport(client.Config{}), "/orders", `{}`); err != nil || res.body != `{"run":1}` {
		t.Errorf("%v, %v", res, err)
	}
	w.ran(1)

	// One that had ended before anything was sent leaves nothing unknown, where the key is new.
	if _, err := w.post(ctx, w.transport(client.Config{}), "/orders", `{}`); !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrUnknown) {
		t.Errorf("%v", err)
	}
}

// broken is a journal that can't be read.
type broken struct{ client.Journal }

func (broken) Begin(context.Context, string, client.Entry) (client.Entry, bool, error) {
	return client.Entry{}, false, io.ErrUnexpectedEOF
}

// retrying-clients.md: ErrUnknown is the test before a new key is made. What this call did not send, an earlier one may have.
func TestWhatThisCallDidNotSendAnEarlierOneMayHave(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	const sent, unsent, full = "order-17", "order-18", "order-19"
	for name, test := range map[string]struct {
		ctx       context.Context
		operation string
		key       string
		header    string
		streamed  bool
		broken    bool
		cfg       client.Config
		unknown   bool
		resumes   bool // the error has the operation's key
	}{
		"a context that has ended, of a new key":                  {ctx: ended},
		"a context that has ended, of a new operation":            {ctx: ended, operation: unsent},
		"a context that has ended, of an operation that was sent": {ctx: ended, operation: sent, unknown: true, resumes: true},
		"a context that has ended, of a given key":                {ctx: ended, key: "k", unknown: true},
		"a context that has ended, of a key in the header":        {ctx: ended, header: "k", unknown: true},
		"a journal that can't be read":                            {operation: unsent, broken: true, unknown: true},
		"a journal that can't be read, in an ended context":       {ctx: ended, operation: sent, broken: true, unknown: true},
		"a name and no journal":                                   {operation: sent, unknown: true},
		"a journal that is full":                                  {operation: full},
		"a journal that is full, and a given key":                 {operation: full, key: "k", unknown: true},
		"the journal has another key":                             {operation: sent, key: "k", unknown: true},
		"two keys":                                                {key: "k", header: "l", unknown: true},
		"a key that can't be sent":                                {key: "schlüssel"},
		"a key that can't be sent, of an operation":               {operation: sent, key: "schlüssel", unknown: true},
		"a name that can't be":                                    {operation: strings.Repeat("o", 257)},
		"no randomness":                                           {cfg: client.Config{Random: strings.NewReader("")}},
		"no randomness, of an operation":                          {operation: sent, cfg: client.Config{Random: strings.NewReader("")}, unknown: true},
		"a long stream of a new key":                              {streamed: true},
		"a long stream of an operation":                           {streamed: true, operation: sent, unknown: true},
		"a long stream of a given key":                            {streamed: true, key: "k", unknown: true},
		"a long stream of a key in the header":                    {streamed: true, header: "k", unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			journal, err := client.OpenFileJournal(folder, 2)
			if err != nil {
				t.Fatal(err)
			}
			entries := []string{sent}
			if test.operation == full {
				entries = append(entries, "order-20")
			}
			for _, operation := range entries {
				if _, _, err := journal.Begin(t.Context(), operation, client.Entry{Key: "of-" + operation, FirstSent: epoch}); err != nil {
					t.Fatal(err)
				}
			}
			cfg := test.cfg
			cfg.Base = roundTripper(func(*http.Request) (*http.Response, error) {
				t.Error("it was sent")
				return nil, io.ErrUnexpectedEOF
			})
			switch {
			case test.broken:
				cfg.Journal = broken{journal}
			case name != "a name and no journal":
				cfg.Journal = journal
			}
			ctx := t.Context()
			if test.ctx != nil {
				ctx = test.ctx
			}
			if test.key != "" {
				ctx = client.WithKey(ctx, test.key)
			}
			if test.operation != "" {
				ctx = client.WithOperation(ctx, test.operation)
			}
			var body io.Reader = strings.NewReader("{}")
			if test.streamed {
				body = io.LimitReader(zeros{}, 256<<10+1)
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.example/orders", body)
			if err != nil {
				t.Fatal(err)
			}
			if test.header != "" {
				req.Header.Set("Idempotency-Key", test.header)
			}
			_, err = open(t).transport(cfg).RoundTrip(req)
			if err == nil || errors.Is(err, client.ErrUnknown) != test.unknown {
				t.Fatalf("%v, want that it is unknown: %v", err, test.unknown)
			}
			if says := strings.Contains(err.Error(), "not sent: "); says && test.unknown {
				t.Errorf("it says %q of what may have been sent", err)
			}
			if test.ctx != nil && !test.broken && !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want what ended it", err)
			}
			var gaveUp *client.GaveUpError
			if errors.As(err, &gaveUp) != (test.unknown && test.ctx != nil && !test.broken) || test.resumes && gaveUp.Key != "of-"+sent {
				t.Errorf("%#v", err)
			}
		})
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// 401 and 403 come before the key is looked at: they are answers only where nothing was tried before.
func TestRefusedCredentials(t *testing.T) {
	w := open(t)
	r, err := http.NewRequest("POST", w.server.URL+"/orders", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.transport(client.Config{}).RoundTrip(r)
	if err != nil || res.StatusCode != 401 {
		t.Fatalf("%v, %v", res, err)
	}
	res.Body.Close()
	w.proxy.spoil(dropAfter, status(403, ""))
	_, err = w.post(t.Context(), w.transport(client.Config{}), "/orders", "{}")
	var gaveUp *client.GaveUpError
	if !errors.As(err, &gaveUp) || gaveUp.Reason != client.ReasonRefused || gaveUp.Status != 403 || !errors.Is(err, client.ErrUnknown) {
		t.Errorf("%+v: %v", gaveUp, err)
	}
}
