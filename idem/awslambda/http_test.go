package awslambda

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

var _ lambda.Handler = Handler(nil)

const payment = `{"amount":1999,"currency":"EUR","source":"card_ok","reference":"order-17"}`

func sample(t testing.TB, name string) []byte {
	t.Helper()
	event, err := os.ReadFile(filepath.Join("..", "..", "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return event
}

// edit changes members of an event; nil removes one.
func edit(t testing.TB, event []byte, members map[string]any) []byte {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal(event, &e); err != nil {
		t.Fatal(err)
	}
	for path, value := range members {
		at, names := e, strings.Split(path, "/")
		for _, name := range names[:len(names)-1] {
			at = at[name].(map[string]any)
		}
		if last := names[len(names)-1]; value == nil {
			delete(at, last)
		} else {
			at[last] = value
		}
	}
	edited, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return edited
}

// received serves one event and returns what the handler saw of it.
func received(t *testing.T, event []byte) (r *http.Request, body string) {
	t.Helper()
	handler := HTTP(http.HandlerFunc(func(_ http.ResponseWriter, got *http.Request) {
		raw, err := io.ReadAll(got.Body)
		if err != nil {
			t.Error(err)
		}
		r, body = got, string(raw)
	}), Config{})
	if _, err := handler.Invoke(context.Background(), event); err != nil {
		t.Fatal(err)
	}
	return r, body
}

func TestPaymentArrivesTheSameThroughEveryGateway(t *testing.T) {
	for name, host := range map[string]string{
		"api-http-payment": "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com",
		"api-rest-payment": "f6g7h8i9j0.execute-api.us-east-1.amazonaws.com",
		"api-url-payment":  "n4o5p6q7r8s9t0u1v2w3x4y5z6a7b8c9.lambda-url.us-east-1.on.aws",
		"api-alb-payment":  "payments-1234567890.us-east-1.elb.amazonaws.com",
	} {
		t.Run(name, func(t *testing.T) {
			r, body := received(t, sample(t, name))
			if r.Method != "POST" || r.URL.Path != "/v1/payments" || body != payment || r.ContentLength != int64(len(payment)) {
				t.Errorf("got %s %s with %q (%d bytes)", r.Method, r.URL.Path, body, r.ContentLength)
			}
			if got := r.Header.Values("Idempotency-Key"); !slices.Equal(got, []string{`"order-17"`}) {
				t.Errorf("key lines %q", got)
			}
			if r.Host != host || r.Header.Get("Host") != "" || r.RemoteAddr != "203.0.113.7:0" || r.ProtoMajor != 1 {
				t.Errorf("host %q, header %q, from %s, %s", r.Host, r.Header.Get("Host"), r.RemoteAddr, r.Proto)
			}
			if !strings.HasPrefix(r.RequestURI, "/v1/payments") {
				t.Errorf("request URI %q", r.RequestURI)
			}
		})
	}
}

func TestCookiesQueryAndMethod(t *testing.T) {
	for _, name := range []string{"api-http-payment", "api-rest-payment"} {
		r, _ := received(t, sample(t, name))
		if cookie, err := r.Cookie("theme"); err != nil || cookie.Value != "dark" {
			t.Errorf("%s: cookie %v, %v", name, cookie, err)
		}
	}
	r, body := received(t, sample(t, "api-http-account"))
	if r.Method != "GET" || r.URL.Path != "/v1/accounts/acct_1" || body != "" || r.Body != http.NoBody {
		t.Errorf("got %s %s with %q", r.Method, r.URL, body)
	}
	http2 := edit(t, sample(t, "api-http-payment"), map[string]any{"rawQueryString": "a=1&b=x%20y&a=2"})
	rest := edit(t, sample(t, "api-rest-payment"), map[string]any{
		"multiValueQueryStringParameters": map[string]any{"a": []string{"1", "2"}, "b": []string{"x y"}},
	})
	single := edit(t, sample(t, "api-rest-payment"), map[string]any{"queryStringParameters": map[string]any{"a": "2", "b": "x y"}})
	alb := edit(t, sample(t, "api-alb-payment"), map[string]any{
		"multiValueQueryStringParameters": map[string]any{"a": []string{"1", "2"}, "b": []string{"x%20y"}},
	})
	for name, event := range map[string][]byte{"http": http2, "rest": rest, "rest, single": single, "alb": alb} {
		r, _ := received(t, event)
		query := r.URL.Query()
		if a := query["a"]; a[len(a)-1] != "2" || name != "rest, single" && len(a) != 2 || query.Get("b") != "x y" {
			t.Errorf("%s: query %v", name, query)
		}
	}
}

func TestPathIsWithoutStageAndUnescapedOnce(t *testing.T) {
	const own, custom = "id.execute-api.eu-west-1.amazonaws.com", "api.example.com"
	for _, test := range []struct{ clause, domain, stage, rawPath, path, escaped string }{
		{"the default stage", own, "$default", "/v1/payments", "/v1/payments", "/v1/payments"},
		{"a named stage", own, "prod", "/prod/v1/payments", "/v1/payments", "/v1/payments"},
		{"a named stage's root", own, "prod", "/prod", "/", "/"},
		{"a path that begins like the stage", own, "v1", "/v1x/payments", "/v1x/payments", "/v1x/payments"},
		{"a custom domain has no stage in its path", custom, "v1", "/v1/payments", "/v1/payments", "/v1/payments"},
		{"decoded by the gateway", own, "$default", "/v1/a b", "/v1/a b", "/v1/a%20b"},
		{"as it was sent", own, "$default", "/v1/a%2Fb", "/v1/a/b", "/v1/a%2Fb"},
		{"%25 stays escaped", own, "$default", "/v1/a%252Fb", "/v1/a%2Fb", "/v1/a%252Fb"},
		{"a lone percent sign", own, "$default", "/v1/100%", "/v1/100%", "/v1/100%25"},
		{"no path", own, "$default", "", "/", "/"},
	} {
		event := edit(t, sample(t, "api-http-payment"), map[string]any{
			"rawPath": test.rawPath, "requestContext/domainName": test.domain, "requestContext/stage": test.stage,
		})
		r, _ := received(t, event)
		if r.URL.Path != test.path || r.URL.EscapedPath() != test.escaped {
			t.Errorf("%s: got %q, %q", test.clause, r.URL.Path, r.URL.EscapedPath())
		}
	}
	rest := edit(t, sample(t, "api-rest-payment"), map[string]any{"path": "/prod/x", "requestContext/stage": "prod"})
	if r, _ := received(t, rest); r.URL.Path != "/prod/x" {
		t.Errorf("a REST API's path has no stage, got %q", r.URL.Path)
	}
}

// semantics.md "On the wire": duplicates of the key must reach the parser as what they are.
func TestDuplicateHeadersStayVisible(t *testing.T) {
	joined := edit(t, sample(t, "api-http-payment"), map[string]any{"headers/idempotency-key": `"a","b"`})
	lines := edit(t, sample(t, "api-rest-payment"), map[string]any{"multiValueHeaders/Idempotency-Key": []string{"a", "b"}})
	spellings := edit(t, sample(t, "api-rest-payment"), map[string]any{"multiValueHeaders/idempotency-KEY": []string{"b"}})
	for name, test := range map[string]struct {
		event []byte
		want  []string
	}{
		"joined": {joined, []string{`"a","b"`}}, "lines": {lines, []string{"a", "b"}}, "spellings": {spellings, []string{`"order-17"`, "b"}},
	} {
		if r, _ := received(t, test.event); !slices.Equal(r.Header.Values("Idempotency-Key"), test.want) {
			t.Errorf("%s: got %q", name, r.Header.Values("Idempotency-Key"))
		}
	}
}

func TestAuthorizer(t *testing.T) {
	cognito := edit(t, sample(t, "api-rest-payment"), map[string]any{
		"requestContext/authorizer": map[string]any{"claims": map[string]any{"sub": "user-1", "email_verified": true}},
	})
	restIAM := edit(t, sample(t, "api-rest-payment"), map[string]any{
		"requestContext/authorizer": nil, "requestContext/identity": map[string]any{"userArn": "arn:user", "accountId": "1"},
	})
	for name, test := range map[string]struct {
		event []byte
		value func(Authorizer) string
		want  string
	}{
		"HTTP API, Lambda":  {sample(t, "api-http-payment"), func(a Authorizer) string { return a.Lambda["tenant"] }, "tenant-a"},
		"HTTP API, JWT":     {sample(t, "api-http-jwt"), func(a Authorizer) string { return a.Claims["custom:tenant"] + a.Lambda["custom:tenant"] }, "tenant-a"},
		"function URL, IAM": {sample(t, "api-url-payment"), func(a Authorizer) string { return a.IAM["userArn"] }, "arn:aws:iam::111122223333:user/tenant-a"},
		"REST API, Lambda":  {sample(t, "api-rest-payment"), func(a Authorizer) string { return a.Lambda["tenant"] + a.Lambda["integrationLatency"] }, "tenant-a"},
		"REST API, Cognito": {cognito, func(a Authorizer) string { return a.Claims["sub"] + a.Claims["email_verified"] + a.Lambda["claims"] }, "user-1true"},
		"REST API, IAM":     {restIAM, func(a Authorizer) string { return a.IAM["userArn"] }, "arn:user"},
	} {
		r, _ := received(t, test.event)
		a, ok := AuthorizerFrom(r.Context())
		if !ok || test.value(a) != test.want {
			t.Errorf("%s: got %q, %v", name, test.value(a), ok)
		}
	}
}

func TestWithoutAuthorizerNobodyIsAuthenticated(t *testing.T) {
	for name, event := range map[string][]byte{
		"HTTP API":     edit(t, sample(t, "api-http-payment"), map[string]any{"requestContext/authorizer": nil}),
		"HTTP, empty":  edit(t, sample(t, "api-http-payment"), map[string]any{"requestContext/authorizer": map[string]any{}}),
		"HTTP, scalar": edit(t, sample(t, "api-http-payment"), map[string]any{"requestContext/authorizer": "tenant-a"}),
		"flat in v2":   edit(t, sample(t, "api-http-payment"), map[string]any{"requestContext/authorizer": map[string]any{"tenant": "tenant-a"}}),
		"REST API":     edit(t, sample(t, "api-rest-payment"), map[string]any{"requestContext/authorizer": nil}),
		"nested value": edit(t, sample(t, "api-rest-payment"), map[string]any{"requestContext/authorizer": map[string]any{"tenant": map[string]any{"a": 1}}}),
		"ALB":          edit(t, sample(t, "api-alb-payment"), map[string]any{"requestContext/authorizer": map[string]any{"tenant": "tenant-a"}}),
	} {
		r, _ := received(t, event)
		if a, ok := AuthorizerFrom(r.Context()); ok {
			t.Errorf("%s: got %+v", name, a)
		}
	}
	if _, ok := AuthorizerFrom(context.Background()); ok {
		t.Error("a context without an event has an authorizer")
	}
}

func TestDeadlineIsTheFunctions(t *testing.T) {
	deadline := time.Unix(4_000_000_000, 0)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	handler := HTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got, ok := r.Context().Deadline(); !ok || !got.Equal(deadline) {
			t.Errorf("deadline %v, %v", got, ok)
		}
	}), Config{})
	if _, err := handler.Invoke(ctx, sample(t, "api-http-payment")); err != nil {
		t.Fatal(err)
	}
}

