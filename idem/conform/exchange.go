package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
)

// session is one run of the checks.
type session struct {
	Target
	ctx context.Context
	run string // is part of every key

	mu                 sync.Mutex
	requests, executed int
	keys               int
	// answers are the final answers to keys that ought to execute, each without its key; alike says that two keys had the same one.
	answers []reply
	alike   bool
	// bare are answers without the Retry-After that they need, and echoes those with a key of the caller's in a problem.
	bare, echoes []string
}

// request is what a check sends. The zero value is the valid request without a key.
type request struct {
	// keys are the values of the header's lines.
	keys []string
	body []byte
	// query is added to the address.
	query  string
	header http.Header
	// caller are the credentials that are sent. Default: the target's.
	caller http.Header
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   []byte
	// lost says that the same request was answered before by somebody else, such as a gateway, who may have passed it on.
	lost bool
}

func (r reply) String() string {
	return fmt.Sprintf("%d %s %.120q", r.status, r.header.Get("Content-Type"), r.body)
}

const replyBytesMax = 16 << 20

// key makes a key that was never used, of the form that the policy wants.
func (s *session) key() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Policy.KeyTime != idem.KeyTimeNone && s.Policy.KeyTime != idem.KeyTimeULID {
		id, err := uuid.NewV7FromReader(s.Random)
		if err != nil {
			return "", fmt.Errorf("make a key: %w", err)
		}
		return id.String(), nil
	}
	s.keys++
	key := fmt.Sprintf("conform-%s-%d", s.run, s.keys)
	return key + strings.Repeat("-", max(0, s.Policy.KeyBytesMin-len(key))), nil
}

// quoted is how the policy has a key sent.
func (s *session) quoted(key string) string {
	if s.Policy.Syntax == idem.SyntaxOpaque {
		return key
	}
	return `"` + key + `"`
}

// with is the valid request under a key.
func (s *session) with(key string) request { return request{keys: []string{s.quoted(key)}} }

// other is the request for something else under a key.
func (s *session) other(key string) request {
	r := s.with(key)
	r.body = s.Other
	return r
}

// executes counts requests that ought to execute.
func (s *session) executes(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.executed += n
}

