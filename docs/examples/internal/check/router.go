package check

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Router proves that a service's POST /orders/{id}/pay is protected: one payment for a request however often it is sent,
// never one order's answer for another's, a refusal is answered as the handler says, and no spelling of the path gets past it.
func Router(t *testing.T, service http.Handler) {
	t.Helper()
	first := Send(t, service, "POST", "/orders/1/pay", "attempt-1", `{"amount":500}`).Want(t, 201, "executed")
	if want := `{"order":"1","amount":500,"number":1}`; strings.TrimSpace(first.Body) != want {
		t.Errorf("the first payment is %s, want %s", first.Body, want)
	}
	again := Send(t, service, "POST", "/orders/1/pay", "attempt-1", `{ "amount": 500 }`).Want(t, 201, "replayed")
	if again.Body != first.Body {
		t.Errorf("the retry got %s, the first request %s", again.Body, first.Body)
	}
	Send(t, service, "POST", "/orders/1/pay", "attempt-1", `{"amount":501}`).Want(t, 422, "mismatch")
	Send(t, service, "POST", "/orders/2/pay", "attempt-1", `{"amount":500}`).Want(t, 422, "mismatch")
	other := Send(t, service, "POST", "/orders/2/pay", "attempt-2", `{"amount":500}`).Want(t, 201, "executed")
	if want := `{"order":"2","amount":500,"number":2}`; strings.TrimSpace(other.Body) != want {
		t.Errorf("the other payment is %s, want %s", other.Body, want)
	}
	Send(t, service, "POST", "/orders/3/pay", "", `{"amount":500}`).Want(t, 400, "")
	Send(t, service, "POST", "/nowhere", "attempt-3", `{}`).Want(t, 404, "")
	refused := Send(t, service, "POST", "/orders/4/pay", "attempt-4", `{"amount":"much"}`).Want(t, 400, "executed")
	retried := Send(t, service, "POST", "/orders/4/pay", "attempt-4", `{"amount":"much"}`).Want(t, 400, "replayed")
	if retried.Body != refused.Body {
		t.Errorf("the retry got %s, the refused request %s", retried.Body, refused.Body)
	}
	unprotected(t, service)
	if fifth, want := Send(t, service, "POST", "/orders/5/pay", "attempt-5", `{"amount":500}`).Want(t, 201, "executed"), `"number":3}`; !strings.HasSuffix(strings.TrimSpace(fifth.Body), want) {
		t.Errorf("the third payment is %s, want %s at its end", fifth.Body, want)
	}
}

// unprotected proves that no spelling of the path leads past the protection. Nobody who is known sends these, with no key: a
// router that takes one for /orders/9/pay pays without either.
func unprotected(t *testing.T, service http.Handler) {
	t.Helper()
	for _, path := range []string{
		"/orders/9%2Fpay", "/orders%2F9/pay", "/orders%2F9%2Fpay", "/%6Frders/9%2fpay", "/orders/9/%70ay", "//orders/9/pay", "/orders/9/pay/",
		"/orders/./9/pay", "/x%2F..%2Forders/9/pay", "/x/%2E%2E/orders/9/pay",
	} {
		r := httptest.NewRequest("POST", path, strings.NewReader(`{"amount":500}`))
		r.Header.Set("Content-Type", "application/json")
		if answer := serve(service, r); answer.Status < 300 {
			t.Errorf("POST %s without credentials and without a key got %d %s", path, answer.Status, answer.Body)
		}
	}
}
