// Package sealed is the program of docs/guides/encryption.md: what is stored of a tenant is encrypted under a key of its own, which
// can be erased.
package sealed

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/docs/examples/internal/protection"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
)

// NewStore seals what it keeps. wrapper is awskms.New in production; seal.NewStatic is for tests.
func NewStore(client *dynamodb.Client, wrapper seal.Wrapper) (*seal.Store, *tablekeys.Keys, error) {
	tables, err := dynamo.New(client, dynamo.Config{IdempotencyTable: "shop-idempotency", OutboxTable: "shop-outbox"})
	if err != nil {
		return nil, nil, err
	}
	keys, err := tablekeys.New(client, tablekeys.Config{Table: "shop-keys", Wrapper: wrapper})
	if err != nil {
		return nil, nil, err
	}
	store, err := seal.New(tables, seal.Config{Keys: keys, SealedOnly: true}) // SealedOnly: a new service has nothing in the open
	return store, keys, err
}

// NewService protects POST /cards.
func NewService(store *seal.Store, cfg idem.Config) (http.Handler, error) {
	engine, err := idem.New(store, cfg)
	if err != nil {
		return nil, err
	}
	mw, err := middleware.New(engine, middleware.Config{Identify: protection.Identify})
	if err != nil {
		return nil, err
	}
	operation := idem.Operation{Name: "cards.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	return mw.Handle(operation, middleware.Route{}, func(_ context.Context, _ *idem.Tx, r *middleware.Request) (idem.Response, error) {
		var card struct{ Number string }
		if err := json.Unmarshal(r.Body, &card); err != nil {
			return idem.JSON(http.StatusBadRequest, map[string]string{"error": "a card has a number"})
		}
		return idem.JSON(http.StatusCreated, map[string]string{"card": card.Number})
	})
}
