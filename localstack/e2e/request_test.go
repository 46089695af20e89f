//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestRoutesAndMethods(t *testing.T) { // bad input: unknown route 404, wrong method 405
	t.Parallel()
	for _, path := range []string{"/", "/v1", "/v1/nothing", "/v2/payments", "/v1/payments/pay_x/nothing", "/v1/operations/"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			deployed.tenantA.get(t, path).isProblem(t, http.StatusNotFound, "not_found")
		})
	}
	for _, c := range []struct{ method, path, allow string }{
		{http.MethodDelete, payments, "POST"}, {http.MethodGet, transfers, "POST"}, {http.MethodPut, "/v1/payments/pay_x", "GET"},
		{http.MethodPost, "/v1/accounts/acct_1", "GET"}, {http.MethodPatch, "/v1/operations/op_x", "GET"},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			t.Parallel()
			got := deployed.tenantA.do(t, request{method: c.method, path: c.path, body: "{}"})
			got.isProblem(t, http.StatusMethodNotAllowed, "method_not_allowed")
			allowed := strings.Split(got.header.Get("Allow"), ", ")
			if !slices.Contains(allowed, c.allow) || slices.Contains(allowed, c.method) {
				t.Errorf("Allow %q, want %s among it and not %s", allowed, c.allow, c.method)
			}
		})
	}
}

// TestBadBodiesAreRefusedAndNothingIsStored sends a bad body, then a good one under the same key: it executes.
func TestBadBodiesAreRefusedAndNothingIsStored(t *testing.T) { // semantics.md "Fingerprint", "What is never cached"
	t.Parallel()
	good := paymentBody(100, card("ok"), named("bodies"))
	for name, c := range map[string]struct {
		body   string
		header http.Header
		status int
		code   string
	}{
		"malformed JSON":        {body: `{"amount":`, status: 400, code: "request_invalid"},
		"two values":            {body: good + good, status: 400, code: "request_invalid"},
		"empty":                 {body: "", status: 400, code: "request_invalid"},
		"duplicate names":       {body: `{"amount":1,"amount":2,"currency":"EUR","source":"c"}`, status: 400, code: "request_invalid"},
		"beyond a double":       {body: `{"amount":1e400,"currency":"EUR","source":"c"}`, status: 400, code: "request_invalid"},
		"lone surrogate":        {body: `{"amount":1,"currency":"EUR","source":"\ud800"}`, status: 400, code: "request_invalid"},
		"too deep":              {body: `{"amount":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`, status: 400, code: "request_invalid"},
		"too large":             {body: `{"reference":"` + strings.Repeat("x", 256<<10) + `"}`, status: 413, code: "request_too_large"},
		"form":                  {body: "amount=1", header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, status: 415, code: "unsupported_media_type"},
		"text":                  {body: good, header: http.Header{"Content-Type": {"text/plain"}}, status: 415, code: "unsupported_media_type"},
		"no content type":       {body: good, header: http.Header{"Content-Type": nil}, status: 415, code: "unsupported_media_type"},
		"coded":                 {body: good, header: http.Header{"Content-Encoding": {"br"}}, status: 415, code: "unsupported_media_type"},
		"fails validation":      {body: `{"amount":0,"currency":"EUR","source":"c"}`, status: 400, code: "request_invalid"},
		"not an object":         {body: `[1,2]`, status: 400, code: "request_invalid"},
		"amount beyond integer": {body: `{"amount":9007199254740993,"currency":"EUR","source":"c"}`, status: 400, code: "request_invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := pay("bad-"+strings.ReplaceAll(name, " ", "-"), card("ok"))
			fixed := bad
			bad.body, bad.header = c.body, c.header
			for range 2 {
				got := deployed.tenantA.do(t, bad)
				got.isProblem(t, c.status, c.code)
				if got.header.Get("Idempotency-Status") != "" {
					t.Errorf("an answer from before the reserve says %v", got.header)
				}
			}
			deployed.tenantA.do(t, fixed).is(t, http.StatusAccepted).says(t, "executed")
		})
	}
}

func TestValidationListsEveryError(t *testing.T) { // payments-api.md "Conventions"
	t.Parallel()
	for name, c := range map[string]struct {
		path, body string
		want       []string
	}{
		"payment": {payments, `{"amount":0,"currency":"eur","source":"","reference":7,"card":"x"}`, []string{"/amount", "/currency", "/source", "/reference", "/card"}},
		"missing": {payments, `{}`, []string{"/amount", "/currency", "/source"}},
		"bounds": {payments, fmt.Sprintf(`{"amount":100000000,"currency":"EURO","source":%q,"reference":%q}`, strings.Repeat("s", 65), strings.Repeat("r", 141)),
			[]string{"/amount", "/currency", "/source", "/reference"}},
		"transfer": {transfers, `{"from":"acct_1","to":"acct_1","amount":-5,"currency":"EUR"}`, []string{"/to", "/amount"}},
		"ids":      {transfers, `{"from":"a/b","to":"#","amount":5,"currency":"EUR"}`, []string{"/from", "/to"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := deployed.tenantA.post(t, c.path, named("invalid-"+name), c.body).isProblem(t, http.StatusBadRequest, "request_invalid")
			var got []string
			for _, e := range p.Errors {
				got = append(got, e.Pointer)
				if e.Detail == "" {
					t.Errorf("no detail at %s", e.Pointer)
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("errors at %q, want %q", got, c.want)
			}
		})
	}
}

func TestInvalidRetryOfASettledKeyIsAMismatch(t *testing.T) { // semantics.md "Order": looked up first; 422 when it differs
	t.Parallel()
	r := pay("invalid-retry", card("ok"))
	final, _ := settledOnce(t, r)
	invalid := r
	invalid.body = paymentBody(0, card("ok"), r.key)
	deployed.tenantA.do(t, invalid).says(t, "mismatch").
		isProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused_with_different_payload")
	same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
}
