package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/internal/bounded"
)

// ErrSignature: the webhook is not the provider's, or not of now. The errors below are errors of this kind, and are for the
// log: answer all of them alike, so that nobody learns how near they came.
var ErrSignature = errors.New("webhook: the signature is not valid")

// The ways in which a signature is not valid.
var (
	// ErrMissing: there is none, or there are several headers.
	ErrMissing = fmt.Errorf("%w: the request must have the signature header exactly once", ErrSignature)
	// ErrMalformed: the header can't be read, or is out of bounds.
	ErrMalformed = fmt.Errorf("%w: malformed header", ErrSignature)
	// ErrForged: no secret has made it for this body.
	ErrForged = fmt.Errorf("%w: no secret of the receiver made it for this body", ErrSignature)
	// ErrStale: it was made too long ago, or in the future.
	ErrStale = fmt.Errorf("%w: out of time", ErrSignature)
)

// ErrTooLarge: the body is larger than Config.BodyBytesMax. Its signature was not looked at.
var ErrTooLarge = errors.New("webhook: the body is too large")

// Config says whose webhooks are taken. The zero value of each field but Secrets means its default.
type Config struct {
	// Secrets are those that the provider may sign with, 1 to 8 of them, each of 16 bytes or more. While a secret is replaced, both
	// are here: the new one first, and the old one until the provider has stopped using it. Required.
	Secrets []string
	// Source returns the secrets as they are now, for processes that outlive them. It is called when no known secret has made
	// a signature that is of now, and for the first webhook after SecretsAge, at most once in SourceEvery, for all requests that wait for
	// it, and goes on where one of them ends; its context ends after 5 s. Where it fails, what a known secret has signed is taken.
	// Otherwise its failure is returned, and is no error of the kind [ErrSignature]: answer it so that the provider sends again. It must
	// not panic. Default: Secrets are for good.
	Source func(context.Context) ([]string, error)
	// SecretsAge is for how long secrets are used before Source is asked for them: so long one that was replaced stays good, such as one
	// that somebody else has come to know. Default 5 min.
	SecretsAge time.Duration
	// SourceEvery is how often Source is called at most. Default 1 min.
	SourceEvery time.Duration
	// Header is the name of the header. Default "Webhook-Signature".
	Header string
	// Tolerance is how old a signature may be, and how far ahead of this clock. Default 5 min, at most 1 h.
	Tolerance time.Duration
	// BodyBytesMax bounds a body, in bytes. Default 256 KiB.
	BodyBytesMax int
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger gets a line "webhook.secrets_not_read" each time that Source fails, and never a secret: what is known stays in use then. Default
	// slog.Default(), as it is when the verifier is made.
	Logger *slog.Logger
}

// Bounds of a configuration.
const (
	secretsMax     = 8
	secretBytesMin = 16
	toleranceMax   = time.Hour
)

// Verifier verifies webhooks. It is safe for concurrent use.
type Verifier struct {
	cfg     Config
	secrets *secrets
}

// New returns a verifier, or an [*idem.ConfigError], which never shows a secret.
func New(cfg Config) (*Verifier, error) {
	cfg.Header = cmp.Or(cfg.Header, "Webhook-Signature")
	cfg.Tolerance = cmp.Or(cfg.Tolerance, 5*time.Minute)
	cfg.BodyBytesMax = cmp.Or(cfg.BodyBytesMax, 256<<10)
	cfg.SourceEvery = cmp.Or(cfg.SourceEvery, time.Minute)
	cfg.SecretsAge = cmp.Or(cfg.SecretsAge, 5*time.Minute)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	now := cfg.Now()
	return &Verifier{cfg: cfg, secrets: &secrets{
		source: cfg.Source, now: cfg.Now, every: cfg.SourceEvery, age: cfg.SecretsAge, log: cfg.Logger, known: cfg.Secrets, read: now, asked: now,
	}}, nil
}

// validSecrets returns an [*idem.ConfigError] that shows none of them.
func validSecrets(secrets []string) error {
	if n := len(secrets); n < 1 || n > secretsMax {
		return &idem.ConfigError{Field: "Config.Secrets", Value: fmt.Sprintf("%d secrets", n), Rule: fmt.Sprintf("must be 1..%d", secretsMax)}
	}
	for i, secret := range secrets {
		if len(secret) < secretBytesMin {
			return &idem.ConfigError{
				Field: fmt.Sprintf("Config.Secrets[%d]", i), Value: fmt.Sprintf("%d bytes", len(secret)),
				Rule: fmt.Sprintf("must have at least %d bytes: what can be guessed signs for anybody", secretBytesMin),
			}
		}
	}
	return nil
}

func (c Config) validate() error {
	if err := validSecrets(c.Secrets); err != nil {
		return err
	}
	switch {
	case c.SourceEvery < 0:
		return &idem.ConfigError{Field: "Config.SourceEvery", Value: c.SourceEvery, Rule: "must not be negative"}
	case c.SecretsAge < 0:
		return &idem.ConfigError{Field: "Config.SecretsAge", Value: c.SecretsAge, Rule: "must not be negative"}
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
// that reading or Config.Source met; only a body that was verified is returned.
func (v *Verifier) Read(r *http.Request) ([]byte, error) {
	body, _, err := bounded.Read(r.Body, int64(v.cfg.BodyBytesMax)) // Verify refuses what is longer
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	if err := v.Verify(r.Context(), r.Header, body); err != nil {
		return nil, err
	}
	return body, nil
}

// Verify verifies a body by its headers. It returns [ErrTooLarge], an error of the kind [ErrSignature], or the one that
// Config.Source met.
func (v *Verifier) Verify(ctx context.Context, header http.Header, body []byte) error {
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
	now := v.cfg.Now()
	stale := now.Truncate(time.Second).Sub(s.at).Abs() > v.cfg.Tolerance // in the header's resolution
	known, old := v.secrets.current(now)
	signed := s.signs(known, body)
	switch {
	case signed && stale:
		return ErrStale
	case stale: // it is refused whatever the secrets are
		return ErrForged
	case signed && !old:
		return nil
	}
	fresh, err := v.secrets.renewed(ctx, now)
	if err != nil && (!signed || fresh == nil) {
		return err
	}
	if !s.signs(fresh, body) {
		return ErrForged
	}
	return nil
}
