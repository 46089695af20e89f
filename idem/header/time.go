package header

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// rfc3339 is the grammar of RFC 3339 section 5.6: time.Parse alone also takes one-digit hours, decimal commas and any offset.
var rfc3339 = regexp.MustCompile(
	`^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)

// ParseFirstSent returns the time, in UTC, that the field lines of Idempotency-First-Sent carry: RFC 3339, or an HTTP date
// in any of the three forms of RFC 9110 section 5.6.7. It returns [ErrMissing], [ErrEmpty] or an [*InvalidError]. Whether
// the time is plausible is the caller's to judge.
func ParseFirstSent(lines []string) (time.Time, error) {
	value, err := single(NameFirstSent, lines)
	if err != nil {
		return time.Time{}, err
	}
	if rfc3339.MatchString(value) {
		if sent, err := time.Parse(time.RFC3339, strings.ToUpper(value)); err == nil {
			return sent.UTC(), nil
		}
	}
	// HTTP dates are GMT; for the name of any other zone the time package would make up an offset of zero.
	if sent, err := http.ParseTime(value); err == nil && (sent.Location() == time.UTC || strings.HasSuffix(value, " GMT")) {
		return sent.UTC(), nil
	}
	return time.Time{}, &InvalidError{Name: NameFirstSent, Reason: ReasonTime}
}

// FormatRetryAfter returns the value of Retry-After: whole seconds, rounded up so that nobody comes too early, at least 1.
func FormatRetryAfter(wait time.Duration) string {
	seconds := wait / time.Second
	if wait%time.Second > 0 {
		seconds++
	}
	return strconv.FormatInt(int64(max(seconds, 1)), 10)
}

// FormatExpires returns the value of Idempotency-Expires: RFC 3339 in UTC with milliseconds, the resolution of a record.
func FormatExpires(at time.Time) string {
	return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