func TestOtherEventsAreRefused(t *testing.T) {
	handler := HTTP(http.NotFoundHandler(), Config{})
	for name, event := range map[string][]byte{
		"schedule": sample(t, "sweep-schedule"), "queue": sample(t, "worker-queue"), "authorizer token": sample(t, "authorizer-rest-token"),
		"null": []byte("null"), "array": []byte("[]"), "not JSON": []byte("{"), "empty": nil,
		"no method":      edit(t, sample(t, "api-http-payment"), map[string]any{"requestContext/http/method": ""}),
		"bad method":     edit(t, sample(t, "api-http-payment"), map[string]any{"requestContext/http/method": "PO ST"}),
		"bad base64":     edit(t, sample(t, "api-rest-payment"), map[string]any{"body": "%%%"}),
		"wrong types":    edit(t, sample(t, "api-http-payment"), map[string]any{"headers": []string{"a"}}),
		"unknown format": edit(t, sample(t, "api-http-payment"), map[string]any{"version": "3.0"}),
	} {
		if out, err := handler.Invoke(context.Background(), event); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: got %s, %v", name, out, err)
		}
	}
}

// answered serves an event with the handler and decodes the response.
func answered(t *testing.T, event []byte, h http.HandlerFunc) (response, []byte) {
	t.Helper()
	payload, err := HTTP(h, Config{}).Invoke(context.Background(), event)
	if err != nil {
		t.Fatal(err)
	}
	if len(payload) > 6<<20 {
		t.Fatalf("a response of %d bytes fails the invocation", len(payload))
	}
	var out response
	if err := json.Unmarshal(payload, &out); err != nil {
		t.Fatal(err)
	}
	body := []byte(out.Body)
	if out.IsBase64Encoded {
		if body, err = base64.StdEncoding.DecodeString(out.Body); err != nil {
			t.Fatal(err)
		}
	}
	return out, body
}

