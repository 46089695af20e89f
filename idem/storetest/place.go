package storetest

import (
	"context"
	"slices"

	"github.com/idem-go/idem-aws/idem/storage"
)

// placeTests: where a run stopped is kept for the next run, which may be another process's. Harnesses may share a table, so each
// test has names of its own.
var placeTests = []test{
	{"a place is read as it was set last, each name for itself", func(e *env) {
		one, other := "one."+e.token(), "other."+e.token()
		e.wantPlace(one, "")
		for _, cursor := range []string{"MTcgaWQ", "MTggaWQ", "", "MTcgaWQ"} {
			e.ok(e.Store.SetPlace(e.ctx, one, cursor))
			e.wantPlace(one, cursor)
			e.wantPlace(other, "")
		}
	}},
	{"a listing goes on behind a cursor whose message has left the queue", func(e *env) {
		for range 8 {
			e.deferred()
		}
		listed := func(shard int, limit int, cursor string) (ids []storage.MessageID, next string) {
			refs, next, err := e.Store.QueuedMessages(e.ctx, storage.QueueOffer, shard, base.AddDate(1, 0, 0), limit, cursor)
			e.ok(err)
			for _, r := range refs {
				ids = append(ids, r.ID)
			}
			return ids, next
		}
		gone := 0
		for shard := range e.Store.Shards() {
			first, cursor := listed(shard, 1, "")
			if cursor == "" {
				continue
			}
			m := e.message(first[0])
			if m == nil || m.State != storage.MessagePending {
				continue // another test's
			}
			behind, _ := listed(shard, 100, cursor)
			e.ok(e.settle(storage.Settlement{Message: delivered(*m), Token: e.token()}))
			gone++
			if again, _ := listed(shard, 100, cursor); !slices.Equal(again, behind) {
				e.Errorf("shard %d: %v, want %v", shard, again, behind)
			}
		}
		if gone == 0 {
			e.Error("no shard had two messages")
		}
	}},
	{"an ended context reads and sets nothing", func(e *env) {
		name := "ended." + e.token()
		e.ok(e.Store.SetPlace(e.ctx, name, "before"))
		ended, cancel := context.WithCancel(e.ctx)
		cancel()
		if _, err := e.Store.Place(ended, name); err == nil {
			e.Error("it was read")
		}
		if err := e.Store.SetPlace(ended, name, "after"); err == nil {
			e.Error("it was set")
		}
		e.wantPlace(name, "before")
	}},
}

func (e *env) wantPlace(name, want string) {
	e.Helper()
	if got, err := e.Store.Place(e.ctx, name); err != nil || got != want {
		e.Errorf("place %s is %q, %v; want %q", name, got, err, want)
	}
}
