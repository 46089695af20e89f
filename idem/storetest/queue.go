package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// queues are those of the messages' sparse index.
var queues = []string{storage.QueueOffer, storage.QueueUnknown, storage.QueueDead}

// queueTests: whatever is not final stands in its queue, so nothing is ever lost (design.md "Tables"). Indexes are read
// eventually consistent, so each test waits for what it demands.
var queueTests = []test{
	{"each message that is not final stands in the queue of its state, and in no other", func(e *env) {
		for state, queue := range ordered(map[string]string{
			string(storage.MessagePending): storage.QueueOffer, string(storage.MessageClaimed): storage.QueueOffer,
			string(storage.MessageUnknown): storage.QueueUnknown, string(storage.MessageDead): storage.QueueDead,
		}) {
			_, m := e.deferred()
			now := e.claimed(m)
			now.State, now.Epoch, now.SweepAt = storage.MessageState(state), 3, base.Add(5*time.Millisecond)
			e.ok(e.Store.UpdateMessage(e.ctx, now, storage.FenceOfMessage(m)))
			want := []storage.MessageRef{ref(now)}
			for _, q := range queues {
				if q == queue {
					e.wantQueued(q, now.SweepAt, want, now)
				} else {
					e.wantQueued(q, now.SweepAt.AddDate(1, 0, 0), nil, now)
				}
			}
		}
	}},
	{"a final message stands in no queue, whether it was settled or updated", func(e *env) {
		for _, state := range []storage.MessageState{storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled} {
			_, settled := e.deferred()
			_, updated := e.deferred()
			e.wantQueued(storage.QueueOffer, settled.SweepAt, []storage.MessageRef{ref(settled)}, settled)
			end := delivered(settled)
			end.State = state
			e.ok(e.settle(storage.Settlement{Message: end, Token: e.token()}))
			final := updated
			final.State, final.DoneAt, final.SweepAt = state, base, time.Time{}
			e.ok(e.Store.UpdateMessage(e.ctx, final, storage.FenceOfMessage(updated)))
			for _, q := range queues {
				e.wantQueued(q, base.AddDate(1, 0, 0), nil, settled, updated)
			}
		}
	}},
	{"a settlement that leaves the message dead puts it into the operator's queue", func(e *env) {
		_, m := e.deferred()
		dead := delivered(m)
		dead.State, dead.DoneAt, dead.SweepAt = storage.MessageDead, time.Time{}, base.Add(time.Hour)
		e.ok(e.settle(storage.Settlement{Message: dead, Token: e.token()}))
		e.wantQueued(storage.QueueDead, dead.SweepAt, []storage.MessageRef{{ID: m.ID, Tenant: m.Tenant, Topic: m.Topic, At: dead.SweepAt}}, m)
		e.wantQueued(storage.QueueOffer, base.AddDate(1, 0, 0), nil, m)
	}},
	{"the next message of a chain stands in its queue", func(e *env) {
		r, m := e.deferred()
		next := message(r, 2)
		e.ok(e.settle(storage.Settlement{Message: delivered(m), Next: &next, Token: e.token()}))
		e.wantQueued(storage.QueueOffer, next.SweepAt, []storage.MessageRef{ref(next)}, m, next)
	}},
	{"a message is due from its millisecond on, not before", func(e *env) {
		_, m := e.deferred()
		e.wantQueued(storage.QueueOffer, m.SweepAt, []storage.MessageRef{ref(m)}, m)
		e.wantQueued(storage.QueueOffer, m.SweepAt.Add(-time.Millisecond), nil, m)
	}},
	{"pages are bounded, oldest first, and miss nothing in any shard", func(e *env) {
		var messages []storage.Message
		var want []storage.MessageRef
		for i := range 8 + 4*e.Store.Shards() {
			r := pending(e.reserved())
			m := message(r, 1)
			m.SweepAt = base.Add(time.Duration(i*7%5) * time.Millisecond) // out of order, some at the same time
			e.ok(e.send(storage.Commit{Record: r, Now: base, Messages: []storage.Message{m}, Token: e.token()}))
			messages, want = append(messages, m), append(want, ref(m))
		}
		e.wantQueued(storage.QueueOffer, base.Add(time.Second), want, messages...)
		for _, limit := range []int{1, 3} {
			if diff := diff(byID(e.paged(storage.QueueOffer, base.Add(time.Second), limit, messages)), byID(want)); diff != "" {
				e.Errorf("in pages of %d: %s", limit, diff)
			}
		}
	}},
	{"many messages are spread over more than one shard where there are more", func(e *env) {
		shards := e.Store.Shards()
		if shards < 1 {
			e.Fatalf("the store has %d shards", shards)
		}
		var messages []storage.Message
		var want []storage.MessageRef
		for range 4 * min(shards, 16) {
			_, m := e.deferred()
			messages, want = append(messages, m), append(want, ref(m))
		}
		e.wantQueued(storage.QueueOffer, base.Add(time.Minute), want, messages...)
		used := 0
		for shard := range shards {
			if len(e.shard(storage.QueueOffer, shard, base.Add(time.Minute), 100, messages)) > 0 {
				used++
			}
		}
		if used < min(shards, 2) {
			e.Errorf("%d messages stand in %d of %d shards", len(messages), used, shards)
		}
	}},
}

