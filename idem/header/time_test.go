package header

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestFirstSent(t *testing.T) {
	want := time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC)
	tests := []struct {
		clause, line string
		want         time.Time
	}{
		{"RFC 3339 5.8", "1994-11-06T08:49:37Z", want},
		{"RFC 3339 5.6 fraction", "1994-11-06T08:49:37.250Z", want.Add(250 * time.Millisecond)},
		{"RFC 3339 5.6 offset", "1994-11-06T09:49:37+01:00", want},
		{"RFC 3339 4.3 unknown offset", "1994-11-06T08:49:37-00:00", want},
		{"RFC 3339 5.6 lower case", "1994-11-06t08:49:37z", want},
		{"RFC 9110 5.6.7 IMF-fixdate", "Sun, 06 Nov 1994 08:49:37 GMT", want},
		{"RFC 9110 5.6.7 rfc850-date", "Sunday, 06-Nov-94 08:49:37 GMT", want},
		{"RFC 9110 5.6.7 asctime-date", "Sun Nov  6 08:49:37 1994", want},
		{"RFC 9110 5.5 white space around", " 1994-11-06T08:49:37Z\t", want},
	}
	for _, test := range tests {
		t.Run(test.clause, func(t *testing.T) {
			got, err := ParseFirstSent([]string{test.line})
			if err != nil || !got.Equal(test.want) || got.Location() != time.UTC {
				t.Errorf("got %v, %v, want %v", got, err, test.want)
			}
		})
	}
}

func TestFirstSentRefused(t *testing.T) {
	tests := []struct {
		clause string
		lines  []string
		want   Reason
	}{
		{"words", []string{"yesterday"}, ReasonTime},
		{"epoch seconds", []string{"784111777"}, ReasonTime},
		{"no zone", []string{"1994-11-06T08:49:37"}, ReasonTime},
		{"space for T", []string{"1994-11-06 08:49:37Z"}, ReasonTime},
		{"one-digit hour", []string{"1994-11-06T8:49:37Z"}, ReasonTime},
		{"decimal comma", []string{"1994-11-06T08:49:37,5Z"}, ReasonTime},
		{"no such day", []string{"1994-02-30T08:49:37Z"}, ReasonTime},
		{"no such offset", []string{"1994-11-06T08:49:37+24:00"}, ReasonTime},
		{"quoted", []string{`"1994-11-06T08:49:37Z"`}, ReasonTime},
		{"HTTP date of another zone", []string{"Sun, 06 Nov 1994 08:49:37 PST"}, ReasonTime},
		{"rfc850-date of another zone", []string{"Sunday, 06-Nov-94 08:49:37 PST"}, ReasonTime},
		{"joined by a gateway", []string{"1994-11-06T08:49:37Z, 1994-11-06T08:49:37Z"}, ReasonTime},
		{"two lines", []string{"1994-11-06T08:49:37Z", "1994-11-06T08:49:37Z"}, ReasonRepeated},
	}
	for _, test := range tests {
		t.Run(test.clause, func(t *testing.T) {
			got, err := ParseFirstSent(test.lines)
			var invalid *InvalidError
			if !errors.As(err, &invalid) || invalid.Reason != test.want || invalid.Name != NameFirstSent || !got.IsZero() {
				t.Errorf("got %v, %v, want %q", got, err, test.want)
			}
		})
	}
	if _, err := ParseFirstSent(nil); !errors.Is(err, ErrMissing) {
		t.Errorf("no line: %v", err)
	}
	if _, err := ParseFirstSent([]string{" "}); !errors.Is(err, ErrEmpty) {
		t.Errorf("blank line: %v", err)
	}
}

func TestFormatRetryAfter(t *testing.T) {
	tests := map[time.Duration]string{
		math.MinInt64:              "1",
		-time.Second:               "1",
		0:                          "1",
		time.Nanosecond:            "1",
		time.Second:                "1",
		time.Second + 1:            "2",
		1500 * time.Millisecond:    "2",
		2 * time.Second:            "2",
		time.Hour:                  "3600",
		time.Duration(1<<63 - 1):   "9223372037",
		90*time.Second + 999999999: "91",
	}
	for wait, want := range tests {
		if got := FormatRetryAfter(wait); got != want {
			t.Errorf("%v: got %s, want %s", wait, got, want)
		}
	}
}

func TestFormatExpires(t *testing.T) {
	at := time.Date(2026, 11, 21, 1, 30, 0, 5_999_999, time.FixedZone("CET", 3600))
	if got, want := FormatExpires(at), "2026-11-21T00:30:00.005Z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzParseFirstSent: what is taken for a time is a date of RFC 9110 or RFC 3339, in UTC, and the same time however it is
// written again; everything else is refused.
func FuzzParseFirstSent(f *testing.F) {
	for _, seed := range []string{"", "1994-11-06T08:49:37.5+01:00", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "\xff", "9999-12-31T23:59:60-23:59"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := ParseFirstSent([]string{line})
		if err != nil {
			var invalid *InvalidError
			if !got.IsZero() || !errors.Is(err, ErrEmpty) && (!errors.As(err, &invalid) || invalid.Reason != ReasonTime) {
				t.Fatalf("%q: %v, %v", line, got, err)
			}
			return
		}
		if got.Location() != time.UTC || got.Year() < -1 || got.Year() > 10000 {
			t.Fatalf("%q is %v", line, got)
		}
		if got.Year() < 0 || got.Year() > 9999 { // an offset leads out of the years that can be written
			return
		}
		for _, form := range []string{time.RFC3339Nano, http.TimeFormat, time.RFC850, time.ANSIC} {
			want := got
			if form != time.RFC3339Nano {
				want = got.Truncate(time.Second)
			}
			text := strings.Replace(got.Format(form), "UTC", "GMT", 1)
			again, err := ParseFirstSent([]string{" " + text + "\t"})
			if form == time.RFC850 && (got.Year() < 1969 || got.Year() > 2068) { // its years have two digits
				continue
			}
			if err != nil || !again.Equal(want) {
				t.Fatalf("%q is %v, then as %q %v (%v)", line, got, text, again, err)
			}
		}
	})
}

// FuzzFormat: a client that waits as it is told never comes too early, nor a second late; and what it is told of the expiry
// it reads as the stored time.
func FuzzFormat(f *testing.F) {
	f.Add(int64(1_500_000_000), int64(1_795_222_800_005))
	f.Add(int64(math.MaxInt64), int64(-62_135_596_800_000))
	f.Add(int64(-1), int64(253_402_300_799_999))
	f.Fuzz(func(t *testing.T, nanoseconds, milliseconds int64) {
		wait := time.Duration(nanoseconds)
		seconds, err := strconv.ParseInt(FormatRetryAfter(wait), 10, 64)
		if err != nil || seconds < 1 || float64(seconds) < wait.Seconds() || wait > 0 && float64(seconds) >= wait.Seconds()+1 {
			t.Errorf("%v is %d s, %v", wait, seconds, err)
		}
		at := time.UnixMilli(milliseconds)
		if year := at.UTC().Year(); year < 0 || year > 9999 {
			return
		}
		if again, err := ParseFirstSent([]string{FormatExpires(at)}); err != nil || !again.Equal(at) {
			t.Errorf("%v is written %s and read %v, %v", at, FormatExpires(at), again, err)
		}
	})
}
