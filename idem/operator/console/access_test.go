package console_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator/console"
)

// Each rule of who is answered is broken alone, by a request that is else a good one.
func TestOnlyThisMachinesOwnPagesAreAnswered(t *testing.T) {
	w := newWorld(t)
	id := w.operation(deferred, unknown)
	b := w.served()
	page := "/operation/" + string(id)
	form := func() url.Values {
		f := b.offered(id, "resolve")
		f.Set("outcome", "delivered")
		f.Set("reference", "ch_1")
		f.Set("csrf", b.csrf)
		return f
	}
	for name, c := range map[string]struct {
		method string
		spoil  func(*http.Request)
		want   int
	}{
		"another machine":               {http.MethodGet, func(r *http.Request) { r.RemoteAddr = "192.0.2.1:50000" }, http.StatusForbidden},
		"no address":                    {http.MethodGet, func(r *http.Request) { r.RemoteAddr = "@" }, http.StatusForbidden},
		"a name that DNS has led here":  {http.MethodGet, func(r *http.Request) { r.Host = "evil.example:8080" }, http.StatusMisdirectedRequest},
		"another port":                  {http.MethodGet, func(r *http.Request) { r.Host = "127.0.0.1:9999" }, http.StatusMisdirectedRequest},
		"no cookie":                     {http.MethodGet, func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusForbidden},
		"a cookie that was never given": {http.MethodGet, func(r *http.Request) { r.Header.Set("Cookie", "idem_console_8080=guess") }, http.StatusForbidden},
		"led here by another site":      {http.MethodGet, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"led here by another port":      {http.MethodGet, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"another method":                {http.MethodPut, func(*http.Request) {}, http.StatusMethodNotAllowed},

		"a form of another site": {http.MethodPost, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
		"a form of another port": {http.MethodPost, func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:9999") }, http.StatusForbidden},
		"a form of no origin": {http.MethodPost, func(r *http.Request) {
			r.Header.Set("Origin", "null")
			r.Header.Del("Sec-Fetch-Site")
		}, http.StatusForbidden},
		"a form of no origin, of another site": {http.MethodPost, func(r *http.Request) {
			r.Header.Set("Origin", "null")
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}, http.StatusForbidden},
		"a form that says nothing of where it is from": {http.MethodPost, func(r *http.Request) {
			r.Header.Del("Origin")
			r.Header.Del("Sec-Fetch-Site")
		}, http.StatusForbidden},
		"a form that another site sent": {http.MethodPost, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"a form without its token": {http.MethodPost, func(r *http.Request) {
			f := form()
			f.Del("csrf")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(f.Encode())), -1
		}, http.StatusForbidden},
		"a form with another token": {http.MethodPost, func(r *http.Request) {
			f := form()
			f.Set("csrf", strings.Repeat("0", 64))
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(f.Encode())), -1
		}, http.StatusForbidden},
		"a form as JSON": {http.MethodPost, func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }, http.StatusUnsupportedMediaType},
		"a form without end": {http.MethodPost, func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(form().Encode()+"&x="+strings.Repeat("x", 65<<10))), -1
		}, http.StatusRequestEntityTooLarge},
		"a form without a cookie": {http.MethodPost, func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			path := page
			if c.method != http.MethodGet {
				path = "/change"
			}
			good, bad := b.request(c.method, path, form()), b.request(c.method, path, form())
			if c.method != http.MethodPut {
				if res := b.do(good); res.Code >= 400 {
					t.Fatalf("unspoiled it is %d\n%s", res.Code, res.Body)
				}
			}
			c.spoil(bad)
			res := b.do(bad)
			if res.Code != c.want || strings.Contains(res.Body.String(), "payments.charges") || res.Header().Get("Location") != "" {
				t.Errorf("%d, want %d\n%s", res.Code, c.want, res.Body)
			}
		})
	}
}

