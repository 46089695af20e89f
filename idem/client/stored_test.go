package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/client"
)

// An answer is stored where its headers, or its code, say that asking again gets the same, and where it is the end of a 202.
func TestAStoredAnswerIsToldFromOneThatDecidesNothing(t *testing.T) {
	problem := func(code string) string { return fmt.Sprintf(`{"code":%q,"detail":"d"}`, code) }
	for _, c := range []struct {
		status      int
		name, value string // a header
		body        string
		stored      bool
	}{
		{status: 502, name: "Idempotent-Replayed", value: "true", body: problem("provider_unavailable"), stored: true},
		{status: 408, name: "Idempotency-Expires", value: "2030-01-01T00:00:00Z", body: problem("operation_abandoned"), stored: true},
		{status: 201, name: "Idempotency-Status", value: "replayed", stored: true},
		{status: 500, body: problem("idempotency_response_not_kept"), stored: true},
		{status: 410, body: problem("idempotency_response_erased"), stored: true},
		{status: 500, name: "Idempotency-Status", value: "unprotected", body: problem("idempotency_response_not_kept")},
		{status: 202, name: "Idempotent-Replayed", value: "true"},
		{status: 201},
		{status: 201, name: "Idempotency-Status", value: "unprotected"},
		{status: 401},
		{status: 404, body: problem("idempotency_response_too_large")},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.name != "" {
				w.Header().Set(c.name, c.value)
			}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		transport, err := client.New(client.Config{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: transport}).Post(server.URL, "application/json", strings.NewReader(`{}`))
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		res.Body.Close()
		if client.Stored(res) != c.stored {
			t.Errorf("%+v: stored %v", c, !c.stored)
		}
		server.Close()
	}
	if client.Stored(nil) || client.Stored(&http.Response{StatusCode: 201, Header: http.Header{"Idempotent-Replayed": {"true"}}}) {
		t.Error("what the transport did not return is stored")
	}
}
