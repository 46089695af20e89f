package canonical

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// otherForm is the canonical form that another parser makes, one that Go's own encoding/json/jsontext came from. Only the
// numbers are this package's. It returns false for what that parser refuses.
func otherForm(body []byte) ([]byte, bool) {
	formatted, err := jsontext.AppendFormat(nil, body, jsontext.ReorderRawObjects(true))
	if err != nil {
		return nil, false
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(formatted))
	var form []byte
	for copied := 0; ; {
		token, err := decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return append(form, formatted[copied:]...), true
		}
		if err != nil || decoder.StackDepth() > DepthMaxDefault {
			return nil, false
		}
		if token.Kind() == jsontext.KindNumber {
			end, literal, ok := int(decoder.InputOffset()), []byte(token.String()), false
			form = append(form, formatted[copied:end-len(literal)]...)
			if form, ok = appendCanonicalNumber(form, literal); !ok {
				return nil, false
			}
			copied = end
		}
	}
}

type failer interface {
	Helper()
	Fatalf(format string, arguments ...any)
}

func agree(t failer, body []byte) {
	t.Helper()
	want, ok := otherForm(body)
	got, err := canonicalJSON(body, DepthMaxDefault)
	if ok != (err == nil) || !bytes.Equal(got, want) {
		t.Fatalf("%q became %q (%v), by another parser %q (%v)", body, got, err, want, ok)
	}
}

// A fingerprint never depends on the parser: two of them accept the same bodies and make the same form of each.
func TestAnotherParserMakesTheSameForm(t *testing.T) {
	files, err := filepath.Glob("testdata/rfc8785/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no bodies: %v", err)
	}
	for _, file := range files {
		body := readFile(t, file)
		for end := range len(body) + 1 { // cut off everywhere
			agree(t, []byte(body[:end]))
		}
	}
	t.Run("drawn values", rapid.MakeCheck(func(t *rapid.T) {
		agree(t, []byte(spell(t, drawValue(t, treeDepth))))
	}))
	t.Run("one byte is another", rapid.MakeCheck(func(t *rapid.T) {
		body := []byte(spell(t, drawValue(t, treeDepth)))
		body[rapid.IntRange(0, len(body)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		agree(t, body)
	}))
	t.Run("pieces in any order", rapid.MakeCheck(func(t *rapid.T) {
		pieces := []string{
			"{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"a\":", "\"\\u0061\":", " ", "\n", "0", "-", "1.0", "e", "+", "01", "1e5", "null", "true", "tru",
			"\\", "\\u", "d83d", "\\ud83d", "\\ude00", "\\\"", "\x00", "\x7f", "\xff", "\xc3", "\xed\xa0\x80", "é", "😀", "\ufb33", "\ufffd", "\u2028", "\\b", "\\x",
		}
		agree(t, []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")))
	}))
}

// FuzzParser holds this package's parser against another one.
func FuzzParser(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1.50,-0,1E400],"a":"\u0061\ud83d\ude00"}`, `{"":{},"\u0000":[[]],"\"":"\\\/"}`, `{"a":1,"\u0061":2}`, `{"\ufb33":0,"\ud83d\ude00":1,"é":2}`,
		` [ true , false , null ] `, `"\ud800"`, "\"\xff\"", `[01]`, `-`, `1.`, `1e`, `{"a"}`, `{"a":1,}`, `[`, `{}{}`,
		strings.Repeat("[", 65) + strings.Repeat("]", 65),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { agree(t, body) })
}

// FuzzPointer holds this package's reading of JSON pointers against another one.
func FuzzPointer(f *testing.F) {
	for _, seed := range []string{"", "/", "//", "a", "/a~1b/~0~1~01", "/~", "/~2", "/a~/1", "/\xff", "/\ufffd", "/é/0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pointer string) {
		other := jsontext.Pointer(pointer)
		tokens, ok := PointerTokens(pointer)
		if ok != other.IsValid() {
			t.Fatalf("%q: valid is %v", pointer, ok)
		}
		if !ok {
			return
		}
		for want := range other.Tokens() {
			if len(tokens) == 0 || tokens[0] != want {
				t.Fatalf("%q: %q, want %q", pointer, tokens, want)
			}
			tokens = tokens[1:]
		}
		if len(tokens) > 0 {
			t.Fatalf("%q: %q more", pointer, tokens)
		}
	})
}