// send sends a request once.
func (s *session) send(r request) (reply, error) {
	url := s.URL
	if r.query != "" {
		separator := "?"
		if strings.Contains(url, "?") {
			separator = "&"
		}
		url += separator + r.query
	}
	body := r.body
	if body == nil {
		body = s.Body
	}
	req, err := http.NewRequestWithContext(s.ctx, s.Method, url, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	caller := r.caller
	if caller == nil {
		caller = s.Header
	}
	req.Header.Set("Content-Type", s.ContentType)
	for _, from := range []http.Header{caller, r.header} {
		for name, values := range from {
			req.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
		}
	}
	if len(r.keys) > 0 {
		req.Header[header.NameKey] = r.keys
	}
	return s.exchange(req, r.keys)
}

// exchange notes what holds for every answer.
func (s *session) exchange(req *http.Request, keys []string) (reply, error) {
	res, err := s.Client.Do(req)
	if err != nil {
		return reply{}, fmt.Errorf("conform: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, replyBytesMax))
	if err != nil {
		return reply{}, fmt.Errorf("conform: read the answer: %w", err)
	}
	got := reply{status: res.StatusCode, header: res.Header, body: body}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.comesBack(got) && got.after() == 0 {
		s.bare = append(s.bare, got.String())
	}
	for _, key := range keys {
		if key = strings.Trim(key, `"`); got.status >= http.StatusBadRequest && len(key) > 8 && bytes.Contains(body, []byte(key)) {
			s.echoes = append(s.echoes, got.String())
		}
	}
	return got, nil
}

// comesBack says that an answer must say when to come back. A 503 that does not tell whose it is may be a gateway's, which has promised
// nothing. A foreign service tells it of none.
func (s *session) comesBack(r reply) bool {
	switch r.status {
	case http.StatusAccepted:
		return true
	case http.StatusConflict:
		return r.code() != ""
	case http.StatusServiceUnavailable:
		return s.Foreign || r.says() != "" || strings.HasPrefix(r.code(), "idempotency_")
	}
	return false
}

// turnedAway says that the answer decides nothing about its key: a gateway's, or the service's own after which the key is free.
func (r reply) turnedAway() bool {
	switch r.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// freed says that the key may be free after the answer: one that decides nothing, or a 409 of a handler that ran. That is not stored,
// unless it says until when.
func (r reply) freed() bool {
	ofHandler := r.says() == "executed" && r.header.Get(header.NameExpires) == "" && !strings.HasPrefix(r.code(), "idempotency_")
	return r.turnedAway() || r.status == http.StatusConflict && ofHandler
}

// after is the answer's Retry-After; 0 where there is none that can be read.
func (r reply) after() time.Duration {
	seconds, err := strconv.Atoi(r.header.Get(header.NameRetryAfter))
	if err != nil || seconds < 1 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// unsettled says that the same request is to be sent again.
func (r reply) unsettled() bool {
	switch r.status {
	case http.StatusAccepted:
		return true
	case http.StatusConflict:
		return r.code() == header.CodeInProgress || r.code() == header.CodeInUse || r.code() == header.CodeOutcomeUnknown || r.after() > 0
	}
	return r.turnedAway()
}

// settled sends a request until it has its final answer, as a client that retries well, and returns the first answer too: the first that
// has this library's header, because a gateway may answer in the service's place, or the first of all where none has it.
func (s *session) settled(r request) (first, final reply, err error) {
	deadline := s.Now().Add(s.Settle)
	first, err = s.send(r)
	for final = first; err == nil && final.unsettled(); {
		wait := max(final.after(), time.Second)
		if s.Now().Add(wait).After(deadline) {
			return first, final, fmt.Errorf("conform: no final answer within %v, but %v", s.Settle, final)
		}
		if err := s.Pause(s.ctx, wait); err != nil {
			return first, final, err
		}
		if final, err = s.send(r); first.says() == "" && final.says() != "" {
			first = final
			first.lost = true
		}
	}
	return first, final, err
}

// answered notes the final answer to a key that ought to execute.
func (s *session) answered(key string, final reply) {
	final = final.without(key)
	s.alike = s.alike || slices.ContainsFunc(s.answers, final.sameResult)
	s.answers = append(s.answers, final)
}

// tells says that every execution had an answer of its own, so that one that was there before is a replay.
func (s *session) tells() bool { return len(s.answers) > 1 && !s.alike }

// without is the answer where the key is left out, which differs without telling of executions.
func (r reply) without(key string) reply {
	r.body, r.header = bytes.ReplaceAll(r.body, []byte(key), nil), r.header.Clone()
	r.header.Set("Location", strings.ReplaceAll(r.header.Get("Location"), key, ""))
	return r
}

// sameResult says that two answers show the same result. An execution of its own may show another one in the body or by its address.
func (r reply) sameResult(other reply) bool {
	return bytes.Equal(r.body, other.body) && r.header.Get("Location") == other.header.Get("Location")
}

// again sends a request that ought to be a replay of an answer. One that may be another execution's is counted.
func (s *session) again(r request, was reply) (reply, error) {
	got, err := s.send(r)
	if err == nil && got.success() && !got.replayed() && (s.alike || got.differsFrom(was) != "") {
		s.executes(1)
	}
	return got, err
}

// refused sends a request that ought to be refused. One that is not is counted.
func (s *session) refused(r request) (reply, error) {
	got, err := s.send(r)
	if err == nil && got.success() {
		s.executes(1)
	}
	return got, err
}

// success says that the request was executed, or replayed from such an execution.
func (r reply) success() bool { return r.status >= 200 && r.status < 300 }

// says is the answer's Idempotency-Status.
func (r reply) says() string { return r.header.Get(header.NameStatus) }

// replayed says that the answer tells that it is a replay.
func (r reply) replayed() bool { return r.header.Get(header.NameReplayed) == "true" }

// differsFrom says how a replay differs from the answer that it replays; empty where it does not.
func (r reply) differsFrom(first reply) string {
	switch {
	case r.status != first.status:
		return fmt.Sprintf("status %d, first %d", r.status, first.status)
	case !bytes.Equal(r.body, first.body):
		return fmt.Sprintf("body %.80q, first %.80q", r.body, first.body)
	case r.header.Get("Content-Type") != first.header.Get("Content-Type"):
		return fmt.Sprintf("Content-Type %q, first %q", r.header.Get("Content-Type"), first.header.Get("Content-Type"))
	case r.header.Get("Location") != first.header.Get("Location"):
		return fmt.Sprintf("Location %q, first %q", r.header.Get("Location"), first.header.Get("Location"))
	}
	return ""
}

// problem is what an error says of itself.
type problem struct {
	Type, Title, Detail, Code string
	Status                    int
}

func (r reply) problem() (p problem, ok bool) {
	kind, _, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
	err := json.Unmarshal(r.body, &p)
	return p, err == nil && kind == "application/problem+json"
}

func (r reply) code() string {
	p, _ := r.problem()
	return p.Code
}

// refusal holds an error against the status and the problem code that it must have.
func (s *session) refusal(got reply, status int, code string) finding {
	if got.status != status {
		return differs("%v, want %d", got, status)
	}
	p, ok := got.problem()
	switch {
	case s.Foreign && (!ok || p.Code != code):
		return holds()
	case !ok:
		return differs("%v, want application/problem+json", got)
	case p.Code != code:
		return differs("code %q, want %q", p.Code, code)
	case p.Status != status || p.Title == "" || p.Type == "" || p.Detail == "":
		return differs("problem %s: want type, title, detail and status %d", got.body, status)
	}
	return holds()
}

// distinct says whether two answers are those of two executions.
func (s *session) distinct(one, other reply) finding {
	switch {
	case !one.success() || !other.success():
		return differs("%v and %v, want two executions", one, other)
	case !one.sameResult(other): // where the first answer was a 202, the last one is a replay
		return holds()
	case other.replayed() || other.says() == "replayed":
		return differs("%v is a replay", other)
	case other.says() == "executed", other.says() == "unprotected":
		return holds()
	case s.Foreign && s.tells():
		return differs("%v is what was answered before, and every key has had an answer of its own: it is a replay", other)
	case s.Foreign:
		return notTold("both answers are alike, and say nothing of executions")
	}
	return differs("%s %q, want executed", header.NameStatus, other.says())
}

// withMember is a JSON object with one member more; nil where it is none.
func withMember(body []byte) []byte {
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil || object == nil {
		return nil
	}
	object["conform"] = json.RawMessage(`"something else"`)
	changed, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	return changed
}
