package function_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/function"
)

// What has no key of its own has none. Nobody gets anybody else's result.
func TestNoKey(t *testing.T) {
	one, two := function.JSONPointer("/detail/id"), function.JSONPointer("/detail/id", "/detail/n")
	for _, test := range []struct {
		key    function.Key
		input  string
		part   int
		reason function.KeyReason
	}{
		{one, `{"detail":{"id":null}}`, 0, function.ReasonMissing},
		{one, `{"detail":{}}`, 0, function.ReasonMissing},
		{one, `{"detail":null}`, 0, function.ReasonMissing},
		{one, `{"detail":"id"}`, 0, function.ReasonMissing},
		{one, `{"detail":[{"id":"a"}]}`, 0, function.ReasonMissing},
		{one, `null`, 0, function.ReasonMissing},
		{one, `{"detail":{"id":""}}`, 0, function.ReasonEmpty},
		{one, `{"detail":{"id":{}}}`, 0, function.ReasonEmpty},
		{one, `{"detail":{"id":[]}}`, 0, function.ReasonEmpty},
		{one, `{"detail":{"id":["a"]}}`, 0, function.ReasonNotScalar},
		{one, `{"detail":{"id":[null,null]}}`, 0, function.ReasonNotScalar},
		{one, `{"detail":{"id":{"a":"b"}}}`, 0, function.ReasonNotScalar},
		{one, `{"detail":{"id":true}}`, 0, function.ReasonBoolean},
		{one, `{"detail":{"id":1e400}}`, 0, function.ReasonUnusable},
		{one, ``, 0, function.ReasonNotJSON},
		{one, `{"detail":{"id":"a"}`, 0, function.ReasonNotJSON},
		{two, `{"detail":{"id":"a","n":null}}`, 1, function.ReasonMissing},
		{two, `{"detail":{"n":"a"}}`, 0, function.ReasonMissing},
		{two, `{"detail":{"id":"a","n":""}}`, 1, function.ReasonEmpty},
		{function.KeyFunc(func(context.Context, []byte) (string, error) { return "", nil }), `{}`, 0, function.ReasonEmpty},
		{function.KeyFunc(func(context.Context, []byte) (string, error) { return "\xff", nil }), `{}`, 0, function.ReasonNotUTF8},
	} {
		w := newWorld(t, idem.Config{})
		fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{Key: test.key})
		refused := as[*function.KeyError](t, fn, test.input, w.returning(idem.KindAtomic, "bob"))
		if refused.Reason != test.reason || refused.Part != test.part || !strings.Contains(refused.Error(), string(test.reason)) {
			t.Errorf("%s: %+v, want %q of part %d", test.input, refused, test.reason, test.part)
		}
		w.ran(0)
		if len(w.mem.Records()) > 0 {
			t.Errorf("%s: reserved %v", test.input, w.mem.Records())
		}
	}
}

// same says whether the two inputs have one key.
func same(t *testing.T, key function.Key, a, b string) bool {
	t.Helper()
	w := newWorld(t, idem.Config{})
	policy := idem.IETF()
	policy.Mismatch = idem.MismatchReplay
	fn := w.function(idem.Operation{Kind: idem.KindOptimistic, Policy: policy}, function.Config{Key: key})
	w.want(fn, a, w.returning(idem.KindOptimistic, "done"), "done", false)
	result, err := fn.Do(t.Context(), []byte(b), w.returning(idem.KindOptimistic, "done"))
	if err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return result.Replayed
}

