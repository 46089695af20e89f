package function_test

import (
	"context"
	"errors"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/function"
)

type charge struct {
	ID    string   `json:"id"`
	Lines []string `json:"lines,omitempty"`
}

type receipt struct {
	Total int64 `json:"total"`
	// Printed is not stored, so that nobody gets it.
	Printed bool `json:"-"`
}

func TestTyped(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{})
	trouble := errors.New("trouble")
	fail := true
	bill := function.Typed(fn, func(_ context.Context, _ *idem.Tx, c charge) (*receipt, error) {
		w.run()
		if fail {
			return nil, trouble
		}
		c.Lines[0] = "changed"
		return &receipt{Total: 1<<53 + int64(len(c.Lines)), Printed: true}, nil
	})
	in := charge{ID: "a", Lines: []string{"book"}}
	if out, err := bill(t.Context(), in); !errors.Is(err, trouble) || out != nil {
		t.Errorf("%+v, %v", out, err)
	}
	fail = false
	for range 2 {
		out, err := bill(t.Context(), in)
		if err != nil || *out != (receipt{Total: 1<<53 + 1}) || in.Lines[0] != "book" {
			t.Fatalf("%+v, %v; in %+v", out, err, in)
		}
	}
	w.ran(2)
	if _, err := bill(t.Context(), charge{ID: "a"}); !errors.Is(err, function.ErrMismatch) {
		t.Errorf("got %v", err)
	}
	var none *function.KeyError
	if _, err := bill(t.Context(), charge{}); !errors.As(err, &none) {
		t.Errorf("got %v", err)
	}
}

// A release whose output is another type gets an error from an older result, and runs nothing.
func TestTypedMeetsAnOlderResult(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{})
	older := function.Typed(fn, func(context.Context, *idem.Tx, charge) (string, error) { return "receipt", nil })
	newer := function.Typed(fn, func(context.Context, *idem.Tx, charge) (receipt, error) { w.run(); return receipt{}, nil })
	if _, err := older(t.Context(), charge{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := newer(t.Context(), charge{ID: "a"}); err == nil {
		t.Error("a string was taken for a receipt")
	}
	w.ran(0)
	unencodable := function.Typed(fn, func(context.Context, *idem.Tx, charge) (func(), error) { return nil, nil })
	if _, err := unencodable(t.Context(), charge{ID: "b"}); err == nil {
		t.Error("a func was stored")
	}
}