// As net/http does, no type is guessed from bytes that are coded.
func TestTheTypeOfACodedBodyIsNotGuessed(t *testing.T) {
	out, body := answered(t, sample(t, "api-http-payment"), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "\x1f\x8b\x08")
	})
	if guessed := out.Headers["Content-Type"]; guessed != "" || string(body) != "\x1f\x8b\x08" || !out.IsBase64Encoded {
		t.Errorf("type %q, base64 %v, %q", guessed, out.IsBase64Encoded, body)
	}
}

func TestBodiesComeOutByteForByte(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 40<<10) // and no more, for a load balancer
	for _, test := range []struct {
		name, contentType, body string
		base64                  bool
	}{
		{"empty", "application/json", "", false},
		{"zero", "application/json", "0", false},
		{"object", "application/json; charset=utf-8", "{}", false},
		{"problem", "application/problem+json", `{"a":"<&>"}`, false},
		{"not UTF-8", "application/json", "\xff\x00", true},
		{"binary", "application/octet-stream", "\x00\x01\xfe", true},
		{"text of a binary type", "application/octet-stream", "abc", true},
		{"640 KiB", "text/plain", large, false},
		{"640 KiB, binary", "image/png", large, true},
	} {
		for _, event := range []string{"api-http-payment", "api-rest-payment", "api-url-payment", "api-alb-payment"} {
			out, body := answered(t, sample(t, event), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				w.WriteHeader(http.StatusCreated)
				io.WriteString(w, test.body)
			})
			if string(body) != test.body || out.IsBase64Encoded != test.base64 || out.StatusCode != 201 {
				t.Errorf("%s, %s: %d, base64 %v, %d bytes", event, test.name, out.StatusCode, out.IsBase64Encoded, len(body))
			}
		}
	}
}

