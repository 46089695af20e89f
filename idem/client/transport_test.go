package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/client"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// Whatever is lost on the way, the handler runs once and the client ends with the stored answer.
func TestOneExecutionWhateverIsLost(t *testing.T) {
	for name, faults := range map[string][]fault{
		"nothing":                       nil,
		"the request":                   {dropBefore},
		"the answer":                    {dropAfter},
		"half the answer":               {torn},
		"request, then answer":          {dropBefore, dropAfter, dropAfter},
		"a gateway's time-out":          {after504},
		"502 and 503 before":            {status(502, ""), status(503, "")},
		"500 before, then the answer":   {status(500, ""), torn},
		"408, 425 and 429":              {status(408, ""), status(425, ""), status(429, "1")},
		"the answer seven times in row": {dropAfter, dropAfter, torn, after504, dropAfter, torn, dropAfter},
	} {
		for _, path := range []string{"/orders", "/imports", "/stripe"} {
			t.Run(name+path, func(t *testing.T) {
				w := open(t)
				w.proxy.spoil(faults...)
				res, err := w.post(t.Context(), w.transport(client.Config{}), path, `{"item":"book"}`)
				if err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != 201 || res.body != `{"run":1}` {
					t.Errorf("%d %s", res.StatusCode, res.body)
				}
				w.ran(1)
				if got := len(w.proxy.arrived()); got != len(faults)+1 {
					t.Errorf("%d requests arrived after %d faults", got, len(faults))
				}
				if path != "/imports" && len(w.mem.Rows()["commits"]) != 1 {
					t.Errorf("commits: %q", w.mem.Rows()["commits"])
				}
			})
		}
	}
}

func TestOperationsHaveKeysOfTheirOwn(t *testing.T) {
	w := open(t)
	transport := w.transport(client.Config{})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			res, err := w.post(t.Context(), transport, "/orders", `{}`)
			if err != nil || res.StatusCode != 201 || !quoted(`"`+client.KeyOf(res.Response)+`"`) {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
	wg.Wait()
	keys := slices.Sorted(slices.Values(w.proxy.arrived()))
	if len(slices.Compact(keys)) != 20 || w.runs.Load() != 20 {
		t.Errorf("20 operations: keys %q, %d runs", keys, w.runs.Load())
	}
	id, err := uuid.Parse(strings.Trim(keys[0], `"`))
	if seconds, nanos := id.Time().UnixTime(); err != nil || id.Version() != 7 || !time.Unix(seconds, nanos).Equal(epoch) {
		t.Errorf("%q is no UUIDv7 of %v (%v)", keys[0], epoch, err)
	}
}

// semantics.md "On the wire": GET, HEAD, PUT, DELETE and OPTIONS never need the header.
func TestOtherMethodsPassUntouched(t *testing.T) {
	w := open(t)
	var seen *http.Request
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		seen = r
		return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody}, nil
	})
	transport := w.transport(client.Config{Base: base})
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", ""} {
		r := httptest.NewRequest(http.MethodGet, "http://api.example/", strings.NewReader("x"))
		r.Method = method
		res, err := transport.RoundTrip(r)
		if err != nil || res.StatusCode != 503 || seen != r || len(r.Header) != 0 {
			t.Errorf("%s: %v, %v, header %v", method, res, err, r.Header)
		}
	}
	r := httptest.NewRequest("POST", "http://api.example/", strings.NewReader("x")).WithContext(client.WithoutKey(t.Context()))
	if res, err := transport.RoundTrip(r); err != nil || res.StatusCode != 503 || seen != r {
		t.Errorf("without key: %v, %v", res, err)
	}
	if len(w.clock.paused()) != 0 {
		t.Errorf("retried: %v", w.clock.paused())
	}
}

// gate is a handler that waits until the test lets it go on.
type gate struct{ started, release chan struct{} }

func (g *gate) count(w *world) middleware.Handler {
	return func(ctx context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
		g.started <- struct{}{}
		<-g.release
		return w.count(ctx, tx, r)
	}
}

