package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// requestWithin bounds one request, as a client of the payments API would.
const requestWithin = 45 * time.Second

// client sends each request once.
type client struct {
	base string
	http *http.Client
	// header is sent with every request.
	header http.Header
}

// inProcess answers requests by a handler, without a network.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	t.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// reply is an answer with its whole body.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// send returns an error where there was no answer.
func (c client) send(ctx context.Context, method, path, body string, header http.Header) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.GetBody = nil // without it net/http can't send a second time
	for _, headers := range []http.Header{c.header, header} {
		for name, values := range headers {
			r.Header[name] = values
		}
	}
	res, err := c.http.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, said}, err
}

// code names an answer that is not expected: by its problem's code, or by its status and Idempotency-Status.
func (r reply) code() string {
	var problem struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(r.body, &problem) == nil && problem.Code != "" {
		return fmt.Sprintf("%d %s", r.status, problem.Code)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.status, r.header.Get("Idempotency-Status")))
}

// noAnswer names a request that got none.
const noAnswer = "no answer"
