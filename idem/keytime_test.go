package idem

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	uuidv7 = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$`)
	ulid   = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$`)
)

// FuzzKeyTime: a key carries a time exactly if it is a UUIDv7 or a ULID, and that time is the one that such a key is made
// of. Any other key is opaque.
func FuzzKeyTime(f *testing.F) {
	for _, seed := range []string{
		"", "01932c07-6c00-7abc-8def-0123456789ab", "01932C07-6C00-7ABC-BDEF-0123456789AB", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "7zzzzzzzzz0000000000000000",
		"81ARZ3NDEKTSV4RRFFQ69G5FAV", "01932c07-6c00-4abc-8def-0123456789ab", "01ARZ3NDEKT\u017fV4RRFFQ69G5FA", "-1932c07-6c00-7abc-8def-0123456789a-",
	} {
		f.Add(seed, uint64(1_795_222_800_005))
	}
	f.Fuzz(func(t *testing.T, key string, milliseconds uint64) {
		for kind, form := range map[KeyTime]*regexp.Regexp{KeyTimeUUIDv7: uuidv7, KeyTimeULID: ulid} {
			at, ok := kind.of(key)
			if ok != form.MatchString(key) || ok != !at.IsZero() {
				t.Fatalf("%q as %s: %v, %v", key, kind, at, ok)
			}
			either, also := KeyTimeEither.of(key)
			if ok && (!also || !either.Equal(at)) {
				t.Fatalf("%q as either: %v, %v, want %v", key, either, also, at)
			}
		}
		if _, ok := KeyTimeNone.of(key); ok {
			t.Fatalf("%q has a time where none is read", key)
		}
		milliseconds &= 1<<48 - 1
		digits := fmt.Sprintf("%012x", milliseconds)
		base32 := ""
		for n := milliseconds; len(base32) < 10; n >>= 5 {
			base32 = crockford[n&31:n&31+1] + base32
		}
		for _, made := range []string{digits[:8] + "-" + digits[8:] + "-7abc-8def-0123456789ab", base32 + "0123456789ABCDEF", strings.ToLower(base32) + "0123456789abcdef"} {
			if at, ok := KeyTimeEither.of(made); !ok || !at.Equal(time.UnixMilli(int64(milliseconds))) {
				t.Fatalf("%s: %v, %v, want %d", made, at, ok, milliseconds)
			}
		}
	})
}
