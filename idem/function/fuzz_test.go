package function

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idem-go/idem-aws/idem/canonical"
)

// FuzzKeyByPointer: an input has a key exactly where the pointers name scalars in it, and the key is the fingerprint of
// what stands there, as another reader finds it: digit by digit, byte by byte, without a value in common with any other.
func FuzzKeyByPointer(f *testing.F) {
	f.Add([]byte(`{"a":"x\",\"y","b":1.50}`), "/a", "/b")
	f.Add([]byte(`{"":9007199254740993,"a/b":{"m~n":[true,5e-324,-0.0]}}`), "/", "/a~1b/m~0n/1")
	f.Add([]byte(` "\u00e9\ud83d\ude00" `), "", "")
	f.Add([]byte(`{"a":null,"b":[],"c":{},"d":"","e":1e400}`), "/a", "/d")
	f.Add([]byte(`[[0],{"0":"00"}]`), "/01", "/1/0")
	f.Add([]byte(`{"a":1,"a":2}`), "/a", "a")
	f.Fuzz(func(t *testing.T, input []byte, first, second string) {
		pointers := []string{first, second}
		key := JSONPointer(pointers...)
		if valid := jsontext.Pointer(first).IsValid() && jsontext.Pointer(second).IsValid(); valid != (key.err == nil) {
			t.Fatalf("%q: %v", pointers, key.err)
		}
		if key.err != nil {
			return
		}
		before := bytes.Clone(input)
		got, err := key.of(context.Background(), input)
		if !bytes.Equal(before, input) {
			t.Fatal("the input was changed")
		}
		var refused *KeyError
		if err != nil && (!errors.As(err, &refused) || refused.Reason == "" || got != "") {
			t.Fatalf("%q and %v", got, err)
		}
		if _, err := fingerprintOf(input); err != nil {
			return // an input that is refused whatever its key is
		}
		parts := [][]byte{scalarAt(t, input, first), scalarAt(t, input, second)}
		if parts[0] == nil || parts[1] == nil {
			if refused == nil {
				t.Fatalf("%s has the key %q by %q, but there is no value", input, got, pointers)
			}
			return
		}
		array := append(append(append(append([]byte("["), parts[0]...), ','), parts[1]...), ']')
		want, err := fingerprintOf(array)
		if err != nil {
			t.Fatal(err)
		}
		if refused != nil || got != want {
			t.Fatalf("%s has the key %q (%v) by %q, want that of %s, %q", input, got, refused, pointers, array, want)
		}
	})
}

func fingerprintOf(body []byte) (string, error) {
	hash, err := canonical.New(canonical.Config{})
	if err != nil {
		return "", err
	}
	sum, err := hash.SumAs(canonical.Fingerprint{Version: 1}, canonical.Input{MediaType: "application/json", Body: body})
	return base64.RawURLEncoding.EncodeToString(sum.Sum[:]), err
}

// scalarAt returns the value at the pointer as it was sent; nil where there is none that can be a part of a key.
func scalarAt(t *testing.T, input []byte, pointer string) []byte {
	t.Helper()
	decoder := jsontext.NewDecoder(bytes.NewReader(input))
	for {
		token, err := decoder.ReadToken()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			t.Fatalf("%s: %v", input, err)
		}
		if isName(decoder, token) || string(decoder.StackPointer()) != pointer {
			continue
		}
		switch token.Kind() {
		case jsontext.KindString:
			if token.String() == "" {
				return nil
			}
			raw, err := json.Marshal(token.String())
			if err != nil {
				t.Fatal(err)
			}
			return raw
		case jsontext.KindNumber, jsontext.KindTrue, jsontext.KindFalse:
			return []byte(token.String())
		}
		return nil
	}
}

// isName says whether the token that was just read is a member's name: in an object every other one is.
func isName(decoder *jsontext.Decoder, token jsontext.Token) bool {
	kind, tokens := decoder.StackIndex(decoder.StackDepth())
	return kind == jsontext.KindBeginObject && tokens%2 == 1 && token.Kind() == jsontext.KindString
}
