package idem_test

import (
	"context"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// docs/design.md "What a lost reply means": a transaction without a reply is sent again as it was prepared, under the same token. Another
// one, prepared anew, could land beside it.
func TestATransactionIsPreparedOnceHoweverOftenItIsSent(t *testing.T) {
	for _, op := range kinds {
		t.Run(string(op.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(op)
				store.On(faulty.Commit, 1, faulty.LoseReply())
				store.On(faulty.Commit, 2, faulty.Refuse(storage.ErrThrottled))
				store.On(faulty.Commit, 3, faulty.LoseRequest())
				w.want(w.do(orders, request("{}"), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					tx.Write(count("business"))
					return idem.JSON(201, tx.Attempt())
				}), idem.OutcomeExecuted, 201, "1")
				w.written(1)
				if tokens, sent := store.Prepared(), store.Count(faulty.Commit); len(tokens) != 1 || sent != 4 {
					t.Errorf("sent %d times, prepared as %q", sent, tokens)
				}
			})
		})
	}
}

// A handler that runs again makes another transaction: under the token of the one that was refused the store would answer for that one.
func TestEachRunCommitsUnderATokenOfItsOwn(t *testing.T) {
	for _, op := range kinds {
		t.Run(string(op.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, store := newFaultyWorld(t)
				orders := w.register(op)
				w.want(w.do(orders, request("{}"), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					tx.Write(memstore.Write{Key: "version", Condition: func([]byte) bool { return tx.Attempt() > 1 }, Failure: idem.Retry()}, count("business"))
					return idem.JSON(201, tx.Attempt())
				}), idem.OutcomeExecuted, 201, "2")
				w.written(1)
				if tokens := store.Prepared(); len(tokens) != 2 || tokens[0] == tokens[1] || tokens[0] == "" {
					t.Errorf("prepared as %q", tokens)
				}
			})
		})
	}
}
