package header

import (
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	tests := []struct {
		clause string
		lines  []string
		want   time.Duration
		ok     bool
	}{
		{"RFC 7240 4.3 wait", []string{"wait=10"}, 10 * time.Second, true},
		{"RFC 7240 2 quoted", []string{`wait="10"`}, 10 * time.Second, true},
		{"RFC 7240 2 names have no case", []string{"WAIT=1"}, time.Second, true},
		{"RFC 7240 2 white space around =", []string{" wait\t= 7 "}, 7 * time.Second, true},
		{"zero", []string{"wait=0"}, 0, true},
		{"leading zeros", []string{"wait=007"}, 7 * time.Second, true},
		{"RFC 7240 4.3 with another preference", []string{"respond-async, wait=10"}, 10 * time.Second, true},
		{"RFC 7240 2 several lines", []string{"respond-async", "handling=lenient,wait=3"}, 3 * time.Second, true},
		{"RFC 7240 2 the first wins", []string{"wait=1, wait=2", "wait=3"}, time.Second, true},
		{"the first wins even malformed", []string{"wait=x, wait=2"}, 0, false},
		{"RFC 7240 2 parameters are ignored", []string{`wait=5; note="a, wait=9; b"`}, 5 * time.Second, true},
		{"a quoted comma is no separator", []string{`foo="a, wait=9", wait=5`}, 5 * time.Second, true},
		{"an escaped quote is no end", []string{`foo="a\", wait=9", wait=5`}, 5 * time.Second, true},
		{"a parameter is no preference", []string{"foo; wait=9"}, 0, false},
		{"empty elements", []string{",, ,wait=5,"}, 5 * time.Second, true},
		{"RFC 9111 1.2.2 too large", []string{"wait=99999999999999999999999"}, waitSecondsMax * time.Second, true},
		{"no header", nil, 0, false},
		{"empty header", []string{""}, 0, false},
		{"without value", []string{"wait"}, 0, false},
		{"empty value", []string{"wait="}, 0, false},
		{"empty quoted value", []string{`wait=""`}, 0, false},
		{"negative", []string{"wait=-1"}, 0, false},
		{"signed", []string{"wait=+1"}, 0, false},
		{"fraction", []string{"wait=1.5"}, 0, false},
		{"unit", []string{"wait=10s"}, 0, false},
		{"half a quote", []string{`wait="10`}, 0, false},
		{"lone quote", []string{`wait="`}, 0, false},
		{"another name", []string{"waits=10, await=3"}, 0, false},
	}
	for _, test := range tests {
		t.Run(test.clause, func(t *testing.T) {
			got, ok := ParseWait(test.lines)
			if got != test.want || ok != test.ok {
				t.Errorf("got %v, %v, want %v, %v", got, ok, test.want, test.ok)
			}
		})
	}
}

func FuzzParseWait(f *testing.F) {
	for _, seed := range []string{"", "wait=10", `foo="a\", wait=9", WAIT = "5"; p`, `"`, `\`, "wait=99999999999999999999", ",;=", "wait=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, ok := ParseWait([]string{line})
		if got < 0 || got > waitSecondsMax*time.Second || got%time.Second != 0 || !ok && got != 0 {
			t.Fatalf("%q: %v, %v", line, got, ok)
		}
		if again, _ := ParseWait([]string{"respond-async", line}); again != got {
			t.Fatalf("%q: %v, after another line %v", line, got, again)
		}
	})
}