// Browsers that say in one way only that a form is from the console's page are believed: one that sends no referrer says that
// the origin is null, and older ones do not tell the site.
func TestFormsOfTheConsolesOwnPages(t *testing.T) {
	w := newWorld(t)
	b := w.served()
	for name, as := range map[string]func(http.Header){
		"no referrer": func(h http.Header) { h.Set("Origin", "null") }, "no origin": func(h http.Header) { h.Del("Origin") },
		"no site": func(h http.Header) { h.Del("Sec-Fetch-Site") },
	} {
		r := b.request(http.MethodPost, "/key", url.Values{"csrf": {b.csrf}, "tenant": {"acme"}, "key": {"none"}})
		as(r.Header)
		if res := b.do(r); res.Code != http.StatusNotFound { // there is no such operation
			t.Errorf("%s: %d\n%s", name, res.Code, res.Body)
		}
	}
}

// The token is exchanged for a cookie that scripts do not see and other sites do not send.
func TestTheTokenIsExchangedForACookie(t *testing.T) {
	w := newWorld(t)
	b := w.served()
	c := b.cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || len(c.Value) != 64 || strings.Contains(b.console.Enter(), c.Value) {
		t.Errorf("cookie %+v", c)
	}
	for _, wrong := range []string{"/enter", "/enter?token=", "/enter?token=" + strings.Repeat("0", 64)} {
		res := b.do(b.request(http.MethodGet, wrong, nil))
		if res.Code != http.StatusForbidden || len(res.Result().Cookies()) != 0 {
			t.Errorf("%s: %d, %v", wrong, res.Code, res.Result().Cookies())
		}
	}
	from := b.request(http.MethodGet, strings.TrimPrefix(b.console.Enter(), origin), nil)
	from.Header.Set("Sec-Fetch-Site", "cross-site") // a link in a terminal's own page
	if res := b.do(from); res.Code != http.StatusOK || res.Header().Get("Location") != "" {
		t.Errorf("%d %v", res.Code, res.Header())
	}
	w.advance(12 * time.Hour)
	b.get(http.StatusForbidden, "/")
	// Browsers that come and go do not fill the memory: the oldest one has to enter again.
	b.enter()
	first := *b
	for range 32 {
		w.advance(time.Second)
		b.enter()
	}
	b.get(http.StatusOK, "/")
	first.get(http.StatusForbidden, "/")
}

// Who was not let in, such as a page of somebody whose DNS has led here, is not told which system this is.
func TestWhoWasNotLetInIsNotToldWhichSystemThisIs(t *testing.T) {
	const system = "eu-central-1, payments-records"
	w := newWorld(t)
	w.cfg.About = system
	b := w.served()
	b.shows(b.get(http.StatusOK, "/"), system)
	for want, spoil := range map[int]func(*http.Request){
		http.StatusMisdirectedRequest: func(r *http.Request) { r.Host = "evil.example:8080" },
		http.StatusForbidden:          func(r *http.Request) { r.Header.Del("Cookie") },
	} {
		r := b.request(http.MethodGet, "/", nil)
		spoil(r)
		if res := b.do(r); res.Code != want || strings.Contains(res.Body.String(), system) {
			t.Errorf("%d, want %d without %q\n%s", res.Code, want, system, res.Body)
		}
	}
}

