package client

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
)

// Transport is an http.RoundTripper. It is safe for concurrent use.
type Transport struct {
	cfg Config
}

// New returns a transport, or an [*idem.ConfigError].
func New(cfg Config) (*Transport, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Transport{cfg: cfg}, nil
}

// RoundTrip sends a POST or PATCH until it has an answer, and anything else as it is. Unlike other RoundTrippers it gives
// errors for some answers, for what they say about the key: see the package's types of errors. It changes nothing of
// the request, consumes and closes its body, and may be called for the same operation by many at once. As with any RoundTripper,
// the memory behind the body must not change before the response's body is closed: each attempt sends what is there.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !unsafe(req.Method) || req.Context().Value(withoutKey{}) != nil || req.URL == nil {
		return t.passOn(req)
	}
	body, err := replayable(req, t.cfg.BodyBytesMax)
	if err != nil {
		return nil, err
	}
	op, err := t.name(req)
	if err != nil {
		return nil, err
	}
	s := &sending{
		t: t, req: req, body: body, op: op,
		budget: retryBudget{cfg: &t.cfg, started: t.cfg.Now(), attemptsMax: t.cfg.AttemptsMax, elapsedMax: t.cfg.ElapsedMax},
		log:    t.cfg.Logger.With("method", req.Method, "host", req.URL.Host, "key_hash", hash(op.key)),
	}
	if err := req.Context().Err(); err != nil { // only now: the journal says whether the operation was sent before
		if s.unused(req.Context()) {
			return nil, err
		}
		return nil, s.ended(req.Context(), s.giveUp(ReasonCanceled, err))
	}
	return s.run()
}

// passOn sends a request as it is. One that an http.Client makes because it follows the redirect of an operation, such as the GET of
// a 303, ends for its caller what the operation began: its error must not look like a proof that nothing was sent.
func (t *Transport) passOn(req *http.Request) (*http.Response, error) {
	started := t.cfg.Now()
	res, err := t.cfg.Base.RoundTrip(req)
	nowhere := err == nil && !leads(req.URL, res)
	if err == nil && !nowhere {
		return res, nil
	}
	for from := req.Response; from != nil && from.Request != nil; from = from.Request.Response {
		if key := KeyOf(from); key != "" {
			gaveUp := &GaveUpError{
				Reason: ReasonAttempts, Key: key, Attempts: 1, Elapsed: t.cfg.Now().Sub(started), Status: from.StatusCode, Cause: err,
			}
			if nowhere {
				res.Body.Close()
				gaveUp.Reason, gaveUp.Status, gaveUp.Cause = ReasonPermanent, res.StatusCode, errRedirect
			}
			if unprotected(from.Header) {
				gaveUp.Reason = ReasonUnprotected
			}
			return nil, gaveUp
		}
	}
	return res, err
}

var errRedirect = errors.New("the Location of the redirect is no URL")

// leads says whether an http.Client can make a URL of where the answer leads, if it leads anywhere. It does so whatever its
// CheckRedirect is, and its own error has no key.
func leads(asked *url.URL, res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		_, err := asked.Parse(res.Header.Get("Location"))
		return err == nil
	}
	return true
}

// unsafe says whether a method is neither safe nor idempotent by itself (RFC 9110 section 9.2).
func unsafe(method string) bool { return method == http.MethodPost || method == http.MethodPatch }

// sending is one operation on its way.
type sending struct {
	t      *Transport
	req    *http.Request
	body   payload
	op     named
	budget retryBudget
	// sends is how often a request was written to a connection.
	sends atomic.Int64
	log   *slog.Logger
	// unprotected says that an answer's head told that the key protects nothing: nothing is sent again then.
	unprotected bool
	// What the last attempt came to.
	status     int
	code       string
	retryAfter time.Duration
	cause      error
}

func (s *sending) run() (*http.Response, error) {
	ctx := s.req.Context()
	for {
		if err := s.tooOld(); err != nil {
			return nil, s.ended(ctx, err)
		}
		res, done, err := s.once(ctx)
		if done {
			return res, s.ended(ctx, err)
		}
		if ctx.Err() != nil {
			return nil, s.ended(ctx, s.giveUp(ReasonCanceled, ctx.Err()))
		}
		if expired := (*ExpiredError)(nil); errors.As(s.cause, &expired) {
			return nil, s.ended(ctx, expired)
		}
		if s.unprotected {
			return nil, s.ended(ctx, s.giveUp(ReasonUnprotected, s.cause))
		}
		if permanent(s.cause) {
			return nil, s.ended(ctx, s.impossible(ctx))
		}
		pause, reason := s.budget.next(s.retryAfter)
		if reason != "" {
			return nil, s.ended(ctx, s.giveUp(reason, s.cause))
		}
		s.log.InfoContext(ctx, "retrying", append(s.attributes(), "pause", pause)...)
		if err := s.t.cfg.Pause(ctx, pause); err != nil {
			return nil, s.ended(ctx, s.giveUp(ReasonCanceled, err))
		}
	}
}

