package idem

import (
	"encoding/hex"
	"strings"
	"time"
)

// FirstSentSkew is how far a client's clock may be off. A request whose time is further in the future is refused. A
// request counts as older than the retention this much earlier, so that a client's clock that is ahead never makes an
// expired key new.
const FirstSentSkew = 2 * time.Minute

// KeyTimeReason says why a request can't begin anything.
type KeyTimeReason string

// The reasons for refusing a request by its time.
const (
	ReasonFirstSentFuture KeyTimeReason = "the request says that it was first sent in the future"
	ReasonKeyFuture       KeyTimeReason = "the time in the key is in the future"
	ReasonKeyWithoutTime  KeyTimeReason = "the key carries no time"
)

// KeyTimeError refuses a request without a record because of its time: 400. Nothing was executed.
type KeyTimeError struct {
	// Reason says what is wrong with the time.
	Reason KeyTimeReason
}

// Error implements error.
func (e *KeyTimeError) Error() string { return "idem: " + string(e.Reason) }

const (
	uuidBytes = 36
	ulidBytes = 26
)

// bytesMax is the length of the longest key that carries such a time.
func (k KeyTime) bytesMax() int {
	if k == KeyTimeULID {
		return ulidBytes
	}
	return uuidBytes
}

// of returns the time that the key carries, in milliseconds.
func (k KeyTime) of(key string) (time.Time, bool) {
	if k == KeyTimeUUIDv7 || k == KeyTimeEither {
		if at, ok := uuidTime(key); ok {
			return at, true
		}
	}
	if k == KeyTimeULID || k == KeyTimeEither {
		return ulidTime(key)
	}
	return time.Time{}, false
}

// uuidTime reads a UUID of version 7 in its one textual form (RFC 9562 sections 4 and 5.7).
func uuidTime(key string) (time.Time, bool) {
	if len(key) != uuidBytes || key[8] != '-' || key[13] != '-' || key[18] != '-' || key[23] != '-' {
		return time.Time{}, false
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(key, "-", ""))
	if err != nil || len(raw) != 16 || raw[6]>>4 != 7 || raw[8]>>6 != 0b10 {
		return time.Time{}, false
	}
	var ms int64
	for _, b := range raw[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms).UTC(), true
}

// crockford is the alphabet of a ULID; letters of either case count.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// ulidTime reads a ULID (github.com/ulid/spec): 48 bits of milliseconds in its first ten characters.
func ulidTime(key string) (time.Time, bool) {
	if len(key) != ulidBytes || key[0] > '7' {
		return time.Time{}, false
	}
	var ms int64
	for i := range ulidBytes {
		c := key[i]
		if 'a' <= c && c <= 'z' { // not by strings.ToUpper: other letters become these, of another length
			c -= 'a' - 'A'
		}
		digit := strings.IndexByte(crockford, c)
		if digit < 0 {
			return time.Time{}, false
		}
		if i < 10 {
			ms = ms<<5 | int64(digit)
		}
	}
	return time.UnixMilli(ms).UTC(), true
}

// begins judges by its time a request that has no live record: it returns a [*KeyTimeError] or an [*ExpiredError].
func (p Policy) begins(req Request, now time.Time) error {
	if req.OneOff {
		return nil
	}
	inKey, has := p.KeyTime.of(req.Key)
	latest, oldest := now.Add(FirstSentSkew), now.Add(FirstSentSkew-p.Retention)
	switch {
	case p.KeyTimeRequired && !has:
		return &KeyTimeError{ReasonKeyWithoutTime}
	case req.FirstSent != nil && req.FirstSent.After(latest):
		return &KeyTimeError{ReasonFirstSentFuture}
	case has && inKey.After(latest):
		return &KeyTimeError{ReasonKeyFuture}
	case req.FirstSent != nil && req.FirstSent.Before(oldest):
		return &ExpiredError{FirstSent: true}
	case has && inKey.Before(oldest):
		return &ExpiredError{FirstSent: !p.GoneAfterExpiry}
	}
	return nil
}