func TestHeadersTakeTheGatewaysForm(t *testing.T) {
	write := func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Add("Set-Cookie", "a=1")
		h.Add("Set-Cookie", "b=2")
		h.Add("Vary", "Origin")
		h.Add("Vary", "Accept")
		h.Set("Location", "/v1/x\r\nEvil: 1")
		h.Set("Content-Length", "2")
		io.WriteString(w, "ok")
		h.Set("Late", "1")
	}
	out, _ := answered(t, sample(t, "api-http-payment"), write)
	if !slices.Equal(out.Cookies, []string{"a=1", "b=2"}) || out.Headers["Vary"] != "Origin, Accept" || out.Headers["Set-Cookie"] != "" || out.MultiValueHeaders != nil {
		t.Errorf("HTTP API: %+v", out)
	}
	if out.Headers["Location"] != "/v1/x  Evil: 1" || out.Headers["Late"] != "" || out.Headers["Content-Length"] != "" {
		t.Errorf("HTTP API: %+v", out)
	}
	if out.Headers["Content-Type"] != "text/plain; charset=utf-8" {
		t.Errorf("content type %q, net/http would have found one", out.Headers["Content-Type"])
	}
	for _, event := range []string{"api-rest-payment", "api-alb-payment"} {
		out, _ := answered(t, sample(t, event), write)
		if !slices.Equal(out.MultiValueHeaders["Set-Cookie"], []string{"a=1", "b=2"}) || out.Headers != nil || out.Cookies != nil {
			t.Errorf("%s: %+v", event, out)
		}
	}
	single := edit(t, sample(t, "api-alb-payment"), map[string]any{"multiValueHeaders": nil, "headers": map[string]string{"host": "x"}})
	out, _ = answered(t, single, write)
	if out.Headers["Set-Cookie"] != "b=2" || out.StatusDescription != "200 OK" {
		t.Errorf("ALB: %+v", out)
	}
}

