package idem

import (
	"fmt"
	"net/textproto"
	"slices"
	"time"
)

// Policy is the contract of one endpoint towards its clients: every row of the table in docs/semantics.md is a field.
// [IETF], [Stripe] and [Lenient] are the published contracts; a team may build its own. [Policy.Validate] rejects
// contradictions.
type Policy struct {
	// Name appears in the audit.
	Name string
	// ExemptReason, where set, says why the route runs without protection; every other field is then ignored. Empty
	// means that the route is protected.
	ExemptReason string

	// MissingKey is the answer to an unsafe request without a key. It has no default.
	MissingKey MissingKey
	// EmptyKeyIsMissing treats an empty header as a missing one; otherwise it is refused with 400.
	EmptyKeyIsMissing bool
	// Syntax is how the header's value is read as a key. It has no default.
	Syntax Syntax
	// KeyBytesMin is the shortest key accepted, in bytes; 0 and 1 mean any. For SyntaxOpaque only.
	KeyBytesMin int
	// Mismatch is the answer to the same key with another payload. It has no default.
	Mismatch Mismatch
	// InFlight is the answer to a duplicate while the first request runs. It has no default.
	InFlight InFlight
	// WaitMax bounds how long a duplicate waits for the winner; for InFlightWait only, at most 25 s. 0 for every other
	// InFlight.
	WaitMax time.Duration
	// StoreServerErrors stores and replays 5xx results once execution began. For a wrapped operation it is refused unless that is
	// Operation.SafeToRunAgain.
	StoreServerErrors bool
	// StoreClientErrors stores and replays every 4xx result. Otherwise 401, 403, 408, 409, 425 and 429 are not stored,
	// unless the handler declared one by Reject.
	StoreClientErrors bool
	// Scope is what a key is unique within. It has no default.
	Scope ScopeRule
	// BindPrincipal adds the caller's principal (session, token) to the scope.
	BindPrincipal bool
	// Retention is how long a final record answers, from completion: 1 h to 90 d. [Engine.Extend] gives one record
	// more. It has no default.
	Retention time.Duration
	// ResourceBacked keeps the records of successes (2xx) for as long as the resources that they made: they expire when
	// [Engine.End] says so, and carry no Idempotency-Expires before. Every other result expires after Retention.
	ResourceBacked bool
	// GoneAfterExpiry answers 410 to a key whose record has expired; otherwise its request is a new one.
	GoneAfterExpiry bool
	// KeepFor is how long an expired record is kept, at most 10 years: With GoneAfterExpiry it is a tombstone that
	// answers 410, and after it the key is new again. Without, it is kept for an audit until a new request with its key
	// replaces it. Native TTL removes it later, never earlier. 0: it may be deleted at once.
	KeepFor time.Duration
	// KeyTime says that the time in a key counts as the time when its request was first sent. The zero value is
	// KeyTimeNone: keys carry no time.
	KeyTime KeyTime
	// KeyTimeRequired refuses keys without that time, unless they have a record: 400.
	KeyTimeRequired bool
	// ReplayHeaders are the names of response headers that are stored and replayed besides Content-Type, Content-Encoding and
	// Location.
	// Default: no others.
	ReplayHeaders []string
	// Observe records and reports what the policy finds, and does not act on it: each request executes, as without
	// protection. For routes; see [Observe].
	Observe bool
}

// MissingKey is what an unsafe request without the header gets.
type MissingKey string

// The answers to a missing key.
const (
	MissingKeyRefused     MissingKey = "refused"     // 400
	MissingKeyUnprotected MissingKey = "unprotected" // executes without protection, marked so
)

// Syntax is how the header is read.
type Syntax string

// The syntaxes of the header.
const (
	SyntaxStructured Syntax = "structured" // RFC 9651 String; a bare value is the same key
	SyntaxStrict     Syntax = "strict"     // RFC 9651 String only
	SyntaxOpaque     Syntax = "opaque"     // 1..255 bytes as they stand
)

// Mismatch is what the same key with another payload gets.
type Mismatch string

// The answers to another payload.
const (
	Mismatch422    Mismatch = "422"
	Mismatch400    Mismatch = "400"
	MismatchReplay Mismatch = "replay" // the first result, whatever was asked
)

