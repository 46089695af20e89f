package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
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
		picked := fields.apply(got)
		again, err = canonicalJSON(picked, DepthMaxDefault)
		if err != nil || !bytes.Equal(again, picked) {
			t.Fatalf("the fields of %q are %q, in canonical form %q (%v)", got, picked, again, err)
		}
	})
}

func FuzzFingerprint(f *testing.F) {
	f.Add("payments.create", "id", "1", "q", "v", "application/json", []byte(`{"a":1}`))
	f.Add("", "", "", "", "", "", []byte(nil))
	f.Add("op", "a\x00b", "", "x", "y,z", "text/plain; charset=utf-8", []byte("\x00\xff"))
	f.Add("op", "a", "b", "c", "d", "application/problem+json;;", []byte(`{`))
	fingerprinter := newFingerprinter(f, Config{})
	f.Fuzz(func(t *testing.T, operation, path, pathValue, query, queryValue, mediaType string, body []byte) {
		in := Input{
			Operation: operation, Path: map[string]string{path: pathValue}, Query: map[string][]string{query: {queryValue}},
			MediaType: mediaType, Body: body,
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
			{Operation: operation + path, Path: map[string]string{"": pathValue}, Query: in.Query, MediaType: mediaType, Body: body},
			{Operation: operation, Path: map[string]string{path + pathValue: ""}, Query: in.Query, MediaType: mediaType, Body: body},
			{Operation: operation, Path: in.Path, Query: map[string][]string{query: {queryValue, ""}}, MediaType: mediaType, Body: body},
			{Operation: operation, Path: in.Path, Query: map[string][]string{query + queryValue: {""}}, MediaType: mediaType, Body: body},
		} {
			if same := other.Operation == operation && other.Path[path] == pathValue && len(other.Path) == len(in.Path) &&
				len(other.Query[query]) == 1 && other.Query[query][0] == queryValue; same {
				continue
			}
			if sum(t, fingerprinter, other).Equal(got) {
				t.Fatalf("%+v and %+v have one fingerprint", in, other)
			}
		}
	})
}
