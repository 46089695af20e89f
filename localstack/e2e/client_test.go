//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/header"
)

// api calls the deployed API as one tenant.
type api struct {
	url, token string
	tenant     string // "" where it is another service's
	http       *http.Client
}

// newAPI returns a client that opens a connection for each request: a reused one may be closed by the other side, and
// this client never sends twice by itself. Whatever it is answered is heard by the audit (witness_test.go).
func newAPI(url, token, tenant string) api {
	return api{url: url, token: token, tenant: tenant, http: &http.Client{
		Timeout: 45 * time.Second, Transport: witness{&http.Transport{DisableKeepAlives: true}, tenant},
	}}
}

// request is one request; its zero value is a GET without a body.
type request struct {
	method, path string
	// key is sent as a structured-field string, where it is not empty.
	key    string
	body   string
	header http.Header
	// anonymous leaves Authorization out.
	anonymous bool
}

// reply is what came back, with the body's exact bytes.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// String is for failure messages.
func (r reply) String() string { return fmt.Sprintf("%d %v %s", r.status, r.header, r.body) }

const replyBytesMax = 8 << 20

// send returns an error where there was no answer.
func (a api) send(ctx context.Context, r request) (reply, error) {
	if r.method == "" {
		r.method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, r.method, a.url+r.path, strings.NewReader(r.body))
	if err != nil {
		return reply{}, err
	}
	req.GetBody = nil // without it net/http can't send a second time
	if !r.anonymous {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	if r.method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set(header.NameKey, `"`+r.key+`"`)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	res, err := a.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, replyBytesMax))
	return reply{status: res.StatusCode, header: res.Header, body: body}, err
}

// once sends a request that is answered.
func (a api) once(t *testing.T, r request) reply {
	t.Helper()
	got, err := a.send(t.Context(), r)
	if err != nil {
		t.Fatalf("%s %s: no answer: %v", r.method, r.path, err)
	}
	return got
}

// attemptsMax is how often do sends a request at most.
const attemptsMax = 3

// do is once for a request that finds a store. Where its suite allows an honest 503, that is no answer to what the test asks: it is
// counted, and the request sent again. A suite that met more than it allows fails the run.
func (a api) do(t *testing.T, r request) reply {
	t.Helper()
	for attempt := 1; ; attempt++ {
		began := time.Now()
		got := a.once(t, r)
		if !got.starved() || attempt == attemptsMax || !a.explained(r, began) {
			return got
		}
		t.Logf("%s %s: no store, once more: %v", r.method, r.path, got)
		wait, err := got.pause()
		must(t, err)
		time.Sleep(wait)
	}
}

func (a api) get(t *testing.T, path string) reply {
	t.Helper()
	return a.do(t, request{path: path})
}

func (a api) post(t *testing.T, path, key, body string) reply {
	t.Helper()
	return a.do(t, request{method: http.MethodPost, path: path, key: key, body: body})
}

// outcome is an answer that somebody waits for, or why there was none, and how long that took.
type outcome struct {
	reply
	err  error
	took time.Duration
}

// shortestStall is the least time that a request takes which finds no store because an emulator stalls: an API key is read twice, for a
// second each, and everything after that is waited for for longer. What is answered so sooner was given up for one error.
const shortestStall = 2 * time.Second

// unseen says that the API function has not seen the request, because the emulator stalled while the authorizer read the API key.
func (o outcome) unseen() bool { return o.err == nil && o.keysUnread() && o.took >= shortestStall }

// begin sends a request and returns at once.
func (a api) begin(t *testing.T, r request) <-chan outcome {
	done := make(chan outcome, 1)
	ctx := t.Context()
	go func() {
		began := time.Now()
		got, err := a.send(ctx, r)
		done <- outcome{got, err, time.Since(began)}
	}()
	return done
}

// reach is once for a request whose first answer is judged: one that the API function has not seen is sent again.
func (a api) reach(t *testing.T, r request) outcome {
	t.Helper()
	for attempt := 1; ; attempt++ {
		got := <-a.begin(t, r)
		if got.err != nil {
			t.Fatalf("%s %s: no answer: %v", r.method, r.path, got.err)
		}
		if !got.unseen() || attempt == attemptsMax {
			return got
		}
		t.Logf("%s %s: the API key could not be read, once more: %v", r.method, r.path, got.reply)
	}
}

// settle is resolve for a request that comes to its end.
func (a api) settle(t *testing.T, r request) reply {
	t.Helper()
	got, err := a.resolve(t.Context(), r)
	must(t, err)
	return got
}