func TestKeysAreEqualOnlyIfTheirPartsAre(t *testing.T) {
	one, two := function.JSONPointer("/a"), function.JSONPointer("/a", "/b")
	for _, test := range []struct {
		key  function.Key
		a, b string
		same bool
	}{
		{one, `{"a":"x"}`, `{"a":"\u0078","other":1}`, true},
		{one, `{"a":1}`, `{"a":"1"}`, false},
		{one, `{"a":1}`, `{"a":1.0}`, true},
		{one, `{"a":100}`, `{"a":1e2}`, true},
		{one, `{"a":0}`, `{"a":-0.0}`, true},
		{one, `{"a":0}`, `{"a":1e-400}`, false},
		{one, `{"a":5e-324}`, `{"a":4e-324}`, false},
		{one, `{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{one, `{"a":9007199254740993}`, `{"a":9.007199254740993e15}`, true},
		{one, `{"a":0.30000000000000004}`, `{"a":0.3}`, false},
		{one, `{"a":"a"}`, `{"a":"A"}`, false},
		{one, `{"a":"a"}`, `{"a":"a "}`, false},
		{two, `{"a":"ab","b":"c"}`, `{"a":"a","b":"bc"}`, false},
		{two, `{"a":"x\",\"y","b":"z"}`, `{"a":"x","b":"y\",\"z"}`, false},
		{two, `{"a":"x","b":"y"}`, `{"a":"y","b":"x"}`, false},
		{two, `{"a":1,"b":23}`, `{"a":12,"b":3}`, false},
		{two, `{"a":"x","b":true}`, `{"a":"x","b":false}`, false},
		{two, `{"a":"x","b":true}`, `{"a":"x","b":"true"}`, false},
		{two, `{"a":"x","b":true}`, `{"b":true,"a":"x"}`, true},
		{function.JSONPointer(""), `"x"`, ` "x" `, true},
	} {
		if got := same(t, test.key, test.a, test.b); got != test.same {
			t.Errorf("%s and %s: same %v, want %v", test.a, test.b, got, test.same)
		}
	}
}

// RFC 6901 section 5, the values of which are scalars, and section 4.
func TestJSONPointer(t *testing.T) {
	const document = `{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}`
	for pointer, value := range map[string]string{
		"/foo/0": `"bar"`, "/foo/1": `"baz"`, "/": `0`, "/a~1b": `1`, "/c%d": `2`, "/e^f": `3`, "/g|h": `4`, `/i\j`: `5`, `/k"l`: `6`, "/ ": `7`, "/m~0n": `8`,
		"/foo/-": "", "/foo/01": "", "/foo/2": "", "/foo/-1": "", "/foo/+1": "", "/foo/bar": "", "/m~1n": "", "/a/b": "",
	} {
		w := newWorld(t, idem.Config{})
		policy := idem.IETF()
		policy.Mismatch, policy.Scope = idem.MismatchReplay, idem.ScopeTenant
		op := idem.Operation{Kind: idem.KindOptimistic, Policy: policy}
		found := w.function(op, function.Config{Key: function.JSONPointer(pointer)})
		if value == "" {
			if missing := as[*function.KeyError](t, found, document, nil); missing.Reason != function.ReasonMissing || missing.Expression != pointer {
				t.Errorf("%q: %+v", pointer, missing)
			}
			continue
		}
		w.want(found, document, w.returning(idem.KindOptimistic, "done"), "done", false)
		stored := w.mem.Records()[0].Key
		direct := newWorld(t, idem.Config{})
		fn := direct.function(op, function.Config{Key: function.JSONPointer("")})
		direct.want(fn, value, direct.returning(idem.KindOptimistic, "done"), "done", false)
		if key := direct.mem.Records()[0].Key; key != stored {
			t.Errorf("%q names something else than %s", pointer, value)
		}
	}
}

// Keys that are stored must be found by every later release.
func TestKeyEncodingNeverChanges(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{Key: function.JSONPointer("/a", "/b", "/c")})
	w.want(fn, `{"a":"é\"<","b":12.50,"c":true}`, w.returning(idem.KindAtomic, "done"), "done", false)
	if key := w.mem.Records()[0].Key; key != "Xt81mR8o4_rxdUTaewdWPRelt0mqwMPM4qlsn7EHQaI" {
		t.Errorf("the record's key is now %s", key)
	}
}

func TestKeyIsRandomlyDistinct(t *testing.T) {
	w := newWorld(t, idem.Config{})
	pair := w.function(idem.Operation{Kind: idem.KindOptimistic}, function.Config{Raw: true, Key: function.KeyFunc(whole)})
	seen := map[string]bool{}
	rapid.Check(t, func(r *rapid.T) {
		input := rapid.StringN(1, 8, -1).Draw(r, "input")
		result, err := pair.Do(t.Context(), []byte(input), func(_ context.Context, _ *idem.Tx, in []byte) ([]byte, error) { return in, nil })
		if err != nil || string(result.Output) != input || result.Replayed != seen[input] {
			r.Fatalf("%+v, %v", result, err)
		}
		seen[input] = true
	})
}

func TestKeyFunc(t *testing.T) {
	type requestID struct{}
	fromContext := function.KeyFunc(func(ctx context.Context, input []byte) (string, error) {
		clear(input)
		id, ok := ctx.Value(requestID{}).(string)
		if !ok {
			return "", errors.New("no request id")
		}
		return id, nil
	})
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{Key: fromContext, Raw: true})
	if _, err := fn.Do(t.Context(), []byte("\xff"), nil); err == nil || err.Error() != "no request id" {
		t.Errorf("got %v", err)
	}
	ctx := context.WithValue(t.Context(), requestID{}, "r-1")
	for _, replayed := range []bool{false, true} {
		result, err := fn.Do(ctx, []byte("\xff"), w.returning(idem.KindAtomic, "done"))
		if err != nil || result.Replayed != replayed {
			t.Errorf("%+v, %v", result, err)
		}
	}
	if _, err := fn.Do(ctx, []byte("\xfe"), nil); !errors.Is(err, function.ErrMismatch) {
		t.Errorf("other bytes: %v", err)
	}
}

// What JSON leaves open is no input: whichever value were taken, another reader would take the other.
func TestAmbiguousInputIsRefused(t *testing.T) {
	for _, input := range []string{`{"id":"a","id":"b"}`, `{"id":"a"} {"id":"b"}`, `{"id":"a","n":1e400}`, "{\"id\":\"\xff\"}", `{"id":"\ud800"}`} {
		w := newWorld(t, idem.Config{})
		fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{})
		as[*canonical.SyntaxError](t, fn, input, w.returning(idem.KindAtomic, "done"))
		as[*function.InputError](t, fn, input, w.returning(idem.KindAtomic, "done"))
		w.ran(0)
	}
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{})
	_, err := fn.Do(t.Context(), fmt.Appendf(nil, `{"id":"a","x":%q}`, strings.Repeat("x", canonical.BodyBytesMaxDefault)), nil)
	if hopeless := new(*function.InputError); !errors.Is(err, canonical.ErrTooLarge) || !errors.As(err, hopeless) {
		t.Errorf("got %v", err)
	}
}

// A handler that reads JSON of somebody else may get a SyntaxError, too: that is no word about the record, which may succeed later.
func TestAHandlersSyntaxErrorIsNotTheInputs(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{})
	_, err := fn.Do(t.Context(), []byte(`{"id":"a"}`), failing(w, &canonical.SyntaxError{}))
	if hopeless := new(*function.InputError); err == nil || errors.As(err, hopeless) {
		t.Errorf("got %v", err)
	}
}
