package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
)

// Config is a transport's configuration. The zero value of each field means its default.
type Config struct {
	// Base makes the requests. It must not repeat them by itself, unless it calls the WroteHeaders of net/http/httptrace each
	// time, as http.Transport does. Default http.DefaultTransport.
	Base http.RoundTripper
	// BaseURL is where the API begins, such as https://api.example/prod: the Location of a 202 is a path below it. Default:
	// the Location is resolved against the request's URL (RFC 9110 section 10.2.2).
	BaseURL string
	// Syntax is how keys are written: quoted (RFC 9651 section 3.3.3), or with header.SyntaxOpaque as they stand, for
	// servers that take the quotes for a part of the key. Default header.SyntaxStructured.
	Syntax header.Syntax
	// Journal keeps the keys of named operations across restarts. Default: there are no named operations.
	Journal Journal
	// KeyAgeMax is how long after its first use a key is sent again, by the date; past it the server's record may be gone,
	// and the key would execute anew. Keep it below the server's retention. The age of a given key counts from when the
	// journal, or this request, got it, and may be more. It is looked at before each attempt, and again whenever Base reads the
	// body: a machine may be suspended while it connects. A request without a body has no such last look. Default 23 h.
	KeyAgeMax time.Duration
	// SendFirstSent adds Idempotency-First-Sent where the client knows that time: to keys that it made, journalled ones
	// too, and to no key that was given. The server then refuses by itself what comes too late, when it has no record of it any
	// more. It refuses a time that is more than two minutes ahead of its own.
	SendFirstSent bool

	// AttemptsMax bounds how often a request is tried. Default 8.
	AttemptsMax int
	// ElapsedMax bounds the time after which no further attempt begins. Default 2 min.
	ElapsedMax time.Duration
	// AttemptTimeout bounds one attempt, from connecting until its answer is read. Of an answer that is streamed it bounds each wait
	// for more of it. Default 35 s, which is longer than API Gateway waits.
	AttemptTimeout time.Duration
	// BackoffBase and BackoffMax bound the pause after the n-th attempt, which is drawn from [0, min(BackoffMax,
	// BackoffBase·2ⁿ⁻¹)]. Defaults 200 ms and 20 s. A server's Retry-After is honoured exactly instead.
	BackoffBase, BackoffMax time.Duration
	// RetryAfterMax is the longest Retry-After that is waited for; a longer one ends in a [GaveUpError] at once. Default
	// 1 min.
	RetryAfterMax time.Duration
	// AwaitMax bounds [Transport.Await]. Default 5 min.
	AwaitMax time.Duration
	// BodyBytesMax bounds the request bodies that are buffered. Bodies with a GetBody are not. Default 256 KiB.
	BodyBytesMax int64
	// AnswerBytesMax bounds the answers that are read before they are handed over, so that a torn one is asked for again;
	// longer ones are streamed, and nothing bounds their length: bound what you read. Where a streamed one breaks off while the caller
	// reads it, the operation may have happened, and the error is not ErrUnknown by itself: ask again with the same key, unless the
	// answer says that the key protects nothing. Default 8 MiB.
	AnswerBytesMax int64

	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Random is a cryptographic source of randomness, safe for concurrent use. Default crypto/rand.Reader.
	Random io.Reader
	// Pause waits, or returns the context's error. Default idem.Pause.
	Pause func(context.Context, time.Duration) error
	// Logger gets each retry and each end; never bodies, keys or tokens. Default slog.Default(), as it is when
	// New is called; slog.New(slog.DiscardHandler) silences it.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Syntax = cmp.Or(c.Syntax, header.SyntaxStructured)
	c.KeyAgeMax = cmp.Or(c.KeyAgeMax, 23*time.Hour)
	c.AttemptsMax = cmp.Or(c.AttemptsMax, 8)
	c.ElapsedMax = cmp.Or(c.ElapsedMax, 2*time.Minute)
	c.AttemptTimeout = cmp.Or(c.AttemptTimeout, 35*time.Second)
	c.BackoffBase = cmp.Or(c.BackoffBase, 200*time.Millisecond)
	c.BackoffMax = cmp.Or(c.BackoffMax, 20*time.Second)
	c.RetryAfterMax = cmp.Or(c.RetryAfterMax, time.Minute)
	c.AwaitMax = cmp.Or(c.AwaitMax, 5*time.Minute)
	c.BodyBytesMax = cmp.Or(c.BodyBytesMax, 256<<10)
	c.AnswerBytesMax = cmp.Or(c.AnswerBytesMax, 8<<20)
	if c.Base == nil {
		c.Base = http.DefaultTransport
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Pause == nil {
		c.Pause = idem.Pause
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	for _, n := range []struct {
		field string
		value int64
	}{
		{"KeyAgeMax", int64(c.KeyAgeMax)}, {"AttemptsMax", int64(c.AttemptsMax)}, {"ElapsedMax", int64(c.ElapsedMax)},
		{"AttemptTimeout", int64(c.AttemptTimeout)}, {"BackoffBase", int64(c.BackoffBase)}, {"BackoffMax", int64(c.BackoffMax)},
		{"RetryAfterMax", int64(c.RetryAfterMax)}, {"AwaitMax", int64(c.AwaitMax)}, {"BodyBytesMax", c.BodyBytesMax},
		{"AnswerBytesMax", c.AnswerBytesMax},
	} {
		if n.value < 0 {
			return &idem.ConfigError{Field: "Config." + n.field, Value: n.value, Rule: "must not be negative"}
		}
	}
	if c.BackoffMax < c.BackoffBase {
		return &idem.ConfigError{Field: "Config.BackoffMax", Value: c.BackoffMax, Rule: fmt.Sprintf("must be at least BackoffBase = %v", c.BackoffBase)}
	}
	if c.KeyAgeMax-c.AttemptTimeout <= c.ElapsedMax { // their sum may be more than a Duration holds
		return &idem.ConfigError{Field: "Config.KeyAgeMax", Value: c.KeyAgeMax, Rule: fmt.Sprintf("must be longer than ElapsedMax + AttemptTimeout = %v + %v", c.ElapsedMax, c.AttemptTimeout)}
	}
	switch c.Syntax {
	case header.SyntaxStructured, header.SyntaxStrict, header.SyntaxOpaque:
	default:
		return &idem.ConfigError{Field: "Config.Syntax", Value: c.Syntax, Rule: "must be structured, strict or opaque"}
	}
	if c.BaseURL != "" {
		if u, err := url.Parse(c.BaseURL); err != nil || u.Host == "" || strings.ContainsAny(c.BaseURL, "?#") || strings.HasSuffix(c.BaseURL, "/") {
			return &idem.ConfigError{Field: "Config.BaseURL", Value: c.BaseURL, Rule: "must be an absolute URL without query and without a slash at its end"}
		}
	}
	return nil
}
