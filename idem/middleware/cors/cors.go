// Package cors lets browsers on other origins send idempotency keys and read what became of them (docs/semantics.md
// "On the wire"). It configures github.com/rs/cors with the headers of this protocol.
//
// Use it where pages of another origin call an API directly. Services that only other servers call need no CORS. Put
// what [New] returns in front of everything that authenticates, and the handlers of package middleware behind that: a
// preflight request carries no credentials.
package cors

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rs/cors"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
)

// Config is what New takes. Origins is required; the zero value of every other field means its default.
type Config struct {
	// Origins are the origins whose pages may call: scheme, host and port, such as "https://shop.example". "*", alone, is
	// every origin there is.
	Origins []string
	// Methods are those that pages may use. Default: GET, HEAD, POST, PUT, PATCH, DELETE.
	Methods []string
	// Headers are request headers that pages may send, besides Authorization, Content-Type, Idempotency-Key,
	// Idempotency-First-Sent and Prefer. Default: no others.
	Headers []string
	// Exposed are response headers that pages may read, besides Idempotency-Expires, Idempotency-Status,
	// Idempotent-Replayed, Link, Location, Retry-After and those that browsers always show. Default: no others.
	Exposed []string
	// MaxAge is how long browsers may keep the answer to a preflight, in whole seconds. Default 10 min; most browsers keep
	// it for at most two hours.
	MaxAge time.Duration
}

const maxAgeDefault = 10 * time.Minute

// New returns what stands in front of everything that authenticates: it answers preflights by itself, because they carry no
// credentials, and marks all other answers. Cookies are never admitted: a tenant is known by its Authorization header. It
// returns an [*idem.ConfigError].
func New(cfg Config) (func(http.Handler) http.Handler, error) {
	if cfg.MaxAge == 0 {
		cfg.MaxAge = maxAgeDefault
	}
	if len(cfg.Methods) == 0 {
		cfg.Methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := cors.New(cors.Options{
		AllowedOrigins: cfg.Origins,
		AllowedMethods: cfg.Methods,
		AllowedHeaders: slices.Concat([]string{"Authorization", "Content-Type", header.NameKey, header.NameFirstSent, header.NamePrefer}, cfg.Headers),
		ExposedHeaders: slices.Concat([]string{
			header.NameExpires, header.NameStatus, header.NameReplayed, "Link", "Location", header.NameRetryAfter,
		}, cfg.Exposed),
		MaxAge: int(cfg.MaxAge / time.Second),
	})
	return c.Handler, nil
}

func (c Config) validate() error {
	if len(c.Origins) == 0 {
		return &idem.ConfigError{Field: "Config.Origins", Value: "none", Rule: "must name the origins that may call"}
	}
	for _, origin := range c.Origins {
		if origin == "*" && len(c.Origins) == 1 {
			continue
		}
		// RFC 6454 section 6.2: an origin is what a browser sends, compared as it stands.
		if u, err := url.Parse(origin); err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.Contains(origin, "*") {
			return &idem.ConfigError{Field: "Config.Origins", Value: fmt.Sprintf("%q", origin), Rule: `must be scheme://host[:port], without a path; "*" only alone`}
		}
	}
	for _, name := range slices.Concat(c.Headers, c.Exposed) {
		if name == "" || name == "*" {
			return &idem.ConfigError{Field: "Config.Headers, Config.Exposed", Value: fmt.Sprintf("%q", name), Rule: "must name headers"}
		}
	}
	if c.MaxAge < time.Second {
		return &idem.ConfigError{Field: "Config.MaxAge", Value: c.MaxAge, Rule: "must be at least 1s"}
	}
	return nil
}
