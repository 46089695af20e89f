package check

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Answer is what a service answered.
type Answer struct {
	Status int
	// Idempotency is the Idempotency-Status.
	Idempotency string
	Header      http.Header
	Body        string
}

// Send sends a customer's request to the service. An empty key is none. more are further headers, each a name and a value; an
// Authorization in them is in place of the customer's.
func Send(t *testing.T, service http.Handler, method, path, key, body string, more ...string) Answer {
	t.Helper()
	return serve(service, newRequest(t, method, path, key, body, more))
}

func newRequest(t *testing.T, method, path, key, body string, more []string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	for i := 0; i+1 < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	return r
}

func serve(service http.Handler, r *http.Request) Answer {
	if r.Header.Get("Authorization") == "" {
		r.SetBasicAuth("customer-1", "secret")
	}
	w := httptest.NewRecorder()
	service.ServeHTTP(w, r)
	return Answer{w.Code, w.Header().Get("Idempotency-Status"), w.Header(), w.Body.String()}
}

// Want fails where the answer is another.
func (a Answer) Want(t *testing.T, status int, idempotency string) Answer {
	t.Helper()
	if a.Status != status || a.Idempotency != idempotency {
		t.Errorf("got %d %q %s, want %d %q", a.Status, a.Idempotency, a.Body, status, idempotency)
	}
	return a
}