// tooOld returns an [*ExpiredError] where the key must not be sent (again). A key's first use that lies further ahead than the
// clocks of two machines differ says that one of the two readings was wrong, and nobody knows how old the key is.
func (s *sending) tooOld() error {
	if age := s.t.date().Sub(s.op.seen); age > s.t.cfg.KeyAgeMax || age < -idem.FirstSentSkew {
		return &ExpiredError{Key: s.op.key, Age: age}
	}
	return nil
}

// once makes one attempt. It says whether that was the end.
func (s *sending) once(ctx context.Context) (*http.Response, bool, error) {
	s.budget.attempts++
	s.status, s.code, s.retryAfter, s.cause = 0, "", 0, nil
	a, err := s.attempt(ctx)
	s.unprotected = a != nil && unprotected(a.res.Header) // also where the answer broke off after its head
	if err != nil {
		s.cause = err
		if s.unprotected {
			s.status = a.res.StatusCode
		}
		return nil, false, nil
	}
	s.status, s.code, s.retryAfter = a.res.StatusCode, plain(a.problem.Code), retryAfter(a.res.Header, s.t.cfg.Now())
	verdict := a.judge()
	thisOne := verdict == verdictRefused || verdict == verdictUnproven || verdict == verdictUnprotected // it is about this attempt
	nothing := thisOne && s.first(ctx)
	handsOver := verdict == verdictAnswer || verdict == verdictStored || nothing
	if handsOver && !leads(s.req.URL, a.res) {
		a.discard()
		return nil, true, s.giveUp(ReasonPermanent, errRedirect)
	}
	if handsOver {
		stored := verdict == verdictStored && s.status != http.StatusAccepted // a 202 is not the end, also where it is stored
		return a.response(s.shown(sent{s.op, nothing, stored})), true, nil
	}
	a.discard()
	a.problem.Status = s.status // also where Idempotency-Status said it, and there is no problem document
	switch verdict {
	case verdictMismatch:
		return nil, true, &MismatchError{Key: s.op.key, Problem: a.problem, Earlier: !s.first(ctx)}
	case verdictUnknown:
		return nil, true, &OutcomeUnknownError{Key: s.op.key, RetryAfter: s.retryAfter, Problem: a.problem}
	case verdictExpired:
		return nil, true, &ExpiredError{Key: s.op.key, Problem: a.problem}
	case verdictRefused:
		return nil, true, s.giveUp(ReasonRefused, nil)
	case verdictUnproven:
		return nil, true, s.giveUp(ReasonUnproven, nil)
	case verdictUnprotected:
		return nil, true, s.giveUp(ReasonUnprotected, nil)
	case verdictAgain, verdictAnswer, verdictStored:
	}
	return nil, false, nil
}

// attempt sends the request with its key, so that nothing but a lost body-less request is ever repeated below:
// net/http does not repeat what it can't rewind.
func (s *sending) attempt(ctx context.Context) (*answer, error) {
	trace := &httptrace.ClientTrace{WroteHeaders: func() { s.sends.Add(1) }}
	out := s.req.Clone(httptrace.WithClientTrace(ctx, trace))
	out.Header.Set(header.NameKey, s.op.line)
	if s.t.cfg.SendFirstSent && !s.op.firstSent.IsZero() && out.Header.Get(header.NameFirstSent) == "" {
		out.Header.Set(header.NameFirstSent, s.op.firstSent.UTC().Format(time.RFC3339))
	}
	out.Body, out.GetBody, out.ContentLength = nil, nil, s.body.length
	if s.body.open != nil {
		body, err := s.body.open()
		if err != nil {
			return nil, &BodyError{Cause: err}
		}
		out.Body = heldBack{body, s.tooOld}
	}
	return s.t.exchange(out)
}

var errAttemptTimeout = errors.New("no answer within Config.AttemptTimeout")

