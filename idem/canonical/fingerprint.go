// Package canonical computes the fingerprint of a request: a versioned hash of what was asked for. Two spellings of
// the same request have the same fingerprint, and different requests have different ones. An engine compares
// fingerprints to refuse a key that is used again for another payload.
//
// Applications configure what counts by a [Selection] in a route or an operation, and rarely need anything else of
// this package. Use it directly to build an idem.Request without package middleware, or to compare requests in a tool
// of your own.
//
// A JSON body counts in the canonical form of RFC 8785, with one difference. RFC 8785 takes every number for a
// double, so that integers beyond 2^53 collide; here a number that a double cannot hold keeps its digits. Bodies that
// two parsers could read differently are refused: numbers beyond a double, duplicate names, invalid UTF-8, lone
// surrogates, too much nesting, too many bytes.
//
// The package is pure: it has no clock, no randomness and no I/O.
package canonical

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash"
)

// Version is the version of the fingerprints that Sum computes. Older versions stay computable for as long as records may
// hold them, so a release never turns a valid retry into a mismatch.
const Version = 1

// Defaults and bounds of Config.
const (
	BodyBytesMaxDefault = 256 << 10
	DepthMaxDefault     = 64
	// DepthMaxBound is the largest DepthMax that New accepts: the nesting is walked recursively.
	DepthMaxBound = 1000
	// SecretBytesMin is the shortest secret that New accepts, the output size of the hash (RFC 2104 section 3).
	SecretBytesMin = sha256.Size
)

// Fingerprint is a versioned hash. Fingerprints are comparable with Equal only where they were made alike (see
// [Fingerprint.Alike]); the zero value is no fingerprint and equals none that was computed.
type Fingerprint struct {
	// Version is the version of the encoding that was hashed.
	Version int
	// KeyID names the secret that keyed the hash; empty for plain SHA-256.
	KeyID string
	// Selection is the text of the selection that was hashed; empty where everything counted.
	Selection string
	// Sum is the SHA-256 or HMAC-SHA-256.
	Sum [sha256.Size]byte
	// Parts says where two fingerprints that were made alike differ; [Fingerprint.Equal] does not look at it.
	Parts Parts
}

// Equal says whether both are the same hash and were made alike. The sums are compared in constant time.
func (f Fingerprint) Equal(other Fingerprint) bool {
	same := subtle.ConstantTimeCompare(f.Sum[:], other.Sum[:]) == 1
	return same && f.Alike(other)
}

// Alike says whether both were made under the same version, key and selection: only then is a different sum a different
// request. [Fingerprinter.SumAs] makes a fingerprint like another one.
func (f Fingerprint) Alike(other Fingerprint) bool {
	return f.Version == other.Version && f.KeyID == other.KeyID && f.Selection == other.Selection
}

// Secret is a key for HMAC-SHA-256. With one, nobody who reads the table can test guesses of a body against its
// fingerprint.
type Secret struct {
	// ID is stored beside each fingerprint; not empty, and never given to another secret.
	ID string
	// Key has at least SecretBytesMin bytes.
	Key []byte
}

// Config is what New takes. The zero value computes plain SHA-256 within the default bounds.
type Config struct {
	// Secrets holds the secret for new fingerprints first, then older ones, which only recompute the fingerprints of
	// records stored under them. None: plain SHA-256, which stays computable after a secret was introduced.
	Secrets []Secret
	// BodyBytesMax is the largest body, in bytes; 0 means BodyBytesMaxDefault.
	BodyBytesMax int
	// DepthMax is the deepest nesting of arrays and objects in a JSON body; 0 means DepthMaxDefault. A scalar has depth 0.
	DepthMax int
}

// Fingerprinter computes fingerprints. It is immutable and safe for concurrent use.
type Fingerprinter struct {
	keyID        string
	secrets      map[string][]byte
	bodyBytesMax int
	depthMax     int
}