// semantics.md "Policies", in flight: 409 is followed, after exactly the server's Retry-After, until the winner's answer.
func TestInFlightIsFollowed(t *testing.T) {
	for code, policy := range map[string]idem.Policy{header.CodeInProgress: idem.IETF(), header.CodeInUse: idem.Stripe()} {
		t.Run(code, func(t *testing.T) {
			w, g := open(t), &gate{make(chan struct{}), make(chan struct{})}
			w.handle("/slow", policy, g.count(w))
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := w.post(t.Context(), w.base, "/slow", `{}`, `"order-17"`); err != nil {
					t.Error(err)
				}
			})
			<-g.started
			w.clock.meanwhile = func(n int, _ time.Duration) {
				if n == 2 {
					close(g.release)
					wg.Wait()
				}
			}
			// Without quotes: the client adds what RFC 9651 asks for, and Stripe's syntax is opaque.
			cfg, line := client.Config{}, "order-17"
			if policy.Syntax == idem.SyntaxOpaque {
				cfg.Syntax, line = "opaque", `"order-17"`
			}
			res, err := w.post(t.Context(), w.transport(cfg), "/slow", `{}`, line)
			if err != nil || res.StatusCode != 201 || res.Header.Get("Idempotent-Replayed") != "true" {
				t.Fatalf("%+v, %v", res, err)
			}
			for _, pause := range w.clock.paused() {
				if pause < time.Second || pause%time.Second != 0 {
					t.Errorf("pauses %v are not the server's Retry-After", w.clock.paused())
				}
			}
			if !strings.Contains(w.log.String(), `"code":"`+code+`"`) || len(w.clock.paused()) != 2 {
				t.Errorf("%v, log %s", w.clock.paused(), w.log)
			}
			w.ran(1)
		})
	}
}

func TestMismatchIsATypedError(t *testing.T) {
	for path, want := range map[string]idem.Problem{"/orders": {Status: 422, Code: header.CodeKeyReused}, "/stripe": {Status: 400, Code: header.CodeError}} {
		w := open(t)
		transport, ctx := w.transport(client.Config{}), client.WithKey(t.Context(), "order-17")
		if _, err := w.post(ctx, transport, path, `{"amount":1}`); err != nil {
			t.Fatal(err)
		}
		_, err := w.post(ctx, transport, path, `{"amount":2}`)
		var mismatch *client.MismatchError
		if !errors.As(err, &mismatch) || mismatch.Key != "order-17" || mismatch.Problem.Code != want.Code || mismatch.Problem.Status != want.Status {
			t.Errorf("%s: %v", path, err)
		}
		if !errors.Is(err, client.ErrUnknown) || len(w.clock.paused()) != 0 {
			t.Errorf("%s: a mismatch of a key that was used before leaves that use unknown, and is not retried", path)
		}
		w.ran(1)
	}
}

// semantics.md "States": unknown is never executed again, and the client does not ask blindly.
func TestUnknownIsATypedError(t *testing.T) {
	w := open(t)
	w.wrap("/crash", func(http.ResponseWriter, *http.Request) {
		w.runs.Add(1)
		panic("power cut")
	})
	for range 2 {
		_, err := w.post(client.WithKey(t.Context(), "import-1"), w.transport(client.Config{}), "/crash", `{}`)
		var unknown *client.OutcomeUnknownError
		if !errors.As(err, &unknown) || !errors.Is(err, client.ErrUnknown) || unknown.Key != "import-1" || unknown.RetryAfter != 10*time.Second || unknown.Problem.Code != header.CodeOutcomeUnknown {
			t.Fatalf("%+v: %v", unknown, err)
		}
	}
	// The first 500 was asked about once, the 409s never.
	if got := len(w.proxy.arrived()); got != 3 {
		t.Errorf("%d requests", got)
	}
	w.ran(1)
}

// semantics.md "Policies": Stripe stores 5xx results, and a stored one is the answer.
func TestStoredServerErrorIsTheAnswer(t *testing.T) {
	w := open(t)
	w.handle("/fails", idem.Stripe(), func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		return idem.JSON(http.StatusInternalServerError, map[string]int64{"run": w.runs.Add(1)})
	})
	w.proxy.spoil(dropAfter)
	res, err := w.post(t.Context(), w.transport(client.Config{}), "/fails", `{}`)
	if err != nil || res.StatusCode != 500 || res.body != `{"run":1}` {
		t.Fatalf("%+v, %v", res, err)
	}
	w.ran(1)
}

