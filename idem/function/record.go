package function

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/idem-go/idem-aws/idem"
)

// Each makes of the function a handler of records whose input is a Go value: of awslambda.SQS with events.SQSMessage, of
// awslambda.Stream with events.DynamoDBEventRecord. input returns the JSON of a record that the function's input is, and h
// gets it as encoding/json decodes it, anew for each run. What changes with each delivery, such as a receipt handle, must
// not be in it. The key and the fingerprint are of that JSON as it stands, so a release may add fields to In.
//
// A record whose operation is stored is done with; any other fails, also the duplicate of one in progress, whose holder
// may still crash. So does a rejection, a [*StoredError]: to acknowledge some or all of those, return nil for them around
// this handler. A record that can't be decoded fails with an
// [*InputError], before anything is asked or executed. What is stored as the output is
// null: nobody reads a record's output.
func Each[R, In any](f *Function, input func(record R) ([]byte, error), h func(ctx context.Context, tx *idem.Tx, in In) error) func(ctx context.Context, record R) error {
	decoded := func(record R) ([]byte, error) {
		in, err := input(record)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(in, new(In)); err != nil {
			return nil, &InputError{err}
		}
		return in, nil
	}
	return EachRaw(f, decoded, typedHandler(func(ctx context.Context, tx *idem.Tx, in In) (any, error) { return nil, h(ctx, tx, in) }))
}

// EachRaw is [Each] with bytes in and bytes out, for inputs that are not JSON, and for outputs that other callers of the
// function read. An output of a wrapped function that was too large to be stored fails no record.
func EachRaw[R any](f *Function, input func(record R) ([]byte, error), h Handler) func(ctx context.Context, record R) error {
	return func(ctx context.Context, record R) error {
		in, err := input(record)
		if err != nil {
			return err
		}
		_, err = f.Do(ctx, in, h)
		var stored *StoredError
		if errors.As(err, &stored) && errors.Is(stored, ErrOutputNotKept) {
			f.cfg.Logger.WarnContext(ctx, "the function has run, its output was too large to be stored",
				"operation", f.operation.Operation().Name, "operation_id", stored.OperationID)
			return nil
		}
		return err
	}
}