// Browsers leave out the port of HTTP's own, in the host and in the origin.
func TestTheConsoleAnswersOnPort80(t *testing.T) {
	w := newWorld(t)
	w.cfg.Address = "127.0.0.1:80"
	c, err := console.New(w.cfg)
	w.ok(err)
	t.Cleanup(c.Close)
	b := &browser{w: w, console: c}
	ask := func(method, host, path string, form url.Values) *httptest.ResponseRecorder {
		r := b.request(method, path, form)
		r.Host = host
		r.Header.Set("Origin", "http://"+host)
		r.Header.Del("Sec-Fetch-Site") // an older browser: only the origin says where the form is from
		return b.do(r)
	}
	in := ask(http.MethodGet, "127.0.0.1", strings.TrimPrefix(c.Enter(), "http://127.0.0.1:80"), nil)
	if b.cookies = in.Result().Cookies(); in.Code != http.StatusOK || len(b.cookies) != 1 {
		t.Fatalf("%d\n%s", in.Code, in.Body)
	}
	form := url.Values{"tenant": {"acme"}, "key": {"none"}, "csrf": {hidden.FindStringSubmatch(ask(http.MethodGet, "127.0.0.1", "/find", nil).Body.String())[1]}}
	for host, want := range map[string]int{
		"127.0.0.1": http.StatusNotFound, "127.0.0.1:80": http.StatusNotFound, // there is no such operation
		"127.0.0.1:8080": http.StatusMisdirectedRequest, "localhost": http.StatusMisdirectedRequest, "evil.example": http.StatusMisdirectedRequest,
	} {
		if res := ask(http.MethodPost, host, "/key", form); res.Code != want {
			t.Errorf("%s: %d, want %d\n%s", host, res.Code, want, res.Body)
		}
	}
	w.cfg.Address = address
	other := w.served()
	r := other.request(http.MethodGet, "/", nil)
	r.Host = "127.0.0.1" // is port 80, and not this console's
	if res := other.do(r); res.Code != http.StatusMisdirectedRequest {
		t.Errorf("another port: %d", res.Code)
	}
}

// Every answer, refusals and errors too, forbids what a page does not need.
func TestEveryAnswerIsHardened(t *testing.T) {
	w := newWorld(t)
	b := w.served()
	for _, path := range []string{"/", "/find", "/nowhere", "/console.css", "/console.js", "/icon.svg", "/enter", "/operation/x", "/queue/none"} {
		res := b.do(b.request(http.MethodGet, path, nil))
		for name, want := range map[string]string{
			"X-Frame-Options": "DENY", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := res.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		csp := res.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
			if !strings.Contains(csp, want) || strings.Contains(csp, "unsafe") {
				t.Errorf("%s: %s", path, csp)
			}
		}
		// What the policy forbids the pages do not have: they would be broken.
		if body := res.Body.String(); strings.Contains(body, "<style") || strings.Contains(body, " style=") || strings.Contains(body, "<script>") || strings.Contains(body, " onclick") {
			t.Errorf("%s has styles or scripts of its own:\n%s", path, body)
		}
	}
}

func TestOnlyALoopbackAddressIsServed(t *testing.T) {
	w := newWorld(t)
	for _, bad := range []string{"", "0.0.0.0:8080", "192.0.2.1:8080", "[::]:8080", "localhost:8080", "127.0.0.1", "127.0.0.1:"} {
		w.cfg.Address = bad
		var invalid *idem.ConfigError
		if _, err := console.New(w.cfg); !errors.As(err, &invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	w.cfg.Address, w.cfg.Desk = address, nil
	var invalid *idem.ConfigError
	if _, err := console.New(w.cfg); !errors.As(err, &invalid) {
		t.Error(err)
	}
	w.cfg.Desk = w.desk
	all, err := net.Listen("tcp", "0.0.0.0:0")
	w.ok(err)
	c, err := console.New(w.cfg)
	w.ok(err)
	if err := c.Serve(t.Context(), all); err == nil {
		t.Error("served on every address")
	}
	if conn, err := net.Dial("tcp", all.Addr().String()); err == nil {
		t.Error("the listener is still open", conn.Close())
	}
}

// Over a real listener: a browser is let in by the printed address, and the end waits for nobody.
func TestServe(t *testing.T) {
	w := newWorld(t)
	l, err := console.Listen(0)
	w.ok(err)
	w.cfg.Address = l.Addr().String()
	c, err := console.New(w.cfg)
	w.ok(err)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, l) }()
	res, err := http.Get(c.Enter())
	w.ok(err)
	w.ok(res.Body.Close())
	if res.StatusCode != http.StatusOK || len(res.Cookies()) != 1 {
		t.Errorf("%s, cookies %v", res.Status, res.Cookies())
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
