//go:build e2e

package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/idem-go/idem-aws/localstack/stack"
)

const elsewhere = "https://elsewhere.example"

// tokens are the members of a header that is a list, in lower case.
func (r reply) tokens(name string) []string {
	var all []string
	for _, token := range strings.Split(strings.Join(r.header.Values(name), ","), ",") {
		all = append(all, strings.ToLower(strings.TrimSpace(token)))
	}
	return all
}

// lists fails the test unless the header lists all of them.
func (r reply) lists(t *testing.T, name string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !slices.Contains(r.tokens(name), strings.ToLower(want)) {
			t.Errorf("%s %q is without %s", name, r.tokens(name), want)
		}
	}
}

// admits fails the test unless the answer is for pages of that origin; of none where it is "".
func (r reply) admits(t *testing.T, origin string) {
	t.Helper()
	if got := r.header.Values("Access-Control-Allow-Origin"); strings.Join(got, ", ") != origin {
		t.Errorf("Access-Control-Allow-Origin %q, want %q: %v", got, origin, r)
	}
}

// preflight is what a browser asks before a POST with a key: without credentials (Fetch standard, "CORS-preflight fetch").
func preflight(path, origin string) request {
	return request{method: http.MethodOptions, path: path, anonymous: true, header: http.Header{
		"Origin": {origin}, "Access-Control-Request-Method": {http.MethodPost},
		"Access-Control-Request-Headers": {"authorization,content-type,idempotency-first-sent,idempotency-key"},
	}}
}

// ask sends a preflight. ministack answers those to an HTTP API by itself, whatever routes the API has: there the event
// that AWS makes of one goes to the function at once, and the template's tests hold the route.
func ask(t *testing.T, path, origin string) reply {
	t.Helper()
	r := preflight(path, origin)
	if deployed.variables["EMULATOR"] != string(stack.Ministack) {
		return deployed.tenantA.do(t, r)
	}
	headers := map[string]string{}
	for name := range r.header {
		headers[strings.ToLower(name)] = r.header.Get(name)
	}
	event := events.APIGatewayV2HTTPRequest{Version: "2.0", RouteKey: "OPTIONS " + path, RawPath: path, Headers: headers}
	event.RequestContext.HTTP.Method, event.RequestContext.HTTP.Path = r.method, path
	payload, err := json.Marshal(event)
	must(t, err)
	out, err := deployed.functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String(deployed.variables["FUNCTION_API"]), Payload: payload})
	must(t, err)
	var answer events.APIGatewayV2HTTPResponse
	must(t, json.Unmarshal(out.Payload, &answer))
	got := reply{status: answer.StatusCode, header: http.Header{}, body: []byte(answer.Body)}
	for name, value := range answer.Headers {
		got.header.Set(name, value)
	}
	return got
}

func TestPreflightNeedsNoCredentials(t *testing.T) { // semantics.md "On the wire": CORS
	t.Parallel()
	for _, path := range []string{payments, transfers, "/v1/payments/pay_x/refunds"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			got := ask(t, path, stack.Origin)
			if got.status != http.StatusNoContent && got.status != http.StatusOK {
				t.Fatalf("%v, want it answered", got)
			}
			got.admits(t, stack.Origin)
			got.lists(t, "Access-Control-Allow-Methods", http.MethodPost)
			got.lists(t, "Access-Control-Allow-Headers", "Authorization", "Content-Type", "Idempotency-Key", "Idempotency-First-Sent")
			ask(t, path, elsewhere).admits(t, "")
		})
	}
}

func TestPagesOfTheOriginReadWhatBecameOfAKey(t *testing.T) { // semantics.md "On the wire": CORS
	t.Parallel()
	r := pay("cross-origin", card("ok"))
	for _, c := range []struct{ origin, admitted string }{{stack.Origin, stack.Origin}, {elsewhere, ""}} {
		r.header = http.Header{"Origin": {c.origin}}
		got := deployed.tenantA.settle(t, r).is(t, http.StatusCreated)
		got.admits(t, c.admitted)
		if c.admitted != "" {
			got.lists(t, "Access-Control-Expose-Headers", "Idempotency-Expires", "Idempotency-Status", "Idempotent-Replayed", "Link", "Location", "Retry-After")
		} else if exposed := got.header.Get("Access-Control-Expose-Headers"); exposed != "" {
			t.Errorf("pages of %s may read %s", c.origin, exposed)
		}
	}
	chargedOnce(t, r, "succeeded")
}
