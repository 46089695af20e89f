package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Bounds of a header. Providers send one v1 for each secret that is valid at the time.
const (
	headerBytesMax    = 1024
	signaturesMax     = 8
	timestampBytesMax = 11 // until the year 5138
)

// signature is what a header says.
type signature struct {
	// timestamp is t as it was sent, which is what was signed; at is what it means.
	timestamp string
	at        time.Time
	sums      [][sha256.Size]byte
}

// parse reads a header: exactly one t, and up to eight v1. A v1 that is no SHA-256 in hexadecimal spoils the header;
// members of other names are other schemes.
func parse(header string) (signature, error) {
	if header == "" {
		return signature{}, ErrMissing
	}
	if len(header) > headerBytesMax {
		return signature{}, ErrMalformed
	}
	var s signature
	for member := range strings.SplitSeq(header, ",") {
		name, value, found := strings.Cut(member, "=")
		ok := found && isToken(name) // a space before it is what joins two headers
		switch name {
		case "t":
			ok = ok && s.timestamp == "" && s.stamp(value)
		case "v1":
			ok = ok && s.add(value)
		}
		if !ok {
			return signature{}, ErrMalformed
		}
	}
	if s.timestamp == "" || len(s.sums) == 0 {
		return signature{}, ErrMalformed
	}
	return s, nil
}

// stamp takes digits only: a sign or a space would be another text for the same time.
func (s *signature) stamp(value string) bool {
	if len(value) == 0 || len(value) > timestampBytesMax || strings.Trim(value, "0123456789") != "" {
		return false
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	s.timestamp, s.at = value, time.Unix(seconds, 0)
	return err == nil
}

func (s *signature) add(value string) bool {
	var sum [sha256.Size]byte
	if len(value) != hex.EncodedLen(len(sum)) || len(s.sums) == signaturesMax {
		return false
	}
	_, err := hex.Decode(sum[:], []byte(value))
	s.sums = append(s.sums, sum)
	return err == nil
}

// signs says whether any of the secrets has made any of the signatures. It takes the same time whichever it was.
func (s signature) signs(secrets []string, body []byte) bool {
	match := false
	for _, secret := range secrets {
		want := sum(secret, s.timestamp, body)
		for _, got := range s.sums {
			match = hmac.Equal(got[:], want) || match
		}
	}
	return match
}

func sum(secret, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp))
	mac.Write([]byte("."))
	mac.Write(body)
	return mac.Sum(nil)
}

// Sign returns the header's value for a body that is sent at a time, as a provider makes it: for senders, and for tests.
func Sign(secret string, at time.Time, body []byte) string {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	return "t=" + timestamp + ",v1=" + hex.EncodeToString(sum(secret, timestamp, body))
}
