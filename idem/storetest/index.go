package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// index is one of the sparse indexes, whose queues are read by shards and pages.
type index[Ref any] struct {
	read func(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) ([]Ref, string, error)
	// place is what a reference is about, and when it is due.
	place func(Ref) (id string, at time.Time)
}

// want waits until exactly these are due in the queue, of those whose ids are given.
func (x index[Ref]) want(e *env, queue string, until time.Time, want []Ref, ids []string) {
	e.Helper()
	for {
		diff := x.differs(e, queue, until, 100, want, ids)
		if diff == "" {
			return
		}
		if err := idem.Pause(e.ctx, 20*time.Millisecond); err != nil {
			e.Fatalf("queue %s until %v: %s", queue, until, diff)
		}
	}
}

// differs reads all shards of a queue to their end, and says what of the ids it finds besides want, or lacks; none may come
// twice.
func (x index[Ref]) differs(e *env, queue string, until time.Time, limit int, want []Ref, ids []string) string {
	e.Helper()
	var all []Ref
	for shard := range e.Store.Shards() {
		all = append(all, x.shard(e, queue, shard, until, limit, ids)...)
	}
	found := x.byID(all)
	if len(found) != len(all) {
		e.Fatalf("queue %s: one comes twice: %v", queue, all)
	}
	return diff(found, x.byID(want))
}

func (x index[Ref]) byID(refs []Ref) map[string]Ref {
	all := make(map[string]Ref, len(refs))
	for _, r := range refs {
		id, _ := x.place(r)
		all[id] = r
	}
	return all
}

// shard reads one shard of a queue to its end, and demands bounded pages, oldest first.
func (x index[Ref]) shard(e *env, queue string, shard int, until time.Time, limit int, ids []string) []Ref {
	e.Helper()
	var mine []Ref
	var last time.Time
	for cursor := ""; ; {
		refs, next, err := x.read(e.ctx, queue, shard, until, limit, cursor)
		e.ok(err)
		if len(refs) > limit {
			e.Fatalf("queue %s: a page of %d, the limit is %d", queue, len(refs), limit)
		}
		for _, r := range refs {
			id, at := x.place(r)
			if at.Before(last) || at.After(until) {
				e.Fatalf("queue %s: %s at %v after one at %v, until %v", queue, id, at, last, until)
			}
			last = at
			if slices.Contains(ids, id) {
				mine = append(mine, r)
			}
		}
		if next == "" {
			return mine
		}
		cursor = next
	}
}

func ids[Row any](rows []Row, id func(Row) string) []string {
	all := make([]string, len(rows))
	for i, row := range rows {
		all[i] = id(row)
	}
	return all
}
