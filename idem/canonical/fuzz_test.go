package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func FuzzBody(f *testing.F) {
	files, err := filepath.Glob("testdata/rfc8785/*/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		f.Add([]byte(readFile(f, file)))
	}
	for _, seed := range []string{
		``, ` `, `null`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `[1e400,-0,1E+5,9007199254740993.0]`, `"\ud800"`, "\"\xff\"", `"\\\"`,
		strings.Repeat("[", 100), `{"a":{"b":[1.50,"\\"]}}`, `-`, `1e`, `[1-2]`, `1.2.3`, `"`, `0.00000000000000000001e21`, "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(seed))
	}
	fields, err := NewFields([]string{"/a", "/1", "/b/c"}, []string{"/a/b", "/1/f"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		got, err := canonicalJSON(body, DepthMaxDefault)
		if !bytes.Equal(body, before) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			var refused *SyntaxError
			if !errors.As(err, &refused) || refused.Reason == "" || refused.Offset < 0 || refused.Offset > len(body) {
				t.Fatalf("%q: %#v", body, err)
			}
			return
		}
		if !json.Valid(body) || !json.Valid(got) {
			t.Fatalf("%q was accepted as %q", body, got)
		}
		again, err := canonicalJSON(got, DepthMaxDefault)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q became %q, then %q (%v)", body, got, again, err)
		}
		if before, after := parsed(t, body), parsed(t, got); !reflect.DeepEqual(before, after) {
			t.Fatalf("%q is another value than %q", body, got)
		}
		picked := fields.apply(got)
		again, err = canonicalJSON(picked, DepthMaxDefault)
		if err != nil || !bytes.Equal(again, picked) {
			t.Fatalf("the fields of %q are %q, in canonical form %q (%v)", got, picked, again, err)
		}
	})
}

// parsed is the value that another parser reads.
func parsed(t *testing.T, body []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	return value
}

