package payments_test

import "testing"

// A path in another spelling is not found: a redirect would take a POST along, and a gateway's rule by route would not
// have seen it.
func TestAPathInAnotherSpellingIsNotFound(t *testing.T) {
	onBoth(t, func(w *world) {
		for _, path := range []string{"//v1/payments", "/v1//payments", "/v1/./payments", "/v1/x/../payments", "/v1%2fpayments", "/v1%2Fpayments", "/v1/payments/"} {
			w.post(tenantA, path, "k", `{"amount":1999,"currency":"EUR","source":"card_ok"}`).problem(404, "not_found")
		}
		w.send("GET", tenantA, "/v1/operations/a%2fb", "").problem(404, "operation_not_found")
	})
}
