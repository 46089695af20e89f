package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/internal/bounded"
)

// answer is a response whose body was read, or the beginning of a longer one.
type answer struct {
	res  *http.Response
	body []byte
	// rest is what follows of a body that is too long to be read ahead, nil for none.
	rest io.ReadCloser
	// problem is empty where the answer is no problem document.
	problem idem.Problem
}

var errAnswerTooLong = errors.New("the answer is too long")

// read reads an answer up to the bound. A body that is longer stays open. An error means that the answer is torn: it has its head then.
func read(res *http.Response, bytesMax int64) (*answer, error) {
	body, longer, err := bounded.Read(res.Body, bytesMax)
	a := &answer{res: res, body: body}
	if err != nil {
		res.Body.Close()
		return a, err
	}
	if longer {
		a.rest = res.Body
		return a, nil
	}
	res.Body.Close()
	if problemType.MatchString(res.Header.Get("Content-Type")) {
		a.problem = readProblem(body)
		a.problem.Status = res.StatusCode
	}
	return a, nil
}

// problemType is the media type of a problem document, whatever its parameters are, and whether or not it comes twice.
var problemType = regexp.MustCompile(`(?i)^application/problem\+json *([;,]|$)`)

// readProblem reads a problem document. Where another member has another type than idem's problems give it, the code counts still: by it
// an expired key is told from one that may be sent again.
func readProblem(body []byte) idem.Problem {
	var problem idem.Problem
	if json.Unmarshal(body, &problem) == nil {
		return problem
	}
	var said struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(body, &said) != nil {
		return idem.Problem{}
	}
	return idem.Problem{Code: said.Code}
}

var codeSyntax = regexp.MustCompile(`^[a-z0-9_.]{1,64}$`)

// plain is a problem's code where it looks like one, for errors and logs: they hold nothing else of a body.
func plain(code string) string {
	if codeSyntax.MatchString(code) {
		return code
	}
	return ""
}

// discard gives the answer up. Its connection is used again unless there was more to come.
func (a *answer) discard() {
	if a.rest != nil {
		a.rest.Close()
	}
}

// response is the answer as it came, for the caller.
func (a *answer) response(sent *http.Request) *http.Response {
	whole := io.NopCloser(bytes.NewReader(a.body))
	if a.rest != nil {
		whole = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(a.body), a.rest), a.rest}
	}
	a.res.Body, a.res.Request = whole, sent
	return a.res
}

// verdict is what an answer means for the operation.
type verdict string

const (
	verdictAnswer   verdict = "answer" // the caller's
	verdictStored   verdict = "stored" // the caller's, and final: asking again gets the same
	verdictAgain    verdict = "again"
	verdictMismatch verdict = "mismatch"
	verdictUnknown  verdict = "unknown"
	verdictExpired  verdict = "expired"
	verdictRefused  verdict = "refused"  // before the key was looked at, or by a handler whose answer is not stored
	verdictUnproven verdict = "unproven" // nothing shows that it is about each attempt with the key
	// verdictUnprotected: it says that the key protects nothing there, so that it is about this attempt only.
	verdictUnprotected verdict = "unprotected"
)

// retried are the statuses after which the same key is safe and may help: those of RFC 9110, and those by which content
// delivery networks say that they had no answer of the server (520 to 527, 529, 530, 598, 599), which may have executed the request.
var retried = []int{
	http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	520, 521, 522, 523, 524, 525, 526, 527, 529, 530, 598, 599,
}

// decided are the codes that say, by themselves, what became of the request: asking again gets the same.
var decided = []string{header.CodeResponseNotKept, header.CodeResponseErased}

// says tells whether a header says the value. Servers behind one another may each have told, on lines of their own or on one: one of
// them is enough.
func says(head http.Header, name, value string) bool {
	return slices.Contains(values(head, name), value)
}

// values are what a header says, on all of its lines, that may each be a list (RFC 9110 section 5.3).
func values(head http.Header, name string) []string {
	var all []string
	for value := range strings.SplitSeq(strings.Join(head.Values(name), ","), ",") {
		if value = strings.TrimSpace(value); value != "" {
			all = append(all, value)
		}
	}
	return all
}

// unprotected says that an answer's head tells that the key protects nothing there: each attempt that arrives is executed.
func unprotected(head http.Header) bool {
	return says(head, header.NameStatus, "unprotected") || says(head, header.NameStatus, "ignored")
}

// stored says that an answer's head marks it as the stored one. Where a server behind the server says otherwise, "replayed" says nothing.
func stored(head http.Header) bool {
	replayed := says(head, header.NameStatus, string(idem.OutcomeReplayed)) && !says(head, header.NameStatus, string(idem.OutcomeUnknown)) && !unprotected(head)
	return replayed || says(head, header.NameReplayed, "true") || len(values(head, header.NameExpires)) > 0
}

// judge is pure: semantics.md "On the wire", read from the client's side. An answer from 300 on that is not stored decides nothing about
// an attempt before: that may run still, and the server may have no record and no lease that keeps it from its commit.
func (a *answer) judge() verdict {
	h, status, code := a.res.Header, a.res.StatusCode, a.problem.Code
	// The header says what the code says, also where the body is compressed or was replaced.
	kept := func(outcome idem.Outcome) bool { return says(h, header.NameStatus, string(outcome)) }
	unknown := kept(idem.OutcomeUnknown)
	switch {
	case stored(h):
		return verdictStored // whatever it says
	case unprotected(h) && status >= http.StatusMultipleChoices:
		return verdictUnprotected // an attempt before was executed beside this one, if at all; so would be another one
	case unprotected(h):
		return verdictAnswer
	case slices.Contains(decided, code) && !unknown:
		return verdictStored // as far as it was kept
	case code == header.CodeResponseTooLarge && !unknown:
		return verdictUnproven // asking again gets the same, but it is not stored
	case slices.Contains(retried, status):
		return verdictAgain
	}
	inProgress := code == header.CodeInProgress || code == header.CodeInUse || kept(idem.OutcomeInProgress)
	mismatch := code == header.CodeKeyReused || code == header.CodeError || kept(idem.OutcomeMismatch)
	switch {
	case status == http.StatusConflict && inProgress:
		return verdictAgain
	case status == http.StatusConflict && code == header.CodeOutcomeUnknown, unknown && status >= http.StatusMultipleChoices:
		return verdictUnknown
	case (status == http.StatusUnprocessableEntity || status == http.StatusBadRequest) && mismatch:
		return verdictMismatch
	case (status == http.StatusGone || status == http.StatusPreconditionFailed) && code == header.CodeKeyExpired:
		return verdictExpired
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return verdictRefused
	case status >= http.StatusMultipleChoices:
		return verdictUnproven
	}
	return verdictAnswer
}