// FuzzFields exchanges one value of a body, which a JSON pointer names: a fingerprint that excludes the pointer never sees
// it, and one that includes nothing else sees it exactly if the value became another one.
func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"at":1,"amount":2}`), uint8(0), []byte(`"later"`))
	f.Add([]byte(`{"a/b":{"m~n":[1,{"":[]}]},"":{"0":0}}`), uint8(3), []byte(`{"x":1.50}`))
	f.Add([]byte(`[[1,2],[3,[9007199254740993]],{"\u0061\"":"\ud83d\ude00"}]`), uint8(6), []byte(`9007199254740992`))
	f.Add([]byte(`{"b":{"z":{},"y":[{},[]]},"a":null}`), uint8(4), []byte(`{"a":[{"b":1e5}]}`))
	fingerprinter := newFingerprinter(f, Config{})
	f.Fuzz(func(t *testing.T, body []byte, chosen uint8, replacement []byte) {
		before, err := canonicalJSON(body, DepthMaxDefault/2)
		if err != nil {
			return
		}
		exchanged, err := canonicalJSON(replacement, DepthMaxDefault/2)
		if err != nil {
			return
		}
		values := valuesOf(t, before)
		if len(values) == 0 {
			return
		}
		value := values[int(chosen)%len(values)]
		after := slices.Concat(before[:value.start], exchanged, before[value.end:])
		sumOf := func(body []byte, include, exclude []string) Fingerprint {
			fields, err := NewFields(include, exclude)
			if err != nil {
				t.Fatalf("%q: %v", value.pointer, err)
			}
			in := jsonInput(string(body))
			in.Selection.Fields = fields
			return sum(t, fingerprinter, in)
		}
		pointer := []string{value.pointer}
		if !sumOf(before, nil, pointer).Equal(sumOf(after, nil, pointer)) {
			t.Errorf("%q and %q differ without %q", before, after, value.pointer)
		}
		same := bytes.Equal(before[value.start:value.end], exchanged)
		if sumOf(before, pointer, nil).Equal(sumOf(after, pointer, nil)) != same {
			t.Errorf("%q and %q: equal is not %v in %q alone", before, after, same, value.pointer)
		}
		if sumOf(before, nil, nil).Equal(sumOf(after, nil, nil)) != same {
			t.Errorf("%q and %q: equal is not %v", before, after, same)
		}
	})
}

// pointed is a value below the root of a body.
type pointed struct {
	pointer    string
	start, end int
}

// valuesOf lists the values below the root of a canonical body.
func valuesOf(t *testing.T, body []byte) (values []pointed) {
	t.Helper()
	decoder := jsontext.NewDecoder(bytes.NewReader(body))
	read := func() {
		if _, err := decoder.ReadToken(); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
	}
	var walk func()
	walk = func() {
		kind := decoder.PeekKind()
		start := int(decoder.InputOffset())
		if body[start] == ',' || body[start] == ':' {
			start++
		}
		read()
		if kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray {
			for more(decoder) {
				if kind == jsontext.KindBeginObject {
					read()
				}
				walk()
			}
			read()
		}
		if pointer := string(decoder.StackPointer()); pointer != "" {
			values = append(values, pointed{pointer, start, int(decoder.InputOffset())})
		}
	}
	walk()
	return values
}

// more says whether the array or object that the decoder is in has another element.
func more(decoder *jsontext.Decoder) bool {
	kind := decoder.PeekKind()
	return kind != jsontext.KindEndObject && kind != jsontext.KindEndArray && kind != jsontext.KindInvalid
}

func FuzzFingerprint(f *testing.F) {
	f.Add("payments.create", "id", "1", "q", "v", "application/json", []byte(`{"a":1}`))
	f.Add("", "", "", "", "", "", []byte(nil))
	f.Add("op", "a\x00b", "", "x", "y,z", "text/plain; charset=utf-8", []byte("\x00\xff"))
	f.Add("op", "a", "b", "c", "d", "application/problem+json;;", []byte(`{`))
	fingerprinter := newFingerprinter(f, Config{})
	f.Fuzz(func(t *testing.T, operation, path, pathValue, query, queryValue, mediaType string, body []byte) {
		in := Input{
			Operation: operation, Parameters: map[string]string{path: pathValue}, Query: map[string][]string{query: {queryValue}},
			MediaType: mediaType, Body: body, Selection: Selection{Path: PathParameters},
		}
		got, err := fingerprinter.Sum(in)
		if err != nil {
			var refused *SyntaxError
			if !errors.As(err, &refused) && !errors.Is(err, ErrTooLarge) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		if again := sum(t, fingerprinter, in); !again.Equal(got) {
			t.Fatal("the same input has two fingerprints")
		}
		// Whatever moves over a border between two fields makes another request.
		for _, other := range []Input{
			{Operation: operation + path, Parameters: map[string]string{"": pathValue}, Selection: in.Selection, Query: in.Query, MediaType: mediaType, Body: body},
			{Operation: operation, Parameters: map[string]string{path + pathValue: ""}, Selection: in.Selection, Query: in.Query, MediaType: mediaType, Body: body},
			{Operation: operation, Parameters: in.Parameters, Selection: in.Selection, Query: map[string][]string{query: {queryValue, ""}}, MediaType: mediaType, Body: body},
			{Operation: operation, Parameters: in.Parameters, Selection: in.Selection, Query: map[string][]string{query + queryValue: {""}}, MediaType: mediaType, Body: body},
		} {
			if same := other.Operation == operation && other.Parameters[path] == pathValue && len(other.Parameters) == len(in.Parameters) &&
				len(other.Query[query]) == 1 && other.Query[query][0] == queryValue; same {
				continue
			}
			if sum(t, fingerprinter, other).Equal(got) {
				t.Fatalf("%+v and %+v have one fingerprint", in, other)
			}
		}
	})
}
