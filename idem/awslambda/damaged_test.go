package awslambda

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// Gateways that hand a body over as text put U+FFFD in place of what is not UTF-8: two bodies arrive as one.
func TestATextBodyThatLostBytesIsRefused(t *testing.T) {
	raw := func(event []byte) []byte { // bytes that are no UTF-8 within the event itself
		return bytes.Replace(event, []byte("BODY"), []byte("caf\xe9"), 1)
	}
	for _, name := range []string{"api-http-payment", "api-rest-payment", "api-alb-payment", "api-url-payment"} {
		for body, c := range map[string]struct {
			event []byte
			runs  bool
		}{
			"replaced":       {edit(t, sample(t, name), map[string]any{"body": "caf\ufffd", "isBase64Encoded": false}), false},
			"not UTF-8":      {raw(edit(t, sample(t, name), map[string]any{"body": "BODY", "isBase64Encoded": false})), false},
			"text":           {edit(t, sample(t, name), map[string]any{"body": "caf\u00e9 \U0001F600", "isBase64Encoded": false}), true},
			"base64":         {edit(t, sample(t, name), map[string]any{"body": base64.StdEncoding.EncodeToString([]byte("caf\xe9")), "isBase64Encoded": true}), true},
			"base64, U+FFFD": {edit(t, sample(t, name), map[string]any{"body": base64.StdEncoding.EncodeToString([]byte("\ufffd")), "isBase64Encoded": true}), true},
			"no body at all": {edit(t, sample(t, name), map[string]any{"body": "", "isBase64Encoded": false}), true},
		} {
			runs := 0
			answer, err := HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				runs++
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusCreated)
			}), Config{}).Invoke(t.Context(), c.event)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				StatusCode int
				Body       string
			}
			var problem struct{ Code string }
			if err := json.Unmarshal(answer, &got); err != nil {
				t.Fatal(err)
			}
			if c.runs && (runs != 1 || got.StatusCode != 201) {
				t.Errorf("%s, %s: %d after %d runs", name, body, got.StatusCode, runs)
			}
			if !c.runs && (runs != 0 || got.StatusCode != 400 || json.Unmarshal([]byte(got.Body), &problem) != nil || problem.Code != "request_invalid") {
				t.Errorf("%s, %s: %d %s after %d runs", name, body, got.StatusCode, got.Body, runs)
			}
		}
	}
}