// direct serves without a network, so that synctest's time moves.
func direct(h http.Handler, lost func(n int64) bool) http.RoundTripper {
	var n atomic.Int64
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.Clone(context.WithoutCancel(r.Context())))
		if lost(n.Add(1)) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return w.Result(), nil
	})
}

// An attempt without an answer ends after AttemptTimeout; the caller's own deadline ends it all.
func TestSlowAnswers(t *testing.T) {
	w := open(t) // outside: its server would keep the bubble's time from moving
	synctest.Test(t, func(t *testing.T) {
		r := func(ctx context.Context) *http.Request {
			r := httptest.NewRequest("POST", "http://api.example/orders", strings.NewReader("{}")).WithContext(ctx)
			r.Header.Set("Authorization", "Bearer secret-token")
			return r
		}
		transport, err := client.New(client.Config{Base: direct(w.mux, func(n int64) bool { return n <= 2 }), AttemptTimeout: 10 * time.Second, BackoffMax: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		res, err := transport.RoundTrip(r(t.Context()))
		if took := time.Since(began); err != nil || res.StatusCode != 201 || took < 20*time.Second || took > 22*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		if w.runs.Load() != 1 {
			t.Errorf("%d runs", w.runs.Load())
		}

		transport, err = client.New(client.Config{Base: direct(w.mux, func(int64) bool { return true }), AttemptTimeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		began = time.Now()
		_, err = transport.RoundTrip(r(ctx))
		var gaveUp *client.GaveUpError
		if took := time.Since(began); !errors.As(err, &gaveUp) || !errors.Is(err, context.DeadlineExceeded) || gaveUp.Attempts != 2 || took != 15*time.Second {
			t.Errorf("%+v: %v after %v", gaveUp, err, took)
		}
	})
}

// The transport of net/http repeats a POST on a reused connection that breaks, because it carries a key. With a body it can't
// here; without one it does, and the client counts what was written.
func TestWhatNetHTTPRepeatsIsCounted(t *testing.T) {
	for name, test := range map[string]struct {
		body  string
		sends int
	}{"with a body": {`{}`, 1}, "without": {"", 2}} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.warm()
			w.proxy.spoil(dropAfter, dropAfter)
			_, err := w.post(t.Context(), w.transport(client.Config{AttemptsMax: 1}), "/imports", test.body)
			var gaveUp *client.GaveUpError
			if !errors.As(err, &gaveUp) || gaveUp.Attempts != 1 || gaveUp.Sends != test.sends || len(w.proxy.arrived()) != test.sends {
				t.Errorf("%+v, %d arrived: %v", gaveUp, len(w.proxy.arrived()), err)
			}
			w.ran(1)
		})
	}
}

// warm leaves a connection that the next request uses again.
func (w *world) warm() {
	w.Helper()
	r, err := http.NewRequest("GET", w.server.URL+"/warm-up", nil)
	if err != nil {
		w.Fatal(err)
	}
	res, err := w.base.RoundTrip(r)
	if err != nil {
		w.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
}

// What net/http sent again by itself may have been executed the first time: an answer to the second that does not come from behind
// the key proves nothing.
func TestAnAnswerToWhatNetHTTPSentAgainIsNoProofThatNothingHappened(t *testing.T) {
	for _, code := range []int{401, 403, 404, 307} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			w := open(t)
			w.warm()
			w.proxy.spoil(dropAfter, status(code, ""))
			res, err := w.post(t.Context(), w.transport(client.Config{AttemptsMax: 1}), "/orders", "")
			var gaveUp *client.GaveUpError
			if !errors.As(err, &gaveUp) || !errors.Is(err, client.ErrUnknown) || gaveUp.Status != code || gaveUp.Attempts != 1 || gaveUp.Sends != 2 {
				t.Errorf("%v, %+v: %v", res, gaveUp, err)
			}
			w.ran(1)
		})
	}
	t.Run("mismatch", func(t *testing.T) {
		w := open(t)
		w.mux.HandleFunc("POST /mismatch", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Idempotency-Status", "mismatch")
			w.WriteHeader(422)
		})
		w.warm()
		w.proxy.spoil(dropBefore)
		_, err := w.post(t.Context(), w.transport(client.Config{}), "/mismatch", "")
		var mismatch *client.MismatchError
		if !errors.As(err, &mismatch) || !mismatch.Earlier || !errors.Is(err, client.ErrUnknown) {
			t.Errorf("%+v: %v", mismatch, err)
		}
	})
	t.Run("certificate", func(t *testing.T) {
		w := open(t)
		secure := httptest.NewUnstartedServer(w.proxy)
		secure.Config.ErrorLog = w.server.Config.ErrorLog
		secure.StartTLS()
		defer secure.Close()
		w.base.TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		var handshakes atomic.Int64
		w.base.TLSClientConfig.VerifyConnection = func(tls.ConnectionState) error {
			if handshakes.Add(1) > 1 {
				return &tls.CertificateVerificationError{Err: errors.New("it has expired meanwhile")}
			}
			return nil
		}
		w.server.URL, secure.URL = secure.URL, w.server.URL
		w.warm()
		w.proxy.spoil(dropAfter)
		_, err := w.post(t.Context(), w.transport(client.Config{}), "/orders", "")
		w.server.URL, secure.URL = secure.URL, w.server.URL
		var gaveUp *client.GaveUpError
		if !errors.As(err, &gaveUp) || gaveUp.Reason != client.ReasonPermanent || gaveUp.Sends != 1 {
			t.Errorf("%+v: %v", gaveUp, err)
		}
		w.ran(1)
	})
}

