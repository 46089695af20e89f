//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/token"
)

func TestMismatchIsRefusedAndTheFirstResultStays(t *testing.T) { // semantics.md: other payload 422
	t.Parallel()
	r := pay("mismatch", card("ok"))
	final, _ := settledOnce(t, r)
	other := r
	other.body = paymentBody(2000, card("ok"), r.key)
	refused := deployed.tenantA.do(t, other).says(t, "mismatch")
	refused.isProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused_with_different_payload")
	if strings.Contains(string(refused.body), "1999") || strings.Contains(string(refused.body), "pay_") {
		t.Errorf("the refusal tells of the stored request: %s", refused.body)
	}
	same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)

	// Also for a transfer, and whatever the state of the record: a stored rejection is as much a first result.
	poor := open(t, "mismatch", 1)
	deployed.tenantA.do(t, move("mismatch", poor, "acct_2", 5)).isProblem(t, http.StatusPaymentRequired, "insufficient_funds")
	deployed.tenantA.do(t, move("mismatch", poor, "acct_2", 1)).says(t, "mismatch").
		isProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused_with_different_payload")
}

func TestKeySyntax(t *testing.T) { // semantics.md "On the wire": Idempotency-Key
	t.Parallel()
	long := run + strings.Repeat("k", 255-len(run))
	for name, c := range map[string]struct {
		lines []string
		code  string // "" = accepted
	}{
		"none":                  {nil, "idempotency_key_missing"},
		"quoted":                {[]string{`"` + named("quoted") + `"`}, ""},
		"bare":                  {[]string{named("bare")}, ""},
		"255 characters":        {[]string{long}, ""},
		"comma within quotes":   {[]string{`"` + named("a, b") + `"`}, ""},
		"256 characters":        {[]string{long + "k"}, "idempotency_key_invalid"},
		"256 quoted":            {[]string{`"` + long + `k"`}, "idempotency_key_invalid"},
		"twice":                 {[]string{named("one"), named("two")}, "idempotency_key_invalid"},
		"twice the same":        {[]string{named("one"), named("one")}, "idempotency_key_invalid"},
		"comma":                 {[]string{named("one") + "," + named("two")}, "idempotency_key_invalid"},
		"list of quoted":        {[]string{`"a", "b"`}, "idempotency_key_invalid"},
		"parameter":             {[]string{`"` + named("p") + `";q=1`}, "idempotency_key_invalid"},
		"unclosed quote":        {[]string{`"` + named("q")}, "idempotency_key_invalid"},
		"empty":                 {[]string{""}, "idempotency_key_invalid"},
		"empty string":          {[]string{`""`}, "idempotency_key_invalid"},
		"backslash in bare key": {[]string{named(`a\b`)}, "idempotency_key_invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request{method: http.MethodPost, path: transfers, body: transferBody("acct_2", "acct_nobody", 1), header: http.Header{}}
			if c.lines != nil {
				r.header["Idempotency-Key"] = c.lines
			}
			got := deployed.tenantA.do(t, r)
			if c.code == "" {
				got.says(t, "executed").isProblem(t, http.StatusNotFound, "account_not_found") // it ran, and that is its result
				return
			}
			got.isProblem(t, http.StatusBadRequest, c.code)
		})
	}
}

func TestQuotedAndBareAreTheSameKey(t *testing.T) { // semantics.md: `"abc"` and `abc` are the same key
	t.Parallel()
	r := pay("quoted-or-bare", card("ok"))
	final, _ := settledOnce(t, r)
	r.header, r.key = http.Header{"Idempotency-Key": {r.key}}, ""
	same(t, deployed.tenantA.do(t, r).says(t, "replayed"), final)
}

func TestReadsNeedNoKeyAndIgnoreOne(t *testing.T) { // semantics.md: GET never needs the header
	t.Parallel()
	without := deployed.tenantA.get(t, "/v1/accounts/acct_2").is(t, http.StatusOK).says(t, "")
	with := deployed.tenantA.do(t, request{path: "/v1/accounts/acct_2", key: named("read")}).is(t, http.StatusOK).says(t, "ignored")
	same(t, with, without)
}

func TestCallersAreAuthenticated(t *testing.T) { // payments-api.md: missing 401, wrong 403, replays too
	t.Parallel()
	r := pay("authenticated", card("ok"))
	settledOnce(t, r)
	for name, c := range map[string]struct {
		authorization []string
		status        int
		code          string
	}{
		"no token":      {nil, http.StatusUnauthorized, "unauthorized"},
		"unknown token": {[]string{"Bearer " + token.New(token.Test)}, http.StatusForbidden, "forbidden"},
		"short token":   {[]string{"Bearer x"}, http.StatusForbidden, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, asked := range []request{r, {path: "/v1/accounts/acct_1"}} {
				asked.anonymous = true
				asked.header = http.Header{}
				if c.authorization != nil {
					asked.header["Authorization"] = c.authorization
				}
				got := deployed.tenantA.do(t, asked).is(t, c.status)
				if !deployed.gatewayAuthenticates() { // else the body is the gateway's own
					got.isProblem(t, c.status, c.code)
				}
				if got.header.Get("Idempotency-Status") != "" || strings.Contains(string(got.body), "pay_") {
					t.Errorf("a refused caller was told %v", got)
				}
			}
		})
	}
}
