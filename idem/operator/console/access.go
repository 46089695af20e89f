package console

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// session is a browser that was let in.
type session struct {
	// csrf is what its forms carry.
	csrf    string
	expires time.Time
}

// sessions are the browsers that were let in, by the hash of their cookie.
type sessions struct {
	mu   sync.Mutex
	open map[[sha256.Size]byte]*session
}

// add lets a browser in. The one that would end first makes room.
func (s *sessions) add(secret string, in *session, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[[sha256.Size]byte]*session{}
	}
	for key, other := range s.open {
		if !now.Before(other.expires) {
			delete(s.open, key)
		}
	}
	for len(s.open) >= sessionsMax {
		var first [sha256.Size]byte
		var found *session
		for key, other := range s.open {
			if found == nil || other.expires.Before(found.expires) {
				first, found = key, other
			}
		}
		delete(s.open, first)
	}
	s.open[sha256.Sum256([]byte(secret))] = in
}

// of is the session of a cookie; nil where there is none.
func (s *sessions) of(secret string, now time.Time) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.open[sha256.Sum256([]byte(secret))]
	if in == nil || !now.Before(in.expires) {
		return nil
	}
	return in
}

type sessionKey struct{}

// sessionOf is the request's session; nil on pages that need none.
func sessionOf(r *http.Request) *session {
	in, _ := r.Context().Value(sessionKey{}).(*session)
	return in
}

// csp lets a page load from the console what the console brings, and nothing else.
const csp = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func harden(h http.Header) {
	h.Set("Content-Security-Policy", csp)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// guarded answers only requests of a browser on this machine that was let in, and that comes from the console's own pages.
func (c *Console) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		if status, why := c.foreign(r); why != "" {
			c.refuse(w, r, status, why)
			return
		}
		if open(r) {
			next.ServeHTTP(w, r)
			return
		}
		in := c.session(r)
		if in == nil {
			c.refuse(w, r, http.StatusForbidden, "This browser was not let in, or too long ago. Open the address that the console printed when it started.")
			return
		}
		if r.Method == http.MethodPost {
			r.Body = http.MaxBytesReader(w, r.Body, formBytesMax)
			if status, why := forged(r, in); why != "" {
				c.refuse(w, r, status, why)
				return
			}
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, in)))
	})
}

// foreign says why a request is not of a page of this console, on this machine; "" where it is. A name that somebody else's
// DNS has led here is not the console's host.
func (c *Console) foreign(r *http.Request) (status int, why string) {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(from); err != nil || ip == nil || !ip.IsLoopback() {
		return http.StatusForbidden, "The console answers this machine only."
	}
	if !c.names(r.Host) {
		return http.StatusMisdirectedRequest, "The console answers to " + c.cfg.Address + " only."
	}
	site := r.Header.Get("Sec-Fetch-Site")
	switch own := site == "same-origin"; r.Method {
	case http.MethodGet, http.MethodHead:
		// The address that lets in may be followed from anywhere: it is a secret itself.
		if site != "" && site != "none" && !own && r.URL.Path != "/enter" {
			return http.StatusForbidden, "Another site has led here."
		}
	case http.MethodPost:
		// A page that tells nobody its address says "null" where it is from. Then only the browser's own word counts.
		origin := r.Header.Get("Origin")
		host, plainly := strings.CutPrefix(origin, "http://")
		named, unnamed := plainly && c.names(host), origin == "" || origin == "null"
		if site != "" && !own || !named && !unnamed || unnamed && !own {
			return http.StatusForbidden, "The form was not sent by a page of this console."
		}
	default:
		return http.StatusMethodNotAllowed, "The console knows GET and POST."
	}
	return 0, ""
}

// names says whether a host is the console's address, as browsers write it: they leave out a port that is HTTP's own.
func (c *Console) names(host string) bool {
	return host == c.cfg.Address || host == strings.TrimSuffix(c.cfg.Address, ":80")
}

// forged says why a form is not one that the console gave this browser; "" where it is.
func forged(r *http.Request, in *session) (status int, why string) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return http.StatusUnsupportedMediaType, "The console takes forms."
	}
	if err := r.ParseForm(); err != nil {
		return http.StatusRequestEntityTooLarge, "The form can't be read, or is too large."
	}
	if subtle.ConstantTimeCompare([]byte(r.PostForm.Get("csrf")), []byte(in.csrf)) != 1 {
		return http.StatusForbidden, "The form is not one that this browser was given. Load its page again."
	}
	return 0, ""
}

func (c *Console) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	c.cfg.Logger.WarnContext(r.Context(), "console.refused", "status", status, "method", r.Method, "path", r.URL.Path, "why", why)
	c.fail(w, r, &pageError{status, why})
}

// open says that a path needs no session, and that nothing of what is stored is under it.
func open(r *http.Request) bool {
	switch r.URL.Path {
	case "/enter", "/console.css", "/console.js", "/icon.svg":
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	}
	return false
}

// cookie is the name of the session's cookie. Cookies are told apart by host and not by port: two consoles differ by name.
func (c *Console) cookie() string {
	_, port, _ := net.SplitHostPort(c.cfg.Address)
	return "idem_console_" + port
}

func (c *Console) session(r *http.Request) *session {
	cookie, err := r.Cookie(c.cookie())
	if err != nil {
		return nil
	}
	return c.sessions.of(cookie.Value, c.now())
}

// enter lets a browser in that has the token. It answers with a page and not with a redirect: a strict cookie would not be
// sent along a redirect that another site began.
func (c *Console) enter(w http.ResponseWriter, r *http.Request) {
	given := r.URL.Query().Get("token")
	if subtle.ConstantTimeCompare([]byte(given), []byte(c.token)) != 1 {
		c.refuse(w, r, http.StatusForbidden, "That is not the address that the console printed when it started.")
		return
	}
	secret, err := c.mint()
	if err != nil {
		c.fail(w, r, err)
		return
	}
	csrf, err := c.mint()
	if err != nil {
		c.fail(w, r, err)
		return
	}
	now := c.now()
	c.sessions.add(secret, &session{csrf: csrf, expires: now.Add(sessionAge)}, now)
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // not Secure: the page is served over HTTP, on this machine only
		Name: c.cookie(), Value: secret, Path: "/", MaxAge: int(sessionAge.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	c.render(w, r, http.StatusOK, "enter", "Console", nil)
}