// A redirect to the first attempt with a new key says that nothing happened, so a 401 there does too; not to a given key.
func TestAfterARedirectTheFirstAttemptIsTheFirstStill(t *testing.T) {
	for name, key := range map[string]string{"a new key": "", "a given key": "order-17"} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.Handle("POST /old", http.RedirectHandler("/new", http.StatusTemporaryRedirect))
			mux.HandleFunc("POST /new", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
			server := httptest.NewServer(mux)
			defer server.Close()
			transport, err := client.New(client.Config{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, want := t.Context(), 0
			if key != "" {
				ctx, want = client.WithKey(ctx, key), http.StatusTemporaryRedirect
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/old", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			res, err := (&http.Client{Transport: transport}).Do(r)
			var gaveUp *client.GaveUpError
			switch {
			case want == 0 && (err != nil || res.StatusCode != http.StatusUnauthorized):
				t.Errorf("%v, want the 401", err)
			case want != 0 && (!errors.As(err, &gaveUp) || gaveUp.Status != want || gaveUp.Reason != client.ReasonUnproven):
				t.Errorf("%v, want it given up after the %d", err, want)
			}
			if err == nil {
				res.Body.Close()
			}
		})
	}
}

// An operation that was executed, and answered by a 303, has happened: an error of what was followed must not look like a proof that
// nothing was sent.
func TestAnErrorOfARedirectThatIsFollowedIsUnknown(t *testing.T) {
	w := open(t)
	broken := errors.New("a bad certificate")
	for name, test := range map[string]struct {
		hops    int
		ctx     context.Context
		unknown bool
	}{
		"at once":       {1, t.Context(), true},
		"after another": {2, t.Context(), true},
		"without a key": {1, client.WithoutKey(t.Context()), false},
	} {
		t.Run(name, func(t *testing.T) {
			var key string
			asked := 0
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				if asked++; asked > test.hops {
					return nil, broken
				}
				if r.Method == http.MethodPost {
					key = strings.Trim(r.Header.Get("Idempotency-Key"), `"`)
				}
				return &http.Response{StatusCode: 303, Header: http.Header{"Location": {"/elsewhere"}}, Body: http.NoBody, Request: r}, nil
			})
			req, err := http.NewRequestWithContext(test.ctx, http.MethodPost, w.server.URL+"/orders", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = (&http.Client{Transport: w.transport(client.Config{Base: base})}).Do(req)
			var gaveUp *client.GaveUpError
			if !errors.Is(err, broken) || errors.Is(err, client.ErrUnknown) != test.unknown {
				t.Fatalf("%v, want that it is unknown: %v", err, test.unknown)
			}
			if errors.As(err, &gaveUp) && (gaveUp.Key != key || key == "" || gaveUp.Status != 303) {
				t.Errorf("%+v, want the key %q", gaveUp, key)
			}
		})
	}
}

