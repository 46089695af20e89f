package function_test

import (
	"context"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// docs/semantics.md "Kinds": a handler that lost its lock runs again, on the input as it came.
func TestEachRunIsGivenTheInputAsItCame(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindOptimistic}, function.Config{})
	const input = `{"id":"a","amount":500}`
	w.want(fn, input, func(_ context.Context, tx *idem.Tx, got []byte) ([]byte, error) {
		if n := w.run(); string(got) != input {
			t.Errorf("run %d got %s", n, got)
		}
		copy(got, "spoiled")
		tx.Write(memstore.Write{Key: "lock", Condition: func([]byte) bool { return tx.Attempt() > 1 }, Failure: idem.Retry()})
		return []byte("done"), nil
	}, "done", false)
	w.ran(2)
}
