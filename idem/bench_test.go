package idem_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// BenchmarkDo is a whole request through the engine, scope, fingerprint, store and all: what idem adds to a request
// besides the time of DynamoDB. The reference store copies everything that goes in or out.
func BenchmarkDo(b *testing.B) {
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindOptimistic} {
		op := benchOperation(b, kind)
		handler := func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(memstore.Write{Key: string(tx.OperationID()), Apply: func([]byte) []byte { return []byte("1") }})
			return idem.JSON(201, "created")
		}
		do := func(key string, want idem.Outcome) {
			req := request(`{"amount":1999,"currency":"EUR","source":"card_ok","reference":"order-17"}`)
			req.Key = key
			if result, err := op.Do(b.Context(), req, handler); err != nil || result.Outcome != want {
				b.Fatalf("got %v, %v", result, err)
			}
		}
		n := 0
		b.Run("first/"+string(kind), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n++
				do(strconv.Itoa(n), idem.OutcomeExecuted)
			}
		})
		do("replayed", idem.OutcomeExecuted)
		b.Run("replay/"+string(kind), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				do("replayed", idem.OutcomeReplayed)
			}
		})
	}
}

func benchOperation(b *testing.B, kind idem.Kind) *idem.Registered {
	b.Helper()
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	engine, err := idem.New(mem, idem.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	op, err := engine.Register(idem.Operation{Name: "orders.create", Kind: kind, Policy: idem.IETF()})
	if err != nil {
		b.Fatal(err)
	}
	return op
}
