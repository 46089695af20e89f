package check

import (
	"net/http"
	"strings"
	"testing"
)

// Router proves that a service's POST /orders/{id}/pay is protected: one payment for a request however often it is sent,
// and never one order's answer for another's.
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
}
