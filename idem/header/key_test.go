package header

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

var (
	structured = KeyRule{}
	strict     = KeyRule{Syntax: SyntaxStrict}
	opaque     = KeyRule{Syntax: SyntaxOpaque}
)

func TestKey(t *testing.T) {
	longest := strings.Repeat("k", KeyBytesMax)
	tests := []struct {
		clause string
		rule   KeyRule
		line   string
		want   string
	}{
		{"RFC 9651 3.3.3 String", structured, `"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		{"RFC 9651 3.3.3 String, strict", strict, `"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		{"bare is the same key", structured, `8e03978e-40d5-43dd-bc93-6894a57f9324`, "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		{"RFC 9651 4.2.5 escapes", strict, `"a\"b\\c"`, `a"b\c`},
		{"comma inside the quotes", structured, `"a, b"`, "a, b"},
		{"semicolon inside the quotes", strict, `"a;b=1"`, "a;b=1"},
		{"spaces inside the quotes", structured, `" "`, " "},
		{"RFC 9110 5.5 white space around", strict, " \t\"abc\"\t ", "abc"},
		{"white space around a bare key", structured, "\t abc ", "abc"},
		{"bare integer", structured, `42`, "42"},
		{"bare token", structured, `*a/b:c`, "*a/b:c"},
		{"bare boolean", structured, `?1`, "?1"},
		{"bare byte sequence", structured, `:aGk=:`, ":aGk=:"},
		{"bare date", structured, `@1659578233`, "@1659578233"},
		{"bare with every odd byte", structured, "!#$%&'()*+-./:<=>?@[]^_`{|}~", "!#$%&'()*+-./:<=>?@[]^_`{|}~"},
		{"longest, quoted", strict, `"` + longest + `"`, longest},
		{"longest, bare", structured, longest, longest},
		{"longest, all escaped", strict, `"` + strings.Repeat(`\"`, KeyBytesMax) + `"`, strings.Repeat(`"`, KeyBytesMax)},
		{"shortest by choice", KeyRule{BytesMin: 3}, `"abc"`, "abc"},
		{"opaque", opaque, `order 17, "retry"; \ é`, `order 17, "retry"; \ é`},
		{"opaque keeps quotes", opaque, `"abc"`, `"abc"`},
		{"opaque, longest", opaque, longest, longest},
		{"opaque, white space around", opaque, " abc\t", "abc"},
		{"opaque, not UTF-8", opaque, "\xff\x80", "\xff\x80"},
		{"opaque, shortest by choice", KeyRule{Syntax: SyntaxOpaque, BytesMin: 3}, `abc`, "abc"},
	}
	for _, test := range tests {
		t.Run(test.clause, func(t *testing.T) {
			got, err := ParseKey([]string{test.line}, test.rule)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestKeyRefused(t *testing.T) {
	tooLong := strings.Repeat("k", KeyBytesMax+1)
	tests := []struct {
		clause string
		rule   KeyRule
		lines  []string
		want   Reason
	}{
		{"two lines", structured, []string{`"a"`, `"b"`}, ReasonRepeated},
		{"two equal lines", structured, []string{`a`, `a`}, ReasonRepeated},
		{"two empty lines", structured, []string{``, ``}, ReasonRepeated},
		{"two lines, opaque", opaque, []string{`a`, `a`}, ReasonRepeated},
		{"RFC 9651 4.2 a string over two lines", strict, []string{`"a`, `b"`}, ReasonRepeated},
		{"joined by a gateway", structured, []string{`"a", "b"`}, ReasonSyntax},
		{"joined without space", structured, []string{`"a","b"`}, ReasonSyntax},
		{"joined bare keys", structured, []string{`a, a`}, ReasonSyntax},
		{"joined bare keys without space", structured, []string{`a,a`}, ReasonSyntax},
		{"lone comma", structured, []string{`,`}, ReasonSyntax},
		{"trailing comma", strict, []string{`"a",`}, ReasonSyntax},
		{"parameter", structured, []string{`"a";p=1`}, ReasonParameters},
		{"boolean parameter", strict, []string{`"a"; p`}, ReasonParameters},
		{"parameter of a bare key", structured, []string{`a;p=1`}, ReasonSyntax},
		{"trailing semicolon", strict, []string{`"a";`}, ReasonSyntax},
		{"empty string", structured, []string{`""`}, ReasonNoKey},
		{"empty string, strict", strict, []string{` "" `}, ReasonNoKey},
		{"256 quoted bytes", structured, []string{`"` + tooLong + `"`}, ReasonTooLong},
		{"256 bare bytes", structured, []string{tooLong}, ReasonTooLong},
		{"256 opaque bytes", opaque, []string{tooLong}, ReasonTooLong},
		{"far too long", strict, []string{`"` + strings.Repeat("k", 1<<20)}, ReasonTooLong},
		{"shorter than chosen", KeyRule{BytesMin: 4}, []string{`"abc"`}, ReasonTooShort},
		{"shorter than chosen, opaque", KeyRule{Syntax: SyntaxOpaque, BytesMin: 4}, []string{`abc`}, ReasonTooShort},
		{"unfinished string", structured, []string{`"abc`}, ReasonSyntax},
		{"quote at the end", structured, []string{`abc"`}, ReasonSyntax},
		{"quote inside", structured, []string{`"a"b"`}, ReasonSyntax},
		{"lone quote", structured, []string{`"`}, ReasonSyntax},
		{"backslash in a bare key", structured, []string{`a\b`}, ReasonSyntax},
		{"RFC 9651 4.2.5 unknown escape", structured, []string{`"a\b"`}, ReasonSyntax},
		{"space in a bare key", structured, []string{`a b`}, ReasonSyntax},
		{"RFC 9651 4.2.5 not ASCII", structured, []string{`"é"`}, ReasonSyntax},
		{"bare, not ASCII", structured, []string{`é`}, ReasonSyntax},
		{"control character in a string", strict, []string{"\"a\x00b\""}, ReasonSyntax},
		{"DEL in a string", strict, []string{"\"a\x7f\""}, ReasonSyntax},
		{"control character, bare", structured, []string{"a\x01"}, ReasonSyntax},
		{"line feed, opaque", opaque, []string{"a\nb"}, ReasonControl},
		{"tab inside, opaque", opaque, []string{"a\tb"}, ReasonControl},
		{"DEL, opaque", opaque, []string{"a\x7f"}, ReasonControl},
		{"strict: bare", strict, []string{`abc`}, ReasonSyntax},
		{"strict: Integer", strict, []string{`42`}, ReasonSyntax},
		{"strict: Decimal", strict, []string{`4.2`}, ReasonSyntax},
		{"strict: Boolean", strict, []string{`?1`}, ReasonSyntax},
		{"strict: Byte Sequence", strict, []string{`:aGk=:`}, ReasonSyntax},
		{"strict: Date", strict, []string{`@1659578233`}, ReasonSyntax},
		{"Display String", structured, []string{`%"abc"`}, ReasonSyntax},
		{"Inner List", strict, []string{`("a")`}, ReasonSyntax},
		{"Inner List, lenient", structured, []string{`("a" "b")`}, ReasonSyntax},
	}
	for _, test := range tests {
		t.Run(test.clause, func(t *testing.T) {
			key, err := ParseKey(test.lines, test.rule)
			var invalid *InvalidError
			if !errors.As(err, &invalid) || key != "" {
				t.Fatalf("got %q, %v, want an *InvalidError", key, err)
			}
			if invalid.Reason != test.want || invalid.Name != "Idempotency-Key" {
				t.Errorf("got %+v, want %q", *invalid, test.want)
			}
		})
	}
}

func TestMissingAndEmptyKey(t *testing.T) {
	for _, rule := range []KeyRule{structured, strict, opaque} {
		if _, err := ParseKey(http.Header{}.Values(NameKey), rule); !errors.Is(err, ErrMissing) {
			t.Errorf("%q: no line: %v", rule.Syntax, err)
		}
		for _, blank := range []string{"", " ", " \t "} {
			if _, err := ParseKey([]string{blank}, rule); !errors.Is(err, ErrEmpty) {
				t.Errorf("%q: line %q: %v", rule.Syntax, blank, err)
			}
		}
	}
}

func TestNamesAreCanonical(t *testing.T) {
	for _, name := range []string{NameKey, NameFirstSent, NameReplayed, NameStatus, NameExpires, NamePrefer, NameRetryAfter} {
		if canonical := http.CanonicalHeaderKey(name); canonical != name {
			t.Errorf("%s is %s in net/http", name, canonical)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `"abc"`, `abc`, `"a","b"`, `"a\"b\\"`, `"a";p=1`, `""`, `42`, `?1`, `:aGk=:`, `@1`, `%"a"`, `("a")`, "\"\x00\"", "\xff",
		strings.Repeat("k", 256), `"` + strings.Repeat(`\"`, 255) + `"`, `a;`, `"a" ;p`,
	} {
		f.Add(seed, 0)
	}
	f.Fuzz(func(t *testing.T, line string, bytesMin int) {
		for _, syntax := range []Syntax{SyntaxStructured, SyntaxStrict, SyntaxOpaque} {
			key, err := ParseKey([]string{line}, KeyRule{Syntax: syntax, BytesMin: bytesMin})
			if err != nil {
				var invalid *InvalidError
				if key != "" || !errors.Is(err, ErrEmpty) && !errors.As(err, &invalid) {
					t.Fatalf("%s: %q, %v", syntax, key, err)
				}
				continue
			}
			if len(key) < max(bytesMin, 1) || len(key) > KeyBytesMax {
				t.Fatalf("%s: a key of %d bytes", syntax, len(key))
			}
			if syntax == SyntaxOpaque {
				continue
			}
			quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
			for _, again := range []Syntax{SyntaxStructured, SyntaxStrict} {
				same, err := ParseKey([]string{quoted}, KeyRule{Syntax: again})
				if err != nil || same != key {
					t.Fatalf("%q is the key %q, but quoted %q (%v)", line, key, same, err)
				}
			}
		}
	})
}

// The message of a refusal is fixed text, whatever was sent.
func TestErrorsNeverHoldTheKey(t *testing.T) {
	lines := []string{`"secret4711`, `secret4711,x`, `"secret4711";p`, strings.Repeat("secret4711", 100), "secret4711\x00"}
	for _, line := range lines {
		for _, rule := range []KeyRule{structured, strict, {Syntax: SyntaxOpaque, BytesMin: 200}} {
			_, err := ParseKey([]string{line}, rule)
			if err == nil || strings.Contains(err.Error(), "4711") {
				t.Errorf("%q under %q: %v", line, rule.Syntax, err)
			}
		}
	}
}