// net/http makes a URL of a Location also where it is not to follow, and its own error has no key.
func TestARedirectToWhatIsNoURLIsUnknown(t *testing.T) {
	w := open(t)
	for name, test := range map[string]struct {
		hops int
		ctx  context.Context
		want int // the status that the error has; 0 for net/http's own error
	}{
		"at once":       {1, t.Context(), 303},
		"after another": {2, t.Context(), 302},
		"without a key": {1, client.WithoutKey(t.Context()), 0},
	} {
		for _, follow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, followed: %v", name, follow), func(t *testing.T) {
				var key string
				asked := 0
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					asked++
					status, place := 302, "http://[::1"
					if asked == 1 {
						status, key = 303, strings.Trim(r.Header.Get("Idempotency-Key"), `"`)
					}
					if asked < test.hops {
						place = "/elsewhere"
					}
					return &http.Response{StatusCode: status, Header: http.Header{"Location": {place}}, Body: http.NoBody, Request: r}, nil
				})
				req, err := http.NewRequestWithContext(test.ctx, http.MethodPost, w.server.URL+"/orders", strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				asker := &http.Client{Transport: w.transport(client.Config{Base: base})}
				if !follow && test.hops == 1 {
					asker.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				}
				_, err = asker.Do(req)
				var gaveUp *client.GaveUpError
				if err == nil || errors.As(err, &gaveUp) != (test.want != 0) || asked != test.hops {
					t.Fatalf("%v after %d requests", err, asked)
				}
				if gaveUp != nil && (gaveUp.Key != key || key == "" || gaveUp.Status != test.want || gaveUp.Reason != client.ReasonPermanent) {
					t.Errorf("%+v, want the key %q and the status %d", gaveUp, key, test.want)
				}
			})
		}
	}
}

// What a login page says is no answer to an attempt that was lost before, however the http.Client takes redirects.
func TestALoginPageAfterALostAttemptIsNoAnswer(t *testing.T) {
	w := open(t)
	asked := 0
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		if asked++; asked == 1 {
			return nil, io.ErrUnexpectedEOF
		}
		return &http.Response{StatusCode: 302, Header: http.Header{"Location": {"/login"}}, Body: http.NoBody, Request: r}, nil
	})
	_, err := (&http.Client{Transport: w.transport(client.Config{Base: base})}).Post(w.server.URL+"/orders", "application/json", strings.NewReader("{}"))
	var gaveUp *client.GaveUpError
	if !errors.As(err, &gaveUp) || gaveUp.Reason != client.ReasonUnproven || gaveUp.Status != 302 || asked != 2 {
		t.Errorf("%v after %d requests", err, asked)
	}
}

// A redirect that keeps the method is one operation still.
func TestRedirectKeepsTheKey(t *testing.T) {
	w := open(t)
	w.mux.Handle("POST /moved", http.RedirectHandler("/orders", http.StatusTemporaryRedirect))
	w.proxy.spoil(pass, dropAfter)
	res, err := w.post(t.Context(), w.transport(client.Config{}), "/moved", "{}")
	if err != nil || res.StatusCode != 201 || len(w.proxy.arrived()) != 3 {
		t.Fatalf("%v, %v, %q", res, err, w.proxy.arrived())
	}
	w.ran(1)
}

