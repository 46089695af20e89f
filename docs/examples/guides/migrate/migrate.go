// Package migrate is the program of docs/guides/powertools.md: a function whose key is a part of its event, as Powertools' idempotency
// utility takes it.
package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/function/jmespath"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// Event is the function's event.
type Event struct {
	User    string `json:"user_id"`
	Product string `json:"product_id"`
	Amount  int    `json:"amount"`
}

// Payment is its result.
type Payment struct {
	ID string `json:"payment_id"`
}

// New is the function, for lambda.Start.
func New(engine *idem.Engine) (func(context.Context, Event) (Payment, error), error) {
	policy := idem.IETF()
	policy.Name, policy.Retention = "payments", time.Hour // as before: expires_after_seconds=3600. Events of a queue need QueuePolicy
	payments, err := function.New(engine,
		idem.Operation{Name: "payments.create", Kind: idem.KindAtomic, Policy: policy},
		function.Config{
			Tenant: "shop",
			Key:    jmespath.Key("user_id", "product_id"), // event_key_jmespath="[user_id, product_id]"
		})
	if err != nil {
		return nil, err
	}
	return function.Typed(payments, pay), nil
}

// pay gives its write to tx, where the decorated function made it itself.
func pay(_ context.Context, tx *idem.Tx, e Event) (Payment, error) {
	id := string(tx.OperationID())
	tx.Write(memstore.Write{Key: "payment/" + id, Apply: func([]byte) []byte { return fmt.Append(nil, e.Amount) }}) // dynamo.Put
	return Payment{ID: id}, nil
}
