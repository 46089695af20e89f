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

// Send sends a customer's request to the service. An empty key is none.
func Send(t *testing.T, service http.Handler, method, path, key, body string) Answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.SetBasicAuth("customer-1", "secret")
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", `"`+key+`"`)
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
