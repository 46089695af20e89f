package canonical

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// canonicalize is canonicalJSON under the default bounds.
func canonicalize(t *testing.T, body string) string {
	t.Helper()
	got, err := canonicalJSON([]byte(body), DepthMaxDefault)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return string(got)
}

func TestOfficialVectorsRFC8785(t *testing.T) {
	for _, name := range []string{"arrays", "french", "structures", "unicode", "values", "weird"} {
		t.Run(name, func(t *testing.T) {
			input := readFile(t, "testdata/rfc8785/input", name+".json")
			want := readFile(t, "testdata/rfc8785/output", name+".json")
			if got := canonicalize(t, input); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if again := canonicalize(t, want); again != want {
				t.Errorf("the canonical form changed once more: %s", again)
			}
		})
	}
}

func readFile(t testing.TB, elements ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestCanonicalForm(t *testing.T) {
	tests := []struct{ clause, body, want string }{
		{"RFC 8785 3.2.1 whitespace", " {\t\"a\" :\r\n[ 1 , 2 ] } ", `{"a":[1,2]}`},
		{"RFC 8785 3.2.2 example", `{
			"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
			"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
			"literals": [null, true, false]
		}`, `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		{"RFC 8785 3.2.2.1 literals", `[null,true,false]`, `[null,true,false]`},
		{"RFC 8785 3.2.2.2 strings", `"\u0008\u0009\u000a\u000c\u000d\u0001\u007f\u2028\/"`, "\"\\b\\t\\n\\f\\r\\u0001\x7f\u2028/\""},
		{"RFC 8785 3.2.3 UTF-16 order", `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",` +
			`"1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis",` +
				`"€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`},
		{"RFC 8785 3.2.3 nested", `{"b":{"z":1,"y":[{"d":1,"c":2}]},"a":0}`, `{"a":0,"b":{"y":[{"c":2,"d":1}],"z":1}}`},
		{"numbers in names and strings stay", `{"1.0":"1.0","\"1.0":"\\\"2.0"}`, `{"\"1.0":"\\\"2.0","1.0":"1.0"}`},
		{"top-level number", ` 1.0 `, `1`},
	}
	for _, test := range tests {
		t.Run(test.clause, func(t *testing.T) {
			if got := canonicalize(t, test.body); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	tests := []struct {
		clause, body string
		reason       Reason
		offset       int
	}{
		{"blank", "  ", ReasonSyntax, 2},
		{"cut off", `{"a":`, ReasonSyntax, 5},
		{"trailing data", `{} {}`, ReasonSyntax, 3},
		{"trailing comma", `[1,]`, ReasonSyntax, 3},
		{"byte order mark", "\xef\xbb\xbf{}", ReasonSyntax, 0},
		{"leading zero", `[01.0]`, ReasonSyntax, 2},
		{"NaN", `[NaN]`, ReasonSyntax, 1},
		{"control character in a string", "\"\x01\"", ReasonSyntax, 1},
		{"RFC 8785 3.1 duplicate name", `{"a":1,"b":2,"a":1}`, ReasonDuplicateName, 13},
		{"duplicate name, escaped", `{"a":1,"\u0061":1}`, ReasonDuplicateName, 7},
		{"duplicate name, nested", `[{"x":{"a":1,"a":2}}]`, ReasonDuplicateName, 13},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", ReasonInvalidUTF8, 6},
		{"overlong UTF-8", "\"\xc0\xaf\"", ReasonInvalidUTF8, 1},
		{"UTF-8 encoded surrogate", "\"\xed\xa0\x80\"", ReasonInvalidUTF8, 1},
		{"RFC 8785 3.2.2.2 lone surrogate", `{"a":"\ud800"}`, ReasonSurrogate, 6},
		{"lone low surrogate", `"\udc00"`, ReasonSurrogate, 1},
		{"lone surrogate in a name", `{"\udead":1}`, ReasonSurrogate, 2},
		{"overflow", `{"a": 1e400}`, ReasonNumberRange, 6},
		{"negative overflow", `[1,-1e309]`, ReasonNumberRange, 3},
		{"just overflow", `1.7976931348623159e308`, ReasonNumberRange, 0},
		{"overflow without exponent", `1` + strings.Repeat("0", 309), ReasonNumberRange, 0},
		{"overflow beyond any exponent", `1e99999999999999999999`, ReasonNumberRange, 0},
		{"too deep", strings.Repeat("[", 65) + strings.Repeat("]", 65), ReasonDepth, 64},
		{"too deep, objects", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), ReasonDepth, 320},
		{"far too deep", strings.Repeat("[", 100_000), ReasonDepth, 64},
	}
	for _, test := range tests {
		t.Run(test.clause, func(t *testing.T) {
			_, err := canonicalJSON([]byte(test.body), DepthMaxDefault)
			var refused *SyntaxError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want a *SyntaxError", err)
			}
			if refused.Reason != test.reason || refused.Offset != test.offset {
				t.Errorf("got %+v, want %q at %d", *refused, test.reason, test.offset)
			}
		})
	}
}

func TestDepthBound(t *testing.T) {
	deepest := strings.Repeat(`[{"a":`, 32) + "1.0" + strings.Repeat("}]", 32)
	if got, want := canonicalize(t, deepest), strings.Replace(deepest, "1.0", "1", 1); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	wide := "[" + strings.Repeat("[],", 1000) + "[]]"
	if got := canonicalize(t, wide); got != wide {
		t.Errorf("siblings count as depth: %s", got)
	}
}

func TestRefusalNeverQuotesTheBody(t *testing.T) {
	for _, body := range []string{`{"secret4711":1,"secret4711":2}`, `{"secret4711":\x}`, `{"secret4711":1e999}`} {
		_, err := canonicalJSON([]byte(body), DepthMaxDefault)
		if err == nil || strings.Contains(err.Error(), "4711") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestBodyIsNeverChanged(t *testing.T) {
	body := []byte(`{ "b" : 1.0, "a" : "\u0061" }`)
	before := bytes.Clone(body)
	got, err := canonicalJSON(body, DepthMaxDefault)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(body, before) {
		t.Errorf("body became %s", body)
	}
	clear(got)
	if !bytes.Equal(body, before) {
		t.Error("the result shares memory with the body")
	}
}
