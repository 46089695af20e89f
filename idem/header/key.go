// Package header reads and writes the headers that idem uses on the wire: Idempotency-Key, Idempotency-Expires,
// Idempotency-Status and the others (docs/semantics.md "On the wire"). Package middleware uses it for servers,
// and package client for clients.
//
// Most applications use those packages and not this one. Use it for a gateway, a framework or a protocol that package
// middleware does not serve. It takes what net/http's Header.Values returns: the field lines of one name, in order.
// Every function accepts any bytes and never panics, and no error quotes what a client sent. The package is pure: it
// has no clock and no I/O.
package header

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Names of the headers, in net/http's canonical form.
const (
	NameKey        = "Idempotency-Key"
	NameFirstSent  = "Idempotency-First-Sent"
	NameReplayed   = "Idempotent-Replayed"
	NameStatus     = "Idempotency-Status"
	NameExpires    = "Idempotency-Expires"
	NamePrefer     = "Prefer"
	NameRetryAfter = "Retry-After"
)

// Syntax is how the Idempotency-Key header is read.
type Syntax string

// The syntaxes of a key. The empty Syntax is SyntaxStructured.
const (
	// SyntaxStructured is a String of RFC 9651; a bare value is the same key as the quoted one. A bare value has the
	// bytes %x21-7E without '"', '\', ',' and ';', so it can't be a list, carry parameters or look quoted.
	SyntaxStructured Syntax = "structured"
	// SyntaxStrict is a String of RFC 9651 and nothing else.
	SyntaxStrict Syntax = "strict"
	// SyntaxOpaque takes the value as it stands, quotes and commas included: any bytes but control characters.
	SyntaxOpaque Syntax = "opaque"
)

// KeyBytesMax is the longest key, in bytes, without its quotes and escapes.
const KeyBytesMax = 255

// A quoted key of the largest size with every byte escaped. Longer values are refused unread.
const keyValueBytesMax = 2*KeyBytesMax + len(`""`)

// KeyRule is how an endpoint reads its keys.
type KeyRule struct {
	// Syntax is how the header's value is read. The zero value is SyntaxStructured.
	Syntax Syntax
	// BytesMin is the shortest key accepted, in bytes; 0 and 1 mean any that is not empty.
	BytesMin int
}

// Errors for a header that is not there. What they lead to is the policy's choice.
var (
	// ErrMissing is returned where no field line was sent.
	ErrMissing = errors.New("header: missing")
	// ErrEmpty is returned for one field line with nothing but white space.
	ErrEmpty = errors.New("header: empty")
)

// Reason says what is wrong with a header. It never quotes it.
type Reason string

// The reasons for refusing a header.
const (
	ReasonRepeated   Reason = "sent more than once"
	ReasonSyntax     Reason = "not a single quoted string (RFC 9651 section 3.3.3)"
	ReasonParameters Reason = "parameters are not allowed"
	ReasonNoKey      Reason = "the quoted string is empty"
	ReasonTooShort   Reason = "shorter than this endpoint accepts"
	ReasonTooLong    Reason = "longer than 255 bytes"
	ReasonControl    Reason = "contains a control character"
	ReasonTime       Reason = "neither an RFC 3339 time nor an HTTP date"
)

// InvalidError refuses a header: 400.
type InvalidError struct {
	// Name is the header's name.
	Name string
	// Reason says what is wrong with the header.
	Reason Reason
}

// Error names the header and why its value was refused; it does not repeat the value.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("header: %s is invalid: %s", e.Name, e.Reason)
}

// ParseKey returns the key that the field lines of Idempotency-Key carry: 1 to KeyBytesMax bytes. Several lines are
// refused even where they agree, and so are lines that a gateway joined with a comma, but for SyntaxOpaque, where a
// comma is a byte like any other. It returns [ErrMissing], [ErrEmpty] or an [*InvalidError].
func ParseKey(lines []string, rule KeyRule) (string, error) {
	value, err := single(NameKey, lines)
	if err != nil {
		return "", err
	}
	key, reason := parseKey(value, rule.Syntax)
	switch {
	case reason != "":
	case len(key) > KeyBytesMax:
		reason = ReasonTooLong
	case len(key) == 0:
		reason = ReasonNoKey
	case len(key) < rule.BytesMin:
		reason = ReasonTooShort
	}
	if reason != "" {
		return "", &InvalidError{Name: NameKey, Reason: reason}
	}
	return key, nil
}

// single returns the one field line of a header without the optional white space around it (RFC 9110 section 5.5).
func single(name string, lines []string) (string, error) {
	switch len(lines) {
	case 0:
		return "", ErrMissing
	case 1:
	default:
		// Before anything is joined: two lines of half a string each would make a whole one (RFC 9651 section 4.2).
		return "", &InvalidError{Name: name, Reason: ReasonRepeated}
	}
	value := strings.Trim(lines[0], " \t")
	if value == "" {
		return "", ErrEmpty
	}
	return value, nil
}

func parseKey(value string, syntax Syntax) (string, Reason) {
	if len(value) > keyValueBytesMax {
		return "", ReasonTooLong
	}
	switch {
	case syntax == SyntaxOpaque:
		if strings.IndexFunc(value, isControl) >= 0 {
			return "", ReasonControl
		}
		return value, ""
	case syntax != SyntaxStrict && isBare(value):
		return value, ""
	}
	item, err := httpsfv.UnmarshalItem([]string{value})
	if err != nil {
		return "", ReasonSyntax
	}
	key, ok := item.Value.(string)
	if !ok {
		return "", ReasonSyntax
	}
	if len(item.Params.Names()) > 0 {
		return "", ReasonParameters
	}
	return key, ""
}

// isBare says whether the value is a key without quotes.
func isBare(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < 0x21 || c > 0x7e || c == '"' || c == '\\' || c == ',' || c == ';' {
			return false
		}
	}
	return true
}

// isControl names the characters that no field value may have (RFC 9110 section 5.5), the tab within included.
func isControl(r rune) bool { return r < 0x20 || r == 0x7f }