func TestStatusWithoutBody(t *testing.T) {
	out, body := answered(t, sample(t, "api-http-payment"), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProcessing)
		w.WriteHeader(http.StatusNoContent)
		if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
			t.Errorf("a 204 took a body: %v", err)
		}
		w.WriteHeader(http.StatusTeapot)
	})
	if out.StatusCode != 204 || len(body) != 0 {
		t.Errorf("got %d with %q", out.StatusCode, body)
	}
	out, _ = answered(t, sample(t, "api-http-payment"), func(http.ResponseWriter, *http.Request) {})
	if out.StatusCode != 200 {
		t.Errorf("a silent handler: %d", out.StatusCode)
	}
}

func problemCode(t *testing.T, body []byte) string {
	t.Helper()
	var p struct{ Code string }
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("%q is no problem document", body)
	}
	return p.Code
}

// What can't be returned is an answer with a code, not a failed invocation.
func TestTooLargeIsAProblem(t *testing.T) {
	for name, write := range map[string]http.HandlerFunc{
		"text": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Write(make([]byte, 7<<20))
		},
		"binary that base64 makes too large": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			w.Write(make([]byte, 5<<20))
		},
		"piece by piece": func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				w.Write(make([]byte, 1<<20))
			}
		},
	} {
		out, body := answered(t, sample(t, "api-http-payment"), write)
		if out.StatusCode != 500 || problemCode(t, body) != "response_too_large" {
			t.Errorf("%s: %d %s", name, out.StatusCode, body)
		}
	}
	// 3 MB of bytes that JSON escapes to 18 MB travel as base64.
	escapes := strings.Repeat("\x01", 3<<20)
	out, body := answered(t, sample(t, "api-http-payment"), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, escapes)
	})
	if out.StatusCode != 200 || !out.IsBase64Encoded || string(body) != escapes {
		t.Errorf("escapes: %d, base64 %v, %d bytes", out.StatusCode, out.IsBase64Encoded, len(body))
	}
}

func TestPanicIsAProblem(t *testing.T) {
	for _, p := range []any{"boom", fmt.Errorf("boom"), http.ErrAbortHandler} {
		out, body := answered(t, sample(t, "api-http-payment"), func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "half")
			panic(p)
		})
		if out.StatusCode != 500 || problemCode(t, body) != "internal_error" || strings.Contains(string(body), "boom") {
			t.Errorf("%v: %d %s", p, out.StatusCode, body)
		}
	}
}

// The forms of requests and responses are those of the AWS library's own types.
func TestFormsAreTheLibrarys(t *testing.T) {
	for name, event := range map[string]any{
		"api-http-payment": &events.APIGatewayV2HTTPRequest{}, "api-rest-payment": &events.APIGatewayProxyRequest{},
		"api-url-payment": &events.LambdaFunctionURLRequest{}, "api-alb-payment": &events.ALBTargetGroupRequest{},
		"authorizer-http": &events.APIGatewayV2CustomAuthorizerV2Request{}, "authorizer-rest-token": &events.APIGatewayCustomAuthorizerRequest{},
		"authorizer-rest-request": &events.APIGatewayCustomAuthorizerRequestTypeRequest{}, "sweep-schedule": &events.EventBridgeEvent{},
	} {
		if err := json.Unmarshal(sample(t, name), event); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	payload, err := HTTP(http.NotFoundHandler(), Config{}).Invoke(context.Background(), sample(t, "api-http-payment"))
	if err != nil {
		t.Fatal(err)
	}
	var out events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(payload, &out); err != nil || out.StatusCode != 404 || out.Headers["Content-Type"] == "" {
		t.Errorf("got %+v, %v", out, err)
	}
}