func ref(m storage.Message) storage.MessageRef {
	return storage.MessageRef{ID: m.ID, Tenant: m.Tenant, Topic: m.Topic, At: m.SweepAt}
}

// wantQueued waits until exactly want of the given messages are due in the queue.
func (e *env) wantQueued(queue string, until time.Time, want []storage.MessageRef, messages ...storage.Message) {
	e.Helper()
	for {
		diff := diff(byID(e.paged(queue, until, 100, messages)), byID(want))
		if diff == "" {
			return
		}
		if err := idem.Pause(e.ctx, 20*time.Millisecond); err != nil {
			e.Fatalf("queue %s until %v: %s", queue, until, diff)
		}
	}
}

func byID(refs []storage.MessageRef) map[storage.MessageID]storage.MessageRef {
	all := make(map[storage.MessageID]storage.MessageRef, len(refs))
	for _, r := range refs {
		all[r.ID] = r
	}
	return all
}

// paged reads all shards of a queue to their end, keeping what the test inserted; none may come twice.
func (e *env) paged(queue string, until time.Time, limit int, messages []storage.Message) []storage.MessageRef {
	e.Helper()
	var all []storage.MessageRef
	for shard := range e.Store.Shards() {
		all = append(all, e.shard(queue, shard, until, limit, messages)...)
	}
	if len(byID(all)) != len(all) {
		e.Fatalf("queue %s: a message comes twice: %s", queue, fmt.Sprint(all))
	}
	return all
}

// shard reads one shard of a queue to its end, and demands bounded pages, oldest first.
func (e *env) shard(queue string, shard int, until time.Time, limit int, messages []storage.Message) []storage.MessageRef {
	e.Helper()
	var mine []storage.MessageRef
	var last time.Time
	for cursor := ""; ; {
		refs, next, err := e.Store.QueuedMessages(e.ctx, queue, shard, until, limit, cursor)
		e.ok(err)
		if len(refs) > limit {
			e.Fatalf("queue %s: a page of %d messages, the limit is %d", queue, len(refs), limit)
		}
		for _, r := range refs {
			if r.At.Before(last) || r.At.After(until) {
				e.Fatalf("queue %s: a message at %v after one at %v, until %v", queue, r.At, last, until)
			}
			last = r.At
			if slices.ContainsFunc(messages, func(m storage.Message) bool { return m.ID == r.ID }) {
				mine = append(mine, r)
			}
		}
		if next == "" {
			return mine
		}
		cursor = next
	}
}