// Errors that callers branch on. A body that is refused as JSON gets a [*SyntaxError].
var (
	// ErrTooLarge is returned for a body of more than BodyBytesMax bytes: 413.
	ErrTooLarge = errors.New("canonical: body too large")
	// ErrUnknownVersion is returned for a version that this release can't compute: a newer release wrote it.
	ErrUnknownVersion = errors.New("canonical: unknown fingerprint version")
	// ErrUnknownSecret is returned for a key id that Config.Secrets doesn't hold.
	ErrUnknownSecret = errors.New("canonical: unknown fingerprint secret")
)

// New checks the configuration and copies what it keeps of it.
func New(cfg Config) (*Fingerprinter, error) {
	f := &Fingerprinter{
		secrets:      make(map[string][]byte, len(cfg.Secrets)),
		bodyBytesMax: cfg.BodyBytesMax,
		depthMax:     cfg.DepthMax,
	}
	if f.bodyBytesMax == 0 {
		f.bodyBytesMax = BodyBytesMaxDefault
	}
	if f.depthMax == 0 {
		f.depthMax = DepthMaxDefault
	}
	if f.bodyBytesMax < 0 {
		return nil, fmt.Errorf("canonical: BodyBytesMax is %d, want at least 1", cfg.BodyBytesMax)
	}
	if f.depthMax < 0 || f.depthMax > DepthMaxBound {
		return nil, fmt.Errorf("canonical: DepthMax is %d, want 1 to %d", cfg.DepthMax, DepthMaxBound)
	}
	for i, secret := range cfg.Secrets {
		if secret.ID == "" {
			return nil, fmt.Errorf("canonical: secret %d has no id", i)
		}
		if len(secret.Key) < SecretBytesMin {
			return nil, fmt.Errorf("canonical: secret %q has %d bytes, want at least %d", secret.ID, len(secret.Key), SecretBytesMin)
		}
		if _, ok := f.secrets[secret.ID]; ok {
			return nil, fmt.Errorf("canonical: two secrets have the id %q", secret.ID)
		}
		f.secrets[secret.ID] = append([]byte(nil), secret.Key...)
	}
	if len(cfg.Secrets) > 0 {
		f.keyID = cfg.Secrets[0].ID
	}
	return f, nil
}

// Sum computes the fingerprint under the current version and secret, and the input's own selection. The input is only
// read. It returns [ErrTooLarge], a [*SyntaxError] or [ErrSelection].
func (f *Fingerprinter) Sum(in Input) (Fingerprint, error) {
	return f.sum(Version, f.keyID, in)
}

// SumAs computes the fingerprint under the version, key and selection of a stored one, in place of the input's own. An
// empty key id means plain SHA-256. Besides the errors of Sum it returns [ErrUnknownVersion] or [ErrUnknownSecret].
func (f *Fingerprinter) SumAs(stored Fingerprint, in Input) (Fingerprint, error) {
	selection, err := ParseSelection(stored.Selection)
	if err != nil {
		return Fingerprint{}, err
	}
	in.Selection = selection
	return f.sum(stored.Version, stored.KeyID, in)
}

func (f *Fingerprinter) sum(version int, keyID string, in Input) (Fingerprint, error) {
	encode, ok := encodings[version]
	if !ok {
		return Fingerprint{}, fmt.Errorf("%w: %d", ErrUnknownVersion, version)
	}
	h, err := f.newHash(keyID)
	if err != nil {
		return Fingerprint{}, err
	}
	if len(in.Body) > f.bodyBytesMax {
		return Fingerprint{}, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, len(in.Body), f.bodyBytesMax)
	}
	encoded, err := encode(in, f.depthMax)
	if err != nil {
		return Fingerprint{}, err
	}
	h.Write(encoded.bytes)
	sum := Fingerprint{Version: version, KeyID: keyID, Selection: encoded.selection}
	h.Sum(sum.Sum[:0])
	sum.Parts = encoded.parts(h)
	return sum, nil
}

func (f *Fingerprinter) newHash(keyID string) (hash.Hash, error) {
	if keyID == "" {
		return sha256.New(), nil
	}
	secret, ok := f.secrets[keyID]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknownSecret, keyID)
	}
	return hmac.New(sha256.New, secret), nil
}
