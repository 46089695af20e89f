package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/client"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// status serves an operation as docs/payments-api.md has it.
func (w *world) status(ctx context.Context, r *middleware.Request) (idem.Response, error) {
	record, err := w.engine.Status(ctx, r.Identity.Tenant, idem.OperationID(r.HTTP.PathValue("id")))
	if err != nil || record == nil {
		return idem.NewProblem(404, "not_found", "Not Found", "There is no such operation.").Response(), err
	}
	view := map[string]any{"id": record.OperationID, "state": record.State, "response": nil}
	if record.State.Final() {
		headers := map[string]string{}
		for _, field := range record.Response.Header {
			headers[field.Name] = field.Value
		}
		view["response"] = map[string]any{"status": record.Response.Status, "headers": headers, "body": string(record.Response.Body)}
	}
	response, err := idem.JSON(200, view)
	return response.With("Retry-After", "3"), err
}

// The Location of a real 202 is followed, with the request's credentials, until the winner's answer is stored.
func TestAwaitFollowsTheLocation(t *testing.T) {
	w, g := open(t), &gate{make(chan struct{}), make(chan struct{})}
	policy := idem.IETF()
	policy.InFlight = idem.InFlightAccepted
	w.handle("/slow", policy, g.count(w))
	w.mux.Handle("GET /v1/operations/{id}", w.mw.Read(w.status))
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := w.post(t.Context(), w.base, "/slow", `{}`, `"order-17"`); err != nil {
			t.Error(err)
		}
	})
	<-g.started
	transport := w.transport(client.Config{})
	res, err := w.post(client.WithKey(t.Context(), "order-17"), transport, "/slow", `{}`)
	if err != nil || res.StatusCode != 202 {
		t.Fatalf("%v, %v", res, err)
	}
	w.clock.meanwhile = func(n int, _ time.Duration) {
		if n == 3 {
			close(g.release)
			wg.Wait()
		}
	}
	final, err := transport.Await(t.Context(), res.Response)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(final.Body)
	if err != nil || final.StatusCode != 201 || string(body) != `{"run":1}` || final.Header.Get("Content-Type") != "application/json" || client.KeyOf(final) != "order-17" ||
		client.Stored(res.Response) || !client.Stored(final) {
		t.Errorf("%+v %s", final, body)
	}
	if pauses := w.clock.paused(); len(pauses) != 3 || !slices.Equal(pauses[1:], []time.Duration{3 * time.Second, 3 * time.Second}) {
		t.Errorf("pauses %v", pauses)
	}
	w.ran(1)
	// Anything but a 202 is final already.
	if same, err := transport.Await(t.Context(), final); same != final || err != nil {
		t.Errorf("%v, %v", same, err)
	}
}

