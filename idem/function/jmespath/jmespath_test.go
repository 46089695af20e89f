package jmespath_test

import (
	"context"
	"errors"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/function/jmespath"
	"github.com/idem-go/idem-aws/idem/memstore"
)

func newFunction(t *testing.T, key function.Key) (*function.Function, error) {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	policy := idem.IETF()
	policy.Mismatch = idem.MismatchReplay
	return function.New(engine, idem.Operation{Name: "charges.create", Kind: idem.KindOptimistic, Policy: policy}, function.Config{Tenant: "shop", Key: key})
}

func done(context.Context, *idem.Tx, []byte) ([]byte, error) { return nil, nil }

func TestKey(t *testing.T) {
	for _, test := range []struct {
		expressions []string
		a, b        string
		same        bool
	}{
		{[]string{"detail.id"}, `{"detail":{"id":"a"}}`, `{"detail":{"id":"a","x":1}}`, true},
		{[]string{"detail.id"}, `{"detail":{"id":"a"}}`, `{"detail":{"id":"b"}}`, false},
		{[]string{"detail.id"}, `{"detail":{"id":1}}`, `{"detail":{"id":"1"}}`, false},
		{[]string{"id"}, `{"id":9007199254740993}`, `{"id":9007199254740992}`, false},
		{[]string{"id"}, `{"id":9007199254740993}`, `{"id":9007199254740993.0}`, true},
		{[]string{"a", "b"}, `{"a":"x","b":"yz"}`, `{"a":"xy","b":"z"}`, false},
		{[]string{"lines[?n > `1`] | [0].id"}, `{"lines":[{"n":1,"id":"p"},{"n":2,"id":"q"}]}`, `{"lines":[{"n":3,"id":"q"}]}`, true},
		{[]string{"length(lines)", "id"}, `{"id":"a","lines":[1,2]}`, `{"id":"a","lines":[3,4]}`, true},
		{[]string{"id || other"}, `{"id":"a"}`, `{"other":"a"}`, true},
		{[]string{"keys(@)[0]", "values(@)[1]"}, `{"b":1,"a":2,"c":3,"d":4,"e":5}`, `{"a":2,"b":1,"c":5,"d":4,"e":3}`, true},
		{[]string{"to_string(sort_by(lines, &n))", "lines[0].n"}, `{"lines":[{"n":2},{"n":1}]}`, `{"lines":[{"n":1},{"n":2}]}`, false},
		{[]string{"to_string(items(@))"}, `{"b":1,"a":2,"c":3,"d":4}`, `{"d":4,"c":3,"a":2,"b":1}`, true},
	} {
		fn, err := newFunction(t, jmespath.Key(test.expressions...))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fn.Do(t.Context(), []byte(test.a), done); err != nil {
			t.Fatalf("%v of %s: %v", test.expressions, test.a, err)
		}
		result, err := fn.Do(t.Context(), []byte(test.b), done)
		if err != nil || result.Replayed != test.same {
			t.Errorf("%v of %s and %s: same %v, %v; want %v", test.expressions, test.a, test.b, result.Replayed, err, test.same)
		}
	}
}

// An expression that yields null, nothing, or a list of nulls is no key.
func TestNoKey(t *testing.T) {
	for _, test := range []struct {
		expression, input string
		reason            function.KeyReason
	}{
		{"detail.id", `{"detail":{}}`, function.ReasonMissing},
		{"detail.id", `{"detail":{"id":null}}`, function.ReasonMissing},
		{"detail.id", `{"detail":{"id":""}}`, function.ReasonEmpty},
		{"[user, order]", `{}`, function.ReasonNotScalar},
		{"[user, order]", `{"user":"u","order":1}`, function.ReasonNotScalar},
		{"lines[].id", `{"lines":[]}`, function.ReasonEmpty},
		{"@", `{}`, function.ReasonEmpty},
		{"{id: id}", `{"id":"a"}`, function.ReasonNotScalar},
		{"id == 'a'", `{"id":"a"}`, function.ReasonBoolean},
		{"length(id)", `{"id":1}`, function.ReasonNotEvaluated},
	} {
		fn, err := newFunction(t, jmespath.Key(test.expression))
		if err != nil {
			t.Fatal(err)
		}
		_, err = fn.Do(t.Context(), []byte(test.input), done)
		var refused *function.KeyError
		if !errors.As(err, &refused) || refused.Reason != test.reason || refused.Expression != test.expression {
			t.Errorf("%s of %s: %v, want %q", test.expression, test.input, err, test.reason)
		}
	}
}

func TestMalformedExpressionIsRefused(t *testing.T) {
	for _, expression := range []string{"", "detail.", "[?", "nosuchfunction(", "*", "detail.*.id", "length(*)", "[a, {b: b.*}]", "A\u0080"} {
		_, err := newFunction(t, jmespath.Key("id", expression))
		var refused *idem.ConfigError
		if !errors.As(err, &refused) || refused.Field != "Config.Key" {
			t.Errorf("%q: %v", expression, err)
		}
	}
}
