package canonical

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

func newFingerprinter(t testing.TB, cfg Config) *Fingerprinter {
	t.Helper()
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func sum(t testing.TB, f *Fingerprinter, in Input) Fingerprint {
	t.Helper()
	got, err := f.Sum(in)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func jsonInput(body string) Input {
	return Input{Operation: "payments.create", MediaType: "application/json", Body: []byte(body)}
}

func TestSameRequest(t *testing.T) {
	withType := func(mediaType, body string) Input {
		in := jsonInput(body)
		in.MediaType = mediaType
		return in
	}
	tests := []struct {
		clause string
		a, b   Input
	}{
		{"order of members", jsonInput(`{"a":1,"b":{"c":2,"d":3}}`), jsonInput(`{"b":{"d":3,"c":2},"a":1}`)},
		{"white space", jsonInput(`{"a":[1,2]}`), jsonInput("{ \"a\" :\n [ 1 , 2 ]\r\n}\n")},
		{"escapes", jsonInput(`{"a":"é/"}`), jsonInput(`{"\u0061":"\u00e9\/"}`)},
		{"spelling of a number", jsonInput(`{"a":1}`), jsonInput(`{"a":1.0}`)},
		{"case of the media type", jsonInput(`1`), withType("Application/JSON", `1`)},
		{"charset of JSON", jsonInput(`1`), withType("application/json; charset=UTF-8", `1`)},
		{"charset of +json", withType("application/merge-patch+json", `1`), withType(" application/merge-patch+json;charset=utf-8 ", `1`)},
		{"order of parameters", withType("text/plain; b=2; a=1", `1`), withType("text/plain;A=1;B=\"2\"", `1`)},
		{"case of a charset", withType("text/plain; charset=utf-8", `1`), withType("text/plain; charset=UTF-8", `1`)},
		{"absent and empty collections", jsonInput(`1`), Input{Operation: "payments.create", MediaType: "application/json",
			Query: map[string][]string{}, Body: []byte(`1`)}},
		{"nil and empty body", Input{Body: nil}, Input{Body: []byte{}}},
	}
	f := newFingerprinter(t, Config{})
	for _, test := range tests {
		t.Run(test.clause, func(t *testing.T) {
			if !sum(t, f, test.a).Equal(sum(t, f, test.b)) {
				t.Error("the fingerprints differ")
			}
		})
	}
}

// All of a sum counts, and so does what it was made with.
func TestFingerprintsThatDifferAnywhereAreNotEqual(t *testing.T) {
	of := newFingerprinter(t, Config{}).Sum
	one, err := of(Input{Operation: "op"})
	if err != nil || !one.Equal(one) {
		t.Fatalf("%v, %v", one, err)
	}
	others := []Fingerprint{one, one, one}
	others[0].Version++
	others[1].KeyID = "k2"
	others[2].Selection = "path"
	for i := range one.Sum {
		other := one
		other.Sum[i] ^= 1
		others = append(others, other)
	}
	for i, other := range others {
		if one.Equal(other) || other.Equal(one) {
			t.Errorf("%d: %+v is equal", i, other)
		}
	}
}

// Every input here is another request than every other one. Among them are what collides elsewhere: {"a":1} and
// {"a":"1"}, composed keys with delimiters inside, integers above 2^53, requests that differ in path or query only.
func TestDifferentRequests(t *testing.T) {
	body := func(mediaType, body string) Input {
		return Input{Operation: "op", MediaType: mediaType, Body: []byte(body)}
	}
	inputs := []Input{
		{}, {Operation: "op"}, {Operation: "opa"}, {Operation: "o", MediaType: "p"},
		{Operation: "op", MediaType: "application/json"}, {Operation: "op", MediaType: "text/plain"},
		body("application/json", `null`), body("application/json", `""`), body("application/json", `{}`), body("application/json", `[]`),
		body("application/json", `{"a":1}`), body("application/json", `{"a":"1"}`), body("application/json", `{"a":[1]}`),
		body("application/json", `{"a":null}`), body("application/json", `{"a":0}`), body("application/json", `{"a":false}`),
		body("application/json", `{"a":9007199254740992}`), body("application/json", `{"a":9007199254740993}`),
		body("application/json", `{"a":"\u0041\u030a"}`), body("application/json", `{"a":"\u00c5"}`),
		body("application/json", `[1,2]`), body("application/json", `[2,1]`),
		body("application/problem+json", `{}`), body("application/json; profile=v2", `{}`),
		body("", `{}`), body("", `{} `), body("text/plain", `{}`), body("text/plain; charset=utf-16", `{}`), body("json", `{}`),
		body("not a type;", `{}`), body("application/octet-stream", "\x00\xff"), body("application/octet-stream", "\x00\xff\x00"),
		{Operation: "op", Parameters: map[string]string{"id": ""}, Selection: Selection{Path: PathParameters}}, {Operation: "op", Parameters: map[string]string{"id": "1"}, Selection: Selection{Path: PathParameters}},
		{Operation: "op", Parameters: map[string]string{"id": "1", "x": "2"}, Selection: Selection{Path: PathParameters}}, {Operation: "op", Parameters: map[string]string{"id": "1x2"}, Selection: Selection{Path: PathParameters}},
		{Operation: "op", Parameters: map[string]string{"id": "2", "x": "1"}, Selection: Selection{Path: PathParameters}}, {Operation: "op", Parameters: map[string]string{"id": "1\x00x\x002"}, Selection: Selection{Path: PathParameters}},
		{Operation: "op", Path: "/1"}, {Operation: "op", Path: "/2"}, {Operation: "op", Path: "/1/"}, {Operation: "op", Path: "/%31"},
		{Operation: "op", Path: "/1", Method: "POST"}, {Operation: "op", Path: "/1", Method: "PATCH"},
		{Operation: "op", Wildcards: []string{"1"}, Selection: Selection{Path: PathWildcards}},
		{Operation: "op", Wildcards: []string{"1", "2"}, Selection: Selection{Path: PathWildcards}},
		{Operation: "op", Wildcards: []string{"2", "1"}, Selection: Selection{Path: PathWildcards}},
		{Operation: "op", Query: map[string][]string{"id": {"1"}}}, {Operation: "op", Query: map[string][]string{"id": {""}}},
		{Operation: "op", Query: map[string][]string{"id": {"1", "2"}}}, {Operation: "op", Query: map[string][]string{"id": {"2", "1"}}},
		{Operation: "op", Query: map[string][]string{"id": {"1,2"}}}, {Operation: "op", Query: map[string][]string{"id": {"12"}}},
		{Operation: "op", Query: map[string][]string{"id": {"1"}, "2": {}}}, {Operation: "op", Query: map[string][]string{"id": {}}},
	}
	f := newFingerprinter(t, Config{})
	seen := map[Fingerprint]int{}
	for i, in := range inputs {
		got := sum(t, f, in)
		if other, ok := seen[got]; ok {
			t.Errorf("%+v and %+v have one fingerprint", in, inputs[other])
		}
		seen[got] = i
	}
}

// Moving bytes over the border between two fields always changes the encoding: each has its length before it.
func TestDelimiterInjection(t *testing.T) {
	f := newFingerprinter(t, Config{})
	joined := "op\x00\x00\x00\x00\x00\x00\x00\x01id1text/plainbody"
	seen := map[Fingerprint]int{}
	for cut := range len(joined) + 1 {
		in := Input{Operation: joined[:cut], MediaType: "", Body: []byte(joined[cut:])}
		got := sum(t, f, in)
		if other, ok := seen[got]; ok {
			t.Errorf("cut at %d and at %d have one fingerprint", cut, other)
		}
		seen[got] = cut
	}
}

// The bytes of version 1 never change: live records hold them. A change here needs a new version.
func TestVersion1IsFrozen(t *testing.T) {
	fields, err := NewFields(nil, []string{"/sent_at"})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{
		Operation:  "payments.refund",
		Parameters: map[string]string{"tenant": "t", "id": "pay_1"},
		Query:      map[string][]string{"expand": {"b", "a"}, "dry": {""}},
		MediaType:  "application/json; charset=utf-8",
		Body:       []byte(`{"sent_at":"now","reason":"\u20ac","amount":9007199254740993,"rate":1.50}`),
		Selection:  Selection{Path: PathParameters, Fields: fields},
	}
	secret := Secret{ID: "2026-11", Key: bytes.Repeat([]byte{7}, 32)}
	f := newFingerprinter(t, Config{Secrets: []Secret{secret}})
	for keyID, want := range map[string]string{
		"":        "6d29333d8f3079913c013120cc7201753ae2f0ba151c99ebc7c064a71bb448ec",
		"2026-11": "8b27889f8ee5a789a47780b431510997c17dd939ad3dbd401fdcfed49b43a742",
	} {
		got, err := f.SumAs(Fingerprint{Version: 1, KeyID: keyID, Selection: in.Selection.String()}, in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Version != 1 || got.KeyID != keyID || hex.EncodeToString(got.Sum[:]) != want {
			t.Errorf("key %q: got version %d, key %q, %x; want %s", keyID, got.Version, got.KeyID, got.Sum, want)
		}
	}
}

func TestSecretRotation(t *testing.T) {
	older := Secret{ID: "older", Key: bytes.Repeat([]byte{1}, 32)}
	newer := Secret{ID: "newer", Key: bytes.Repeat([]byte{2}, 40)}
	in := jsonInput(`{"amount":1}`)
	plain := sum(t, newFingerprinter(t, Config{}), in)
	before := sum(t, newFingerprinter(t, Config{Secrets: []Secret{older}}), in)
	rotated := newFingerprinter(t, Config{Secrets: []Secret{newer, older}})
	after := sum(t, rotated, in)

	if before.KeyID != "older" || after.KeyID != "newer" || before.Sum == after.Sum || plain.Sum == after.Sum {
		t.Fatalf("plain %+v, before %+v, after %+v", plain, before, after)
	}
	for _, stored := range []Fingerprint{plain, before, after} {
		again, err := rotated.SumAs(stored, in)
		if err != nil || !again.Equal(stored) {
			t.Errorf("key %q: got %+v, %v", stored.KeyID, again, err)
		}
	}
	if _, err := rotated.SumAs(Fingerprint{Version: Version, KeyID: "gone"}, in); !errors.Is(err, ErrUnknownSecret) {
		t.Errorf("unknown secret: %v", err)
	}
	for _, version := range []int{0, -1, Version + 1} {
		if _, err := rotated.SumAs(Fingerprint{Version: version}, in); !errors.Is(err, ErrUnknownVersion) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

func TestEqualComparesVersionKeySelectionAndSum(t *testing.T) {
	a := Fingerprint{Version: 1, KeyID: "k", Sum: [32]byte{1}}
	for _, b := range []Fingerprint{
		{Version: 2, KeyID: "k", Sum: [32]byte{1}},
		{Version: 1, KeyID: "", Sum: [32]byte{1}},
		{Version: 1, KeyID: "k", Sum: [32]byte{1, 1}},
		{Version: 1, KeyID: "k", Selection: "path=wildcards", Sum: [32]byte{1}},
		{},
	} {
		if a.Equal(b) || b.Equal(a) {
			t.Errorf("%+v equals %+v", a, b)
		}
	}
	if !a.Equal(a) {
		t.Error("a fingerprint differs from itself")
	}
}

func TestBounds(t *testing.T) {
	f := newFingerprinter(t, Config{BodyBytesMax: 10, DepthMax: 2})
	for _, mediaType := range []string{"application/json", "text/plain"} {
		in := Input{MediaType: mediaType, Body: []byte(`"12345678"`)}
		sum(t, f, in)
		in.Body = append(in.Body, ' ')
		if _, err := f.Sum(in); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s, 11 bytes: %v", mediaType, err)
		}
	}
	sum(t, f, jsonInput(`[[]]`))
	var refused *SyntaxError
	if _, err := f.Sum(jsonInput(`[[[]]]`)); !errors.As(err, &refused) || refused.Reason != ReasonDepth {
		t.Errorf("depth 3: %v", err)
	}

	byDefault := newFingerprinter(t, Config{})
	largest := Input{Body: make([]byte, BodyBytesMaxDefault)}
	sum(t, byDefault, largest)
	largest.Body = append(largest.Body, 0)
	if _, err := byDefault.Sum(largest); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more than the default bound: %v", err)
	}
}

func TestRefusedOnlyWhereDeclaredJSON(t *testing.T) {
	f := newFingerprinter(t, Config{})
	var refused *SyntaxError
	for _, mediaType := range []string{"application/json", "application/json;charset=utf-8", "application/vnd.example+json", "Application/JSON;"} {
		if _, err := f.Sum(Input{MediaType: mediaType, Body: []byte(`{"a":1e400}`)}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", mediaType, err)
		}
	}
	for _, mediaType := range []string{"", "text/plain", "application/jsonx", "multipart/form-data; boundary=x"} {
		sum(t, f, Input{MediaType: mediaType, Body: []byte(`{"a":1e400}`)})
	}
}

func TestNewRejects(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 32)
	tests := []struct {
		clause string
		cfg    Config
		want   string
	}{
		{"negative size", Config{BodyBytesMax: -1}, "BodyBytesMax"},
		{"negative depth", Config{DepthMax: -1}, "DepthMax"},
		{"unbounded depth", Config{DepthMax: DepthMaxBound + 1}, "DepthMax"},
		{"secret without id", Config{Secrets: []Secret{{Key: key}}}, "no id"},
		{"short secret", Config{Secrets: []Secret{{ID: "a", Key: key[1:]}}}, "31 bytes"},
		{"one id, two secrets", Config{Secrets: []Secret{{ID: "a", Key: key}, {ID: "a", Key: key}}}, "two secrets"},
	}
	for _, test := range tests {
		t.Run(test.clause, func(t *testing.T) {
			if _, err := New(test.cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestNewCopiesSecrets(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 32)
	f := newFingerprinter(t, Config{Secrets: []Secret{{ID: "a", Key: key}}})
	before := sum(t, f, jsonInput(`1`))
	clear(key)
	if !sum(t, f, jsonInput(`1`)).Equal(before) {
		t.Error("the fingerprint changed with the caller's memory")
	}
}
