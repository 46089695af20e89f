package function

import (
	"context"
	"errors"

	"github.com/idem-go/idem-aws/idem"
)

// Each makes of the function a handler of records: of awslambda.SQS with events.SQSMessage, of awslambda.Stream with
// events.DynamoDBEventRecord. input says what of a record is the function's input; what changes with each delivery, such
// as a receipt handle, must not be.
//
// A record whose operation is stored is done with; any other fails, also the duplicate of one in progress, whose holder
// may still crash (peers.md H16). So does a rejection, a [*StoredError]: to acknowledge some or all of those, return nil
// for them around this handler. An output of an opaque function that was too large to be stored fails nothing: nobody
// reads a record's output.
func Each[R any](f *Function, input func(record R) ([]byte, error), h Handler) func(ctx context.Context, record R) error {
	return func(ctx context.Context, record R) error {
		in, err := input(record)
		if err != nil {
			return err
		}
		_, err = f.Do(ctx, in, h)
		var stored *StoredError
		if errors.As(err, &stored) && errors.Is(stored, idem.ErrResponseTooLarge) {
			f.cfg.Logger.WarnContext(ctx, "the function has run, its output was too large to be stored",
				"operation", f.operation.Operation().Name, "operation_id", stored.OperationID)
			return nil
		}
		return err
	}
}