// resolve sends the request as a well-behaved client does, again by Retry-After after each 202 and 409, until the final answer. A
// 503 is taken so only where a fault is injected that the request may meet, and is counted; any other is an error. It returns an
// error where the end takes too long, too.
func (a api) resolve(ctx context.Context, r request) (reply, error) {
	until := time.Now().Add(delivered)
	for {
		began := time.Now()
		got, err := a.send(ctx, r)
		if err != nil {
			return got, err
		}
		switch {
		case got.starved():
			if !a.explained(r, began) {
				return got, fmt.Errorf("no store, and no fault that explains it: %v", got)
			}
		case got.status == http.StatusAccepted, got.status == http.StatusConflict:
		default:
			return got, nil
		}
		wait, err := got.pause()
		if err != nil {
			return got, err
		}
		if time.Now().Add(wait).After(until) {
			return got, fmt.Errorf("no final answer within %s: %v", delivered, got)
		}
		<-time.After(wait)
	}
}

// pause is how long to wait before the request is sent again: the gateway's own answers do not say.
func (r reply) pause() (time.Duration, error) {
	if r.keysUnread() {
		return time.Second, nil
	}
	return r.retryAfter()
}

// retryAfter is what every 202, 409 and 503 carries (semantics.md "On the wire").
func (r reply) retryAfter() (time.Duration, error) {
	seconds, err := strconv.Atoi(r.header.Get(header.NameRetryAfter))
	if err != nil || seconds < 1 || seconds > 60 {
		return 0, fmt.Errorf("header Retry-After of %v: want 1 to 60 seconds", r)
	}
	return time.Duration(seconds) * time.Second, nil
}

// comesBack fails the test unless the answer says when to come back.
func (r reply) comesBack(t *testing.T) reply {
	t.Helper()
	_, err := r.retryAfter()
	must(t, err)
	return r
}

// starved says that nothing was executed because the store, or time, was missing: any 503, and what the gateway answers then.
func (r reply) starved() bool { return r.status == http.StatusServiceUnavailable || r.keysUnread() }

// keysUnread says that the gateway has answered, because the authorizer could not read the API keys (docs/payments-api.md "API
// keys"): the api function has not seen the request.
func (r reply) keysUnread() bool {
	return r.status == http.StatusInternalServerError && r.header.Get(header.NameStatus) == "" && strings.Contains(string(r.body), `"message": "Internal Server Error"`)
}

// is fails the test unless the answer has the status, and returns it.
func (r reply) is(t *testing.T, status int) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %v", r.status, status, r)
	}
	return r
}

// says fails the test unless the answer has the Idempotency-Status; Idempotent-Replayed goes with it.
func (r reply) says(t *testing.T, status string) reply {
	t.Helper()
	if got := r.header.Get(header.NameStatus); got != status {
		t.Errorf("%s is %q, want %q: %v", header.NameStatus, got, status, r)
	}
	replayed := ""
	if status == "replayed" {
		replayed = "true"
	}
	if got := r.header.Get(header.NameReplayed); got != replayed {
		t.Errorf("%s is %q, want %q: %v", header.NameReplayed, got, replayed, r)
	}
	return r
}

// problem is a problem document (RFC 9457).
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Errors []struct {
		Pointer string `json:"pointer"`
		Detail  string `json:"detail"`
	} `json:"errors"`
}

// isProblem fails the test unless the answer is a problem document with the status and the code, and returns it.
func (r reply) isProblem(t *testing.T, status int, code string) problem {
	t.Helper()
	r.is(t, status)
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q, want application/problem+json: %v", got, r)
	}
	p := decode[problem](t, r)
	if p.Code != code || p.Status != status || p.Title == "" || p.Detail == "" || p.Type == "" {
		t.Errorf("problem %s, want status %d, code %s, and title, type and detail", r.body, status, code)
	}
	return p
}

// same fails the test unless the two answers are the same, byte for byte, in all that a replay promises.
func same(t *testing.T, got, want reply) {
	t.Helper()
	if got.differs(want) {
		t.Errorf("another answer than before:\n got %v\nwant %v", got, want)
	}
}

// differs says that two answers are not the same in all that a replay promises: status, body, Content-Type and Location.
func (r reply) differs(other reply) bool {
	return r.status != other.status || !bytes.Equal(r.body, other.body) ||
		r.header.Get("Content-Type") != other.header.Get("Content-Type") || r.header.Get("Location") != other.header.Get("Location")
}

func decode[T any](t *testing.T, r reply) T {
	t.Helper()
	var value T
	decoder := json.NewDecoder(bytes.NewReader(r.body))
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("body of %v: %v", r, err)
	}
	return value
}
