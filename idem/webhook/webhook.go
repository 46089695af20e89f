package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// ErrSignature: the webhook is not the provider's, or not of now. The errors below are errors of this kind, and are for the
// log: answer all of them alike, so that nobody learns how near they came.
var ErrSignature = errors.New("webhook: the signature is not valid")

// The ways in which a signature is not valid.
var (
	// ErrMissing: there is none, or there are several headers.
	ErrMissing = fmt.Errorf("%w: not exactly one header", ErrSignature)
	// ErrMalformed: the header can't be read, or is out of bounds.
	ErrMalformed = fmt.Errorf("%w: malformed header", ErrSignature)
	// ErrForged: no secret has made it for this body.
	ErrForged = fmt.Errorf("%w: made by no secret for this body", ErrSignature)
	// ErrStale: it was made too long ago, or in the future.
	ErrStale = fmt.Errorf("%w: out of time", ErrSignature)
)

// ErrTooLarge: the body is larger than Config.BodyBytesMax. Its signature was not looked at.
var ErrTooLarge = errors.New("webhook: the body is too large")

// Config says whose webhooks are taken. The zero value of each field but Secrets means its default.
type Config struct {
	// Secrets are those that the provider may sign with, 1 to 8 of them. While a secret is replaced, both are here: the new
	// one first, and the old one until the provider has stopped using it. Required.
	Secrets []string
	// Header is the name of the header. Default "Webhook-Signature".
	Header string
	// Tolerance is how old a signature may be, and how far ahead of this clock. Default 5 min, at most 1 h.
	Tolerance time.Duration
	// BodyBytesMax bounds a body, in bytes. Default 256 KiB.
	BodyBytesMax int
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Bounds of a configuration.
const (
	secretsMax     = 8
	secretBytesMin = 16
	toleranceMax   = time.Hour
)

// Verifier verifies webhooks. It is immutable and safe for concurrent use.
type Verifier struct{ cfg Config }

// New returns a verifier, or an [*idem.ConfigError], which never shows a secret.
func New(cfg Config) (*Verifier, error) {
	cfg.Header = cmp.Or(cfg.Header, "Webhook-Signature")
	cfg.Tolerance = cmp.Or(cfg.Tolerance, 5*time.Minute)
	cfg.BodyBytesMax = cmp.Or(cfg.BodyBytesMax, 256<<10)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Verifier{cfg: cfg}, nil
}

func (c Config) validate() error {
	if n := len(c.Secrets); n < 1 || n > secretsMax {
		return &idem.ConfigError{Field: "Config.Secrets", Value: fmt.Sprintf("%d secrets", n), Rule: fmt.Sprintf("must be 1..%d", secretsMax)}
	}
	for i, secret := range c.Secrets {
		if len(secret) < secretBytesMin {
			return &idem.ConfigError{
				Field: fmt.Sprintf("Config.Secrets[%d]", i), Value: fmt.Sprintf("%d bytes", len(secret)),
				Rule: fmt.Sprintf("must have at least %d bytes: what can be guessed signs for anybody", secretBytesMin),
			}
		}
	}
	switch {
	case !isToken(c.Header):
		return &idem.ConfigError{Field: "Config.Header", Value: fmt.Sprintf("%q", c.Header), Rule: "must be the name of a header"}
	case c.Tolerance < time.Second || c.Tolerance > toleranceMax:
		return &idem.ConfigError{Field: "Config.Tolerance", Value: c.Tolerance, Rule: fmt.Sprintf("must be 1s..%v", toleranceMax)}
	case c.BodyBytesMax < 1:
		return &idem.ConfigError{Field: "Config.BodyBytesMax", Value: c.BodyBytesMax, Rule: "must be at least 1"}
	}
	return nil
}

// tokenBytes are what a header's name is made of (RFC 9110 section 5.6.2).
const tokenBytes = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func isToken(s string) bool { return s != "" && strings.Trim(s, tokenBytes) == "" }

// Read reads a request's body and verifies it. It returns [ErrTooLarge], an error of the kind [ErrSignature], or the one
// that reading met; only a body that was verified is returned.
func (v *Verifier) Read(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(v.cfg.BodyBytesMax)+1))
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	if err := v.Verify(r.Header, body); err != nil {
		return nil, err
	}
	return body, nil
}

// Verify verifies a body by its headers. It returns [ErrTooLarge] or an error of the kind [ErrSignature].
func (v *Verifier) Verify(header http.Header, body []byte) error {
	if len(body) > v.cfg.BodyBytesMax {
		return ErrTooLarge
	}
	lines := header[textproto.CanonicalMIMEHeaderKey(v.cfg.Header)]
	if len(lines) != 1 {
		return ErrMissing
	}
	s, err := parse(lines[0])
	if err != nil {
		return err
	}
	if !s.signs(v.cfg.Secrets, body) {
		return ErrForged
	}
	if v.cfg.Now().Truncate(time.Second).Sub(s.at).Abs() > v.cfg.Tolerance { // in the header's resolution
		return ErrStale
	}
	return nil
}
