package canonical

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// frozenInputs are requests of every form that a fingerprint distinguishes. The list may grow, with the files of all
// versions; nothing in it changes.
func frozenInputs(t *testing.T) map[string]Input {
	t.Helper()
	fields, err := NewFields([]string{"/amount", "/lines/0/sku", "/meta"}, []string{"/meta/sent_at", "/lines/1"})
	if err != nil {
		t.Fatal(err)
	}
	excluded, err := NewFields(nil, []string{"/sent_at", "/a~1b/m~0n"})
	if err != nil {
		t.Fatal(err)
	}
	body := func(mediaType, body string) Input {
		return Input{Operation: "payments.create", MediaType: mediaType, Body: []byte(body)}
	}
	order := `{"amount":1999,"lines":[{"sku":"a","n":1},{"sku":"b","n":2}],"meta":{"sent_at":"10:00","by":"c"},"note":"n"}`
	withFields := func(in Input, fields *Fields) Input { in.Selection.Fields = fields; return in }
	return map[string]Input{
		"nothing":    {},
		"operation":  {Operation: "payments.create"},
		"path":       {Operation: "payments.refund", Parameters: map[string]string{"id": "pay_1", "tenant": "", "ü": "a/b"}, Selection: Selection{Path: PathParameters}},
		"method":     {Operation: "payments.create", Method: "POST", Path: "/v1/payments"},
		"whole-path": {Operation: "payments.create", Path: "/v1/caf%C3%A9%2F1/"},
		"wildcards":  {Operation: "payments.refund", Wildcards: []string{"pay_1", ""}, Selection: Selection{Path: PathWildcards}},
		"ignored": {
			Operation: "payments.refund", Method: "POST", Wildcards: []string{"en", "pay_1"}, Query: map[string][]string{"a": {"1"}, "t": {"2"}, "utm_x": {"3"}},
			Selection: Selection{Path: PathWildcards, IgnorePath: []string{"1"}, IgnoreQuery: []string{"t"}, IgnoreTracking: true},
		},
		"query":               {Operation: "payments.refund", Query: map[string][]string{"expand": {"b", "a"}, "dry": {""}, "none": {}}},
		"media-type-alone":    {Operation: "payments.create", MediaType: "application/json"},
		"payment":             body("application/json", `{"amount":1999,"currency":"EUR","source":"card_ok","reference":"order-17"}`),
		"payment-spelled":     body("Application/JSON; Charset=UTF-8", "{ \"reference\" : \"order\\u002d17\",\n\"source\":\"card_ok\",\"currency\":\"EUR\",\"amount\":1.999e3}"),
		"charset-of-json":     body("application/vnd.shop+json;charset=latin1", `[1]`),
		"profile":             body(`application/json; profile="v2"; Version=3`, `[1]`),
		"numbers":             body("application/json", `[0,-0,1.50,1e21,1e-7,5e-324,9007199254740993,0.1,123456789012345678901234567890,-1E+2]`),
		"strings":             body("application/json", `["\u20ac$\u000f\nA'\"\\\/","\ud83d\ude00","é","e\u0301"]`),
		"names-by-utf16":      body("application/json", `{"\ufb33":1,"\ud83d\ude00":2,"\r":3,"1":4,"\u0080":5,"ö":6,"€":7}`),
		"nested":              body("application/json", strings.Repeat(`{"a":[`, 30)+"null"+strings.Repeat("]}", 30)),
		"scalars":             body("application/json", ` [ true , false , null , "" , { } , [ ] ] `),
		"bytes":               body("application/octet-stream", "\x00\xff{\"a\":1}"),
		"text":                body("text/plain; charset=UTF-8; format=flowed", `{"a":1.0}`),
		"no-media-type":       body("", `{"a":1.0}`),
		"not-a-media-type":    body("json;;", `{"a":1.0}`),
		"fields":              withFields(body("application/json", order), fields),
		"fields-excluded":     withFields(body("application/json", `{"sent_at":1,"a/b":{"m~n":2,"x":3},"y":4}`), excluded),
		"fields-of-text":      withFields(body("text/plain", order), fields),
		"everything-together": {Operation: "o", Parameters: map[string]string{"p": "q"}, Query: map[string][]string{"r": {"s", "t"}}, MediaType: "application/json", Body: []byte(order), Selection: Selection{Path: PathParameters, Fields: excluded}},
	}
}

// A release never turns a valid retry into a mismatch: what was stored under a version and a secret, or under
// none, is computed again bit by bit for as long as the version is computed at all. The files are never rewritten.
func TestFingerprintsOfEveryVersionAreFrozen(t *testing.T) {
	f := newFingerprinter(t, Config{Secrets: []Secret{
		{ID: "2027-01", Key: bytes.Repeat([]byte{9}, 64)}, {ID: "2026-11", Key: bytes.Repeat([]byte{7}, 32)},
	}})
	for version := range encodings {
		frozen := map[string]string{}
		for line := range strings.Lines(readFile(t, "testdata/fingerprints", fmt.Sprintf("v%d.txt", version))) {
			name, sum, _ := strings.Cut(strings.TrimSpace(line), " = ")
			frozen[name] = sum
		}
		inputs := frozenInputs(t)
		if len(frozen) != 3*len(inputs) {
			t.Errorf("version %d: %d sums, want 3 of each of %d inputs", version, len(frozen), len(inputs))
		}
		for name, in := range inputs {
			for _, keyID := range []string{"", "2026-11", "2027-01"} {
				sum, err := f.SumAs(Fingerprint{Version: version, KeyID: keyID, Selection: in.Selection.String()}, in)
				if err != nil {
					t.Fatalf("version %d of %s: %v", version, name, err)
				}
				if want, got := frozen[strings.TrimSpace(name+" "+keyID)], fmt.Sprintf("%x", sum.Sum); got != want {
					t.Errorf("version %d of %s under key %q is %s, was %q", version, name, keyID, got, want)
				}
			}
		}
	}
}
