package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
)

// operation is the status of an operation as GET on the Location of a 202 shows it (docs/payments-api.md).
type operation struct {
	State    string `json:"state"`
	Response *struct {
		Status       int               `json:"status"`
		Headers      map[string]string `json:"headers"`
		Body         string            `json:"body"`
		BodyEncoding string            `json:"body_encoding"`
	} `json:"response"`
}

// codeOperationNotFound is the API's own problem of a status that is not there. Without it a 404 may be that of a gateway which
// does not know the path, while the operation is pending.
const codeOperationNotFound = "operation_not_found"

var (
	errLocation       = errors.New("the 202 has no Location on the API's own origin")
	errStatusDocument = errors.New("the Location answers with something else than an operation's status")
)

// Await follows the Location of a 202 until the operation is final, and returns the final response: status, headers and
// body as a retry of the request would get them. Any other response it returns as it is. It asks with the headers of the
// 202's request, so with its credentials, and only on the same origin; it honours Retry-After, and closes the 202's body.
//
// It returns an [*OutcomeUnknownError] where the time ends while the server does not know, an [*ExpiredError] where the API
// says in a problem document of its own that the operation is gone, and else a [*GaveUpError]. After the first and the last of them,
// sending the request again with the same key says as much as the Location does: also where the operation stays in progress because its
// execution was given up. Not so where the 202 said that the key protects nothing: each end but an ExpiredError is then a GaveUpError of
// [ReasonUnprotected], and the request, sent again, would be executed beside the first.
func (t *Transport) Await(ctx context.Context, res *http.Response) (*http.Response, error) {
	if res.StatusCode != http.StatusAccepted {
		return res, nil
	}
	s := &sending{
		t: t, req: res.Request, op: named{key: KeyOf(res)},
		budget: retryBudget{cfg: &t.cfg, started: t.cfg.Now(), elapsedMax: t.cfg.AwaitMax},
		log:    t.cfg.Logger.With("method", http.MethodGet, "key_hash", hash(KeyOf(res))),
	}
	// What is left unread of a short body would cost the connection.
	_, _ = io.CopyN(io.Discard, res.Body, drainBytesMax)
	res.Body.Close()
	s.unprotected = unprotected(res.Header)
	s.status, s.retryAfter = res.StatusCode, retryAfter(res.Header, t.cfg.Now())
	location, err := t.location(res)
	if err != nil {
		return nil, s.ended(ctx, s.giveUp(ReasonPermanent, err))
	}
	final, err := s.poll(ctx, location)
	return final, s.ended(ctx, err)
}

const drainBytesMax = 64 << 10

// location is where the operation's status is. The request's credentials go nowhere else.
func (t *Transport) location(res *http.Response) (*url.URL, error) {
	value := res.Header.Get("Location")
	if value == "" || res.Request == nil {
		return nil, errLocation
	}
	if t.cfg.BaseURL != "" && strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "//") {
		value = t.cfg.BaseURL + value
	}
	u, err := res.Request.URL.Parse(value)
	if err != nil || u.Hostname() == "" || originOf(u) != originOf(res.Request.URL) {
		return nil, errLocation
	}
	return u, nil
}

// origin is whom a URL belongs to (RFC 6454 section 4): a host in upper case is the same one, and so is a port that need not be said.
type origin struct{ scheme, host, port string }

func originOf(u *url.URL) origin {
	scheme := strings.ToLower(u.Scheme)
	ports := map[string]string{"http": "80", "https": "443"}
	return origin{scheme, strings.ToLower(u.Hostname()), cmp.Or(u.Port(), ports[scheme])}
}

// poll asks for the status until it is final.
func (s *sending) poll(ctx context.Context, location *url.URL) (*http.Response, error) {
	state := ""
	for {
		pause, reason := s.budget.next(s.retryAfter)
		switch {
		case reason != "" && state == "unknown" && !s.unprotected:
			return nil, &OutcomeUnknownError{Key: s.op.key, RetryAfter: s.retryAfter}
		case reason != "":
			return nil, s.giveUp(reason, s.cause)
		}
		if err := s.t.cfg.Pause(ctx, pause); err != nil {
			return nil, s.giveUp(ReasonCanceled, err)
		}
		s.budget.attempts++
		a, err := s.t.exchange(s.question(ctx, location))
		s.status, s.code, s.retryAfter, s.cause = 0, "", 0, err
		if err != nil {
			if ctx.Err() != nil {
				return nil, s.giveUp(ReasonCanceled, ctx.Err())
			}
			if permanent(err) {
				return nil, s.giveUp(ReasonPermanent, err)
			}
			continue
		}
		a.discard()
		s.status, s.code, s.retryAfter = a.res.StatusCode, plain(a.problem.Code), retryAfter(a.res.Header, s.t.cfg.Now())
		switch {
		case slices.Contains(retried, s.status):
		case s.code == codeOperationNotFound || s.code == header.CodeKeyExpired:
			return nil, &ExpiredError{Key: s.op.key, Problem: a.problem}
		case s.status != http.StatusOK:
			return nil, s.giveUp(ReasonPermanent, errStatusDocument)
		default:
			var final *http.Response
			if state, final, err = s.final(a); final != nil || err != nil {
				return final, err
			}
		}
	}
}

// notAsked are the headers that were about the request's body, key or form of answer.
var notAsked = regexp.MustCompile(`^(Content-|Idempotency-|If-|(Accept-Encoding|Expect|Prefer|Range)$)`)

// question asks for the status, with the request's credentials and other headers.
func (s *sending) question(ctx context.Context, location *url.URL) *http.Request {
	q := &http.Request{Method: http.MethodGet, URL: location, Host: s.req.Host, Header: s.req.Header.Clone(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	for name := range q.Header {
		if notAsked.MatchString(name) {
			delete(q.Header, name)
		}
	}
	return q.WithContext(ctx)
}

// final reads the status. There is no response while the operation is not final.
func (s *sending) final(a *answer) (string, *http.Response, error) {
	var op operation
	switch err := json.Unmarshal(a.body, &op); {
	case a.rest != nil:
		return "", nil, s.giveUp(ReasonPermanent, errAnswerTooLong)
	case err != nil || op.State == "":
		return "", nil, s.giveUp(ReasonPermanent, errStatusDocument)
	case op.Response == nil || op.State != string(storage.StateCompleted) && op.State != string(storage.StateFailed):
		return op.State, nil, nil
	}
	body := []byte(op.Response.Body)
	if op.Response.BodyEncoding == "base64" {
		var err error
		if body, err = base64.StdEncoding.DecodeString(op.Response.Body); err != nil {
			return "", nil, s.giveUp(ReasonPermanent, errStatusDocument)
		}
	}
	with := sentWith(&http.Response{Request: s.req})
	with.stored = true
	status := op.Response.Status
	res := &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		Request: s.req.WithContext(context.WithValue(s.req.Context(), sentKey{}, with)),
	}
	for name, value := range op.Response.Headers {
		res.Header.Set(name, value)
	}
	return op.State, res, nil
}