// What a server answers that has no such layer, or none there.
func TestAnswersOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		header map[string]string
		body   string
		want   string
	}{
		"201":                     {201, nil, "x", "201"},
		"202":                     {202, nil, "x", "202"},
		"a conflict of its own":   {409, nil, `{"code":"order_exists"}`, "409"},
		"a problem of its own":    {422, map[string]string{"Content-Type": "application/problem+json"}, `{"code":"order_invalid"}`, "422"},
		"gone, but not the key":   {410, nil, "", "410"},
		"not implemented":         {501, nil, "", "501"},
		"unprotected 503":         {503, map[string]string{"Idempotency-Status": "unprotected"}, "", "503"},
		"too large a response":    {500, map[string]string{"Content-Type": "application/problem+json"}, `{"code":"idempotency_response_too_large"}`, "500"},
		"the key's record, 410":   {410, map[string]string{"Content-Type": "application/problem+json"}, `{"code":"idempotency_key_expired"}`, "*client.ExpiredError"},
		"the key's record, 412":   {412, map[string]string{"Content-Type": "application/problem+json; charset=utf-8"}, `{"code":"idempotency_key_expired"}`, "*client.ExpiredError"},
		"its status is text":      {410, map[string]string{"Content-Type": "application/problem+json"}, `{"code":"idempotency_key_expired","status":"410"}`, "*client.ExpiredError"},
		"a malformed parameter":   {410, map[string]string{"Content-Type": "application/problem+json; charset"}, `{"code":"idempotency_key_expired"}`, "*client.ExpiredError"},
		"unknown, body replaced":  {409, map[string]string{"Idempotency-Status": "unknown"}, "<html>", "*client.OutcomeUnknownError"},
		"mismatch, body replaced": {422, map[string]string{"Idempotency-Status": "mismatch"}, "<html>", "*client.MismatchError"},
		"in progress, likewise":   {409, map[string]string{"Idempotency-Status": "in_progress"}, "<html>", "*client.GaveUpError"},
		"always 503":              {503, nil, "", "*client.GaveUpError"},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			base := roundTripper(func(*http.Request) (*http.Response, error) {
				res := &http.Response{StatusCode: test.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(test.body))}
				for name, value := range test.header {
					res.Header.Set(name, value)
				}
				return res, nil
			})
			r := httptest.NewRequest("POST", "http://api.example/", strings.NewReader("x"))
			res, err := w.transport(client.Config{Base: base}).RoundTrip(r)
			if err != nil {
				if got := fmt.Sprintf("%T", err); got != test.want {
					t.Errorf("got %s (%v), want %s", got, err, test.want)
				}
				return
			}
			body, err := io.ReadAll(res.Body)
			if fmt.Sprint(res.StatusCode) != test.want || string(body) != test.body || err != nil {
				t.Errorf("got %d %s, want %s", res.StatusCode, body, test.want)
			}
			if len(w.clock.paused()) != 0 {
				t.Errorf("an answer was asked for again")
			}
		})
	}
}

// A connection that nobody accepts is tried again; a certificate that is not trusted, or a body that can't be read, is not.
func TestWhatIsTriedAgainOfFailures(t *testing.T) {
	w := open(t)
	transport := w.transport(client.Config{AttemptsMax: 3})
	r := httptest.NewRequest("POST", refused(t), strings.NewReader("x"))
	var gaveUp *client.GaveUpError
	if _, err := transport.RoundTrip(r); !errors.As(err, &gaveUp) || gaveUp.Attempts != 3 || gaveUp.Sends != 0 || gaveUp.Cause == nil {
		t.Errorf("%+v: %v", gaveUp, err)
	}
	server := httptest.NewUnstartedServer(w.mux)
	server.Config.ErrorLog = w.server.Config.ErrorLog
	server.StartTLS()
	defer server.Close()
	paused := len(w.clock.paused())
	if _, err := transport.RoundTrip(httptest.NewRequest("POST", server.URL, strings.NewReader("x"))); err == nil || errors.Is(err, client.ErrUnknown) {
		t.Errorf("%v", err)
	}
	r = httptest.NewRequest("POST", w.server.URL, strings.NewReader("x"))
	r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("the file is gone") }
	var body *client.BodyError
	if _, err := transport.RoundTrip(r); !errors.As(err, &body) || errors.Is(err, client.ErrUnknown) {
		t.Errorf("%v", err)
	}
	if len(w.clock.paused()) != paused || len(w.proxy.arrived()) != 0 {
		t.Errorf("paused %v, arrived %q", w.clock.paused(), w.proxy.arrived())
	}
}
