package function

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
)

// Typed makes of the function one of Go values, which lambda.Start takes: they go in and out as encoding/json writes them.
// What is returned was decoded from what is stored, by the first call and by replays alike.
//
// The input's fingerprint is that of the encoded value, so a field that a release adds to In makes the retries of older
// calls mismatch, unless it is left out when it is zero (omitzero) or is not one of Config.Fields. It returns
// the errors of [Function.Do] and of encoding/json.
func Typed[In, Out any](f *Function, h func(ctx context.Context, tx *idem.Tx, input In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		input, err := json.Marshal(in)
		if err != nil {
			return out, fmt.Errorf("function: encode input: %w", err)
		}
		result, err := f.Do(ctx, input, typedHandler(h))
		if err != nil {
			return out, err
		}
		if err := json.Unmarshal(result.Output, &out); err != nil {
			return out, fmt.Errorf("function: decode output of %s: %w", result.OperationID, err)
		}
		return out, nil
	}
}

func typedHandler[In, Out any](h func(ctx context.Context, tx *idem.Tx, input In) (Out, error)) Handler {
	return func(ctx context.Context, tx *idem.Tx, input []byte) ([]byte, error) {
		var in In
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, &InputError{err}
		}
		out, err := h(ctx, tx, in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
}