// scripted answers a POST with 202 and the GETs after it with the script's lines: status, Retry-After, body.
type scripted struct {
	said     string // the Idempotency-Status of the 202
	location string
	script   []string
	asked    []*http.Request
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		return &http.Response{StatusCode: 202, Header: http.Header{"Location": {s.location}, "Retry-After": {"2"}, "Idempotency-Status": {s.said}}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	}
	s.asked = append(s.asked, r)
	line := s.script[0]
	if len(s.script) > 1 {
		s.script = s.script[1:]
	}
	status, rest, _ := strings.Cut(line, " ")
	if status == "drop" {
		return nil, io.ErrUnexpectedEOF
	}
	wait, body, _ := strings.Cut(rest, " ")
	res := &http.Response{Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
	fmt.Sscan(status, &res.StatusCode)
	if wait != "-" {
		res.Header.Set("Retry-After", wait)
	}
	return res, nil
}

const (
	statusPending = `200 5 {"state":"pending","response":null}`
	statusUnknown = `200 5 {"state":"unknown","response":null}`
	statusDone    = `200 - {"state":"completed","response":{"status":402,"headers":{"X-Id":"7"},"body":"AP8=","body_encoding":"base64"}}`
)

var awaited = map[string]struct {
	cfg            client.Config
	url            string // where the request is sent; by default https://api.example/v1/payments
	location, asks string
	script         []string
	want           string
}{
	"final":                {location: "/v1/operations/op_1", asks: "https://api.example/v1/operations/op_1", script: []string{statusDone}, want: "402"},
	"after trouble":        {location: "/v1/operations/op_1", script: []string{statusPending, "drop", "503 1 x", "429 - x", statusUnknown, statusPending, statusDone}, want: "402"},
	"below a stage":        {cfg: client.Config{BaseURL: "https://api.example/prod"}, location: "/v1/operations/op_1", asks: "https://api.example/prod/v1/operations/op_1", script: []string{statusDone}, want: "402"},
	"relative":             {location: "op_1", asks: "https://api.example/v1/op_1", script: []string{statusDone}, want: "402"},
	"never final":          {location: "/op_1", script: []string{statusPending}, want: "*client.GaveUpError"},
	"unknown":              {location: "/op_1", script: []string{statusUnknown}, want: "*client.OutcomeUnknownError"},
	"not there, says who":  {location: "/op_1", script: []string{"404 - x"}, want: "*client.GaveUpError"},
	"gone, says who":       {location: "/op_1", script: []string{"410 - x"}, want: "*client.GaveUpError"},
	"credentials are over": {location: "/op_1", script: []string{"401 - x"}, want: "*client.GaveUpError"},
	"not a status":         {location: "/op_1", script: []string{"200 - <html>"}, want: "*client.GaveUpError"},
	"not base64":           {location: "/op_1", script: []string{strings.Replace(statusDone, "AP8=", "?", 1)}, want: "*client.GaveUpError"},
	"too long":             {cfg: client.Config{AnswerBytesMax: 16}, location: "/op_1", script: []string{statusDone}, want: "*client.GaveUpError"},
	"https's own port":     {location: "https://api.example:443/op_1", script: []string{statusDone}, want: "402"},
	"an empty port":        {location: "https://api.example:/op_1", script: []string{statusDone}, want: "402"},
	"in upper case":        {location: "HTTPS://API.Example/op_1", script: []string{statusDone}, want: "402"},
	"http's own port":      {url: "http://API.example:80/v1/payments", location: "http://api.example/op_1", script: []string{statusDone}, want: "402"},
	"a port that is said":  {url: "http://api.example:8080/v1/payments", location: "http://api.example:8080/op_1", script: []string{statusDone}, want: "402"},
	"an address":           {url: "http://[::1]:80/v1/payments", location: "http://[::1]/op_1", script: []string{statusDone}, want: "402"},
	"another port":         {location: "https://api.example:444/op_1", want: "*client.GaveUpError"},
	"http's port":          {location: "https://api.example:80/op_1", want: "*client.GaveUpError"},
	"https's port":         {url: "http://api.example/v1/payments", location: "http://api.example:443/op_1", want: "*client.GaveUpError"},
	"no host":              {location: "https:///op_1", want: "*client.GaveUpError"},
	"no location":          {location: "", want: "*client.GaveUpError"},
	"another host":         {location: "https://evil.example/op_1", want: "*client.GaveUpError"},
	"another host's path":  {location: "//evil.example/op_1", want: "*client.GaveUpError"},
	"another scheme":       {location: "http://api.example/op_1", want: "*client.GaveUpError"},
}

func TestAwait(t *testing.T) {
	for name, test := range awaited {
		t.Run(name, func(t *testing.T) {
			w, s := open(t), &scripted{location: test.location, script: test.script}
			test.cfg.Base = s
			transport := w.transport(test.cfg)
			r := httptest.NewRequest("POST", orElse(test.url, "https://api.example/v1/payments"), strings.NewReader("{}"))
			r.Header = http.Header{"Authorization": {"Bearer secret-token"}, "Content-Type": {"application/json"}, "Prefer": {"wait=1"}}
			res, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			final, err := transport.Await(t.Context(), res)
			got := fmt.Sprintf("%T", err)
			if err == nil {
				got = fmt.Sprint(final.StatusCode)
				body, err := io.ReadAll(final.Body)
				if string(body) != "\x00\xff" || err != nil || final.Header.Get("X-Id") != "7" {
					t.Errorf("%q, %v", body, final.Header)
				}
			} else if !errors.Is(err, client.ErrUnknown) {
				t.Errorf("%v", err)
			}
			if got != test.want {
				t.Fatalf("got %s (%v), want %s", got, err, test.want)
			}
			for _, asked := range s.asked {
				if h, _ := json.Marshal(asked.Header); string(h) != `{"Authorization":["Bearer secret-token"]}` || test.asks != "" && asked.URL.String() != test.asks {
					t.Errorf("asked %s with %s", asked.URL, h)
				}
			}
			if pauses := w.clock.paused(); len(s.asked) > 0 && pauses[0] != 2*time.Second {
				t.Errorf("pauses %v", pauses)
			}
			if w.clock.Now().Sub(epoch) > 5*time.Minute {
				t.Errorf("awaited for %v", w.clock.Now().Sub(epoch))
			}
		})
	}
}

// clients.md "What an answer means": a 202 said that the key protects nothing, and its end is not seen. The request, sent again, would be
// executed beside the first, so no error may promise that it is safe.
func TestA202ThatProtectsNothingIsNotSentAgain(t *testing.T) {
	for name, test := range map[string]struct {
		location string
		script   []string
	}{
		"never final":       {"/op_1", []string{statusPending}},
		"unknown":           {"/op_1", []string{statusUnknown}},
		"refused":           {"/op_1", []string{"401 - x"}},
		"not a status":      {"/op_1", []string{"200 - <html>"}},
		"no location":       {"", nil},
		"its caller leaves": {"/op_1", []string{statusPending}},
	} {
		for _, said := range []string{"unprotected", "ignored"} {
			t.Run(name+", "+said, func(t *testing.T) {
				w := open(t)
				transport := w.transport(client.Config{Base: &scripted{said: said, location: test.location, script: test.script}})
				res, err := transport.RoundTrip(httptest.NewRequest("POST", "https://api.example/v1/payments", strings.NewReader("{}")))
				if err != nil {
					t.Fatal(err)
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if name == "its caller leaves" {
					w.clock.meanwhile = func(int, time.Duration) { leave() }
				}
				_, err = transport.Await(ctx, res)
				var gaveUp *client.GaveUpError
				if !errors.As(err, &gaveUp) || gaveUp.Reason != client.ReasonUnprotected || gaveUp.Key != client.KeyOf(res) {
					t.Errorf("%v, want that the key protects nothing", err)
				}
			})
		}
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	w, s := open(t), &scripted{location: "/op_1", script: []string{`200 5 {"state":"pending"}`}}
	transport := w.transport(client.Config{Base: s})
	res, err := transport.RoundTrip(httptest.NewRequest("POST", "https://api.example/v1/payments", strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.clock.meanwhile = func(n int, _ time.Duration) {
		if n == 3 {
			cancel()
		}
	}
	_, err = transport.Await(ctx, res)
	var gaveUp *client.GaveUpError
	if !errors.As(err, &gaveUp) || !errors.Is(err, context.Canceled) || gaveUp.Key != client.KeyOf(res) || gaveUp.Attempts != 2 {
		t.Errorf("%+v: %v", gaveUp, err)
	}
}
