// Package batches is the program of docs/guides/batches.md: one handler, for the messages of SQS and for the records of a log with
// offsets, such as Kafka's.
package batches

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/memstore"
)

type order struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
}

// charge is the business: it gives its writes to tx.
func charge(_ context.Context, tx *idem.Tx, o order) error {
	tx.Write(memstore.Write{Key: o.ID, Apply: func([]byte) []byte { return fmt.Append(nil, o.Amount) }}) // on DynamoDB a dynamo.Put
	return nil
}

// newCharges takes an order's id for its key.
func newCharges(engine *idem.Engine) (*function.Function, error) {
	return function.New(engine,
		idem.Operation{Name: "orders.charge", Kind: idem.KindAtomic, Policy: function.QueuePolicy()},
		function.Config{Tenant: "shop", Key: function.JSONPointer("/id")})
}

// SQS is the function of an SQS queue, for lambda.Start.
func SQS(charges *function.Function) awslambda.Handler {
	return awslambda.SQS(function.Each(charges, awslambda.Body, charge), awslambda.Config{})
}

// Record is a record of a partition, as a client of Kafka hands it out.
type Record struct {
	Partition int
	Offset    int64
	Value     []byte
}

// Consume handles the records of one partition in their order, and returns how many of them are done with: the offset after those
// is the one to commit. A record that can never succeed is given to park, so that it does not hold up those behind it.
func Consume(ctx context.Context, charges *function.Function, records []Record, park func(Record, error) error) (done int, err error) {
	handle := function.Each(charges, func(r Record) ([]byte, error) { return r.Value, nil }, charge)
	for i, r := range records {
		err := handle(ctx, r)
		if hopeless(err) {
			err = park(r, err)
		}
		if err != nil {
			return i, err // try this one again, later
		}
	}
	return len(records), nil
}

// hopeless says whether the same record can never succeed: it can't be read, it has no key, another record had its key, or it was
// rejected.
func hopeless(err error) bool {
	var input *function.InputError
	var key *function.KeyError
	var stored *function.StoredError
	return errors.As(err, &input) || errors.As(err, &key) || errors.Is(err, function.ErrMismatch) || errors.As(err, &stored)
}