// InFlight is what a duplicate gets while the first one runs.
type InFlight string

// The answers to a duplicate of a running request.
const (
	InFlightConflict InFlight = "409"        // idempotency_key_in_progress
	InFlightInUse    InFlight = "409 in use" // idempotency_key_in_use, as Stripe names it
	InFlightAccepted InFlight = "202"
	InFlightWait     InFlight = "wait" // replays the winner's response; 409 when the wait is over
)

// ScopeRule is what a key is unique within.
type ScopeRule string

// What a key is unique within.
const (
	ScopeOperation ScopeRule = "tenant+operation+key"
	ScopeTenant    ScopeRule = "tenant+key" // the same key at another operation is a mismatch
)

// KeyTime is which keys carry the time when their request was first sent.
type KeyTime string

// The keys that carry a time.
const (
	KeyTimeNone   KeyTime = "" // keys are opaque
	KeyTimeUUIDv7 KeyTime = "UUIDv7"
	KeyTimeULID   KeyTime = "ULID"
	KeyTimeEither KeyTime = "UUIDv7 or ULID"
)

// Bounds of a policy's durations.
const (
	RetentionMin = time.Hour
	RetentionMax = 90 * 24 * time.Hour
	keepForMax   = 10 * 365 * 24 * time.Hour
	waitMaxBound = 25 * time.Second
)

// IETF is the default policy: draft-ietf-httpapi-idempotency-key-header.
func IETF() Policy {
	return Policy{
		Name: "ietf", MissingKey: MissingKeyRefused, Syntax: SyntaxStructured,
		Mismatch: Mismatch422, InFlight: InFlightConflict, Scope: ScopeOperation,
		Retention: 24 * time.Hour,
	}
}

// Stripe is the contract of Stripe's API.
func Stripe() Policy {
	return Policy{
		Name: "stripe", MissingKey: MissingKeyUnprotected, EmptyKeyIsMissing: true, Syntax: SyntaxOpaque,
		Mismatch: Mismatch400, InFlight: InFlightInUse, StoreServerErrors: true,
		Scope: ScopeTenant, Retention: 24 * time.Hour,
	}
}

// Lenient is the contract of account-scoped APIs whose duplicates wait for the first result.
func Lenient() Policy {
	return Policy{
		Name: "lenient", MissingKey: MissingKeyUnprotected, EmptyKeyIsMissing: true, Syntax: SyntaxOpaque,
		Mismatch: MismatchReplay, InFlight: InFlightWait, WaitMax: 10 * time.Second, StoreClientErrors: true,
		Scope: ScopeTenant, Retention: 24 * time.Hour,
	}
}

// Exempt is the policy of an unsafe route that needs no protection, with the reason that the audit shows.
func Exempt(reason string) Policy { return Policy{Name: "exempt", ExemptReason: reason} }

// Observe is the policy in observe mode, for teams that introduce keys: package middleware records first requests, reports
// what it would have answered, and lets every request execute.
func Observe(base Policy) Policy {
	base.Name = "observe " + base.Name
	base.Observe = true
	return base
}

// ConfigError rejects a configuration: the field, its value and the rule that it breaks.
type ConfigError struct {
	// Field names what was configured wrongly, such as "Config.LeaseMargin" or "Policy.WaitMax".
	Field string
	// Value is what was given for it.
	Value any
	// Rule says what is admitted, as the end of a sentence: "must be positive".
	Rule string
}

// Error implements error.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("idem: %s = %v: %s", e.Field, e.Value, e.Rule)
}

// neverReplayed are headers that describe one exchange, not its result; hop-by-hop ones by RFC 9110 section 7.6.1.
var neverReplayed = []string{
	"Set-Cookie", "Date", "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length",
}