// exchange sends a request once and reads its answer, all within Config.AttemptTimeout. Beside an error there is the answer's head, where
// that came.
func (t *Transport) exchange(out *http.Request) (*answer, error) {
	ctx, cancel := context.WithCancelCause(out.Context())
	timer := time.AfterFunc(t.cfg.AttemptTimeout, func() { cancel(errAttemptTimeout) })
	a, err := t.send(out.WithContext(ctx))
	inTime := timer.Stop()
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errAttemptTimeout):
		err = errAttemptTimeout
	case err == nil && a.rest != nil && !inTime:
		a.discard()
		err = errAttemptTimeout
	case err == nil && a.rest != nil:
		a.rest = &stream{ReadCloser: a.rest, ctx: ctx, cancel: cancel, timer: timer, silenceMax: t.cfg.AttemptTimeout}
		return a, nil
	}
	cancel(nil)
	return a, err
}

func (t *Transport) send(out *http.Request) (*answer, error) {
	res, err := t.cfg.Base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	return read(res, t.cfg.AnswerBytesMax)
}

// errSilent ends a long answer of which nothing more comes, by the same timer as an attempt.
var errSilent = errors.New("client: nothing more of the answer within Config.AttemptTimeout")

// stream is the rest of a long answer; its exchange ends when the caller closes it, or when a read waits for too long. The time that the
// caller takes between two reads does not count.
type stream struct {
	io.ReadCloser
	ctx        context.Context
	cancel     context.CancelCauseFunc
	timer      *time.Timer
	silenceMax time.Duration
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	s.timer.Reset(s.silenceMax)
	n, err := s.ReadCloser.Read(p)
	s.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(s.ctx), errAttemptTimeout) {
		err = errSilent
	}
	return n, err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	err := s.ReadCloser.Close()
	s.cancel(nil)
	return err
}

// first says that this is the only attempt ever made with the key, and that it was sent once at most: no other one can have
// happened.
func (s *sending) first(ctx context.Context) bool {
	return s.budget.attempts == 1 && s.sends.Load() <= 1 && s.unused(ctx)
}

// unused says that nobody else can have sent the key. A second caller of the operation is in the journal before it sends.
func (s *sending) unused(ctx context.Context) bool {
	if s.op.resumed {
		return false
	}
	if s.op.journalled == "" {
		return true
	}
	alone, err := s.t.cfg.Journal.Alone(ctx, s.op.journalled, s.op.key)
	if err != nil {
		s.log.WarnContext(ctx, "the journal does not say who else has the operation", "error", describe(err))
	}
	return err == nil && alone
}

// impossible ends what can't be sent: nothing is unknown where nothing was sent before. net/http may have sent the request over a
// connection that broke, and have failed to make another one.
func (s *sending) impossible(ctx context.Context) error {
	if s.sends.Load() == 0 && s.first(ctx) {
		return s.cause
	}
	return s.giveUp(ReasonPermanent, s.cause)
}

// permanent says whether an attempt failed before anything was sent, in a way that another one would, too.
func permanent(err error) bool {
	var certificate *tls.CertificateVerificationError
	var body *BodyError
	return errors.As(err, &certificate) || errors.As(err, &body) || errors.Is(err, http.ErrSchemeMismatch)
}

// shown is the request that the response shows: the caller's, with the key that it was sent with.
func (s *sending) shown(with sent) *http.Request {
	shown := s.req.Clone(context.WithValue(s.req.Context(), sentKey{}, with))
	shown.Header.Set(header.NameKey, s.op.line)
	shown.Body, shown.GetBody = nil, nil // http.Response: "Request's Body is nil"
	return shown
}

// giveUp ends without an answer. Where the key protects nothing that is the reason, whatever else ended it: after any other one the key
// would be sent again.
func (s *sending) giveUp(reason Reason, cause error) error {
	if s.unprotected {
		reason = ReasonUnprotected
	}
	return &GaveUpError{
		Reason: reason, Key: s.op.key, Attempts: s.budget.attempts, Sends: int(s.sends.Load()), Elapsed: s.budget.elapsed(),
		Status: s.status, Code: s.code, RetryAfter: s.retryAfter, Cause: cause,
	}
}

// ended logs how it ended.
func (s *sending) ended(ctx context.Context, err error) error {
	if err == nil {
		s.log.DebugContext(ctx, "answered", s.attributes()...)
		return nil
	}
	s.log.WarnContext(ctx, "no answer", append(s.attributes(), "reason", err.Error())...)
	return err
}

func (s *sending) attributes() []any {
	attributes := []any{"attempts", s.budget.attempts, "sends", s.sends.Load(), "elapsed", s.budget.elapsed()}
	if s.status != 0 {
		attributes = append(attributes, "status", s.status, "code", s.code)
	}
	if s.cause != nil {
		attributes = append(attributes, "error", describe(s.cause))
	}
	return attributes
}
