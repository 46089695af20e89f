package jmespath

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// FuzzKey: an expression is refused when the function is made, or an input has one key, however it is spelled and however
// often it is asked: the second call replays the first. No expression changes the input.
func FuzzKey(f *testing.F) {
	for _, seed := range []struct{ expression, input string }{
		{"detail.id", `{"detail":{"id":"a"}}`}, {"lines[?n > `1`] | [0].id", `{"lines":[{"n":1,"id":"p"},{"n":2,"id":"q"}]}`},
		{"keys(@)[0]", `{"b":1,"a":2,"c":3}`}, {"join('-', values(@))", `{"b":"1","a":"2","c":"3"}`}, {"to_string(items(@))", `{"b":1,"a":2}`},
		{"*.id | [0]", `{"a":{"id":1},"b":{"id":2}}`}, {"to_string(sort_by(lines, &n))", `{"lines":[{"n":2},{"n":1}]}`},
		{"let $x = id in to_string([$x, $x])", `{"id":9007199254740993}`}, {"to_string(group_by(l, &k))", `{"l":[{"k":"b"},{"k":"a"}]}`},
		{"reverse(l) | to_string(@)", `{"l":[3,1,2]}`}, {"merge(a, b) | to_string(@)", `{"a":{"x":1},"b":{"x":2,"y":3}}`},
	} {
		f.Add(seed.expression, []byte(seed.input))
	}
	f.Fuzz(func(t *testing.T, expression string, input []byte) {
		if strings.Contains(expression, "pad") { // whose widths fill the memory, as their author asks
			return
		}
		fn, err := newFunction(t, Key(expression))
		var malformed *idem.ConfigError
		if err != nil {
			if !errors.As(err, &malformed) || malformed.Field != "Config.Key" {
				t.Fatal(err)
			}
			return
		}
		unchanged(t, expression, input)
		handler := func(_ context.Context, _ *idem.Tx, got []byte) ([]byte, error) { return got, nil }
		first, err := fn.Do(t.Context(), input, handler)
		var noKey *function.KeyError
		var refused *canonical.SyntaxError
		if errors.As(err, &noKey) || errors.As(err, &refused) || errors.Is(err, canonical.ErrTooLarge) {
			return
		}
		if err != nil || !first.Replayed && !bytes.Equal(first.Output, input) {
			t.Fatalf("%+v, %v", first, err)
		}
		again, err := fn.Do(t.Context(), respelled(t, input), handler)
		if err != nil || !again.Replayed || again.OperationID != first.OperationID {
			t.Fatalf("%q of %s: executed again: %+v, %v", expression, input, again, err)
		}
	})
}

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
	op := idem.Operation{Name: "charges.create", Kind: idem.KindOptimistic, Policy: idem.IETF()}
	return function.New(engine, op, function.Config{Tenant: "shop", Key: key})
}

// unchanged evaluates the expression beside: several expressions read one document, one after the other.
func unchanged(t *testing.T, expression string, input []byte) {
	t.Helper()
	find, err := compile(expression)
	if err != nil {
		t.Fatal(err)
	}
	var document, before any
	if json.Unmarshal(input, &document) != nil || json.Unmarshal(input, &before) != nil {
		return
	}
	_, _ = find(document) // what it can't evaluate is no key
	if !reflect.DeepEqual(document, before) {
		t.Fatalf("%q makes %v of %v", expression, document, before)
	}
}

func respelled(t *testing.T, input []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, input, " ", "\t"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
