package seal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// What a probe or a person finds is sealed like any answer, also where the reply to it is lost; and of an erased tenant
// it is kept that there is an answer, and that nobody can open it.
func TestAnUnknownOutcomeIsResolvedUnderSeal(t *testing.T) {
	for name, erased := range map[string]bool{"kept": false, "erased": true} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t)
			store := faulty.New(a.with(t, seal.Config{}))
			a.engine = must(idem.New(store, idem.Config{Now: a.clock.Now, Pause: a.clock.Pause}))(t)
			op := idem.Operation{Name: "orders.wrapped", Kind: storage.KindWrapped, UnknownToOperator: true, Policy: idem.IETF()}
			a.orders[storage.KindWrapped] = must(a.engine.Register(op))(t)
			_, err := a.orders[storage.KindWrapped].Do(t.Context(), ask("ada", `{"a":1}`), func(context.Context, *idem.Tx) (storage.Response, error) {
				return storage.Response{}, errors.New("lost connection")
			})
			if err == nil {
				t.Fatal("the handler's failure was answered")
			}
			a.clock.Advance(time.Hour)
			if erased {
				a.keys.erase("ada")
				a.clock.Advance(time.Hour)
			}
			seen := a.inner.Records()[0]
			store.On(faulty.Update, 1, faulty.LoseReply())
			got, err := a.engine.Resolve(t.Context(), "ada", seen.OperationID, seen.Revision, storage.Response{Status: 201, Body: []byte(`"done for ada"`)})
			if err != nil || got.State != storage.StateCompleted {
				t.Fatalf("%+v, %v", got, err)
			}
			if erased {
				_, err := a.do(t, storage.KindWrapped, "ada")
				wantErased(t, err)
				return
			}
			a.want(t, storage.KindWrapped, "ada", idem.OutcomeReplayed)
			if stored := a.inner.Records()[0]; !stored.Sealed {
				t.Error("the answer lies in the open")
			}
		})
	}
}