// Validate returns a [*ConfigError] that names the fields in contradiction.
func (p Policy) Validate() error {
	if p.ExemptReason != "" {
		if p.Observe {
			return &ConfigError{"Policy.Observe", true, "contradicts Policy.ExemptReason: an exempt route has nothing to observe"}
		}
		return nil
	}
	for _, check := range []error{
		oneOf("Policy.MissingKey", p.MissingKey, MissingKeyRefused, MissingKeyUnprotected),
		oneOf("Policy.Syntax", p.Syntax, SyntaxStructured, SyntaxStrict, SyntaxOpaque),
		oneOf("Policy.Mismatch", p.Mismatch, Mismatch422, Mismatch400, MismatchReplay),
		oneOf("Policy.InFlight", p.InFlight, InFlightConflict, InFlightInUse, InFlightAccepted, InFlightWait),
		oneOf("Policy.Scope", p.Scope, ScopeOperation, ScopeTenant),
		oneOf("Policy.KeyTime", p.KeyTime, KeyTimeNone, KeyTimeUUIDv7, KeyTimeULID, KeyTimeEither),
		p.validateRelations(),
		p.validateExpiry(),
	} {
		if check != nil {
			return check
		}
	}
	return nil
}

func (p Policy) validateRelations() error {
	if p.KeyBytesMin < 0 || p.KeyBytesMin > 255 || p.KeyBytesMin > 1 && p.Syntax != SyntaxOpaque {
		return &ConfigError{"Policy.KeyBytesMin", p.KeyBytesMin, fmt.Sprintf("must be 0..255, above 1 only with Policy.Syntax = %s", SyntaxOpaque)}
	}
	if p.Retention < RetentionMin || p.Retention > RetentionMax {
		return &ConfigError{"Policy.Retention", p.Retention, fmt.Sprintf("must be %v..%v", RetentionMin, RetentionMax)}
	}
	if waits := p.InFlight == InFlightWait; waits != (p.WaitMax > 0) || p.WaitMax < 0 || p.WaitMax > waitMaxBound {
		return &ConfigError{"Policy.WaitMax", p.WaitMax, fmt.Sprintf("must be above 0 and at most %v with Policy.InFlight = %s, else 0", waitMaxBound, InFlightWait)}
	}
	for _, name := range p.ReplayHeaders {
		if slices.Contains(neverReplayed, textproto.CanonicalMIMEHeaderKey(name)) {
			return &ConfigError{"Policy.ReplayHeaders", name, "is never stored: it belongs to one exchange"}
		}
	}
	return nil
}

// validateExpiry rejects what could not be kept once a record has expired.
func (p Policy) validateExpiry() error {
	if p.KeepFor < 0 || p.KeepFor > keepForMax {
		return &ConfigError{"Policy.KeepFor", p.KeepFor, fmt.Sprintf("must be 0..%v", keepForMax)}
	}
	if p.KeyTimeRequired && p.KeyTime == KeyTimeNone {
		return &ConfigError{"Policy.KeyTimeRequired", true, "needs a Policy.KeyTime to require"}
	}
	if longest := p.KeyTime.bytesMax(); p.KeyTimeRequired && p.KeyBytesMin > longest {
		return &ConfigError{"Policy.KeyBytesMin", p.KeyBytesMin, fmt.Sprintf("refuses every key that Policy.KeyTimeRequired admits: a %s has at most %d bytes", p.KeyTime, longest)}
	}
	if p.GoneAfterExpiry && p.KeepFor == 0 && !p.KeyTimeRequired {
		return &ConfigError{"Policy.GoneAfterExpiry", true, "needs a tombstone (Policy.KeepFor) or a time in every key (Policy.KeyTimeRequired): else an expired key can't be told from a new one"}
	}
	return nil
}

func oneOf[T ~string](field string, value T, allowed ...T) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return &ConfigError{field, fmt.Sprintf("%q", string(value)), fmt.Sprintf("must be one of %q", allowed)}
}

// Replays says whether a response header of this name is stored and replayed. Without Content-Type and Content-Encoding nobody could
// read the stored body.
func (p Policy) Replays(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(name)
	if name == "Content-Type" || name == "Content-Encoding" || name == "Location" {
		return true
	}
	return slices.ContainsFunc(p.ReplayHeaders, func(allowed string) bool {
		return textproto.CanonicalMIMEHeaderKey(allowed) == name
	})
}

// stores says whether a result with this status, returned by a handler, is stored.
func (p Policy) stores(status int) bool {
	switch {
	case status >= 500:
		return p.StoreServerErrors
	case status >= 400 && !p.StoreClientErrors:
		return !slices.Contains([]int{401, 403, 408, 409, 425, 429}, status)
	}
	return true
}
