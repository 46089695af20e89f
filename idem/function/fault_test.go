package function_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

func TestLostReplies(t *testing.T) {
	for _, kind := range kinds {
		for _, call := range []faulty.Call{faulty.Insert, faulty.Update, faulty.Commit} {
			for name, fault := range map[string]faulty.Fault{"reply": faulty.LoseReply(), "request": faulty.LoseRequest(), "throttled": faulty.Refuse(storage.ErrThrottled)} {
				t.Run(fmt.Sprintf("%s %s %s", kind, call, name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, idem.Config{})
						fn := w.function(idem.Operation{Kind: kind}, function.Config{})
						w.store.On(call, 1, fault)
						w.want(fn, `{"id":"a"}`, w.returning(kind, "done"), "done", false)
						w.want(fn, `{"id":"a"}`, w.returning(kind, "done"), "done", true)
						w.ran(1)
					})
				})
			}
		}
	}
}

func TestStoreIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, idem.Config{})
		fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{})
		w.store.All(faulty.LoseRequest())
		if down := as[*idem.UnavailableError](t, fn, `{"id":"a"}`, w.returning(idem.KindAtomic, "done")); down.RetryAfter <= 0 {
			t.Errorf("%+v", down)
		}
		w.ran(0)
		w.store.Clear()
		w.want(fn, `{"id":"a"}`, w.returning(idem.KindAtomic, "done"), "done", false)
	})
}
